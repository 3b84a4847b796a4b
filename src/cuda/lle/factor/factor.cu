// The numeric factor on a device. See front.hpp. All is tiles of 64 x 64: products go through shared memory to the
// matrix units, a warp a quarter of a tile; the block on a panel's diagonal is eliminated column by column in shared
// memory, and rows below it are solved for in registers, a thread a row. An H200 multiplies and adds 3e13 times a
// second; a million points of a surface take 3e11, and 20 GB to be moved.
#include <algorithm>

#include "cuda/base/mma_double.cuh"
#include "cuda/lle/factor/front.hpp"
#include "formulas/lle/pivot.hpp"

namespace vicinal::cuda::lle {
namespace {

constexpr int kProductThreads = 128;
constexpr int kSlice = 16;                   // columns of the factors in shared memory
constexpr int kFactorStep = kFrontTile + 4;  // of these columns there: the lanes' reads meet in no bank
constexpr int kDiagonalThreads = 256;
constexpr std::size_t kBetweenLooks = 8;           // block columns between two looks at the cancel token
constexpr std::size_t kChildrenBetweenLooks = 64;  // launches for them likewise

/// c -= a diag(d) b', of which a tile: a [m, k], b [n, k], c [m, n], all by columns.
struct Product {
  const double* a;
  const double* b;
  const double* d;
  double* c;
  std::int64_t step;  ///< of a and b
  std::int64_t c_step;
  std::int64_t k;
  int m;
  int n;
};

__device__ __forceinline__ void subtract_product(const Product& p) {
  constexpr int kLoads = kSlice * kFrontTile / kProductThreads;
  __shared__ double a_slice[kSlice * kFactorStep];
  __shared__ double b_slice[kSlice * kFactorStep];
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread % kFrontTile;
  const int first = thread / kFrontTile;  // column of a slice; others in steps of two
  double a_next[kLoads];
  double b_next[kLoads];
  const auto fetch = [&](std::int64_t k) {
#pragma unroll
    for (int t = 0; t < kLoads; ++t) {
      const std::int64_t at = k + first + t * (kProductThreads / kFrontTile);
      a_next[t] = at < p.k && row < p.m ? p.a[at * p.step + row] : 0.0;
      b_next[t] = at < p.k && row < p.n ? p.b[at * p.step + row] * p.d[at] : 0.0;
    }
  };
  const int lane = thread & 31;
  const int group = lane / 4;
  const int part = lane % 4;
  const int top = thread / 64 * 32;  // of the warp's quarter
  const int left = thread / 32 % 2 * 32;
  double sums[2][4][4] = {};
  fetch(0);
  for (std::int64_t k = 0; k < p.k; k += kSlice) {
    __syncthreads();
#pragma unroll
    for (int t = 0; t < kLoads; ++t) {
      const int at = (first + t * (kProductThreads / kFrontTile)) * kFactorStep + row;
      a_slice[at] = a_next[t];
      b_slice[at] = b_next[t];
    }
    __syncthreads();
    if (k + kSlice < p.k) fetch(k + kSlice);
#pragma unroll
    for (int s = 0; s < kSlice; s += 4) {
      double a[2][2];
      double b[4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        a[i][0] = a_slice[(s + part) * kFactorStep + top + 16 * i + group];
        a[i][1] = a_slice[(s + part) * kFactorStep + top + 16 * i + 8 + group];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) b[j] = b_slice[(s + part) * kFactorStep + left + 8 * j + group];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply_add(sums[i][j], a[i], b[j]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = top + 16 * i + 8 * (e / 2) + group;
        const int c = left + 8 * j + 2 * part + e % 2;
        if (r < p.m && c < p.n) p.c[c * p.c_step + r] -= sums[i][j][e];
      }
    }
  }
}

/// What the columns before take from a block column.
__global__ void __launch_bounds__(kProductThreads, 4) panel_kernel(FrontView view, const FrontTile* tiles) {
  const FrontTile tile = tiles[blockIdx.x];
  const Front f = view.fronts[tile.front];
  const PanelTile at(f, tile);
  const std::int64_t begin = at.begin;
  double* const panel = view.panels + f.panel;
  subtract_product({.a = panel + at.row,
                    .b = panel + begin,
                    .d = view.pivots + f.begin,
                    .c = panel + begin * f.height() + at.row,
                    .step = f.height(),
                    .c_step = f.height(),
                    .k = begin,
                    .m = at.count,
                    .n = at.width});
}

__global__ void __launch_bounds__(kProductThreads, 4)
    squares_kernel(FrontView view, const FrontTile* tiles, double* squares) {
  const FrontTile tile = tiles[blockIdx.x];
  const Front f = view.fronts[tile.front];
  const std::int64_t row = std::int64_t{tile.row} * kFrontTile;
  const std::int64_t col = std::int64_t{tile.col} * kFrontTile;
  const double* const below = view.panels + f.panel + f.own;
  subtract_product({.a = below + row,
                    .b = below + col,
                    .d = view.pivots + f.begin,
                    .c = squares + f.square + col * f.below + row,
                    .step = f.height(),
                    .c_step = f.below,
                    .k = f.own,
                    .m = tile_part(f.below - row),
                    .n = tile_part(f.below - col)});
}

/// L and D of the block on a panel's diagonal; a block of threads a front.
__global__ void __launch_bounds__(kDiagonalThreads) diagonal_kernel(FrontView view, std::int32_t first, int col) {
  __shared__ double a[kFrontTile * (kFrontTile + 1)];
  __shared__ double scaled[kFrontTile];
  const Front f = view.fronts[first + static_cast<std::int32_t>(blockIdx.x)];
  const std::int64_t begin = std::int64_t{col} * kFrontTile;
  const int width = tile_part(f.own - begin);
  double* const block = view.panels + f.panel + begin * f.height() + begin;
  const int row = static_cast<int>(threadIdx.x) % kFrontTile;
  const int part = static_cast<int>(threadIdx.x) / kFrontTile;
  constexpr int kParts = kDiagonalThreads / kFrontTile;
  for (int c = part; c <= row && row < width; c += kParts) a[c * (kFrontTile + 1) + row] = block[c * f.height() + row];
  for (int j = 0; j < width; ++j) {
    __syncthreads();
    const double pivot = solver::kept_pivot(a[j * (kFrontTile + 1) + j]);
    if (part == 0 && row >= j && row < width) {
      const double value = row == j ? 1.0 : a[j * (kFrontTile + 1) + row] / pivot;
      scaled[row] = value;
      block[j * f.height() + row] = value;
      if (row == j) view.pivots[f.begin + begin + j] = pivot;
    }
    __syncthreads();
    if (row >= width || row <= j) continue;
    const double value = a[j * (kFrontTile + 1) + row];
    for (int c = j + 1 + part; c <= row; c += kParts) {
      double& to = a[c * (kFrontTile + 1) + row];
      to = __fma_rn(-scaled[c], value, to);
    }
  }
}

/// Rows below such a block: a thread a row, which it has in registers.
__global__ void __launch_bounds__(kFrontTile) below_kernel(FrontView view, const FrontTile* tiles) {
  __shared__ double l[kFrontTile * kFrontTile];
  const FrontTile tile = tiles[blockIdx.x];
  if (tile.row == 0) return;
  const Front f = view.fronts[tile.front];
  const PanelTile at(f, tile);
  const std::int64_t begin = at.begin;
  const int width = at.width;
  const double* const block = view.panels + f.panel + begin * f.height() + begin;
  const int own = static_cast<int>(threadIdx.x);
  for (int c = 0; c < kFrontTile; ++c) {
    l[c * kFrontTile + own] = c < width && own > c && own < width ? block[c * f.height() + own] : 0.0;
  }
  __syncthreads();
  if (own >= at.count) return;
  double* const to = view.panels + f.panel + begin * f.height() + at.row + own;
  double x[kFrontTile];
#pragma unroll
  for (int c = 0; c < kFrontTile; ++c) x[c] = c < width ? to[c * f.height()] : 0.0;
#pragma unroll
  for (int c = 0; c < kFrontTile; ++c) {
    if (c < width) {
#pragma unroll
      for (int j = c + 1; j < kFrontTile; ++j) x[j] = __fma_rn(-x[c], l[c * kFrontTile + j], x[j]);
    }
  }
  const double* const pivots = view.pivots + f.begin + begin;
#pragma unroll
  for (int c = 0; c < kFrontTile; ++c) {
    if (c < width) to[c * f.height()] = x[c] / pivots[c];
  }
}

__global__ void negative_kernel(const double* pivots, std::int64_t n, unsigned long long* count) {
  const std::int64_t i = own_number();
  const int found = sum_of_warp(i < n && pivots[i] < 0 ? 1 : 0);
  if (found > 0 && threadIdx.x % 32 == 0) atomicAdd(count, static_cast<unsigned long long>(found));
}

void require_room(const Engine& engine, std::uint64_t bytes) {
  const std::uint64_t left = memory_left(engine);
  if (bytes <= left) return;
  throw Failure{ErrorCode::over_memory, "lle: the factor needs " + std::to_string(bytes) +
                                            " bytes of device memory, but " + std::to_string(left) +
                                            " are left within the limit; solver cpu takes the host's"};
}

}  // namespace

void eliminate(const Engine& engine, const FrontView& view, const FrontLevel& level, std::size_t col) {
  const TileRange range = level.panels[col];
  const FrontTile* const tiles = view.tiles + range.begin;
  const auto count = static_cast<unsigned>(range.end - range.begin);
  if (col > 0) {
    panel_kernel<<<count, kProductThreads, 0, engine.stream>>>(view, tiles);
    check_launch("a block column");
  }
  diagonal_kernel<<<static_cast<unsigned>(level.active[col]), kDiagonalThreads, 0, engine.stream>>>(
      view, level.first, static_cast<int>(col));
  check_launch("a block on the diagonal");
  below_kernel<<<count, kFrontTile, 0, engine.stream>>>(view, tiles);
  check_launch("rows below a block");
}

void subtract_squares(const Engine& engine, const FrontView& view, TileRange range, double* squares) {
  squares_kernel<<<static_cast<unsigned>(range.end - range.begin), kProductThreads, 0, engine.stream>>>(
      view, view.tiles + range.begin, squares);
  check_launch("squares of fronts");
}

FrontFactor::FrontFactor(const Engine& engine, const plugin::LleTree& tree, std::int64_t points, std::int64_t width,
                         std::uint64_t beside)
    : engine_(engine), plan_(plan_fronts(tree)), points_(points) {
  bytes_ = plan_.held_bytes(points) + std::max(plan_.factor_bytes(), plan_.solve_bytes(width) + beside);
  require_room(engine, bytes_);
  fronts_ = uploaded(engine, plan_.fronts.data(), static_cast<std::int64_t>(plan_.fronts.size()));
  tiles_ = uploaded(engine, plan_.tiles.data(), static_cast<std::int64_t>(plan_.tiles.size()));
  rows_ = uploaded(engine, tree.rows, plan_.row_count);
  front_of_ = Buffer<std::int32_t>(engine, points);
  places_ = Buffer<std::int32_t>(engine, plan_.row_count);
  panels_ = Buffer<double>(engine, plan_.panel_size);
  pivots_ = Buffer<double>(engine, points);
  find_places(engine, view(), fronts_.size(), front_of_.data(), places_.data());
  engine.synchronize();  // what was uploaded is the host's
}

FrontView FrontFactor::view() const {
  return {fronts_.data(), front_of_.data(), rows_.data(),  places_.data(),
          tiles_.data(),  panels_.data(),   pivots_.data()};
}

void FrontFactor::factor(const Host& host, const DeviceBlocks& a, const DeviceIncidence& in, double shift,
                         double ground) {
  const Buffer<double> arenas[2] = {{engine_, plan_.arena_size[0]}, {engine_, plan_.arena_size[1]}};
  const FrontView fronts = view();
  const auto look = [&] {
    engine_.synchronize();
    host.check_cancelled();
  };
  panels_.zero();
  add_matrix(engine_, fronts, a, in, shift, ground);
  for (std::size_t l = 0; l < plan_.levels.size(); ++l) {
    const FrontLevel& level = plan_.levels[l];
    double* const squares = arenas[l % 2].data();
    if (level.squares_size > 0) {
      check(cudaMemsetAsync(squares, 0, static_cast<std::size_t>(level.squares_size) * sizeof(double), engine_.stream),
            "clear squares");
    }
    for (std::size_t turn = 0; turn < level.children.size(); ++turn) {
      add_children(engine_, fronts, level.children[turn], arenas[1 - l % 2].data(), squares);
      if (turn % kChildrenBetweenLooks == kChildrenBetweenLooks - 1) look();
    }
    for (std::size_t col = 0; col < level.panels.size(); ++col) {
      eliminate(engine_, fronts, level, col);
      if (col % kBetweenLooks == kBetweenLooks - 1) look();
    }
    for (const TileRange& range : level.squares) {
      subtract_squares(engine_, fronts, range, squares);
      look();
    }
    look();
    host.progress("factor", static_cast<double>(l + 1) / static_cast<double>(plan_.levels.size()));
  }
}

std::int64_t FrontFactor::negative() const {
  const Buffer<unsigned long long> count(engine_, 1);
  count.zero();
  negative_kernel<<<blocks_for(points_, 256), 256, 0, engine_.stream>>>(pivots_.data(), points_, count.data());
  check_launch("negative pivots");
  unsigned long long found = 0;
  to_host(engine_, &found, count.data(), 1);
  engine_.synchronize();
  return static_cast<std::int64_t>(found);
}

}  // namespace vicinal::cuda::lle
