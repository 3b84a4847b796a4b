// Method direct on the device: every key in float64, in blocks of queries and rows whose scratch is bounded.
#pragma once

#include <cstdint>

#include "cuda/keys.hpp"
#include "cuda/select.hpp"
#include "cuda/task.hpp"

namespace vicinal::cuda {

/// What a pass over a tile does with keys; one of `lists`, `counts` alone, or counts with keys.
struct DirectTask {
  const Search* search = nullptr;
  RunningLists lists;                     ///< k lists; `keys` null: not asked for
  double largest_key = 0;                 ///< of radius and count
  unsigned long long* counts = nullptr;   ///< [m] of radius and count, added to
  double* keys = nullptr;                 ///< of radius; null: they are only counted
  std::int64_t* ids = nullptr;            ///< beside the keys
  const std::int64_t* offsets = nullptr;  ///< [m + 1] room of each query; null: `room` for each
  std::int64_t room = 0;
};

/// Bytes of scratch a pass over `n` rows with `m` queries takes at most within `limit`. Throws `over_memory` when
/// nothing fits.
std::uint64_t direct_bytes(const DirectTask& task, std::int64_t n, std::int64_t m, std::uint64_t limit);

/// Meets every query of the search with every row of its table. Throws `bad_data` naming a pair whose key overflows.
void direct_pass(const Engine& engine, const DirectTask& task);

}  // namespace vicinal::cuda
