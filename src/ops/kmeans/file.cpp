// KMeansModel: its file is an index (ops/nearest/index_file.hpp) of the centers, in which a row's label is its nearest
// neighbor, with the clusters' sizes as a further array. What is read passes the checks that a caller's own model
// passes.
#include <algorithm>
#include <cmath>
#include <string>

#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "core/table_access.hpp"
#include "ops/common/model_reader.hpp"
#include "ops/common/preparation_text.hpp"
#include "ops/common/prepared_rows.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/check.hpp"
#include "vicinal/kmeans_model.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

using ops::kClusterFile;

void check_clusters(const KMeans& model) {
  ops::check_model(model);
  if (static_cast<std::int64_t>(model.sizes.size()) != model.clusters ||
      std::any_of(model.sizes.begin(), model.sizes.end(), [](std::int64_t size) { return size < 0; })) {
    refuse("model: it must have one size of at least 0 for each of its " + std::to_string(model.clusters) +
           " clusters");
  }
  if (!(model.inertia >= 0) || model.iterations < 0) {
    refuse("model: its inertia is NaN or below 0, or its iterations are below 0");
  }
}

}  // namespace

void KMeansModel::save(const Context& ctx, const std::filesystem::path& path) const try {
  const core::Entry entry;
  check_clusters(fitted);
  const Index index(ctx, TableView(fitted.centres.data(), fitted.clusters, fitted.cols));
  ops::ModelParts parts;
  parts.metadata = {{"metric", std::string(name_of(fitted.metric))},
                    {"inertia", ops::text_of(fitted.inertia)},
                    {"iterations", ops::text_of(fitted.iterations)},
                    {"notes", notes}};
  parts.arrays = {{"sizes", "I64", {fitted.clusters}, fitted.sizes.data()}};
  ops::add_preparation(parts, preparation, fitted.cols);
  ops::write_index(ctx, path, kernels::prepared_of(index), kClusterFile, parts);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

KMeansModel KMeansModel::load(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  ops::ModelParts parts;
  const auto centres = ops::load_index(ctx, path, kClusterFile, &parts);
  ops::ModelReader file(kClusterFile, path, parts);
  const TableView& table = centres->table;
  file.require(table.dtype() == DType::float64, "its centers are not float64");
  core::require_memory(ctx, static_cast<std::uint64_t>(table.rows() * table.cols()) * 8 + ops::numbers_in(parts) * 8,
                       "loading the model '" + path.string() + "'");
  KMeansModel model;
  KMeans& fitted = model.fitted;
  fitted.clusters = table.rows();
  fitted.cols = table.cols();
  fitted.centres.resize(static_cast<std::size_t>(table.rows() * table.cols()));
  core::widen_rows(table, 0, table.rows(), fitted.centres.data());
  fitted.metric = file.named("metric", metric_from);
  fitted.inertia = file.number<double>("inertia");
  fitted.iterations = file.number<std::int64_t>("iterations");
  model.notes = file.text("notes");
  model.preparation = ops::read_preparation(file, fitted.cols, model.notes);
  if (const ops::ModelArray* const sizes = file.array("sizes", "I64", {fitted.clusters})) {
    fitted.sizes = ops::ModelReader::values<std::int64_t>(*sizes);
  }
  file.require_all_seen();
  try {
    check_clusters(fitted);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::bad_data) throw;
    file.refuse(error.what());
  }
  return model;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::int32_t> predict(const Context& ctx, const KMeansModel& model, const Table& table) try {
  const core::Entry entry;
  return ops::with_prepared(ctx, model.preparation, table, "table", [&](const Context& rest, const TableView& rows) {
    return predict(rest, model.fitted, rows);
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::int32_t> predict(const Context& ctx, const KMeansModel& model, const TableView& table) try {
  const core::Entry entry;
  return ops::with_prepared(ctx, model.preparation, table, "table", [&](const Context& rest, const TableView& rows) {
    return predict(rest, model.fitted, rows);
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> transform(const Context& ctx, const KMeansModel& model, const Table& table) try {
  const core::Entry entry;
  return ops::with_prepared(ctx, model.preparation, table, "table", [&](const Context& rest, const TableView& rows) {
    return transform(rest, model.fitted, rows);
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> transform(const Context& ctx, const KMeansModel& model, const TableView& table) try {
  const core::Entry entry;
  return ops::with_prepared(ctx, model.preparation, table, "table", [&](const Context& rest, const TableView& rows) {
    return transform(rest, model.fitted, rows);
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

double score(const Context& ctx, const KMeansModel& model, const Table& table, std::span<const double> weights) try {
  const core::Entry entry;
  return ops::with_prepared(ctx, model.preparation, table, "table", [&](const Context& rest, const TableView& rows) {
    return score(rest, model.fitted, rows, weights);
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

double score(const Context& ctx, const KMeansModel& model, const TableView& table,
             std::span<const double> weights) try {
  const core::Entry entry;
  return ops::with_prepared(ctx, model.preparation, table, "table", [&](const Context& rest, const TableView& rows) {
    return score(rest, model.fitted, rows, weights);
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
