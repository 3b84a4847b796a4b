// See file.hpp. A file says nothing that is not checked, and what is read is checked like a model that a caller
// made, so that whatever loads can be asked.
#include "ops/lof/file.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/model_reader.hpp"
#include "ops/common/preparation_text.hpp"
#include "ops/common/prepared_rows.hpp"
#include "ops/lof/check.hpp"

namespace vicinal {
namespace ops {
namespace {

/// Numbers from 0, infinity included; none where the file has no such array.
std::vector<double> numbers(ModelReader& file, const std::string& name, const std::vector<std::int64_t>& shape) {
  const ModelArray* const found = file.array(name, "F64", shape);
  if (found == nullptr) return {};
  std::vector<double> values = ModelReader::values<double>(*found);
  file.require(std::all_of(values.begin(), values.end(), [](double x) { return x >= 0; }),
               "its '" + name + "' has a number that is NaN or below 0");
  return values;
}

}  // namespace

Lof read_lof(const std::filesystem::path& path, std::int64_t n, const ModelParts& parts) {
  ModelReader file(kLofFile, path, parts);
  Lof model;
  LofOptions& options = model.options;
  options.k = file.number<std::int64_t>("k");
  options.k_to = file.number<std::int64_t>("k_to");
  options.across = file.named("across", across_k_from);
  options.score = file.named("score", outlier_score_from);
  options.duplicates = file.named("duplicates", duplicates_from);
  options.ties = file.named("ties", ties_from);
  options.lambda = file.number<double>("lambda");
  options.contamination = file.number<double>("contamination");
  options.novelty = true;
  options.metric = file.named("metric", metric_from);
  options.p = file.number<double>("p");
  options.method = file.named("method", method_from);
  model.threshold = file.number<double>("threshold");
  model.outliers = file.number<std::int64_t>("outliers");
  model.copied = file.number<std::int64_t>("copied");
  model.spread = file.number<double>("spread");
  file.require(!std::isnan(model.threshold) && model.spread >= 0, "its threshold or spread is not a number");
  file.require(model.outliers >= 0 && model.outliers <= n && model.copied >= 0 && model.copied <= n,
               "its counts do not fit its rows");
  file.require(options.k >= 1 && options.k < n && (options.k_to == 0 || options.k_to > options.k) && options.k_to < n,
               "its k does not fit its rows");
  const std::int64_t ks = longest_k(options) - options.k + 1;
  model.scores = numbers(file, "lof_scores", {n});
  model.k_distances = numbers(file, "lof_k_distances", {n, ks});
  model.densities = numbers(file, "lof_densities", {n, ks});
  model.caps = numbers(file, "lof_caps", {ks});
  file.require(!model.scores.empty(), "it has no scores");
  file.require(model.outliers == std::count_if(model.scores.begin(), model.scores.end(),
                                               [&](double score) { return score > model.threshold; }),
               "its outliers are not the scores above its threshold");
  file.require(model.caps.empty() || options.duplicates == Duplicates::cap, "it has caps that no policy asks for");
  expect_preparation(file);
  file.require_all_seen();
  try {
    check_lof_model(model, n);
  } catch (const Error& error) {
    file.require(error.code() != ErrorCode::invalid_argument, error.what());
    throw;
  }
  return model;
}

}  // namespace ops

void LofModel::save(const Context& ctx, const std::filesystem::path& path) const try {
  const core::Entry entry;
  const std::int64_t n = index.rows();
  ops::check_lof_model(fitted, n);
  if (static_cast<std::int64_t>(fitted.scores.size()) != n) {
    throw Error(ErrorCode::invalid_argument,
                "model: has " + std::to_string(fitted.scores.size()) + " scores of " + std::to_string(n) + " rows");
  }
  const auto ks = static_cast<std::int64_t>(fitted.k_distances.size()) / n;
  const LofOptions& options = fitted.options;
  ops::ModelParts parts;
  parts.metadata = {{"k", ops::text_of(options.k)},
                    {"k_to", ops::text_of(options.k_to)},
                    {"across", std::string(name_of(options.across))},
                    {"score", std::string(name_of(options.score))},
                    {"duplicates", std::string(name_of(options.duplicates))},
                    {"ties", std::string(name_of(options.ties))},
                    {"lambda", ops::text_of(options.lambda)},
                    {"contamination", ops::text_of(options.contamination)},
                    {"metric", std::string(name_of(options.metric))},
                    {"p", ops::text_of(options.p)},
                    {"method", std::string(name_of(options.method))},
                    {"threshold", ops::text_of(fitted.threshold)},
                    {"outliers", ops::text_of(fitted.outliers)},
                    {"copied", ops::text_of(fitted.copied)},
                    {"spread", ops::text_of(fitted.spread)},
                    {"notes", notes}};
  if (!fitted.caps.empty()) parts.arrays.push_back({"lof_caps", "F64", {ks}, fitted.caps.data()});
  if (!fitted.densities.empty()) parts.arrays.push_back({"lof_densities", "F64", {n, ks}, fitted.densities.data()});
  parts.arrays.push_back({"lof_k_distances", "F64", {n, ks}, fitted.k_distances.data()});
  parts.arrays.push_back({"lof_scores", "F64", {n}, fitted.scores.data()});
  ops::add_preparation(parts, preparation, index.cols());
  ops::write_index(ctx, path, kernels::prepared_of(index), ops::kLofFile, parts);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

LofModel LofModel::load(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  ops::ModelParts parts;
  auto prepared = ops::load_index(ctx, path, ops::kLofFile, &parts);
  core::require_memory(ctx, ops::numbers_in(parts) * 8, "loading the model '" + path.string() + "'");
  Lof fitted = ops::read_lof(path, prepared->table.rows(), parts);
  ops::ModelReader file(ops::kLofFile, path, parts);
  std::string notes = file.text("notes");
  Preparation preparation = ops::read_preparation(file, prepared->table.cols(), notes);
  return {kernels::index_of(std::move(prepared)), std::move(fitted), std::move(notes), std::move(preparation)};
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

namespace {

/// Of rows as the model's were given: a Table or a TableView.
template <class Rows>
std::vector<double> of_prepared(const Context& ctx, const LofModel& model, const Rows& queries) {
  return ops::with_prepared(
      ctx, model.preparation, queries, "queries",
      [&](const Context& rest, const TableView& rows) { return novelty(rest, model.index, model.fitted, rows); });
}

}  // namespace

std::vector<double> novelty(const Context& ctx, const LofModel& model, const Table& queries) try {
  const core::Entry entry;
  return of_prepared(ctx, model, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> novelty(const Context& ctx, const LofModel& model, const TableView& queries) try {
  const core::Entry entry;
  return of_prepared(ctx, model, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
