// A table of many columns seen on two: its first principal components.
#pragma once

#include <span>
#include <vector>

#include "kmeans/silhouette.hpp"

namespace vicinal::cli::report {

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

/// The sample's rows and the centres [k, cols] on the two components of the sample's largest variance, in units of its
/// largest deviation. Block power iteration on a few vectors, then Jacobi's rotations on what they span; one thread,
/// fixed order, so that the same sample gives the same picture everywhere. O(s cols) an iteration, 60 at most.
Projection project(const Sample& sample, std::span<const double> centres);

}  // namespace vicinal::cli::report
