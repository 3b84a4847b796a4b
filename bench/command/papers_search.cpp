// See papers_search.hpp.
#include "command/papers_search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/data.hpp"
#include "command/harness.hpp"
#include "vicinal/generate.hpp"
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
  std::string source;  // "made", "synthetic kdd", or a file
  std::vector<float> made_table;
  std::vector<float> made_queries;
  Table read_table;
  Table read_queries;
};

/// One table of a paper: lines of the same columns, one a method.
struct SearchTable {
  std::string title;
  std::vector<std::string> names;  // of what varies: "k", "n d"
  std::vector<Method> methods;
  std::vector<Json> lines;
  std::vector<std::vector<std::string>> printed;
};

class SearchBench {
 public:
  explicit SearchBench(const PapersOptions& options) : options_(options), runtime_(make_runtime(options.common)) {}

  PapersPart gs() {
    name_ = "gs";
    const std::vector<Method> selections = {Method::product_kmin, Method::product_bitonic, Method::product_timed,
                                            Method::fused};
    SearchTable& figure = start("time against k: m 1200, n 16384, d 32", {"k"}, selections);
    const Rows rows = made(16384, 1200, 32);
    for (const std::int64_t k : {1, 2, 5, 10, 20, 30, 40, 46, 50, 60, 80, 100, 150, 200}) {
      line(figure, {fmt::format("{}", k)}, rows, k);
    }
    SearchTable& sizes = start("sizes: m 1200, k 25", {"n", "d"},
                               {Method::product_timed, Method::insertion, Method::kdtree, Method::fused});
    for (const std::int64_t n : sizes_from(1024)) {
      for (const std::int64_t d : {8, 16, 32, 64, 128, 256}) {
        line(sizes, {fmt::format("{}", n), fmt::format("{}", d)}, made(n, 1200, d), 25);
      }
    }
    return finish();
  }

  PapersPart lof() {
    name_ = "lof";
    SearchTable& table = start("20,000 rows, 5,000 queries", {"data", "d", "k"},
                               {Method::direct_filter, Method::insertion, Method::block_heap, Method::fused});
    SearchTable& scores = start("the whole job: densities of the rows, scores of the queries", {"data", "d", "k"},
                                {Method::fused, Method::kdtree});
    for (const char* const name : {"kdd", "poker", "covertype"}) {
      const Rows rows = read_or_synthetic(name);
      for (const std::int64_t k : {20, 40, 80, 100}) {
        const std::vector<std::string> values = {rows.source, fmt::format("{}", rows.table.cols()),
                                                 fmt::format("{}", k)};
        line(table, values, rows, k);
        score_line(scores, values, rows, k);
      }
    }
    return finish();
  }

  PapersPart lle_search() {
    name_ = "lle-search";
    const std::vector<Method> methods = {Method::tiled_insertion, Method::kdtree, Method::fused};
    SearchTable& columns = start("within 2048 rows, k 9", {"d"}, methods);
    for (std::int64_t d = 2; d <= 512; d *= 2) line(columns, {fmt::format("{}", d)}, made(2048, 0, d), 9);
    SearchTable& rows = start("within rows of 16 columns, k 9", {"n"}, methods);
    for (const std::int64_t n : sizes_from(512)) line(rows, {fmt::format("{}", n)}, made(n, 0, 16), 9);
    return finish();
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

  SearchTable& start(const std::string& title, const std::vector<std::string>& names, std::vector<Method> methods) {
    auto& table = *tables_.emplace_back(std::make_unique<SearchTable>());
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

  [[nodiscard]] Rows synthetic(const std::string& name) const {
    const std::int64_t n = std::min<std::int64_t>(20000, options_.most_rows);
    const std::int64_t m = std::min<std::int64_t>(5000, options_.most_rows);
    const Generated made = generate(runtime_.ctx, {.shape = shape_from(name), .rows = n + m, .seed = 2015});
    const auto split = made.points.begin() + n * made.cols;
    Rows rows;
    rows.source = "synthetic " + name;
    rows.made_table.assign(made.points.begin(), split);
    rows.made_queries.assign(split, made.points.end());
    rows.table = TableView(rows.made_table.data(), n, made.cols);
    rows.queries = TableView(rows.made_queries.data(), m, made.cols);
    return rows;
  }

  // Rows that are not there are synthetic ones of the same columns, classes and equal rows.
  [[nodiscard]] Rows read_or_synthetic(const std::string& name) const {
    const std::filesystem::path folder = options_.data_dir;
    const auto file = [&](const char* part) { return folder / (name + "-" + part + ".npy"); };
    if (options_.data_dir.empty() || !std::filesystem::exists(file("table"))) {
      return synthetic(name);
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
  void line(SearchTable& table, const std::vector<std::string>& values, const Rows& rows, std::int64_t k) {
    const Context& ctx = runtime_.ctx;
    const Index index(ctx, rows.table);
    const double m = static_cast<double>(rows.self ? rows.table.rows() : rows.queries.rows());
    const double pairs = m * static_cast<double>(rows.table.rows());
    std::vector<std::string> printed = values;
    std::optional<NeighborGraph> first;
    std::optional<ListCheck> check;
    if (options_.verify) check.emplace(rows.table, rows.self ? nullptr : &rows.queries, options_.sample);
    for (const Method method : table.methods) {
      const KnnOptions asked{.k = std::min(k, rows.table.rows() - (rows.self ? 1 : 0)), .method = method};
      NeighborGraph graph;
      Timings timings;
      std::string refused;
      try {
        timings = measure(ctx, options_.runs(),
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
      if (options_.spoil) graph.ids[0] = (graph.ids[0] + 1) % graph.table_rows;
      if (check) note(json, check->of(graph));
      table.lines.push_back(json);
      printed.push_back(fmt::format("{:.4f}", timings.median()));
      if (first && (graph.ids != first->ids || graph.distances != first->distances)) ++different_;
      if (!first) first = std::move(graph);
    }
    add(table, printed);
  }

  // The local outlier factor of the queries among the rows, from the table to the scores.
  void score_line(SearchTable& table, const std::vector<std::string>& values, const Rows& rows, std::int64_t k) {
    const Context& ctx = runtime_.ctx;
    std::vector<std::string> printed = values;
    std::optional<std::vector<double>> first;
    std::optional<ListCheck> across;
    NeighborGraph within;
    if (options_.verify) {
      across.emplace(rows.table, &rows.queries, options_.sample);
      within = knn(ctx, rows.table, {.k = std::min(k, rows.table.rows() - 1), .method = Method::direct});
      verdict_ += ListCheck(rows.table, nullptr, options_.sample).of(within);
    }
    for (const Method method : table.methods) {
      LofOptions asked;
      asked.k = std::min(k, rows.table.rows() - 1);
      asked.method = method;
      asked.novelty = true;
      std::vector<double> scores;
      std::string refused;
      Timings timings;
      try {
        timings = measure(ctx, options_.runs(), [&] {
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
        if (options_.spoil) scores[0] += 1;
        if (across) note(json, across->of_scores(within, asked, scores));
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

  static Json head_of_line(const SearchTable& table, const std::vector<std::string>& values, const Rows& rows,
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

  void note(Json& line, const Verdict& verdict) {
    line["checked"] = verdict.checked;
    line["wrong"] = verdict.wrong;
    verdict_ += verdict;
  }

  void add(SearchTable& table, const std::vector<std::string>& printed) {
    table.printed.push_back(printed);
    ++lines_;
    // After every line, so that a run that is ended leaves what it has.
    if (!options_.output.empty()) write_text(options_.output, result().json.dump(2) + "\n");
  }

  [[nodiscard]] PapersPart result() const {
    Json json = head_;
    json["command"] = "bench papers " + name_;
    json["device"] = runtime_.ctx.device();
    json["threads"] = runtime_.ctx.threads();
    PapersPart part{std::move(json), {}, different_, verdict_};
    note_answers(part);
    for (const auto& table : tables_) {
      Json methods = Json::array();
      for (const Method method : table->methods) methods.push_back(name_of(method));
      part.json["tables"].push_back({{"title", table->title}, {"methods", methods}, {"lines", table->lines}});
    }
    return part;
  }

  PapersPart finish() {
    runtime_.progress->clear();
    PapersPart part = result();
    for (const auto& table : tables_) part.text += fmt::format("{}\n{}\n", table->title, format_table(table->printed));
    part.text += fmt::format("{} lines, all methods with the same answers in {}\n", lines_, lines_ - different_);
    return part;
  }

  const PapersOptions& options_;
  const Runtime runtime_;
  std::vector<std::unique_ptr<SearchTable>> tables_;
  const Json head_ = head_of_results("bench papers", options_.commit);
  std::string name_;
  std::int64_t lines_ = 0;
  std::int64_t different_ = 0;
  Verdict verdict_;
};

}  // namespace

PapersPart measure_papers_gs(const PapersOptions& options) {
  return SearchBench(options).gs();
}
PapersPart measure_papers_lof(const PapersOptions& options) {
  return SearchBench(options).lof();
}
PapersPart measure_papers_lle_search(const PapersOptions& options) {
  return SearchBench(options).lle_search();
}

}  // namespace vicinal::cli
