// What a search takes of device memory, planned before it starts (contract clause 7).
#pragma once

#include <cstdint>

#include "cuda/base/memory.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::cuda {

/// Sizes that follow from the search and from what is left of the limit.
struct Layout {
  std::uint64_t left = 0;     ///< bytes the call may take
  std::uint64_t fixed = 0;    ///< bytes for filter, labels, votes' totals
  std::uint64_t query = 0;    ///< bytes of one query and its answer
  std::int64_t group = 0;     ///< queries
  bool whole = false;         ///< a tree is asked for all of its own rows at once, instead of in groups
  std::int64_t tile = 0;      ///< rows of a streamed table's tile; 0: the table is resident
  std::uint64_t scratch = 0;  ///< bytes for the passes

  /// Throws `over_memory` when nothing fits.
  Layout(const Session& session, const plugin::Search& call);

  /// Everything but the passes.
  [[nodiscard]] std::uint64_t taken() const { return left - scratch; }
};

}  // namespace vicinal::cuda
