// Cross-validation of k (contract clause 15). One search within the table finds somewhat more neighbors than the most
// that are tried; those of a row's own fold are left out, and what is left serves every k. How many are left is a draw
// from n - 1 rows of which a share 1 - 1/folds is outside: four deviations more than expected leave one row in some ten
// thousand with too few, and those rows are searched again, among the rows of the other folds alone. So the answer is
// exact whatever the draw, and the cost is that of one search.
#include "vicinal/cross_validate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "core/entry.hpp"
#include "core/exact_sum.hpp"
#include "core/in_steps.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/seconds.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/folds.hpp"
#include "ops/nearest/regress.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kRowsPerTask = 1024;

void check_options(std::int64_t n, const CrossValidateOptions& options) {
  if (options.folds < 2 || options.folds > n) {
    refuse("folds: " + std::to_string(options.folds) + " is not between 2 and the table's " + std::to_string(n) +
           " rows");
  }
  if (options.k < 1) refuse("k: " + std::to_string(options.k) + " is below 1");
  if (options.k_to < options.k) {
    refuse("k_to: " + std::to_string(options.k_to) + " is below the " + std::to_string(options.k) + " to begin with");
  }
  const std::int64_t outside = n - (n + options.folds - 1) / options.folds;
  if (options.k_to > outside) {
    refuse("k_to: " + std::to_string(options.k_to) + " neighbors are asked for, but only " + std::to_string(outside) +
           " rows lie outside the largest of " + std::to_string(options.folds) + " folds");
  }
  check_weights(options.weights, options.custom, options.metric, "cross_validate");
}

/// Neighbors a row of the one search.
std::int64_t searched_for(std::int64_t n, const CrossValidateOptions& options) {
  const auto k = static_cast<double>(options.k_to);
  const double outside = 1 - 1 / static_cast<double>(options.folds);
  const double needed = k / outside + 4 * std::sqrt(k * (1 - outside)) / outside + 1;
  return needed < static_cast<double>(n - 1) ? static_cast<std::int64_t>(std::ceil(needed)) : n - 1;
}

KnnOptions search_of(std::int64_t k, const CrossValidateOptions& options) {
  KnnOptions search;
  search.k = k;
  search.metric = options.metric;
  search.p = options.p;
  search.method = options.method;
  search.screen = options.screen;
  return search;
}

/// Bytes beside the search: lists that are kept, folds, scores of each k by `outputs` numbers a row.
std::uint64_t bytes_beside(std::int64_t n, std::int64_t outputs, const CrossValidateOptions& options) {
  const double lists = static_cast<double>(n) * static_cast<double>(options.k_to) * 16;
  const double rows = static_cast<double>(n) * (32 + 16 * static_cast<double>(outputs));
  const double scores = static_cast<double>(options.k_to - options.k + 1) * static_cast<double>(options.folds) * 8;
  return static_cast<std::uint64_t>(std::min(lists + rows + scores, 0x1p62));
}

std::string reason_of(std::int64_t searched, const CrossValidateOptions& options) {
  return "; lists of " + std::to_string(searched) + " serve every k to " + std::to_string(options.k_to) + " in " +
         std::to_string(options.folds) + " folds";
}

/// Lists of the k_to nearest rows of other folds.
class OtherFolds {
 public:
  OtherFolds(const Context& ctx, const Index& index, const CrossValidateOptions& options, CrossValidation& result)
      : ctx_(ctx), index_(index), options_(options), result_(result), k_(options.k_to) {}

  NeighborGraph lists(std::int64_t outputs) {
    result_.searched = searched_for(index_.rows(), options_);
    ops::SearchRequest request = ops::request_of(nullptr, search_of(result_.searched, options_));
    request.bytes_beside = bytes_beside(index_.rows(), outputs, options_);
    request.operation = "cross-validation";
    NeighborGraph all = ops::find_neighbors(ctx_, index_, request);
    result_.plan = all.plan;
    result_.plan.reason += reason_of(result_.searched, options_);
    result_.stats = all.stats;
    const auto start = std::chrono::steady_clock::now();
    NeighborGraph kept = left_after_own_fold(all);
    top_up(kept);
    seconds_ = seconds_since(start);
    return kept;
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  NeighborGraph left_after_own_fold(const NeighborGraph& all) {
    NeighborGraph kept;
    kept.rows = kept.table_rows = all.rows;
    kept.k = k_;
    kept.metric = all.metric;
    kept.p = all.p;
    core::resize_in_steps(ctx_, kept.ids, all.rows * k_);
    core::resize_in_steps(ctx_, kept.distances, all.rows * k_);
    found_.assign(static_cast<std::size_t>(all.rows), 0);
    core::parallel_for(ctx_, (all.rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task, int) {
      for (std::int64_t i = task * kRowsPerTask; i < std::min(all.rows, (task + 1) * kRowsPerTask); ++i) {
        const auto ids = all.ids_of(i);
        const auto distances = all.distances_of(i);
        std::int64_t& found = found_[static_cast<std::size_t>(i)];
        for (std::size_t rank = 0; rank < ids.size() && found < k_; ++rank) {
          if (fold(ids[rank]) == fold(i)) continue;
          const auto at = static_cast<std::size_t>(i * k_ + found++);
          kept.ids[at] = ids[rank];
          kept.distances[at] = distances[rank];
        }
      }
    });
    return kept;
  }

  /// Rows with too few neighbors of other folds are searched again where no other rows are.
  void top_up(NeighborGraph& kept) {
    const std::int64_t n = kept.rows;
    for (std::int64_t f = 0; f < options_.folds; ++f) {
      std::vector<std::uint64_t> others;
      for (std::int64_t i = 0; i < n; ++i) {
        if (fold(i) != f || found_[static_cast<std::size_t>(i)] == k_) continue;
        if (others.empty()) others = rows_outside(f);
        KnnOptions again = search_of(k_, options_);
        again.filter = others;
        const NeighborGraph one = knn(ctx_, index_, index_.table().slice(i, i + 1), again);
        std::copy(one.ids.begin(), one.ids.end(), kept.ids.begin() + i * k_);
        std::copy(one.distances.begin(), one.distances.end(), kept.distances.begin() + i * k_);
        ++result_.topped_up;
      }
    }
  }

  [[nodiscard]] std::vector<std::uint64_t> rows_outside(std::int64_t f) const {
    const std::int64_t n = index_.rows();
    std::vector<std::uint64_t> bits(static_cast<std::size_t>((n + 63) / 64));
    for (std::int64_t i = 0; i < n; ++i) {
      if (fold(i) != f) bits[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64);
    }
    return bits;
  }
  [[nodiscard]] std::int32_t fold(std::int64_t row) const { return result_.fold_of[static_cast<std::size_t>(row)]; }

  const Context& ctx_;
  const Index& index_;
  const CrossValidateOptions& options_;
  CrossValidation& result_;
  std::int64_t k_;
  std::vector<std::int64_t> found_;
  double seconds_ = 0;
};

/// Leaves the first k neighbors of each row.
void shorten(const Context& ctx, NeighborGraph& graph, std::int64_t k) {
  if (graph.k == k) return;
  for (std::int64_t i = 1; i < graph.rows; ++i) {
    if (i % kRowsPerTask == 0) ctx.check_cancelled();
    std::copy_n(graph.ids.begin() + i * graph.k, k, graph.ids.begin() + i * k);
    std::copy_n(graph.distances.begin() + i * graph.k, k, graph.distances.begin() + i * k);
  }
  graph.k = k;
  graph.ids.resize(static_cast<std::size_t>(graph.rows * k));
  graph.distances.resize(graph.ids.size());
}

/// What one k scores: over all rows, and by fold.
struct Scored {
  double all = 0;
  std::vector<double> folds;
};

struct Task {
  std::span<const std::int32_t> codes;  ///< by which folds are stratified; empty: not
  std::int64_t outputs = 1;
  bool more_is_better = true;
  std::function<Scored(const NeighborGraph& graph, const CrossValidation& result)> score;
};

CrossValidation validate(const Context& ctx, const Index& index, const CrossValidateOptions& options,
                         const Task& task) {
  check_options(index.rows(), options);
  core::require_memory(ctx, bytes_beside(index.rows(), task.outputs, options), "cross-validation");
  CrossValidation result;
  result.fold_of = ops::make_folds(ctx, index.rows(), task.codes, options.folds, options.seed);
  result.fold_sizes.assign(static_cast<std::size_t>(options.folds), 0);
  for (const std::int32_t fold : result.fold_of) ++result.fold_sizes[static_cast<std::size_t>(fold)];
  OtherFolds others(ctx, index, options, result);
  NeighborGraph graph = others.lists(task.outputs);
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t count = options.k_to - options.k + 1;
  result.scores.resize(static_cast<std::size_t>(count));
  result.fold_scores.resize(static_cast<std::size_t>(count * options.folds));
  for (std::int64_t k = options.k_to; k >= options.k; --k) {
    ctx.report("validate", static_cast<double>(options.k_to - k) / static_cast<double>(count));
    shorten(ctx, graph, k);
    const Scored scored = task.score(graph, result);
    const std::int64_t at = k - options.k;
    result.scores[static_cast<std::size_t>(at)] = scored.all;
    std::copy(scored.folds.begin(), scored.folds.end(), result.fold_scores.begin() + at * options.folds);
    const bool as_good = task.more_is_better ? scored.all >= result.score : scored.all <= result.score;
    if (result.k == 0 || as_good) {  // k descends, so that of equal ones the smallest is kept
      result.k = k;
      result.score = scored.all;
    }
  }
  ctx.report("validate", 1);
  const std::chrono::duration<double> voted = std::chrono::steady_clock::now() - start;
  result.score_seconds = others.seconds() + voted.count();
  return result;
}

double share(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

Scored rows_right(const std::vector<std::int32_t>& said, const Labels& labels, const CrossValidation& result) {
  std::vector<std::int64_t> right(result.fold_sizes.size());
  std::int64_t all = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i] != labels.codes[i]) continue;
    ++right[static_cast<std::size_t>(result.fold_of[i])];
    ++all;
  }
  Scored scored{share(all, static_cast<std::int64_t>(said.size())), {}};
  for (std::size_t f = 0; f < right.size(); ++f) scored.folds.push_back(share(right[f], result.fold_sizes[f]));
  return scored;
}

Scored squared_errors(const Context& ctx, const std::vector<double>& means, const ops::Targets& targets,
                      const CrossValidation& result) {
  std::vector<core::ExactSum> sums(result.fold_sizes.size());
  for (std::int64_t i = 0; i < targets.rows; ++i) {
    if (i % kRowsPerTask == 0) ctx.check_cancelled();
    for (std::int64_t o = 0; o < targets.outputs; ++o) {
      const auto at = static_cast<std::size_t>(i * targets.outputs + o);
      const double error = means[at] - targets.values[at];
      if (!std::isfinite(error * error)) {
        throw Error(ErrorCode::bad_data, "cross_validate: row " + std::to_string(i) +
                                             " has no mean, or one whose squared error is beyond a float64");
      }
      sums[static_cast<std::size_t>(result.fold_of[static_cast<std::size_t>(i)])].add(error * error);
    }
  }
  core::ExactSum all;
  Scored scored;
  for (std::size_t f = 0; f < sums.size(); ++f) {
    all.add(sums[f]);
    scored.folds.push_back(sums[f].rounded() / static_cast<double>(result.fold_sizes[f] * targets.outputs));
  }
  scored.all = all.rounded() / static_cast<double>(targets.rows * targets.outputs);
  return scored;
}

}  // namespace

CrossValidation cross_validate(const Context& ctx, const Index& index, const Labels& labels,
                               const CrossValidateOptions& options) try {
  const core::Entry entry;
  check_labels(labels, index.rows());
  const VoteOptions voting{.weights = options.weights, .custom = options.custom};
  const auto score = [&](const NeighborGraph& graph, const CrossValidation& result) {
    return rows_right(vote(ctx, graph, labels, voting).codes, labels, result);
  };
  return validate(ctx, index, options, {.codes = labels.codes, .score = score});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

CrossValidation cross_validate(const Context& ctx, const TableView& table, const Labels& labels,
                               const CrossValidateOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_options(table.rows(), options);
  check_labels(labels, table.rows());
  return ops::with_index(ctx, table, [&](const Index& index) { return cross_validate(ctx, index, labels, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

CrossValidation cross_validate(const Context& ctx, const Index& index, const TableView& targets,
                               const CrossValidateOptions& options) try {
  const core::Entry entry;
  ops::check_targets(targets, index.rows());
  core::require_memory(ctx, ops::target_bytes(targets), "cross-validation");
  const ops::Targets read = ops::read_targets(ctx, targets, index.rows());
  const RegressOptions averaging{.weights = options.weights, .custom = options.custom};
  const auto score = [&](const NeighborGraph& graph, const CrossValidation& result) {
    return squared_errors(ctx, ops::average(ctx, graph, read, averaging, "cross_validate"), read, result);
  };
  return validate(ctx, index, options, {.codes = {}, .outputs = read.outputs, .more_is_better = false, .score = score});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

CrossValidation cross_validate(const Context& ctx, const TableView& table, const TableView& targets,
                               const CrossValidateOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_options(table.rows(), options);
  ops::check_targets(targets, table.rows());
  return ops::with_index(ctx, table, [&](const Index& index) { return cross_validate(ctx, index, targets, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_cross_validate(const Context& ctx, const TableView& table, const CrossValidateOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_options(table.rows(), options);
  const std::int64_t searched = searched_for(table.rows(), options);
  Plan plan = plan_knn(ctx, table, nullptr, search_of(searched, options));
  plan.memory += bytes_beside(table.rows(), 1, options);
  plan.reason += reason_of(searched, options);
  return plan;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
