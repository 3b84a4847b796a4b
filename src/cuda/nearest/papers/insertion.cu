// Selection by insertion (Garcia, Debreuve and Barlaud 2008; the LLE paper): one thread a query walks down its keys,
// which lie beside those of the other queries, and keeps the k nearest in order. Cost: n comparisons, and up to k moves
// for each key that enters, while the other threads of the warp wait.
#include <algorithm>

#include "core/order.hpp"
#include "cuda/nearest/papers/selection.hpp"

namespace vicinal::cuda::papers {
namespace {

constexpr int kListThreads = 128;

__global__ void insertion_kernel(KeyMatrix keys, std::int64_t rows, std::int64_t first, ThreadLists lists) {
  const std::int64_t q = own_number();
  if (q >= lists.queries) return;
  double* list_keys = lists.keys + q;
  std::int64_t* list_ids = lists.ids + q;
  const std::int64_t step = lists.queries;
  std::int64_t size = lists.sizes[q];
  double last = size < lists.k ? INFINITY : list_keys[(size - 1) * step];
  for (std::int64_t r = 0; r < rows; ++r) {
    const double key = keys.at(q, r);
    // Ids ascend: an equal key that comes later never enters a full list.
    if (!(key < last)) continue;
    std::int64_t at = size < lists.k ? size++ : size - 1;
    for (; at > 0 && key < list_keys[(at - 1) * step]; --at) {
      list_keys[at * step] = list_keys[(at - 1) * step];
      list_ids[at * step] = list_ids[(at - 1) * step];
    }
    list_keys[at * step] = key;
    list_ids[at * step] = first + r;
    if (size == lists.k) last = list_keys[(size - 1) * step];
  }
  lists.sizes[q] = size;
}

__global__ void gather_kernel(ThreadLists from, double* keys, std::int64_t* ids) {
  const std::int64_t count = from.queries * from.k;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = own_number(); i < count; i += step) {
    const std::int64_t at = i % from.k * from.queries + i / from.k;
    keys[i] = from.keys[at];
    ids[i] = from.ids[at];
  }
}

unsigned blocks(std::int64_t count) {
  return static_cast<unsigned>((count + kListThreads - 1) / kListThreads);
}

}  // namespace

void insert_keys(const Engine& engine, const KeyMatrix& keys, std::int64_t rows, std::int64_t first,
                 const ThreadLists& lists) {
  insertion_kernel<<<blocks(lists.queries), kListThreads, 0, engine.stream>>>(keys, rows, first, lists);
  check_launch("insertion");
}

void gather_lists(const Engine& engine, const ThreadLists& from, double* keys, std::int64_t* ids) {
  gather_kernel<<<std::min(blocks(from.queries * from.k), 1U << 16), kListThreads, 0, engine.stream>>>(from, keys, ids);
  check_launch("gather lists");
}

}  // namespace vicinal::cuda::papers
