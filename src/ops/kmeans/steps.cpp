// KMeansSteps: the backend's Lloyd in the caller's hands (contract clause 12, steps). Rows of weight 0 have a Lloyd of
// their own, whose sums nobody needs; its centers are brought up to date before it is asked.
#include <algorithm>
#include <string>
#include <utility>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "core/entry.hpp"
#include "core/in_steps.hpp"
#include "core/memory.hpp"
#include "core/table_access.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/kmeans/screened_plan.hpp"
#include "ops/kmeans/unit_means.hpp"
#include "vicinal/kmeans_steps.hpp"

namespace vicinal {
namespace {

using kernels::ClusterTask;
using kernels::Lloyd;

ops::ScreenedPlan plan_of(const Context& ctx, const TableView& table, const KMeansStepsOptions& options) {
  const auto n = static_cast<std::uint64_t>(table.rows());
  const std::int64_t weighted = ops::weighted_rows(table, options.weights);
  const bool copies = ops::copies_rows(options.weights, options.metric);
  const auto shape = [&](std::int64_t rows) {
    return copies ? ops::shape_of_copy(table, rows, options.metric) : table;
  };
  const ClusterTask task = {shape(weighted), options.weights, options.clusters, true};
  const kernels::Backend& backend = kernels::backend_of(ctx);
  const kernels::KMeansBackend& kmeans = backend.kmeans();
  const kernels::ClusterPlan lloyd = kmeans.plan(ctx, task, kernels::kNoSeeding);
  kernels::MemoryNeed bytes = lloyd.bytes;
  if (weighted < table.rows()) {
    const ClusterTask others = {shape(table.rows() - weighted), {}, options.clusters, false};
    const kernels::MemoryNeed more = kmeans.plan(ctx, others, kernels::kNoSeeding).bytes;
    bytes.host += more.host;
    bytes.device += more.device;
  }
  // Centers of two iterations, given and returned ones; weights; sizes, labels and keys that are returned; where there
  // are copies, keys of the rows left out, before they are among the others.
  const auto size = static_cast<std::uint64_t>(options.clusters * table.cols()) * sizeof(double);
  ops::ScreenedPlan planned;
  Plan& plan = planned.plan;
  plan.method = Method::fused;
  plan.screens = kmeans.screens(task);
  plan.device = ctx.device();
  plan.isa = backend.isa(ctx);
  plan.threads = ctx.threads();
  plan.memory = bytes.host + 4 * size + options.weights.size_bytes() +
                static_cast<std::uint64_t>(options.clusters) * sizeof(std::int64_t) + n * 12;
  plan.device_memory = bytes.device;
  if (copies) {
    // What reads the table is gone before the rest begins.
    const kernels::MemoryNeed reading = kmeans.plan(ctx, {table, {}, 1, false}, kernels::kNoSeeding).bytes;
    plan.memory = std::max(plan.memory + n * 8, reading.host) + ops::copy_bytes(table, options.metric);
    plan.device_memory = std::max(plan.device_memory, reading.device);
  }
  planned.add_screens(ctx, lloyd.screens);
  plan.reason = "steps of Lloyd's iterations: a screen with a proven bound labels most rows, float64 keys the rest";
  return planned;
}

}  // namespace

struct KMeansSteps::State {
  /// What there is to work with.
  enum class Phase : std::uint8_t { nothing, centres, labels };

  State(const Context& context, const TableView& table, const KMeansStepsOptions& options)
      : ctx(context),
        metric(options.metric),
        n(table.rows()),
        d(table.cols()),
        k(options.clusters),
        planned(plan_of(context, table, options)) {
    core::require_memory(ctx, planned.plan.memory, "KMeansSteps");
    weights.assign(options.weights.begin(), options.weights.end());
    rows = std::make_unique<ops::ClusteredRows>(ctx, table, weights, metric);
    const kernels::KMeansBackend& backend = kernels::backend_of(ctx).kmeans();
    kept = backend.lloyd(ctx, {rows->table(), rows->weights(), k, true, 0, planned.plan.memory, planned.screens});
    planned.add_memory(ctx, kept->more_bytes());
    if (!rows->left_out().empty()) others = backend.lloyd(ctx, {rows->table_left_out(), {}, k, false});
  }

  /// Centers that were given, float64, at length one where the metric wants that.
  [[nodiscard]] std::vector<double> given(const TableView& view) const {
    ops::check_given(ctx, view, k, d);
    std::vector<double> centres(static_cast<std::size_t>(k * d));
    core::widen_rows(view, 0, k, centres.data());
    ops::check_centres(centres, d);
    if (metric == Metric::cosine) {
      ops::bring_to_length_one(ctx, centres, d, "centres", [](std::int64_t i) { return i; });
    }
    return centres;
  }
  void require(Phase needed, const char* function) const {
    if (phase >= needed) return;
    refuse(std::string(function) + ": there are no " + (phase == Phase::nothing ? "centers" : "labels") +
           " yet; call " + (phase == Phase::nothing ? "start" : "assign") + " before");
  }
  /// Runs a step after which there is what `after` says; if it throws, there is nothing.
  template <class Step>
  auto change(Phase after, const Step& step) {
    phase = Phase::nothing;
    auto result = step();
    phase = after;
    return result;
  }
  [[nodiscard]] std::vector<double> centres() const {
    std::vector<double> all(static_cast<std::size_t>(k * d));
    kept->centres(all);
    return all;
  }
  /// Values of each row, by a function of Lloyd's.
  template <class T, class Read>
  [[nodiscard]] std::vector<T> of_rows(const Read& read) const {
    const auto left_out = static_cast<std::int64_t>(rows->left_out().size());
    std::vector<T> values;
    values.reserve(static_cast<std::size_t>(n));
    core::resize_in_steps(ctx, values, n - left_out);
    read(*kept, values);
    if (left_out == 0) return values;
    std::vector<T> more;
    core::resize_in_steps(ctx, more, left_out);
    read(*others, more);
    ops::insert_left_out(ctx, values, more, rows->left_out());
    return values;
  }

  Context ctx;
  Metric metric;
  std::int64_t n, d, k;
  ops::ScreenedPlan planned;
  std::vector<double> weights;
  std::unique_ptr<ops::ClusteredRows> rows;
  std::unique_ptr<Lloyd> kept;
  std::unique_ptr<Lloyd> others;  // of the rows left out, where there are some
  Phase phase = Phase::nothing;
};

KMeansSteps::KMeansSteps(const Context& ctx, const TableView& table, const KMeansStepsOptions& options) try {
  const core::Entry entry;
  ops::check_clusters(ctx, table, options.weights, options.metric, options.clusters);
  state_ = std::make_shared<State>(ctx, table, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void KMeansSteps::start(const TableView& centres) try {
  const core::Entry entry;
  const std::vector<double> given = state_->given(centres);
  state_->change(State::Phase::centres, [&] {
    state_->kept->start(given);
    if (state_->others) state_->others->start(given);
    return 0;
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void KMeansSteps::set_centres(const TableView& centres) try {
  const core::Entry entry;
  state_->require(State::Phase::centres, "set_centres");
  const std::vector<double> given = state_->given(centres);
  state_->change(state_->phase, [&] {
    state_->kept->recentre(given);
    return 0;
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

KMeansAssigned KMeansSteps::assign() try {
  const core::Entry entry;
  state_->require(State::Phase::centres, "assign");
  return state_->change(State::Phase::labels, [&] {
    const kernels::LloydStep step = state_->kept->assign();
    if (state_->others) {
      state_->others->recentre(state_->centres());
      state_->others->assign();
    }
    return KMeansAssigned{step.changed, step.empty};
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void KMeansSteps::move_row(std::int64_t row, std::int64_t cluster) try {
  const core::Entry entry;
  state_->require(State::Phase::labels, "move_row");
  if (row < 0 || row >= state_->n) {
    refuse("row: is " + std::to_string(row) + ", must be from 0 to " + std::to_string(state_->n - 1));
  }
  if (cluster < 0 || cluster >= state_->k) {
    refuse("cluster: is " + std::to_string(cluster) + ", must be from 0 to " + std::to_string(state_->k - 1));
  }
  const std::vector<std::int64_t>& out = state_->rows->left_out();
  const auto before = std::lower_bound(out.begin(), out.end(), row);
  if (before != out.end() && *before == row) {
    refuse("row: is " + std::to_string(row) + ", whose weight is 0, so that no mean counts it");
  }
  state_->change(State::Phase::labels, [&] {
    state_->kept->move(row - (before - out.begin()), static_cast<std::int32_t>(cluster));
    return 0;
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

double KMeansSteps::means() try {
  const core::Entry entry;
  state_->require(State::Phase::labels, "means");
  return core::computed(state_->change(State::Phase::labels, [&] {
    return state_->metric == Metric::cosine ? ops::unit_means(*state_->kept, state_->k, state_->d)
                                            : state_->kept->means();
  }));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> KMeansSteps::centres() const try {
  const core::Entry entry;
  state_->require(State::Phase::centres, "centres");
  return state_->centres();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::int32_t> KMeansSteps::labels() const try {
  const core::Entry entry;
  state_->require(State::Phase::labels, "labels");
  return state_->of_rows<std::int32_t>([](Lloyd& lloyd, std::vector<std::int32_t>& to) { lloyd.labels(to); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::int64_t> KMeansSteps::sizes() const try {
  const core::Entry entry;
  state_->require(State::Phase::labels, "sizes");
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(state_->k));
  state_->kept->sizes(sizes);
  return sizes;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> KMeansSteps::keys() const try {
  const core::Entry entry;
  state_->require(State::Phase::labels, "keys");
  if (state_->others) state_->others->recentre(state_->centres());
  return state_->of_rows<double>([](Lloyd& lloyd, std::vector<double>& to) { lloyd.keys(to); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

double KMeansSteps::inertia() const try {
  const core::Entry entry;
  state_->require(State::Phase::labels, "inertia");
  return core::computed(state_->kept->inertia() * ops::inertia_unit(state_->metric));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::int64_t KMeansSteps::rows() const noexcept {
  return state_->n;
}
std::int64_t KMeansSteps::cols() const noexcept {
  return state_->d;
}
std::int64_t KMeansSteps::clusters() const noexcept {
  return state_->k;
}
const Plan& KMeansSteps::plan() const noexcept {
  return state_->planned.plan;
}

}  // namespace vicinal
