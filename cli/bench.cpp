// `vicinal bench knn`: times a search on made or read data, and with --verify checks sampled queries against the key
// computed for every row. The numbers come with machine, date, version and commit, so that they can be compared later.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <memory>
#include <numbers>

#include "bench_harness.hpp"
#include "command.hpp"
#include "common_options.hpp"
#include "core/philox.hpp"
#include "input.hpp"
#include "machine.hpp"
#include "output.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

struct BenchKnn {
  CommonOptions common;
  SearchOptions search;
  std::string table_file;
  std::string queries_file;
  std::string data = "gaussian";
  std::string dtype = "float32";
  std::string commit;
  std::string output;
  std::int64_t rows = 20000;
  std::int64_t queries = 2000;
  std::int64_t dims = 64;
  std::int64_t k = 10;
  std::int64_t sample = 64;
  std::uint64_t seed = 0;
  int repeat = 5;
  int warmup = 1;
  bool verify = false;

  void run() const;
  void check() const;
};

/// A table made in memory, or read.
struct BenchTable {
  TableView view;
  std::vector<float> singles;
  std::vector<double> doubles;
  Table read;
};

std::vector<double> draw(const Context& ctx, const BenchKnn& bench, std::int64_t rows, std::uint64_t stream) {
  if (bench.data == "blobs") {
    // Table and queries are the two ends of one table, so that they share their centres.
    GenerateOptions options;
    options.rows = bench.rows + bench.queries;
    options.cols = bench.dims;
    options.centers = 16;
    options.seed = bench.seed;
    std::vector<double> all = generate(ctx, options).points;
    const std::int64_t begin = stream == 0 ? 0 : bench.rows;
    return {all.begin() + begin * bench.dims, all.begin() + (begin + rows) * bench.dims};
  }
  std::vector<double> values(static_cast<std::size_t>(rows * bench.dims));
  const bool gaussian = bench.data == "gaussian";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 1000000 == 0) ctx.check_cancelled();
    if (gaussian) {  // Box and Muller; 1 - u is never 0
      const double u = core::philox_uniform(bench.seed, stream, 2 * i);
      const double v = core::philox_uniform(bench.seed, stream, 2 * i + 1);
      values[i] = std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
    } else {
      values[i] = core::philox_uniform(bench.seed, stream, i);
    }
  }
  return values;
}

BenchTable make_table(const Context& ctx, const BenchKnn& bench, const std::string& file, std::int64_t rows,
                      std::uint64_t stream) {
  BenchTable table;
  if (!file.empty()) {
    table.read = read_table(ctx, file);
    table.view = table.read.view;
    return table;
  }
  table.doubles = draw(ctx, bench, rows, stream);
  if (bench.dtype == "float64") {
    table.view = TableView(table.doubles.data(), rows, bench.dims);
    return table;
  }
  table.singles.assign(table.doubles.begin(), table.doubles.end());
  table.doubles = {};
  table.view = TableView(table.singles.data(), rows, bench.dims);
  return table;
}

/// Ids and distance bits of evenly spread queries against Method::direct, which computes every key.
std::int64_t wrong_queries(const Context& ctx, const BenchTable& table, const BenchTable* asked,
                           const NeighborGraph& graph, KnnOptions options, std::int64_t sample) {
  options.method = Method::direct;
  std::int64_t wrong = 0;
  const std::int64_t checked = std::min(sample, graph.rows);
  const Index index(ctx, table.view);
  for (std::int64_t i = 0; i < checked; ++i) {
    const std::int64_t row = i * graph.rows / checked;
    const std::int64_t self = asked == nullptr ? row : -1;
    options.exclude = {&self, 1};
    const TableView one = (asked == nullptr ? table : *asked).view.slice(row, row + 1);
    const NeighborGraph truth = knn(ctx, index, one, options);
    const auto ids = graph.ids_of(row);
    const auto distances = graph.distances_of(row);
    if (!std::equal(ids.begin(), ids.end(), truth.ids.begin(), truth.ids.end()) ||
        !std::equal(distances.begin(), distances.end(), truth.distances.begin(), truth.distances.end())) {
      ++wrong;
    }
  }
  return wrong;
}

void BenchKnn::check() const {
  const auto need = [](bool good, const std::string& sentence) {
    if (!good) throw Error(ErrorCode::invalid_argument, sentence);
  };
  need(repeat >= 1, fmt::format("--repeat: {} is below 1", repeat));
  need(warmup >= 0, fmt::format("--warmup: {} is negative", warmup));
  need(sample >= 1, fmt::format("--sample: {} is below 1", sample));
  need(rows >= 1 && rows <= std::int64_t{1} << 40, fmt::format("--rows: {} is not between 1 and 2^40", rows));
  need(queries >= 0 && queries <= std::int64_t{1} << 40,
       fmt::format("--queries: {} is not between 0 and 2^40", queries));
  need(dims >= 1 && dims <= std::int64_t{1} << 20, fmt::format("--dims: {} is not between 1 and 2^20", dims));
  need(queries_file.empty() || !table_file.empty(), "--queries-file: it needs --table-file");
}

void BenchKnn::run() const {
  check();
  check_output("-o", output, {".json"});
  const Runtime runtime = make_runtime(common);
  const Context& ctx = runtime.ctx;
  const double cells = static_cast<double>(rows + queries) * static_cast<double>(dims) * sizeof(double);
  if (table_file.empty() && cells > static_cast<double>(ctx.memory_limit())) {
    throw Error(ErrorCode::over_memory,
                fmt::format("bench: making the data needs {}, the limit is {}", format_bytes(cells),
                            format_bytes(static_cast<double>(ctx.memory_limit()))));
  }
  const BenchTable table = make_table(ctx, *this, table_file, rows, 0);
  const bool self = table_file.empty() ? queries == 0 : queries_file.empty();
  const BenchTable asked = self ? BenchTable{} : make_table(ctx, *this, queries_file, queries, 1);
  const auto filter = read_filter(ctx, search.filter, table.view.rows());
  const KnnOptions options = knn_options(search, k, filter);
  if (common.explain) return print_plan(common, plan_knn(ctx, table.view, self ? nullptr : &asked.view, options));
  NeighborGraph graph;
  const Timings timings = measure(ctx, warmup, repeat, [&] {
    graph = self ? knn(ctx, table.view, options) : knn(ctx, table.view, asked.view, options);
  });
  const double pairs = static_cast<double>(graph.rows) * static_cast<double>(graph.table_rows);
  const double gflops = 2 * pairs * static_cast<double>(table.view.cols()) / timings.median() * 1e-9;
  const double survivors = static_cast<double>(graph.stats.survivors) / static_cast<double>(graph.rows);
  const double uncertified = static_cast<double>(graph.stats.uncertified) / static_cast<double>(graph.rows);
  const std::int64_t checked = verify ? std::min(sample, graph.rows) : 0;
  const std::int64_t wrong = verify ? wrong_queries(ctx, table, self ? nullptr : &asked, graph, options, sample) : 0;
  runtime.progress->clear();
  Json json = {{"command", "bench knn"},
               {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
               {"version", VICINAL_VERSION},
               {"commit", commit.empty() ? Json(nullptr) : Json(commit)},
               {"machine", to_json(look_at_machine())},
               {"data", table_file.empty() ? data : table_file},
               {"dtype", name_of(table.view.dtype())},
               {"rows", graph.table_rows},
               {"queries", graph.rows},
               {"self", self},
               {"dims", table.view.cols()},
               {"k", k},
               {"metric", search.metric},
               {"seed", seed},
               {"seconds", to_json(timings)},
               {"gflops", gflops},
               {"survivors_per_query", survivors},
               {"uncertified_share", uncertified},
               {"verified_queries", checked},
               {"wrong_queries", wrong},
               {"plan", to_json(graph.plan)},
               {"stats", to_json(graph.stats)}};
  if (!output.empty()) write_text(output, json.dump(2) + "\n");
  if (common.json) {
    print_json(json);
  } else {
    const std::string verdict =
        verify ? fmt::format("{} of {} sampled queries equal brute force", checked - wrong, checked)
               : std::string("not asked for (--verify)");
    write_stdout(fmt::format(
        "data          {} {} x {}, {} queries, k {}, {}\nseconds       median {:.4f}, min {:.4f}, max {:.4f} of {}\n"
        "GFLOP/s       {:.1f}\nsurvivors     {:.1f} a query\nuncertified   {:.2f} % of the queries\nplan          {}, "
        "{}, {} "
        "threads\nverified      {}\n",
        json["data"].get<std::string>(), graph.table_rows, table.view.cols(), graph.rows, k, search.metric,
        timings.median(), timings.least(), timings.most(), timings.seconds.size(), gflops, survivors, 100 * uncertified,
        name_of(graph.plan.method), graph.plan.isa, graph.plan.threads, verdict));
  }
  if (wrong > 0) {
    throw Error(ErrorCode::internal, fmt::format("{} of {} sampled queries differ from brute force", wrong, checked));
  }
}

}  // namespace

Command add_bench(CLI::App& root) {
  auto bench = std::make_shared<BenchKnn>();
  CLI::App* app = root.add_subcommand("bench", "Time the library on this machine");
  app->require_subcommand(1);
  app->fallthrough();
  CLI::App* knn_app = app->add_subcommand("knn", "Time exact nearest neighbors");
  const std::string data = "Data";
  knn_app->add_option("--rows", bench->rows, "Table rows to make")->type_name("N")->capture_default_str()->group(data);
  knn_app->add_option("--queries", bench->queries, "Queries to make; 0 searches the table within itself")
      ->type_name("M")
      ->capture_default_str()
      ->group(data);
  knn_app->add_option("--dims", bench->dims, "Columns to make")->type_name("D")->capture_default_str()->group(data);
  add_choice(*knn_app, "--data", bench->data, {"gaussian", "uniform", "blobs"}, "What to make")->group(data);
  add_choice(*knn_app, "--dtype", bench->dtype, {"float32", "float64"}, "Element type to make")->group(data);
  knn_app->add_option("--seed", bench->seed, "Seed of the draws")
      ->type_name("SEED")
      ->capture_default_str()
      ->group(data);
  knn_app->add_option("--table-file", bench->table_file, "Table to read instead")->type_name("FILE")->group(data);
  knn_app->add_option("--queries-file", bench->queries_file, "Queries to read instead")->type_name("FILE")->group(data);
  knn_app->add_option("-k", bench->k, "Neighbors a query")->type_name("K")->capture_default_str()->group("Search");
  add_search_options(*knn_app, bench->search);
  const std::string timing = "Timing";
  knn_app->add_option("--repeat", bench->repeat, "Timed runs")->type_name("N")->capture_default_str()->group(timing);
  knn_app->add_option("--warmup", bench->warmup, "Runs before them")
      ->type_name("N")
      ->capture_default_str()
      ->group(timing);
  knn_app->add_flag("--verify", bench->verify, "Check sampled queries against the key of every row")->group(timing);
  knn_app->add_option("--sample", bench->sample, "Queries that --verify checks")
      ->type_name("N")
      ->capture_default_str()
      ->group(timing);
  knn_app->add_option("--commit", bench->commit, "Commit to note in the result")->type_name("ID")->group(timing);
  knn_app->add_option("-o,--output", bench->output, "Where to write the result, too (.json)")->type_name("FILE");
  add_common_options(*knn_app, bench->common);
  const std::vector<std::string> examples = {
      "vicinal bench knn --rows 5000 --queries 500 --dims 32 -k 10 --verify",
      "vicinal bench knn --rows 3000 --queries 0 --dims 16 --data blobs --repeat 3 --json"};
  add_examples(*app, examples);
  add_examples(*knn_app, examples);
  return {app, [bench] { bench->run(); }, &bench->common.json};
}

}  // namespace vicinal::cli
