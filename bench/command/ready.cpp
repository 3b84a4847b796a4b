// `vicinal-bench ready`: searches of few queries on an index that is ready, as a service asks them: lists go to memory
// that is there, and the same calls are repeated. Beside them the rate at which the same threads read memory, because a
// search of one query can be no faster than that. --verify compares each answer with Method::direct.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/common_options.hpp"
#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/commands.hpp"
#include "command/data.hpp"
#include "command/harness.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

struct BenchReady {
  CommonOptions common;
  BenchData data;
  std::string counts = "1,4,16,23,24,64,256,1024";
  std::int64_t k = 10;
  std::string metric = "euclidean";
  std::string method = "automatic";
  std::string packed = "now";
  std::string pruned = "never";
  std::string file;
  std::string commit;
  std::string output;
  int repeat = 15;
  int warmup = 3;
  bool verify = false;

  void run() const;
  void check() const;
  /// Numbers of queries.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;
};

constexpr std::int64_t kOtherCalls = 32;

/// Bytes a second that all threads read together: the best of seven sums over `values`.
double reading_rate(const Context& ctx, const std::vector<float>& values) {
  const auto threads = static_cast<std::int64_t>(ctx.threads());
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads) * 8);
  const Timings timings = measure(ctx, {1, 7}, [&] {
    std::vector<std::thread> workers;
    for (std::int64_t worker = 0; worker < threads; ++worker) {
      workers.emplace_back([&, worker] {
        // Whole numbers, so that the compiler may add them in any order.
        const auto* from = reinterpret_cast<const std::uint32_t*>(values.data());
        std::uint32_t sum = 0;
        for (std::int64_t i = worker * count / threads; i < (worker + 1) * count / threads; ++i) sum += from[i];
        sums[static_cast<std::size_t>(worker) * 8] = sum;
      });
    }
    for (std::thread& worker : workers) worker.join();
  });
  if (std::accumulate(sums.begin(), sums.end(), std::uint64_t{0}) == 1) return 0;  // the sums are used
  return static_cast<double>(values.size() * sizeof(float)) / timings.least();
}

/// All values of a table that was read, of bytes, float32 or float64.
std::vector<double> values_of(const TableView& table) {
  const auto count = table.rows() * table.cols();
  const auto widened = [count](const auto* values) { return std::vector<double>(values, values + count); };
  switch (table.dtype()) {
    case DType::uint8:
      return widened(static_cast<const std::uint8_t*>(table.data()));
    case DType::float32:
      return widened(static_cast<const float*>(table.data()));
    case DType::float64:
      return widened(static_cast<const double*>(table.data()));
    default:
      throw Error(ErrorCode::invalid_argument, "--file: its values are neither bytes, float32 nor float64");
  }
}

void BenchReady::check() const {
  const auto need = [](bool good, const std::string& sentence) {
    if (!good) throw Error(ErrorCode::invalid_argument, sentence);
  };
  need(repeat >= 1, fmt::format("--repeat: {} is below 1", repeat));
  need(warmup >= 0, fmt::format("--warmup: {} is negative", warmup));
  need(k >= 1, fmt::format("-k: {} is below 1", k));
  need(data.rows >= 1 && data.rows <= std::int64_t{1} << 40,
       fmt::format("--rows: {} is not between 1 and 2^40", data.rows));
  need(data.cols >= 1 && data.cols <= std::int64_t{1} << 20,
       fmt::format("--dims: {} is not between 1 and 2^20", data.cols));
  for (const std::int64_t count : numbers()) {
    need(count >= 1 && count <= std::int64_t{1} << 20, fmt::format("--queries: {} is not between 1 and 2^20", count));
  }
}

std::vector<std::int64_t> BenchReady::numbers() const {
  std::vector<std::int64_t> numbers;
  const char* at = counts.data();
  const char* const end = at + counts.size();
  for (;;) {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc() || (next != end && *next != ',')) {
      throw Error(ErrorCode::invalid_argument, fmt::format("--queries: '{}' is not numbers with commas", counts));
    }
    if (next == end) return numbers;
    at = next + 1;
  }
}

void BenchReady::run() const {
  check();
  const std::vector<std::int64_t> numbers = this->numbers();
  check_output("-o", output, {".json"});
  const Runtime runtime = make_runtime(common, Computes::on_host);
  const Context& ctx = runtime.ctx;
  BenchData made = data;
  // Each call asks other queries, as a service does: what one ranked is not in the cache for the next.
  const std::int64_t most = *std::max_element(numbers.begin(), numbers.end());
  made.queries = most + kOtherCalls * std::min<std::int64_t>(most, 64);
  std::vector<double> doubles;
  if (!file.empty()) {
    const Table read = read_table(ctx, file);
    const std::int64_t queries = std::min(made.queries, read.view.rows() / 2);
    made.kind = file;
    made.rows = read.view.rows() - queries;
    made.cols = read.view.cols();
    doubles = values_of(read.view);
  } else {
    doubles = make_bench_table(ctx, made);
  }
  const std::vector<float> rows(doubles.begin(), doubles.begin() + made.rows * made.cols);
  if (file.empty()) {
    doubles = make_bench_queries(ctx, made);
  } else {
    doubles.erase(doubles.begin(), doubles.begin() + made.rows * made.cols);
  }
  const std::vector<float> asked(doubles.begin(), doubles.end());
  doubles = {};
  KnnOptions options = {.k = k, .metric = metric_from(metric), .method = method_from(method)};
  const TableView table(rows.data(), made.rows, made.cols);
  Timings building;
  std::unique_ptr<const Index> index;
  building = measure(ctx, {0, 1}, [&] {
    index = std::make_unique<const Index>(ctx, table,
                                          IndexOptions{.packed = packing_from(packed), .pruned = packing_from(pruned)});
  });
  const double rate = reading_rate(ctx, rows);
  Json json = {{"command", "bench ready"},
               {"date", date_of_results()},
               {"version", VICINAL_VERSION},
               {"commit", commit.empty() ? Json(nullptr) : Json(commit)},
               {"machine", machine_of_results()},
               {"data", made.kind},
               {"rows", made.rows},
               {"dims", made.cols},
               {"k", k},
               {"metric", metric},
               {"packed", packed},
               {"pruned", pruned},
               {"threads", ctx.threads()},
               {"index_seconds", building.seconds.front()},
               {"bytes_per_second", rate}};
  std::string text = fmt::format("{} x {}, k {}, index {:.3f} s, memory is read at {:.1f} GB/s\n", made.rows, made.cols,
                                 k, building.seconds.front(), rate * 1e-9);
  std::int64_t wrong = 0;
  for (const std::int64_t count : numbers) {
    const std::int64_t shift = std::min<std::int64_t>(count, 64);
    const std::int64_t places = std::min<std::int64_t>(kOtherCalls, (made.queries - count) / shift) + 1;
    std::int64_t calls_made = 0;
    TableView queries(asked.data(), count, made.cols);
    const auto next = [&] {
      queries = TableView(asked.data() + calls_made++ % places * shift * made.cols, count, made.cols);
    };
    std::vector<std::int64_t> ids(static_cast<std::size_t>(count * k));
    std::vector<double> distances(ids.size());
    const KnnOutput lists = {ids.data(), distances.data()};
    KnnSummary summary;
    const auto ask = [&] {
      next();
      summary = knn_into(ctx, *index, queries, options, lists);
    };
    // Short calls are repeated until a run takes a millisecond.
    const double once = measure(ctx, {warmup, 3}, ask).least();
    const int calls = std::clamp(static_cast<int>(1e-3 / once), 1, 100000);
    Timings timings = measure(ctx, {0, repeat}, [&] {
      for (int i = 0; i < calls; ++i) ask();
    });
    for (double& seconds : timings.seconds) seconds /= calls;
    RepeatedKnn repeated(ctx, *index, queries, options);
    Timings again = measure(ctx, {warmup, repeat}, [&] {
      for (int i = 0; i < calls; ++i) {
        next();
        repeated.find(queries, lists);
      }
    });
    for (double& seconds : again.seconds) seconds /= calls;
    Json row = {{"queries", count},
                {"seconds", to_json(timings)},
                {"repeated_seconds", to_json(again)},
                {"plan", to_json(summary.plan)}};
    row["survivors_per_query"] = static_cast<double>(summary.stats.survivors) / static_cast<double>(count);
    // What a search of one query must read: the rows, or what the index keeps of them for the int8 screen.
    std::int64_t columns = made.cols;
    const std::size_t rotated = summary.plan.screens.find(" rotated columns");
    if (rotated != std::string::npos) {  // "int8 of 32 rotated columns, .."
      columns = std::stoll(summary.plan.screens.substr(summary.plan.screens.find("of ") + 3));
    }
    const double ranked = row["survivors_per_query"].get<double>() / static_cast<double>(made.rows);
    const double columns_read = static_cast<double>(columns) + ranked * static_cast<double>(made.cols);
    row["columns_per_row"] = columns_read;
    const std::int64_t row_bytes =
        summary.plan.method == Method::fused ? (columns + 3) / 4 * 4 + 12 : made.cols * std::int64_t{sizeof(float)};
    const auto bytes = static_cast<double>(made.rows * row_bytes);
    row["bytes_read"] = bytes;
    row["share_of_reading_rate"] = bytes / again.median() / rate;
    if (verify) {
      KnnOptions every = options;
      every.method = Method::direct;
      const NeighborGraph truth = knn(ctx, table, queries, every);
      row["wrong_lists"] = truth.ids != ids || truth.distances != distances ? 1 : 0;
      wrong += truth.ids != ids || truth.distances != distances ? 1 : 0;
    }
    text += fmt::format(
        "{:6} queries  knn_into {:10.4f} ms (min {:.4f}), repeated {:10.4f} ms (min {:.4f}), {} {}, {:.1f} survivors a "
        "query, {:.1f} columns a row\n",
        count, timings.median() * 1e3, timings.least() * 1e3, again.median() * 1e3, again.least() * 1e3,
        name_of(summary.plan.method), summary.plan.screens,
        static_cast<double>(summary.stats.survivors) / static_cast<double>(count), columns_read);
    json["results"].push_back(row);
  }
  runtime.progress->clear();
  if (!output.empty()) write_text(output, json.dump(2) + "\n");
  if (common.json) {
    print_json(json);
  } else {
    print_text(text);
  }
  if (wrong > 0) throw Error(ErrorCode::internal, fmt::format("{} of the answers differ from brute force", wrong));
}

}  // namespace

Command add_bench_ready(const Parser& root) {
  auto bench = std::make_shared<BenchReady>();
  const Parser app = root.add_subcommand("ready", "Time searches of few queries on an index that is ready");
  const std::string data = "Data";
  app.add_option("--rows", bench->data.rows, "Table rows to make").type_name("N").capture_default_str().group(data);
  app.add_option("--dims", bench->data.cols, "Columns to make").type_name("D").capture_default_str().group(data);
  app.add_choice("--data", bench->data.kind, bench_data_kinds(), describe_bench_data()).group(data);
  app.add_option("--seed", bench->data.seed, "Random seed").type_name("SEED").capture_default_str().group(data);
  const std::string search = "Search";
  app.add_option("--queries", bench->counts, "Queries of a call, one or more numbers by commas")
      .type_name("M,..")
      .capture_default_str()
      .group(search);
  app.add_option("-k", bench->k, "Neighbors a query").type_name("K").capture_default_str().group(search);
  app.add_choice("--metric", bench->metric, {"euclidean", "sqeuclidean", "cosine", "inner_product", "manhattan"},
                 "Metric")
      .group(search);
  app.add_choice("--method", bench->method, {"automatic", "fused", "direct"}, "Method").group(search);
  app.add_choice("--packed", bench->packed, {"automatic", "never", "now"}, "Whether the index keeps packed rows")
      .group(search);
  app.add_choice("--pruned", bench->pruned, {"automatic", "never", "now"}, "Whether the index keeps pruned rows")
      .group(search);
  app.add_option("--file", bench->file, "Table instead of --data; its last rows are the queries")
      .type_name("FILE")
      .group(data);
  const std::string timing = "Timing";
  app.add_option("--repeat", bench->repeat, "Timed runs").type_name("N").capture_default_str().group(timing);
  app.add_option("--warmup", bench->warmup, "Calls before them").type_name("N").capture_default_str().group(timing);
  app.add_flag("--verify", bench->verify, "Compare the answers with the key of every row").group(timing);
  app.add_option("--commit", bench->commit, "Commit to note in the result").type_name("ID").group(timing);
  app.add_option("-o,--output", bench->output, "Where to write the result, too (.json)").type_name("FILE");
  add_common_options(app, bench->common);
  app.add_examples({"vicinal-bench ready --rows 5000 --dims 16 --queries 1,24 --verify"});
  return {app, [bench] { bench->run(); }, &bench->common.json};
}

}  // namespace vicinal::cli
