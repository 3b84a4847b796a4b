// `vicinal-bench ranks`: one job, by all threads of one process or divided among the ranks that mpirun started. Data
// are made before the time begins; it ends when the last rank is done. bench/ranks.py compares the two in turns.
#include "base/ranks.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/common_options.hpp"
#include "base/output.hpp"
#include "command/commands.hpp"
#include "command/data.hpp"
#include "command/harness.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lof.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/shards.hpp"

namespace vicinal::cli {
namespace {

struct RanksOptions {
  CommonOptions common;
  std::string job = "knn-queries";
  double scale = 1;
  int repeat = 1;
  int warmup = 1;
  bool on_request = false;
};

/// What a call gave, on this rank: a sum over its rows, whichever ranks have them.
struct RanksAnswer {
  std::int64_t bits = 0;
  std::string method;
  std::string reason;

  /// 32 bits of what row `row` has, so that sums do not overflow.
  void add(std::int64_t row, std::span<const std::int64_t> ids, std::span<const double> numbers) {
    std::uint64_t state = static_cast<std::uint64_t>(row) + 1;
    const auto mix = [&state](std::uint64_t value) {
      state = (state ^ value) * 0x9E3779B97F4A7C15ULL;
      state ^= state >> 29;
    };
    for (const std::int64_t id : ids) mix(static_cast<std::uint64_t>(id));
    for (const double number : numbers) mix(std::bit_cast<std::uint64_t>(number));
    bits += static_cast<std::int64_t>(state >> 32);
  }
  void take(const NeighborGraph& graph, std::int64_t first) {
    for (std::int64_t row = 0; row < graph.rows; ++row) add(first + row, graph.ids_of(row), graph.distances_of(row));
    take(graph.plan);
  }
  void take(const Plan& plan) {
    method = name_of(plan.method);
    reason = plan.reason;
  }
};

class RanksBench {
 public:
  RanksBench(const RanksOptions& options, const RankRuntime& own)
      : options_(options), ctx_(own.runtime.ctx), ranks_(own.ranks) {}

  void run() {
    if (options_.job == "knn-queries") return queries();
    if (options_.job == "knn-within") return within();
    if (options_.job == "kmeans") return clusters();
    if (options_.job == "lof") return outliers();
    parts();
  }

 private:
  [[nodiscard]] std::int64_t scaled(std::int64_t rows) const {
    return std::max<std::int64_t>(200, static_cast<std::int64_t>(static_cast<double>(rows) * options_.scale));
  }
  [[nodiscard]] std::vector<float> table_of(const BenchData& data) const {
    const std::vector<double> values = make_bench_table(ctx_, data);
    return {values.begin(), values.end()};
  }
  [[nodiscard]] std::vector<float> queries_of(const BenchData& data) const {
    const std::vector<double> values = make_bench_queries(ctx_, data);
    return {values.begin(), values.end()};
  }
  /// The rows of this rank.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> share_of(std::int64_t rows) const {
    return {rows * ranks_.rank() / ranks_.size(), rows * (ranks_.rank() + 1) / ranks_.size()};
  }
  [[nodiscard]] bool is_alone() const { return ranks_.size() == 1; }

  void queries() {
    const BenchData data{.rows = scaled(200'000), .queries = scaled(10'000)};
    const std::vector<float> rows = table_of(data);
    const std::vector<float> asked = queries_of(data);
    const TableView table(rows.data(), data.rows, data.cols);
    const TableView views(asked.data(), data.queries, data.cols);
    const auto [begin, end] = share_of(data.rows);
    const auto [first, last] = share_of(data.queries);
    const KnnOptions options{.k = 10};
    time(fmt::format("{} x {}, {} queries, k 10", data.rows, data.cols, data.queries), [&, begin = begin, end = end,
                                                                                        first = first, last = last] {
      RanksAnswer answer;
      answer.take(is_alone() ? knn(ctx_, table, views, options)
                             : knn(ctx_, ranks_, table.slice(begin, end), begin, views.slice(first, last), options),
                  first);
      return answer;
    });
  }
  void within() {
    const BenchData data{.rows = scaled(60'000)};
    const std::vector<float> rows = table_of(data);
    const TableView table(rows.data(), data.rows, data.cols);
    const auto [begin, end] = share_of(data.rows);
    const KnnOptions options{.k = 10};
    time(fmt::format("{} x {} within itself, k 10", data.rows, data.cols), [&, begin = begin, end = end] {
      RanksAnswer answer;
      answer.take(is_alone() ? knn(ctx_, table, options) : knn(ctx_, ranks_, table.slice(begin, end), begin, options),
                  begin);
      return answer;
    });
  }
  void clusters() {
    const BenchData data{.kind = "blobs", .rows = scaled(1'000'000), .cols = 16};
    const std::vector<float> rows = table_of(data);
    const TableView table(rows.data(), data.rows, data.cols);
    const auto [begin, end] = share_of(data.rows);
    const KMeansOptions options{.clusters = 100, .init = KMeansInit::first_k, .max_iterations = 20, .tolerance = 0};
    time(fmt::format("{} x {}, K = 100, at most 20 iterations", data.rows, data.cols), [&, begin = begin, end = end] {
      const KMeans found =
          is_alone() ? kmeans(ctx_, table, options) : kmeans(ctx_, ranks_, table.slice(begin, end), begin, options);
      RanksAnswer answer;
      for (std::int64_t row = begin; row < end; ++row) {
        const std::array<std::int64_t, 1> label = {found.labels[static_cast<std::size_t>(row - begin)]};
        answer.add(row, label, {});
      }
      if (ranks_.rank() == 0) answer.add(data.rows, found.sizes, found.centres);
      answer.take(found.plan);
      return answer;
    });
  }
  void outliers() {
    const BenchData data{.rows = scaled(200'000), .cols = 8};
    const std::vector<float> rows = table_of(data);
    const TableView table(rows.data(), data.rows, data.cols);
    const auto [begin, end] = share_of(data.rows);
    const LofOptions options{.k = 20};
    time(fmt::format("{} x {}, k 20", data.rows, data.cols), [&, begin = begin, end = end] {
      const auto of_ranks = [&] {
        const NeighborGraph graph = knn(ctx_, ranks_, table.slice(begin, end), begin, {.k = options.k});
        Lof found = lof(ctx_, ranks_, graph, begin, options);
        found.plan = graph.plan;
        return found;
      };
      const Lof found = is_alone() ? lof(ctx_, table, options) : of_ranks();
      RanksAnswer answer;
      for (std::int64_t row = begin; row < end; ++row) {
        const std::array<double, 1> score = {found.scores[static_cast<std::size_t>(row - begin)]};
        answer.add(row, {}, score);
      }
      answer.take(found.plan);
      return answer;
    });
  }
  /// `knn`, and the same by one shard that is the whole table, in turns.
  void parts() {
    const BenchData data{.rows = scaled(200'000), .queries = scaled(10'000)};
    const std::vector<float> rows = table_of(data);
    const std::vector<float> asked = queries_of(data);
    const TableView table(rows.data(), data.rows, data.cols);
    const TableView views(asked.data(), data.queries, data.cols);
    const KnnOptions options{.k = 10};
    RanksAnswer whole;
    RanksAnswer merged;
    Timings of_whole;
    Timings of_parts;
    for (int i = 0; i < options_.warmup + options_.repeat; ++i) {
      const Timings one = measure(ctx_, {0, 1}, [&] { whole = answer_of(knn(ctx_, table, views, options)); });
      const Timings two = measure(ctx_, {0, 1}, [&] {
        const std::vector<NeighborPart> one_part = {knn_part(ctx_, table, views, options, {})};
        merged = answer_of(merge(ctx_, one_part));
      });
      if (i < options_.warmup) continue;
      of_whole.seconds.push_back(one.seconds[0]);
      of_parts.seconds.push_back(two.seconds[0]);
    }
    Json json = result(fmt::format("{} x {}, {} queries, k 10", data.rows, data.cols, data.queries), of_whole, whole);
    json["seconds_by_parts"] = of_parts.seconds;
    json["bits_by_parts"] = fmt::format("{:016x}", merged.bits);
    print(json);
  }
  static RanksAnswer answer_of(const NeighborGraph& graph) {
    RanksAnswer answer;
    answer.take(graph, 0);
    return answer;
  }

  void time(const std::string& shape, const std::function<RanksAnswer()>& work) {
    RanksAnswer answer;
    Timings timings;
    for (int i = 0; i < options_.warmup + options_.repeat; ++i) {
      if (i >= options_.warmup) wait_for_request();
      ranks_.barrier();
      const auto start = std::chrono::steady_clock::now();
      answer = work();
      ranks_.barrier();
      if (i < options_.warmup) continue;
      timings.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      if (options_.on_request && ranks_.rank() == 0) std::cout << timings.seconds.back() << std::endl;
    }
    std::array<std::int64_t, 1> bits = {answer.bits};
    ranks_.all_reduce_sum(bits);
    answer.bits = bits[0];
    print(result(shape, timings, answer));
  }
  /// The other ranks wait at the barrier.
  void wait_for_request() const {
    if (!options_.on_request || ranks_.rank() != 0) return;
    std::string line;
    if (!std::getline(std::cin, line)) throw Error(ErrorCode::invalid_argument, "--on-request: standard input ended");
  }
  [[nodiscard]] Json result(const std::string& shape, const Timings& timings, const RanksAnswer& answer) const {
    return {{"job", options_.job},        {"shape", shape},
            {"ranks", ranks_.size()},     {"threads", ctx_.threads()},
            {"seconds", timings.seconds}, {"bits", fmt::format("{:016x}", answer.bits)},
            {"method", answer.method},    {"reason", answer.reason}};
  }
  void print(const Json& json) const {
    if (ranks_.rank() == 0) print_json(json);
  }

  const RanksOptions& options_;
  const Context ctx_;
  Communicator& ranks_;
};

}  // namespace

Command add_bench_ranks(const Parser& root) {
  auto options = std::make_shared<RanksOptions>();
  const Parser app = root.add_subcommand("ranks", "Time a job of one process, or of the ranks that mpirun starts");
  app.add_choice("--job", options->job, {"knn-queries", "knn-within", "kmeans", "lof", "parts"},
                 "What is timed; `parts`: knn, and the same by one shard, in turns")
      .capture_default_str();
  app.add_option("--scale", options->scale, "Times the rows and queries of the job")
      .type_name("X")
      .capture_default_str();
  app.add_option("--repeat", options->repeat, "Timed runs").type_name("N").between(1, 1000).capture_default_str();
  app.add_option("--warmup", options->warmup, "Runs before them").type_name("N").between(0, 1000).capture_default_str();
  app.add_flag(
      "--on-request", options->on_request,
      "Wait for a line of standard input before each timed run, and print its seconds after it; not of `parts`");
  add_common_options(app, options->common);
  add_rank_options(app, options->common);
  return {
      app,
      [options] { run_on_ranks(options->common, [&](const RankRuntime& own) { RanksBench(*options, own).run(); }); },
      &options->common.json};
}

}  // namespace vicinal::cli
