// See lof.hpp.
#include "backend/lof.hpp"

#include <chrono>

#include "core/seconds.hpp"

namespace vicinal::kernels {

void search_then_score(const Context& ctx, const NearestBackend& nearest, const LofBackend& lof,
                       const NearestTask& search, const LofTask& task, LofResult& result, SearchStats& stats) {
  const HostLists found(ctx, nearest, search, stats);
  LofTask scored = task;
  scored.near.ids = found.ids.data();
  scored.near.distances = found.distances.data();
  const auto start = std::chrono::steady_clock::now();
  lof.score(ctx, scored, result);
  result.seconds = seconds_since(start);
}

}  // namespace vicinal::kernels
