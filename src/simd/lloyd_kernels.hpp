// The inner loops of k-means (cpu/kmeans/lloyd.hpp), compiled once for each instruction set. Those of the screen may
// round differently on each, inside the bound of formulas/kmeans/float_bound.hpp; sums are exact, and so the same
// everywhere.
#pragma once

#include <cstdint>

#include "formulas/kmeans/float_bound.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {

inline constexpr int kMaxTilePoints = 32;

/// A tile of points against all centers.
struct LloydTile {
  float* points;  // [d + 1][tile_points], centered and scaled; row d is written by `bound`
  std::int64_t d;
  const float* panels;       // panels of `centre_tile` centers, the last of `last_height`: [2 + d][height], which are
                             // start, the d columns, and the length that row d of the points multiplies
  std::int64_t full_panels;  // of `centre_tile` centers
  std::int32_t last_height;  // a third or two thirds of centre_tile, or 0 where there is no such panel
  const float* lengths;      // [centers] e
  const float* allowances;   // [centers] f
  core::LloydBound bound;
  float norms[kMaxTilePoints];         // |x~|^2
  float best[kMaxTilePoints];          // the largest upper bound of a score ...
  float second[kMaxTilePoints];        // ... and the next one
  std::int32_t index[kMaxTilePoints];  // of the best
  float threshold[kMaxTilePoints];     // what every center's upper bound reaches that may be nearest
  float upper[kMaxTilePoints];         // of the distance to the best
  float lower[kMaxTilePoints];         // of the distance to all others
  float* scores;                       // [centers padded to panels][tile_points]: every upper bound, or null
  const void* const* lines;            // addresses to fetch into the cache meanwhile
  std::int64_t line_count;
};

/// Takes as many rows of d float32 as a tile has lanes into them: x * scale - shift, rounded once.
using StageFn = void (*)(const float* const* rows, std::int64_t d, float scale, const float* shift, float* points);
/// Fills norms, best, second, index (and scores), threshold, upper and lower. A point is decided when second <
/// threshold.
using LloydFn = void (*)(LloydTile& tile);
/// Adds factor * row to the slices of a cluster: [slices + 1][stride], the first left alone; magic the same.
using AddRowFn = void (*)(const void* row, double factor, std::int64_t d, std::int64_t slices, std::int64_t stride,
                          const double* magic, double* sums);

/// How far the centers have gone: those of each cluster, the largest of all, and of all but `mover`'s.
struct Shifts {
  const float* of;  // [clusters]
  float most;
  float next;
  std::int32_t mover;
};
/// Moves the bounds of `count` rows by the shifts of their centers and of the others, and lists the rows that they do
/// not decide, ascending. active: [count + tile_points]. Returns how many there are.
using MoveBoundsFn = std::int64_t (*)(const std::int32_t* labels, std::int64_t count, const Shifts& shifts,
                                      float* upper, float* lower, std::int32_t* active);

struct LloydKernels {
  std::int32_t tile_points;
  std::int32_t centre_tile;
  StageFn stage;
  LloydFn screen;
  AddRowFn add_float32;
  AddRowFn add_float64;
  MoveBoundsFn move_bounds;
};

/// The table for an instruction set in use (never `automatic`).
const LloydKernels& lloyd_kernels(Isa isa);

}  // namespace vicinal::cpu
