// Small parts of a dissection on the device: a block of threads a part, down to its leaves, as the host's workers do
// (solver/dissection.cpp). What decides does not depend on who comes first: cells and sides are told by counts and
// means of whole numbers, and of minimum vertex cuts the one nearest to the left is one and the same whichever paths
// fill the band. So the order is the host's.
#pragma once

#include "cuda/lle/lle.hpp"
#include "plugin/abi/lle.hpp"

namespace vicinal::cuda::lle {

/// Fills `order`, `left`, `right` and `done` of the parts. Parts that are too large for a block's room, or all of them
/// where the device has `room` bytes for none, are left as they are. Polls for cancellation.
void dissect_parts(const Engine& engine, const Host& host, const DeviceBlocks& a, const DeviceIncidence& in,
                   std::uint64_t room, plugin::LleParts& parts);

}  // namespace vicinal::cuda::lle
