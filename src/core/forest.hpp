// Union-find by all threads at once, without a lock. A root is hooked below the smaller of two roots by one
// compare-and-swap, and every pointer leads to a smaller number, so that a component ends below its smallest member
// whatever the order of edges and threads. Paths are halved as they are walked (Jayanti and Tarjan 2016): such a store
// may be late, but what it stores was an ancestor and stays one.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/aligned.hpp"

namespace vicinal::core {

inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

/// Asks for large pages where the system has them: places are looked at all over the array, and its page tables are not
/// in the caches. What it answers does not matter.
inline void prefer_large_pages(void* data, std::size_t bytes) {
#if defined(__linux__)
  if (std::align(kLargePage, kLargePage, data, bytes) != nullptr)
    static_cast<void>(madvise(data, bytes / kLargePage * kLargePage, MADV_HUGEPAGE));
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

template <class Number>
class Forest {
 public:
  /// `alone`: one thread works on it, which needs no atomic swaps.
  Forest(std::int64_t size, bool alone) : parent_(size), size_(static_cast<std::uint64_t>(size)), alone_(alone) {
    prefer_large_pages(parent_.data(), static_cast<std::size_t>(size) * sizeof(Number));
  }

  void reset(std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end; ++v) parent_[v] = static_cast<Number>(v);
  }
  /// Begins to fetch the place of v, if there is one.
  void fetch(std::uint64_t v) const {
    if (v < size_) __builtin_prefetch(parent_.data() + v, 1);
  }

  void unite(Number x, Number y) {
    while (true) {
      x = root_of(x);
      y = root_of(y);
      if (x == y) return;
      if (x > y) std::swap(x, y);
      if (alone_) {
        parent_[static_cast<std::int64_t>(y)] = x;
        return;
      }
      Number expected = y;
      if (at(y).compare_exchange_strong(expected, x, std::memory_order_relaxed)) return;
    }
  }
  Number root_of(Number x) {
    Number parent = at(x).load(std::memory_order_relaxed);
    while (parent != x) {
      const Number above = at(parent).load(std::memory_order_relaxed);
      if (above == parent) return parent;
      at(x).store(above, std::memory_order_relaxed);
      x = above;
      parent = at(x).load(std::memory_order_relaxed);
    }
    return x;
  }

 private:
  std::atomic_ref<Number> at(Number v) { return std::atomic_ref<Number>(parent_[static_cast<std::int64_t>(v)]); }

  AlignedArray<Number> parent_;
  std::uint64_t size_;
  bool alone_;
};

}  // namespace vicinal::core
