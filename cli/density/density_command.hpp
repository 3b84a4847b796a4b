// What the commands of density clustering have in common: how a table is read and prepared, and known labels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/known_columns.hpp"
#include "base/planned_inputs.hpp"
#include "base/preparation.hpp"
#include "vicinal/io.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal::cli {

/// Rows to work on: prepared, and without those that --missing drop leaves out.
struct DensityRows {
  Table table;
  Preparation preparation = {};    ///< that the table has passed
  std::int64_t read = 0;           ///< rows of the file
  std::vector<std::int64_t> kept;  ///< their numbers in the file, where some were left out; else empty
  [[nodiscard]] std::int64_t dropped() const { return read - table.view.rows(); }
};

struct DensityCommand {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  PreparationArguments prepared;
  std::string table;
  std::string id;
  std::string label;
  std::string labels_file;
  std::string output;
  std::string report;
  bool rates_validity = false;

  [[nodiscard]] const std::string& train() const { return table; }
  [[nodiscard]] const std::string& test() const { return no_file; }
  /// Options that all have, after their own. `labelled`: those of known labels, the validity and the report.
  void add_to(const Parser& app, bool labelled);
  /// Refuses what contradicts itself, before work begins.
  void check() const;
  /// Adds the table, and known labels, to the plan; the table's shape as it will be prepared.
  TableView add_inputs(PlannedInputs& inputs) const;
  [[nodiscard]] DensityRows read_prepared(const Context& ctx) const;
  /// What the table has besides the columns that are compared.
  [[nodiscard]] KnownColumns known_columns(const Context& ctx) const;
  /// Adds the table as rows to place by a model to the plan; its shape as it will be prepared.
  TableView add_asked(PlannedInputs& inputs, const KnownColumns& known, const Preparation& preparation,
                      std::int64_t width) const;
  /// The table as rows to place by a model: prepared as the model's were.
  [[nodiscard]] DensityRows read_asked(const Context& ctx, const KnownColumns& known, const Preparation& preparation,
                                       std::int64_t width) const;
  /// How well clusters agree with the labels that are known; none where there are none.
  [[nodiscard]] std::optional<ClusteringScores> agreement_of(const Context& ctx, const DensityRows& rows,
                                                             std::span<const std::int64_t> labels,
                                                             std::int64_t clusters) const;
  /// Bytes that `agreement_of`, a report and an output take.
  [[nodiscard]] std::uint64_t bytes_after(const TableView& rows) const;

 private:
  [[nodiscard]] ReadOptions reading() const;
  [[nodiscard]] ReadOptions reading_of_asked(const Context& ctx, const KnownColumns& known,
                                             const Preparation& preparation, std::int64_t width) const;

  std::string no_file;
};

}  // namespace vicinal::cli
