// `vicinal cocluster`: which ids of two columns belong together, directly or over others (contract clause 16).
#include "vicinal/cocluster.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/common_options.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/planned_inputs.hpp"
#include "commands.hpp"
#include "graph/edges_file.hpp"
#include "io/packed_file.hpp"
#include "ops/graph/plans.hpp"
#include "vicinal/io.hpp"
#include "vicinal/spectral_cocluster.hpp"

namespace vicinal::cli {
namespace {

constexpr std::array<Relation, 6> kRelations = {Relation::one_to_one,   Relation::one_to_many, Relation::many_to_one,
                                                Relation::many_to_many, Relation::one_to_none, Relation::none_to_one};

constexpr const char* kSpectral = "spectral";

struct CoclusterCommand {
  CommonOptions common;
  EdgesFile file;
  std::string method = "components";
  std::string output;
  std::string cut_output;
  SplitOptions split;
  std::int64_t clusters = 0;
  std::uint64_t seed = 0;
  std::int64_t runs = 10;

  [[nodiscard]] bool is_spectral() const { return method == kSpectral; }
  [[nodiscard]] bool splits() const { return split.max_members > 0 || split.max_steps > 0; }
  void run();
  void check() const;
  void explain(const CoclusterPlan& plan) const;
  [[nodiscard]] CoclusterOptions options() const { return {.method = cocluster_method_from(method)}; }
  [[nodiscard]] Context plan(const FileInfo& info, PlannedInputs& inputs) const;
};

/// Clusters as groups: named by their first member, and ordered by it.
Cocluster groups_of(const Context& ctx, const SpectralCocluster& spectral) {
  Cocluster found;
  found.plan.threads = ctx.threads();
  std::vector<std::int64_t> place(static_cast<std::size_t>(spectral.clusters), -1);
  const auto n_a = std::ssize(spectral.labels_a);
  for (std::int64_t v = 0; v < n_a + std::ssize(spectral.labels_b); ++v) {
    const bool in_a = v < n_a;
    const std::int32_t cluster =
        in_a ? spectral.labels_a[static_cast<std::size_t>(v)] : spectral.labels_b[static_cast<std::size_t>(v - n_a)];
    std::int64_t& group = place[static_cast<std::size_t>(cluster)];
    if (group < 0) {
      group = std::ssize(found.groups);
      found.groups.push_back({v, 0, 0});
    }
    CoclusterGroup& own = found.groups[static_cast<std::size_t>(group)];
    ++(in_a ? own.count_a : own.count_b);
    (in_a ? found.labels_a : found.labels_b).push_back(own.label);
  }
  return found;
}

struct Counts {
  std::array<std::int64_t, kRelations.size()> relations{};  ///< groups of each
  CoclusterGroup largest;                                   ///< by members, the first of equals
};

Counts summarize(const Cocluster& found) {
  Counts summary;
  for (const CoclusterGroup& group : found.groups) {
    ++summary.relations[static_cast<std::size_t>(group.relation())];
    const CoclusterGroup& largest = summary.largest;
    if (group.count_a + group.count_b > largest.count_a + largest.count_b) summary.largest = group;
  }
  return summary;
}

/// Lines of an output; `line(i)` is the i-th.
template <class Line>
void write_lines(const Context& ctx, io::PackedFile& file, std::size_t count, const Line& line) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    file.write(line(i));
  }
}

void write_members(const Context& ctx, const std::string& path, const NamedEdges& edges, const Cocluster& found) {
  io::PackedFile file(path);
  file.write("side,id,group,relation,count_a,count_b\n");
  const auto add = [&](char side, const std::vector<std::string>& ids, const std::vector<std::int64_t>& labels) {
    write_lines(ctx, file, ids.size(), [&](std::size_t i) {
      const std::int64_t place = found.group_of(labels[i]);
      const CoclusterGroup& group = found.groups[static_cast<std::size_t>(place)];
      return fmt::format("{},{},{},{},{},{}\n", side, csv_field(ids[i]), place, name_of(group.relation()),
                         group.count_a, group.count_b);
    });
  };
  add('a', edges.ids_a, found.labels_a);
  add('b', edges.ids_b, found.labels_b);
  file.commit();
}

void write_cut_edges(const Context& ctx, const std::string& path, const NamedEdges& edges,
                     const std::vector<std::int64_t>& cut) {
  io::PackedFile file(path);
  file.write(edges.weights.empty() ? "a,b\n" : "a,b,weight\n");
  write_lines(ctx, file, cut.size(), [&](std::size_t i) {
    const auto e = static_cast<std::size_t>(cut[i]);
    return csv_field(edges.ids_a[static_cast<std::size_t>(edges.a[e])]) + ',' +
           csv_field(edges.ids_b[static_cast<std::size_t>(edges.b[e])]) +
           (edges.weights.empty() ? "\n" : ',' + format_number(edges.weights[e]) + '\n');
  });
  file.commit();
}

Json plan_json(const CoclusterPlan& plan, const std::string& method) {
  return {{"method", method},
          {"device", plan.device},
          {"threads", plan.threads},
          {"memory_bytes", plan.memory},
          {"device_memory_bytes", plan.device_memory}};
}

void CoclusterCommand::explain(const CoclusterPlan& plan) const {
  if (common.json) return print_json({{"plan", plan_json(plan, method)}});
  std::string memory = format_bytes(static_cast<double>(plan.memory));
  if (plan.device_memory > 0) memory += ", " + format_bytes(static_cast<double>(plan.device_memory)) + " on the device";
  print_text(fmt::format("method   {}\nruns on  {}, {} threads\nmemory   {}\n", name_of(plan.method), plan.device,
                         plan.threads, memory));
}

void CoclusterCommand::check() const {
  const auto refuse = [](const char* sentence) { throw Error(ErrorCode::invalid_argument, sentence); };
  check_output("-o", output, {".csv"});
  check_output("--cut-edges", cut_output, {".csv"});
  if (!cut_output.empty() && !splits()) {
    refuse("--cut-edges: nothing is cut without --split-members or --split-steps");
  }
  if (is_spectral() && clusters == 0) refuse("--method spectral: needs the number of clusters (-c)");
  if (!is_spectral() && clusters != 0) refuse("-c: only --method spectral has a number of clusters");
  if (is_spectral() && splits()) refuse("--split-members and --split-steps: divide groups, not spectral clusters");
  if (is_spectral() && common.explain) refuse("--explain: --method spectral has no plan");
}

/// Every edge may join two members of its own: ids are not known before they are read.
Context CoclusterCommand::plan(const FileInfo& info, PlannedInputs& inputs) const {
  const TableView table = inputs.add_table(file.path, edges_reading(info, file));
  static constexpr std::int64_t kNone = 0;
  const std::span<const std::int64_t> ends(&kNone, static_cast<std::size_t>(table.rows()));  // no one looks at them
  const BipartiteEdges edges(table.rows(), table.rows(), ends, ends);
  inputs.add(static_cast<std::uint64_t>(edges.size()) * 3 * sizeof(std::int64_t));
  return inputs.fit("cocluster by " + method, [&](const Context& rest) -> std::uint64_t {
    if (is_spectral()) return ops::spectral_bytes(edges, {.clusters = clusters});
    const std::uint64_t groups = plan_cocluster(rest, edges, options()).memory;
    return splits() ? std::max(groups, ops::split_bytes(edges)) : groups;
  });
}

void CoclusterCommand::run() {
  const auto start = std::chrono::steady_clock::now();
  check();
  const Runtime runtime = is_spectral() ? make_runtime(common, Computes::on_host) : make_runtime(common);
  PlannedInputs inputs(runtime, common);
  const FileInfo info = inputs.info(file.path);
  const Context ctx = plan(info, inputs);
  const NamedEdges edges = read_edges(runtime.ctx, info, file);
  Cocluster found;
  CoclusterSplit division;
  SpectralCocluster spectral;
  if (is_spectral()) {
    spectral = spectral_cocluster(ctx, edges.edges(), {.clusters = clusters, .seed = seed, .runs = runs});
    found = groups_of(ctx, spectral);
  } else {
    if (common.explain) {
      CoclusterPlan made = plan_cocluster(ctx, edges.edges(), options());
      made.memory = inputs.total(made.memory);
      return explain(made);
    }
    found = cocluster(ctx, edges.edges(), options());
  }
  if (splits()) {
    division = split_groups(ctx, edges.edges(), found, split);
    found = std::move(division.parts);
  }
  const Counts summary = summarize(found);
  OutputFiles together;
  if (!output.empty()) write_members(ctx, output, edges, found);
  if (!cut_output.empty()) write_cut_edges(ctx, cut_output, edges, division.cut_edges);
  together.commit();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  runtime.progress->clear();
  if (common.json) {
    Json json = {{"edges", edges.a.size()},
                 {"members_a", edges.ids_a.size()},
                 {"members_b", edges.ids_b.size()},
                 {"plan", plan_json(found.plan, method)},
                 {"groups", found.groups.size()}};
    for (const Relation relation : kRelations) {
      json["relations"][std::string(name_of(relation))] = summary.relations[static_cast<std::size_t>(relation)];
    }
    json["largest"] = {{"count_a", summary.largest.count_a}, {"count_b", summary.largest.count_b}};
    if (splits()) json["split"] = {{"groups", division.split_groups}, {"cut_edges", division.cut_edges.size()}};
    if (is_spectral()) {
      json["spectral"] = {
          {"singular_values", spectral.singular_values}, {"residual", spectral.residual}, {"rounds", spectral.rounds}};
    } else {
      json["nonzeros"] = found.nonzeros;
      json["label_seconds"] = found.label_seconds;
    }
    json["seconds"] = seconds;
    return print_result(std::move(json));
  }
  std::vector<std::vector<std::string>> lines = {{"relation", "groups"}};
  for (const Relation relation : kRelations) {
    const std::int64_t groups = summary.relations[static_cast<std::size_t>(relation)];
    if (groups > 0) lines.push_back({std::string(name_of(relation)), format_count(groups)});
  }
  print_text(format_table(lines));
  if (splits()) {
    tell(runtime, common,
         fmt::format("{} groups were split over {} edges", format_count(division.split_groups),
                     format_count(std::ssize(division.cut_edges))));
  }
  tell(runtime, common,
       fmt::format("{} edges join {} and {} members in {} groups, the largest of {}:{}; {} on {}, {:.3f} s",
                   format_count(std::ssize(edges.a)), format_count(std::ssize(edges.ids_a)),
                   format_count(std::ssize(edges.ids_b)), format_count(std::ssize(found.groups)),
                   summary.largest.count_a, summary.largest.count_b, method, found.plan.device, seconds));
}

}  // namespace

Command add_cocluster(const Parser& root) {
  auto command = std::make_shared<CoclusterCommand>();
  CoclusterCommand& made = *command;
  const Parser app = root.add_subcommand("cocluster", "Group the ids of two columns into connected co-clusters");
  app.add_option("EDGES", made.file.path,
                 "Delimited text with one pair of ids per line (side A, side B) and optionally its weight")
      .type_name("FILE")
      .required();
  const std::string columns = "Columns";
  app.add_option("--a", made.file.a, "Column with the ids of side A, by name or position")
      .type_name("COLUMN")
      .capture_default_str()
      .group(columns);
  app.add_option("--b", made.file.b, "Column with the ids of side B")
      .type_name("COLUMN")
      .capture_default_str()
      .group(columns);
  app.add_option("--weight", made.file.weight, "Column with the weights [the third of three columns]")
      .type_name("COLUMN")
      .group(columns);
  app.add_option("--above", made.file.above, "Use only edges with a weight above this").type_name("X").group(columns);
  InputOptions& input = made.file.input;
  app.add_option("--delimiter", input.delimiter, "Character between columns, or tab [detected]")
      .type_name("CHARACTER")
      .group(columns);
  const Option header = app.add_flag("--header", input.header, "The first line names the columns").group(columns);
  app.add_flag("--no-header", input.no_header, "The first line is an edge").group(columns).excludes(header);
  app.add_choice("--method", made.method,
                 {"components", "closure", "product_serial", "product_global", "product_tiled", kSpectral},
                 "Method; all find the same groups, except spectral, which makes -c clusters");
  const std::string spectral = "Spectral clusters";
  app.add_option("-c,--clusters", made.clusters, "Number of clusters (spectral)").type_name("N").group(spectral);
  app.add_option("--runs", made.runs, "Number of k-means starts; the smallest inertia wins")
      .type_name("N")
      .capture_default_str()
      .group(spectral);
  app.add_option("--seed", made.seed, "Random seed").type_name("N").capture_default_str().group(spectral);
  const std::string splitting = "Splitting";
  app.add_option("--split-members", made.split.max_members,
                 "Split groups with more members than this at edges of small weight [never]")
      .type_name("N")
      .between(1, std::int64_t{1} << 40)
      .group(splitting);
  app.add_option("--split-steps", made.split.max_steps,
                 "Split groups in which two members are more than this many edges apart [never]")
      .type_name("N")
      .between(1, std::int64_t{1} << 40)
      .group(splitting);
  app.add_option("--cut-edges", made.cut_output, "Output file with the edges that splitting removed (.csv)")
      .type_name("FILE")
      .group(splitting);
  app.add_option("-o,--output", made.output, "Output file with the group of each id (.csv)").type_name("FILE");
  add_common_options(app, made.common);
  app.add_examples({"vicinal cocluster edges.csv -o groups.csv", "vicinal cocluster edges.csv --above 0.05 --json",
                    "vicinal cocluster edges.csv --split-members 10 --cut-edges cut.csv",
                    "vicinal cocluster edges.csv --method spectral -c 2 -o clusters.csv"});
  return {app, [command] { command->run(); }, &command->common.json};
}

}  // namespace vicinal::cli
