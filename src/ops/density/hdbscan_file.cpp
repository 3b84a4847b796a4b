// HdbscanModel: its file is an index (ops/nearest/index_file.hpp) of the rows, with the condensed tree and core
// distances as further arrays, and the options as texts of its metadata. What is read passes the checks that a caller's
// own model passes; labels and all else follow from the tree again.
#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/model_reader.hpp"
#include "ops/common/preparation_text.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/clustering.hpp"
#include "ops/nearest/index_file.hpp"
#include "vicinal/hdbscan_model.hpp"

namespace vicinal {
namespace ops {

std::int64_t core_rank(const HdbscanOptions& options) noexcept {
  const std::int64_t least = options.min_samples != 0 ? options.min_samples : options.min_cluster_size;
  return least - (options.count_self ? 1 : 0);
}

void check_clustering(const Hdbscan& fitted, std::int64_t n) {
  const CondensedTree& tree = fitted.tree;
  const HdbscanOptions& options = fitted.options;
  const auto clusters = static_cast<std::int64_t>(tree.parents.size());
  const auto has = [](const auto& values, std::int64_t size) { return std::ssize(values) == size; };
  if (!has(tree.row_clusters, n) || !has(tree.row_distances, n) || !has(fitted.core_distances, n)) {
    refuse("model: a clustering of " + std::to_string(tree.row_clusters.size()) + " rows with " +
           std::to_string(fitted.core_distances.size()) + " core distances, but the index has " + std::to_string(n) +
           " rows");
  }
  if (clusters < 1 || clusters > n || !has(tree.births, clusters) || !has(tree.sizes, clusters) ||
      !has(tree.stabilities, clusters) || !has(tree.labels, clusters)) {
    refuse("model: the arrays of its condensed tree differ in length");
  }
  for (std::int64_t cluster = 0; cluster < clusters; ++cluster) {
    const auto at = static_cast<std::size_t>(cluster);
    const std::int64_t parent = tree.parents[at];
    const bool is_within = cluster == 0 ? parent == -1 : parent >= 0 && parent < cluster;
    // A cluster begins within the one around it.
    const bool is_in_time =
        cluster == 0 || !is_within || tree.births[at] <= tree.births[static_cast<std::size_t>(parent)];
    if (!is_within || !is_in_time || !(tree.births[at] >= 0) || std::isnan(tree.stabilities[at]) ||
        tree.sizes[at] < 1 || tree.sizes[at] > n || tree.labels[at] < -1 || tree.labels[at] >= clusters) {
      refuse("model: cluster " + std::to_string(cluster) + " of its condensed tree is not one of " + std::to_string(n) +
             " rows");
    }
  }
  const auto is_distance = [](double x) { return x >= 0 && std::isfinite(x); };
  if (!std::all_of(fitted.core_distances.begin(), fitted.core_distances.end(), is_distance) ||
      !std::all_of(tree.row_distances.begin(), tree.row_distances.end(), [](double x) { return x >= 0; }) ||
      !std::all_of(tree.row_clusters.begin(), tree.row_clusters.end(),
                   [&](std::int64_t cluster) { return cluster >= 0 && cluster < clusters; })) {
    refuse("model: its condensed tree has rows that are in none of its clusters, or distances below 0");
  }
  for (std::int64_t row = 0; row < n; ++row) {
    const auto at = static_cast<std::size_t>(row);
    if (tree.row_distances[at] <= tree.births[static_cast<std::size_t>(tree.row_clusters[at])]) continue;
    refuse("model: row " + std::to_string(row) + " leaves its cluster of the condensed tree before that begins");
  }
  const bool has_sizes = options.min_samples >= 0 && options.min_cluster_size >= 2 && options.max_cluster_size >= 0;
  const std::int64_t rank = has_sizes ? core_rank(options) : -1;
  if (rank < 0 || rank >= n || !is_distance(options.epsilon) || !(options.alpha > 0) || std::isinf(options.alpha) ||
      options.metric == Metric::inner_product) {
    refuse("model: its options are not those of a clustering of " + std::to_string(n) + " rows");
  }
}

}  // namespace ops

namespace {

using ops::kDensityFile;
using ops::ModelReader;

template <class Value>
std::vector<Value> clustering_array(ModelReader& file, const std::string& name, std::int64_t size) {
  const ops::ModelArray* const found = file.array(name, std::is_same_v<Value, double> ? "F64" : "I64", {size});
  if (found == nullptr) file.refuse("it has no '" + name + "'");
  return ModelReader::values<Value>(*found);
}

Hdbscan read_clustering(const Context& ctx, ModelReader& file, std::int64_t n) {
  Hdbscan fitted;
  HdbscanOptions& options = fitted.options;
  options.min_cluster_size = file.number<std::int64_t>("min_cluster_size");
  options.min_samples = file.number<std::int64_t>("min_samples");
  options.count_self = file.number<int>("count_self") != 0;
  options.alpha = file.number<double>("alpha");
  options.selection = file.named("selection", cluster_selection_from);
  options.epsilon = file.number<double>("epsilon");
  options.max_cluster_size = file.number<std::int64_t>("max_cluster_size");
  options.allow_single_cluster = file.number<int>("allow_single_cluster") != 0;
  options.metric = file.named("metric", metric_from);
  options.p = file.number<double>("p");
  options.method = file.named("method", method_from);
  CondensedTree& tree = fitted.tree;
  tree.parents = clustering_array<std::int64_t>(file, "parents", -1);
  const std::int64_t clusters = std::ssize(tree.parents);
  tree.births = clustering_array<double>(file, "births", clusters);
  tree.sizes = clustering_array<std::int64_t>(file, "sizes", clusters);
  tree.stabilities = clustering_array<double>(file, "stabilities", clusters);
  tree.labels = clustering_array<std::int64_t>(file, "labels", clusters);
  tree.row_clusters = clustering_array<std::int64_t>(file, "row_clusters", n);
  tree.row_distances = clustering_array<double>(file, "row_distances", n);
  fitted.core_distances = clustering_array<double>(file, "core_distances", n);
  ops::expect_preparation(file);
  file.require_all_seen();
  ops::check_clustering(fitted, n);
  std::vector<std::uint8_t> chosen;
  for (const std::int64_t label : tree.labels) chosen.push_back(label >= 0 ? 1 : 0);
  const std::vector<std::int64_t> labels = std::exchange(tree.labels, std::vector<std::int64_t>(chosen.size(), -1));
  ops::summarize(ctx, fitted, chosen);
  file.require(labels == tree.labels, "its labels are not those of its condensed tree");
  return fitted;
}

}  // namespace

void HdbscanModel::save(const Context& ctx, const std::filesystem::path& path) const try {
  const core::Entry entry;
  const std::int64_t n = index.rows();
  ops::check_clustering(fitted, n);
  const HdbscanOptions& options = fitted.options;
  const CondensedTree& tree = fitted.tree;
  const auto clusters = static_cast<std::int64_t>(tree.parents.size());
  ops::ModelParts parts;
  parts.metadata = {{"min_cluster_size", ops::text_of(options.min_cluster_size)},
                    {"min_samples", ops::text_of(options.min_samples)},
                    {"count_self", ops::text_of(options.count_self ? 1 : 0)},
                    {"alpha", ops::text_of(options.alpha)},
                    {"selection", std::string(name_of(options.selection))},
                    {"epsilon", ops::text_of(options.epsilon)},
                    {"max_cluster_size", ops::text_of(options.max_cluster_size)},
                    {"allow_single_cluster", ops::text_of(options.allow_single_cluster ? 1 : 0)},
                    {"metric", std::string(name_of(options.metric))},
                    {"p", ops::text_of(options.p)},
                    {"method", std::string(name_of(options.method))},
                    {"notes", notes}};
  parts.arrays = {{"births", "F64", {clusters}, tree.births.data()},
                  {"core_distances", "F64", {n}, fitted.core_distances.data()},
                  {"labels", "I64", {clusters}, tree.labels.data()},
                  {"parents", "I64", {clusters}, tree.parents.data()},
                  {"row_clusters", "I64", {n}, tree.row_clusters.data()},
                  {"row_distances", "F64", {n}, tree.row_distances.data()},
                  {"sizes", "I64", {clusters}, tree.sizes.data()},
                  {"stabilities", "F64", {clusters}, tree.stabilities.data()}};
  ops::add_preparation(parts, preparation, index.cols());
  ops::write_index(ctx, path, kernels::prepared_of(index), kDensityFile, parts);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

HdbscanModel HdbscanModel::load(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  ops::ModelParts parts;  // borrow from the file's bytes, which the index keeps
  HdbscanModel model{kernels::index_of(ops::load_index(ctx, path, kDensityFile, &parts)), {}};
  core::require_memory(ctx, ops::numbers_in(parts) * 24, "loading the model '" + path.string() + "'");
  ModelReader file(kDensityFile, path, parts);
  file.checked([&] {
    model.fitted = read_clustering(ctx, file, model.index.rows());
    model.notes = file.text("notes");
    model.preparation = ops::read_preparation(file, model.index.cols(), model.notes);
  });
  return model;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
