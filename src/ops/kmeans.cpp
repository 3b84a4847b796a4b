// kmeans: checks and memory first, then Lloyd's iterations over the waist (contract clause 12). The backend labels rows
// and keeps sums; when to stop, what empty clusters take and which run wins is decided here, once for all backends.
#include "vicinal/kmeans.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <string>

#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "core/table_access.hpp"
#include "kernels.hpp"
#include "ops/check.hpp"
#include "ops/clustered_rows.hpp"
#include "ops/initial_centres.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

using kernels::ClusterTask;
using kernels::Lloyd;

constexpr std::int64_t kMostClusters = std::int64_t{1} << 24;
constexpr double kTooLarge = 0x1p500;
constexpr std::string_view kInits[] = {"k-means++", "k-means||", "random", "first-k", "given"};
constexpr std::string_view kStops[] = {"labels", "shift", "changed_share", "max_iterations"};

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string shape_of(const TableView& table) {
  return std::to_string(table.rows()) + " x " + std::to_string(table.cols());
}

void check_weights(std::span<const double> weights, std::int64_t n) {
  if (weights.empty()) return;
  if (static_cast<std::int64_t>(weights.size()) != n) {
    refuse("weights: there are " + std::to_string(weights.size()) + " for " + std::to_string(n) + " rows");
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0 && std::isfinite(weights[i]))) {
      refuse("weights: that of row " + std::to_string(i) + " must be finite and at least 0");
    }
  }
}

void check_centres(std::span<const double> centres, std::int64_t d) {
  for (std::size_t i = 0; i < centres.size(); ++i) {
    if (std::fabs(centres[i]) < kTooLarge) continue;
    const auto at = static_cast<std::int64_t>(i);
    throw Error(ErrorCode::bad_data, "centres: row " + std::to_string(at / d) + ", column " + std::to_string(at % d) +
                                         " is not finite, or so large that squared distances may overflow");
  }
}

// Rows that have a weight above 0.
std::int64_t weighted_rows(const TableView& table, std::span<const double> weights) {
  if (weights.empty()) return table.rows();
  return std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; });
}

void check(const Context& ctx, const TableView& table, const KMeansOptions& options) {
  check_table(ctx, table, "table");
  check_weights(options.weights, table.rows());
  const std::int64_t rows = weighted_rows(table, options.weights);
  if (rows == 0) refuse("weights: all are 0");
  if (options.clusters < 1) refuse("clusters: is " + std::to_string(options.clusters) + ", must be at least 1");
  if (options.clusters > rows) {
    refuse("clusters: is " + std::to_string(options.clusters) + ", but the table has only " + std::to_string(rows) +
           (rows < table.rows() ? " rows with a weight above 0" : " rows"));
  }
  if (options.clusters >= kMostClusters) refuse("clusters: must be below " + std::to_string(kMostClusters));
  if (options.runs < 1 || options.runs > 65536) refuse("runs: must be from 1 to 65536");
  if (options.max_iterations < 1) refuse("max_iterations: must be at least 1");
  if (!(options.tolerance >= 0 && std::isfinite(options.tolerance))) refuse("tolerance: must be finite and at least 0");
  if (!(options.changed_share >= 0 && options.changed_share < 1)) refuse("changed_share: must be in [0, 1)");
  if (options.init == KMeansInit::given) {
    check_table(ctx, options.centres, "centres");
    if (options.centres.rows() != options.clusters || options.centres.cols() != table.cols()) {
      refuse("centres: are " + shape_of(options.centres) + ", but must be " + std::to_string(options.clusters) + " x " +
             std::to_string(table.cols()));
    }
    if (options.centres.is_block_source() || options.centres.memory() == Memory::cuda) {
      refuse("centres: must lie in the host's memory");
    }
  }
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

// Labels, rows for empty clusters, and means.
Run::Iteration Run::iterate(KMeans& result) {
  const bool fills = options_.empty == EmptyClusters::farthest;
  const kernels::LloydStep step = options_.history ? lloyd_.assign() : lloyd_.step(fills);
  if (step.moved) return {step.changed, false, step.shift};
  if (options_.history) result.history.push_back(lloyd_.inertia());
  const bool filled = fills && step.empty > 0 && fill_empty();
  return {step.changed, filled, lloyd_.means()};
}

KMeans Run::from(const std::vector<double>& centres, double least_shift) {
  KMeans result;
  result.clusters = task_.clusters;
  result.cols = task_.table.cols();
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
  if (!classical && result.stopped != KMeansStop::labels) lloyd_.assign();
  result.labels.resize(static_cast<std::size_t>(task_.table.rows()));
  result.sizes.resize(static_cast<std::size_t>(task_.clusters));
  result.centres.resize(centres.size());
  lloyd_.labels(result.labels);
  lloyd_.sizes(result.sizes);
  lloyd_.centres(result.centres);
  result.inertia = lloyd_.inertia();
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
  const std::int64_t weighted = weighted_rows(table, options.weights);
  const bool copies = weighted < table.rows();
  const ClusterTask task = {copies ? ops::shape_of_copy(table, weighted) : table, options.weights, options.clusters,
                            true};
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
  // Centres of three iterations; labels of two runs; keys, labels and ids where empty clusters are filled.
  plan.memory = bytes.host + seeding.host + 4 * size + n * 8 + n * 20;
  plan.device_memory = bytes.device + seeding.device;
  if (copies) {
    // All rows, the weights of those that have one, the numbers of all; and what reads the table.
    const kernels::ClusterBytes reading = backend.cluster_bytes(ctx, {table, {}, 1, false}, 0);
    plan.memory += n * (8 * static_cast<std::uint64_t>(task.table.cols()) + 8 + 16);
    plan.memory = std::max(plan.memory, reading.host + n * 24);
    plan.device_memory = std::max(plan.device_memory, reading.device);
  }
  plan.reason = backend.device() == kernels::kHost
                    ? "Lloyd's iterations: bounds and a float32 screen with a proven bound label most rows, float64 "
                      "keys the rest"
                    : "Lloyd's iterations on the device: a screen with a proven bound labels most rows, float64 keys "
                      "the rest";
  return plan;
}

void check_model(const Context& ctx, const KMeans& model, const TableView& table) {
  check_table(ctx, table, "table");
  if (model.clusters < 1 || model.cols < 1 ||
      static_cast<std::int64_t>(model.centres.size()) != model.clusters * model.cols) {
    refuse("model: its centres do not fit its clusters and columns");
  }
  if (table.cols() != model.cols) {
    refuse("table: " + std::to_string(table.cols()) + " columns, but the model has " + std::to_string(model.cols));
  }
  check_centres(model.centres, model.cols);
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
    const std::vector<double> centres = ops::initial_centres(ctx, *lloyd, task, options, run);
    if (options.init == KMeansInit::given) check_centres(centres, task.table.cols());
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

// The rows of a table, labelled.
std::unique_ptr<Lloyd> assigned(const Context& ctx, const KMeans& model, const TableView& table,
                                std::span<const double> weights) {
  check_model(ctx, model, table);
  const ClusterTask task = {table, weights, model.clusters, false};
  const kernels::Backend& backend = kernels::backend_of(ctx);
  core::require_memory(ctx, backend.cluster_bytes(ctx, task, 0).host + static_cast<std::uint64_t>(table.rows()) * 4,
                       "predict");
  auto lloyd = backend.lloyd(ctx, task);
  lloyd->start(model.centres);
  lloyd->assign();
  return lloyd;
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

KMeans kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options) {
  check(ctx, table, options);
  const Plan plan = plan_of(ctx, table, options);
  core::require_memory(ctx, plan.memory, "kmeans");
  const ops::ClusteredRows rows(ctx, table, options.weights);
  KMeans found = cluster(ctx, {rows.table(), rows.weights(), options.clusters, true}, options);
  if (!rows.left_out().empty()) label_left_out(ctx, rows, found);
  found.plan = plan;
  return found;
}

Plan plan_kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options) {
  check(ctx, table, options);
  return plan_of(ctx, table, options);
}

std::vector<std::int32_t> predict(const Context& ctx, const KMeans& model, const TableView& table) {
  const auto lloyd = assigned(ctx, model, table, {});
  std::vector<std::int32_t> labels(static_cast<std::size_t>(table.rows()));
  lloyd->labels(labels);
  return labels;
}

double score(const Context& ctx, const KMeans& model, const TableView& table, std::span<const double> weights) {
  check_table(ctx, table, "table");
  check_weights(weights, table.rows());
  return 0.0 - assigned(ctx, model, table, weights)->inertia();
}

std::vector<double> transform(const Context& ctx, const KMeans& model, const TableView& table) {
  check_model(ctx, model, table);
  // Every centre is a neighbor of every row.
  const TableView centres(model.centres.data(), model.clusters, model.cols);
  const NeighborGraph graph = knn(ctx, centres, table, {.k = model.clusters});
  std::vector<double> distances(graph.distances.size());
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / model.clusters;
    distances[static_cast<std::size_t>(row * model.clusters + graph.ids[i])] = graph.distances[i];
  }
  return distances;
}

}  // namespace vicinal
