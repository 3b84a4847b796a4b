// See standard_streams.hpp.
#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace vicinal::cli {

void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. Input can only be written and output only be read: their use still fails.
    const int how = stream == STDIN_FILENO ? O_WRONLY : stream == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::open("/dev/null", how) != stream) _exit(1);
  }
}

void write_stderr(std::string_view text) noexcept {
  const int before = errno;
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  errno = before;
}

}  // namespace vicinal::cli
