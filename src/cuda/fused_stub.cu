// Stands in for the fused screen until it is there: nothing is served by it.
#include "cuda/task.hpp"

namespace vicinal::cuda {

void fused_k_lists(const Engine& /*engine*/, const Search& /*search*/, const KLists& /*lists*/,
                   Counters& /*counters*/) {
  throw Failure{ErrorCode::internal, "the fused screen is not there"};
}

bool fused_serves(const Engine& /*engine*/, Metric /*metric*/, std::int64_t /*d*/, std::int64_t /*k*/) {
  return false;
}

}  // namespace vicinal::cuda
