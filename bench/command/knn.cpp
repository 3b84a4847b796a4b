// `vicinal-bench knn`: times a search on made or read data, with --verify checks sampled queries against the key
// computed for every row, and with --peers lets other libraries take turns with it. The numbers come with machine,
// date, version and commit, so that they can be compared later. `vicinal-bench peak`: what the cores can do at most.
#include "vicinal/knn.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/commands.hpp"
#include "command/data.hpp"
#include "command/harness.hpp"
#include "command/peak.hpp"
#include "command/peers.hpp"
#include "core/ablation.hpp"
#include "vicinal/io.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

struct BenchKnn {
  CommonOptions common;
  SearchOptions search;
  std::string table_file;
  std::string queries_file;
  BenchData data;
  std::string dtype = "float32";
  std::string commit;
  std::string output;
  PeerOptions peers;
  std::int64_t k = 10;
  std::int64_t sample = 64;
  int repeat = 5;
  int warmup = 1;
  std::string without = "nothing";
  bool verify = false;
  bool peak = false;

  void run() const;
  void check() const;
  /// Whether the table is searched within itself.
  [[nodiscard]] bool is_self() const { return table_file.empty() ? data.queries == 0 : queries_file.empty(); }
};

/// A table made in memory, or read.
struct BenchTable {
  TableView view;
  std::vector<float> singles;
  std::vector<double> doubles;
  Table read;
};

BenchTable make_table(const Context& ctx, const BenchKnn& bench, const std::string& file, bool queries) {
  BenchTable table;
  if (!file.empty()) {
    table.read = read_table(ctx, file);
    table.view = table.read.view;
    return table;
  }
  table.doubles = queries ? make_bench_queries(ctx, bench.data) : make_bench_table(ctx, bench.data);
  const std::int64_t rows = queries ? bench.data.queries : bench.data.rows;
  if (bench.dtype == "float64") {
    table.view = TableView(table.doubles.data(), rows, bench.data.cols);
    return table;
  }
  table.singles.assign(table.doubles.begin(), table.doubles.end());
  table.doubles = {};
  table.view = TableView(table.singles.data(), rows, bench.data.cols);
  return table;
}

/// Ids and distance bits of evenly spread queries against Method::direct on the CPU, which computes every key.
std::int64_t wrong_queries(const Context& running, const BenchTable& table, const BenchTable* asked,
                           const NeighborGraph& graph, KnnOptions options, std::int64_t sample) {
  const Context ctx = running.device() == "cpu" ? running : Context::cpu({.cancel = running.cancel_token()});
  options.method = Method::direct;
  options.screen = ScreenType::automatic;
  std::int64_t wrong = 0;
  const std::int64_t checked = std::min(sample, graph.rows);
  const Index index(ctx, table.view, {.packed = Packing::never});
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
  need(data.rows >= 1 && data.rows <= std::int64_t{1} << 40,
       fmt::format("--rows: {} is not between 1 and 2^40", data.rows));
  need(data.queries >= 0 && data.queries <= std::int64_t{1} << 40,
       fmt::format("--queries: {} is not between 0 and 2^40", data.queries));
  need(data.cols >= 1 && data.cols <= std::int64_t{1} << 20,
       fmt::format("--dims: {} is not between 1 and 2^20", data.cols));
  need(data.sigma >= 0 && data.sigma <= 1e300, fmt::format("--sigma: {} is not between 0 and 1e300", data.sigma));
  need(queries_file.empty() || !table_file.empty(), "--queries-file: it needs --table-file");
  if (peers.names.empty()) return;
  peers_from(peers.names);
  need(peers.timeout > 0, fmt::format("--peer-timeout: {} is not above 0", peers.timeout));
  need(search.metric == "euclidean", fmt::format("--peers: they answer euclidean, not {}", search.metric));
  need(search.filter.empty(), "--peers: they know no --filter");
  need(!is_self(), "--peers: they do not search a table within itself; give --queries or --queries-file");
}

void BenchKnn::run() const {
  check();
  check_output("-o", output, {".json"});
  // The context that is made next holds it.
  setenv(core::kAblationVariable, without.c_str(), 1);
  const Runtime runtime = make_runtime(common);
  unsetenv(core::kAblationVariable);
  const Context& ctx = runtime.ctx;
  const double cells = static_cast<double>(data.rows + data.queries) * static_cast<double>(data.cols) * sizeof(double);
  if (table_file.empty() && cells > static_cast<double>(ctx.memory_limit())) {
    throw Error(ErrorCode::over_memory,
                fmt::format("bench: making the data needs {}, the limit is {}", format_bytes(cells),
                            format_bytes(static_cast<double>(ctx.memory_limit()))));
  }
  const BenchTable table = make_table(ctx, *this, table_file, false);
  const bool self = is_self();
  const BenchTable asked = self ? BenchTable{} : make_table(ctx, *this, queries_file, true);
  const auto filter = read_filter(ctx, search.filter, table.view.rows());
  const KnnOptions options = knn_options(search, k, filter);
  if (common.explain) return print_plan(common, plan_knn(ctx, table.view, self ? nullptr : &asked.view, options));
  const Peak peak_rates = peak ? measure_peak(ctx) : Peak{};
  std::optional<Peers> others;
  if (!peers.names.empty()) others.emplace(ctx, peers, table.view, asked.view, k);
  NeighborGraph graph;
  PeerResult ours;
  ours.about = {{"name", "vicinal"}, {"version", VICINAL_VERSION}};
  const auto search_once = [&] {
    graph = self ? knn(ctx, table.view, options) : knn(ctx, table.view, asked.view, options);
  };
  const auto others_turn = [&] {
    ours.build.seconds.push_back(graph.stats.prepare_seconds);
    ours.query.seconds.push_back(graph.stats.search_seconds);
    if (others) others->take_turns();
  };
  ours.total = measure(ctx, {warmup, repeat}, search_once, others_turn);
  const Timings& timings = ours.total;
  const std::vector<PeerResult> results = others ? others->finish(graph) : std::vector<PeerResult>();
  const double pairs = static_cast<double>(graph.rows) * static_cast<double>(graph.table_rows);
  const double gflops = 2 * pairs * static_cast<double>(table.view.cols()) / timings.median() * 1e-9;
  const double survivors = static_cast<double>(graph.stats.survivors) / static_cast<double>(graph.rows);
  const double escalated = static_cast<double>(graph.stats.escalated) / static_cast<double>(graph.rows);
  const double uncertified = static_cast<double>(graph.stats.uncertified) / static_cast<double>(graph.rows);
  const std::int64_t checked = verify ? std::min(sample, graph.rows) : 0;
  const std::int64_t wrong = verify ? wrong_queries(ctx, table, self ? nullptr : &asked, graph, options, sample) : 0;
  runtime.progress->clear();
  Json json = {{"command", "bench knn"},
               {"date", date_of_results()},
               {"version", VICINAL_VERSION},
               {"commit", commit.empty() ? Json(nullptr) : Json(commit)},
               {"machine", machine_of_results()},
               {"data", table_file.empty() ? data.kind : table_file},
               {"dtype", name_of(table.view.dtype())},
               {"rows", graph.table_rows},
               {"queries", graph.rows},
               {"self", self},
               {"dims", table.view.cols()},
               {"k", k},
               {"metric", search.metric},
               {"seed", data.seed},
               {"seconds", to_json(timings)},
               {"gflops", gflops},
               {"survivors_per_query", survivors},
               {"escalated_share", escalated},
               {"certified_share", 1 - uncertified},
               {"without", without},
               {"verified_queries", checked},
               {"wrong_queries", wrong},
               {"plan", to_json(graph.plan)},
               {"stats", to_json(graph.stats)}};
  if (peak) {
    json["peak"] = to_json(peak_rates);
    json["fraction_of_peak"] = peak_rates.float32 > 0 ? Json(gflops / peak_rates.float32) : Json(nullptr);
  }
  if (others) add_to_json(json, results, timings, graph.rows);
  if (!output.empty()) write_text(output, json.dump(2) + "\n");
  if (common.json) {
    print_json(json);
  } else {
    const std::string verdict =
        verify ? fmt::format("{} of {} sampled queries equal brute force", checked - wrong, checked)
               : std::string("not asked for (--verify)");
    print_text(fmt::format(
        "data          {} {} x {}, {} queries, k {}, {}\nseconds       median {:.4f}, min {:.4f}, max {:.4f} of {}\n"
        "GFLOP/s       {:.1f}\nsurvivors     {:.1f} a query\nescalated     {:.2f} % of the queries met a finer screen, "
        "{:.2f} % float64 alone\nplan          {}\nverified      {}\n",
        json["data"].get<std::string>(), graph.table_rows, table.view.cols(), graph.rows, k, search.metric,
        timings.median(), timings.least(), timings.most(), timings.seconds.size(), gflops, survivors, 100 * escalated,
        100 * uncertified, ran_as(graph.plan), verdict));
    if (peak) print_text(format_peak(peak_rates));
    if (others) print_text("\n" + format_peers(results, ours, graph.rows));
  }
  if (wrong > 0) {
    throw Error(ErrorCode::internal, fmt::format("{} of {} sampled queries differ from brute force", wrong, checked));
  }
}

void run_peak(const CommonOptions& common) {
  const Runtime runtime = make_runtime(common, Computes::on_host);
  const Peak rates = measure_peak(runtime.ctx);
  if (!common.json) return print_text(format_peak(rates));
  Json json = to_json(rates);
  json["command"] = "bench peak";
  json["threads"] = runtime.ctx.threads();
  print_json(json);
}

}  // namespace

Command add_bench_knn(const Parser& root) {
  auto bench = std::make_shared<BenchKnn>();
  const Parser knn_app = root.add_subcommand("knn", "Time exact nearest neighbors");
  const std::string data = "Data";
  knn_app.add_option("--rows", bench->data.rows, "Table rows to make").type_name("N").capture_default_str().group(data);
  knn_app.add_option("--queries", bench->data.queries, "Queries to make; 0 searches the table within itself")
      .type_name("M")
      .capture_default_str()
      .group(data);
  knn_app.add_option("--dims", bench->data.cols, "Columns to make").type_name("D").capture_default_str().group(data);
  knn_app.add_choice("--data", bench->data.kind, bench_data_kinds(), describe_bench_data()).group(data);
  knn_app.add_option("--sigma", bench->data.sigma, "Standard deviation of --data clusters")
      .type_name("S")
      .capture_default_str()
      .group(data);
  knn_app.add_choice("--dtype", bench->dtype, {"float32", "float64"}, "Element type to make").group(data);
  knn_app.add_option("--seed", bench->data.seed, "Random seed").type_name("SEED").capture_default_str().group(data);
  knn_app.add_option("--table-file", bench->table_file, "Table to read instead").type_name("FILE").group(data);
  knn_app.add_option("--queries-file", bench->queries_file, "Queries to read instead").type_name("FILE").group(data);
  knn_app.add_option("-k", bench->k, "Neighbors a query").type_name("K").capture_default_str().group("Search");
  add_search_options(knn_app, bench->search);
  const std::string timing = "Timing";
  knn_app.add_option("--repeat", bench->repeat, "Timed runs").type_name("N").capture_default_str().group(timing);
  knn_app.add_option("--warmup", bench->warmup, "Runs before them").type_name("N").capture_default_str().group(timing);
  knn_app
      .add_choice("--without", bench->without, {core::kAblationNames.begin(), core::kAblationNames.end()},
                  "Leave one idea out, to see what it is worth; --method direct leaves out the screen")
      .group(timing);
  knn_app.add_flag("--verify", bench->verify, "Check sampled queries against the key of every row").group(timing);
  knn_app.add_option("--sample", bench->sample, "Queries that --verify checks")
      .type_name("N")
      .capture_default_str()
      .group(timing);
  knn_app.add_flag("--peak", bench->peak, "Measure what the cores can do, too, and the share of it reached")
      .group(timing);
  knn_app.add_option("--commit", bench->commit, "Commit to note in the result").type_name("ID").group(timing);
  const std::string peers = "Peers";
  knn_app
      .add_option("--peers", bench->peers.names,
                  "Other libraries to time in turns with ours and to check, one or more by commas")
      .type_name(fmt::format("{{{}}}", fmt::join(peer_choices(), ",")))
      .group(peers);
  knn_app
      .add_option("--peers-python", bench->peers.python,
                  "Python that has them [VICINAL_PEERS_PYTHON, else what `vicinal-bench peers knn` made]")
      .type_name("FILE")
      .group(peers);
  knn_app.add_option("--peers-dir", bench->peers.dir, "Folder of knn.py [bench/peers of the source tree]")
      .type_name("DIR")
      .group(peers);
  knn_app.add_option("--peer-timeout", bench->peers.timeout, "Seconds for all calls of one peer together")
      .type_name("SECONDS")
      .capture_default_str()
      .group(peers);
  knn_app.add_option("-o,--output", bench->output, "Where to write the result, too (.json)").type_name("FILE");
  add_common_options(knn_app, bench->common);
  knn_app.add_examples({"vicinal-bench knn --rows 5000 --queries 500 --dims 32 -k 10 --verify",
                        "vicinal-bench knn --rows 3000 --queries 0 --dims 16 --data blobs --repeat 3 --json"});
  return {knn_app, [bench] { bench->run(); }, &bench->common.json};
}

Command add_bench_peak(const Parser& root) {
  auto common = std::make_shared<CommonOptions>();
  const Parser app = root.add_subcommand("peak", "Measure what the cores can compute at most");
  add_common_options(app, *common);
  app.add_examples({"vicinal-bench peak", "vicinal-bench peak --threads 1 --json"});
  return {app, [common] { run_peak(*common); }, &common->json};
}

}  // namespace vicinal::cli
