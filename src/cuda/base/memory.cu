// See memory.hpp.
#include <algorithm>
#include <string>

#include "cuda/base/memory.hpp"

namespace vicinal::cuda {

void refuse_memory(std::uint64_t needed, std::uint64_t left) {
  throw Failure{ErrorCode::over_memory, "the call needs " + std::to_string(needed) + " bytes of device memory, but " +
                                            std::to_string(left) + " are left within the limit"};
}

std::uint64_t left_of_limit(const Session& session) {
  const std::uint64_t limit = session.engine.memory_limit;
  return limit - std::min(limit, session.resident_bytes.load());
}

std::uint64_t require_left(const Session& session, std::uint64_t bytes) {
  const std::uint64_t left = left_of_limit(session);
  if (bytes > left) refuse_memory(bytes, left);
  return bytes;
}

}  // namespace vicinal::cuda
