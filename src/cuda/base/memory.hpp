// What a call may take of device memory (contract clause 7).
#pragma once

#include <cstdint>

#include "cuda/base/session.hpp"

namespace vicinal::cuda {

/// Throws `over_memory` with both figures.
[[noreturn]] void refuse_memory(std::uint64_t needed, std::uint64_t left);
/// Bytes of the limit that what stays on the device leaves to a call.
std::uint64_t left_of_limit(const Session& session);
/// `bytes`, where so many are left. Throws `over_memory` with both figures.
std::uint64_t require_left(const Session& session, std::uint64_t bytes);

}  // namespace vicinal::cuda
