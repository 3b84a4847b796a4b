// See density_command.hpp.
#include "density/density_command.hpp"

#include <fmt/core.h>

#include <utility>

#include "base/output.hpp"
#include "base/row_names.hpp"
#include "kmeans/agreement.hpp"
#include "report/projection.hpp"

namespace vicinal::cli {

void DensityCommand::add_to(const Parser& app, bool labelled) {
  if (labelled) {
    const std::string group = "Labels";
    app.add_option("--label", label, "CSV column with known labels, to compare the clusters with")
        .type_name("COLUMN")
        .group(group);
    app.add_option("--labels", labels_file, "Separate file with the known labels: .npy, idx or text")
        .type_name("FILE")
        .group(group);
    app.add_flag("--validity", rates_validity, "Rate the clusters by density (DBCV), from all pairs of rows")
        .group("Clustering");
    app.add_option("--report", report, "HTML report with the clusters").type_name("FILE");
  }
  add_metric_options(app, search);
  add_preparation_options(app, prepared);
  add_input_options(app, input);
  add_id_option(app, id);
  add_common_options(app, common);
}

void DensityCommand::check() const {
  check_output("-o", output, {".csv", ".npy", ".npz"});
  check_output("--report", report, {".html", ".htm"});
  refuse_labels_twice(label, labels_file);
  prepared.missing.refuse_drop_into(output);
}

ReadOptions DensityCommand::reading() const {
  ReadOptions reading = read_options(input);
  reading.label = label;
  reading.id = id;
  prepared.ask_for_texts(reading);
  reading.missing = prepared.missing.any();
  return reading;
}

TableView DensityCommand::add_inputs(PlannedInputs& inputs) const {
  if (prepared.categories == "onehot") inputs.add_unknown();
  TableView rows = inputs.add_table(table, reading());
  if (!labels_file.empty()) inputs.add_labels(labels_file);
  if (rows.rows() > 0 && (prepared.any() || prepared.missing.drops())) {
    rows = TableView(rows.data(), DType::float64, rows.rows(), rows.cols(), 0, 0);
    if (prepared.any()) inputs.add(static_cast<std::uint64_t>(rows.rows() * rows.cols()) * sizeof(double));
    inputs.add(prepared.missing.fill_bytes(inputs.context(), rows));
  }
  return rows;
}

DensityRows DensityCommand::read_prepared(const Context& ctx) const {
  DensityRows rows;
  rows.table = naming_missing([&] { return read_rows(ctx, table, reading()); });
  rows.read = rows.table.view.rows();
  rows.kept = prepared.missing.drop_rows(ctx, rows.table, table);
  require_ids_fit(ctx, output, table, rows.table);
  if (!prepared.any()) return rows;
  rows.preparation = Preparation::fit(ctx, rows.table, prepared.options());
  rows.table = rows.preparation.apply(ctx, std::move(rows.table), table);
  return rows;
}

KnownColumns DensityCommand::known_columns(const Context& ctx) const {
  const std::vector<std::string> labels = label.empty() ? std::vector<std::string>() : std::vector{label};
  return by_names(ctx, table, reading(), {labels, input.drop, id});
}

ReadOptions DensityCommand::reading_of_asked(const Context& ctx, const KnownColumns& known,
                                             const Preparation& preparation, std::int64_t width) const {
  ReadOptions given = read_options(input);
  given.label = label;
  given.id = id;
  return asked_reading(ctx, table, std::move(given), known, preparation, width, false).options;
}

TableView DensityCommand::add_asked(PlannedInputs& inputs, const KnownColumns& known, const Preparation& preparation,
                                    std::int64_t width) const {
  TableView rows = inputs.add_table(table, reading_of_asked(inputs.to_look(), known, preparation, width));
  if (rows.rows() == 0 || !preparation.changes_rows()) return rows;
  TableView shape(rows.data(), DType::float64, rows.rows(), preparation.width(), 0, 0);
  inputs.add(static_cast<std::uint64_t>(shape.rows() * shape.cols()) * sizeof(double));
  const Imputer& imputer = preparation.imputer();
  if (imputer.filling() == Filling::none) return shape;
  const TableView donors = imputer.filling() == Filling::knn ? imputer.donors() : rows;
  inputs.add(plan_impute(inputs.context(), donors, rows, {.filling = imputer.filling(), .k = imputer.k()}).memory);
  return shape;
}

DensityRows DensityCommand::read_asked(const Context& ctx, const KnownColumns& known, const Preparation& preparation,
                                       std::int64_t width) const {
  DensityRows rows;
  rows.table = preparation.apply(ctx, read_rows(ctx, table, reading_of_asked(ctx, known, preparation, width)), table);
  rows.read = rows.table.view.rows();
  require_ids_fit(ctx, output, table, rows.table);
  return rows;
}

std::optional<ClusteringScores> DensityCommand::agreement_of(const Context& ctx, const DensityRows& rows,
                                                             std::span<const std::int64_t> labels,
                                                             std::int64_t clusters) const {
  std::optional<Labels> known = rows.table.labels;
  if (!labels_file.empty()) {
    known = read_labels(ctx, labels_file);
    require_labels("--labels", labels_file, *known, rows.read);
    keep_rows(rows.kept, 1, known->codes);
  }
  if (!known) return std::nullopt;
  // Noise is a cluster of its own, as in scikit-learn's metrics.
  std::vector<std::int32_t> codes;
  bool has_noise = false;
  for (const std::int64_t of_row : labels) {
    has_noise = has_noise || of_row < 0;
    codes.push_back(static_cast<std::int32_t>(of_row < 0 ? clusters : of_row));
  }
  return agreement(ctx, *known, codes, clusters + (has_noise ? 1 : 0));
}

std::uint64_t DensityCommand::bytes_after(const TableView& rows) const {
  constexpr std::uint64_t kLine = std::uint64_t{2} * 80;  // of CSV, which grows as it is written
  const bool compares = !label.empty() || !labels_file.empty();
  const std::uint64_t per_row = (is_csv_output(output) ? kLine : 0) + (compares ? 16 : 0);
  return static_cast<std::uint64_t>(rows.rows()) * per_row + (report.empty() ? 0 : report::projection_bytes(rows));
}

}  // namespace vicinal::cli
