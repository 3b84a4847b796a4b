// predict of HDBSCAN: new rows in the condensed tree of others (contract clause 29). Neighbor lists come first; a list
// is certain if its last distance is at least the least reach in it, since no row behind it has a smaller reach. The
// queries whose lists are not get longer ones.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/entry.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "ops/common/prepared_rows.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/clustering.hpp"
#include "ops/density/hierarchy.hpp"
#include "vicinal/hdbscan_model.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kFewestListed = 10;
constexpr std::int64_t kLongerLists = 4;  // times as long as before

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
    auto cluster = static_cast<std::size_t>(tree_.row_clusters[static_cast<std::size_t>(by)]);
    if (ops::lambda_of(tree_.row_distances[static_cast<std::size_t>(by)]) > lambda) {
      while (cluster > 0 && ops::lambda_of(tree_.births[cluster]) >= lambda) {
        cluster = static_cast<std::size_t>(tree_.parents[cluster]);
      }
    }
    label = -1;
    probability = 0;
    const std::int64_t owner = owners_[cluster];
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

class Predicting {
 public:
  Predicting(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries)
      : ctx_(ctx),
        index_(index),
        fitted_(fitted),
        queries_(queries),
        poll_(ctx),
        places_(poll_, fitted),
        rank_(ops::core_rank(fitted.options)) {
    found_.labels.resize(static_cast<std::size_t>(queries.rows()));
    found_.probabilities.resize(found_.labels.size());
    found_.rows.resize(found_.labels.size());
  }

  HdbscanPrediction run() {
    const std::int64_t k = std::min(index_.rows(), std::max(kFewestListed, 2 * (rank_ + 1)));
    std::vector<std::int64_t> open = read_lists(queries_, {}, k);
    const std::int64_t budget = queries_.rows() * k;
    for (std::int64_t longer = k; !open.empty();) {
      longer = std::min(index_.rows(), kLongerLists * longer);
      // No more entries at once than the first lists had.
      const std::int64_t together = std::max<std::int64_t>(1, budget / longer);
      std::vector<std::int64_t> still_open;
      for (std::int64_t first = 0; first < std::ssize(open); first += together) {
        const auto end = std::min(first + together, std::int64_t{std::ssize(open)});
        const std::vector<std::int64_t> some(open.begin() + first, open.begin() + end);
        const std::vector<double> rows = gathered(some);
        const std::vector<std::int64_t> left =
            read_lists(TableView(rows.data(), std::ssize(some), queries_.cols()), some, longer);
        still_open.insert(still_open.end(), left.begin(), left.end());
      }
      open = std::move(still_open);
    }
    return std::move(found_);
  }

 private:
  std::vector<double> gathered(const std::vector<std::int64_t>& numbers) {
    std::vector<double> rows(numbers.size() * static_cast<std::size_t>(queries_.cols()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      poll_.step();
      core::widen_rows(queries_, numbers[i], numbers[i] + 1,
                       rows.data() + i * static_cast<std::size_t>(queries_.cols()));
    }
    return rows;
  }

  /// Places the rows whose lists of length k are certain; the numbers of the others. `numbers`: of the rows among the
  /// queries; empty: they are all queries.
  std::vector<std::int64_t> read_lists(const TableView& rows, const std::vector<std::int64_t>& numbers,
                                       std::int64_t k) {
    const HdbscanOptions& options = fitted_.options;
    // Longer lists than the clustering's method may serve.
    const Method method = numbers.empty() ? options.method : Method::automatic;
    const NeighborGraph graph =
        knn(ctx_, index_, rows, {.k = k, .metric = options.metric, .p = options.p, .method = method});
    std::vector<std::int64_t> open;
    for (std::int64_t row = 0; row < graph.rows; ++row) {
      const std::int64_t number = numbers.empty() ? row : numbers[static_cast<std::size_t>(row)];
      const auto ids = graph.ids_of(row);
      const auto distances = graph.distances_of(row);
      const double core = distances[static_cast<std::size_t>(rank_)];
      double least = kInfinity;
      std::int64_t by = ids[0];
      for (std::size_t i = 0; i < ids.size(); ++i) {
        poll_.step();
        const double reach =
            std::max({core, fitted_.core_distances[static_cast<std::size_t>(ids[i])], distances[i] / options.alpha});
        if (!(reach < least)) continue;
        least = reach;
        by = ids[i];
      }
      if (k < index_.rows() && !(distances.back() / options.alpha >= least)) {
        open.push_back(number);
        continue;
      }
      const auto at = static_cast<std::size_t>(number);
      found_.rows[at] = by;
      places_.place(by, least, found_.labels[at], found_.probabilities[at]);
    }
    return open;
  }

  const Context& ctx_;
  const Index& index_;
  const Hdbscan& fitted_;
  const TableView& queries_;
  core::Poll poll_;
  Places places_;
  std::int64_t rank_;  // of the core distance: so many rows are nearer
  HdbscanPrediction found_;
};

HdbscanPrediction predicted(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries) {
  ops::check_clustering(fitted, index.rows());
  if (queries.is_block_source()) refuse("queries: prediction needs them in memory, but they come in blocks");
  if (queries.memory() == Memory::cuda) {
    refuse("queries: prediction needs them in host memory, but they are in device memory");
  }
  const std::uint64_t own =
      static_cast<std::uint64_t>(queries.rows()) * (4 + static_cast<std::uint64_t>(queries.cols())) * sizeof(double) +
      fitted.tree.parents.size() * 2 * sizeof(double);
  core::require_memory(ctx, own, "prediction");
  const Context rest = ctx.with_memory_limit(std::max<std::uint64_t>(1, ctx.memory_limit() - own));
  return Predicting(rest, index, fitted, queries).run();
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
