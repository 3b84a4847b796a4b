// Writing what `match` found (vicinal/polygon_file.hpp): tables for the plug-in, and files of what it hands back. All
// are made in memory and written beside their targets before the first is renamed.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <utility>

#include "core/entry.hpp"
#include "io/atomic_file.hpp"
#include "plugin/gdal/geo.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal {
namespace {

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

Columns feature_columns(const std::vector<MatchFeature>& features, const std::vector<std::string>& ids,
                        const std::vector<std::string>& partners, const Match& match) {
  Columns columns;
  const auto n = static_cast<std::int64_t>(features.size());
  const auto group_of = [&](std::int64_t i) -> const MatchGroup& {
    return match.groups[static_cast<std::size_t>(features[static_cast<std::size_t>(i)].group)];
  };
  columns.add_texts("match_id", n, [&](std::int64_t i) { return ids[static_cast<std::size_t>(i)]; });
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
  columns.add("cut", column_of(pairs, [](const MatchPair& p) { return std::int64_t{p.cut}; }));
  columns.add("sliver", column_of(pairs, [](const MatchPair& p) { return std::int64_t{p.sliver}; }));
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

/// Files in the making.
class Output {
 public:
  Output(const Context& ctx, const std::filesystem::path& path)
      : ctx_(ctx), shown_(path.string()), stem_((path.parent_path() / path.stem()).string()) {}

  /// Makes a dataset called `file` in memory, whose files become NAME`suffix`.* beside each other.
  void add(const char* driver, const std::string& file, const std::string& suffix,
           std::span<const gdal::Table> tables) {
    suffix_ = suffix;
    gdal::Writing writing{};
    writing.path = shown_.c_str();
    writing.file = file.c_str();
    writing.driver = driver;
    writing.tables = tables.data();
    writing.table_count = static_cast<std::int64_t>(tables.size());
    writing.host = this;
    writing.cancelled = [](void* at) {
      return std::int32_t{static_cast<Output*>(at)->ctx_.cancel_token().cancelled() ? 1 : 0};
    };
    writing.take = [](void* at, const char* ending, const void* bytes, std::int64_t count) {
      static_cast<Output*>(at)->take(ending, bytes, static_cast<std::size_t>(count));
    };
    gdal::Status status{};
    plugin::geo_plugin().write(&writing, &status);
    if (thrown_) std::rethrow_exception(thrown_);
    plugin::check(status);
  }
  void commit() {
    io::OutputGroup together(ctx_.cancel_token());
    for (const auto& file : files_) file->commit();
    together.commit();
  }

 private:
  void take(const char* ending, const void* bytes, std::size_t count) noexcept {
    if (thrown_) return;
    try {
      files_.push_back(std::make_unique<io::AtomicFile>(stem_ + suffix_ + ending, &ctx_.cancel_token()));
      files_.back()->write(bytes, count);
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }

  const Context& ctx_;
  std::string shown_;
  std::string stem_;
  std::string suffix_;
  std::vector<std::unique_ptr<io::AtomicFile>> files_;
  std::exception_ptr thrown_;
};

/// GDAL's driver by a file's ending, and whether it keeps several layers in one file.
struct Format {
  std::string_view ending;
  const char* driver;
  bool together;
};
constexpr std::array<Format, 5> kMapFormats = {{{".gpkg", "GPKG", true},
                                                {".shp", "ESRI Shapefile", false},
                                                {".geojson", "GeoJSON", false},
                                                {".fgb", "FlatGeobuf", false},
                                                {".parquet", "Parquet", false}}};

const Format& format_of(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  for (const Format& format : kMapFormats) {
    if (format.ending != ending) continue;
    const gdal::Functions& plugin = plugin::geo_plugin();
    if (plugin.writes(format.driver) != 0) return format;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("path: '{}': this {} has no driver {} and cannot write such files; write a .gpkg, which "
                            "ogr2ogr or GeoPandas convert",
                            path.string(), std::string_view(plugin.versions).substr(0, 10), format.driver));
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("path: '{}' must end in .gpkg, .shp, .geojson, .fgb or .parquet", path.string()));
}

}  // namespace

void check_match_output(const std::filesystem::path& path) try {
  const core::Entry entry;
  format_of(path);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void write_match(const Context& ctx, const std::filesystem::path& path, const PolygonLayers& layers, const Match& match,
                 std::span<const PolygonColumn> carried) try {
  const core::Entry entry;
  const Format& format = format_of(path);
  std::vector<MatchPair> pairs;
  for (const MatchPair& pair : match.pairs) {
    if (pair.kept || pair.cut || pair.overlap.area > 0) pairs.push_back(pair);
  }
  const Columns of_a = feature_columns(match.a, layers.a.ids, layers.b.ids, match);
  Columns of_b = feature_columns(match.b, layers.b.ids, layers.a.ids, match);
  for (const PolygonColumn& column : carried) {
    if (column.numbers.size() != match.b.size() && column.texts.size() != match.b.size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("write_match: column '{}' has {} values: must be one a feature of b, {}", column.name,
                              std::max(column.numbers.size(), column.texts.size()), match.b.size()));
    }
    if (!column.numbers.empty()) {
      of_b.add(column.name.c_str(), column.numbers);
    } else {
      of_b.add_texts(column.name.c_str(), static_cast<std::int64_t>(match.b.size()),
                     [&column](std::int64_t i) { return column.texts[static_cast<std::size_t>(i)]; });
    }
  }
  const Columns of_pairs = pair_columns(pairs, layers);
  const Columns of_groups = group_columns(match.groups);
  const std::array<gdal::Table, 4> tables = {
      of_a.table("a", layers.source_a.get(), static_cast<std::int64_t>(match.a.size())),
      of_b.table("b", layers.source_b.get(), static_cast<std::int64_t>(match.b.size())),
      of_pairs.table("pairs", nullptr, static_cast<std::int64_t>(pairs.size())),
      of_groups.table("groups", nullptr, static_cast<std::int64_t>(match.groups.size()))};
  Output output(ctx, path);
  if (format.together) {
    output.add(format.driver, "match" + std::string(format.ending), "", tables);
  } else {
    for (const gdal::Table& table : tables) {
      const bool map = table.source != nullptr;
      output.add(map ? format.driver : "CSV", table.name + (map ? std::string(format.ending) : ".csv"),
                 std::string("_") + table.name, {&table, 1});
    }
  }
  output.commit();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
