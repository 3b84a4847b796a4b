// See vicinal/polygon_file.hpp: the host's half, before and after the plug-in's calls. Two files are two threads' work.
#include "vicinal/polygon_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <mutex>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "io/atomic_file.hpp"
#include "plugin/geo.hpp"

namespace vicinal {
namespace {

constexpr double kWidestPlane = 90;  // degrees that an azimuthal projection is still good for, and readable

std::int32_t asks_cancelled(void* host) {
  return static_cast<const Context*>(host)->cancel_token().cancelled() ? 1 : 0;
}

const char* or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

std::shared_ptr<void> open(const gdal::Functions& gdal, const PolygonSource& source) {
  if (source.path.empty()) throw Error(ErrorCode::invalid_argument, "the path of a file of polygons is empty");
  const std::string path = source.path.string();
  const gdal::Source asked = {path.c_str(), or_null(source.layer), or_null(source.id), or_null(source.code),
                              or_null(source.crs)};
  gdal::Status status{};
  void* const handle = gdal.open(&asked, &status);
  plugin::check(status);
  return {handle, gdal.close};
}

/// The plane for both, and whether it is one of the whole world.
struct Plane {
  std::string projection;
  bool world = false;
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
  return {fmt::format("+proj=laea +lat_0={} +lon_0={} +datum=WGS84 +units=m +no_defs", tenth((south + north) / 2),
                      tenth((west + east) / 2)),
          false};
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

void take(const Context& ctx, const gdal::Functions& gdal, void* handle, PolygonLayer& layer) {
  gdal::Layer view{};
  gdal.view(handle, &view);
  const auto bytes =
      static_cast<std::uint64_t>(view.counts[0] * 16 + (view.counts[1] + view.counts[2]) * 8 + view.counts[3] * 80);
  core::require_memory(ctx, bytes, "reading polygons");
  copy(view, layer.polygons);
  layer.ids = texts_of(view.ids, view.counts[3]);
  if (view.codes.ends != nullptr) layer.codes = texts_of(view.codes, view.counts[3]);
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

/// Columns of a table that is written; owns what they point to.
class Columns {
 public:
  void add(const char* name, std::vector<std::int64_t> values) {
    integers_.push_back(std::make_unique<std::vector<std::int64_t>>(std::move(values)));
    columns_.push_back({name, gdal::kIntegers, integers_.back()->data(), nullptr, {}});
  }
  void add(const char* name, std::vector<double> values) {
    reals_.push_back(std::make_unique<std::vector<double>>(std::move(values)));
    columns_.push_back({name, gdal::kReals, nullptr, reals_.back()->data(), {}});
  }
  template <class Text>
  void add_texts(const char* name, std::int64_t rows, const Text& text) {
    auto list = std::make_unique<TextList>();
    for (std::int64_t i = 0; i < rows; ++i) {
      list->bytes += text(i);
      list->ends.push_back(static_cast<std::int64_t>(list->bytes.size()));
    }
    columns_.push_back({name, gdal::kTexts, nullptr, nullptr, {list->bytes.data(), list->ends.data()}});
    texts_.push_back(std::move(list));
  }
  [[nodiscard]] gdal::Table table(const char* name, void* source, std::int64_t rows) const {
    return {name, source, columns_.data(), static_cast<std::int64_t>(columns_.size()), rows};
  }

 private:
  struct TextList {
    std::string bytes;
    std::vector<std::int64_t> ends;
  };
  std::vector<gdal::Column> columns_;
  std::vector<std::unique_ptr<std::vector<std::int64_t>>> integers_;
  std::vector<std::unique_ptr<std::vector<double>>> reals_;
  std::vector<std::unique_ptr<TextList>> texts_;
};

template <class List, class Value>
auto column_of(const List& list, const Value& value) {
  std::vector<std::decay_t<decltype(value(list.front()))>> values;
  values.reserve(list.size());
  for (const auto& one : list) values.push_back(value(one));
  return values;
}

const std::string& id_or_none(const std::vector<std::string>& ids, std::int64_t at) {
  static const std::string kNone;
  return at < 0 ? kNone : ids[static_cast<std::size_t>(at)];
}

Columns feature_columns(const std::vector<MatchFeature>& features, const std::vector<std::string>& partners,
                        const Match& match) {
  Columns columns;
  const auto n = static_cast<std::int64_t>(features.size());
  const auto group_of = [&](std::int64_t i) -> const MatchGroup& {
    return match.groups[static_cast<std::size_t>(features[static_cast<std::size_t>(i)].group)];
  };
  columns.add("match_grp", column_of(features, [](const MatchFeature& f) { return f.group; }));
  columns.add_texts("match_type", n, [&](std::int64_t i) { return name_of(group_of(i).type); });
  columns.add_texts("change", n, [&](std::int64_t i) { return name_of(group_of(i).change); });
  columns.add_texts("best", n,
                    [&](std::int64_t i) { return id_or_none(partners, features[static_cast<std::size_t>(i)].best); });
  columns.add("area_m2", column_of(features, [](const MatchFeature& f) { return f.area; }));
  return columns;
}

Columns pair_columns(const std::vector<MatchPair>& pairs, const PolygonLayers& layers) {
  Columns columns;
  const auto n = static_cast<std::int64_t>(pairs.size());
  const auto pair = [&pairs](std::int64_t i) -> const MatchPair& { return pairs[static_cast<std::size_t>(i)]; };
  columns.add_texts("a_id", n, [&](std::int64_t i) { return id_or_none(layers.a.ids, pair(i).overlap.a); });
  columns.add_texts("b_id", n, [&](std::int64_t i) { return id_or_none(layers.b.ids, pair(i).overlap.b); });
  columns.add("area", column_of(pairs, [](const MatchPair& p) { return p.overlap.area; }));
  columns.add("share_a", column_of(pairs, [](const MatchPair& p) { return p.share_a; }));
  columns.add("share_b", column_of(pairs, [](const MatchPair& p) { return p.share_b; }));
  columns.add("iou", column_of(pairs, [](const MatchPair& p) { return p.iou; }));
  columns.add("width", column_of(pairs, [](const MatchPair& p) { return p.overlap.width; }));
  columns.add_texts("relation", n, [&](std::int64_t i) { return name_of(pair(i).overlap.relation); });
  columns.add("kept", column_of(pairs, [](const MatchPair& p) { return std::int64_t{p.kept}; }));
  columns.add("doubtful", column_of(pairs, [](const MatchPair& p) { return std::int64_t{p.doubtful}; }));
  columns.add("match_grp", column_of(pairs, [](const MatchPair& p) { return p.group; }));
  return columns;
}

Columns group_columns(const std::vector<MatchGroup>& groups) {
  Columns columns;
  const auto n = static_cast<std::int64_t>(groups.size());
  const auto group = [&groups](std::int64_t i) -> const MatchGroup& { return groups[static_cast<std::size_t>(i)]; };
  std::vector<std::int64_t> numbers(groups.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  columns.add("match_grp", std::move(numbers));
  columns.add_texts("match_type", n, [&](std::int64_t i) { return name_of(group(i).type); });
  columns.add_texts("change", n, [&](std::int64_t i) { return name_of(group(i).change); });
  columns.add("count_a", column_of(groups, [](const MatchGroup& g) { return g.count_a; }));
  columns.add("count_b", column_of(groups, [](const MatchGroup& g) { return g.count_b; }));
  columns.add("area_a", column_of(groups, [](const MatchGroup& g) { return g.area_a; }));
  columns.add("area_b", column_of(groups, [](const MatchGroup& g) { return g.area_b; }));
  columns.add("shared", column_of(groups, [](const MatchGroup& g) { return g.shared; }));
  columns.add("iou", column_of(groups, [](const MatchGroup& g) { return g.iou; }));
  columns.add("coherence", column_of(groups, [](const MatchGroup& g) { return g.coherence; }));
  columns.add("itself", column_of(groups, [](const MatchGroup& g) { return std::int64_t{g.overlaps_itself}; }));
  return columns;
}

}  // namespace

PolygonLayers read_polygon_layers(const Context& ctx, const PolygonSource& a, const PolygonSource& b, bool planar) {
  const gdal::Functions& gdal = plugin::geo_plugin();
  PolygonLayers layers;
  layers.versions = gdal.versions;
  const std::array<const PolygonSource*, 2> sources = {&a, &b};
  const std::array<std::shared_ptr<void>*, 2> handles = {&layers.source_a, &layers.source_b};
  std::array<gdal::Bounds, 2> bounds{};
  ctx.report("read", 0);
  core::parallel_for(ctx, 2, [&](std::int64_t side, int /*worker*/) {
    const auto at = static_cast<std::size_t>(side);
    *handles[at] = open(gdal, *sources[at]);
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
    const gdal::Loading loading = {planar ? nullptr : plane.projection.c_str(), plane.world, const_cast<Context*>(&ctx),
                                   asks_cancelled};
    gdal.load(handles[static_cast<std::size_t>(side)]->get(), &loading, &status);
    plugin::check(status);
  });
  take(ctx, gdal, layers.source_a.get(), layers.a);
  take(ctx, gdal, layers.source_b.get(), layers.b);
  if (planar && layers.a.crs != layers.b.crs) {
    throw Error(ErrorCode::bad_data, fmt::format("{} is in {}, {} in {}: they are not in one plane (--planar)",
                                                 a.path.string(), layers.a.crs, b.path.string(), layers.b.crs));
  }
  ctx.report("read", 1);
  return layers;
}

void write_match(const Context& ctx, const std::filesystem::path& path, const PolygonLayers& layers,
                 const Match& match) {
  const gdal::Functions& gdal = plugin::geo_plugin();
  io::AtomicFile file(path);
  std::vector<MatchPair> pairs;
  for (const MatchPair& pair : match.pairs) {
    if (pair.kept || pair.overlap.area > 0) pairs.push_back(pair);
  }
  const Columns of_a = feature_columns(match.a, layers.b.ids, match);
  const Columns of_b = feature_columns(match.b, layers.a.ids, match);
  const Columns of_pairs = pair_columns(pairs, layers);
  const Columns of_groups = group_columns(match.groups);
  const std::array<gdal::Table, 4> tables = {
      of_a.table("a", layers.source_a.get(), static_cast<std::int64_t>(match.a.size())),
      of_b.table("b", layers.source_b.get(), static_cast<std::int64_t>(match.b.size())),
      of_pairs.table("pairs", nullptr, static_cast<std::int64_t>(pairs.size())),
      of_groups.table("groups", nullptr, static_cast<std::int64_t>(match.groups.size()))};
  struct Host {
    const Context* ctx;
    io::AtomicFile* file;
    std::exception_ptr thrown;
  } host{&ctx, &file, nullptr};
  const std::string shown = path.string();
  gdal::Writing writing{};
  writing.path = shown.c_str();
  writing.driver = "GPKG";
  writing.tables = tables.data();
  writing.table_count = static_cast<std::int64_t>(tables.size());
  writing.host = &host;
  writing.cancelled = [](void* at) { return asks_cancelled(const_cast<Context*>(static_cast<Host*>(at)->ctx)); };
  writing.take = [](void* at, const void* bytes, std::int64_t count) {
    try {
      static_cast<Host*>(at)->file->write(bytes, static_cast<std::size_t>(count));
    } catch (...) {
      static_cast<Host*>(at)->thrown = std::current_exception();
    }
  };
  gdal::Status status{};
  gdal.write(&writing, &status);
  if (host.thrown) std::rethrow_exception(host.thrown);
  plugin::check(status);
  file.commit();
}

std::string polygon_files_missing() {
  try {
    plugin::geo_plugin();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace vicinal
