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
  return kernels::backend_of(ctx).overlap().join(ctx, first, second, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

LayerOverlap overlaps_within(const Context& ctx, const PolygonsView& polygons) try {
  const core::Entry entry;
  core::require_memory(ctx, geo::layer_bytes(polygons) + geo::BoxTree::bytes(polygons.size()), "overlaps_within");
  return geo::overlaps_within(ctx, geo::make_layer(ctx, polygons, "polygons"));
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
