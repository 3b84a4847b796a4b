// How much memory work takes, told before it starts (contract clause 7).
#pragma once

#include <cstdint>

namespace vicinal::kernels {

/// Bytes beyond what the caller holds: of host memory, and of a device's, which the CPU backend takes none of. A
/// backend that finds no room on its device throws `over_memory` instead.
struct MemoryNeed {
  std::uint64_t host = 0;
  std::uint64_t device = 0;
};

}  // namespace vicinal::kernels
