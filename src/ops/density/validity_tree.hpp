// Rows of clusters as validity needs them, and the spanning tree of one cluster by its all-points core distances
// (contract clause 21).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::ops {

/// Rows in places, those of a cluster one after the other, and their distances.
class PlacedRows {
 public:
  /// `rows`: the table's row at each place.
  PlacedRows(const Context& ctx, const TableView& table, std::vector<std::int64_t> rows, Metric metric, double p);

  [[nodiscard]] std::int64_t cols() const noexcept { return cols_; }
  [[nodiscard]] std::int64_t count() const noexcept { return static_cast<std::int64_t>(rows_.size()); }
  /// As reported (contract clause 2). Throws `bad_data` where it overflows.
  [[nodiscard]] double distance(std::int64_t a, std::int64_t b) const;

 private:
  [[nodiscard]] double key(std::int64_t a, std::int64_t b) const;
  [[noreturn]] void refuse_overflow(std::int64_t a, std::int64_t b) const;

  std::vector<std::int64_t> rows_;
  std::int64_t cols_;
  Metric metric_;
  double p_;
  std::vector<double> values_;         // [count, cols]; of cosine brought to length one
  std::vector<std::uint8_t> is_zero_;  // of cosine
};

/// Calls body(first, last, worker) for ranges of [begin, end) of about as much work, on all threads where it is worth
/// it. `cols`: of what is compared for each.
void for_ranges(const Context& ctx, std::int64_t begin, std::int64_t end, std::int64_t cols,
                const std::function<void(std::int64_t first, std::int64_t last, int worker)>& body);
/// How many ranges these are at most, and the first one's length.
std::int64_t range_length(std::int64_t cols) noexcept;

/// The places of one cluster, at least two.
struct ClusterPlaces {
  std::int64_t begin;
  std::int64_t end;
};

/// Sets the all-points core distances of a cluster's places. `rooms`: [threads] of as many numbers as it has places.
void find_core_distances(const Context& ctx, const PlacedRows& rows, const ClusterPlaces& cluster,
                         std::vector<std::vector<double>>& rooms, std::vector<double>& cores);

/// The spanning tree of one cluster after the other, in the same arrays.
class InnerTree {
 public:
  InnerTree(const Context& ctx, const PlacedRows& rows, std::span<const double> cores, std::int64_t most_places);

  /// The longest edge between inner places, or of all where there is none. Marks the inner places.
  double find(const ClusterPlaces& cluster, std::vector<std::uint8_t>& is_inner);

 private:
  /// How an open place is reached: from a placed one.
  struct Edge {
    double weight;
    double distance;
    std::int64_t from;
  };

  [[nodiscard]] static bool is_before(const Edge& a, std::int64_t to_a, const Edge& b, std::int64_t to_b) noexcept;
  /// Reaches open places from a new one; returns the first of all edges.
  std::int64_t grow(const ClusterPlaces& cluster, std::int64_t place);

  const Context& ctx_;
  const PlacedRows& rows_;
  std::span<const double> cores_;
  std::vector<Edge> edges_;               // [places of a cluster] to each; of a placed one that of the tree
  std::vector<std::uint8_t> is_placed_;   // [places of a cluster]
  std::vector<std::int64_t> degrees_;     // [places of a cluster]
  std::vector<std::int64_t> range_best_;  // of each range, -1: none
};

}  // namespace vicinal::ops
