// See bytes.hpp. What is read stays what it was, whatever becomes of the file; what is mapped costs no memory of ours.
#include "io/bytes.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "io/held_pipe.hpp"
#include "io/shown.hpp"
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

Bytes read_stream(const Context& ctx, const std::filesystem::path& path, int fd, std::uint64_t at_most) {
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
    buffer.add(static_cast<std::uint64_t>(got));
    if (got == 0 || buffer.size() >= at_most) return buffer.take();
  }
}

/// A pipe can be read only once, so what a look has read is kept: of standard input for good, of another pipe until it
/// is opened, or let go where it is held (HeldPipe).
class LookedAt {
 public:
  Bytes look(const Context& ctx, const std::filesystem::path& path, int fd, const struct stat& status) {
    const std::lock_guard lock(mutex_);
    Bytes& kept = kept_[{status.st_dev, status.st_ino}];
    if (kept.size == 0) kept = read_stream(ctx, path, fd, UINT64_MAX);
    return kept;
  }
  /// Without bytes where nobody has looked.
  Bytes take(const struct stat& status) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find({status.st_dev, status.st_ino});
    if (found == kept_.end()) return {};
    Bytes bytes = std::move(found->second);
    kept_.erase(found);
    return bytes;
  }
  void hold(const std::pair<dev_t, ino_t>& pipe) {
    const std::lock_guard lock(mutex_);
    held_.insert(pipe);
  }
  void let_go(const std::pair<dev_t, ino_t>& pipe) {
    const std::lock_guard lock(mutex_);
    held_.erase(held_.find(pipe));
    if (!held_.contains(pipe)) kept_.erase(pipe);
  }
  bool holds(const struct stat& status) {
    const std::lock_guard lock(mutex_);
    return held_.contains({status.st_dev, status.st_ino});
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, Bytes> kept_;
  std::multiset<std::pair<dev_t, ino_t>> held_;
};
LookedAt& looked_at() {
  static LookedAt all;
  return all;
}

[[noreturn]] void shrank(const std::filesystem::path& path) {
  throw Error(ErrorCode::io, fmt::format("cannot read '{}': it shrank while it was read", path.string()));
}

/// Where a file is mapped. `begin` is written last when it is, and first when it is no more.
struct MappedFile {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::uintptr_t size = 0;
  char* name = nullptr;
};
MappedFile mapped_files[64];

/// A mapping, and the entry that a signal handler finds it by.
class Mapping {
 public:
  Mapping(void* data, std::uint64_t size, const std::filesystem::path& path) : data_(data), size_(size) {
    const auto* const entry = std::find_if(std::begin(mapped_files), std::end(mapped_files),
                                           [](MappedFile& file) { return !file.taken.exchange(true); });
    if (entry == std::end(mapped_files)) return;
    entry_ = &mapped_files[entry - mapped_files];
    entry_->size = size;
    entry_->name = ::strdup(printable(path.string()).c_str());
    entry_->begin = reinterpret_cast<std::uintptr_t>(data);
  }
  ~Mapping() {
    if (entry_ != nullptr) {
      entry_->begin = 0;
      std::free(std::exchange(entry_->name, nullptr));
      entry_->taken = false;
    }
    ::munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

 private:
  void* data_;
  std::uint64_t size_;
  MappedFile* entry_ = nullptr;
};

Bytes map_file(int descriptor, std::uint64_t size, const std::filesystem::path& path) {
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) fail(path, "map", errno);
  Bytes bytes;
  bytes.owner = std::make_shared<Mapping>(data, size, path);
  bytes.data = static_cast<const unsigned char*>(data);
  bytes.size = size;
  return bytes;
}

}  // namespace

HeldPipe::HeldPipe(const std::filesystem::path& path) {
  struct stat status {};
  if (path == "/dev/stdin" || ::stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  pipe_ = {status.st_dev, status.st_ino};
  looked_at().hold(pipe_);
  holds_ = true;
}

HeldPipe::~HeldPipe() {
  if (holds_) looked_at().let_go(pipe_);
}

Bytes open_file(const Context& ctx, const std::filesystem::path& path, std::uint64_t at_most, Purpose purpose) {
  // Without O_NONBLOCK a pipe that nobody writes to would keep `open` itself waiting, deaf to the cancel token.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, "open", errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "read", errno);
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("cannot read '{}': it is a folder", path.string()));
  }
  if (S_ISFIFO(status.st_mode)) {
    const bool keeps = path == "/dev/stdin" || purpose == Purpose::look || looked_at().holds(status);
    Bytes bytes = keeps ? looked_at().look(ctx, path, file.get(), status) : looked_at().take(status);
    bytes.size = std::min(bytes.size, at_most);
    if (keeps || bytes.size > 0) return bytes;
  }
  // Files of /proc and the like say they have no bytes; reading tells.
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return read_stream(ctx, path, file.get(), at_most);
  const std::uint64_t size = std::min(static_cast<std::uint64_t>(status.st_size), at_most);
  return ctx.map_files() ? map_file(file.get(), size, path) : read_file(ctx, file.get(), size, path);
}

Bytes read_file(const Context& ctx, int descriptor, std::uint64_t size, const std::filesystem::path& path) {
  constexpr std::uint64_t kBlock = std::uint64_t{4} << 20;
  const std::string job = fmt::format("reading '{}'", path.string());
  core::require_memory(ctx, size, job);
  const std::shared_ptr<unsigned char> data = allocate(size, job);
  core::parallel_for(ctx, static_cast<std::int64_t>((size + kBlock - 1) / kBlock), [&](std::int64_t block, int) {
    std::uint64_t at = static_cast<std::uint64_t>(block) * kBlock;
    const std::uint64_t end = std::min(size, at + kBlock);
    while (at < end) {
      const ssize_t got = ::pread(descriptor, data.get() + at, end - at, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(path, "read", errno);
      if (got == 0) shrank(path);
      at += static_cast<std::uint64_t>(got);
    }
  });
  Bytes bytes;
  bytes.data = data.get();
  bytes.size = bytes.held = size;
  bytes.owner = data;
  return bytes;
}

const char* mapped_file_at(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const MappedFile& file : mapped_files) {
    const std::uintptr_t begin = file.begin.load();
    if (begin != 0 && at >= begin && at - begin < file.size) return file.name;
  }
  return nullptr;
}

GrowingBuffer::GrowingBuffer(const Context& ctx, std::string job, std::uint64_t held)
    : job_(std::move(job)), limit_(ctx.memory_limit() - std::min(held, ctx.memory_limit())) {}

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
  bytes.size = bytes.held = size_;
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
