// Selection by filtering (the LOF paper): one block a query. All threads compare keys with a threshold and count what
// passes; until k to kMaxPass k keys do, the threshold moves (formulas/nearest/threshold_search.hpp). What passes in
// the end goes through a heap. Masses of equal keys leave no such threshold; then all of them are taken. Cost: n
// comparisons a threshold, two to four as a rule.
#include "cuda/base/warp.cuh"
#include "cuda/nearest/papers/heap.cuh"
#include "cuda/nearest/papers/selection.hpp"
#include "formulas/nearest/threshold_search.hpp"

namespace vicinal::cuda::papers {
namespace {

__device__ core::Passed join(const core::Passed& a, const core::Passed& b) {
  return {a.count + b.count, fmax(a.last, b.last), fmin(a.above, b.above)};
}

// As core::Passed, for shared memory, which nothing may initialize.
struct SharedPassed {
  std::int64_t count;
  double last;
  double above;
};

// What a threshold does to a query's keys, known to thread 0.
__device__ core::Passed compare_all(const double* keys, std::int64_t n, double threshold, SharedPassed* of_warps) {
  core::Passed passed;
  for (std::int64_t row = threadIdx.x; row < n; row += kHeapThreads) {
    const double key = keys[row];
    if (key <= threshold) {
      ++passed.count;
      passed.last = fmax(passed.last, key);
    } else {
      passed.above = fmin(passed.above, key);
    }
  }
  for (int step = 16; step > 0; step /= 2) {
    const core::Passed other = {__shfl_down_sync(kWholeWarp, passed.count, step),
                                __shfl_down_sync(kWholeWarp, passed.last, step),
                                __shfl_down_sync(kWholeWarp, passed.above, step)};
    passed = join(passed, other);
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = {passed.count, passed.last, passed.above};
  __syncthreads();
  for (int warp = 1; warp < kHeapThreads / 32 && threadIdx.x == 0; ++warp) {
    passed = join(passed, {of_warps[warp].count, of_warps[warp].last, of_warps[warp].above});
  }
  __syncthreads();
  return passed;
}

__global__ void filter_kernel(const double* all_keys, std::int64_t queries, std::int64_t n, const double* sequence,
                              std::int64_t sequence_size, std::int64_t k, double* list_keys, std::int64_t* list_ids) {
  extern __shared__ double shared[];
  __shared__ SharedPassed of_warps[kHeapThreads / 32];
  __shared__ double threshold;
  __shared__ bool found;
  __shared__ double waiting_keys[kHeapThreads];
  __shared__ std::int64_t waiting_ids[kHeapThreads];
  __shared__ int waiting;
  for (std::int64_t q = blockIdx.x; q < queries; q += gridDim.x) {
    const double* keys = all_keys + q * n;
    core::ThresholdSearch search(sequence, sequence_size);
    if (threadIdx.x == 0) {
      threshold = search.threshold();
      found = false;
      waiting = 0;
    }
    __syncthreads();
    while (!found) {
      const core::Passed passed = compare_all(keys, n, threshold, of_warps);
      if (threadIdx.x == 0) {
        found = (passed.count >= k && passed.count <= kMaxPass * k) || !search.move(passed, passed.count > k);
        threshold = search.threshold();
      }
      __syncthreads();
    }
    Heap heap = heap_of(k, list_keys + q * k, list_ids + q * k, shared);
    for (std::int64_t begin = 0; begin < n; begin += kHeapThreads) {
      const std::int64_t row = begin + threadIdx.x;
      const double key = row < n ? keys[row] : INFINITY;
      const bool passes = key <= threshold;
      if (passes) {
        const int place = atomicAdd(&waiting, 1);
        waiting_keys[place] = key;
        waiting_ids[place] = row;
      }
      if (__syncthreads_or(passes ? 1 : 0) == 0) continue;
      if (threadIdx.x == 0) {
        for (int i = 0; i < waiting; ++i) heap.offer(waiting_keys[i], waiting_ids[i]);
        waiting = 0;
      }
      __syncthreads();
    }
    __syncthreads();
    store_heap(heap, k, list_keys + q * k, list_ids + q * k);
    __syncthreads();
  }
}

}  // namespace

void select_by_filter(const Engine& engine, const double* keys, std::int64_t queries, std::int64_t n,
                      const double* sequence, std::int64_t sequence_size, std::int64_t k, double* list_keys,
                      std::int64_t* list_ids) {
  const auto grid = static_cast<unsigned>(queries < 65535 ? queries : 65535);
  filter_kernel<<<grid, kHeapThreads, heap_bytes(k), engine.stream>>>(keys, queries, n, sequence, sequence_size, k,
                                                                      list_keys, list_ids);
  check_launch("filter");
}

}  // namespace vicinal::cuda::papers
