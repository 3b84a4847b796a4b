// The bytes of an input file: mapped when it is a regular file, read to memory when it is a pipe. Contract clauses 7
// (memory stays within the limit) and 11 (cancel is polled).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "vicinal/context.hpp"

namespace vicinal::io {

/// Bytes and what keeps them alive.
struct Bytes {
  const unsigned char* data = nullptr;
  std::uint64_t size = 0;
  std::shared_ptr<const void> owner;
  bool mapped = false;  ///< borrowed from the page cache: not counted as working memory
};

/// Maps (or, for a pipe, reads) a file. Throws `io` naming it when it cannot be opened or is a folder.
Bytes open_file(const Context& ctx, const std::filesystem::path& path);

/// Memory that grows by realloc, which moves pages instead of copying them, up to the memory limit.
class GrowingBuffer {
 public:
  /// `job` opens the over_memory sentence: "inflating 'x.gz'".
  GrowingBuffer(const Context& ctx, std::string job);
  ~GrowingBuffer();
  GrowingBuffer(const GrowingBuffer&) = delete;
  GrowingBuffer& operator=(const GrowingBuffer&) = delete;

  /// Room for at least one more byte behind size(); throws `over_memory` when that is beyond the limit.
  void grow(std::uint64_t wanted);
  [[nodiscard]] unsigned char* end() noexcept { return data_ + size_; }
  [[nodiscard]] std::uint64_t room() const noexcept { return capacity_ - size_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  void add(std::uint64_t bytes) noexcept { size_ += bytes; }
  /// Gives the memory away, cut to size.
  Bytes take();

 private:
  std::string job_;
  std::uint64_t limit_;
  unsigned char* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t capacity_ = 0;
};

/// Memory of `bytes` bytes, aligned to 64, not initialized. Throws `over_memory` when the system has none.
std::shared_ptr<unsigned char> allocate(std::uint64_t bytes, const std::string& job);

}  // namespace vicinal::io
