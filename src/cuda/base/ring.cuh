// Rings of slots in shared memory.
#pragma once

#include <cstdint>

namespace vicinal::cuda {

/// The position in a ring of slots, each with a barrier, and the parity of how often it went round.
struct Cursor {
  int slot = 0;
  std::uint32_t round = 0;
  __device__ void advance(int slots) {
    if (++slot == slots) {
      slot = 0;
      round ^= 1;
    }
  }
  [[nodiscard]] __device__ int before(int slots) const { return slot == 0 ? slots - 1 : slot - 1; }
};

}  // namespace vicinal::cuda
