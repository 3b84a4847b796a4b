// The report of `vicinal regress`: one page with the errors, predicted against true values, and the neighborhoods.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/row_names.hpp"
#include "report/neighborhoods.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/regress.hpp"

namespace vicinal::cli::report {

/// Everything is borrowed.
struct RegressionReport {
  std::string train_file;
  std::string test_file;
  std::vector<std::pair<std::string, std::string>> how;  ///< what was asked for, name and value
  std::vector<std::string> names;                        ///< of the outputs
  const TableView* train = nullptr;
  const TableView* test = nullptr;
  const NeighborProfile* profile = nullptr;
  const Regression* found = nullptr;
  std::span<const double> truth;            ///< [m, outputs]; empty: not known
  std::span<const RegressionScore> scores;  ///< of each output; empty without truth
  double seconds = 0;
  RowNames asked;  ///< of the rows that were answered for
};

std::string render(const RegressionReport& report);

}  // namespace vicinal::cli::report
