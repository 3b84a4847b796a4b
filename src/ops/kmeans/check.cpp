// See kmeans_check.hpp. The names of the options live here, too.
#include "ops/kmeans/check.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "formulas/kmeans/limits.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/checkpoint.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kMaxClusters = std::int64_t{1} << 24;
constexpr std::int64_t kMaxInBatch = std::int64_t{1} << 31;
constexpr std::string_view kInits[] = {"k-means++", "k-means||", "random", "first-k", "given"};
constexpr std::string_view kStops[] = {"labels", "shift", "changed_share", "max_iterations", "no_improvement"};

std::string shape_of(const TableView& table) {
  return std::to_string(table.rows()) + " x " + std::to_string(table.cols());
}

void check_kind(Metric metric, std::int64_t clusters) {
  if (clusters < 1) refuse("clusters: is " + std::to_string(clusters) + ", must be at least 1");
  if (metric != Metric::euclidean && metric != Metric::cosine) {
    refuse("metric: k-means has no " + std::string(name_of(metric)) + ", only euclidean and cosine");
  }
  if (clusters >= kMaxClusters) {
    refuse("clusters: is " + std::to_string(clusters) + ", must be below " + std::to_string(kMaxClusters));
  }
}

// All else that options say.
void check_options(const Context& ctx, std::int64_t cols, const KMeansOptions& options) {
  if (options.metric == Metric::cosine && options.rule == KMeansRule::classical) {
    refuse("rule: classical is the rule of tools that have no cosine");
  }
  if (options.batch_size < 0 || options.batch_size >= kMaxInBatch) {
    refuse("batch_size: must be from 0 to " + std::to_string(kMaxInBatch - 1));
  }
  if (options.batch_size > 0 && options.rule == KMeansRule::classical) {
    refuse("rule: classical is the rule of tools that have no mini-batches");
  }
  if (options.runs < 1 || options.runs > 65536) refuse("runs: must be from 1 to 65536");
  if (options.max_iterations < 1) refuse("max_iterations: must be at least 1");
  if (!(options.tolerance >= 0 && std::isfinite(options.tolerance))) refuse("tolerance: must be finite and at least 0");
  if (!(options.changed_share >= 0 && options.changed_share < 1)) refuse("changed_share: must be in [0, 1)");
  if (!(options.checkpoint_seconds >= 0)) refuse("checkpoint_seconds: must be at least 0");
  if (options.init == KMeansInit::given) ops::check_given(ctx, options.centres, options.clusters, cols);
}

}  // namespace

std::string_view name_of(KMeansInit init) noexcept {
  return kInits[static_cast<std::size_t>(init)];
}

std::string_view name_of(KMeansStop stop) noexcept {
  return kStops[static_cast<std::size_t>(stop)];
}

KMeansInit kmeans_init_from(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kInits); ++i) {
    if (kInits[i] == name) return static_cast<KMeansInit>(i);
  }
  refuse("init: there is no '" + std::string(name) + "' but k-means++, k-means||, random, first-k, given");
}

namespace ops {

void check_weights(std::span<const double> weights, std::int64_t n, std::int64_t first_row) {
  if (weights.empty()) return;
  if (static_cast<std::int64_t>(weights.size()) != n) {
    refuse("weights: there are " + std::to_string(weights.size()) + " for " + std::to_string(n) + " rows");
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0 && std::isfinite(weights[i]))) {
      refuse("weights: that of row " + std::to_string(first_row + static_cast<std::int64_t>(i)) +
             " must be finite and at least 0");
    }
  }
}

void check_model(const KMeans& model) {
  std::int64_t size = 0;
  if (model.clusters < 1 || model.cols < 1 || __builtin_mul_overflow(model.clusters, model.cols, &size) ||
      size != static_cast<std::int64_t>(model.centres.size())) {
    refuse("model: its centers do not fit its clusters and columns");
  }
  if (model.metric != Metric::euclidean && model.metric != Metric::cosine) {
    refuse("model: its metric is neither euclidean nor cosine");
  }
  check_centres(model.centres, model.cols);
}

void check_centres(std::span<const double> centres, std::int64_t d) {
  for (std::size_t i = 0; i < centres.size(); ++i) {
    if (std::fabs(centres[i]) < core::kTooLarge) continue;
    const auto at = static_cast<std::int64_t>(i);
    throw Error(ErrorCode::bad_data, "centres: row " + std::to_string(at / d) + ", column " + std::to_string(at % d) +
                                         " is not finite, or so large that squared distances may overflow");
  }
}

std::int64_t weighted_rows(const TableView& table, std::span<const double> weights) {
  if (weights.empty()) return table.rows();
  return std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; });
}

double inertia_unit(Metric metric) {
  return metric == Metric::cosine ? 0.5 : 1;
}

void check_clusters(const Context& ctx, const TableView& table, std::span<const double> weights, Metric metric,
                    std::int64_t clusters) {
  check_table(ctx, table, "table");
  check_weights(weights, table.rows());
  if (weighted_rows(table, weights) == 0) refuse("weights: all are 0");
  check_kind(metric, clusters);
}

void check_given(const Context& ctx, const TableView& centres, std::int64_t clusters, std::int64_t d) {
  check_table(ctx, centres, "centres");
  if (centres.rows() != clusters || centres.cols() != d) {
    refuse("centres: are " + shape_of(centres) + ", but must be " + std::to_string(clusters) + " x " +
           std::to_string(d));
  }
  if (centres.is_block_source() || centres.memory() == Memory::cuda) {
    refuse("centres: must lie in the host's memory");
  }
}

void check_kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options) {
  check_clusters(ctx, table, options.weights, options.metric, options.clusters);
  check_all_rows(table.rows(), weighted_rows(table, options.weights), options);
  check_options(ctx, table.cols(), options);
  check_resume(options, table.cols(), weighted_rows(table, options.weights));
}

void check_shard(const Context& ctx, const TableView& shard, std::int64_t first_row, const KMeansOptions& options) {
  check_table(ctx, shard, "table");
  check_weights(options.weights, shard.rows(), first_row);
  check_kind(options.metric, options.clusters);
  check_options(ctx, shard.cols(), options);
  if (options.batch_size > 0) refuse("batch_size: mini-batches are drawn from a table that is whole, not from shards");
  if (options.checkpoint) refuse("checkpoint: there is none for a table in shards");
  if (options.resume != nullptr) refuse("resume: there is no checkpoint of a table in shards");
}

void check_all_rows(std::int64_t rows, std::int64_t weighted, const KMeansOptions& options) {
  if (weighted == 0) refuse("weights: all are 0");
  if (options.clusters > weighted) {
    refuse("clusters: is " + std::to_string(options.clusters) + ", but the table has only " + std::to_string(weighted) +
           (weighted < rows ? " rows with a weight above 0" : " rows"));
  }
}

}  // namespace ops
}  // namespace vicinal
