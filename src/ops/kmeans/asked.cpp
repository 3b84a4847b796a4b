// kmeans of shards that are asked: what they are like fixes the grid, then the iterations of a whole table over all of
// them (ops/kmeans/asked_lloyd.hpp).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/asked_lloyd.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/kmeans/iterate.hpp"
#include "ops/kmeans/shared_lloyd.hpp"
#include "vicinal/kmeans_shards.hpp"

namespace vicinal {
namespace {

void check(const Context& ctx, std::span<const std::int64_t> shard_rows, std::int64_t cols,
           const KMeansOptions& options) {
  if (shard_rows.empty()) refuse("shard_rows: there are no shards");
  if (cols < 1) refuse("cols: is " + std::to_string(cols) + ", must be at least 1");
  std::int64_t n = 0;
  for (const std::int64_t rows : shard_rows) {
    if (rows < 1 || __builtin_add_overflow(n, rows, &n)) refuse("shard_rows: every shard must have a row");
  }
  if (kernels::backend_of(ctx).device() != kernels::kHost) {
    throw Error(ErrorCode::device_unavailable, "kmeans: shards are clustered on the CPU; the context is of a device");
  }
  alignas(double) static constexpr std::byte kNowhere[8] = {};
  ops::check_shard(ctx, TableView(static_cast<const void*>(kNowhere), DType::float64, n, cols, cols), 0, options);
  if (options.init == KMeansInit::plus_plus) {
    refuse("init: k-means++ would ask all shards a question for each center; use k-means||");
  }
}

/// The ranges of all shards; those of weights are of the shards that have a row with one.
kernels::TableRanges merged(std::span<const kernels::TableRanges> shards, std::size_t d) {
  kernels::TableRanges all;
  all.columns.resize(d);
  const auto least = [](double& value, double other) {
    if (other > 0 && (value == 0 || other < value)) value = other;
  };
  bool found = false;
  for (const kernels::TableRanges& shard : shards) {
    if (shard.rows == 0) continue;
    for (std::size_t j = 0; j < d; ++j) {
      all.columns[j].largest = std::max(all.columns[j].largest, shard.columns[j].largest);
      least(all.columns[j].last_bit, shard.columns[j].last_bit);
      least(all.columns[j].least, shard.columns[j].least);
    }
    all.least_weight = found ? std::min(all.least_weight, shard.least_weight) : shard.least_weight;
    all.largest_weight = found ? std::max(all.largest_weight, shard.largest_weight) : shard.largest_weight;
    all.rows += shard.rows;
    found = true;
  }
  return all;
}

Plan plan_of(const Context& ctx, std::int64_t n, std::int64_t cols, const KMeansOptions& options) {
  const bool weighted = !options.weights.empty();
  Plan plan;
  plan.method = Method::fused;
  plan.screens = "float32";
  plan.device = ctx.device();
  plan.isa = kernels::backend_of(ctx).isa(ctx);
  plan.threads = ctx.threads();
  // Labels of two runs and of the last answer, masses and nearest candidates, or keys; weights of the rows that have
  // one; the centers of some iterations, and the answers' sums.
  plan.memory = static_cast<std::uint64_t>(n) * (12 + 13 + (weighted ? 8 : 0)) +
                static_cast<std::uint64_t>(options.clusters * cols) * 8 * 12 +
                2 * ops::SharedLloyd::bytes(options.clusters, cols, n, weighted,
                                            kernels::planned_limbs(DType::float64, weighted));
  plan.reason = "Lloyd's iterations over shards that are asked: they label their rows, and their sums are merged";
  return plan;
}

/// Labels of the rows of weight 0, by the centers that are returned.
void label_left_out(const Context& ctx, const AskShards& ask, ops::Question question,
                    std::span<const std::int64_t> shard_rows, std::span<const double> weights, KMeans& found) {
  question.kind = ops::QuestionKind::left_out;
  question.centres = found.centres;
  const std::vector<std::vector<std::byte>> answers = ops::answers_of(ctx, ask, question);
  std::vector<std::int64_t> left_out;
  std::vector<std::int32_t> others;
  std::int64_t row = 0;
  for (std::size_t s = 0; s < answers.size(); ++s) {
    const std::size_t before = left_out.size();
    for (const std::int64_t end = row + shard_rows[s]; row < end; ++row) {
      if (weights[static_cast<std::size_t>(row)] == 0) left_out.push_back(row);
    }
    others.resize(left_out.size());
    ops::ByteReader answer(answers[s], "answer of shard " + std::to_string(s));
    ops::read_labels(answer, std::span(others).subspan(before), question.clusters);
    answer.finish();
  }
  for (const std::int32_t label : others) ++found.sizes[static_cast<std::size_t>(label)];
  ops::insert_left_out(ctx, found.labels, others, left_out);
}

}  // namespace

KMeans kmeans(const Context& ctx, std::span<const std::int64_t> shard_rows, std::int64_t cols, const AskShards& ask,
              const KMeansOptions& options) try {
  const core::Entry entry;
  check(ctx, shard_rows, cols, options);
  ops::Question about;
  about.metric = options.metric;
  about.clusters = options.clusters;
  about.cols = cols;
  about.weighted = !options.weights.empty();
  std::int64_t n = 0;
  std::vector<std::int64_t> begins = {0};
  std::vector<double> weights;  // of the rows that have one
  for (const std::int64_t rows : shard_rows) {
    about.first_rows.push_back(n);
    std::int64_t kept = about.weighted ? 0 : rows;
    for (std::int64_t i = 0; about.weighted && i < rows; ++i) {
      const double weight = options.weights[static_cast<std::size_t>(n + i)];
      if (weight == 0) continue;
      ++kept;
      weights.push_back(weight);
    }
    n += rows;
    begins.push_back(begins.back() + kept);
  }
  ops::check_all_rows(n, begins.back(), options);
  Plan plan = plan_of(ctx, n, cols, options);
  core::require_memory(ctx, plan.memory, "kmeans");

  const auto d = static_cast<std::size_t>(cols);
  std::vector<kernels::TableRanges> ranges;
  const std::vector<std::vector<std::byte>> answers = ops::answers_of(ctx, ask, about);
  for (std::size_t s = 0; s < answers.size(); ++s) {
    ops::ByteReader answer(answers[s], "answer of shard " + std::to_string(s));
    ranges.push_back(ops::read_ranges(answer));
    answer.finish();
    const bool fits = ranges.back().columns.size() == d && ranges.back().rows == begins[s + 1] - begins[s];
    answer.require(fits, "is about other rows");
  }
  about.begins = std::move(begins);
  about.ranges = merged(ranges, d);
  // What the values need beyond the plan: for the sums of all shards, and for an answer.
  const std::int64_t planned = kernels::planned_limbs(DType::float64, about.weighted);
  const kernels::SumGrid grid(about.ranges, about.weighted);
  plan.memory += 2 * ops::SharedLloyd::more_bytes(options.clusters, grid, planned);
  core::require_memory(ctx, plan.memory, "kmeans: sums of values so far apart");
  ops::AskedLloyd lloyd(ctx, ask, about);
  alignas(double) static constexpr std::byte kNowhere[8] = {};
  const TableView shape(static_cast<const void*>(kNowhere), DType::float64, about.begins.back(), cols, cols);
  const kernels::ClusterTask task = {shape, weights, options.clusters, true};
  Communicator self;
  KMeans found = ops::cluster(ctx, lloyd, {self, task, 0, about.begins.back(), about.weighted}, options);
  if (about.begins.back() < n) label_left_out(ctx, ask, about, shard_rows, options.weights, found);
  found.plan = plan;
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
