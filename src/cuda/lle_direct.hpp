// M = A'A of a piece on the device, for the direct solver alone, which needs its entries.
#pragma once

#include "cuda/cudss.hpp"
#include "cuda/lle.hpp"
#include "cuda/plugin_lle.hpp"

namespace vicinal::cuda {

/// The blocks of some points, point i called rows[i] before; their columns must all be listed. O(n width).
DeviceBlocks renumbered(const Engine& engine, const DeviceBlocks& a, const std::int32_t* rows, std::int64_t n);

/// M's upper triangle without values, of the host's pattern: O(entries).
SymmetricMatrix pattern_of(const Engine& engine, std::int64_t n, const plugin::LleFactor& task);
/// Its values, M - shift I + grounding. O(rows width^2 log width).
void assemble(const Engine& engine, const DeviceBlocks& a, const DeviceIncidence& in, const plugin::LleFactor& task,
              const SymmetricMatrix& m);

}  // namespace vicinal::cuda
