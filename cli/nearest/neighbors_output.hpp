// What `knn` and `radius` have in common: their options, and how neighbors that were found are written and told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/common_options.hpp"
#include "base/missing.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

struct FoundNeighbors {
  const Table& rows;
  const Table& asked;  ///< not looked at where there are no queries
  const NeighborGraph& graph;
  double seconds = 0;
  std::optional<double> radius = {};  ///< none: k nearest rows
  /// Where rows with missing values were left out: the numbers in its file of each row that is left, else empty.
  const std::vector<std::int64_t>& kept;
};

/// The tables of a command, without missing values.
struct NeighborTables {
  Table rows;
  Table asked;
  std::vector<std::int64_t> kept = {};  ///< as FoundNeighbors
};

struct NeighborsCommand {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  MissingArguments missing;
  std::string table;
  std::string queries;  ///< empty: the table within itself
  std::string output;
  std::string report;
  std::string image_shape;

  [[nodiscard]] const std::string& train() const { return table; }
  [[nodiscard]] const std::string& test() const { return queries; }
  /// Options that both have, after their own.
  void add_to(const Parser& app);
  [[nodiscard]] ReadOptions reading() const;
  /// Reads the tables, and drops rows or fills values by --missing.
  [[nodiscard]] NeighborTables read(const Runtime& runtime) const;
  /// Bytes that the latter takes, of tables with these shapes.
  [[nodiscard]] std::uint64_t missing_bytes(const TableView& rows, const TableView& asked) const;
  /// Writes lists and page, both or neither, and prints what was found: as JSON, or its first rows and a sentence.
  void deliver(const Runtime& runtime, const FoundNeighbors& found) const;
};

}  // namespace vicinal::cli
