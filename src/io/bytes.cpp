// See bytes.hpp. Mapping costs no memory of ours and lets a table be used without a copy.
#include "io/bytes.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "core/memory.hpp"
#include "vicinal/error.hpp"

namespace vicinal::io {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what, int error) {
  throw Error(ErrorCode::io,
              fmt::format("cannot {} '{}': {}", what, path.string(), std::generic_category().message(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

Bytes read_stream(const Context& ctx, const std::filesystem::path& path, int fd) {
  GrowingBuffer buffer(ctx, fmt::format("reading '{}'", path.string()));
  for (;;) {
    ctx.check_cancelled();
    pollfd ready{fd, POLLIN, 0};
    const int events = ::poll(&ready, 1, 50);  // milliseconds: a writer may be slow, a cancel must not wait for it
    if (events < 0 && errno != EINTR) fail(path, "read", errno);
    if (events <= 0) continue;
    if (buffer.room() == 0) buffer.grow(std::max<std::uint64_t>(buffer.size() / 2, std::uint64_t{1} << 20));
    const ssize_t got =
        ::read(fd, buffer.end(), static_cast<std::size_t>(std::min(buffer.room(), std::uint64_t{1} << 22)));
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      fail(path, "read", errno);
    }
    if (got == 0) return buffer.take();
    buffer.add(static_cast<std::uint64_t>(got));
  }
}

}  // namespace

Bytes open_file(const Context& ctx, const std::filesystem::path& path) {
  // Without O_NONBLOCK a pipe that nobody writes to would keep `open` itself waiting, deaf to the cancel token.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, "open", errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "read", errno);
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("cannot read '{}': it is a folder", path.string()));
  }
  // Files of /proc and the like say they have no bytes; reading tells.
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return read_stream(ctx, path, file.get());
  const auto size = static_cast<std::uint64_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) fail(path, "map", errno);
  Bytes bytes;
  bytes.data = static_cast<const unsigned char*>(data);
  bytes.size = size;
  bytes.owner = std::shared_ptr<const void>(data, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
  bytes.mapped = true;
  if (::fstat(file.get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) < size) {
    throw Error(ErrorCode::io, fmt::format("cannot read '{}': it shrank while it was opened", path.string()));
  }
  return bytes;
}

GrowingBuffer::GrowingBuffer(const Context& ctx, std::string job) : job_(std::move(job)), limit_(ctx.memory_limit()) {}

GrowingBuffer::~GrowingBuffer() {
  std::free(data_);
}

void GrowingBuffer::grow(std::uint64_t wanted) {
  const std::uint64_t capacity = std::min(limit_, capacity_ + std::max<std::uint64_t>(wanted, 1));
  if (capacity <= capacity_) {
    throw Error(ErrorCode::over_memory,
                fmt::format("{} needs more than the memory limit of {}", job_, core::format_bytes(limit_)));
  }
  void* data = std::realloc(data_, capacity);
  if (data == nullptr) {
    throw Error(ErrorCode::over_memory,
                fmt::format("{} needs {}, which the system does not give", job_, core::format_bytes(capacity)));
  }
  data_ = static_cast<unsigned char*>(data);
  capacity_ = capacity;
}

Bytes GrowingBuffer::take() {
  if (size_ > 0 && size_ < capacity_) {
    if (void* data = std::realloc(data_, size_); data != nullptr) data_ = static_cast<unsigned char*>(data);
  }
  Bytes bytes;
  bytes.data = data_;
  bytes.size = size_;
  unsigned char* mine = std::exchange(data_, nullptr);
  size_ = capacity_ = 0;
  bytes.owner = std::shared_ptr<const void>(mine, [](const void* at) { std::free(const_cast<void*>(at)); });
  return bytes;
}

std::shared_ptr<unsigned char> allocate(std::uint64_t bytes, const std::string& job) {
  constexpr std::uint64_t kAlignment = 64;
  void* data = nullptr;
  if (bytes <= (std::uint64_t{1} << 62)) {
    data = std::aligned_alloc(kAlignment, std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  }
  if (data == nullptr) {
    throw Error(ErrorCode::over_memory,
                fmt::format("{} needs {}, which the system does not give", job, core::format_bytes(bytes)));
  }
  return {static_cast<unsigned char*>(data), [](unsigned char* at) { std::free(at); }};
}

}  // namespace vicinal::io
