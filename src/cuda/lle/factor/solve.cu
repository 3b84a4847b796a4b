// Solves with a factor on a device. See front.hpp. Down the levels to the root: the rows of each front are gathered,
// own ones from x, what children take from theirs; every tile of a block column solves the block on its diagonal for
// itself, in a few microseconds, and then takes its rows' share. Up again: a block of threads a front has a block
// column's sums over all rows below, a warp four columns, and solves. L is read once each way; right sides go by
// eights.
#include "cuda/base/warp.cuh"
#include "cuda/lle/factor/front.hpp"

namespace vicinal::cuda::lle {
namespace {

constexpr int kRight = 8;  // right sides at a time
constexpr int kDownThreads = 256;
constexpr int kUpThreads = 512;
constexpr int kLaunchesBetweenLooks = 16;
constexpr int kUpColumns = kFrontTile / (kUpThreads / 32);  // of a warp
constexpr int kSolveStep = kFrontTile + 1;                  // of a block's columns in shared memory
static_assert(kUpColumns * kRight == 32);

struct Right {
  double* x;     ///< [n, width]
  double* rows;  ///< [rows of all fronts, width]
  std::int64_t width;
};

__global__ void gather_kernel(FrontView view, Right right, std::int64_t n) {
  const std::int64_t at = own_number();
  if (at >= n * right.width) return;
  const std::int64_t i = at / right.width;
  const Front f = view.fronts[view.front_of[i]];
  right.rows[(f.vectors + i - f.begin) * right.width + at - i * right.width] = right.x[at];
}

/// What children take from rows of their parents': of their squares' tiles those on the diagonal.
__global__ void children_kernel(FrontView view, const FrontTile* tiles, Right right) {
  const FrontTile tile = tiles[blockIdx.x];
  if (tile.row != tile.col) return;
  const Front f = view.fronts[tile.front];
  const std::int64_t first = std::int64_t{tile.row} * kFrontTile;
  const std::int64_t count = tile_part(f.below - first) * right.width;
  const double* const from = right.rows + (f.vectors + f.own + first) * right.width;
  double* const to = right.rows + view.fronts[f.parent].vectors * right.width;
  for (std::int64_t at = threadIdx.x; at < count; at += blockDim.x) {
    const std::int64_t r = at / right.width;
    to[view.places[f.rows + first + r] * right.width + at - r * right.width] += from[at];
  }
}

/// The block on the diagonal to shared memory, without what stands above.
__device__ void load_block(const double* block, std::int64_t step, int width, double* to) {
  for (int at = static_cast<int>(threadIdx.x); at < kFrontTile * kFrontTile; at += static_cast<int>(blockDim.x)) {
    const int c = at / kFrontTile;
    const int r = at % kFrontTile;
    to[c * kSolveStep + r] = c < r && r < width ? block[c * step + r] : 0.0;
  }
}

__global__ void __launch_bounds__(kDownThreads) down_kernel(FrontView view, const FrontTile* tiles, Right right) {
  __shared__ double l[kFrontTile * kSolveStep];
  __shared__ double solved[kFrontTile][kRight];
  const FrontTile tile = tiles[blockIdx.x];
  const Front f = view.fronts[tile.front];
  const PanelTile at(f, tile);
  const double* const column = view.panels + f.panel + at.begin * f.height();
  const double* const from = right.rows + (f.vectors + at.begin) * right.width;
  double* const to = right.rows + (f.vectors + at.row) * right.width;
  load_block(column + at.begin, f.height(), at.width, l);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const int row = static_cast<int>(threadIdx.x) % kFrontTile;
  const int part = static_cast<int>(threadIdx.x) / kFrontTile * 2;  // two of the right sides
  for (std::int64_t side = 0; side < right.width; side += kRight) {
    __syncthreads();
    if (side + warp < right.width) {
      const double* const own = from + side + warp;
      double low = lane < at.width ? own[lane * right.width] : 0.0;
      double high = lane + 32 < at.width ? own[(lane + 32) * right.width] : 0.0;
      for (int c = 0; c < at.width; ++c) {
        const double value = __shfl_sync(kWholeWarp, c < 32 ? low : high, c & 31);
        low = __fma_rn(-l[c * kSolveStep + lane], value, low);
        high = __fma_rn(-l[c * kSolveStep + lane + 32], value, high);
      }
      solved[lane][warp] = low;
      solved[lane + 32][warp] = high;
      if (tile.row == 0) {
        double* const x = right.x + (f.begin + at.begin) * right.width + side + warp;
        if (lane < at.width) x[lane * right.width] = low;
        if (lane + 32 < at.width) x[(lane + 32) * right.width] = high;
      }
    } else {
      solved[lane][warp] = 0;
      solved[lane + 32][warp] = 0;
    }
    if (tile.row == 0) continue;
    __syncthreads();
    if (row >= at.count || side + part >= right.width) continue;
    double sums[2] = {};
    for (int c = 0; c < at.width; ++c) {
      const double value = column[c * f.height() + at.row + row];
      sums[0] = __fma_rn(value, solved[c][part], sums[0]);
      sums[1] = __fma_rn(value, solved[c][part + 1], sums[1]);
    }
    double* const own = to + row * right.width + side + part;
    own[0] -= sums[0];
    if (side + part + 1 < right.width) own[1] -= sums[1];
  }
}

/// Of 2 kHalf numbers of each lane: kHalf that are sums with another lane's, which gets the other ones.
template <int kHalf>
__device__ __forceinline__ void halve(double (&values)[32], int lane) {
  const bool upper = (lane & kHalf) != 0;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const double given = upper ? values[i] : values[i + kHalf];
    const double kept = upper ? values[i + kHalf] : values[i];
    values[i] = kept + __shfl_xor_sync(kWholeWarp, given, kHalf);
  }
}

/// Of 32 numbers of each lane: the lanes' sum of the one that has this lane's number.
__device__ __forceinline__ double sum_across(double (&values)[32], int lane) {
  halve<16>(values, lane);
  halve<8>(values, lane);
  halve<4>(values, lane);
  halve<2>(values, lane);
  halve<1>(values, lane);
  return values[0];
}

__global__ void __launch_bounds__(kUpThreads) up_kernel(FrontView view, std::int32_t first, int col, Right right) {
  __shared__ double l[kFrontTile * kSolveStep];
  __shared__ double sums[kFrontTile][kRight + 1];
  const Front f = view.fronts[first + static_cast<std::int32_t>(blockIdx.x)];
  const PanelTile at(f, {0, 0, col});
  const std::int64_t height = f.height();
  const double* const column = view.panels + f.panel + at.begin * height;
  load_block(column + at.begin, height, at.width, l);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for (std::int64_t side = 0; side < right.width; side += kRight) {
    const int count = static_cast<int>(min(static_cast<std::int64_t>(kRight), right.width - side));
    double sum[kUpColumns * kRight] = {};
    for (std::int64_t i = at.begin + at.width + lane; i < height; i += 32) {
      const std::int64_t point = i < f.own ? f.begin + i : view.rows[f.rows + i - f.own];
      const double* const own = right.x + point * right.width + side;
      double x[kRight];
#pragma unroll
      for (int q = 0; q < kRight; ++q) x[q] = q < count ? own[q] : 0.0;
#pragma unroll
      for (int c = 0; c < kUpColumns; ++c) {
        const int j = warp * kUpColumns + c;
        const double value = j < at.width ? column[j * height + i] : 0.0;
#pragma unroll
        for (int q = 0; q < kRight; ++q) sum[c * kRight + q] = __fma_rn(value, x[q], sum[c * kRight + q]);
      }
    }
    sums[warp * kUpColumns + lane / kRight][lane % kRight] = sum_across(sum, lane);
    __syncthreads();
    if (warp < count) {
      double* const x = right.x + (f.begin + at.begin) * right.width + side + warp;
      const double* const pivots = view.pivots + f.begin + at.begin;
      double low = lane < at.width ? x[lane * right.width] / pivots[lane] - sums[lane][warp] : 0.0;
      double high =
          lane + 32 < at.width ? x[(lane + 32) * right.width] / pivots[lane + 32] - sums[lane + 32][warp] : 0.0;
      for (int c = at.width - 1; c > 0; --c) {
        const double value = __shfl_sync(kWholeWarp, c < 32 ? low : high, c & 31);
        low = __fma_rn(-l[lane * kSolveStep + c], value, low);
        high = __fma_rn(-l[(lane + 32) * kSolveStep + c], value, high);
      }
      if (lane < at.width) x[lane * right.width] = low;
      if (lane + 32 < at.width) x[(lane + 32) * right.width] = high;
    }
    __syncthreads();
  }
}

}  // namespace

void FrontFactor::solve(const Host& host, DeviceVectors& x) const {
  const FrontView fronts = view();
  const Buffer<double> rows(engine_, plan_.vector_rows * x.width);
  const Right right{x.data(), rows.data(), x.width};
  rows.zero();
  int launches = 0;
  const auto look = [&] {
    if (++launches % kLaunchesBetweenLooks != 0) return;
    engine_.synchronize();
    host.check_cancelled();
  };
  gather_kernel<<<blocks_for(x.values.size(), 256), 256, 0, engine_.stream>>>(fronts, right, points_);
  check_launch("rows of fronts");
  for (const FrontLevel& level : plan_.levels) {
    for (const TileRange& range : level.children) {
      children_kernel<<<static_cast<unsigned>(range.end - range.begin), 128, 0, engine_.stream>>>(
          fronts, fronts.tiles + range.begin, right);
      check_launch("what children take");
      look();
    }
    for (const TileRange& range : level.panels) {
      down_kernel<<<static_cast<unsigned>(range.end - range.begin), kDownThreads, 0, engine_.stream>>>(
          fronts, fronts.tiles + range.begin, right);
      check_launch("a solve down");
      look();
    }
  }
  for (auto level = plan_.levels.rbegin(); level != plan_.levels.rend(); ++level) {
    for (std::size_t col = level->active.size(); col-- > 0;) {
      up_kernel<<<static_cast<unsigned>(level->active[col]), kUpThreads, 0, engine_.stream>>>(
          fronts, level->first, static_cast<int>(col), right);
      check_launch("a solve up");
      look();
    }
  }
}

}  // namespace vicinal::cuda::lle
