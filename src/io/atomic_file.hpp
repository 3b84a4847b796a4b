// Output that is whole or not there (contract clause 11): bytes go to a temporary beside the target, commit() syncs and
// renames it. A target that exists and is no regular file (a pipe, /dev/stdout) has nothing to rename and is written
// directly. The outputs of one job appear together, or none of them does (OutputGroup). Live temporaries are listed
// process-wide, so that an interrupt can remove them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/error.hpp"

namespace vicinal::io {

/// One output file. Every failure is Error{io} naming the target and the reason.
class VICINAL_API AtomicFile {
 public:
  /// Creates the temporary; `-` is standard output. Throws when the folder is missing or not writable, or the target is
  /// a folder. A pipe is opened once it has a reader. A cancelled `token`, or that of the OutputGroup of this thread,
  /// throws `cancelled` while this waits for a reader or for what it reads, and every few MB that are written or
  /// synced.
  explicit AtomicFile(const std::filesystem::path& given, const CancelToken* token = nullptr);
  /// Removes the temporary unless commit() succeeded.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends; buffered.
  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Bytes appended so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Flushes, syncs and renames: from here on the target is the new file. Within an OutputGroup of this thread the
  /// group renames. Call once, last.
  void commit();

 private:
  void open_temporary(const std::filesystem::path& target);
  void open_direct(const std::filesystem::path& target);
  void flush();
  void put(const char* data, std::size_t bytes);
  void check_cancelled();
  /// Brings what was written to the disk step by step: fsync alone would keep a cancelled job waiting for all of it.
  void write_back();
  void discard() noexcept;

  std::string shown_;      // the target as the caller wrote it: for sentences
  std::string final_;      // absolute, symbolic links resolved
  std::string temporary_;  // empty when written directly
  void* entry_ = nullptr;  // in the list of live temporaries
  CancelToken token_;
  int fd_ = -1;
  bool is_pipe_ = false;  // writing waits for whoever reads
  std::uint64_t size_ = 0;
  std::vector<char> buffer_;
};

/// A temporary that is complete: all that is left is to give it its name.
struct FinishedFile {
  std::string shown;  ///< the target as the caller wrote it: for sentences
  std::string temporary;
  std::string target;
  void* entry = nullptr;  ///< in the list of live temporaries
};

/// While it lives, files that this thread commits keep their temporaries; commit() then renames all of them, in order.
/// So a disk that is full at the last file leaves every target as it was. A group within another hands its files on.
class VICINAL_API OutputGroup {
 public:
  /// `token` ends waiting for readers of pipes.
  explicit OutputGroup(const CancelToken& token = {}) noexcept;
  /// Removes the temporaries unless commit() succeeded.
  ~OutputGroup();
  OutputGroup(const OutputGroup&) = delete;
  OutputGroup& operator=(const OutputGroup&) = delete;

  /// Returns the targets, as callers wrote them, in the order of their commits; none for a group within another, whose
  /// files the outer one returns, and none for what was written directly. Throws `io` for the first file that cannot be
  /// renamed, naming those that were; that one and those after it are removed.
  std::vector<std::string> commit();

 private:
  friend class AtomicFile;
  OutputGroup* outer_;
  CancelToken token_;
  std::vector<FinishedFile> files_;
};

/// Removes every temporary of this process that is not yet committed. Async-signal-safe; files still being written
/// fail at commit() afterwards.
VICINAL_API void remove_temporaries() noexcept;

}  // namespace vicinal::io
