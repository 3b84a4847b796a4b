// The report of `vicinal knn` and `vicinal radius`: one page with how far neighbors are, who is often one, and which
// rows are nearest to and farthest from theirs.
#pragma once

#include <string>

#include "report/neighborhoods.hpp"

namespace vicinal::cli::report {

/// Everything is borrowed.
struct NeighborsReport {
  std::string table_file;
  std::string queries_file;  ///< empty: the table within itself
  double radius = 0;         ///< where they are those within one
  std::int64_t most = 0;     ///< then the largest number of neighbors of a row; 0: any
  double seconds = 0;
  Neighborhoods shown;
};

std::string render(const NeighborsReport& report);

}  // namespace vicinal::cli::report
