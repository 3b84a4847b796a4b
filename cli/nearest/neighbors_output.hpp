// What `knn` and `radius` have in common: their options, and how neighbors that were found are written and told.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/common_options.hpp"
#include "base/missing.hpp"
#include "base/output_files.hpp"
#include "base/resume_folder.hpp"
#include "base/row_names.hpp"
#include "nearest/graph_output.hpp"
#include "report/neighbor_profile.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

/// What rows are called.
struct NeighborNames {
  RowNames rows;   ///< of the table
  RowNames asked;  ///< of the rows that were asked about
};

/// What `knn` asked for.
struct NearestWanted {
  std::int64_t k = 0;
  double max_radius = std::numeric_limits<double>::infinity();
};

struct FoundNeighbors {
  const Table& rows;
  const Table& asked;                      ///< not looked at where there are no queries
  const report::NeighborProfile& profile;  ///< of the lists that the search found, for the page
  const report::NeighborProfile& written;  ///< of those that are written and printed
  std::span<const std::int64_t> numbers;   ///< of the rows that were asked about, in their file; empty: 0, 1, ..
  NeighborNames names;
  std::int64_t dropped = 0;  ///< rows of the table that were left out
  double seconds = 0;
  std::optional<double> radius = {};  ///< none: k nearest rows
  NearestWanted nearest = {};         ///< then these
};

/// The tables of a command, without missing values. The ids of `rows` are those of all rows in its file.
struct NeighborTables {
  Table rows;
  Table asked;
  /// Where rows with missing values were left out: the numbers in its file of the rows that are left; else empty.
  std::vector<std::int64_t> kept = {};
  std::int64_t dropped = 0;  ///< how many were left out
};

struct NeighborsCommand {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  MissingArguments missing;
  GraphOutput graph_output;
  std::string table;
  std::string queries;    ///< empty: the table within itself
  std::string row_range;  ///< of a shard; empty: all rows, and no part is written
  std::string id;
  std::string output;
  std::string report;
  std::string image_shape;
  ResumeArguments resume;

  [[nodiscard]] const std::string& train() const { return table; }
  [[nodiscard]] const std::string& test() const { return queries; }
  /// Options that both have, after their own.
  void add_to(const Parser& app);
  /// What is to be kept of lists: more than the first rows only for a page.
  [[nodiscard]] report::ProfileDepth depth() const { return {report.empty() ? 0 : 1}; }
  /// Bytes that the page takes, of a search of these shapes.
  [[nodiscard]] std::uint64_t page_bytes(const TableView& rows, const TableView& asked) const;
  /// An empty profile of a search.
  [[nodiscard]] report::NeighborProfile profile_of(const Table& rows, const Table& asked) const;
  /// Writes a whole graph of k neighbors a row, changed as asked for and renumbered where rows were left out, and
  /// delivers it.
  void deliver_graph(const Runtime& runtime, const NeighborTables& tables, NeighborGraph graph,
                     const NearestWanted& wanted, std::chrono::steady_clock::time_point start) const;
  /// Writes the page, has it appear with the lists that `together` has, and prints what was found: as JSON, or its
  /// first rows and a sentence.
  void deliver(const Runtime& runtime, const FoundNeighbors& found, OutputFiles& together) const;
  [[nodiscard]] ReadOptions reading() const;
  [[nodiscard]] ReadOptions reading_of_queries(const Context& ctx, const Table& rows) const;
  /// Reads the tables, and drops rows or fills values by --missing.
  [[nodiscard]] NeighborTables read(const Runtime& runtime, const RowsNeeded& needed = {}) const;
  /// The numbers in its file of the rows that are asked about, where some were left out.
  [[nodiscard]] std::span<const std::int64_t> row_numbers(const NeighborTables& tables) const;
  [[nodiscard]] NeighborNames names(const NeighborTables& tables) const;
  /// How the lists are written, with the numbers and ids of rows.
  [[nodiscard]] GraphWriteOptions write_options(const NeighborTables& tables) const;
};

/// Writes how many neighbors each row has, to .npy or .csv.
void write_counts(const std::string& output, const std::vector<std::int64_t>& counts, const RowNames& names);

}  // namespace vicinal::cli
