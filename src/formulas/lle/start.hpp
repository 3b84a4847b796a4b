// The numbers that inverse iteration begins with, the same on host and device.
#pragma once

#include <cstdint>

#include "core/philox.hpp"

namespace vicinal::solver {

/// Of point i in column c: in [-0.5, 0.5).
constexpr double first_entry(std::int64_t i, std::int64_t c) {
  constexpr std::uint64_t kStartStream = 0x6c6c0000;
  return core::philox_uniform(0, kStartStream + static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(i)) - 0.5;
}

}  // namespace vicinal::solver
