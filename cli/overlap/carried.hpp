// Columns of the old map that --carry, --carry-sum and --carry-mean give to the features of the new one.
#pragma once

#include <string>
#include <vector>

#include "vicinal/carry.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {

/// Names of columns.
struct CarryOptions {
  std::vector<std::string> largest;  ///< texts of the largest share
  std::vector<std::string> sum;      ///< amounts, divided by area
  std::vector<std::string> mean;     ///< rates, averaged by area

  [[nodiscard]] bool empty() const { return largest.empty() && sum.empty() && mean.empty(); }
  /// All of them. Throws `invalid_argument` for one that is named twice.
  [[nodiscard]] std::vector<std::string> columns() const;
};

struct CarriedColumns {
  std::vector<PolygonColumn> columns;  ///< old_NAME and old_NAME_share of each, in the order of CarryOptions::columns
  std::vector<double> left;            ///< of each of `sum`: what no feature of the new map has
  std::vector<double> total;           ///< of each of `sum`: of the old map
};

/// Throws `bad_data`, naming feature and column, for a text that spells no number where one is asked for.
CarriedColumns carry_columns(const Context& ctx, const CarryOptions& options, const std::string& path_a,
                             const PolygonLayers& layers, const Match& match);

/// id, name, change and status of each feature of the new map, and what was carried to it.
std::string carried_csv(const PolygonLayers& layers, const Match& match, const CarriedColumns& carried);

}  // namespace vicinal::cli
