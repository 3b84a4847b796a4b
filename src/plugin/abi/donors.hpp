// The plug-in's interface for missing values: plain structs, as in plugin.hpp.
#pragma once

#include "plugin/abi/plugin.hpp"

namespace vicinal::plugin {

/// As kernels::DonorTask: rows that lack values, and donors of them (contract clause 24).
struct DonorSearch {
  Table donors;                            ///< [n, d] float64, NaN where a value is missing
  Table rows;                              ///< [m, d] float64, read once, in order
  const std::uint8_t* compared = nullptr;  ///< [d] host: 0 for a column that is neither compared nor filled
  const std::int64_t* offsets = nullptr;   ///< [m + 1] host: how many values the rows before each lack
  std::int64_t missing = 0;                ///< offsets[m]; for `donor_bytes`, which looks at shapes only, the most
  std::int64_t k = 0;                      ///< at most n
  /// Takes what was found for rows [first, first + count): of each value that they lack, by (row, column), how many
  /// donors there are, at most k, and their ids in any order, the i-th value's at i * k. Called on the caller's thread.
  /// Not 0: it failed.
  std::int32_t (*take)(void* user, std::int64_t first, std::int64_t count, const std::int64_t* sizes,
                       const std::int64_t* ids) = nullptr;
  void* user = nullptr;  ///< of take
};

struct DonorRoom {
  std::uint64_t device = 0;  ///< bytes of device memory, the donors included
  std::uint64_t host = 0;    ///< bytes of host memory for what `take` is given
};

}  // namespace vicinal::plugin
