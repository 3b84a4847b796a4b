// `vicinal spanning-tree`: the minimum spanning tree of a table's rows.
#include "vicinal/spanning_tree.hpp"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/row_names.hpp"
#include "commands.hpp"
#include "density/delivery.hpp"
#include "io/id_array.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kEdgesPrinted = 10;

struct SpanningTreeCommand : DensityCommand {
  std::int64_t min_samples = 1;
  double alpha = 1;
  bool excludes_itself = false;

  void run() const;

 private:
  [[nodiscard]] SpanningTreeOptions options() const;
  void write(const Context& ctx, const DensityRows& rows, const SpanningTree& tree) const;
  void tell_all(const Runtime& runtime, const DensityRows& rows, const SpanningTree& tree, double seconds) const;
};

SpanningTreeOptions SpanningTreeCommand::options() const {
  SpanningTreeOptions options;
  options.min_samples = min_samples;
  options.count_self = !excludes_itself;
  options.alpha = alpha;
  options.metric = metric_from(search.metric);
  options.p = search.p;
  options.method = method_from(search.method);
  return options;
}

void SpanningTreeCommand::write(const Context& ctx, const DensityRows& rows, const SpanningTree& tree) const {
  if (output.empty()) return;
  const auto edges = static_cast<std::int64_t>(tree.a.size());
  if (output.ends_with(".npz")) {
    std::vector<NamedArray> arrays = {{"a", {tree.a.data(), "<i8", {edges}}},
                                      {"b", {tree.b.data(), "<i8", {edges}}},
                                      {"lengths", {tree.lengths.data(), "<f8", {edges}}},
                                      {"core_distances", {tree.core_distances.data(), "<f8", {tree.rows}}}};
    if (!rows.kept.empty()) arrays.push_back({"rows", {rows.kept.data(), "<i8", {tree.rows}}});
    std::optional<io::IdArray> ids;
    if (rows.table.ids) arrays.push_back({"row_ids", ids.emplace(ctx, output, *rows.table.ids).view()});
    return write_npz(output, arrays);
  }
  const RowNames names(rows.table, rows.kept);
  std::string text = "a,b,length\n";
  for (std::size_t edge = 0; edge < tree.a.size(); ++edge) {
    if (edge % 65536 == 0) ctx.check_cancelled();
    text += fmt::format("{},{},{}\n", names.field(tree.a[edge]), names.field(tree.b[edge]),
                        format_number(tree.lengths[edge]));
  }
  write_text(output, text);
}

void SpanningTreeCommand::tell_all(const Runtime& runtime, const DensityRows& rows, const SpanningTree& tree,
                                   double seconds) const {
  runtime.progress->clear();
  const double total = std::accumulate(tree.lengths.begin(), tree.lengths.end(), 0.0);
  if (common.json) {
    return print_result({{"command", "spanning-tree"},
                         {"rows", tree.rows},
                         {"edges", tree.a.size()},
                         {"total_length", total},
                         {"longest", tree.lengths.empty() ? Json(nullptr) : Json(tree.lengths.back())},
                         {"dropped_rows", rows.dropped()},
                         {"min_samples", min_samples},
                         {"metric", search.metric},
                         {"output", output.empty() ? Json(nullptr) : Json(output)},
                         {"tree_seconds", tree.tree_seconds},
                         {"seconds", seconds},
                         {"plan", cli::to_json(tree.plan)},
                         {"stats", cli::to_json(tree.stats)}});
  }
  if (output.empty()) {
    const RowNames names(rows.table, rows.kept);
    std::vector<std::vector<std::string>> lines = {{"longest edges", "", "length"}};
    for (std::size_t edge = tree.a.size(); edge-- > 0 && lines.size() <= kEdgesPrinted;) {
      lines.push_back({names.text(tree.a[edge]), names.text(tree.b[edge]), fmt::format("{:.6g}", tree.lengths[edge])});
    }
    print_text(format_table(lines));
  }
  tell(runtime, common,
       fmt::format("{} rows joined by edges of total length {:.6g}, {} ({})", format_count(tree.rows), total,
                   format_duration(seconds), ran_as(tree.plan)));
}

void SpanningTreeCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common);
  const Context& ctx = runtime.ctx;
  check_output("-o", output, {".csv", ".npz"});
  const auto planned = read_planned(*this, runtime, {"spanning-tree", [&](const Context& left, const TableView& rows) {
                                                       return plan_spanning_tree(left, rows, options());
                                                     }});
  if (!planned) return;
  const DensityRows& rows = planned->rows;
  const SpanningTree tree = minimum_spanning_tree(planned->rest, rows.table.view, options());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ctx.check_cancelled();
  OutputFiles together;
  write(ctx, rows, tree);
  together.commit();
  tell_all(runtime, rows, tree, seconds);
}

}  // namespace

Command add_spanning_tree(const Parser& root) {
  auto command = std::make_shared<SpanningTreeCommand>();
  const Parser app = root.add_subcommand("spanning-tree", "Find the minimum spanning tree of all pairs of rows");
  app.add_option("TABLE", command->table, "Rows to join: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  const std::string group = "Tree";
  app.add_option("--min-samples", command->min_samples,
                 "Core distance of a row: distance to its N-th nearest row, itself included; 1: core distances are 0")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_flag("--exclude-self", command->excludes_itself, "Count --min-samples without the row itself").group(group);
  app.add_option("--alpha", command->alpha, "Divide distances by this number, but not core distances")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option("-o,--output", command->output,
                 "Output file: .csv (a,b,length) or .npz (a, b, lengths, core_distances); shortest edge first")
      .type_name("FILE");
  command->add_to(app, false);
  app.add_examples({"vicinal spanning-tree train.npy -o tree.npz",
                    "vicinal spanning-tree train.csv --drop class --min-samples 5 -o tree.csv"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
