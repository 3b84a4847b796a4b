// What `knn` and `radius` have in common: their options, and how neighbors that were found are written and told.
#pragma once

#include <optional>
#include <string>

#include "base/common_options.hpp"
#include "io/atomic_file.hpp"
#include "report/neighbor_profile.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

struct FoundNeighbors {
  const Table& rows;
  const Table& asked;  ///< not looked at where there are no queries
  const report::NeighborProfile& profile;
  double seconds = 0;
  std::optional<double> radius = {};  ///< none: k nearest rows
};

struct NeighborsCommand {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  std::string table;
  std::string queries;  ///< empty: the table within itself
  std::string output;
  std::string report;
  std::string image_shape;

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
  /// Writes the page, has it appear with the lists that `together` has, and prints what was found: as JSON, or its
  /// first rows and a sentence.
  void deliver(const Runtime& runtime, const FoundNeighbors& found, io::OutputGroup& together) const;
};

}  // namespace vicinal::cli
