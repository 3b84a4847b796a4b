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
#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "cpu/density/places.hpp"
#include "vicinal/error.hpp"

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

/// The lightest edge from each component to another one, as far as it is known. Any thread may offer edges.
class LightestEdges {
 public:
  explicit LightestEdges(std::int64_t rows)
      : limits_(static_cast<std::size_t>(rows)), edges_(static_cast<std::size_t>(rows)) {}
  static std::uint64_t bytes(std::int64_t rows) {
    return static_cast<std::uint64_t>(rows) * (sizeof(double) + sizeof(Edge));
  }

  /// Call this first for each label, every round.
  void forget(std::int64_t label) {
    limits_[static_cast<std::size_t>(label)] = kInfinity;
    edges_[static_cast<std::size_t>(label)] = {kInfinity, -1, -1};
  }
  /// An edge that is heavier is of no use to the component.
  [[nodiscard]] double limit(std::int64_t label) const noexcept {
    return limit_of(label).load(std::memory_order_relaxed);
  }
  /// There is an edge of that key, which will be offered.
  void lower(std::int64_t label, double key) noexcept {
    const std::atomic_ref<double> limit = limit_of(label);
    double before = limit.load(std::memory_order_relaxed);
    while (key < before && !limit.compare_exchange_weak(before, key, std::memory_order_relaxed)) {
    }
  }
  /// Instead of `forget` and an offer, where no other thread offers to that component; `edge` may have no rows.
  void set(std::int64_t label, const kernels::TreeEdge& edge) {
    edges_[static_cast<std::size_t>(label)] = {edge.key, edge.a, edge.b};
    limits_[static_cast<std::size_t>(label)] = edge.key;
  }
  /// Where no other thread offers to that component.
  void offer_alone(std::int64_t label, const kernels::TreeEdge& edge) {
    if (of(label).a >= 0 && !lighter(edge, of(label))) return;
    edges_[static_cast<std::size_t>(label)] = {edge.key, edge.a, edge.b};
    limit_of(label).store(edge.key, std::memory_order_relaxed);
  }
  void offer(std::int64_t label, const kernels::TreeEdge& edge) {
    if (edge.key > limit(label)) return;
    const std::scoped_lock lock(locks_[static_cast<std::size_t>(label) % locks_.size()]);
    if (of(label).a >= 0 && !lighter(edge, of(label))) return;
    edges_[static_cast<std::size_t>(label)] = {edge.key, edge.a, edge.b};
    lower(label, edge.key);
  }
  /// While no thread offers.
  [[nodiscard]] kernels::TreeEdge of(std::int64_t label) const noexcept {
    const Edge& edge = edges_[static_cast<std::size_t>(label)];
    return {edge.key, edge.a, edge.b};
  }

 private:
  struct Edge {  // without initializers, so that a RawVector leaves it unwritten
    double key;
    std::int64_t a;
    std::int64_t b;
  };

  [[nodiscard]] std::atomic_ref<double> limit_of(std::int64_t label) const noexcept {
    return std::atomic_ref<double>(limits_[static_cast<std::size_t>(label)]);
  }

  mutable core::RawVector<double> limits_;
  core::RawVector<Edge> edges_;
  std::array<std::mutex, 64> locks_;
};

/// Labels are rows, one of each component.
class Components {
 public:
  /// Every row is one.
  Components(const Context& ctx, std::int64_t rows)
      : label_(static_cast<std::size_t>(rows)),
        next_(static_cast<std::size_t>(rows)),
        size_(static_cast<std::size_t>(rows)),
        labels_(static_cast<std::size_t>(rows)) {
    for_each_row(ctx, rows, [&](std::int64_t row) {
      const auto at = static_cast<std::size_t>(row);
      label_[at] = next_[at] = labels_[at] = row;
      size_[at] = 1;
    });
  }
  static std::uint64_t bytes(std::int64_t rows) { return static_cast<std::uint64_t>(rows) * 32; }

  [[nodiscard]] std::int64_t rows() const noexcept { return std::ssize(label_); }
  [[nodiscard]] std::int64_t label(std::int64_t row) const noexcept { return label_[static_cast<std::size_t>(row)]; }
  /// All labels, ascending.
  [[nodiscard]] const core::RawVector<std::int64_t>& labels() const noexcept { return labels_; }
  /// Whether the component with that label is one row.
  [[nodiscard]] bool is_one_row(std::int64_t label) const noexcept {
    return size_[static_cast<std::size_t>(label)] == 1;
  }
  /// The label of the component that has most rows, of equals the smallest.
  [[nodiscard]] std::int64_t largest() const noexcept { return largest_; }

  /// Joins each component to the one at the other end of its lightest edge, if it has one, and appends these edges to
  /// `tree`, each once. Edges have a total order, so no cycle is longer than two components that have the same edge. Of
  /// these the one with the smaller label keeps it. All other components follow their edges to it, or to one that has
  /// no edge.
  void join(const Context& ctx, const LightestEdges& lightest, const Places& places,
            std::vector<kernels::TreeEdge>& tree) {
    for_each_row(ctx, std::ssize(labels_), [&](std::int64_t i) {
      const std::int64_t own = labels_[static_cast<std::size_t>(i)];
      next_[static_cast<std::size_t>(own)] = next_of(own, lightest, places);
    });
    for (int passes = 0; shorten_ways(ctx); ++passes) {
      if (passes > 64) throw Error(ErrorCode::internal, "spanning tree: components follow each other in a circle");
    }
    collect_joined(ctx, lightest, tree);
    for_each_row(ctx, rows(), [&](std::int64_t row) {
      std::int64_t& label = label_[static_cast<std::size_t>(row)];
      const std::int64_t root = next_[static_cast<std::size_t>(label)];
      if (root != label) label = root;
    });
  }

 private:
  /// The label that a component joins, or its own.
  [[nodiscard]] std::int64_t next_of(std::int64_t own, const LightestEdges& lightest, const Places& places) const {
    const kernels::TreeEdge edge = lightest.of(own);
    if (edge.a < 0) return own;
    const std::int64_t at_a = label(places.place(edge.a));
    const std::int64_t other = at_a == own ? label(places.place(edge.b)) : at_a;
    const kernels::TreeEdge back = lightest.of(other);
    return back.a == edge.a && back.b == edge.b && own < other ? own : other;
  }
  /// Keeps the labels that are at the end of their ways, adds up the sizes, notes the largest, and appends the edges of
  /// the others.
  void collect_joined(const Context& ctx, const LightestEdges& lightest, std::vector<kernels::TreeEdge>& tree) {
    constexpr std::int64_t kLabels = 1 << 14;  // of a task
    struct Part {
      std::vector<std::int64_t> left;
      std::size_t first_edge = 0;
      std::int64_t largest = -1;
    };
    const auto replace_if_larger = [&](std::int64_t& largest, std::int64_t label) {
      if (largest < 0 || size_[static_cast<std::size_t>(largest)] < size_[static_cast<std::size_t>(label)]) {
        largest = label;
      }
    };
    const std::int64_t labels = std::ssize(labels_);
    std::vector<Part> parts(static_cast<std::size_t>((labels + kLabels - 1) / kLabels));
    const auto for_each_label = [&](const auto& visit) {
      core::parallel_for(ctx, std::ssize(parts), [&](std::int64_t task, int /*worker*/) {
        for (std::int64_t i = task * kLabels; i < std::min(labels, (task + 1) * kLabels); ++i) {
          const std::int64_t own = labels_[static_cast<std::size_t>(i)];
          visit(parts[static_cast<std::size_t>(task)], own, next_[static_cast<std::size_t>(own)]);
        }
      });
    };
    for_each_label([&](Part& part, std::int64_t own, std::int64_t root) {
      if (root == own) {
        part.left.push_back(own);
        return;
      }
      std::atomic_ref<std::int64_t>(size_[static_cast<std::size_t>(root)])
          .fetch_add(size_[static_cast<std::size_t>(own)], std::memory_order_relaxed);
    });
    std::size_t edges = tree.size();
    for (std::int64_t i = 0; i < std::ssize(parts); ++i) {
      Part& part = parts[static_cast<std::size_t>(i)];
      part.first_edge = edges;
      edges += static_cast<std::size_t>(std::min(kLabels, labels - i * kLabels)) - part.left.size();
    }
    tree.resize(edges);
    for_each_label([&](Part& part, std::int64_t own, std::int64_t root) {
      if (root == own) return replace_if_larger(part.largest, own);
      tree[part.first_edge++] = lightest.of(own);
    });
    labels_.clear();
    largest_ = -1;
    for (const Part& part : parts) {
      ctx.check_cancelled();
      if (part.largest >= 0) replace_if_larger(largest_, part.largest);
      labels_.insert(labels_.end(), part.left.begin(), part.left.end());
    }
  }
  /// Every label that is not at the end of its way goes at least twice as far. Returns whether there was any.
  bool shorten_ways(const Context& ctx) {
    std::atomic<bool> any{false};
    const auto next = [&](std::int64_t label) {
      return std::atomic_ref<std::int64_t>(next_[static_cast<std::size_t>(label)]);
    };
    for_each_row(ctx, std::ssize(labels_), [&](std::int64_t i) {
      const std::int64_t own = labels_[static_cast<std::size_t>(i)];
      const std::int64_t near = next(own).load(std::memory_order_relaxed);
      const std::int64_t far = next(near).load(std::memory_order_relaxed);
      if (far == near) return;
      next(own).store(far, std::memory_order_relaxed);
      any.store(true, std::memory_order_relaxed);
    });
    return any;
  }

  core::RawVector<std::int64_t> label_;  // [n]
  core::RawVector<std::int64_t> next_;   // of each label: itself, or one that it joins
  core::RawVector<std::int64_t> size_;   // of the component with that label
  core::RawVector<std::int64_t> labels_;
  std::int64_t largest_ = 0;
};

}  // namespace vicinal::cpu
