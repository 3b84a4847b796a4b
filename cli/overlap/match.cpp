// vicinal match: which features of two maps of polygons correspond, from one to one to many to many.
#include "vicinal/match.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/common_options.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/planned_inputs.hpp"
#include "commands.hpp"
#include "overlap/advice.hpp"
#include "overlap/carried.hpp"
#include "overlap/changes.hpp"
#include "overlap/output.hpp"
#include "report/map.hpp"
#include "vicinal/io.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {
namespace {

struct MatchCommand {
  PolygonSource a;
  PolygonSource b;
  std::string path_a;
  std::string path_b;
  bool planar = false;
  std::string rule = "standard";
  double threshold = 0;
  double width = 0;
  double sliver_width = 0;
  double unchanged = 0.98;
  std::int64_t max_partners = 0;
  double max_area = 0;
  SplitOptions split;
  std::string agreement = "ignored";
  CarryOptions carry;
  std::string output;
  std::string changes;
  std::string carried;
  std::string report;
  CommonOptions common;

  void run() const;
  void explain(const Runtime& runtime, std::uint64_t memory) const;
  [[nodiscard]] MatchOptions options() const;
};

/// The same number for the same text, -1 for none.
std::vector<std::int64_t> numbered(const std::vector<std::string>& codes, std::map<std::string, std::int64_t>& known) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(codes.size());
  for (const std::string& code : codes) {
    numbers.push_back(code.empty() ? -1 : known.emplace(code, static_cast<std::int64_t>(known.size())).first->second);
  }
  return numbers;
}

MatchOptions MatchCommand::options() const {
  MatchOptions options;
  options.rule = edge_rule_from(rule);
  options.threshold = threshold;
  options.min_width = width;
  options.sliver_width = sliver_width;
  options.unchanged_iou = unchanged;
  options.widths = true;
  options.max_partners = max_partners;
  options.max_area = max_area;
  options.split = split;
  options.agreement = agreement == "required" ? Agreement::required
                      : agreement == "enough" ? Agreement::enough
                                              : Agreement::ignored;
  return options;
}

void MatchCommand::explain(const Runtime& runtime, std::uint64_t memory) const {
  if (common.json) {
    return print_json(
        {{"plan", {{"device", runtime.ctx.device()}, {"threads", runtime.ctx.threads()}, {"memory_bytes", memory}}}});
  }
  print_text(fmt::format("runs on  {}, {} threads\nmemory   {}, at most\n", runtime.ctx.device(), runtime.ctx.threads(),
                         format_bytes(static_cast<double>(memory))));
}

void MatchCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common);
  const Context& ctx = runtime.ctx;
  check_output("-o", output, {".gpkg", ".shp", ".geojson", ".fgb", ".parquet", ".csv"});
  check_output("--changes", changes, {".csv"});
  check_output("--carried", carried, {".csv"});
  check_output("--report", report, {".html", ".htm"});
  const bool is_map = !output.empty() && !is_csv_output(output);
  MatchOptions chosen = options();
  if ((chosen.agreement != Agreement::ignored) == a.code.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--agree and --agreement: must be given together: a column of codes, and how to use them");
  }
  PolygonSource first = a;
  PolygonSource second = b;
  first.path = path_a;
  second.path = path_b;
  if (second.id.empty()) second.id = first.id;
  if (second.code.empty()) second.code = first.code;
  if (second.name.empty()) second.name = first.name;
  if (second.crs.empty()) second.crs = first.crs;
  first.columns = carry.columns();
  if (carry.empty() ? !carried.empty() : carried.empty() && !is_map) {
    throw Error(ErrorCode::invalid_argument,
                "--carry, --carry-sum and --carry-mean name columns, whose values go to --carried FILE.csv or to a map "
                "(-o NAME.gpkg): give both");
  }
  constexpr std::uint64_t kGdal = 40'000'000;  // its library, PROJ's and those that they need
  PlannedInputs inputs(runtime, common);
  const bool is_copied = is_map || !report.empty();
  const auto named = static_cast<std::int64_t>(first.name.empty() ? 0 : 1);
  inputs.add_map(path_a, is_copied, named + static_cast<std::int64_t>(first.columns.size()));
  inputs.add_map(path_b, is_copied, named + 2 * static_cast<std::int64_t>(first.columns.size()));
  inputs.add(kGdal);
  if (common.explain) return explain(runtime, inputs.total(0));
  inputs.require("match", 0);
  if (is_map) check_match_output(output);  // by GDAL, which the plan has counted
  const PolygonLayers layers = read_polygon_layers(ctx, first, second, planar);
  std::map<std::string, std::int64_t> known;
  const std::vector<std::int64_t> codes_a = numbered(layers.a.codes, known);
  const std::vector<std::int64_t> codes_b = numbered(layers.b.codes, known);
  chosen.codes_a = codes_a;
  chosen.codes_b = codes_b;
  const LayerOverlap within_a = overlaps_within(ctx, layers.a.polygons.view());
  const LayerOverlap within_b = overlaps_within(ctx, layers.b.polygons.view());
  const Match found = match(ctx, layers.a.polygons.view(), layers.b.polygons.view(), chosen);
  const std::vector<ListedChange> listed_changes = list_changes(ctx, found);
  const CarriedColumns values = carry_columns(ctx, carry, path_a, layers, found);
  const MatchedFiles files{path_a,    path_b,    &layers, &found, &listed_changes,
                           &within_a, &within_b, &values, &carry, advise(found)};
  ctx.check_cancelled();
  OutputFiles together;
  if (is_map) {
    write_match(ctx, output, layers, found, values.columns);
  } else if (!output.empty()) {
    write_text(output, pairs_csv(layers, found));
  }
  if (!changes.empty()) write_text(changes, changes_csv(layers, listed_changes));
  if (!carried.empty()) write_text(carried, carried_csv(layers, found, values));
  const auto seconds = [&start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if (!report.empty()) write_text(report, report::render_map(files, seconds()));
  together.commit();
  runtime.progress->clear();
  for (const std::string& note : {told(within_a, layers.a, path_a, "--where"),
                                  told(within_b, layers.b, path_b, "--where-new"), told(files.advice, found)}) {
    if (!note.empty()) add_note(note);
  }
  if (common.json) {
    print_result(to_json(files, seconds()));
  } else {
    tell(runtime, common, summary(files, seconds()));
  }
}

}  // namespace

Command add_match(const Parser& root) {
  auto command = std::make_shared<MatchCommand>();
  const Parser app =
      root.add_subcommand("match", "Match the features of two polygon maps, from one-to-one to many-to-many");
  app.add_option("OLD", command->path_a,
                 "The first map: GeoPackage, Shapefile, GeoJSON, TopoJSON, FlatGeobuf, CSV, GeoParquet")
      .type_name("FILE")
      .required();
  app.add_option("NEW", command->path_b, "The second map").type_name("FILE").required();
  const std::string rules = "Which pairs belong together";
  app.add_choice(
         "--rule", command->rule, {"standard", "touch", "area", "share", "share_a", "share_b", "iou", "width"},
         "Rule that keeps a pair; standard: overlap of half the smaller feature, or --threshold of it and --width")
      .group(rules);
  app.add_option("--threshold", command->threshold, "Minimum share or IoU; 0: standard 0.25, shares 0.05, iou 0.5")
      .type_name("X")
      .capture_default_str()
      .group(rules);
  app.add_option("--width", command->width, "Minimum mean width of a pair's overlap, in meters")
      .type_name("X")
      .capture_default_str()
      .group(rules);
  app.add_option(
         "--sliver-width", command->sliver_width,
         "Drop overlaps with a mean width below this, in meters, unless they are half of both features; 0: none")
      .type_name("X")
      .capture_default_str()
      .group(rules);
  app.add_option("--unchanged", command->unchanged, "Minimum IoU of a pair that counts as unchanged")
      .type_name("X")
      .capture_default_str()
      .group(rules);
  app.add_option("--max-partners", command->max_partners,
                 "Exclude features with more partners than this (streets, water); 0: none")
      .type_name("N")
      .capture_default_str()
      .group(rules);
  app.add_option("--max-area", command->max_area, "Exclude features with a larger area, in square meters; 0: none")
      .type_name("X")
      .capture_default_str()
      .group(rules);
  app.add_option("--max-group", command->split.max_members,
                 "Split groups with more features than this at small overlaps; 0: never")
      .type_name("N")
      .group(rules);
  app.add_option("--max-diameter", command->split.max_steps,
                 "Split groups in which two features are more than this many pairs apart; 0: never")
      .type_name("N")
      .group(rules);
  app.add_option("--agree", command->a.code, "Column of codes in both maps, compared by --agreement")
      .type_name("COLUMN")
      .group(rules);
  app.add_option("--agree-new", command->b.code, "Name of that column in NEW, if it differs")
      .type_name("COLUMN")
      .group(rules);
  app.add_choice("--agreement", command->agreement, {"ignored", "required", "enough"},
                 "Use of equal codes; required: keep only such pairs; enough: keep such pairs if they share any area")
      .group(rules);
  const std::string files = "Files";
  app.add_option("--id", command->a.id, "Column with the ids of the features").type_name("COLUMN").group(files);
  app.add_option("--id-new", command->b.id, "Name of that column in NEW, if it differs")
      .type_name("COLUMN")
      .group(files);
  app.add_option("--name", command->a.name, "Column with names of the features, shown with the ids")
      .type_name("COLUMN")
      .group(files);
  app.add_option("--name-new", command->b.name, "Name of that column in NEW, if it differs")
      .type_name("COLUMN")
      .group(files);
  app.add_option("--where", command->a.where,
                 "Read only features of OLD for which this holds: \"LEVEL = 3 and STATE in ('AT', 'DE')\"")
      .type_name("CONDITION")
      .group(files);
  app.add_option("--where-new", command->b.where, "Read only features of NEW for which this holds")
      .type_name("CONDITION")
      .group(files);
  app.add_option("--layer", command->a.layer, "Layer of OLD, if it has several").type_name("NAME").group(files);
  app.add_option("--layer-new", command->b.layer, "Layer of NEW, if it has several").type_name("NAME").group(files);
  app.add_option("--crs", command->a.crs, "Coordinate reference system for files without one, such as EPSG:4326")
      .type_name("CRS")
      .group(files);
  app.add_option("--crs-new", command->b.crs, "Coordinate reference system of NEW, if it differs")
      .type_name("CRS")
      .group(files);
  app.add_flag("--planar", command->planar, "The coordinates are already planar: do not project them").group(files);
  const std::string values = "Values of OLD for NEW";
  app.add_option("--carry", command->carry.largest,
                 "Column of texts or codes to carry to NEW: a feature gets the one with the largest share of its area")
      .type_name("COLUMN")
      .repeatable()
      .group(values);
  app.add_option("--carry-sum", command->carry.sum,
                 "Column of amounts to carry to NEW, such as a population: divided by area")
      .type_name("COLUMN")
      .repeatable()
      .group(values);
  app.add_option("--carry-mean", command->carry.mean,
                 "Column of rates to carry to NEW, such as a density: averaged by area")
      .type_name("COLUMN")
      .repeatable()
      .group(values);
  app.add_option("--carried", command->carried,
                 "Output file (CSV) with the features of NEW, the carried values and their shares")
      .type_name("FILE")
      .group(values);
  app.add_option("--changes", command->changes, "Output file (CSV) with the change of each feature, by group")
      .type_name("FILE");
  app.add_option("--report", command->report, "HTML report with a map of both layers").type_name("FILE");
  app.add_option("-o,--output", command->output,
                 "Output: NAME.gpkg (both layers, pairs, groups); NAME.shp, .geojson, .fgb, .parquet (NAME_a, NAME_b, "
                 "...); NAME.csv "
                 "(pairs)")
      .type_name("NAME");
  add_common_options(app, command->common);
  app.add_examples({"vicinal match old.geojson new.geojson --id GEOID -o matched.gpkg --report report.html",
                    "vicinal match old.geojson new.geojson --rule share --threshold 0.3 -o pairs.csv",
                    "vicinal match old.geojson new.geojson --rule touch --json",
                    "vicinal match old.geojson new.geojson --id GEOID --changes changes.csv"});
  return {app, [command] { command->run(); }, &command->common.json};
}

}  // namespace vicinal::cli
