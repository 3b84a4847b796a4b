// Widening of rows, and keys of pairs from them (contract clause 1). See pairs.hpp.
#include <algorithm>

#include "core/distance.hpp"
#include "cuda/base/metric_ops.cuh"
#include "cuda/nearest/papers/pairs.hpp"
#include "cuda/nearest/wide_rows.hpp"

namespace vicinal::cuda::papers {
namespace {

constexpr int kTile = 16;  // pairs on a side of the LLE paper's tile
constexpr int kSlab = 32;  // columns of it at a time

__global__ void transpose_kernel(const double* rows, std::int64_t count, std::int64_t d, double* columns) {
  __shared__ double tile[32][33];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * 32;
  for (std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * 32; column < d;
       column += static_cast<std::int64_t>(gridDim.y) * 32) {
    for (int i = static_cast<int>(threadIdx.y); i < 32; i += 8) {
      const bool inside = row + i < count && column + threadIdx.x < d;
      tile[i][threadIdx.x] = inside ? rows[(row + i) * d + column + threadIdx.x] : 0;
    }
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.y); j < 32; j += 8) {
      if (column + j < d && row + threadIdx.x < count)
        columns[(column + j) * count + row + threadIdx.x] = tile[threadIdx.x][j];
    }
    __syncthreads();
  }
}

// Writes one key, or what stands for none.
template <class Op>
__device__ void put_key(const Pairs& pairs, const double* a, std::int64_t q, std::int64_t row, double* to) {
  if (!pairs.eligible(q, row)) {
    *to = INFINITY;
    return;
  }
  const double key = pairs.zero(q, row) ? 1.0 : Op::key(join_lanes<Op>(a), pairs.d);
  if (!(fabs(key) < INFINITY)) pairs.note_overflow(q, row);
  *to = key;
}

template <class Op, bool kAlongRows>
__global__ void columns_kernel(Pairs pairs, std::int64_t begin, std::int64_t rows, KeyMatrix to) {
  const std::int64_t inner = own_number();
  if (inner >= (kAlongRows ? rows : pairs.queries.count)) return;
  const std::int64_t outer_end = kAlongRows ? pairs.queries.count : rows;
  for (std::int64_t outer = blockIdx.y; outer < outer_end; outer += gridDim.y) {
    const std::int64_t q = kAlongRows ? outer : inner;
    const std::int64_t r = kAlongRows ? inner : outer;
    const double* x = pairs.queries.columns + q;
    const double* y = pairs.table.columns + begin + r;
    double a[core::kLanes] = {};
    std::int64_t j = 0;
    for (; j + core::kLanes <= pairs.d; j += core::kLanes) {
#pragma unroll
      for (int lane = 0; lane < core::kLanes; ++lane) {
        Op::add(a[lane], x[(j + lane) * pairs.queries.count], y[(j + lane) * pairs.table.count], pairs.p);
      }
    }
#pragma unroll
    for (int lane = 0; lane < core::kLanes; ++lane) {
      if (j + lane < pairs.d) {
        Op::add(a[lane], x[(j + lane) * pairs.queries.count], y[(j + lane) * pairs.table.count], pairs.p);
      }
    }
    put_key<Op>(pairs, a, q, begin + r, &to.at(q, r));
  }
}

template <class Op>
__global__ void tile_kernel(Pairs pairs, std::int64_t begin, std::int64_t rows, KeyMatrix to) {
  __shared__ double x[kTile][kSlab + 1];
  __shared__ double y[kTile][kSlab + 1];
  const int column = static_cast<int>(threadIdx.x);
  const int line = static_cast<int>(threadIdx.y);
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * kTile;
  for (std::int64_t first_query = static_cast<std::int64_t>(blockIdx.y) * kTile; first_query < pairs.queries.count;
       first_query += static_cast<std::int64_t>(gridDim.y) * kTile) {
    double a[core::kLanes] = {};
    for (std::int64_t slab = 0; slab < pairs.d; slab += kSlab) {
      __syncthreads();
      for (int j = column; j < kSlab; j += kTile) {
        const bool inside = slab + j < pairs.d;
        const std::int64_t q = first_query + line;
        const std::int64_t r = first_row + line;
        x[line][j] = inside && q < pairs.queries.count ? pairs.queries.rows[q * pairs.d + slab + j] : 0;
        y[line][j] = inside && r < rows ? pairs.table.rows[(begin + r) * pairs.d + slab + j] : 0;
      }
      __syncthreads();
      const auto columns = static_cast<int>(pairs.d - slab < kSlab ? pairs.d - slab : kSlab);
      for (int j = 0; j < columns; j += core::kLanes) {
#pragma unroll
        for (int lane = 0; lane < core::kLanes; ++lane) {
          if (j + lane < columns) Op::add(a[lane], x[line][j + lane], y[column][j + lane], pairs.p);
        }
      }
    }
    const std::int64_t q = first_query + line;
    const std::int64_t r = first_row + column;
    if (q < pairs.queries.count && r < rows) put_key<Op>(pairs, a, q, begin + r, &to.at(q, r));
  }
}

template <class Op>
__global__ void chosen_kernel(Pairs pairs, const std::int64_t* chosen, const unsigned long long* counts,
                              std::int64_t fixed, std::int64_t room, double* keys) {
  for (std::int64_t q = blockIdx.y; q < pairs.queries.count; q += gridDim.y) {
    const std::int64_t count = counts != nullptr ? static_cast<std::int64_t>(counts[q]) : fixed;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = own_number(); i < count; i += step) {
      const std::int64_t row = chosen[q * room + i];
      const double* x = pairs.queries.rows + q * pairs.d;
      const double* y = pairs.table.rows + row * pairs.d;
      double a[core::kLanes] = {};
      for (std::int64_t j = 0; j < pairs.d; j += core::kLanes) {
#pragma unroll
        for (int lane = 0; lane < core::kLanes; ++lane) {
          if (j + lane < pairs.d) Op::add(a[lane], x[j + lane], y[j + lane], pairs.p);
        }
      }
      put_key<Op>(pairs, a, q, row, keys + q * room + i);
    }
  }
}

}  // namespace

WideMemory widen_rows(const Engine& engine, Metric metric, const Rows& rows, std::int64_t begin, std::int64_t count,
                      bool by_column) {
  const std::int64_t size = count * rows.d;
  WideMemory memory;
  memory.rows = Buffer<double>(engine, size);
  const auto* const first = static_cast<const std::byte*>(rows.data) + begin * rows.d * size_of(rows.dtype);
  widen_elements(engine, first, rows.dtype, size, memory.rows.data());
  if (metric == Metric::cosine) {
    memory.zero = Buffer<std::uint8_t>(engine, count);
    normalize_rows(engine, memory.rows.data(), count, rows.d, memory.zero.data());
  }
  if (by_column) {
    memory.columns = Buffer<double>(engine, size);
    const dim3 grid(blocks_for(count, 32),
                    static_cast<unsigned>(std::min<std::int64_t>((rows.d + 31) / 32, kMaxLines)));
    transpose_kernel<<<grid, dim3(32, 8), 0, engine.stream>>>(memory.rows.data(), count, rows.d, memory.columns.data());
    check_launch("transpose rows");
  }
  return memory;
}

void keys_by_columns(const Engine& engine, Metric metric, const Pairs& pairs, std::int64_t begin, std::int64_t rows,
                     const KeyMatrix& to) {
  const bool along_rows = to.row_stride == 1;
  const std::int64_t inner = along_rows ? rows : pairs.queries.count;
  const std::int64_t outer = along_rows ? pairs.queries.count : rows;
  const dim3 grid(blocks_for(inner, kThreads), static_cast<unsigned>(std::min(outer, kMaxLines)));
  with_metric<AllOps>(metric, [&](auto op) {
    using Op = decltype(op);
    if (along_rows) {
      columns_kernel<Op, true><<<grid, kThreads, 0, engine.stream>>>(pairs, begin, rows, to);
    } else {
      columns_kernel<Op, false><<<grid, kThreads, 0, engine.stream>>>(pairs, begin, rows, to);
    }
  });
  check_launch("keys by columns");
}

void keys_by_tiles(const Engine& engine, Metric metric, const Pairs& pairs, std::int64_t begin, std::int64_t rows,
                   const KeyMatrix& to) {
  const std::int64_t lines = (pairs.queries.count + kTile - 1) / kTile;
  const dim3 grid(blocks_for(rows, kTile), static_cast<unsigned>(std::min(lines, kMaxLines)));
  with_metric<AllOps>(metric, [&](auto op) {
    tile_kernel<decltype(op)><<<grid, dim3(kTile, kTile), 0, engine.stream>>>(pairs, begin, rows, to);
  });
  check_launch("keys by tiles");
}

void keys_of_chosen(const Engine& engine, Metric metric, const Pairs& pairs, const std::int64_t* rows,
                    const unsigned long long* counts, std::int64_t fixed, std::int64_t room, double* keys) {
  const std::int64_t most = counts != nullptr ? room : fixed;
  const dim3 grid(std::min(blocks_for(most, 128), 64U),
                  static_cast<unsigned>(std::min(pairs.queries.count, kMaxLines)));
  with_metric<AllOps>(metric, [&](auto op) {
    chosen_kernel<decltype(op)><<<grid, 128, 0, engine.stream>>>(pairs, rows, counts, fixed, room, keys);
  });
  check_launch("keys of chosen rows");
}

}  // namespace vicinal::cuda::papers
