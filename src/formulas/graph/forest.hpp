// Union-find by all threads at once, without a lock, after Rem (Dijkstra 1976; Patwary, Blair and Manne 2010;
// ConnectIt, Dhulipala et al. 2020, has it in parallel). Both ends climb together: the one whose parent is larger takes
// the other's parent and goes on from its own old one, until parents are equal or a root was hooked, by
// compare-and-swap. Every pointer leads to a smaller number, so that a component ends below its smallest member
// whatever the order of edges and threads. A store to a member that is no root may be late: the thread that makes it
// goes on to join what it replaced.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/aligned.hpp"
#include "core/large_pages.hpp"

namespace vicinal::core {

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
      Number of_x = at(x).load(std::memory_order_relaxed);
      Number of_y = at(y).load(std::memory_order_relaxed);
      if (of_x == of_y) return;
      if (of_x < of_y) {
        std::swap(x, y);
        std::swap(of_x, of_y);
      }
      if (of_x == x) {  // a root
        if (alone_) {
          parent_[static_cast<std::int64_t>(x)] = of_y;
          return;
        }
        if (at(x).compare_exchange_strong(of_x, of_y, std::memory_order_relaxed)) return;
        continue;
      }
      at(x).store(of_y, std::memory_order_relaxed);
      x = of_x;
    }
  }
  /// The root above v, to which v leads from then on. Asked for in ascending order this goes two steps and no further.
  Number flatten(Number v) {
    Number root = parent_of(parent_of(v));
    for (Number above = parent_of(root); above != root; above = parent_of(root)) root = above;
    at(v).store(root, std::memory_order_relaxed);
    return root;
  }
  /// Begins to fetch the place that v leads to, v's own being there.
  void fetch_parent(std::uint64_t v) {
    if (v < size_) fetch(parent_of(static_cast<Number>(v)));
  }

 private:
  Number parent_of(Number v) { return at(v).load(std::memory_order_relaxed); }
  std::atomic_ref<Number> at(Number v) { return std::atomic_ref<Number>(parent_[static_cast<std::int64_t>(v)]); }

  AlignedArray<Number> parent_;
  std::uint64_t size_;
  bool alone_;
};

}  // namespace vicinal::core
