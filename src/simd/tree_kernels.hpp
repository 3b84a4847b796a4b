// The inner loops of a search in a kd-tree (cpu/nearest/tree/tree.hpp), compiled once for each instruction set. Every
// table gives the same bits: keys of points are those of contract clause 1, keys of boxes the same function of the
// gaps.
#pragma once

#include <cstdint>

#include "simd/kernels.hpp"

namespace vicinal::cpu {

/// Children of a node, and points of a panel.
inline constexpr std::int64_t kTreeWidth = 8;

/// Keys of the eight boxes of a node ([d][lo, hi][8]) for the box from low to high, which may be a single point:
/// keys[8].
/// Returns a bit for each box whose key is not above `limit`.
using BoxKeysFn = std::uint32_t (*)(const double* low, const double* high, const void* boxes, std::int64_t d,
                                    double limit, double* keys);

/// The same for one point, and in `inside` a bit for each box all of whose points have keys that are not above `limit`,
/// by the upper bound of cpu/nearest/tree/tree.hpp.
using BoxRangesFn = std::uint32_t (*)(const double* x, const void* boxes, std::int64_t d, double limit, double* keys,
                                      std::uint32_t* inside);

/// Keys of `count` points in panels of eight ([panels][d][8]). Those not above `limit` are written, in order: keys[]
/// and their positions at[], of which there are `count` at most. Returns how many.
using PointKeysFn = std::int64_t (*)(const double* x, const void* points, std::int64_t count, std::int64_t d,
                                     double limit, double* keys, std::int32_t* at);

/// Puts (key, id) at its place among `size` entries that ascend by (key, id); the last one is lost. keys[-1] is minus
/// infinity. Entries after these, up to the next multiple of eight, may change.
using InsertFn = void (*)(double key, std::int64_t id, double* keys, std::int64_t* ids, std::int64_t size);

/// For the operations squares, absolutes and maximum; null for the others.
struct TreeKernels {
  BoxKeysFn boxes[kKeyOps][kElements];
  BoxRangesFn ranges[kKeyOps][kElements];
  PointKeysFn points[kKeyOps][kElements];
  InsertFn insert;
};

/// The table for an instruction set in use (never `automatic`).
const TreeKernels& tree_kernels(Isa isa);

}  // namespace vicinal::cpu
