// The rows that one rank clusters, among those of all ranks: a table that is whole belongs to a group of one rank.
#pragma once

#include <cstdint>

#include "backend/kmeans.hpp"
#include "vicinal/communicator.hpp"

namespace vicinal::ops {

struct RankRows {
  Communicator& ranks;
  const kernels::ClusterTask& task;  ///< of the rank's own rows
  std::int64_t first = 0;            ///< the number of its first row among those of all ranks
  std::int64_t total = 0;            ///< rows of all ranks
  bool weighted = false;             ///< whether rows have weights, which a rank without rows cannot see
};

}  // namespace vicinal::ops
