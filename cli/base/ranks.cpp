// See ranks.hpp.
#include "base/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/output.hpp"
#include "ops/common/together.hpp"

namespace vicinal::cli {
namespace {

/// Whether Open MPI's mpirun has started several processes, of which this is one. MPI is not loaded to find out.
bool is_started_by_mpirun() {
  const char* const ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  return ranks != nullptr && std::atoi(ranks) > 1;
}

/// Whether it is rank 0 that has stopped, which cannot say so.
bool names_rank_0(const Error& error) {
  return std::string_view(error.what()).starts_with("communicator: rank 0 did not come");
}

/// Sets what the options leave open to the rank's share.
Runtime make_runtime_of_rank(CommonOptions& own, int ranks_on_host) {
  if (own.threads == 0) own.threads = std::max(1, Context::cpu().threads() / ranks_on_host);
  Runtime runtime = make_runtime(own);
  if (own.memory_limit.empty()) {
    const std::uint64_t share = runtime.ctx.memory_limit() / static_cast<std::uint64_t>(ranks_on_host);
    runtime.ctx = runtime.ctx.with_memory_limit(std::max<std::uint64_t>(1, share));
  }
  return runtime;
}

}  // namespace

void run_on_ranks(const CommonOptions& common, const std::function<void(const RankRuntime& own)>& body) {
  if (!is_started_by_mpirun()) {
    Communicator ranks;
    return body({ranks, common, make_runtime(common)});
  }
  CommonOptions own = common;
  Communicator ranks = Communicator::mpi({.stall_limit = std::chrono::seconds(common.stall_limit)});
  if (ranks.rank() > 0) {
    silence_errors(true);
    own.quiet = true;
    own.json = false;
  }
  if (own.device == "auto") own.device = "cpu";
  try {
    ops::by_ranks(ranks, [&] {
      std::optional<Runtime> runtime;
      ops::together(ranks, [&] { runtime = make_runtime_of_rank(own, ranks.ranks_on_host()); });
      body({ranks, own, *runtime});
    });
  } catch (const Error& error) {
    if (ranks.rank() == 1 && names_rank_0(error)) silence_errors(false);
    throw;
  }
}

}  // namespace vicinal::cli
