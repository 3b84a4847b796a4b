// A command whose work is divided among the processes that mpirun starts, its ranks (docs/ranks.md). Rank 0 speaks for
// all of them: the others print nothing, unless it is rank 0 that does not answer.
#pragma once

#include <functional>

#include "base/common_options.hpp"
#include "vicinal/communicator.hpp"

namespace vicinal::cli {

/// What a rank of a command works with.
struct RankRuntime {
  Communicator& ranks;
  const CommonOptions& common;  ///< with the rank's threads; on other ranks than 0 without --json and with --quiet
  const Runtime& runtime;       ///< with the rank's share of the host's cores and memory, unless options set them
};

/// Calls body once on each rank; without mpirun, on the only one. What one rank throws, all of them throw. With several
/// ranks `--device auto` is the CPU.
void run_on_ranks(const CommonOptions& common, const std::function<void(const RankRuntime& own)>& body);

}  // namespace vicinal::cli
