// Whether pruned rows are worth it for an index, and the screen that compares them: int8 images (projection.hpp) by
// principal axes of a sample of the rows. The sample also says how many rows such a screen would leave to be ranked,
// for several numbers of axes; from that and the bytes that a search reads follows the choice.
#pragma once

#include <cstdint>

#include "backend/nearest.hpp"
#include "cpu/nearest/screen.hpp"

namespace vicinal::cpu {

/// kernels::NearestBackend::prunes and pruning_bytes.
bool prunes(const Context& ctx, const kernels::NearestTask& task);
std::uint64_t pruning_bytes(const kernels::NearestTask& task);

/// The screen that was noted, which must be one that pays.
const Screen& pruned_screen(const kernels::Pruning& pruning);

}  // namespace vicinal::cpu
