// All-points core distances of a cluster's rows, and its spanning tree by them (contract clause 21).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/density/placed_rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::ops {

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
