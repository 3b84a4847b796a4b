// Method direct on the device: every key in float64, in blocks of queries and rows whose scratch is bounded.
#pragma once

#include <cstdint>

#include "cuda/nearest/keys.hpp"
#include "cuda/nearest/select.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// What a pass over a tile does with keys; one of `lists`, `counts` alone, or counts with keys.
struct DirectTask {
  const Search* search = nullptr;
  RunningLists lists;                     ///< k lists; `keys` null: not asked for; without `sizes`: see few_pass
  double largest_key = 0;                 ///< of radius and count
  unsigned long long* counts = nullptr;   ///< [m] of radius and count, added to
  double* keys = nullptr;                 ///< of radius; null: they are only counted
  std::int64_t* ids = nullptr;            ///< beside the keys
  const std::int64_t* offsets = nullptr;  ///< [m + 1] room of each query; null: `room` for each
  std::int64_t room = 0;
  const std::int64_t* slots = nullptr;  ///< [m] of radius and count: whose count and room a query uses; null: its own
};

/// Bytes of scratch a pass over `n` rows with `m` queries takes at most within `limit`. Throws `over_memory` when
/// nothing fits.
std::uint64_t direct_bytes(const DirectTask& task, std::int64_t n, std::int64_t m, std::uint64_t limit);

/// Lets at most two pieces of work wait in the stream, so that a cancel is seen soon.
class Pace {
 public:
  explicit Pace(const Engine& engine) : engine_(engine) {}
  ~Pace();
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  /// After each piece. Throws `cancelled`.
  void step();

 private:
  const Engine& engine_;
  cudaEvent_t events_[2] = {};
  int turn_ = 0;
  std::int64_t steps_ = 0;
};

/// Meets every query of the search with every row of its table. Throws `bad_data` naming a pair whose key overflows.
void direct_pass(const Engine& engine, const DirectTask& task);

/// The same by the fused screen (fused.cu), of radius and count; ids begin at the search's first row.
void fused_within(const Engine& engine, const Search& search, const DirectTask& task, Counters& counters);

}  // namespace vicinal::cuda
