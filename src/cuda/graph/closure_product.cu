// The paper's closure on a GPU (Zhang et al. 2013; contract clause 16): the adjacency matrix with self loops as
// integers, multiplied by itself, what is not 0 set to 1, until the ones stay as many. product_global: a thread an
// element reads its row and column from global memory. product_tiled: a block brings square tiles of both into shared
// memory; the tile's side is the one of 8, 16 and 32 at which most threads fit a multiprocessor, the larger of equals,
// as the driver's occupancy counts them (the paper does this by its maker's spreadsheet and finds 16). Ones are counted
// by a reduction. Cost: n^3 products of integers each time, 8 n^2 bytes.
#include <algorithm>
#include <array>

#include "cuda/graph/graphs.hpp"
#include "vicinal/cocluster.hpp"

namespace vicinal::cuda::graph {
namespace {

constexpr int kSide = 16;  // of a block where elements are read from global memory
constexpr std::int64_t kProductsALaunch = std::int64_t{1}
                                          << 36;  // products of a launch, between two looks at the cancel token

struct Product {
  const int* from;  ///< [n, n]
  int* to;
  std::int64_t n;
  std::int64_t begin;  ///< rows of this launch
  unsigned long long* ones;
};

/// Ones of a block, added up by all of its threads.
__device__ void add_ones(int one, unsigned long long* sum) {
  const int ones = __syncthreads_count(one);
  if (threadIdx.x == 0 && threadIdx.y == 0 && ones > 0) atomicAdd(sum, static_cast<unsigned long long>(ones));
}

__global__ void count_kernel(const int* matrix, std::int64_t size, unsigned long long* ones) {
  const std::int64_t i = own_number();
  add_ones(i < size && matrix[i] != 0 ? 1 : 0, ones);
}

template <class Id>
__global__ void edges_kernel(EdgeReader<Id> edges, std::int64_t count, int* matrix, std::int64_t n) {
  const std::int64_t e = own_number();
  std::uint64_t x = 0;
  std::uint64_t y = 0;
  if (e >= count || !edges.read(e, x, y)) return;
  matrix[x * n + y] = 1;
  matrix[y * n + x] = 1;
}

__global__ void diagonal_kernel(int* matrix, std::int64_t n) {
  const std::int64_t v = own_number();
  if (v < n) matrix[v * n + v] = 1;
}

__global__ void global_kernel(Product p) {
  const std::int64_t i = p.begin + static_cast<std::int64_t>(blockIdx.y) * kSide + threadIdx.y;
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * kSide + threadIdx.x;
  int one = 0;
  if (i < p.n && j < p.n) {
    int sum = 0;
    for (std::int64_t l = 0; l < p.n; ++l) sum += p.from[i * p.n + l] * p.from[l * p.n + j];
    one = sum != 0 ? 1 : 0;
    p.to[i * p.n + j] = one;
  }
  add_ones(one, p.ones);
}

template <int side>
__global__ void tiled_kernel(Product p) {
  __shared__ int rows[side][side];
  __shared__ int columns[side][side];
  const std::int64_t i = p.begin + static_cast<std::int64_t>(blockIdx.y) * side + threadIdx.y;
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * side + threadIdx.x;
  int sum = 0;
  for (std::int64_t first = 0; first < p.n; first += side) {
    const std::int64_t across = first + threadIdx.x;
    const std::int64_t down = first + threadIdx.y;
    rows[threadIdx.y][threadIdx.x] = i < p.n && across < p.n ? p.from[i * p.n + across] : 0;
    columns[threadIdx.y][threadIdx.x] = down < p.n && j < p.n ? p.from[down * p.n + j] : 0;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < side; ++l) sum += rows[threadIdx.y][l] * columns[l][threadIdx.x];
    __syncthreads();
  }
  const bool inside = i < p.n && j < p.n;
  if (inside) p.to[i * p.n + j] = sum != 0 ? 1 : 0;
  add_ones(inside && sum != 0 ? 1 : 0, p.ones);
}

struct Way {
  void (*kernel)(Product);
  int side;
};

/// The tile at which most threads are at work.
Way tiled_way() {
  const std::array<Way, 3> ways = {{{tiled_kernel<8>, 8}, {tiled_kernel<16>, 16}, {tiled_kernel<32>, 32}}};
  Way best = ways[0];
  int most = 0;
  for (const Way& way : ways) {
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, way.kernel, way.side * way.side, 0),
          "ask for the occupancy");
    const int threads = blocks * way.side * way.side;
    if (threads < most) continue;
    most = threads;
    best = way;
  }
  return best;
}

__global__ void label_kernel(const int* matrix, std::int64_t n, std::uint32_t* labels) {
  const std::int64_t v = own_number();
  if (v >= n) return;
  std::int64_t l = 0;
  while (matrix[v * n + l] == 0) ++l;
  labels[v] = static_cast<std::uint32_t>(l);
}

}  // namespace

std::uint64_t product_bytes(std::int64_t members) {
  const auto n = static_cast<std::uint64_t>(members);
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 62;  // its bytes may exceed 64 bits
  return n != 0 && 8 * n + 4 > kBeyond / n ? kBeyond : n * (8 * n + 4);
}

void label_by_products(const Engine& engine, const Host& host, const DeviceEdges& edges, DeviceLabels& labels,
                       plugin::Bipartite& task) {
  const std::int64_t n = edges.members();
  const Buffer<int> matrix(engine, n * n);
  const Buffer<int> product(engine, n * n);
  const Buffer<unsigned long long> ones(engine, plugin::kMaxProducts + 1);
  labels.narrow = Buffer<std::uint32_t>(engine, n);
  matrix.zero();
  ones.zero();
  diagonal_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(matrix.data(), n);
  check_launch("diagonal");
  if (edges.count > 0) {
    with_reader(edges, [&](const auto& reader) {
      edges_kernel<<<blocks_for(edges.count, kThreads), kThreads, 0, engine.stream>>>(reader, edges.count,
                                                                                      matrix.data(), n);
    });
    check_launch("adjacency");
  }
  const Way way = static_cast<CoclusterMethod>(task.method) == CoclusterMethod::product_tiled
                      ? tiled_way()
                      : Way{global_kernel, kSide};
  // Whole rows of blocks; a grid has 65,535 of them at most.
  const std::int64_t step =
      std::clamp<std::int64_t>(kProductsALaunch / (n * n) / way.side, 1, std::int64_t{65535}) * way.side;
  int* from = matrix.data();
  int* to = product.data();
  unsigned long long counts[2] = {0, 1};
  engine.synchronize();
  StreamTimer timer(engine.stream);
  count_kernel<<<blocks_for(n * n, kThreads), kThreads, 0, engine.stream>>>(from, n * n, ones.data());
  check_launch("count ones");
  while (counts[0] != counts[1]) {
    ++task.products;
    for (std::int64_t begin = 0; begin < n; begin += step) {
      const dim3 blocks(blocks_for(n, way.side), blocks_for(std::min(step, n - begin), way.side));
      way.kernel<<<blocks, dim3(way.side, way.side), 0, engine.stream>>>(
          {from, to, n, begin, ones.data() + task.products});
      check_launch("multiply");
      if (begin + step >= n) break;
      engine.synchronize();
      host.check_cancelled();
    }
    std::swap(from, to);
    to_host(engine, counts, ones.data() + task.products - 1, 2);
    engine.synchronize();
    host.check_cancelled();
    task.nonzeros[task.products - 1] = static_cast<std::int64_t>(counts[1]);
    host.progress("closure", static_cast<double>(counts[0]) / static_cast<double>(counts[1]));
  }
  label_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(from, n, labels.narrow.data());
  check_launch("label");
  task.seconds = timer.seconds();
}

}  // namespace vicinal::cuda::graph
