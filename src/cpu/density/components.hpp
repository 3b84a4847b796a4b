// Components of rows while a spanning tree grows, and the lightest edge that is known to leave each of them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <vector>

#include "backend/density.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"

namespace vicinal::cpu {

/// Calls body(row) for all rows, on all threads.
template <class Body>
void for_each_row(const Context& ctx, std::int64_t rows, const Body& body) {
  constexpr std::int64_t kRows = 4096;  // of a task
  core::parallel_for(ctx, (rows + kRows - 1) / kRows, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t row = task * kRows; row < std::min(rows, (task + 1) * kRows); ++row) body(row);
  });
}

/// The total order of edges (contract clause 27).
inline bool lighter(const kernels::TreeEdge& x, const kernels::TreeEdge& y) noexcept {
  if (x.key != y.key) return x.key < y.key;
  return x.a != y.a ? x.a < y.a : x.b < y.b;
}

inline kernels::TreeEdge edge_of(double key, std::int64_t i, std::int64_t j) noexcept {
  return i < j ? kernels::TreeEdge{key, i, j} : kernels::TreeEdge{key, j, i};
}

/// Components are joined by one thread. Labels are those of the last `relabel`; a label is the smallest row of its
/// component.
class Components {
 public:
  explicit Components(std::int64_t rows)
      : parent_(static_cast<std::size_t>(rows)), size_(static_cast<std::size_t>(rows), 1) {
    std::iota(parent_.begin(), parent_.end(), 0);
    label_ = parent_;
    labels_ = parent_;
  }
  static std::uint64_t bytes(std::int64_t rows) { return static_cast<std::uint64_t>(rows) * 32; }

  /// False where both are in one component already.
  bool unite(std::int64_t a, std::int64_t b) {
    a = root_of(label(a));
    b = root_of(label(b));
    if (a == b) return false;
    if (b < a) std::swap(a, b);
    parent_[static_cast<std::size_t>(b)] = a;
    std::int64_t& size = size_[static_cast<std::size_t>(a)];
    size += size_[static_cast<std::size_t>(b)];
    // Joined, the largest one is larger than it was, so that this is never one that was joined to another.
    const std::int64_t most = size_[static_cast<std::size_t>(largest_)];
    if (size > most || (size == most && a < largest_)) largest_ = a;
    return true;
  }
  /// What were labels by one thread; then the other rows, of which only those are read.
  void relabel(const Context& ctx, core::Poll& poll) {
    std::erase_if(labels_, [&](std::int64_t row) {
      poll.step();
      label_[static_cast<std::size_t>(row)] = root_of(row);
      return label(row) != row;
    });
    for_each_row(ctx, rows(), [&](std::int64_t row) {
      const std::int64_t root = label(label(row));
      if (root != label(row)) label_[static_cast<std::size_t>(row)] = root;
    });
  }
  [[nodiscard]] std::int64_t rows() const noexcept { return static_cast<std::int64_t>(label_.size()); }
  [[nodiscard]] std::int64_t label(std::int64_t row) const noexcept { return label_[static_cast<std::size_t>(row)]; }
  /// All labels, ascending.
  [[nodiscard]] const std::vector<std::int64_t>& labels() const noexcept { return labels_; }
  /// Whether the component with that label is one row.
  [[nodiscard]] bool is_one_row(std::int64_t label) const noexcept {
    return size_[static_cast<std::size_t>(label)] == 1;
  }
  /// The label of the component that has most rows, of equals the smallest.
  [[nodiscard]] std::int64_t largest() const noexcept { return largest_; }

 private:
  /// Of what was a label.
  std::int64_t root_of(std::int64_t row) {
    for (;;) {
      std::int64_t& parent = parent_[static_cast<std::size_t>(row)];
      if (parent == row) return row;
      parent = parent_[static_cast<std::size_t>(parent)];
      row = parent;
    }
  }

  std::vector<std::int64_t> parent_;  // of what was a label
  std::vector<std::int64_t> label_;
  std::vector<std::int64_t> size_;  // of the component with that root
  std::vector<std::int64_t> labels_;
  std::int64_t largest_ = 0;
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
  /// Where no other thread offers to that component.
  void offer_alone(std::int64_t label, const kernels::TreeEdge& edge) {
    kernels::TreeEdge& best = edges_[static_cast<std::size_t>(label)];
    if (best.a >= 0 && !lighter(edge, best)) return;
    best = edge;
    limits_[static_cast<std::size_t>(label)].store(edge.key, std::memory_order_relaxed);
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
