// See commands.hpp. Files are read once, outside of what is repeated; how long that took is told beside it.
#include "vicinal/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>
#include <set>
#include <utility>

#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/commands.hpp"
#include "command/harness.hpp"
#include "graph/edges_file.hpp"
#include "overlap/output.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/io.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {
namespace {

constexpr double kSpacing = 20;  // meters between made buildings
constexpr double kMoved = 2;     // how far the second survey may put one elsewhere

struct BenchMatch {
  CommonOptions common;
  std::int64_t buildings = 100000;
  PolygonSource source;
  std::string old_file;
  std::string new_file;
  std::string id_new;
  std::string layer_new;
  EdgesFile truth;
  bool same_id = false;
  std::string rule = "standard";
  double threshold = 0;
  double width = 0;
  bool overlaps_only = false;
  int repeat = 3;
  std::string commit;
  std::string output;

  void run() const;
};

/// Of all threads together: what a busy machine does not stretch.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

/// A number in [0, 1) that is the same on every machine.
double uniform(std::mt19937_64& draws) {
  return static_cast<double>(draws() >> 11) * 0x1p-53;
}

/// Six-sided buildings on a grid, moved by up to `moved`; the same seed gives the same shapes.
Polygons make_buildings(std::int64_t count, double moved, std::uint64_t seed) {
  Polygons made;
  std::mt19937_64 draws(seed);
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t column = i % side;
    const std::int64_t row = i / side;
    const double x = kSpacing * static_cast<double>(column) + moved * (2 * uniform(draws) - 1);
    const double y = kSpacing * static_cast<double>(row) + moved * (2 * uniform(draws) - 1);
    double ring[12];
    for (std::size_t k = 0; k < 6; ++k) {
      const double radius = 6 + 3 * uniform(draws);
      const double angle = std::numbers::pi / 3 * static_cast<double>(k);
      ring[2 * k] = x + radius * std::cos(angle);
      ring[2 * k + 1] = y + radius * std::sin(angle);
    }
    made.add_ring(ring);
    made.end_part();
    made.end_feature();
  }
  return made;
}

using IdPair = std::pair<std::string, std::string>;

/// Pairs that a file of edges says are true.
std::set<IdPair> read_truth(const Context& ctx, const EdgesFile& file) {
  const NamedEdges edges = read_edges(ctx, describe_file(ctx, file.path), file);
  std::set<IdPair> pairs;
  for (std::size_t e = 0; e < edges.a.size(); ++e) {
    pairs.emplace(edges.ids_a[static_cast<std::size_t>(edges.a[e])], edges.ids_b[static_cast<std::size_t>(edges.b[e])]);
  }
  return pairs;
}

/// Hubert and Arabie's index of two partitions, of which `second` may know less members (-1).
double adjusted_rand(const std::vector<std::int64_t>& first, const std::vector<std::int64_t>& second) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> both;
  std::map<std::int64_t, double> rows;
  std::map<std::int64_t, double> columns;
  double n = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (second[i] < 0) continue;
    both[{first[i], second[i]}] += 1;
    rows[first[i]] += 1;
    columns[second[i]] += 1;
    n += 1;
  }
  const auto pairs = [](double m) { return m * (m - 1) / 2; };
  double together = 0;
  double in_rows = 0;
  double in_columns = 0;
  for (const auto& [cell, m] : both) together += pairs(m);
  for (const auto& [row, m] : rows) in_rows += pairs(m);
  for (const auto& [column, m] : columns) in_columns += pairs(m);
  const double expected = n < 2 ? 0 : in_rows * in_columns / pairs(n);
  const double most = (in_rows + in_columns) / 2;
  return most == expected ? 1 : (together - expected) / (most - expected);
}

/// Truth may know features that the maps do not have, which no rule can match, and is silent on those without a name:
/// both are counted and left out.
Json against_truth(const Context& ctx, const PolygonLayers& layers, const Match& found, const std::set<IdPair>& said) {
  std::map<std::string, std::int64_t> known_a;
  std::map<std::string, std::int64_t> known_b;
  for (std::size_t i = 0; i < layers.a.ids.size(); ++i) known_a.emplace(layers.a.ids[i], static_cast<std::int64_t>(i));
  for (std::size_t j = 0; j < layers.b.ids.size(); ++j) known_b.emplace(layers.b.ids[j], static_cast<std::int64_t>(j));
  std::vector<std::int64_t> ends_a;
  std::vector<std::int64_t> ends_b;
  std::set<IdPair> truth;
  for (const auto& [a, b] : said) {
    const auto i = known_a.find(a);
    const auto j = known_b.find(b);
    if (i == known_a.end() || j == known_b.end()) continue;
    truth.emplace(a, b);
    ends_a.push_back(i->second);
    ends_b.push_back(j->second);
  }
  std::set<IdPair> kept;
  std::int64_t unnamed = 0;
  for (const MatchPair& pair : found.pairs) {
    if (!pair.kept) continue;
    const std::string& a = layers.a.ids[static_cast<std::size_t>(pair.overlap.a)];
    const std::string& b = layers.b.ids[static_cast<std::size_t>(pair.overlap.b)];
    if (a.empty() || b.empty()) {
      ++unnamed;
    } else {
      kept.emplace(a, b);
    }
  }
  const auto right = static_cast<double>(
      std::count_if(kept.begin(), kept.end(), [&truth](const IdPair& pair) { return truth.count(pair) != 0; }));
  const double precision = kept.empty() ? 0 : right / static_cast<double>(kept.size());
  const auto recall_of = [right](std::size_t pairs) { return pairs == 0 ? 0 : right / static_cast<double>(pairs); };
  const auto f1_of = [right, &kept](std::size_t pairs) {
    return right > 0 ? 2 * right / static_cast<double>(kept.size() + pairs) : 0;
  };
  const auto m = static_cast<std::int64_t>(found.a.size());
  const Cocluster groups = cocluster(ctx, BipartiteEdges(m, static_cast<std::int64_t>(found.b.size()), ends_a, ends_b));
  std::vector<std::int64_t> ours;
  std::vector<std::int64_t> theirs = groups.labels_a;
  for (const MatchFeature& feature : found.a) ours.push_back(feature.group);
  for (const MatchFeature& feature : found.b) ours.push_back(feature.group);
  theirs.insert(theirs.end(), groups.labels_b.begin(), groups.labels_b.end());
  return {{"true_pairs", truth.size()},
          {"true_pairs_elsewhere", said.size() - truth.size()},
          {"kept_pairs", kept.size()},
          {"kept_pairs_without_a_name", unnamed},
          {"right", right},
          {"precision", precision},
          {"recall", recall_of(truth.size())},
          {"f1", f1_of(truth.size())},
          {"recall_with_elsewhere", recall_of(said.size())},
          {"f1_with_elsewhere", f1_of(said.size())},
          {"adjusted_rand", adjusted_rand(ours, theirs)}};
}

/// The pairs that bear the same name.
std::set<IdPair> same_names(const PolygonLayers& layers) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const std::string& id : layers.a.ids) ++counts[id].first;
  for (const std::string& id : layers.b.ids) ++counts[id].second;
  std::set<IdPair> pairs;
  for (const auto& [id, count] : counts) {
    if (!id.empty() && count.first > 0 && count.second > 0) pairs.emplace(id, id);
  }
  return pairs;
}

void BenchMatch::run() const {
  const Runtime runtime = make_runtime(common, Computes::on_host);
  const Context& ctx = runtime.ctx;
  check_output("-o", output, {".json"});
  if (repeat < 1) throw Error(ErrorCode::invalid_argument, "--repeat: must be at least 1");
  if (old_file.empty() != new_file.empty()) throw Error(ErrorCode::invalid_argument, "OLD and NEW: give both or none");
  if (old_file.empty() && (!truth.path.empty() || same_id)) {
    throw Error(ErrorCode::invalid_argument, "--truth and --same-id are about files");
  }
  if (overlaps_only && (!truth.path.empty() || same_id)) {
    throw Error(ErrorCode::invalid_argument, "--overlaps-only: matches nothing that --truth or --same-id could judge");
  }
  PolygonLayers layers;
  double read_seconds = 0;
  if (old_file.empty()) {
    if (buildings < 1) throw Error(ErrorCode::invalid_argument, "--buildings: must be at least 1");
    layers.a.polygons = make_buildings(buildings, 0, 1);
    layers.b.polygons = make_buildings(buildings, kMoved, 2);
  } else {
    PolygonSource first = source;
    PolygonSource second = source;
    first.path = old_file;
    second.path = new_file;
    if (!id_new.empty()) second.id = id_new;
    if (!layer_new.empty()) second.layer = layer_new;
    read_seconds = measure(ctx, {0, 1}, [&] { layers = read_polygon_layers(ctx, first, second); }).median();
  }
  const PolygonsView a = layers.a.polygons.view();
  const PolygonsView b = layers.b.polygons.view();
  MatchOptions options;
  options.rule = edge_rule_from(rule);
  options.threshold = threshold;
  options.min_width = width;
  Overlaps areas;
  Match found;
  areas = overlaps(ctx, a, b, {.widths = false});
  const double cpu_before = cpu_seconds();
  std::vector<double> device_seconds;
  const Timings area_times = measure(ctx, {0, repeat}, [&] {
    areas = overlaps(ctx, a, b, {.widths = false});
    device_seconds.push_back(areas.device_seconds);
  });
  const double area_cpu = (cpu_seconds() - cpu_before) / repeat;
  Timings match_times;
  if (!overlaps_only) match_times = measure(ctx, {0, repeat}, [&] { found = match(ctx, a, b, options); });
  Json json = head_of_results("bench match", commit);
  json["old"] = old_file.empty() ? fmt::format("{} made buildings", buildings) : old_file;
  json["new"] = new_file;
  json["features"] = {a.size(), b.size()};
  json["points"] = {a.points.size() / 2, b.points.size() / 2};
  json["threads"] = ctx.threads();
  json["isa"] = name_of(ctx.isa());
  json["candidates"] = areas.candidates;
  json["meeting"] = areas.pairs.size();
  json["read_seconds"] = read_seconds;
  json["overlap_seconds"] = to_json(area_times);
  json["overlap_cpu_seconds"] = area_cpu;
  json["overlap_cpu_microseconds_a_candidate"] =
      1e6 * area_cpu / static_cast<double>(std::max<std::int64_t>(1, areas.candidates));
  json["device"] = ctx.device();
  if (ctx.device() != "cpu") {
    json["overlap_device_seconds"] = device_seconds;
    json["candidates_left_to_host"] = areas.on_host;
  }
  if (!overlaps_only) {
    json["match_seconds"] = to_json(match_times);
    json["kept"] = count_kept(found);
    json["groups"] = found.groups.size();
  }
  if (!truth.path.empty() || same_id) {
    json["truth"] = against_truth(ctx, layers, found, same_id ? same_names(layers) : read_truth(ctx, truth));
  }
  if (!output.empty()) write_text(output, json.dump(2) + "\n");
  runtime.progress->clear();
  if (common.json) return print_json(json);
  std::string text =
      fmt::format("read {:.3f} s, overlaps {:.3f} s ({:.3f} us of one core a pair of boxes)", read_seconds,
                  area_times.median(), json["overlap_cpu_microseconds_a_candidate"].get<double>());
  if (!overlaps_only) text += fmt::format(", match {:.3f} s", match_times.median());
  if (ctx.device() != "cpu") {
    text +=
        fmt::format("; {:.4f} s on the device, which left {} of {} pairs of boxes to the host",
                    *std::min_element(device_seconds.begin(), device_seconds.end()), areas.on_host, areas.candidates);
  }
  text += "\n";
  if (json.contains("truth")) {
    const Json& t = json["truth"];
    text += fmt::format("of {} true pairs, {} kept: precision {:.4f}, recall {:.4f}, F1 {:.4f}, adjusted Rand {:.4f}\n",
                        t["true_pairs"].get<std::int64_t>(), t["kept_pairs"].get<std::int64_t>(),
                        t["precision"].get<double>(), t["recall"].get<double>(), t["f1"].get<double>(),
                        t["adjusted_rand"].get<double>());
    if (const auto elsewhere = t["true_pairs_elsewhere"].get<std::int64_t>(); elsewhere > 0) {
      text += fmt::format("{} more have a feature that no map has: with them recall {:.4f}, F1 {:.4f}\n", elsewhere,
                          t["recall_with_elsewhere"].get<double>(), t["f1_with_elsewhere"].get<double>());
    }
  }
  print_text(text);
}

}  // namespace

Command add_bench_match(const Parser& bench) {
  auto command = std::make_shared<BenchMatch>();
  const Parser app =
      bench.add_subcommand("match", "Time overlap areas and matches of two maps, and hold them against truth");
  app.add_option("OLD", command->old_file, "The first map; none: made buildings").type_name("FILE");
  app.add_option("NEW", command->new_file, "The second map").type_name("FILE");
  app.add_option("--buildings", command->buildings, "Six-sided buildings to make in each map")
      .type_name("N")
      .capture_default_str();
  app.add_option("--id", command->source.id, "Column with the ids of the features").type_name("COLUMN");
  app.add_option("--id-new", command->id_new, "Name of that column in NEW, if it differs").type_name("COLUMN");
  app.add_option("--layer", command->source.layer, "Layer, where a file has several").type_name("NAME");
  app.add_option("--layer-new", command->layer_new, "Layer of NEW").type_name("NAME");
  app.add_option("--crs", command->source.crs, "Coordinate reference system of files that name none").type_name("CRS");
  app.add_option("--truth", command->truth.path, "True pairs: delimited text with ids of OLD and NEW")
      .type_name("FILE");
  app.add_option("--truth-old", command->truth.a, "Name or position of its column with ids of OLD")
      .type_name("COLUMN")
      .capture_default_str();
  app.add_option("--truth-new", command->truth.b, "Of the one with ids of NEW")
      .type_name("COLUMN")
      .capture_default_str();
  app.add_option("--truth-weight", command->truth.weight, "Column with the weights [the third of three]")
      .type_name("COLUMN");
  app.add_option("--truth-above", command->truth.above, "Only pairs whose weight is above this are true")
      .type_name("X");
  app.add_flag("--same-id", command->same_id, "True pairs are those of the same id");
  app.add_option("--rule", command->rule, "As of `vicinal match`").type_name("NAME").capture_default_str();
  app.add_option("--threshold", command->threshold, "As of `vicinal match`").type_name("X").capture_default_str();
  app.add_option("--width", command->width, "As of `vicinal match`").type_name("X").capture_default_str();
  app.add_flag("--overlaps-only", command->overlaps_only, "Match nothing");
  app.add_option("--repeat", command->repeat, "Timed runs").type_name("N").capture_default_str();
  app.add_option("--commit", command->commit, "Commit to note in the result").type_name("ID");
  app.add_option("-o,--output", command->output, "Where to write the result, too (.json)").type_name("FILE");
  add_common_options(app, command->common);
  app.add_examples({"vicinal-bench match --buildings 2000 --repeat 1",
                    "vicinal-bench match old.geojson new.geojson --id GEOID --same-id --json"});
  return {app, [command] { command->run(); }, &command->common.json};
}

}  // namespace vicinal::cli
