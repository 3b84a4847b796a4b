// What a search will take: the rates the planner knows, and what a tree would touch, found out by trying it on samples.
#pragma once

#include <optional>
#include <string>

#include "backend/nearest.hpp"

namespace vicinal {

/// Seconds that methods fused and direct take for a task. Of fused within a radius, a sample of the table and of the
/// queries says how many rows are left to be ranked.
double brute_seconds(const Context& ctx, const kernels::NearestTask& task);

/// What a search in a kd-tree would be.
struct TreeForecast {
  double rows_a_query = 0;   ///< whose keys it would compute
  double seconds = 0;        ///< building included, unless it stands
  double brute_seconds = 0;  ///< what it competes with, where the trial corrected that
  bool at_least = false;     ///< the figures are lower bounds: enough to know that it does not pay
  /// "a tree would touch about 420 of 1,000,000 rows a query"
  [[nodiscard]] std::string sentence(const kernels::NearestTask& task) const;
};

/// Whether a tree comes into question, judged by shapes alone.
bool may_use_tree(const Context& ctx, const kernels::NearestTask& task, double brute_seconds);

/// Tries trees on samples of the table with a sample of the queries, or the tree that stands. Nothing when that cannot
/// be worth it: a metric, table or memory limit that rules a tree out, or brute force that takes no longer than the
/// trial itself. `may_build`: where building takes next to nothing, the index's own tree may be made and asked, and
/// stays with it. The choice does not depend on the number of threads. The trial takes some hundredths of
/// `brute_seconds`.
std::optional<TreeForecast> forecast_tree(const Context& ctx, const kernels::NearestTask& task, double brute_seconds,
                                          bool may_build);

/// Seconds of a search in a tree that touches `rows_a_query`, the tree's building not included.
double tree_search_seconds(const Context& ctx, const kernels::NearestTask& task, double rows_a_query,
                           bool coarse_screen = true);

}  // namespace vicinal
