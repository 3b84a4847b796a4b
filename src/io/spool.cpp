// See spool.hpp.
#include "io/spool.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "vicinal/error.hpp"

namespace vicinal::io {
namespace {

constexpr std::uint64_t kSpoolStep = std::uint64_t{1} << 22;  // some milliseconds of the checksum

/// Where a file beside the target would be.
std::filesystem::path folder_of(const std::filesystem::path& target) {
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return std::filesystem::temp_directory_path();
  return std::filesystem::weakly_canonical(std::filesystem::absolute(target)).parent_path();
}

/// -1 and errno where there is none to be had.
int open_without_name(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string name = (folder / ".vicinal.XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

Spool::Spool(const Context& ctx, const std::filesystem::path& target) : ctx_(ctx), shown_(target.string()) {
  try {
    fd_ = open_without_name(folder_of(target));
  } catch (const std::filesystem::filesystem_error& error) {
    fail(error.code().value());
  }
  if (fd_ < 0) fail(errno);
}

Spool::~Spool() {
  ::close(fd_);
}

void Spool::write(const void* data, std::uint64_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    ctx_.check_cancelled();
    const ssize_t written = ::write(fd_, from, static_cast<std::size_t>(std::min(bytes, kSpoolStep)));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(written < 0 ? errno : EIO);
    crc_ = static_cast<std::uint32_t>(crc32_z(crc_, from, static_cast<z_size_t>(written)));
    from += written;
    bytes -= static_cast<std::uint64_t>(written);
    size_ += static_cast<std::uint64_t>(written);
  }
}

void Spool::read(const std::function<void(std::string_view piece)>& take) const {
  std::vector<char> piece(static_cast<std::size_t>(std::min(size_, kSpoolStep / 4)));
  for (std::uint64_t at = 0; at < size_;) {
    ctx_.check_cancelled();
    const ssize_t got = ::pread(fd_, piece.data(), piece.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(got < 0 ? errno : EIO);
    take({piece.data(), static_cast<std::size_t>(got)});
    at += static_cast<std::uint64_t>(got);
  }
}

void Spool::drain(const std::function<void(std::string_view piece)>& take) {
  std::uint64_t passed = 0;
  std::uint64_t freed = 0;
  read([&](std::string_view piece) {
    take(piece);
    passed += piece.size();
    if (passed - freed < kSpoolStep) return;
    // Where the file system cannot, the room is free when the file is closed.
    static_cast<void>(::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(freed),
                                  static_cast<off_t>(passed - freed)));
    freed = passed;
  });
}

void Spool::fail(int error) const {
  throw Error(ErrorCode::io, fmt::format("cannot write '{}': {}", shown_, std::generic_category().message(error)));
}

}  // namespace vicinal::io
