// LleModel: its file is an index (ops/nearest/index_file.hpp) of the table, with the embedding, the pieces and their
// singular values as further arrays, and the options as texts of its metadata. What is read passes the checks that a
// caller's own model passes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/model_reader.hpp"
#include "ops/common/preparation_text.hpp"
#include "ops/common/prepared_rows.hpp"
#include "ops/common/refuse.hpp"
#include "ops/lle/check.hpp"
#include "ops/nearest/index_file.hpp"
#include "vicinal/lle_model.hpp"

namespace vicinal {
namespace {

using ops::kEmbeddingFile;
using ops::ModelReader;

/// Of a caller or a file: what `transform` and `lle_quality` can be asked of.
void check_embedding(const Lle& fitted, std::int64_t n) {
  ops::check_lle_fitted(fitted, n);
  ops::check_lle_options(fitted.options, n);
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(fitted.embedding.begin(), fitted.embedding.end(), finite) || !(fitted.eigenvalue_sum >= 0)) {
    refuse("model: its embedding or sum of eigenvalues is not finite");
  }
  std::int64_t pieces = 0;
  std::vector<std::int64_t> rows(fitted.pieces.size(), 0);
  for (const std::int64_t piece : fitted.piece) {
    if (piece > pieces || piece >= static_cast<std::int64_t>(rows.size())) {
      refuse("model: its pieces are not numbered by their smallest rows");
    }
    pieces = std::max(pieces, piece + 1);
    ++rows[static_cast<std::size_t>(piece)];
  }
  for (std::size_t p = 0; p < rows.size(); ++p) {
    const LlePiece& piece = fitted.pieces[p];
    const bool ascending = std::all_of(piece.singular_values.begin(), piece.singular_values.end(),
                                       [](double x) { return x >= 0 && std::isfinite(x); });
    if (rows[p] == 0 || piece.rows != rows[p] || !ascending ||
        static_cast<std::int64_t>(piece.singular_values.size()) != fitted.options.dim) {
      refuse("model: a piece has not the rows or singular values that it must have");
    }
  }
}

Lle read_embedding(ModelReader& file, std::int64_t n) {
  Lle fitted;
  LleOptions& options = fitted.options;
  options.k = file.number<std::int64_t>("k");
  options.dim = file.number<std::int64_t>("dim");
  options.variant = file.named("variant", lle_variant_from);
  options.reg = file.number<double>("reg");
  options.metric = file.named("metric", metric_from);
  options.p = file.number<double>("p");
  options.method = file.named("method", method_from);
  fitted.eigenvalue_sum = file.number<double>("error");
  file.require(options.dim >= 1 && options.dim < n, "its 'dim' does not fit its rows");
  const ops::ModelArray* const embedding = file.array("embedding", "F64", {n, options.dim});
  const ops::ModelArray* const piece = file.array("piece", "I64", {n});
  const ops::ModelArray* const values = file.array("singular_values", "F64", {-1, options.dim});
  if (embedding == nullptr || piece == nullptr || values == nullptr) file.refuse("it has not all of an embedding");
  fitted.embedding = ModelReader::values<double>(*embedding);
  fitted.piece = ModelReader::values<std::int64_t>(*piece);
  const std::vector<double> all = ModelReader::values<double>(*values);
  fitted.pieces.resize(static_cast<std::size_t>(values->shape[0]));
  for (std::size_t p = 0; p < fitted.pieces.size(); ++p) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(p) * options.dim;
    fitted.pieces[p].singular_values.assign(first, first + options.dim);
  }
  for (const std::int64_t number : fitted.piece) {
    if (number >= 0 && number < values->shape[0]) ++fitted.pieces[static_cast<std::size_t>(number)].rows;
  }
  ops::expect_preparation(file);
  file.require_all_seen();
  check_embedding(fitted, n);
  return fitted;
}

}  // namespace

void LleModel::save(const Context& ctx, const std::filesystem::path& path) const try {
  const core::Entry entry;
  const std::int64_t n = index.rows();
  check_embedding(fitted, n);
  const LleOptions& options = fitted.options;
  std::vector<double> values;
  for (const LlePiece& piece : fitted.pieces) {
    values.insert(values.end(), piece.singular_values.begin(), piece.singular_values.end());
  }
  ops::ModelParts parts;
  parts.metadata = {{"k", ops::text_of(options.k)},
                    {"dim", ops::text_of(options.dim)},
                    {"variant", std::string(name_of(options.variant))},
                    {"reg", ops::text_of(options.reg)},
                    {"metric", std::string(name_of(options.metric))},
                    {"p", ops::text_of(options.p)},
                    {"method", std::string(name_of(options.method))},
                    {"error", ops::text_of(fitted.eigenvalue_sum)},
                    {"notes", notes}};
  parts.arrays = {
      {"embedding", "F64", {n, options.dim}, fitted.embedding.data()},
      {"piece", "I64", {n}, fitted.piece.data()},
      {"singular_values", "F64", {static_cast<std::int64_t>(fitted.pieces.size()), options.dim}, values.data()}};
  ops::add_preparation(parts, preparation, index.cols());
  ops::write_index(ctx, path, kernels::prepared_of(index), kEmbeddingFile, parts);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

LleModel LleModel::load(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  ops::ModelParts parts;  // borrow from the file's bytes, which the index keeps
  LleModel model{kernels::index_of(ops::load_index(ctx, path, kEmbeddingFile, &parts)), {}};
  core::require_memory(ctx, ops::numbers_in(parts) * 16, "loading the model '" + path.string() + "'");
  ModelReader file(kEmbeddingFile, path, parts);
  file.checked([&] {
    model.fitted = read_embedding(file, model.index.rows());
    model.notes = file.text("notes");
    model.preparation = ops::read_preparation(file, model.index.cols(), model.notes);
  });
  return model;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

namespace {

/// Of rows as the model's were given: a Table or a TableView.
template <class Rows>
std::vector<double> of_prepared(const Context& ctx, const LleModel& model, const Rows& queries) {
  return ops::with_prepared(
      ctx, model.preparation, queries, "queries",
      [&](const Context& rest, const TableView& rows) { return transform(rest, model.index, model.fitted, rows); });
}

}  // namespace

std::vector<double> transform(const Context& ctx, const LleModel& model, const Table& queries) try {
  const core::Entry entry;
  return of_prepared(ctx, model, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> transform(const Context& ctx, const LleModel& model, const TableView& queries) try {
  const core::Entry entry;
  return of_prepared(ctx, model, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
