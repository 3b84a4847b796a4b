// See iterate.hpp.
#include "ops/kmeans/iterate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "core/exact_sum.hpp"
#include "core/list_room.hpp"
#include "core/seconds.hpp"
#include "ops/common/together.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/checkpoint.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/kmeans/empty_clusters.hpp"
#include "ops/kmeans/initial_centres.hpp"
#include "ops/kmeans/mini_batch.hpp"
#include "ops/kmeans/unit_means.hpp"

namespace vicinal::ops {
namespace {

using kernels::ClusterTask;
using kernels::Lloyd;

// What the rows' last assignment left.
void take_state(const Context& ctx, Lloyd& lloyd, const ClusterTask& task, const KMeansOptions& options,
                KMeans& result) {
  result.clusters = task.clusters;
  result.cols = task.table.cols();
  result.metric = options.metric;
  result.labels.reserve(static_cast<std::size_t>(task.table.rows()));
  core::touch_pages(ctx, result.labels.data(), result.labels.capacity() * sizeof(std::int32_t));
  result.labels.resize(static_cast<std::size_t>(task.table.rows()));
  result.sizes.resize(static_cast<std::size_t>(task.clusters));
  result.centres.resize(static_cast<std::size_t>(task.clusters * task.table.cols()));
  lloyd.labels(result.labels);
  lloyd.sizes(result.sizes);
  lloyd.centres(result.centres);
  result.inertia = lloyd.inertia() * inertia_unit(options.metric);
}

// One start, and where it led.
class Run {
 public:
  Run(const Context& ctx, Lloyd& lloyd, const RankRows& rows, const KMeansOptions& options, Checkpoints& checkpoints)
      : ctx_(ctx),
        lloyd_(lloyd),
        rows_(rows),
        task_(rows.task),
        options_(options),
        checkpoints_(checkpoints),
        sizes_(static_cast<std::size_t>(rows.task.clusters)) {}

  /// From the centers of a state, which the states that are given follow.
  KMeans from(KMeansCheckpoint& state, double least_shift);

 private:
  struct Iteration {
    std::int64_t changed;
    bool filled;  ///< an empty cluster
    double shift;
  };

  Iteration iterate(KMeans& result);
  bool fill_empty();
  void begin(const KMeansCheckpoint& state, KMeans& result);
  [[nodiscard]] std::optional<KMeansStop> stop_of(const Iteration& done, double least_shift) const;

  const Context& ctx_;
  Lloyd& lloyd_;
  const RankRows& rows_;
  const ClusterTask& task_;
  const KMeansOptions& options_;
  Checkpoints& checkpoints_;
  std::vector<std::int64_t> sizes_;
};

// Empty clusters take the farthest rows. True when one did.
bool Run::fill_empty() {
  lloyd_.sizes(sizes_);
  std::vector<std::int32_t> empty;
  for (std::size_t c = 0; c < sizes_.size(); ++c) {
    if (sizes_[c] == 0) empty.push_back(static_cast<std::int32_t>(c));
  }
  return ops::fill_empty(lloyd_, rows_, empty);
}

// Labels, rows for empty clusters, and means.
Run::Iteration Run::iterate(KMeans& result) {
  const bool fills = options_.empty == EmptyClusters::farthest;
  const bool cosine = options_.metric == Metric::cosine;
  const kernels::LloydStep step = options_.history || cosine ? lloyd_.assign() : lloyd_.step(fills);
  if (step.moved) return {step.changed, false, step.shift};
  if (options_.history) result.history.push_back(lloyd_.inertia() * inertia_unit(options_.metric));
  const bool filled = fills && step.empty > 0 && fill_empty();
  return {step.changed, filled, cosine ? unit_means(lloyd_, task_.clusters, task_.table.cols()) : lloyd_.means()};
}

// The centers of the state. Its last iteration is repeated: the next one compares labels with those that it gave.
void Run::begin(const KMeansCheckpoint& state, KMeans& result) {
  lloyd_.start(state.centres);
  result.iterations = state.iterations;
  result.history = state.history;
  if (state.iterations == 0) return;
  if (options_.history) result.history.pop_back();
  iterate(result);
}

// Why an iteration is the last one.
std::optional<KMeansStop> Run::stop_of(const Iteration& done, double least_shift) const {
  const double share = static_cast<double>(done.changed) / static_cast<double>(rows_.total);
  if (options_.rule == KMeansRule::classical) {
    if (share <= options_.changed_share) return KMeansStop::changed_share;
    return std::nullopt;
  }
  if (done.changed == 0 && !done.filled) return KMeansStop::labels;
  if (options_.changed_share > 0 && share <= options_.changed_share) return KMeansStop::changed_share;
  if (least_shift > 0 && done.shift <= least_shift) return KMeansStop::shift;
  return std::nullopt;
}

KMeans Run::from(KMeansCheckpoint& state, double least_shift) {
  KMeans result;
  result.stopped = KMeansStop::max_iterations;
  begin(state, result);
  if (state.iterations == 0 && checkpoints_.due()) checkpoints_.give(state);
  while (result.iterations < options_.max_iterations) {
    ctx_.report("iterate", static_cast<double>(result.iterations) / static_cast<double>(options_.max_iterations));
    if (options_.checkpoint) lloyd_.centres(state.centres);
    ++result.iterations;
    const Iteration done = iterate(result);
    if (const std::optional<KMeansStop> stop = stop_of(done, least_shift)) {
      result.stopped = *stop;
      break;
    }
    if (!checkpoints_.due()) continue;
    state.iterations = result.iterations;
    state.history = result.history;
    checkpoints_.give(state);
  }
  // Nothing changes where labels ended it.
  if (options_.rule != KMeansRule::classical && result.stopped != KMeansStop::labels) lloyd_.assign();
  take_state(ctx_, lloyd_, task_, options_, result);
  return result;
}

// One start of mini-batches.
KMeans by_batches(const Context& ctx, Lloyd& lloyd, const ClusterTask& task, const KMeansOptions& options,
                  KMeansCheckpoint& state, Checkpoints& checkpoints) {
  Batches done = run_batches(ctx, lloyd, task, options, state, checkpoints);
  KMeans result;
  result.iterations = done.iterations;
  result.stopped = done.stopped;
  result.history = std::move(done.history);
  lloyd.start(done.centres);
  lloyd.assign();
  take_state(ctx, lloyd, task, options, result);
  return result;
}

// The tolerance times the mean variance: of one cluster over all rows.
double least_shift(Lloyd& lloyd, const RankRows& rows, const KMeansOptions& options) {
  if (options.tolerance == 0 || options.rule == KMeansRule::classical || options.batch_size > 0) return 0;
  const std::int64_t d = rows.task.table.cols();
  lloyd.start(std::vector<double>(static_cast<std::size_t>(d), 0));
  lloyd.step(false);
  double weight = static_cast<double>(rows.total);
  if (rows.weighted) {
    core::ExactSum sum;
    for (const double w : rows.task.weights) sum.add(w);
    core::ExactSum::Limbs limbs = sum.limbs();
    rows.ranks.all_reduce_sum(limbs);
    weight = core::ExactSum(limbs).rounded();
  }
  return options.tolerance * (lloyd.inertia() / weight / static_cast<double>(d));
}

// Centers that the caller gave, brought to length one where the metric is cosine.
void check_given_values(const Context& ctx, std::vector<double>& centres, std::int64_t d, Metric metric) {
  check_centres(centres, d);
  if (metric == Metric::cosine) {
    bring_to_length_one(ctx, centres, d, "centres", [](std::int64_t i) { return i; });
  }
}

}  // namespace

ScreenedPlan plan_of_rows(const Context& ctx, const TableView& table, const KMeansOptions& options,
                          std::uint64_t beside) {
  const auto n = static_cast<std::uint64_t>(table.rows());
  const std::int64_t weighted = weighted_rows(table, options.weights);
  const bool copies = copies_rows(options.weights, options.metric);
  const ClusterTask task = {copies ? shape_of_copy(table, weighted, options.metric) : table, options.weights,
                            options.clusters, options.batch_size == 0};
  const auto size = static_cast<std::uint64_t>(task.clusters * task.table.cols()) * sizeof(double);
  const kernels::Backend& backend = kernels::backend_of(ctx);
  const kernels::ClusterPlan lloyd = backend.kmeans().plan(ctx, task, seeding_trials(options));
  ScreenedPlan planned;
  Plan& plan = planned.plan;
  plan.method = Method::fused;
  plan.screens = backend.kmeans().screens(task);
  plan.device = ctx.device();
  plan.isa = backend.isa(ctx);
  plan.threads = ctx.threads();
  const kernels::MemoryNeed seeding = initial_bytes(ctx, weighted, table.cols(), options);
  // Centers of three iterations, and what cosine makes of them; labels of two runs and of the last iteration; keys,
  // labels and ids where empty clusters are filled.
  const kernels::MemoryNeed batch = batch_bytes(ctx, table.cols(), options);
  plan.memory = lloyd.bytes.host + std::max(seeding.host, batch.host) + 6 * size + n * 12 + n * 20;
  plan.device_memory = lloyd.bytes.device + std::max(seeding.device, batch.device);
  if (copies) {
    // What reads the table is gone before the rest begins.
    const std::uint64_t copy = copy_bytes(table, options.metric);
    const kernels::MemoryNeed reading = backend.kmeans().plan(ctx, {table, {}, 1, false}, kernels::kNoSeeding).bytes;
    plan.memory = std::max(plan.memory, reading.host) + copy;
    plan.device_memory = std::max(plan.device_memory, reading.device);
  }
  plan.memory += beside;
  planned.add_screens(ctx, lloyd.screens);
  if (backend.device() != kernels::kHost) {
    plan.reason =
        "Lloyd's iterations on the device: a screen with a proven bound labels most rows, float64 keys the rest";
  } else if (planned.screens.labels > 0) {
    plan.reason =
        "Lloyd's iterations: bounds, an int8 and a float32 screen with proven bounds label most rows, float64 keys the "
        "rest";
  } else {
    plan.reason =
        "Lloyd's iterations: bounds and a float32 screen with a proven bound label most rows, float64 keys the rest";
  }
  if (lloyd.part > 0) {
    plan.reason += "; the table does not fit there, so that each iteration reads it anew, " +
                   std::to_string(lloyd.part) + " rows at a time";
  }
  if (lloyd.seeds_on_host) plan.reason += "; the memory to draw first centers is missing there, so the host draws";
  return planned;
}

std::vector<std::int64_t> label_left_out(const Context& ctx, const ClusteredRows& rows, KMeans& found) {
  const auto lloyd = kernels::backend_of(ctx).kmeans().lloyd(ctx, {rows.table_left_out(), {}, found.clusters, false});
  lloyd->start(found.centres);
  lloyd->assign();
  std::vector<std::int32_t> others(rows.left_out().size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(found.clusters));
  lloyd->labels(others);
  lloyd->sizes(sizes);
  insert_left_out(ctx, found.labels, others, rows.left_out());
  return sizes;
}

KMeans cluster(const Context& ctx, Lloyd& lloyd, const RankRows& rows, const KMeansOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const ClusterTask& task = rows.task;
  const double tolerance = least_shift(lloyd, rows, options);
  Checkpoints checkpoints(options);
  KMeansCheckpoint state;
  bool resumes = options.resume != nullptr;
  if (resumes) state = *options.resume;
  double seeding = 0;
  for (; state.run < options.runs; ++state.run) {
    if (!std::exchange(resumes, false)) {
      const auto seeded = std::chrono::steady_clock::now();
      KMeansCheckpoint next = {.clusters = options.clusters,
                               .metric = options.metric,
                               .run = state.run,
                               .centres = initial_centres(ctx, lloyd, rows, options, state.run),
                               .least = std::numeric_limits<double>::infinity()};
      next.best = std::move(state.best);
      state = std::move(next);
      if (options.init == KMeansInit::given) {
        together(rows.ranks, [&] { check_given_values(ctx, state.centres, task.table.cols(), options.metric); });
      }
      seeding += seconds_since(seeded);
    }
    KMeans found = options.batch_size > 0 ? by_batches(ctx, lloyd, task, options, state, checkpoints)
                                          : Run(ctx, lloyd, rows, options, checkpoints).from(state, tolerance);
    if (state.run == 0 || found.inertia < state.best.inertia) state.best = std::move(found);
    // Where nothing is drawn every run would be the first one.
    const bool draws = options.init != KMeansInit::given && options.init != KMeansInit::first_k;
    if (!draws && options.batch_size == 0) break;
  }
  const kernels::AssignCounts counts = lloyd.counts();
  KMeans result = std::move(state.best);
  result.stats = {counts.rows, counts.skipped, counts.rechecked, seeding, seconds_since(start) - seeding};
  return result;
}

}  // namespace vicinal::ops
