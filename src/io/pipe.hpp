// Writing into a pipe whose reader may be slow, have stopped reading, or not be there yet: a cancelled job stops
// waiting for it.
#pragma once

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>

#include <cstddef>

#include "vicinal/context.hpp"
#include "vicinal/error.hpp"

namespace vicinal::io {

inline constexpr int kPipeWaitMs = 20;               ///< between two looks at the cancel token
inline constexpr std::size_t kPipeBytes = PIPE_BUF;  ///< what a pipe that has room takes without waiting

inline bool is_pipe(int descriptor) noexcept {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
}

/// Returns once the pipe has room, or has a fault, which `write` will say. Throws `cancelled`.
inline void wait_for_room(int descriptor, const CancelToken& token) {
  pollfd asked = {descriptor, POLLOUT, 0};
  while (::poll(&asked, 1, kPipeWaitMs) == 0 || asked.revents == 0) {
    if (token.cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
  }
}

}  // namespace vicinal::io
