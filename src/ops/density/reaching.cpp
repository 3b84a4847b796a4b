// See reaching.hpp. Neighbor lists come first; a list is certain if its last distance is at least the least reach in
// it, since no row behind it has a smaller reach. The queries whose lists are not get longer ones.
#include "ops/density/reaching.hpp"

#include <algorithm>
#include <utility>

#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/clustering.hpp"
#include "ops/density/hierarchy.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kFewestListed = 10;
constexpr std::int64_t kLongerLists = 4;  // times as long as before

/// Of the first lists.
KnnOptions first_lists(const Index& index, const HdbscanOptions& options) {
  const std::int64_t rows = core_rank(options) + 1;
  return {.k = std::min(index.rows(), std::max(kFewestListed, 2 * rows)),
          .metric = options.metric,
          .p = options.p,
          .method = options.method};
}

class Reaching {
 public:
  Reaching(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries)
      : ctx_(ctx), index_(index), fitted_(fitted), queries_(queries), poll_(ctx), rank_(core_rank(fitted.options)) {
    found_.rows.resize(static_cast<std::size_t>(queries.rows()));
    found_.distances.resize(found_.rows.size());
  }

  Reached run() {
    const std::int64_t k = first_lists(index_, fitted_.options).k;
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

  /// Finds what the rows reach whose lists of length k are certain; the numbers of the others. `numbers`: of the rows
  /// among the queries; empty: they are all queries.
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
      found_.distances[at] = least;
    }
    return open;
  }

  const Context& ctx_;
  const Index& index_;
  const Hdbscan& fitted_;
  const TableView& queries_;
  core::Poll poll_;
  std::int64_t rank_;  // of the core distance: so many rows are nearer
  Reached found_;
};

}  // namespace

namespace {

/// Beside the search: what is reached, rows that are gathered, and `result_bytes`.
std::uint64_t own_bytes(const TableView& queries, std::uint64_t result_bytes) {
  return static_cast<std::uint64_t>(queries.rows()) * (2 + static_cast<std::uint64_t>(queries.cols())) *
             sizeof(double) +
         result_bytes;
}

}  // namespace

Plan plan_reach(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries,
                std::uint64_t result_bytes) {
  check_clustering(fitted, index.rows());
  if (queries.is_block_source()) refuse("queries: prediction needs them in memory, but they come in blocks");
  if (queries.memory() == Memory::cuda) {
    refuse("queries: prediction needs them in host memory, but they are in device memory");
  }
  const std::uint64_t own = own_bytes(queries, result_bytes);
  Plan plan = plan_knn(core::beside(ctx, own), index.table(), &queries, first_lists(index, fitted.options));
  plan.memory += own;
  return plan;
}

Reached reach_rows(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries,
                   std::uint64_t result_bytes) {
  core::require_memory(ctx, plan_reach(ctx, index, fitted, queries, result_bytes).memory, "prediction");
  return Reaching(core::beside(ctx, own_bytes(queries, result_bytes)), index, fitted, queries).run();
}

std::size_t cluster_reached(const CondensedTree& tree, std::int64_t by, double lambda) noexcept {
  auto cluster = static_cast<std::size_t>(tree.row_clusters[static_cast<std::size_t>(by)]);
  if (lambda_of(tree.row_distances[static_cast<std::size_t>(by)]) > lambda) {
    while (cluster > 0 && lambda_of(tree.births[cluster]) >= lambda) {
      cluster = static_cast<std::size_t>(tree.parents[cluster]);
    }
  }
  return cluster;
}

}  // namespace vicinal::ops
