// Bytes that are written now and read once, later: what a file holds behind something that is not known yet. They lie
// in a file without a name in the folder of the output, which nothing has to remove: it is gone with this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "vicinal/context.hpp"

namespace vicinal::io {

class Spool {
 public:
  /// For an output at `target`, which sentences name; one that is no file, such as a pipe, has its spool in the folder
  /// for temporary files. Throws `io`.
  Spool(const Context& ctx, const std::filesystem::path& target);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /// Appends. Throws `io`, `cancelled`.
  void write(const void* data, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// CRC-32 of what was written.
  [[nodiscard]] std::uint32_t crc() const noexcept { return crc_; }
  /// Passes all bytes on, in pieces and in order. Throws as `write` does.
  void read(const std::function<void(std::string_view piece)>& take) const;
  /// The same for the last time: what was passed on leaves the disk, so that the output and its spool never take twice
  /// its size, and letting go of a large file does not hold a cancel up. `size` and `crc` stay.
  void drain(const std::function<void(std::string_view piece)>& take);

 private:
  [[noreturn]] void fail(int error) const;

  const Context& ctx_;
  std::string shown_;  // the target as the caller wrote it
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace vicinal::io
