// The closure on the device, a bit an element (contract clause 16; Zhang et al. 2013): row v of C C is the "or" of the
// rows that row v names. A warp makes a row, a lane 64 columns. Matrices of up to 4,096 members are squared until they
// stay as they are in one cooperative launch, in which the grid meets after each product: five products of the paper's
// 1,103 members are shorter than the launches they would take. Of larger ones each product is some launches.
// Cost of a product: a row of n / 64 words for each one of the matrix; memory: n^2 / 4 bytes.
#include <cooperative_groups.h>

#include <algorithm>

#include "cuda/base/warp.cuh"
#include "cuda/graph/graphs.hpp"

namespace vicinal::cuda::graph {
namespace {

using Word = unsigned long long;
constexpr int kLanes = 32;
constexpr int kClosureThreads = 512;
constexpr int kWarps = kClosureThreads / kLanes;
constexpr std::int64_t kAtOnce = 4096;                 // members of one launch for all products: 64 MB of words read
constexpr std::int64_t kWork = std::int64_t{1} << 35;  // words read by a launch, between two looks at the cancel token
constexpr int kNames = 16;                             // rows that are read at once

struct Matrices {
  Word* from;  ///< [n, stride]
  Word* to;
  std::int64_t n;
  std::int64_t stride;       ///< words
  unsigned long long* ones;  ///< [kMaxProducts + 1]: at first, and after each product
  unsigned* labels;          ///< [n]
};

std::int64_t stride_of(std::int64_t n) {
  return (n + 63) / 64;
}

template <class Id>
__global__ void edges_kernel(EdgeReader<Id> edges, std::int64_t count, Word* matrix, std::int64_t stride) {
  const std::int64_t e = own_number();
  std::uint64_t x = 0;
  std::uint64_t y = 0;
  if (e >= count || !edges.read(e, x, y)) return;
  atomicOr(matrix + x * stride + y / 64, Word{1} << (y % 64));
  atomicOr(matrix + y * stride + x / 64, Word{1} << (x % 64));
}

__global__ void diagonal_kernel(Word* matrix, std::int64_t n, std::int64_t stride) {
  const std::int64_t v = own_number();
  if (v < n) atomicOr(matrix + v * stride + v / 64, Word{1} << (v % 64));
}

/// One warp's row: lane l makes words l, l + 32 and so on. Returns its ones, of this lane.
__device__ unsigned square_row(const Matrices& m, const Word* from, Word* to, std::int64_t v) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const Word* const own = from + v * m.stride;
  unsigned ones = 0;
  for (std::int64_t block = 0; block < m.stride; block += kLanes) {
    const std::int64_t column = block + lane;
    const bool mine = column < m.stride;
    const Word* const columns = from + (mine ? column : 0);
    Word sum = 0;
    for (std::int64_t first = 0; first < m.stride; first += kLanes) {
      const Word held = first + lane < m.stride ? own[first + lane] : 0;
      unsigned filled = __ballot_sync(kWholeWarp, held != 0);
      Word left = 0;
      const Word* rows = columns;
      int bit = 0;
      while (filled != 0 || left != 0) {
        // Reads that need not wait for each other; where names run out, of the last row again.
        Word read[kNames];
#pragma unroll
        for (Word& one : read) {
          if (left == 0 && filled != 0) {
            const int holder = __ffs(static_cast<int>(filled)) - 1;
            filled &= filled - 1;
            left = __shfl_sync(kWholeWarp, held, holder);
            rows = columns + (first + holder) * 64 * m.stride;
          }
          if (left != 0) {
            bit = __ffsll(static_cast<long long>(left)) - 1;
            left &= left - 1;
          }
          one = rows[bit * m.stride];
        }
#pragma unroll
        for (const Word one : read) sum |= one;
      }
    }
    if (mine) {
      to[v * m.stride + column] = sum;
      ones += __popcll(sum);
    }
  }
  return ones;
}

__device__ void add_ones(unsigned ones, unsigned long long* sum) {
  __shared__ unsigned parts[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const unsigned own = static_cast<unsigned>(sum_of_warp(static_cast<int>(ones)));
  if (lane == 0) parts[threadIdx.x / kLanes] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long all = 0;
    for (const unsigned part : parts) all += part;
    if (all != 0) atomicAdd(sum, all);
  }
  __syncthreads();
}

__device__ void label_row(const Word* matrix, std::int64_t v, const Matrices& m) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const Word* const own = matrix + v * m.stride;
  for (std::int64_t first = 0;; first += kLanes) {
    const Word held = first + lane < m.stride ? own[first + lane] : 0;
    const unsigned filled = __ballot_sync(kWholeWarp, held != 0);
    if (filled == 0) continue;  // never in all of a row: it names v
    if (lane == __ffs(static_cast<int>(filled)) - 1) {
      m.labels[v] = static_cast<unsigned>((first + lane) * 64 + __ffsll(static_cast<long long>(held)) - 1);
    }
    return;
  }
}

__device__ std::int64_t first_row() {
  return blockIdx.x + static_cast<std::int64_t>(threadIdx.x / kLanes) * gridDim.x;
}

/// Rows go round the blocks, so that all multiprocessors have some.
__global__ void close_kernel(Matrices m, int* products) {
  const auto grid = cooperative_groups::this_grid();
  const std::int64_t rows = static_cast<std::int64_t>(gridDim.x) * kWarps;
  Word* from = m.from;
  Word* to = m.to;
  unsigned own = 0;
  for (std::int64_t v = first_row(); v < m.n; v += rows) {
    for (std::int64_t w = threadIdx.x % kLanes; w < m.stride; w += kLanes) own += __popcll(from[v * m.stride + w]);
  }
  add_ones(own, m.ones);
  for (int product = 1;; ++product) {
    unsigned ones = 0;
    for (std::int64_t v = first_row(); v < m.n; v += rows) ones += square_row(m, from, to, v);
    add_ones(ones, m.ones + product);
    grid.sync();
    Word* const other = from;
    from = to;
    to = other;
    if (__ldcg(m.ones + product) != __ldcg(m.ones + product - 1)) continue;
    if (blockIdx.x == 0 && threadIdx.x == 0) *products = product;
    break;
  }
  for (std::int64_t v = first_row(); v < m.n; v += rows) label_row(from, v, m);
}

__global__ void count_kernel(Matrices m) {
  unsigned own = 0;
  const std::int64_t words = m.n * m.stride;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t w = own_number(); w < words; w += step) {
    own += __popcll(m.from[w]);
  }
  add_ones(own, m.ones);
}

__global__ void square_kernel(Matrices m, int product, std::int64_t begin, std::int64_t end) {
  const std::int64_t v = begin + first_row();
  add_ones(v < end ? square_row(m, m.from, m.to, v) : 0, m.ones + product);
}

__global__ void label_kernel(Matrices m) {
  const std::int64_t v = first_row();
  if (v < m.n) label_row(m.from, v, m);
}

void close_at_once(const Engine& engine, Matrices& matrices, plugin::Bipartite& task) {
  const Buffer<int> products(engine, 1);
  // A row a warp where there are as many; a grid meets the sooner the fewer blocks it has.
  const unsigned blocks = std::min(static_cast<unsigned>(engine.multiprocessors), blocks_for(matrices.n, kWarps));
  int* found = products.data();
  void* arguments[] = {&matrices, &found};
  engine.synchronize();
  StreamTimer timer(engine.stream);
  check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(close_kernel), dim3(blocks), dim3(kClosureThreads),
                                    arguments, 0, engine.stream),
        "close");
  task.seconds = timer.seconds();
  to_host(engine, &task.products, products.data(), 1);
  engine.synchronize();
}

void close_by_launches(const Engine& engine, const Host& host, Matrices& matrices, plugin::Bipartite& task) {
  const std::int64_t step = std::clamp<std::int64_t>(kWork / (matrices.n * matrices.stride), kWarps, matrices.n);
  StreamTimer timer(engine.stream);
  count_kernel<<<static_cast<unsigned>(engine.multiprocessors) * 8, kClosureThreads, 0, engine.stream>>>(matrices);
  check_launch("count ones");
  unsigned long long ones[2] = {0, 1};
  while (ones[0] != ones[1]) {
    ++task.products;
    for (std::int64_t begin = 0; begin < matrices.n; begin += step) {
      const std::int64_t end = std::min(matrices.n, begin + step);
      square_kernel<<<blocks_for(end - begin, kWarps), kClosureThreads, 0, engine.stream>>>(matrices, task.products,
                                                                                            begin, end);
      check_launch("square");
      engine.synchronize();
      host.check_cancelled();
    }
    std::swap(matrices.from, matrices.to);
    to_host(engine, ones, matrices.ones + task.products - 1, 2);
    engine.synchronize();
    host.progress("closure", static_cast<double>(ones[0]) / static_cast<double>(ones[1]));
  }
  label_kernel<<<blocks_for(matrices.n, kWarps), kClosureThreads, 0, engine.stream>>>(matrices);
  check_launch("label");
  task.seconds = timer.seconds();
}

}  // namespace

std::uint64_t closure_bytes(std::int64_t members) {
  const auto n = static_cast<std::uint64_t>(members);
  const auto row = static_cast<std::uint64_t>(stride_of(members)) * sizeof(Word);
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 62;  // its bytes may exceed 64 bits
  return n != 0 && 2 * row + sizeof(unsigned) > kBeyond / n ? kBeyond : n * (2 * row + sizeof(unsigned));
}

void label_by_bits(const Engine& engine, const Host& host, const DeviceEdges& edges, DeviceLabels& labels,
                   plugin::Bipartite& task) {
  const std::int64_t n = edges.members();
  const std::int64_t stride = stride_of(n);
  const Buffer<Word> matrix(engine, n * stride);
  const Buffer<Word> square(engine, n * stride);
  const Buffer<unsigned long long> ones(engine, plugin::kMaxProducts + 1);
  labels.narrow = Buffer<std::uint32_t>(engine, n);
  matrix.zero();
  ones.zero();
  diagonal_kernel<<<blocks_for(n, kClosureThreads), kClosureThreads, 0, engine.stream>>>(matrix.data(), n, stride);
  check_launch("diagonal");
  if (edges.count > 0) {
    with_reader(edges, [&](const auto& reader) {
      edges_kernel<<<blocks_for(edges.count, kClosureThreads), kClosureThreads, 0, engine.stream>>>(
          reader, edges.count, matrix.data(), stride);
    });
    check_launch("adjacency");
  }
  Matrices matrices{matrix.data(), square.data(), n, stride, ones.data(), labels.narrow.data()};
  n <= kAtOnce ? close_at_once(engine, matrices, task) : close_by_launches(engine, host, matrices, task);
  unsigned long long counted[plugin::kMaxProducts] = {};
  to_host(engine, counted, ones.data() + 1, task.products);
  engine.synchronize();
  std::copy_n(counted, task.products, task.nonzeros);
}

}  // namespace vicinal::cuda::graph
