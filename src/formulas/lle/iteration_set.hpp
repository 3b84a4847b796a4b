// The two sets of vectors of inverse iteration, on the host and on a device.
#pragma once

#include <cstdint>

namespace vicinal::solver {

/// `best` are the vectors so far, `next` what they are to be joined by.
enum class Set : std::uint8_t { best, next };

}  // namespace vicinal::solver
