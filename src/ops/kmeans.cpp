// kmeans: checks and memory first, then Lloyd's iterations over the waist (contract clause 12). The backend labels rows
// and keeps sums; when to stop, what empty clusters take and which run wins is decided here, once for all backends.
#include "vicinal/kmeans.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <string>

#include "core/distance.hpp"
#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "kernels.hpp"
#include "ops/clustered_rows.hpp"
#include "ops/initial_centres.hpp"
#include "ops/kmeans_check.hpp"

namespace vicinal {
namespace {

using kernels::ClusterTask;
using kernels::Lloyd;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One start, and where it led.
class Run {
 public:
  Run(const Context& ctx, Lloyd& lloyd, const ClusterTask& task, const KMeansOptions& options)
      : ctx_(ctx), lloyd_(lloyd), task_(task), options_(options), sizes_(static_cast<std::size_t>(task.clusters)) {}

  KMeans from(const std::vector<double>& centres, double least_shift);

 private:
  struct Iteration {
    std::int64_t changed;
    bool filled;  ///< an empty cluster
    double shift;
  };

  Iteration iterate(KMeans& result);
  bool fill_empty();
  double unit_means();
  [[nodiscard]] double inertia() { return lloyd_.inertia() * ops::inertia_unit(options_.metric); }

  const Context& ctx_;
  Lloyd& lloyd_;
  const ClusterTask& task_;
  const KMeansOptions& options_;
  std::vector<std::int64_t> sizes_;
};

// Empty clusters take the farthest rows. True when one did.
bool Run::fill_empty() {
  lloyd_.sizes(sizes_);
  std::vector<std::int32_t> empty;
  for (std::size_t c = 0; c < sizes_.size(); ++c) {
    if (sizes_[c] == 0) empty.push_back(static_cast<std::int32_t>(c));
  }
  const auto n = static_cast<std::size_t>(task_.table.rows());
  std::vector<double> keys(n);
  std::vector<std::int32_t> labels(n);
  lloyd_.keys(keys);
  lloyd_.labels(labels);
  // A heap gives the order's beginning: how far it is followed is not known before, as some donors may be exhausted.
  const auto farther = [&](std::int64_t a, std::int64_t b) {
    const double x = keys[static_cast<std::size_t>(a)];
    const double y = keys[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto later = [&](std::int64_t a, std::int64_t b) { return farther(b, a); };
  std::vector<std::int64_t> heap(n);
  std::iota(heap.begin(), heap.end(), 0);
  std::make_heap(heap.begin(), heap.end(), later);
  std::size_t filled = 0;
  while (filled < empty.size() && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const std::int64_t row = heap.back();
    heap.pop_back();
    if (!(keys[static_cast<std::size_t>(row)] > 0)) break;
    std::int64_t& donor = sizes_[static_cast<std::size_t>(labels[static_cast<std::size_t>(row)])];
    if (donor == 1) continue;
    --donor;
    lloyd_.move(row, empty[filled++]);
  }
  return filled > 0;
}

// The means, brought to length one; a cluster without one keeps its centre. Returns the shift.
double Run::unit_means() {
  const std::int64_t d = task_.table.cols();
  std::vector<double> before(static_cast<std::size_t>(task_.clusters * d));
  std::vector<double> after(before.size());
  lloyd_.centres(before);
  lloyd_.means();
  lloyd_.centres(after);
  lloyd_.sizes(sizes_);
  double shift = 0;
  for (std::int64_t c = 0; c < task_.clusters; ++c) {
    const double* const from = before.data() + c * d;
    double* const to = after.data() + c * d;
    if (sizes_[static_cast<std::size_t>(c)] == 0 || !core::normalize_row(to, d, to)) std::copy_n(from, d, to);
    shift += core::euclidean_key(from, to, d);
  }
  lloyd_.recentre(after);
  return shift;
}

// Labels, rows for empty clusters, and means.
Run::Iteration Run::iterate(KMeans& result) {
  const bool fills = options_.empty == EmptyClusters::farthest;
  const bool cosine = options_.metric == Metric::cosine;
  const kernels::LloydStep step = options_.history || cosine ? lloyd_.assign() : lloyd_.step(fills);
  if (step.moved) return {step.changed, false, step.shift};
  if (options_.history) result.history.push_back(inertia());
  const bool filled = fills && step.empty > 0 && fill_empty();
  return {step.changed, filled, cosine ? unit_means() : lloyd_.means()};
}

KMeans Run::from(const std::vector<double>& centres, double least_shift) {
  KMeans result;
  result.clusters = task_.clusters;
  result.cols = task_.table.cols();
  result.metric = options_.metric;
  result.stopped = KMeansStop::max_iterations;
  const auto n = static_cast<double>(task_.table.rows());
  const bool classical = options_.rule == KMeansRule::classical;
  lloyd_.start(centres);
  while (result.iterations < options_.max_iterations) {
    ctx_.report("iterate", static_cast<double>(result.iterations) / static_cast<double>(options_.max_iterations));
    ++result.iterations;
    const Iteration done = iterate(result);
    const double share = static_cast<double>(done.changed) / n;
    if (classical) {
      if (!(share <= options_.changed_share)) continue;
      result.stopped = KMeansStop::changed_share;
      break;
    }
    if (done.changed == 0 && !done.filled) {
      result.stopped = KMeansStop::labels;
      break;
    }
    if (options_.changed_share > 0 && share <= options_.changed_share) {
      result.stopped = KMeansStop::changed_share;
      break;
    }
    if (least_shift > 0 && done.shift <= least_shift) {
      result.stopped = KMeansStop::shift;
      break;
    }
  }
  // Nothing changes where labels ended it, but for replaced centres that is asked for.
  if (!classical && (result.stopped != KMeansStop::labels || options_.metric == Metric::cosine)) lloyd_.assign();
  result.labels.resize(static_cast<std::size_t>(task_.table.rows()));
  result.sizes.resize(static_cast<std::size_t>(task_.clusters));
  result.centres.resize(centres.size());
  lloyd_.labels(result.labels);
  lloyd_.sizes(result.sizes);
  lloyd_.centres(result.centres);
  result.inertia = inertia();
  return result;
}

// The tolerance times the mean variance: of one cluster over all rows.
double least_shift(Lloyd& lloyd, const ClusterTask& task, const KMeansOptions& options) {
  if (options.tolerance == 0 || options.rule == KMeansRule::classical) return 0;
  lloyd.start(std::vector<double>(static_cast<std::size_t>(task.table.cols()), 0));
  lloyd.step(false);
  double weight = static_cast<double>(task.table.rows());
  if (!task.weights.empty()) {
    core::ExactSum sum;
    for (const double w : task.weights) sum.add(w);
    weight = sum.rounded();
  }
  return options.tolerance * (lloyd.inertia() / weight / static_cast<double>(task.table.cols()));
}

Plan plan_of(const Context& ctx, const TableView& table, const KMeansOptions& options) {
  const auto n = static_cast<std::uint64_t>(table.rows());
  const std::int64_t weighted = ops::weighted_rows(table, options.weights);
  const bool copies = ops::copies_rows(options.weights, options.metric);
  const ClusterTask task = {copies ? ops::shape_of_copy(table, weighted, options.metric) : table, options.weights,
                            options.clusters, true};
  const auto size = static_cast<std::uint64_t>(task.clusters * task.table.cols()) * sizeof(double);
  const kernels::Backend& backend = kernels::backend_of(ctx);
  const kernels::ClusterBytes bytes = backend.cluster_bytes(ctx, task, ops::seeding_trials(options));
  Plan plan;
  plan.method = Method::fused;
  plan.screens = backend.cluster_screens(task);
  plan.device = ctx.device();
  plan.isa = backend.isa(ctx);
  plan.threads = ctx.threads();
  const kernels::ClusterBytes seeding = ops::initial_bytes(ctx, weighted, table.cols(), options);
  // Centres of three iterations, and what cosine makes of them; labels of two runs and of the last iteration; keys,
  // labels and ids where empty clusters are filled.
  plan.memory = bytes.host + seeding.host + 6 * size + n * 12 + n * 20;
  plan.device_memory = bytes.device + seeding.device;
  if (copies) {
    // What reads the table is gone before the rest begins.
    const std::uint64_t copy = ops::copy_bytes(table, options.metric);
    const kernels::ClusterBytes reading = backend.cluster_bytes(ctx, {table, {}, 1, false}, 0);
    plan.memory = std::max(plan.memory, reading.host) + copy;
    plan.device_memory = std::max(plan.device_memory, reading.device);
  }
  plan.reason = backend.device() == kernels::kHost
                    ? "Lloyd's iterations: bounds and a float32 screen with a proven bound label most rows, float64 "
                      "keys the rest"
                    : "Lloyd's iterations on the device: a screen with a proven bound labels most rows, float64 keys "
                      "the rest";
  return plan;
}

// The best of the runs.
KMeans cluster(const Context& ctx, const ClusterTask& task, const KMeansOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto lloyd = kernels::backend_of(ctx).lloyd(ctx, task);
  const double tolerance = least_shift(*lloyd, task, options);
  KMeans best;
  double seeding = 0;
  for (std::int64_t run = 0; run < options.runs; ++run) {
    const auto seeded = std::chrono::steady_clock::now();
    std::vector<double> centres = ops::initial_centres(ctx, *lloyd, task, options, run);
    if (options.init == KMeansInit::given) ops::check_centres(centres, task.table.cols());
    if (options.init == KMeansInit::given && options.metric == Metric::cosine) {
      ops::bring_to_length_one(ctx, centres, task.table.cols(), "centres", [](std::int64_t i) { return i; });
    }
    seeding += seconds_since(seeded);
    KMeans found = Run(ctx, *lloyd, task, options).from(centres, tolerance);
    if (run == 0 || found.inertia < best.inertia) best = std::move(found);
    // Nothing is drawn, so every run would be the first one.
    if (options.init == KMeansInit::given || options.init == KMeansInit::first_k) break;
  }
  const kernels::AssignCounts counts = lloyd->counts();
  best.stats = {counts.rows, counts.skipped, counts.rechecked, seeding, seconds_since(start) - seeding};
  return best;
}

// Rows of weight 0 get the labels of the centres nearest to them.
void label_left_out(const Context& ctx, const ops::ClusteredRows& rows, KMeans& found) {
  const auto lloyd = kernels::backend_of(ctx).lloyd(ctx, {rows.table_left_out(), {}, found.clusters, false});
  lloyd->start(found.centres);
  lloyd->assign();
  std::vector<std::int32_t> others(rows.left_out().size());
  lloyd->labels(others);
  for (const std::int32_t label : others) ++found.sizes[static_cast<std::size_t>(label)];
  // From the last row to the first, each label moves to its place.
  std::size_t kept = found.labels.size();
  std::size_t other = others.size();
  found.labels.resize(kept + other);
  for (std::size_t row = found.labels.size(); row-- > 0;) {
    const bool left_out = other > 0 && rows.left_out()[other - 1] == static_cast<std::int64_t>(row);
    found.labels[row] = left_out ? others[--other] : found.labels[--kept];
  }
}

}  // namespace

KMeans kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options) {
  ops::check_kmeans(ctx, table, options);
  const Plan plan = plan_of(ctx, table, options);
  core::require_memory(ctx, plan.memory, "kmeans");
  const ops::ClusteredRows rows(ctx, table, options.weights, options.metric);
  KMeans found = cluster(ctx, {rows.table(), rows.weights(), options.clusters, true}, options);
  if (!rows.left_out().empty()) label_left_out(ctx, rows, found);
  found.plan = plan;
  return found;
}

Plan plan_kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options) {
  ops::check_kmeans(ctx, table, options);
  return plan_of(ctx, table, options);
}

}  // namespace vicinal
