// What `knn` and `radius` have in common: their options, and how neighbors that were found are written and told.
#pragma once

#include <optional>
#include <string>

#include "base/common_options.hpp"
#include "nearest/graph_output.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

struct FoundNeighbors {
  const Table& rows;
  const Table& asked;  ///< not looked at where there are no queries
  const NeighborGraph& graph;
  double seconds = 0;
  std::optional<double> radius = {};  ///< none: k nearest rows
};

struct NeighborsCommand {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  GraphOutput graph_output;
  std::string table;
  std::string queries;  ///< empty: the table within itself
  std::string output;
  std::string report;
  std::string image_shape;

  [[nodiscard]] const std::string& train() const { return table; }
  [[nodiscard]] const std::string& test() const { return queries; }
  /// Options that both have, after their own.
  void add_to(const Parser& app);
  /// Writes lists and page, both or neither, and prints what was found: as JSON, or its first rows and a sentence.
  void deliver(const Runtime& runtime, const FoundNeighbors& found) const;
};

}  // namespace vicinal::cli
