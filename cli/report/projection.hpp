// A table of many columns seen on two: its first principal components.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/sample.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli::report {

/// Rows of a table that a report draws at most.
inline constexpr std::int64_t kSampleRows = 2000;

struct Point {
  double x = 0;
  double y = 0;
};

struct Projection {
  std::vector<Point> rows;
  std::vector<Point> centres;
  double share[2] = {};  ///< of the rows' variance that each component has
};

/// Of the smallest box that holds all points.
struct Corners {
  Point low;
  Point high;
};
/// There must be a row.
Corners corners_of(const Projection& projection);

/// The sample's rows and the centers [k, cols] on the two components of the sample's largest variance, in units of its
/// largest deviation. The same sample gives the same picture everywhere.
Projection project(const Context& ctx, const TableSample& sample, std::span<const double> centres);

/// "All rows", or "2,000 of 100,000 rows" of a sample.
std::string sampled_text(const TableSample& sample, const TableView& table);
/// Where a picture shows them: "on the two principal components, which have ..", or "along their one column".
std::string projected_text(const Projection& projection, const TableView& table);

/// Bytes of a sample of kSampleRows of a table, and of its projection.
std::uint64_t projection_bytes(const TableView& table);

}  // namespace vicinal::cli::report
