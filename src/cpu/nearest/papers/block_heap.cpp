// The block-wide heap: lanes stride over the row side by side and put what is below the heap's largest key into small
// buffers of their own; when one is full all wait, and the buffers go into the heap. On a GPU the lanes are threads and
// the heap is in shared memory; the point is that the threshold is read more often than the heap is written. Cost: n
// comparisons, and log2 k moves for each key that enters.
#include <algorithm>
#include <limits>

#include "cpu/nearest/papers/selection.hpp"

namespace vicinal::cpu::papers {
namespace {

constexpr std::size_t kLanes = 32;
constexpr int kBuffered = 4;

struct Buffers {
  double keys[kLanes][kBuffered] = {};
  std::int64_t ids[kLanes][kBuffered] = {};
  int sizes[kLanes] = {};

  void empty_into(NearestHeap& heap) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < sizes[lane]; ++i) heap.offer(keys[lane][i], ids[lane][i]);
      sizes[lane] = 0;
    }
  }
};

}  // namespace

void select_by_block_heap(std::span<const double> keys, List list) {
  NearestHeap heap = list.heap();
  Buffers buffers;
  double limit = std::numeric_limits<double>::max();  // infinite keys are no candidates
  for (std::size_t begin = 0; begin < keys.size(); begin += kLanes) {
    bool full = false;
    for (std::size_t lane = 0; lane < kLanes && begin + lane < keys.size(); ++lane) {
      const double key = keys[begin + lane];
      if (!(key <= limit)) continue;
      int& size = buffers.sizes[lane];
      buffers.keys[lane][size] = key;
      buffers.ids[lane][size] = static_cast<std::int64_t>(begin + lane);
      full |= ++size == kBuffered;
    }
    if (!full) continue;
    buffers.empty_into(heap);
    limit = std::min(limit, heap.limit());
  }
  buffers.empty_into(heap);
  heap.sort();
}

}  // namespace vicinal::cpu::papers
