// Reading files of polygons (vicinal/polygon_file.hpp): the host's half. Two files are two threads' work.
#include "vicinal/polygon_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <mutex>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "plugin/gdal/geo.hpp"

namespace vicinal {
namespace {

constexpr double kWidestPlane = 90;  // degrees that an azimuthal projection is still good for, and readable

std::int32_t asks_cancelled(void* host) {
  return static_cast<const Context*>(host)->cancel_token().cancelled() ? 1 : 0;
}

const char* or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

std::shared_ptr<void> open(const Context& ctx, const gdal::Functions& gdal, const PolygonSource& source) {
  if (source.path.empty()) throw Error(ErrorCode::invalid_argument, "the path of a file of polygons is empty");
  const std::string path = source.path.string();
  std::vector<const char*> columns;
  columns.reserve(source.columns.size());
  for (const std::string& name : source.columns) columns.push_back(name.c_str());
  const gdal::Source asked = {path.c_str(),
                              or_null(source.layer),
                              or_null(source.id),
                              or_null(source.code),
                              or_null(source.name),
                              or_null(source.where),
                              or_null(source.crs),
                              columns.data(),
                              static_cast<std::int64_t>(columns.size()),
                              const_cast<Context*>(&ctx),
                              asks_cancelled};
  gdal::Status status{};
  void* const handle = gdal.open(&asked, &status);
  plugin::check(status);
  return {handle, gdal.close};
}

/// The plane for both, and whether it is one of the whole world.
struct Plane {
  std::string projection;
  bool world = false;
  double latitude = 0;  // of the middle, where it is not
  double longitude = 0;
};

Plane plane_of(const gdal::Bounds& a, const gdal::Bounds& b) {
  const double west = std::min(a.west, b.west);
  const double east = std::max(a.east, b.east);
  const double south = std::min(a.south, b.south);
  const double north = std::max(a.north, b.north);
  if (!(east - west <= kWidestPlane && north - south <= kWidestPlane)) {
    return {"+proj=eqearth +datum=WGS84 +units=m +no_defs", true};
  }
  const auto tenth = [](double degrees) { return std::round(degrees * 10) / 10; };
  const double latitude = tenth((south + north) / 2);
  const double longitude = tenth((west + east) / 2);
  return {fmt::format("+proj=laea +lat_0={} +lon_0={} +datum=WGS84 +units=m +no_defs", latitude, longitude), false,
          latitude, longitude};
}

std::vector<std::string> texts_of(const gdal::Texts& texts, std::int64_t count) {
  std::vector<std::string> list;
  list.reserve(static_cast<std::size_t>(count));
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    list.emplace_back(texts.bytes + begin, static_cast<std::size_t>(texts.ends[i] - begin));
    begin = texts.ends[i];
  }
  return list;
}

void copy(const gdal::Layer& from, Polygons& to) {
  to.points.assign(from.points, from.points + 2 * from.counts[0]);
  to.rings.assign(from.rings, from.rings + from.counts[1] + 1);
  to.parts.assign(from.parts, from.parts + from.counts[2] + 1);
  to.features.assign(from.features, from.features + from.counts[3] + 1);
}

void take(const Context& ctx, const gdal::Functions& gdal, const PolygonSource& source, void* handle,
          PolygonLayer& layer) {
  gdal::Layer view{};
  gdal.view(handle, &view);
  const auto columns = static_cast<std::int64_t>(source.columns.size() + (source.name.empty() ? 0 : 1));
  const auto bytes = static_cast<std::uint64_t>(view.counts[0] * 16 + (view.counts[1] + view.counts[2]) * 8 +
                                                view.counts[3] * (80 + 40 * columns));
  core::require_memory(ctx, bytes, "reading polygons");
  copy(view, layer.polygons);
  layer.ids = texts_of(view.ids, view.counts[3]);
  if (view.codes.ends != nullptr) layer.codes = texts_of(view.codes, view.counts[3]);
  if (view.names.ends != nullptr) layer.names = texts_of(view.names, view.counts[3]);
  for (std::size_t c = 0; c < source.columns.size(); ++c) {
    const gdal::Column& column = view.columns[c];
    PolygonColumn& own = layer.columns.emplace_back();
    own.name = source.columns[c];
    own.texts = texts_of(column.texts, view.counts[3]);
    if (column.reals != nullptr) own.numbers.assign(column.reals, column.reals + view.counts[3]);
  }
  layer.crs = view.crs;
  layer.cut.assign(view.cut, view.cut + view.cut_count);
  for (std::int64_t i = 0; i < view.counts[3]; ++i) {
    if (view.features[i] == view.features[i + 1]) ++layer.empty;
  }
  layer.repaired = self_overlapping(ctx, layer.polygons.view());
  if (layer.repaired.empty()) return;
  gdal::Status status{};
  gdal.repair(handle, layer.repaired.data(), static_cast<std::int64_t>(layer.repaired.size()), &status);
  plugin::check(status);
  gdal.view(handle, &view);
  copy(view, layer.polygons);
}

}  // namespace

PolygonLayers read_polygon_layers(const Context& ctx, const PolygonSource& a, const PolygonSource& b, bool planar) try {
  const core::Entry entry;
  const gdal::Functions& gdal = plugin::geo_plugin();
  PolygonLayers layers;
  layers.versions = gdal.versions;
  const std::array<const PolygonSource*, 2> sources = {&a, &b};
  const std::array<std::shared_ptr<void>*, 2> handles = {&layers.source_a, &layers.source_b};
  std::array<gdal::Bounds, 2> bounds{};
  ctx.report("read", 0);
  core::parallel_for(ctx, 2, [&](std::int64_t side, int /*worker*/) {
    const auto at = static_cast<std::size_t>(side);
    *handles[at] = open(ctx, gdal, *sources[at]);
    gdal::Status status{};
    const bool has_crs = gdal.locate(handles[at]->get(), &bounds[at], &status) != 0;
    plugin::check(status);
    if (!has_crs && !planar) {
      throw Error(ErrorCode::bad_data,
                  sources[at]->path.string() +
                      ": it does not say what its coordinates mean: name its coordinate reference system (--crs "
                      "EPSG:4326), or say that both files are in one plane (--planar)");
    }
  });
  const Plane plane = planar ? Plane{"none", false} : plane_of(bounds[0], bounds[1]);
  layers.projection = plane.projection;
  core::parallel_for(ctx, 2, [&](std::int64_t side, int /*worker*/) {
    gdal::Status status{};
    const gdal::Loading loading = {planar ? nullptr : plane.projection.c_str(),
                                   plane.world,
                                   plane.latitude,
                                   plane.longitude,
                                   const_cast<Context*>(&ctx),
                                   asks_cancelled};
    gdal.load(handles[static_cast<std::size_t>(side)]->get(), &loading, &status);
    plugin::check(status);
  });
  take(ctx, gdal, a, layers.source_a.get(), layers.a);
  take(ctx, gdal, b, layers.source_b.get(), layers.b);
  if (planar && layers.a.crs != layers.b.crs) {
    throw Error(ErrorCode::bad_data, fmt::format("{} is in {}, {} in {}: they are not in one plane (--planar)",
                                                 a.path.string(), layers.a.crs, b.path.string(), layers.b.crs));
  }
  ctx.report("read", 1);
  return layers;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

PolygonFileInfo describe_polygon_file(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  struct Host {
    const Context& ctx;
    PolygonFileInfo info;
  } host{ctx, {}};
  const std::string name = path.string();
  const gdal::Describing describing = {
      name.c_str(), &host,
      [](void* asked) -> std::int32_t { return static_cast<Host*>(asked)->ctx.cancel_token().cancelled() ? 1 : 0; },
      [](void* taker, const gdal::Description* found) {
        PolygonFileInfo& info = static_cast<Host*>(taker)->info;
        info.format = found->format;
        PolygonFileInfo::Layer layer;
        layer.name = found->name;
        layer.geometry = found->geometry;
        if (found->crs != nullptr) layer.crs = found->crs;
        layer.features = found->features;
        if (found->has_extent) layer.extent.assign(found->extent, found->extent + 4);
        layer.columns.assign(found->columns, found->columns + found->column_count);
        layer.types.assign(found->types, found->types + found->column_count);
        info.layers.push_back(std::move(layer));
      }};
  gdal::Status status{};
  plugin::geo_plugin().describe(&describing, &status);
  plugin::check(status);
  return std::move(host.info);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::string polygon_files_missing() try {
  const core::Entry entry;
  try {
    plugin::geo_plugin();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
