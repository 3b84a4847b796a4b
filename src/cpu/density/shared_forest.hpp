// Union-find that threads join and look into at once. Every pointer leads to a smaller row, so that the root of a
// component is its smallest row whatever the order of unions and threads. A pointer that is passed is moved up by
// compare-and-swap, which fails where another thread moved it: so no union is lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace vicinal::cpu {

class SharedForest {
 public:
  explicit SharedForest(std::int64_t rows) : parent_(static_cast<std::size_t>(rows)) {
    for (std::int64_t row = 0; row < rows; ++row) at(row).store(row, std::memory_order_relaxed);
  }
  static std::uint64_t bytes(std::int64_t rows) { return static_cast<std::uint64_t>(rows) * sizeof(std::int64_t); }

  [[nodiscard]] std::int64_t root_of(std::int64_t row) {
    for (;;) {
      std::int64_t parent = at(row).load(std::memory_order_relaxed);
      const std::int64_t above = at(parent).load(std::memory_order_relaxed);
      if (parent == above) return parent;
      at(row).compare_exchange_weak(parent, above, std::memory_order_relaxed);
      row = above;
    }
  }
  /// Whether both are in one component by now; false may be out of date.
  [[nodiscard]] bool are_joined(std::int64_t a, std::int64_t b) { return root_of(a) == root_of(b); }
  /// Whether this call joined two components.
  bool unite(std::int64_t a, std::int64_t b) {
    for (;;) {
      a = root_of(a);
      b = root_of(b);
      if (a == b) return false;
      if (a < b) std::swap(a, b);
      std::int64_t root = a;
      if (at(a).compare_exchange_strong(root, b, std::memory_order_relaxed)) return true;
    }
  }

 private:
  std::atomic<std::int64_t>& at(std::int64_t row) { return parent_[static_cast<std::size_t>(row)]; }

  std::vector<std::atomic<std::int64_t>> parent_;
};

}  // namespace vicinal::cpu
