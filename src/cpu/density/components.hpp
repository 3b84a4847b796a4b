// Components of rows while a spanning tree grows, and the lightest edge that is known to leave each of them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "backend/density.hpp"
#include "core/infinity.hpp"
#include "core/poll.hpp"

namespace vicinal::cpu {

/// The total order of edges (contract clause 27).
inline bool lighter(const kernels::TreeEdge& x, const kernels::TreeEdge& y) noexcept {
  if (x.key != y.key) return x.key < y.key;
  return x.a != y.a ? x.a < y.a : x.b < y.b;
}

inline kernels::TreeEdge edge_of(double key, std::int64_t i, std::int64_t j) noexcept {
  return i < j ? kernels::TreeEdge{key, i, j} : kernels::TreeEdge{key, j, i};
}

/// Union-find by one thread. Labels are those of the last `relabel`; a label is the smallest row of its component.
class Components {
 public:
  explicit Components(std::int64_t rows) : parent_(static_cast<std::size_t>(rows)) {
    for (std::int64_t row = 0; row < rows; ++row) parent_[static_cast<std::size_t>(row)] = row;
    label_ = parent_;
    size_.assign(static_cast<std::size_t>(rows), 1);
  }
  static std::uint64_t bytes(std::int64_t rows) { return static_cast<std::uint64_t>(rows) * 24; }

  /// False where both are in one component already.
  bool unite(std::int64_t a, std::int64_t b) {
    a = root_of(a);
    b = root_of(b);
    if (a == b) return false;
    if (b < a) std::swap(a, b);
    parent_[static_cast<std::size_t>(b)] = a;
    return true;
  }
  void relabel(core::Poll& poll) {
    std::fill(size_.begin(), size_.end(), 0);
    for (std::size_t row = 0; row < label_.size(); ++row) {
      poll.step();
      label_[row] = root_of(static_cast<std::int64_t>(row));
      ++size_[static_cast<std::size_t>(label_[row])];
    }
  }
  [[nodiscard]] std::int64_t rows() const noexcept { return static_cast<std::int64_t>(label_.size()); }
  [[nodiscard]] std::int64_t label(std::int64_t row) const noexcept { return label_[static_cast<std::size_t>(row)]; }
  /// The label of the component that has most rows, of equals the smallest.
  [[nodiscard]] std::int64_t largest() const noexcept {
    return std::max_element(size_.begin(), size_.end()) - size_.begin();
  }

 private:
  std::int64_t root_of(std::int64_t row) {
    for (;;) {
      std::int64_t& parent = parent_[static_cast<std::size_t>(row)];
      if (parent == row) return row;
      parent = parent_[static_cast<std::size_t>(parent)];
      row = parent;
    }
  }

  std::vector<std::int64_t> parent_;
  std::vector<std::int64_t> label_;
  std::vector<std::int64_t> size_;  // of the component with that label
};

/// The lightest edge from each component to another one, as far as it is known. Any thread may offer edges.
class LightestEdges {
 public:
  explicit LightestEdges(std::int64_t rows)
      : limits_(static_cast<std::size_t>(rows)), edges_(static_cast<std::size_t>(rows)) {}
  static std::uint64_t bytes(std::int64_t rows) {
    return static_cast<std::uint64_t>(rows) * (sizeof(double) + sizeof(kernels::TreeEdge));
  }

  void forget(std::int64_t label) {
    limits_[static_cast<std::size_t>(label)].store(kInfinity, std::memory_order_relaxed);
    edges_[static_cast<std::size_t>(label)] = {};
  }
  /// An edge that is heavier is of no use to the component.
  [[nodiscard]] double limit(std::int64_t label) const noexcept {
    return limits_[static_cast<std::size_t>(label)].load(std::memory_order_relaxed);
  }
  /// There is an edge of that key, which will be offered.
  void lower(std::int64_t label, double key) noexcept {
    std::atomic<double>& limit = limits_[static_cast<std::size_t>(label)];
    double before = limit.load(std::memory_order_relaxed);
    while (key < before && !limit.compare_exchange_weak(before, key, std::memory_order_relaxed)) {
    }
  }
  void offer(std::int64_t label, const kernels::TreeEdge& edge) {
    if (edge.key > limit(label)) return;
    const std::scoped_lock lock(locks_[static_cast<std::size_t>(label) % locks_.size()]);
    kernels::TreeEdge& best = edges_[static_cast<std::size_t>(label)];
    if (best.a >= 0 && !lighter(edge, best)) return;
    best = edge;
    lower(label, edge.key);
  }
  /// While no thread offers.
  [[nodiscard]] const kernels::TreeEdge& of(std::int64_t label) const noexcept {
    return edges_[static_cast<std::size_t>(label)];
  }

 private:
  std::vector<std::atomic<double>> limits_;
  std::vector<kernels::TreeEdge> edges_;
  std::array<std::mutex, 64> locks_;
};

}  // namespace vicinal::cpu
