// kmeans of shards: what the ranks must agree on, then the iterations of a whole table over all of them
// (ops/kmeans/shared_lloyd.hpp; contract clause 12, shards).
#include "vicinal/shards.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/table_access.hpp"
#include "ops/common/refuse.hpp"
#include "ops/common/shard_rows.hpp"
#include "ops/common/together.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/kmeans/initial_centres.hpp"
#include "ops/kmeans/iterate.hpp"
#include "ops/kmeans/shared_lloyd.hpp"

namespace vicinal {
namespace {

void agree_on_kmeans(Communicator& ranks, const TableView& shard, const KMeansOptions& options) {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  ops::require_agreement(ranks, std::array<ops::Agreed, 14>{{
                                    {"table: its number of columns", shard.cols()},
                                    {"clusters", options.clusters},
                                    {"init", number(options.init)},
                                    {"metric", number(options.metric)},
                                    {"weights: whether there are some", number(!options.weights.empty())},
                                    {"runs", options.runs},
                                    {"seed", number(options.seed)},
                                    {"max_iterations", options.max_iterations},
                                    {"tolerance", std::bit_cast<std::int64_t>(options.tolerance)},
                                    {"changed_share", std::bit_cast<std::int64_t>(options.changed_share)},
                                    {"rule", number(options.rule)},
                                    {"empty", number(options.empty)},
                                    {"batch_size", options.batch_size},
                                    {"history", number(options.history)},
                                }});
  if (options.init != KMeansInit::given) return;
  std::vector<double> own(static_cast<std::size_t>(options.clusters * shard.cols()));
  core::widen_rows(options.centres, 0, options.clusters, own.data());
  std::vector<double> first = own;
  ranks.broadcast(std::as_writable_bytes(std::span(first)), 0);
  ops::together(ranks, [&] {
    const auto same = [](double a, double b) {
      return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    };
    if (!std::equal(own.begin(), own.end(), first.begin(), same)) refuse("centres: are not those of rank 0");
  });
}

/// The ranges of all shards; `own` has no rows where a rank has none that counts. Floats above 0 are ordered as their
/// bits are; the least of them is the largest of their negatives.
kernels::TableRanges merged(Communicator& ranks, const kernels::TableRanges& own, std::int64_t rows) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  const auto bits = [](double x) { return std::bit_cast<std::int64_t>(x); };
  const auto negated = [&](double x) { return x > 0 ? -bits(x) : kNone; };
  const bool has_rows = own.rows > 0;
  std::vector<std::int64_t> values;
  for (const kernels::NumberRange& column : own.columns) {
    values.insert(values.end(), {bits(column.largest), negated(column.last_bit), negated(column.least)});
  }
  values.push_back(has_rows ? bits(own.largest_weight) : 0);
  values.push_back(has_rows ? -bits(own.least_weight) : kNone);
  ranks.all_reduce_max(values);
  const auto number = [](std::int64_t value) { return value == kNone ? 0 : std::bit_cast<double>(-value); };
  kernels::TableRanges all;
  all.columns.resize(own.columns.size());
  const std::int64_t* from = values.data();
  for (kernels::NumberRange& column : all.columns) {
    column = {std::bit_cast<double>(from[0]), number(from[1]), number(from[2])};
    from += 3;
  }
  all.largest_weight = std::bit_cast<double>(from[0]);
  all.least_weight = number(from[1]);
  all.rows = rows;
  return all;
}

std::int64_t planned_limbs(const TableView& shard, const KMeansOptions& options) {
  const DType dtype = options.metric == Metric::cosine ? DType::float64 : shard.dtype();
  return kernels::planned_limbs(dtype, !options.weights.empty());
}

ops::ScreenedPlan plan_of_shard(const Context& ctx, const TableView& shard, std::int64_t total,
                                const KMeansOptions& options) {
  std::uint64_t beside = ops::SharedLloyd::bytes(options.clusters, shard.cols(), total, !options.weights.empty(),
                                                 planned_limbs(shard, options));
  // The rows without mass before those of the shard, whatever draws keep of each row.
  beside += kernels::ShardSeeding::kAligned * 8 * static_cast<std::uint64_t>(2 + ops::seeding_trials(options));
  ops::ScreenedPlan planned = ops::plan_of_rows(ctx, shard, options, beside);
  planned.plan.reason += "; the rows are those of one rank, whose sums are merged with those of the others";
  return planned;
}

KMeans kmeans_of_shard(const Context& ctx, Communicator& ranks, const TableView& shard, std::int64_t first_row,
                       const KMeansOptions& options) {
  ops::together(ranks, [&] { ops::check_shard(ctx, shard, first_row, options); });
  agree_on_kmeans(ranks, shard, options);
  const std::vector<std::int64_t> all_rows = ops::row_begins(ranks, shard.rows(), first_row);
  const std::vector<std::int64_t> begins =
      ops::begins_of(ops::gathered(ranks, ops::weighted_rows(shard, options.weights)));
  ops::alike([&] { ops::check_all_rows(all_rows.back(), begins.back(), options); });

  ops::ScreenedPlan planned;
  std::optional<ops::ClusteredRows> rows;
  kernels::ClusterTask task;
  kernels::TableRanges own_ranges;
  const kernels::KMeansBackend& backend = kernels::backend_of(ctx).kmeans();
  ops::together(ranks, [&] {
    planned = plan_of_shard(ctx, shard, begins.back(), options);
    core::require_memory(ctx, planned.plan.memory, "kmeans");
    rows.emplace(ctx, shard, options.weights, options.metric, first_row);
    task = {rows->table(), rows->weights(), options.clusters, true, first_row};
    if (task.table.rows() > 0) own_ranges = backend.ranges(ctx, task);
    own_ranges.columns.resize(static_cast<std::size_t>(shard.cols()));
  });
  const bool weighted = !options.weights.empty();
  const kernels::TableRanges ranges = merged(ranks, own_ranges, begins.back());
  const kernels::SumGrid grid = ops::alike([&] { return kernels::SumGrid(ranges, weighted); });
  std::unique_ptr<kernels::ShardLloyd> own;
  ops::together(ranks, [&] {
    // What the values of all ranks need beyond the plan: for the sums of all ranks, and for those of this one.
    planned.add_memory(ctx, ops::SharedLloyd::more_bytes(options.clusters, grid, planned_limbs(shard, options)));
    task.planned = planned.plan.memory;
    task.screens = planned.screens;
    if (task.table.rows() == 0) {
      return core::require_memory(ctx, planned.plan.memory, "kmeans: sums of values so far apart");
    }
    own = backend.shard(ctx, task, ranges);
    planned.add_memory(ctx, own->more_bytes());
  });
  const std::int64_t first = begins[static_cast<std::size_t>(ranks.rank())];
  ops::SharedLloyd lloyd(ctx, ranks, std::move(own), grid, begins);
  KMeans found = ops::cluster(ctx, lloyd, {ranks, task, first, begins.back(), weighted}, options);
  std::vector<std::int64_t> left_out(static_cast<std::size_t>(options.clusters), 0);
  ops::together(ranks, [&] {
    if (!rows->left_out().empty()) left_out = ops::label_left_out(ctx, *rows, found);
  });
  ranks.all_reduce_sum(left_out);
  for (std::size_t c = 0; c < left_out.size(); ++c) found.sizes[c] += left_out[c];
  found.plan = planned.plan;
  return found;
}

}  // namespace

KMeans kmeans(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
              const KMeansOptions& options) try {
  const core::Entry entry;
  return ops::by_ranks(communicator, [&] { return kmeans_of_shard(ctx, communicator, shard, first_row, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
