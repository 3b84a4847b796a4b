// The block-wide heap (Kato and Hosino 2010): one block a query. Threads stride over the keys side by side and keep
// those within the heap's largest in small buffers of their own; when one is full all wait and one thread empties the
// buffers into the heap. Cost: n comparisons, and log2 k moves for each key that enters, one after the other.
#include "cuda/nearest/papers/heap.cuh"
#include "cuda/nearest/papers/selection.hpp"

namespace vicinal::cuda::papers {
namespace {

constexpr int kBuffered = 4;

__global__ void block_heap_kernel(const double* all_keys, std::int64_t queries, std::int64_t n, std::int64_t k,
                                  double* list_keys, std::int64_t* list_ids) {
  extern __shared__ double shared[];
  __shared__ double buffered_keys[kBuffered][kHeapThreads];
  __shared__ std::int64_t buffered_ids[kBuffered][kHeapThreads];
  __shared__ int sizes[kHeapThreads];
  __shared__ double limit;
  const auto lane = static_cast<int>(threadIdx.x);
  for (std::int64_t q = blockIdx.x; q < queries; q += gridDim.x) {
    const double* keys = all_keys + q * n;
    Heap heap = heap_of(k, list_keys + q * k, list_ids + q * k, shared);
    sizes[lane] = 0;
    if (lane == 0) limit = INFINITY;
    __syncthreads();
    for (std::int64_t begin = 0; begin < n; begin += kHeapThreads) {
      const std::int64_t row = begin + lane;
      const double key = row < n ? keys[row] : INFINITY;
      if (key < INFINITY && key <= limit) {
        buffered_keys[sizes[lane]][lane] = key;
        buffered_ids[sizes[lane]][lane] = row;
        ++sizes[lane];
      }
      const bool last = begin + kHeapThreads >= n;
      if (__syncthreads_or(sizes[lane] == kBuffered || last ? 1 : 0) == 0) continue;
      if (lane == 0) {
        for (int other = 0; other < kHeapThreads; ++other) {
          for (int i = 0; i < sizes[other]; ++i) heap.offer(buffered_keys[i][other], buffered_ids[i][other]);
        }
        limit = heap.limit();
      }
      __syncthreads();
      sizes[lane] = 0;
    }
    __syncthreads();
    store_heap(heap, k, list_keys + q * k, list_ids + q * k);
    __syncthreads();
  }
}

}  // namespace

void select_by_block_heap(const Engine& engine, const double* keys, std::int64_t queries, std::int64_t n,
                          std::int64_t k, double* list_keys, std::int64_t* list_ids) {
  const auto grid = static_cast<unsigned>(queries < 65535 ? queries : 65535);
  block_heap_kernel<<<grid, kHeapThreads, heap_bytes(k), engine.stream>>>(keys, queries, n, k, list_keys, list_ids);
  check_launch("block heap");
}

}  // namespace vicinal::cuda::papers
