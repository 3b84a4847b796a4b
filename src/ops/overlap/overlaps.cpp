// The overlap join at the door: memory, layers, and the work in src/geo (contract clauses 6, 7 and 15).
#include "backend/backend.hpp"
#include "backend/overlap.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "geo/box_tree.hpp"
#include "geo/join.hpp"
#include "geo/layer.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal {
namespace kernels {
namespace {

class CpuJoins final : public Joins {
 public:
  [[nodiscard]] Overlaps join(const Context& ctx, const geo::Layer& a, const geo::Layer& b,
                              const OverlapOptions& options) const override {
    return geo::join(ctx, a, b, options);
  }
};

}  // namespace

const Joins& joins_of(const Context& ctx) {
  static const CpuJoins kCpu;
  const auto* const own = dynamic_cast<const Joins*>(ctx.backend());
  return own != nullptr ? *own : static_cast<const Joins&>(kCpu);
}

}  // namespace kernels

namespace {

constexpr std::array<core::Named<RegionRelation>, 8> kRegionRelations = {{
    {RegionRelation::disjoint, "disjoint"},
    {RegionRelation::touches, "touches"},
    {RegionRelation::overlaps, "overlaps"},
    {RegionRelation::covers, "covers"},
    {RegionRelation::covered_by, "covered_by"},
    {RegionRelation::contains, "contains"},
    {RegionRelation::within, "within"},
    {RegionRelation::equals, "equals"},
}};

}  // namespace

std::string_view name_of(RegionRelation relation) noexcept {
  return core::name_in(kRegionRelations, relation);
}

Overlaps overlaps(const Context& ctx, const PolygonsView& a, const PolygonsView& b, const OverlapOptions& options) try {
  const core::Entry entry;
  core::require_memory(ctx, geo::layer_bytes(a) + geo::layer_bytes(b) + geo::BoxTree::bytes(b.size()), "overlaps");
  const geo::Layer first = geo::make_layer(ctx, a, "a");
  const geo::Layer second = geo::make_layer(ctx, b, "b");
  return kernels::joins_of(ctx).join(ctx, first, second, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::int64_t> self_overlapping(const Context& ctx, const PolygonsView& polygons) try {
  const core::Entry entry;
  core::require_memory(ctx, geo::layer_bytes(polygons), "self_overlapping");
  return geo::self_overlapping(ctx, geo::make_layer(ctx, polygons, "polygons"));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
