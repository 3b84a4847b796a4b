// The papers' searches on the device, as the papers have them (docs/papers.md): distances by a product of matrices, by
// coalesced loads or by tiles in shared memory, then each paper's own selection. Same answers as every other method
// (contract clauses 1 to 5): float32 only screens, float64 keys decide.
#pragma once

#include <cstdint>

#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

struct PaperTask {
  const Search* search = nullptr;  ///< its table lies wholly on the device
  Method method = Method::insertion;
  KLists lists;
  const double* sequence = nullptr;  ///< of direct_filter: ascending keys in device memory, or null
  std::int64_t sequence_size = 0;
};

struct PaperStats {
  std::int64_t ranked = 0;       ///< float64 keys computed
  double selection_seconds = 0;  ///< on the device
};

/// Throws `bad_data` naming a pair whose key overflows, `device_unavailable` where a product needs cuBLAS and it is not
/// there, `over_memory` when not even one query fits.
void paper_k_lists(const Engine& engine, const PaperTask& task, PaperStats& stats);

/// Bytes of scratch that takes at most within `limit`.
std::uint64_t paper_bytes(const PaperTask& task, std::int64_t queries, std::uint64_t limit);

}  // namespace vicinal::cuda
