// What goes into a front: M's own columns, added up from A's blocks, and the squares of its children. See front.hpp.
// A warp has a column of M and goes through the blocks that hold its point, one after the other, a lane a column of the
// block; a block of threads has a tile of one child's square. No two threads of a launch add to the same number.
#include "cuda/lle/factor/front.hpp"

namespace vicinal::cuda::lle {
namespace {

/// The first of sorted `rows` that is not below `row`.
__device__ std::int64_t place_among(const std::int32_t* rows, std::int64_t count, std::int32_t row) {
  std::int64_t low = 0;
  std::int64_t high = count;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (rows[middle] < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Where a row of M stands in a front that has it.
__device__ std::int64_t place_in(const FrontView& view, const Front& f, std::int32_t row) {
  return row < f.begin + f.own ? row - f.begin : f.own + place_among(view.rows + f.rows, f.below, row);
}

/// A block of threads a front.
__global__ void places_kernel(FrontView view, std::int32_t* front_of, std::int32_t* places) {
  const Front f = view.fronts[blockIdx.x];
  for (std::int64_t j = threadIdx.x; j < f.own; j += blockDim.x) front_of[f.begin + j] = static_cast<int>(blockIdx.x);
  if (f.parent < 0) return;
  const Front parent = view.fronts[f.parent];
  for (std::int64_t r = threadIdx.x; r < f.below; r += blockDim.x) {
    places[f.rows + r] = static_cast<std::int32_t>(place_in(view, parent, view.rows[f.rows + r]));
  }
}

struct Rows {
  const std::int32_t* cols;
  const std::int64_t* first;
  const double* values;
  std::int64_t width;
};

/// A warp a column, from the diagonal on.
__global__ void matrix_kernel(FrontView view, Rows a, const std::int64_t* in_first, const std::uint32_t* places,
                              std::int64_t n, double shift, double ground) {
  const std::int64_t i = (own_number()) / 32;
  if (i >= n) return;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const Front f = view.fronts[view.front_of[i]];
  double* const column = view.panels + f.panel + (i - f.begin) * f.height();
  for (std::int64_t e = in_first[i]; e < in_first[i + 1]; ++e) {
    const std::int64_t block = places[e] / a.width;
    const std::int64_t own = places[e] - block * a.width;
    __syncwarp();
    for (std::int64_t j = lane; j < a.width; j += 32) {
      const std::int32_t col = a.cols[block * a.width + j];
      if (col < i) continue;
      double sum = 0;
      for (std::int64_t r = a.first[block]; r < a.first[block + 1]; ++r) {
        sum = __fma_rn(a.values[r * a.width + own], a.values[r * a.width + j], sum);
      }
      column[place_in(view, f, col)] += sum;
    }
  }
  __syncwarp();
  if (lane == 0) column[i - f.begin] += (i + 1 == n ? ground : 0.0) - shift;
}

__global__ void __launch_bounds__(kThreads)
    children_kernel(FrontView view, const FrontTile* tiles, const double* from, double* squares) {
  const FrontTile tile = tiles[blockIdx.x];
  const Front f = view.fronts[tile.front];
  const Front parent = view.fronts[f.parent];
  const std::int64_t i = std::int64_t{tile.row} * kFrontTile + threadIdx.x % kFrontTile;
  if (i >= f.below) return;
  const std::int32_t* const at = view.places + f.rows;
  const std::int64_t row = at[i];
  const std::int64_t begin = std::int64_t{tile.col} * kFrontTile;
  const std::int64_t end = min(begin + kFrontTile, i + 1);
  for (std::int64_t j = begin + threadIdx.x / kFrontTile; j < end; j += kThreads / kFrontTile) {
    // Rows ascend in both, so that what is below the diagonal stays there.
    const std::int64_t col = at[j];
    double* const to = col < parent.own
                           ? view.panels + parent.panel + col * parent.height() + row
                           : squares + parent.square + (col - parent.own) * parent.below + row - parent.own;
    *to += from[f.square + j * f.below + i];
  }
}

}  // namespace

void find_places(const Engine& engine, const FrontView& view, std::int64_t fronts, std::int32_t* front_of,
                 std::int32_t* places) {
  places_kernel<<<static_cast<unsigned>(fronts), 128, 0, engine.stream>>>(view, front_of, places);
  check_launch("places of rows");
}

void add_matrix(const Engine& engine, const FrontView& view, const DeviceBlocks& a, const DeviceIncidence& in,
                double shift, double ground) {
  const Rows rows{a.cols.data(), a.first.data(), a.values.data(), a.width};
  matrix_kernel<<<blocks_for(a.points * 32, kThreads), kThreads, 0, engine.stream>>>(
      view, rows, in.first.data(), in.places.data(), a.points, shift, ground);
  check_launch("columns of M");
}

void add_children(const Engine& engine, const FrontView& view, TileRange range, const double* from, double* squares) {
  children_kernel<<<static_cast<unsigned>(range.end - range.begin), kThreads, 0, engine.stream>>>(
      view, view.tiles + range.begin, from, squares);
  check_launch("squares of children");
}

}  // namespace vicinal::cuda::lle
