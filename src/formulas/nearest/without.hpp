// Ideas that a benchmark leaves out to see what each is worth.
#pragma once

#include <array>
#include <cstdint>

namespace vicinal::kernels {

/// The idea that is left out; the answers stay the same. A backend that does not have it takes no notice.
enum class Without : std::int32_t {
  nothing,
  fusion,      ///< scores are written out and compared with the thresholds in a second pass
  tree_order,  ///< queries meet a tree in the order they came
  // Of the CUDA screen alone:
  sample,      ///< no first thresholds: all of the first rows pass
  tightening,  ///< thresholds stay what the sample made them
  grouping,    ///< equal rows are not put together
  balls,       ///< queries are not screened again centred where they are
  centring,    ///< rows are not moved to the median
};
inline constexpr std::array kWithoutNames = {"nothing",    "fusion",   "tree-order", "sample",
                                             "tightening", "grouping", "balls",      "centring"};

}  // namespace vicinal::kernels
