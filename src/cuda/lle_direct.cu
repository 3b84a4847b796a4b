// See lle_direct.hpp. A warp has one row of M: it ranks the row's columns, and adds up the blocks that hold its point,
// one after the other, a lane a column of the block; so no two lanes meet, and every sum has one order.
#include "cuda/lle_direct.hpp"
#include "cuda/order.hpp"
#include "cuda/warp.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kThreads = 256;

__device__ std::int64_t own_number() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void number_kernel(const std::int32_t* rows, std::int64_t n, std::int32_t* now) {
  const std::int64_t i = own_number();
  if (i < n) now[rows[i]] = static_cast<std::int32_t>(i);
}

__global__ void count_kernel(const std::int64_t* first, const std::int32_t* rows, std::int64_t n,
                             std::uint32_t* counts) {
  const std::int64_t i = own_number();
  if (i < n) counts[i] = static_cast<std::uint32_t>(first[rows[i] + 1] - first[rows[i]]);
}

/// offsets[i + 1] = sums[i].
__global__ void offset_kernel(const std::uint32_t* sums, std::int64_t n, std::int64_t* offsets) {
  const std::int64_t i = own_number();
  if (i < n) offsets[i + 1] = sums[i];
  if (i == 0) offsets[0] = 0;
}

__global__ void renumber_kernel(const std::int32_t* cols, const std::int32_t* rows, const std::int32_t* now,
                                std::int64_t n, std::int64_t width, std::int32_t* to) {
  const std::int64_t at = own_number();
  if (at >= n * width) return;
  const std::int64_t i = at / width;
  to[at] = now[cols[rows[i] * width + at - i * width]];
}

__global__ void values_kernel(const std::int64_t* from_first, const double* from, const std::int32_t* rows,
                              const std::int32_t* owner, const std::int64_t* first, std::int64_t count,
                              std::int64_t width, double* to) {
  const std::int64_t at = own_number();
  if (at >= count * width) return;
  const std::int64_t r = at / width;
  const std::int64_t i = owner[r];
  to[at] = from[(from_first[rows[i]] + r - first[i]) * width + at - r * width];
}

struct OldPattern {
  const std::int64_t* first;
  const std::int32_t* neighbors;
  const std::int32_t* order;
  const std::int32_t* now;
};

/// How many columns of row i are not below it, itself among them.
__global__ void upper_kernel(OldPattern p, std::int64_t n, std::uint32_t* counts) {
  const std::int64_t i = own_number() / 32;
  if (i >= n) return;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const std::int64_t end = p.first[p.order[i] + 1];
  int count = 0;
  for (std::int64_t e = p.first[p.order[i]] + lane; e < end; e += 32) count += p.now[p.neighbors[e]] > i ? 1 : 0;
  count = sum_of_warp(count);
  if (lane == 0) counts[i] = static_cast<std::uint32_t>(count + 1);
}

/// Each column goes to its rank among them.
__global__ void rank_kernel(OldPattern p, std::int64_t n, const std::int64_t* offsets, std::int32_t* cols) {
  const std::int64_t i = own_number() / 32;
  if (i >= n) return;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const std::int64_t begin = p.first[p.order[i]];
  const std::int64_t end = p.first[p.order[i] + 1];
  std::int32_t* const to = cols + offsets[i];
  if (lane == 0) to[0] = static_cast<std::int32_t>(i);
  for (std::int64_t e = begin + lane; e < end; e += 32) {
    const std::int32_t column = p.now[p.neighbors[e]];
    if (column <= i) continue;
    int rank = 1;
    for (std::int64_t other = begin; other < end; ++other) {
      const std::int32_t before = p.now[p.neighbors[other]];
      rank += before > i && before < column ? 1 : 0;
    }
    to[rank] = column;
  }
}

struct Rows {
  const std::int32_t* cols;
  const std::int64_t* first;
  const double* values;
  std::int64_t width;
};

__global__ void assemble_kernel(Rows a, const std::int64_t* in_first, const std::uint32_t* places, std::int64_t n,
                                const std::int64_t* offsets, const std::int32_t* cols, double shift, double ground,
                                double* values) {
  const std::int64_t i = own_number() / 32;
  if (i >= n) return;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const std::int64_t begin = offsets[i];
  const std::int64_t end = offsets[i + 1];
  for (std::int64_t at = begin + lane; at < end; at += 32) values[at] = 0;
  for (std::int64_t e = in_first[i]; e < in_first[i + 1]; ++e) {
    const std::int64_t block = places[e] / a.width;
    const std::int64_t own = places[e] - block * a.width;
    __syncwarp();
    for (std::int64_t j = lane; j < a.width; j += 32) {
      const std::int32_t column = a.cols[block * a.width + j];
      if (column < i) continue;
      double sum = 0;
      for (std::int64_t r = a.first[block]; r < a.first[block + 1]; ++r) {
        sum += a.values[r * a.width + own] * a.values[r * a.width + j];
      }
      std::int64_t low = begin;
      std::int64_t high = end - 1;
      while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (cols[middle] < column) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      values[low] += sum;
    }
  }
  __syncwarp();
  if (lane == 0) values[begin] += (i + 1 == n ? ground : 0.0) - shift;
}

/// Offsets [n + 1] of counts, which are used up.
Buffer<std::int64_t> offsets_of(const Engine& engine, Buffer<std::uint32_t>& counts) {
  const std::int64_t n = counts.size();
  running_sum(engine, counts.data(), n);
  Buffer<std::int64_t> offsets(engine, n + 1);
  offset_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(counts.data(), n, offsets.data());
  check_launch("offsets of rows");
  return offsets;
}

std::int64_t last_of(const Engine& engine, const Buffer<std::int64_t>& offsets) {
  std::int64_t last = 0;
  to_host(engine, &last, offsets.data() + offsets.size() - 1, 1);
  engine.synchronize();
  return last;
}

Buffer<std::int32_t> uploaded(const Engine& engine, const std::int32_t* from, std::int64_t count) {
  Buffer<std::int32_t> to(engine, count);
  if (count > 0) to_device(engine, to.data(), from, count);
  return to;
}

}  // namespace

DeviceBlocks renumbered(const Engine& engine, const DeviceBlocks& a, const std::int32_t* rows, std::int64_t n) {
  const Buffer<std::int32_t> on_device = uploaded(engine, rows, n);
  const Buffer<std::int32_t> now(engine, a.points);
  number_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(on_device.data(), n, now.data());
  check_launch("new numbers");
  Buffer<std::uint32_t> counts(engine, n);
  count_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(a.first.data(), on_device.data(), n,
                                                                        counts.data());
  check_launch("rows of a piece");
  Buffer<std::int64_t> first = offsets_of(engine, counts);
  DeviceBlocks b(engine, n, a.width, last_of(engine, first));
  b.first = std::move(first);
  find_owners(engine, b);
  renumber_kernel<<<blocks_for(n * a.width, kThreads), kThreads, 0, engine.stream>>>(
      a.cols.data(), on_device.data(), now.data(), n, a.width, b.cols.data());
  check_launch("columns of a piece");
  values_kernel<<<blocks_for(b.rows * a.width, kThreads), kThreads, 0, engine.stream>>>(
      a.first.data(), a.values.data(), on_device.data(), b.owner.data(), b.first.data(), b.rows, a.width,
      b.values.data());
  check_launch("values of a piece");
  engine.synchronize();  // `rows` are the caller's
  return b;
}

SymmetricMatrix pattern_of(const Engine& engine, std::int64_t n, const plugin::LleFactor& task) {
  const std::int64_t entries = task.first[n];
  if (entries / 2 + n > std::int64_t{UINT32_MAX}) {
    throw Failure{ErrorCode::over_memory, "lle: a matrix of more entries than a device's factor could hold"};
  }
  const Buffer<std::int64_t> first(engine, n + 1);
  to_device(engine, first.data(), task.first, n + 1);
  const Buffer<std::int32_t> neighbors = uploaded(engine, task.neighbors, entries);
  const Buffer<std::int32_t> order = uploaded(engine, task.order, n);
  const Buffer<std::int32_t> now(engine, n);
  number_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(order.data(), n, now.data());
  check_launch("new numbers");
  const OldPattern old{first.data(), neighbors.data(), order.data(), now.data()};
  Buffer<std::uint32_t> counts(engine, n);
  upper_kernel<<<blocks_for(n * 32, kThreads), kThreads, 0, engine.stream>>>(old, n, counts.data());
  check_launch("entries of rows");
  SymmetricMatrix m;
  m.n = n;
  m.first = offsets_of(engine, counts);
  m.entries = last_of(engine, m.first);
  m.cols = Buffer<std::int32_t>(engine, m.entries);
  m.values = Buffer<double>(engine, m.entries);
  rank_kernel<<<blocks_for(n * 32, kThreads), kThreads, 0, engine.stream>>>(old, n, m.first.data(), m.cols.data());
  check_launch("columns of rows");
  engine.synchronize();  // what was uploaded is the caller's
  return m;
}

void assemble(const Engine& engine, const DeviceBlocks& a, const DeviceIncidence& in, const plugin::LleFactor& task,
              const SymmetricMatrix& m) {
  const Rows rows{a.cols.data(), a.first.data(), a.values.data(), a.width};
  assemble_kernel<<<blocks_for(m.n * 32, kThreads), kThreads, 0, engine.stream>>>(
      rows, in.first.data(), in.places.data(), m.n, m.first.data(), m.cols.data(), task.shift, task.ground,
      m.values.data());
  check_launch("entries of M");
}

}  // namespace vicinal::cuda
