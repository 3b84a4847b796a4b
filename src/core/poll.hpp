// A poll of the cancel token for loops and comparisons on one thread, cheap enough for every step.
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::core {

/// Looks at the token every 65,536 steps, which take a few milliseconds. std::sort copies its comparison: let that
/// capture the `Poll` by reference.
class Poll {
 public:
  explicit Poll(const Context& ctx) : ctx_(ctx) {}

  /// Throws `cancelled`.
  void step() {
    constexpr std::uint64_t kSteps = std::uint64_t{1} << 16;
    if (++steps_ % kSteps == 0) ctx_.check_cancelled();
  }

 private:
  const Context& ctx_;
  std::uint64_t steps_ = 0;
};

}  // namespace vicinal::core
