// Ideas that a benchmark or a test leaves out to see what each is worth. A context takes the one that VICINAL_ABLATION
// names when it is made, and holds it for the CPU and for its device: no request carries it.
#pragma once

#include <array>
#include <cstdint>

namespace vicinal::core {

/// The idea that is left out; the answers stay the same. What does not have it takes no notice.
enum class Ablation : std::int32_t {
  nothing,
  fusion,      ///< scores are written out and compared with the thresholds in a second pass
  tree_order,  ///< queries meet a tree in the order they came
  // Of the CUDA screen alone:
  sample,      ///< no first thresholds: all of the first rows pass
  tightening,  ///< thresholds stay what the sample made them
  grouping,    ///< equal rows are not put together
  balls,       ///< queries are not screened again centered where they are
  centring,    ///< rows are not moved to the median
  // Of k-means on CUDA devices:
  kmeans_screen,       ///< all rows are decided by keys
  kmeans_second_pass,  ///< rows that the screen leaves open meet the keys of all centers
  kmeans_ordering,     ///< changes are added as they come
  kmeans_changes,      ///< the sums are made of all rows each time; every label counts as changed
  // Of ranks:
  whole_table,  ///< shards are searched one at a time
  // Of pruned rows of an index:
  pruning_forecast,  ///< they are used whether or not the sample says that they pay
};
inline constexpr std::array kAblationNames = {
    "nothing",         "fusion",         "tree-order",  "sample",          "tightening",
    "grouping",        "balls",          "centring",    "kmeans-screen",   "kmeans-second-pass",
    "kmeans-ordering", "kmeans-changes", "whole-table", "pruning-forecast"};
inline constexpr const char* kAblationVariable = "VICINAL_ABLATION";

/// The one that the environment names. Throws `invalid_argument` for a name that is none of these.
Ablation ablation_of_environment();

}  // namespace vicinal::core
