// See mini_batch.hpp.
#include "ops/kmeans/mini_batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend/backend.hpp"
#include "core/distance.hpp"
#include "core/exact_sum.hpp"
#include "core/philox.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/empty_clusters.hpp"

namespace vicinal::ops {
namespace {

constexpr std::uint64_t kBatchStream = 0x6b6e0000;
constexpr int kPatience = 10;  // iterations without improvement

double sum_of(std::span<const double> weights) {
  core::ExactSum sum;
  for (const double weight : weights) sum.add(weight);
  return sum.rounded();
}

class Stepper {
 public:
  Stepper(const Context& ctx, const kernels::Lloyd& table, const kernels::ClusterTask& task,
          const KMeansOptions& options, KMeansCheckpoint& state)
      : ctx_(ctx),
        table_(table),
        task_(task),
        options_(options),
        stream_(kBatchStream + static_cast<std::uint64_t>(state.run)),
        counter_(static_cast<std::uint64_t>(state.iterations) * static_cast<std::uint64_t>(options.batch_size)),
        d_(task.table.cols()),
        centres_(state.centres),
        masses_(state.masses),
        sizes_(masses_.size()),
        means_(centres_.size()),
        rows_(static_cast<std::size_t>(options.batch_size)),
        values_(rows_.size() * static_cast<std::size_t>(d_)),
        weights_(task.weights.empty() ? 0 : rows_.size()) {}

  /// Returns the inertia of the batch.
  double step();
  [[nodiscard]] double batch_weight() const {
    return weights_.empty() ? static_cast<double>(rows_.size()) : sum_of(weights_);
  }

 private:
  void draw();
  void fill_new(kernels::Lloyd& batch, const kernels::ClusterTask& task);
  std::vector<double> cluster_weights(const kernels::Lloyd& batch);
  void move_centre(std::int64_t cluster, double weight);

  const Context& ctx_;
  const kernels::Lloyd& table_;
  const kernels::ClusterTask& task_;
  const KMeansOptions& options_;
  std::uint64_t stream_;
  std::uint64_t counter_;
  std::int64_t d_;
  std::vector<double>& centres_;
  std::vector<double>& masses_;  // what each cluster has won so far
  std::vector<std::int64_t> sizes_;
  std::vector<double> means_;
  std::vector<std::int64_t> rows_;
  std::vector<double> values_;
  std::vector<double> weights_;
};

void Stepper::draw() {
  const std::int64_t n = task_.table.rows();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double u = core::philox_uniform(options_.seed, stream_, counter_++);
    rows_[i] = std::min(static_cast<std::int64_t>(u * static_cast<double>(n)), n - 1);
    if (!weights_.empty()) weights_[i] = task_.weights[static_cast<std::size_t>(rows_[i])];
  }
  table_.rows(rows_, values_);
}

// Clusters that have never had a row take the farthest of the batch.
void Stepper::fill_new(kernels::Lloyd& batch, const kernels::ClusterTask& task) {
  batch.sizes(sizes_);
  std::vector<std::int32_t> empty;
  for (std::size_t c = 0; c < sizes_.size(); ++c) {
    if (sizes_[c] == 0 && masses_[c] == 0) empty.push_back(static_cast<std::int32_t>(c));
  }
  Communicator self;
  if (!empty.empty()) fill_empty(batch, {self, task, 0, task.table.rows(), !task.weights.empty()}, empty);
}

// What the rows of each cluster weigh; sizes_ are those of the batch.
std::vector<double> Stepper::cluster_weights(const kernels::Lloyd& batch) {
  if (weights_.empty()) return {sizes_.begin(), sizes_.end()};
  std::vector<std::int32_t> labels(rows_.size());
  batch.labels(labels);
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return labels[a] < labels[b]; });
  std::vector<double> sums(sizes_.size(), 0);
  std::vector<double> terms;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int32_t label = labels[order[i]];
    terms.push_back(weights_[order[i]]);
    if (i + 1 < order.size() && labels[order[i + 1]] == label) continue;
    sums[static_cast<std::size_t>(label)] = sum_of(terms);
    terms.clear();
  }
  return sums;
}

// Toward the mean of the batch's rows, by what these weigh beside all that the cluster has won.
void Stepper::move_centre(std::int64_t cluster, double weight) {
  double& mass = masses_[static_cast<std::size_t>(cluster)];
  mass += weight;
  const double rate = weight / mass;
  double* const centre = centres_.data() + cluster * d_;
  double* const moved = means_.data() + cluster * d_;
  for (std::int64_t j = 0; j < d_; ++j) moved[j] = std::fma(rate, moved[j] - centre[j], centre[j]);
  if (options_.metric == Metric::cosine && !core::normalize_row(moved, d_, moved)) return;
  std::copy_n(moved, d_, centre);
}

double Stepper::step() {
  draw();
  const kernels::ClusterTask task = {
      TableView(values_.data(), options_.batch_size, d_), weights_, task_.clusters, true, 0, task_.planned};
  const auto batch = kernels::backend_of(ctx_).kmeans().lloyd(ctx_, task);
  batch->start(centres_);
  const kernels::LloydStep assigned = batch->assign();
  const double inertia = batch->inertia() * inertia_unit(options_.metric);
  if (options_.empty == EmptyClusters::farthest && assigned.empty > 0) fill_new(*batch, task);
  batch->sizes(sizes_);
  const std::vector<double> weights = cluster_weights(*batch);
  batch->means();
  batch->centres(means_);
  for (std::int64_t c = 0; c < task_.clusters; ++c) {
    const auto at = static_cast<std::size_t>(c);
    if (sizes_[at] > 0) move_centre(c, weights[at]);
  }
  return inertia;
}

}  // namespace

Batches run_batches(const Context& ctx, const kernels::Lloyd& table, const kernels::ClusterTask& task,
                    const KMeansOptions& options, KMeansCheckpoint& state, Checkpoints& checkpoints) {
  state.masses.resize(static_cast<std::size_t>(task.clusters), 0);
  Stepper stepper(ctx, table, task, options, state);
  const auto n = static_cast<double>(task.table.rows());
  const double rate = std::min(1.0, 2 * static_cast<double>(options.batch_size) / (n + 1));
  Batches done;
  if (state.iterations == 0 && checkpoints.due()) checkpoints.give(state);
  while (state.iterations < options.max_iterations && state.without_improvement < kPatience) {
    ctx.report("iterate", static_cast<double>(state.iterations) / static_cast<double>(options.max_iterations));
    const double inertia = stepper.step();
    const double mean = inertia / stepper.batch_weight();
    state.smoothed = state.iterations == 0 ? mean : std::fma(rate, mean - state.smoothed, state.smoothed);
    ++state.iterations;
    if (options.history) state.history.push_back(inertia);
    state.without_improvement = state.smoothed < state.least ? 0 : state.without_improvement + 1;
    state.least = std::min(state.least, state.smoothed);
    if (checkpoints.due()) checkpoints.give(state);
  }
  if (state.without_improvement >= kPatience) done.stopped = KMeansStop::no_improvement;
  done.iterations = state.iterations;
  done.history = state.history;
  done.centres = state.centres;
  return done;
}

kernels::MemoryNeed batch_bytes(const Context& ctx, std::int64_t d, const KMeansOptions& options) {
  if (options.batch_size == 0) return {};
  alignas(double) static constexpr std::byte kNowhere[8] = {};
  const TableView batch(static_cast<const void*>(kNowhere), DType::float64, options.batch_size, d, d);
  kernels::MemoryNeed bytes = kernels::backend_of(ctx)
                                  .kmeans()
                                  .plan(ctx, {batch, options.weights, options.clusters, true}, kernels::kNoSeeding)
                                  .bytes;
  // Rows and weights; numbers, labels and order; keys, labels and ids where clusters are filled.
  bytes.host += static_cast<std::uint64_t>(options.batch_size) * static_cast<std::uint64_t>(d * 8 + 16 + 8 + 12 + 20);
  // Centers before and after; masses, sizes and weights.
  bytes.host += static_cast<std::uint64_t>(options.clusters) * static_cast<std::uint64_t>(2 * d * 8 + 32);
  return bytes;
}

}  // namespace vicinal::ops
