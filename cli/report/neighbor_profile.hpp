// What pages and summaries show of neighbors: taken from lists as they come, batch by batch, so that no list has to
// stay.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/graph.hpp"

namespace vicinal::cli::report {

/// What a page needs beside the first rows.
struct ProfileDepth {
  std::int64_t kept = 0;  ///< nearest neighbors of each row, with the last distance and the hubness counts; 0: no page
};

/// Of lists in the order of their queries. Rows are queries.
class NeighborProfile {
 public:
  NeighborProfile() = default;
  /// Of m queries among n table rows.
  NeighborProfile(ProfileDepth depth, std::int64_t m, std::int64_t n);
  /// Bytes that a page takes, the profile and what is drawn from it.
  static std::uint64_t page_bytes(ProfileDepth depth, std::int64_t m, std::int64_t n);

  void add(const NeighborGraph& lists);

  std::int64_t rows = 0;        ///< taken so far
  std::int64_t table_rows = 0;  ///< n
  std::int64_t k = 0;           ///< neighbors a row; 0 within a radius
  std::int64_t neighbors = 0;   ///< of all rows
  Metric metric = Metric::euclidean;
  double p = 2;
  Plan plan;
  SearchStats stats;  ///< of the search, to be filled in where that ends after its lists

  [[nodiscard]] bool within_radius() const noexcept { return k == 0; }

  /// The first rows, with up to kNeighborsShown neighbors each.
  struct FirstRow {
    std::int64_t size = 0;  ///< neighbors that were found
    std::vector<std::int64_t> ids;
    std::vector<double> distances;
  };
  static constexpr std::size_t kRowsShown = 10;
  static constexpr std::size_t kNeighborsShown = 100;
  std::vector<FirstRow> first_rows;

  // Of a page. The nearest neighbors that were kept of a row, at most `kept`; how many it has; and the farthest one.
  [[nodiscard]] std::span<const std::int64_t> ids_of(std::int64_t row) const noexcept;
  [[nodiscard]] std::span<const double> distances_of(std::int64_t row) const noexcept;
  [[nodiscard]] std::int64_t size_of(std::int64_t row) const noexcept { return sizes_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] double last_of(std::int64_t row) const noexcept { return last_[static_cast<std::size_t>(row)]; }
  /// How often each table row is a neighbor, [n].
  [[nodiscard]] const std::vector<double>& times_a_neighbor() const noexcept { return times_; }

 private:
  ProfileDepth depth_;
  std::vector<std::int64_t> ids_;    // [m, kept]
  std::vector<double> distances_;    // [m, kept]
  std::vector<std::int64_t> sizes_;  // [m]
  std::vector<double> last_;         // [m]
  std::vector<double> times_;        // [n]
};

}  // namespace vicinal::cli::report
