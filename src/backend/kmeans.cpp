// See kmeans.hpp.
#include "backend/kmeans.hpp"

namespace vicinal::kernels {
namespace {

[[noreturn]] void refuse_shards(const Context& ctx) {
  throw Error(ErrorCode::device_unavailable,
              "kmeans: shards of a table are clustered on the CPU, and the context is one of " + ctx.device());
}

}  // namespace

TableRanges KMeansBackend::ranges(const Context& ctx, const ClusterTask& /*task*/) const {
  refuse_shards(ctx);
}

std::unique_ptr<ShardLloyd> KMeansBackend::shard(const Context& ctx, const ClusterTask& /*task*/,
                                                 const TableRanges& /*whole*/) const {
  refuse_shards(ctx);
}

LloydStep Lloyd::step(bool wait) {
  LloydStep step = assign();
  if (wait && step.empty > 0) return step;
  step.shift = means();
  step.moved = true;
  return step;
}

}  // namespace vicinal::kernels
