// See papers.hpp.
//   gs          Liu, Zheng and Liu 2019: time against k at m = 1200, n = 16384, d = 32 (where do their two selections
//               cross?); n = 2^10 to 2^15 and d to 256 at k = 25, beside Garcia's brute force.
//   lof         Tian, Hua and Lu 2015: 20,000 rows and 5,000 queries of KDD Cup 99, Poker and Covertype, k = 20 to 100,
//               with the rates of distances (3 m n d operations) and of selection (m n keys); then the whole job, from
//               the rows to the scores of the queries. Real rows come from --data-dir (bench/data/papers.py writes
//               them), else rows of the same shape are made.
//   lle-search  Li, Yan and Zhang 2021: 9 neighbors within a table, 2048 rows of ever more columns, ever more rows
//   of 16.
//   lle         the same paper's embeddings: papers_lle.cpp.
//   km          the k-means tutorial of 2014: papers_km.cpp.
//   cc          Zhang et al. 2013, co-clustering: papers_cc.cpp.
#include "command/papers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/commands.hpp"
#include "command/data.hpp"
#include "command/harness.hpp"
#include "command/papers_cc.hpp"
#include "command/papers_km.hpp"
#include "command/papers_lle.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::cli {
namespace {

/// Rows and queries; no queries: within itself.
struct Rows {
  TableView table;
  TableView queries;
  bool self = false;
  std::string source;  // "made", or a file
  std::vector<float> made_table;
  std::vector<float> made_queries;
  Table read_table;
  Table read_queries;
};

/// One table of a paper: lines of the same columns, one a method.
struct PaperTable {
  std::string title;
  std::vector<std::string> names;  // of what varies: "k", "n d"
  std::vector<Method> methods;
  std::vector<Json> lines;
  std::vector<std::vector<std::string>> printed;
};

class Bench {
 public:
  explicit Bench(const PapersOptions& options) : options_(options), runtime_(make_runtime(options.common)) {}

  void gs() {
    name_ = "gs";
    const std::vector<Method> selections = {Method::product_kmin, Method::product_bitonic, Method::product_timed,
                                            Method::fused};
    PaperTable& figure = start("time against k: m 1200, n 16384, d 32", {"k"}, selections);
    const Rows rows = made(16384, 1200, 32);
    for (const std::int64_t k : {1, 2, 5, 10, 20, 30, 40, 46, 50, 60, 80, 100, 150, 200}) {
      line(figure, {fmt::format("{}", k)}, rows, k);
    }
    PaperTable& sizes = start("sizes: m 1200, k 25", {"n", "d"},
                              {Method::product_timed, Method::insertion, Method::kdtree, Method::fused});
    for (const std::int64_t n : sizes_from(1024)) {
      for (const std::int64_t d : {8, 16, 32, 64, 128, 256}) {
        line(sizes, {fmt::format("{}", n), fmt::format("{}", d)}, made(n, 1200, d), 25);
      }
    }
    finish();
  }

  void lof() {
    name_ = "lof";
    PaperTable& table = start("20,000 rows, 5,000 queries", {"data", "d", "k"},
                              {Method::direct_filter, Method::insertion, Method::block_heap, Method::fused});
    PaperTable& scores = start("the whole job: densities of the rows, scores of the queries", {"data", "d", "k"},
                               {Method::fused, Method::kdtree});
    for (const auto& [name, columns] : {std::pair("kdd", 41), std::pair("poker", 10), std::pair("covertype", 10)}) {
      const Rows rows = read_or_made(name, columns);
      for (const std::int64_t k : {20, 40, 80, 100}) {
        const std::vector<std::string> values = {rows.source, fmt::format("{}", rows.table.cols()),
                                                 fmt::format("{}", k)};
        line(table, values, rows, k);
        score_line(scores, values, rows, k);
      }
    }
    finish();
  }

  void lle_search() {
    name_ = "lle-search";
    const std::vector<Method> methods = {Method::tiled_insertion, Method::kdtree, Method::fused};
    PaperTable& columns = start("within 2048 rows, k 9", {"d"}, methods);
    for (std::int64_t d = 2; d <= 512; d *= 2) line(columns, {fmt::format("{}", d)}, made(2048, 0, d), 9);
    PaperTable& rows = start("within rows of 16 columns, k 9", {"n"}, methods);
    for (const std::int64_t n : sizes_from(512)) line(rows, {fmt::format("{}", n)}, made(n, 0, 16), 9);
    finish();
  }

 private:
  // Doubled up to 2^15, or to where tables are cut.
  [[nodiscard]] std::vector<std::int64_t> sizes_from(std::int64_t least) const {
    std::vector<std::int64_t> sizes;
    for (std::int64_t n = least; n <= 32768; n *= 2) {
      sizes.push_back(std::min(n, options_.most_rows));
      if (n >= options_.most_rows) break;
    }
    return sizes;
  }

  PaperTable& start(const std::string& title, const std::vector<std::string>& names, std::vector<Method> methods) {
    auto& table = *tables_.emplace_back(std::make_unique<PaperTable>());
    table.title = title;
    table.names = names;
    table.methods = std::move(methods);
    std::vector<std::string> head = names;
    for (const Method method : table.methods) head.push_back(fmt::format("{} s", name_of(method)));
    table.printed.push_back(head);
    return table;
  }

  [[nodiscard]] Rows made(std::int64_t n, std::int64_t m, std::int64_t d, const std::string& kind = "gaussian") const {
    BenchData data;
    data.kind = kind;
    data.rows = std::min(n, options_.most_rows);
    data.queries = std::min(m, options_.most_rows);
    data.cols = d;
    Rows rows;
    rows.source = "made";
    rows.self = m == 0;
    const std::vector<double> table = make_bench_table(runtime_.ctx, data);
    rows.made_table.assign(table.begin(), table.end());
    rows.table = TableView(rows.made_table.data(), data.rows, d);
    if (rows.self) return rows;
    const std::vector<double> queries = make_bench_queries(runtime_.ctx, data);
    rows.made_queries.assign(queries.begin(), queries.end());
    rows.queries = TableView(rows.made_queries.data(), data.queries, d);
    return rows;
  }

  // KDD is full of equal rows; Poker and Covertype are not.
  [[nodiscard]] Rows read_or_made(const std::string& name, std::int64_t columns) const {
    const std::filesystem::path folder = options_.data_dir;
    const auto file = [&](const char* part) { return folder / (name + "-" + part + ".npy"); };
    if (options_.data_dir.empty() || !std::filesystem::exists(file("table"))) {
      Rows rows = made(20000, 5000, columns, name == "kdd" ? "duplicates" : "uniform");
      rows.source = name + " (made)";
      return rows;
    }
    Rows rows;
    rows.source = name;
    rows.read_table = read_table(runtime_.ctx, file("table"));
    rows.read_queries = read_table(runtime_.ctx, file("queries"));
    rows.table = rows.read_table.view.slice(0, std::min(rows.read_table.view.rows(), options_.most_rows));
    rows.queries = rows.read_queries.view.slice(0, std::min(rows.read_queries.view.rows(), options_.most_rows));
    return rows;
  }

  // Times every method on the same rows and holds their answers against each other. A method that the device does not
  // serve has the reason instead of a time.
  void line(PaperTable& table, const std::vector<std::string>& values, const Rows& rows, std::int64_t k) {
    const Context& ctx = runtime_.ctx;
    const Index index(ctx, rows.table);
    const double m = static_cast<double>(rows.self ? rows.table.rows() : rows.queries.rows());
    const double pairs = m * static_cast<double>(rows.table.rows());
    std::vector<std::string> printed = values;
    std::optional<NeighborGraph> first;
    for (const Method method : table.methods) {
      const KnnOptions asked{.k = std::min(k, rows.table.rows() - (rows.self ? 1 : 0)), .method = method};
      NeighborGraph graph;
      Timings timings;
      std::string refused;
      try {
        timings = measure(ctx, options_.warmup, options_.repeat,
                          [&] { graph = rows.self ? knn(ctx, index, asked) : knn(ctx, index, rows.queries, asked); });
      } catch (const Error& error) {
        if (error.code() != ErrorCode::invalid_argument) throw;
        refused = error.what();
      }
      Json json = head_of_line(table, values, rows, asked.k, method);
      if (!refused.empty()) {
        json["refused"] = refused;
        table.lines.push_back(json);
        printed.emplace_back("-");
        continue;
      }
      const double selection = graph.stats.selection_seconds;
      const double others = timings.median() - selection;
      json["seconds"] = to_json(timings);
      json["selection_seconds"] = selection > 0 ? Json(selection) : Json(nullptr);
      json["distance_gflops"] =
          selection > 0 ? Json(3 * pairs * static_cast<double>(rows.table.cols()) / others * 1e-9) : Json(nullptr);
      json["selected_gkeys"] = selection > 0 ? Json(pairs / selection * 1e-9) : Json(nullptr);
      json["survivors_per_query"] = static_cast<double>(graph.stats.survivors) / m;
      table.lines.push_back(json);
      printed.push_back(fmt::format("{:.4f}", timings.median()));
      if (first && (graph.ids != first->ids || graph.distances != first->distances)) ++different_;
      if (!first) first = std::move(graph);
    }
    add(table, printed);
  }

  // The local outlier factor of the queries among the rows, from the table to the scores.
  void score_line(PaperTable& table, const std::vector<std::string>& values, const Rows& rows, std::int64_t k) {
    const Context& ctx = runtime_.ctx;
    std::vector<std::string> printed = values;
    std::optional<std::vector<double>> first;
    for (const Method method : table.methods) {
      LofOptions asked;
      asked.k = std::min(k, rows.table.rows() - 1);
      asked.method = method;
      asked.novelty = true;
      std::vector<double> scores;
      std::string refused;
      Timings timings;
      try {
        timings = measure(ctx, options_.warmup, options_.repeat, [&] {
          const Index index(ctx, rows.table);
          scores = novelty(ctx, index, vicinal::lof(ctx, index, asked), rows.queries);
        });
      } catch (const Error& error) {
        if (error.code() != ErrorCode::invalid_argument) throw;
        refused = error.what();
      }
      Json json = head_of_line(table, values, rows, asked.k, method);
      json["selection_seconds"] = nullptr;
      if (refused.empty()) {
        json["seconds"] = to_json(timings);
        printed.push_back(fmt::format("{:.4f}", timings.median()));
        if (first && scores != *first) ++different_;
        if (!first) first = std::move(scores);
      } else {
        json["refused"] = refused;
        printed.emplace_back("-");
      }
      table.lines.push_back(json);
    }
    add(table, printed);
  }

  static Json head_of_line(const PaperTable& table, const std::vector<std::string>& values, const Rows& rows,
                           std::int64_t k, Method method) {
    Json json;
    for (std::size_t i = 0; i < values.size(); ++i) json[table.names[i]] = values[i];
    json["rows"] = rows.table.rows();
    json["queries"] = rows.self ? rows.table.rows() : rows.queries.rows();
    json["dims"] = rows.table.cols();
    json["neighbors"] = k;
    json["method"] = name_of(method);
    return json;
  }

  void add(PaperTable& table, const std::vector<std::string>& printed) {
    table.printed.push_back(printed);
    ++lines_;
    // After every line, so that a run that is ended leaves what it has.
    if (!options_.output.empty()) write_text(options_.output, result().dump(2) + "\n");
  }

  [[nodiscard]] Json result() const {
    Json json = head_;
    json["command"] = "bench papers " + name_;
    json["device"] = runtime_.ctx.device();
    json["threads"] = runtime_.ctx.threads();
    json["different_answers"] = different_;
    for (const auto& table : tables_) {
      Json methods = Json::array();
      for (const Method method : table->methods) methods.push_back(name_of(method));
      json["tables"].push_back({{"title", table->title}, {"methods", methods}, {"lines", table->lines}});
    }
    return json;
  }

  void finish() {
    runtime_.progress->clear();
    if (options_.common.json) {
      print_json(result());
    } else {
      for (const auto& table : tables_) {
        print_text(fmt::format("{}\n{}\n", table->title, format_table(table->printed)));
      }
      print_text(fmt::format("{} lines, all methods with the same answers in {}\n", lines_, lines_ - different_));
    }
    if (different_ > 0) {
      throw Error(ErrorCode::internal, fmt::format("methods differ in {} of {} lines", different_, lines_));
    }
  }

  const PapersOptions& options_;
  const Runtime runtime_;
  std::vector<std::unique_ptr<PaperTable>> tables_;
  const Json head_ = head_of_results("bench papers", options_.commit);
  std::string name_;
  std::int64_t lines_ = 0;
  std::int64_t different_ = 0;
};

}  // namespace

Command add_bench_papers(const Parser& bench) {
  auto options = std::make_shared<PapersOptions>();
  const Parser app = bench.add_subcommand("papers", "Time the methods of the papers on the tables of the papers");
  app.require_subcommand();
  const Parser gs = app.add_subcommand("gs", "k-min search and bitonic sort of a product of matrices");
  const Parser lof = app.add_subcommand("lof", "A filter by thresholds, insertion and a shared heap");
  const Parser lle = app.add_subcommand("lle-search", "Tiles and insertion, and a kd-tree");
  const Parser km = app.add_subcommand("km", "An iteration of k-means: the classical serial tool, CPU and CUDA");
  const Parser cc = app.add_subcommand("cc", "Closures of a graph of 1,103 members, and components of many edges");
  const Parser embed = app.add_subcommand("lle", "Embeddings by a Krylov method, and its sparse products");
  for (const Parser& one : {gs, lof, lle, embed, km, cc}) {
    one.add_option("--repeat", options->repeat, "Timed runs").type_name("N").capture_default_str().between(1, 1000);
    one.add_option("--warmup", options->warmup, "Runs before them")
        .type_name("N")
        .capture_default_str()
        .between(0, 1000);
    one.add_option("--most-rows", options->most_rows, "Cut tables and queries that have more rows")
        .type_name("N")
        .capture_default_str()
        .between(2, std::int64_t{1} << 30);
    one.add_option("--commit", options->commit, "Commit to note in the result").type_name("ID");
    one.add_option("-o,--output", options->output, "Where to write the result, too (.json)").type_name("FILE");
    add_common_options(one, options->common);
  }
  lof.add_option("--data-dir", options->data_dir,
                 "Folder with kdd-table.npy, kdd-queries.npy and so on, as bench/data/papers.py writes them; rows are "
                 "made for what is not there")
      .type_name("DIR");
  km.add_option("--data-dir", options->data_dir,
                "Folder with the classical tools' color100.bin, color17695.bin.xz and so on; rows are made for what is "
                "not there")
      .type_name("DIR");
  cc.add_option("--edges", options->edges, "Edges of the graph whose components are timed")
      .type_name("N")
      .capture_default_str()
      .between(1, std::int64_t{1} << 31);
  embed.add_option("--spmv-rows", options->spmv_rows, "Rows of the matrix whose products are timed")
      .type_name("N")
      .capture_default_str()
      .between(2, std::int64_t{1} << 27);
  embed.add_option("--svg", options->svg, "Folder for figures: seconds and ratios over the rows, and the embeddings")
      .type_name("DIR");
  embed.add_option("--from", options->from, "Measure nothing: draw the figures of --svg from what -o wrote before")
      .type_name("FILE");
  const std::string few = " --most-rows 300 --repeat 1";
  for (const auto& [one, name] :
       {std::pair(gs, "gs"), std::pair(lof, "lof"), std::pair(lle, "lle-search"), std::pair(km, "km")}) {
    const std::string line = fmt::format("vicinal-bench papers {}{}", name, few);
    one.add_examples({line, line + " --json"});
  }
  cc.add_examples({"vicinal-bench papers cc" + few + " --edges 100000"});
  embed.add_examples({"vicinal-bench papers lle" + few + " --spmv-rows 1000 -o lle.json",
                      "vicinal-bench papers lle --from lle.json --most-rows 300 --svg figures"});
  app.add_examples({"vicinal-bench papers gs" + few, "vicinal-bench papers lof" + few});
  return {app,
          [options, gs, lof, embed, km, cc] {
            check_output("-o", options->output, {".json"});
            if (!options->from.empty() && options->svg.empty()) {
              throw Error(ErrorCode::invalid_argument, "--from: there is nothing to draw without --svg");
            }
            if (embed.parsed()) return bench_papers_lle(*options);
            if (km.parsed()) return bench_papers_km(*options);
            if (cc.parsed()) return bench_papers_cc(*options);
            Bench papers(*options);
            if (gs.parsed()) return papers.gs();
            lof.parsed() ? papers.lof() : papers.lle_search();
          },
          &options->common.json};
}

}  // namespace vicinal::cli
