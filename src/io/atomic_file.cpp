// See atomic_file.hpp. The list of live temporaries is a linked list that only grows and whose nodes are reused: a
// signal handler can walk it without a lock. Nodes carry the process id, so a forked child leaves its parent's files
// be.
#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "io/pipe.hpp"
#include "vicinal/error.hpp"

namespace vicinal::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
/// Bytes that are written or brought to the disk between two looks at the cancel token.
constexpr std::size_t kStepBytes = std::size_t{1} << 22;
/// Bytes on their way to the disk at once.
constexpr std::size_t kUnderWayBytes = 4 * kStepBytes;

enum EntryState : int { kFree, kClaimed, kLive };

struct Entry {
  std::atomic<int> state{kClaimed};
  pid_t owner = 0;
  char path[PATH_MAX] = {};
  Entry* next = nullptr;
};

std::atomic<Entry*> entries{nullptr};
std::atomic<std::uint64_t> counter{0};

Entry* claim_entry() {
  for (Entry* entry = entries.load(std::memory_order_acquire); entry != nullptr; entry = entry->next) {
    int expected = kFree;
    if (entry->state.compare_exchange_strong(expected, kClaimed)) return entry;
  }
  auto* entry = new Entry;  // never freed: a handler may be looking at it
  entry->next = entries.load(std::memory_order_relaxed);
  while (!entries.compare_exchange_weak(entry->next, entry, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return entry;
}

[[noreturn]] void fail(const std::string& shown, std::string_view what, int error) {
  throw Error(ErrorCode::io, fmt::format("cannot {} '{}': {}", what, shown, std::generic_category().message(error)));
}

thread_local OutputGroup* innermost = nullptr;

/// Removes a temporary and takes it from the list.
void remove(Entry* entry) noexcept {
  if (entry == nullptr) return;
  if (entry->owner == ::getpid()) ::unlink(entry->path);
  entry->state.store(kFree, std::memory_order_release);
}

/// Gives a temporary its name; one that cannot have it is removed.
void rename(const FinishedFile& file) {
  auto* const entry = static_cast<Entry*>(file.entry);
  if (::rename(file.temporary.c_str(), file.target.c_str()) != 0) {
    const int error = errno;
    remove(entry);
    fail(file.shown, "write", error);
  }
  entry->state.store(kFree, std::memory_order_release);
  // The rename itself reaches the disk with the folder; a folder that cannot be synced is no reason to fail.
  const int folder = ::open(fs::path(file.target).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

/// The file behind a chain of symbolic links, which need not exist. Links into /proc (as /dev/stdout is one) name open
/// files, not places; `in_proc` tells.
fs::path resolve(fs::path target, const std::string& shown, bool* in_proc) {
  *in_proc = false;
  target = fs::absolute(target);
  for (int depth = 0; depth < 40; ++depth) {
    if (target.native().starts_with("/proc/")) *in_proc = true;
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(target, error))) return target;
    const fs::path link = fs::read_symlink(target, error);
    if (error) fail(shown, "follow the link", error.value());
    target = link.is_absolute() ? link : target.parent_path() / link;
  }
  fail(shown, "write", ELOOP);
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& given, const CancelToken* token) {
  const fs::path target = given == "-" ? fs::path("/dev/stdout") : given;
  shown_ = target.string();
  if (token == nullptr && innermost != nullptr) token = &innermost->token_;
  if (token != nullptr) token_ = *token;
  if (target.empty()) throw Error(ErrorCode::invalid_argument, "the output path is empty");
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("cannot write '{}': it is a folder", shown_));
  }
  if (!exists && !target.has_filename()) {
    throw Error(ErrorCode::io, fmt::format("cannot write '{}': it names a folder that does not exist", shown_));
  }
  if (!exists && errno != ENOENT && errno != ENOTDIR) fail(shown_, "write", errno);
  bool in_proc = false;
  const fs::path place = resolve(target, shown_, &in_proc);
  buffer_.reserve(kBufferBytes);
  if (exists && (in_proc || !S_ISREG(status.st_mode))) {
    open_direct(target);
  } else {
    if (exists && ::access(target.c_str(), W_OK) != 0) fail(shown_, "write", errno);
    open_temporary(place);
    // Replacing a file keeps its permissions; a new one has what the umask left.
    if (exists && ::fchmod(fd_, status.st_mode & 0777) != 0) {
      const int error = errno;
      discard();
      fail(shown_, "set the permissions of", error);
    }
  }
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::open_direct(const fs::path& target) {
  // Standard output may be a socket, which cannot be opened by name.
  if (target == "/dev/stdout") {
    fd_ = ::dup(STDOUT_FILENO);
  } else if (target == "/dev/stderr") {
    fd_ = ::dup(STDERR_FILENO);
  } else {
    // Without O_NONBLOCK a pipe that nobody reads would keep `open` itself waiting, deaf to the cancel token.
    while ((fd_ = ::open(target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK)) < 0) {
      if (errno != ENXIO && errno != EINTR) break;
      if (token_.cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
      ::poll(nullptr, 0, kPipeWaitMs);
    }
    if (fd_ >= 0) ::fcntl(fd_, F_SETFL, O_APPEND);  // this description is ours alone
  }
  if (fd_ < 0) fail(shown_, "open", errno);
  is_pipe_ = is_pipe(fd_);
}

void AtomicFile::open_temporary(const fs::path& target) {
  final_ = target.string();
  const fs::path folder = target.parent_path();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw Error(ErrorCode::io,
                fmt::format("cannot write '{}': the folder '{}' does not exist", shown_, folder.string()));
  }
  // The suffix must fit beside a name that already has the file system's longest length.
  const std::string name = target.filename().string();
  if (name.size() > NAME_MAX) fail(shown_, "write", ENAMETOOLONG);
  const std::string stem = name.substr(0, std::min<std::size_t>(name.size(), NAME_MAX - 48));
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temporary_ = (folder / fmt::format("{}.tmp.{}.{}", stem, ::getpid(), counter.fetch_add(1))).string();
    if (temporary_.size() >= PATH_MAX) fail(shown_, "write", ENAMETOOLONG);
    // Listed before it exists: an interrupt in between finds nothing to remove, and never leaves a file behind.
    Entry* entry = claim_entry();
    std::memcpy(entry->path, temporary_.c_str(), temporary_.size() + 1);
    entry->owner = ::getpid();
    entry->state.store(kLive, std::memory_order_release);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) {
      entry_ = entry;
      return;
    }
    const int reason = errno;
    entry->state.store(kFree, std::memory_order_release);
    if (reason != EEXIST) {
      temporary_.clear();
      fail(shown_, "create", reason);
    }
  }
  temporary_.clear();
  fail(shown_, "create", EEXIST);
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  if (fd_ < 0) throw Error(ErrorCode::internal, fmt::format("'{}' is written after it was closed", shown_));
  const auto* from = static_cast<const char*>(data);
  if (buffer_.size() + bytes > kBufferBytes) flush();
  if (bytes >= kBufferBytes) {
    put(from, bytes);
  } else {
    buffer_.insert(buffer_.end(), from, from + bytes);
  }
  size_ += bytes;
}

void AtomicFile::flush() {
  put(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::put(const char* data, std::size_t bytes) {
  const std::size_t max_bytes = is_pipe_ ? kPipeBytes : kStepBytes;
  for (bool first = true; bytes > 0; first = false) {
    if (is_pipe_) wait_for_room(fd_, token_);
    if (!first) check_cancelled();
    const ssize_t written = ::write(fd_, data, std::min(bytes, max_bytes));
    if (written < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      discard();
      fail(shown_, "write", error);
    }
    if (written == 0) {
      discard();
      fail(shown_, "write", EIO);
    }
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::check_cancelled() {
  if (!token_.cancelled()) return;
  discard();
  throw Error(ErrorCode::cancelled, "cancelled");
}

void AtomicFile::write_back() {
  const auto request = [this](std::uint64_t begin, std::uint64_t end, unsigned flags) {
    if (begin >= std::min(end, size_)) return;
    if (::sync_file_range(fd_, static_cast<off64_t>(begin), static_cast<off64_t>(std::min(end, size_) - begin),
                          flags) == 0)
      return;
    // A file system without it leaves all to fsync.
    if (errno == EINVAL || errno == ESPIPE || errno == ENOSYS || errno == ENOTSUP) return;
    const int error = errno;
    discard();
    fail(shown_, "write", error);
  };
  request(0, kUnderWayBytes, SYNC_FILE_RANGE_WRITE);
  for (std::uint64_t at = 0; at + kStepBytes < size_; at += kStepBytes) {
    check_cancelled();
    request(at + kUnderWayBytes, at + kUnderWayBytes + kStepBytes, SYNC_FILE_RANGE_WRITE);
    request(at, at + kStepBytes, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  }
}

void AtomicFile::commit() {
  if (fd_ < 0) throw Error(ErrorCode::internal, fmt::format("'{}' is committed after it was closed", shown_));
  flush();
  if (!temporary_.empty()) write_back();
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) {
    const int error = errno;
    discard();
    fail(shown_, "write", error);
  }
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0 && errno != EINTR) {  // a network file system may report a full disk only now
    const int error = errno;
    discard();
    fail(shown_, "write", error);
  }
  if (temporary_.empty()) return;
  const FinishedFile file{shown_, temporary_, final_, entry_};
  if (innermost != nullptr) {
    innermost->files_.push_back(file);
  } else {
    rename(file);
  }
  entry_ = nullptr;
  temporary_.clear();
}

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  remove(static_cast<Entry*>(entry_));
  entry_ = nullptr;
}

OutputGroup::OutputGroup(const CancelToken& token) noexcept : outer_(std::exchange(innermost, this)), token_(token) {}

OutputGroup::~OutputGroup() {
  innermost = outer_;
  for (const FinishedFile& file : files_) remove(static_cast<Entry*>(file.entry));
}

std::vector<std::string> OutputGroup::commit() {
  const std::vector<FinishedFile> files = std::exchange(files_, {});
  if (outer_ != nullptr) {
    outer_->files_.insert(outer_->files_.end(), files.begin(), files.end());
    return {};
  }
  std::vector<std::string> targets;
  for (auto file = files.begin(); file != files.end(); ++file) {
    try {
      rename(*file);
    } catch (const Error& error) {
      files_.assign(file + 1, files.end());
      if (targets.empty()) throw;
      throw Error(error.code(), fmt::format("{}; written already: '{}'", error.what(), fmt::join(targets, "', '")));
    }
    targets.push_back(file->shown);
  }
  return targets;
}

void remove_temporaries() noexcept {
  const int saved = errno;
  const pid_t self = ::getpid();
  for (Entry* entry = entries.load(std::memory_order_acquire); entry != nullptr; entry = entry->next) {
    if (entry->state.load(std::memory_order_acquire) == kLive && entry->owner == self) ::unlink(entry->path);
  }
  errno = saved;
}

}  // namespace vicinal::io
