// The heap that a block shares (Kato and Hosino): whoever wants to enter puts itself on a list in shared memory, and
// one thread takes in the list. In shared memory where k fits there, else where the answer goes.
#pragma once

#include <cstdint>

#include "core/order.hpp"

namespace vicinal::cuda::papers {

inline constexpr int kHeapThreads = 128;
inline constexpr std::int64_t kSharedHeap = 1024;  // entries

/// A max-heap by (key, id); one thread's business.
struct Heap {
  double* keys;
  std::int64_t* ids;
  std::int64_t k;
  std::int64_t size;

  [[nodiscard]] __device__ double limit() const { return size < k ? INFINITY : keys[0]; }
  __device__ void offer(double key, std::int64_t id) {
    if (size < k) {
      std::int64_t i = size++;
      for (; i > 0; i = (i - 1) / 2) {
        const std::int64_t parent = (i - 1) / 2;
        if (!core::nearer(keys[parent], ids[parent], key, id)) break;
        keys[i] = keys[parent];
        ids[i] = ids[parent];
      }
      keys[i] = key;
      ids[i] = id;
      return;
    }
    if (!core::nearer(key, id, keys[0], ids[0])) return;
    std::int64_t i = 0;
    for (std::int64_t child = 1; child < size; child = 2 * i + 1) {
      if (child + 1 < size && core::nearer(keys[child], ids[child], keys[child + 1], ids[child + 1])) ++child;
      if (!core::nearer(key, id, keys[child], ids[child])) break;
      keys[i] = keys[child];
      ids[i] = ids[child];
      i = child;
    }
    keys[i] = key;
    ids[i] = id;
  }
};

/// The place of a block's heap: dynamic shared memory, or the list it ends in.
__device__ inline Heap heap_of(std::int64_t k, double* list_keys, std::int64_t* list_ids, double* shared) {
  if (k > kSharedHeap) return {list_keys, list_ids, k, 0};
  return {shared, reinterpret_cast<std::int64_t*>(shared + k), k, 0};
}
inline std::size_t heap_bytes(std::int64_t k) {
  return k > kSharedHeap ? 0 : static_cast<std::size_t>(k) * (sizeof(double) + sizeof(std::int64_t));
}
/// By all threads, after the last offer was seen.
__device__ inline void store_heap(const Heap& heap, std::int64_t k, double* list_keys, std::int64_t* list_ids) {
  if (k > kSharedHeap) return;
  for (std::int64_t i = threadIdx.x; i < k; i += blockDim.x) {
    list_keys[i] = heap.keys[i];
    list_ids[i] = heap.ids[i];
  }
}

}  // namespace vicinal::cuda::papers
