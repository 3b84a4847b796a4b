// See overlap.hpp.
#include "plugin/cuda/overlap.hpp"

#include <algorithm>

#include "core/memory.hpp"
#include "geo/join.hpp"
#include "plugin/abi/overlap.hpp"

namespace vicinal::plugin {
namespace {

PolygonLayer borrowed(const geo::Layer& layer) {
  return {layer.points.data(),
          layer.runs.data(),
          layer.first_run.data(),
          layer.boxes.data(),
          layer.areas.data(),
          layer.size(),
          static_cast<std::int64_t>(layer.points.size())};
}

/// Pairs as they come, in memory that is asked for before each part of them.
struct PairRoom {
  Call& call;
  std::vector<Overlap>& pairs;

  static std::int32_t make(void* user, std::int64_t count, Overlap** to) {
    auto& room = *static_cast<PairRoom*>(user);
    return room.call.keep([&] {
      const std::size_t before = room.pairs.size();
      const std::size_t after = before + static_cast<std::size_t>(count);
      core::require_memory(room.call.context(), after * 2 * sizeof(Overlap), "overlaps");
      room.pairs.resize(after);
      *to = room.pairs.data() + before;
    });
  }
};

}  // namespace

Overlaps CudaJoins::join(const Context& ctx, const geo::Layer& a, const geo::Layer& b,
                         const OverlapOptions& options) const {
  Overlaps result;
  device_->use(ctx, [&](void* engine, Call& call, Status& status) {
    PairRoom room{call, result.pairs};
    OverlapJoin task;
    task.a = borrowed(a);
    task.b = borrowed(b);
    task.widths = options.widths ? 1 : 0;
    task.make_room = PairRoom::make;
    task.user = &room;
    const HostCalls host = call.host();
    device_->functions().join_polygons(engine, &host, &task, &status);
    result.device_seconds = task.seconds;
  });
  result.candidates = static_cast<std::int64_t>(result.pairs.size());
  result.areas_a = a.areas;
  result.areas_b = b.areas;
  result.on_host = geo::decide(ctx, a, b, result.pairs, kUndecided, options);
  const auto by_ends = [](const Overlap& x, const Overlap& y) { return x.a != y.a ? x.a < y.a : x.b < y.b; };
  // Parts of b come one after the other.
  if (!std::is_sorted(result.pairs.begin(), result.pairs.end(), by_ends)) {
    std::sort(result.pairs.begin(), result.pairs.end(), by_ends);
  }
  std::erase_if(result.pairs, [](const Overlap& pair) { return pair.relation == RegionRelation::disjoint; });
  return result;
}

}  // namespace vicinal::plugin
