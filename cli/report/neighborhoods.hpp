// Sections about neighbors that several pages have: how far they are, how often a row is one, and which rows are
// closest and farthest from theirs.
#pragma once

#include <cstdint>
#include <string>

#include "base/row_names.hpp"
#include "report/neighbor_profile.hpp"
#include "report/picture.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli::report {

/// Neighbors and the rows that they join; borrowed. `queries` is `table` where a table was searched within itself.
struct Neighborhoods {
  const NeighborProfile* profile = nullptr;
  const TableView* table = nullptr;
  const TableView* queries = nullptr;
  bool self = false;
  ImageShape image = {};
  RowNames rows = {};   ///< of the table
  RowNames asked = {};  ///< of the queries
};

/// How often each table row is a neighbor, and what that says.
struct Hubness {
  std::int64_t never = 0;  ///< rows that are nobody's neighbor
  std::int64_t most = 0;   ///< times the most popular row is one
  double skewness = 0;     ///< of the counts (Radovanovic et al. 2010); above 1 a few rows are everybody's neighbors
};
Hubness hubness_of(const NeighborProfile& profile);

/// Two sections side by side: histograms of the distances to the first and to the last neighbor; for a radius the
/// second is of the number of neighbors.
std::string distances_pair(const Neighborhoods& shown);
/// A section.
std::string hubness_section(const NeighborProfile& profile, const Hubness& hubness);
/// A section each: the rows nearest to their nearest neighbor, and the farthest from it.
std::string pairs_sections(const Neighborhoods& shown);

}  // namespace vicinal::cli::report
