// The vote on the device: labels of neighbors to labels of queries, without the lists leaving it.
#pragma once

#include <cstdint>

#include "cuda/base/device.hpp"

namespace vicinal::cuda {

/// One output, in device memory.
struct VoteArrays {
  const std::int32_t* labels = nullptr;  ///< [table rows]
  std::int64_t classes = 0;
  std::int32_t* codes = nullptr;    ///< [m]
  double* probabilities = nullptr;  ///< [m, classes] all 0, or null
};

/// Lists [m, k] with reported distances. `by_distance`: weights 1 / distance, else all equal.
void vote_on_lists(const Engine& engine, const std::int64_t* ids, const double* distances, std::int64_t m,
                   std::int64_t k, bool by_distance, const VoteArrays& output);
/// Bytes of scratch it takes.
std::uint64_t vote_bytes(const Engine& engine, std::int64_t classes);

}  // namespace vicinal::cuda
