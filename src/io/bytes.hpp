// The bytes of an input file, read to memory or, where the context asks for it, mapped. Contract clauses 7 (memory
// stays within the limit) and 11 (cancel is polled).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "vicinal/context.hpp"
#include "vicinal/error.hpp"

namespace vicinal::io {

/// Bytes and what keeps them alive.
struct Bytes {
  const unsigned char* data = nullptr;
  std::uint64_t size = 0;
  std::shared_ptr<const void> owner;
  std::uint64_t held = 0;  ///< memory that the owner keeps; none where it is a mapping
};

/// Why a file is opened. To be looked at: a pipe, which can be read only once, is then whole when it is opened again.
enum class Purpose : std::uint8_t { read, look };
/// The first bytes of a file, all of them or `at_most`. Throws `io` naming it when it cannot be opened or read, is a
/// folder or shrinks meanwhile, `over_memory` where what is read does not fit the limit.
Bytes open_file(const Context& ctx, const std::filesystem::path& path, std::uint64_t at_most = UINT64_MAX,
                Purpose purpose = Purpose::read);

/// Reads the first `size` bytes of an open file in parallel. `path` is for sentences; errors as `open_file`.
Bytes read_file(const Context& ctx, int descriptor, std::uint64_t size, const std::filesystem::path& path);

/// The mapped file that an address lies in, its name fit for a terminal, or null. Safe in a signal handler; of very
/// many files mapped at once some have no name.
VICINAL_API const char* mapped_file_at(const void* address) noexcept;

/// Memory that grows by realloc, which moves pages instead of copying them, up to the memory limit.
class GrowingBuffer {
 public:
  /// `job` opens the over_memory sentence: "inflating 'x.gz'"; `held` bytes are in memory already.
  GrowingBuffer(const Context& ctx, std::string job, std::uint64_t held = 0);
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
