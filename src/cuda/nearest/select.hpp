// Lists of the k nearest on the device: taking in candidates, and the final order.
#pragma once

#include <cstdint>

#include "cuda/base/device.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cuda {

/// Lists that grow to k as parts of a table pass by, in no order.
struct RunningLists {
  std::int64_t k = 0;
  double* keys = nullptr;         ///< [queries, k]
  std::int64_t* ids = nullptr;    ///< [queries, k]
  std::int64_t* sizes = nullptr;  ///< [queries]
  double* limits = nullptr;       ///< [queries] a key above this cannot enter any more
};

/// Keys with ids, a room a query; `counts` of them are valid.
struct Candidates {
  const double* keys = nullptr;
  const std::int64_t* ids = nullptr;
  unsigned long long* counts = nullptr;  ///< [queries] set to 0
  std::int64_t room = 0;
  std::int32_t* holes = nullptr;  ///< [queries, min(k, room)] scratch
};

/// Empty lists.
void clear_lists(const Engine& engine, const RunningLists& lists, std::int64_t queries);
/// The k first by (key, id) of lists and candidates. Candidates must have larger ids than those taken in before.
void take_candidates(const Engine& engine, const RunningLists& lists, const Candidates& candidates,
                     std::int64_t queries);
/// The same of the last candidates, and `finish_lists`, by one kernel: a block a query, so that it suits short lists.
/// Sizes, limits and counts hold nothing afterwards.
void take_last_candidates(const Engine& engine, const RunningLists& lists, const Candidates& candidates,
                          std::int64_t queries, Metric metric, double p);
/// Puts lists of k (null `offsets`), or segments [offsets[q], offsets[q + 1]), into (key, id) order and turns keys into
/// reported distances.
void finish_lists(const Engine& engine, Metric metric, double p, double* keys, std::int64_t* ids,
                  const std::int64_t* offsets, std::int64_t k, std::int64_t queries);

}  // namespace vicinal::cuda
