// predict of HDBSCAN: new rows in the condensed tree of others (contract clause 29).
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "ops/common/prepared_rows.hpp"
#include "ops/density/hierarchy.hpp"
#include "ops/density/reaching.hpp"
#include "vicinal/hdbscan_model.hpp"

namespace vicinal {
namespace {

/// The condensed tree as new rows need it.
class Places {
 public:
  Places(core::Poll& poll, const Hdbscan& fitted) : tree_(fitted.tree), deaths_(ops::deaths_of(poll, fitted.tree)) {
    threshold_ = fitted.options.epsilon > 0 ? ops::lambda_of(fitted.options.epsilon) : deaths_[0];
    for (std::size_t cluster = 0; cluster < tree_.parents.size(); ++cluster) {
      const bool is_chosen = tree_.labels[cluster] >= 0;
      const std::int64_t above = cluster > 0 ? owners_[static_cast<std::size_t>(tree_.parents[cluster])] : -1;
      owners_.push_back(is_chosen ? static_cast<std::int64_t>(cluster) : above);
    }
  }

  /// Of a row that reaches row `by` of the table at a distance.
  void place(std::int64_t by, double reach, std::int64_t& label, double& probability) const {
    const double lambda = ops::lambda_of(reach);
    label = -1;
    probability = 0;
    const std::int64_t owner = owners_[ops::cluster_reached(tree_, by, lambda)];
    if (owner < 0 || (owner == 0 && !(lambda >= threshold_))) return;
    label = tree_.labels[static_cast<std::size_t>(owner)];
    const double death = deaths_[static_cast<std::size_t>(owner)];
    probability = std::isinf(lambda) || death == 0 ? 1 : std::min(lambda, death) / death;
  }

 private:
  const CondensedTree& tree_;
  double threshold_ = 0;              // the least lambda of a row of cluster 0, if that is chosen
  std::vector<double> deaths_;        // [clusters]
  std::vector<std::int64_t> owners_;  // [clusters] the chosen cluster that each is or is a part of, or -1
};

/// Labels and probabilities of the queries, and what `Places` has.
std::uint64_t result_bytes(const Hdbscan& fitted, const TableView& queries) {
  return (2 * static_cast<std::uint64_t>(queries.rows()) + 2 * fitted.tree.parents.size()) * sizeof(double);
}

HdbscanPrediction predicted(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries) {
  const auto m = static_cast<std::size_t>(queries.rows());
  ops::Reached reached = ops::reach_rows(ctx, index, fitted, queries, result_bytes(fitted, queries));
  core::Poll poll(ctx);
  const Places places(poll, fitted);
  HdbscanPrediction found;
  found.labels.resize(m);
  found.probabilities.resize(m);
  for (std::size_t i = 0; i < m; ++i) {
    poll.step();
    places.place(reached.rows[i], reached.distances[i], found.labels[i], found.probabilities[i]);
  }
  found.rows = std::move(reached.rows);
  return found;
}

/// Of rows as the model's were given: a Table or a TableView.
template <class Rows>
HdbscanPrediction predicted_of(const Context& ctx, const HdbscanModel& model, const Rows& queries) {
  return ops::with_prepared(
      ctx, model.preparation, queries, "queries",
      [&](const Context& rest, const TableView& rows) { return predicted(rest, model.index, model.fitted, rows); });
}

}  // namespace

HdbscanPrediction predict(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries) try {
  const core::Entry entry;
  return predicted(ctx, index, fitted, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_predict(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries) try {
  const core::Entry entry;
  return ops::plan_reach(ctx, index, fitted, queries, result_bytes(fitted, queries));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

HdbscanPrediction predict(const Context& ctx, const HdbscanModel& model, const Table& queries) try {
  const core::Entry entry;
  return predicted_of(ctx, model, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

HdbscanPrediction predict(const Context& ctx, const HdbscanModel& model, const TableView& queries) try {
  const core::Entry entry;
  return predicted_of(ctx, model, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
