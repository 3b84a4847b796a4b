// `vicinal-bench devices`: the same jobs on 1, 2 and 4 CUDA devices in turns, in one process. Answers are compared with
// those of the first number of devices, so that no time is of a wrong one. Efficiency is the time of one device over
// the number of devices times theirs. The transfer's share is what a call takes more than one whose rows are on the
// devices already; of k-means, what is not iterations. What the call itself says of its time is kept, too, and of
// several devices the time of each in each phase (VICINAL_DEVICE_TIMES, src/plugin/cuda/crew.hpp). Memory of results is
// given back outside of the time.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/common_options.hpp"
#include "base/interrupt.hpp"
#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/commands.hpp"
#include "command/harness.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::cli {
namespace {

struct DevicesOptions {
  CommonOptions common;
  std::vector<std::string> jobs;
  std::string list;
  std::vector<int> counts;
  std::string commit;
  std::string output;
  double scale = 1;
  int repeat = 0;  // 0: as the job has it
  int warmup = -1;
};

/// What a call gave and took.
struct DevicesAnswer {
  std::vector<std::int64_t> ids;
  std::vector<double> numbers;
  Plan plan;
  Json seconds;       ///< of its parts, as the call says
  double apart = -1;  ///< seconds beside the transfer; below 0: unknown

  [[nodiscard]] bool same(const DevicesAnswer& other) const {
    return ids == other.ids && numbers.size() == other.numbers.size() &&
           std::memcmp(numbers.data(), other.numbers.data(), numbers.size() * sizeof(double)) == 0;
  }
};

/// A job on one context; both functions return the seconds of the call. `again` makes an index and returns a function
/// that asks it, so that rows are on the devices already; null where that is not possible.
struct DevicesJob {
  std::string name;
  std::string shape;
  std::function<double(const Context& ctx, DevicesAnswer& answer)> run;
  std::function<std::function<double()>(const Context& ctx)> again;
  std::function<void(const Context& ctx)> warm;  ///< a small job in the place of those before the timed ones
  int repeat = 3;
};

/// Normal enough: each value is a sum of four uniform ones, from one random word. Not cleared before: one thread would
/// take longer for that than all of them for the values.
std::unique_ptr<const float[]> made_rows(const Context& ctx, std::int64_t n, std::int64_t d, std::uint64_t seed) {
  constexpr std::int64_t kBlock = 4096;
  std::unique_ptr<float[]> rows(new float[static_cast<std::size_t>(n * d)]);
  std::atomic<std::int64_t> next = 0;
  const auto fill = [&] {
    for (std::int64_t block = next++; block * kBlock < n; block = next++) {
      std::uint64_t state =
          (seed + 1) * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(block) * 0xD1B54A32D192ED03ULL;
      const std::int64_t end = std::min(n, (block + 1) * kBlock) * d;
      for (std::int64_t i = block * kBlock * d; i < end; ++i) {
        state += 0x9E3779B97F4A7C15ULL;
        std::uint64_t x = (state ^ state >> 30) * 0xBF58476D1CE4E5B9ULL;
        x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
        x ^= x >> 31;
        const auto sum = static_cast<double>((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48));
        rows[static_cast<std::size_t>(i)] = static_cast<float>((sum - 131070) / 37837);
      }
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ctx.threads()));
  for (int i = 0; i < ctx.threads(); ++i) threads.emplace_back(fill);
  for (std::thread& thread : threads) thread.join();
  return rows;
}

/// Seconds of result = call(); its destruction is not among them.
template <class Call, class Result>
double seconds_of(const Call& call, Result& result) {
  result = {};
  const auto start = std::chrono::steady_clock::now();
  result = call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Where the devices' phases are written while it lives, and their sums by the names of phases.
class PhaseTimes {
 public:
  PhaseTimes() : path_(std::filesystem::temp_directory_path() / fmt::format("vicinal-devices-{}", getpid())) {
    static_cast<void>(setenv("VICINAL_DEVICE_TIMES", path_.c_str(), 1));
    clear();
  }
  ~PhaseTimes() {
    clear();
    static_cast<void>(unsetenv("VICINAL_DEVICE_TIMES"));
  }
  PhaseTimes(const PhaseTimes&) = delete;
  PhaseTimes& operator=(const PhaseTimes&) = delete;

  void clear() const { static_cast<void>(std::remove(path_.c_str())); }
  /// {name: {"runs", "host": seconds since the phase before, "devices": [seconds of each]}}. What was before the first
  /// phase is another call's.
  [[nodiscard]] Json sums() const {
    Json sums = Json::object();
    std::ifstream file(path_);
    bool is_first = true;
    for (std::string line; std::getline(file, line); is_first = false) {
      const Json phase = Json::parse(line);
      Json& to = sums[phase.at("phase").get<std::string>()];
      if (to.is_null()) to = {{"runs", 0}, {"host", 0.0}, {"devices", Json::array()}};
      to["runs"] = to["runs"].get<int>() + 1;
      to["host"] = to["host"].get<double>() + (is_first ? 0 : phase.at("host").get<double>());
      const Json& each = phase.at("devices");
      for (std::size_t i = 0; i < each.size(); ++i) {
        if (i == to["devices"].size()) to["devices"].push_back(0.0);
        to["devices"][i] = to["devices"][i].get<double>() + each[i].get<double>();
      }
    }
    return sums;
  }

 private:
  std::filesystem::path path_;
};

class DevicesBench {
 public:
  explicit DevicesBench(const DevicesOptions& options) : options_(options), host_(Context::cpu()) {}

  void run() {
    for (const auto& [name, work] : std::map<std::string, std::function<void()>>{
             {"knn-within", [this] { within(); }},
             {"knn-queries", [this] { queries(); }},
             {"kmeans", [this] { clusters(); }},
             {"lof", [this] { outliers(); }},
         }) {
      if (options_.jobs.empty() || std::find(options_.jobs.begin(), options_.jobs.end(), name) != options_.jobs.end()) {
        work();
      }
    }
    if (options_.common.json) {
      print_json(result());
    } else {
      print_text(format_table(printed_));
      if (printed_phases_.size() > 1) print_text(format_table(printed_phases_));
    }
    if (different_ > 0) throw Error(ErrorCode::internal, fmt::format("{} results differ", different_));
  }

 private:
  [[nodiscard]] std::int64_t scaled(std::int64_t rows) const {
    return std::max<std::int64_t>(200, std::llround(static_cast<double>(rows) * options_.scale));
  }

  void within() {
    const std::int64_t n = scaled(4'000'000);
    const std::unique_ptr<const float[]> rows = made_rows(host_, n, 41, 1);
    const TableView table(rows.get(), n, 41);
    const KnnOptions options{.k = 32};
    measure_job({"knn-within",
                 fmt::format("{} x 41, k 32", n),
                 [&](const Context& ctx, DevicesAnswer& answer) {
                   return searched([&] { return knn(ctx, table, options); }, answer);
                 },
                 [&](const Context& ctx) {
                   return asked_again(ctx, table,
                                      [&](const Context& own, const Index& index) { return knn(own, index, options); });
                 },
                 {}});
  }
  void queries() {
    const std::int64_t n = scaled(10'000'000);
    const std::int64_t m = scaled(100'000);
    const std::unique_ptr<const float[]> rows = made_rows(host_, n, 128, 2);
    const std::unique_ptr<const float[]> asked = made_rows(host_, m, 128, 3);
    const TableView table(rows.get(), n, 128);
    const TableView views(asked.get(), m, 128);
    const KnnOptions options{.k = 32};
    measure_job({"knn-queries",
                 fmt::format("{} x 128, {} queries, k 32", n, m),
                 [&](const Context& ctx, DevicesAnswer& answer) {
                   return searched([&] { return knn(ctx, table, views, options); }, answer);
                 },
                 [&](const Context& ctx) {
                   return asked_again(ctx, table, [&](const Context& own, const Index& index) {
                     return knn(own, index, views, options);
                   });
                 },
                 {}});
  }
  void clusters() {
    const std::int64_t n = scaled(32'000'000);
    const std::unique_ptr<const float[]> rows = made_rows(host_, n, 128, 4);
    const TableView table(rows.get(), n, 128);
    KMeansOptions options;
    options.clusters = std::min<std::int64_t>(1024, n / 8);
    options.init = KMeansInit::first_k;
    options.tolerance = 0;
    options.max_iterations = 20;
    measure_job({"kmeans",
                 fmt::format("{} x 128, {} clusters, 20 iterations", n, options.clusters),
                 [&](const Context& ctx, DevicesAnswer& answer) {
                   KMeans found;
                   const double seconds = seconds_of([&] { return kmeans(ctx, table, options); }, found);
                   answer.ids.assign(found.labels.begin(), found.labels.end());
                   answer.numbers = std::move(found.centres);
                   answer.numbers.push_back(found.inertia);
                   answer.plan = found.plan;
                   answer.apart = found.stats.iterate_seconds;
                   answer.seconds = {{"iterate", found.stats.iterate_seconds},
                                     {"beside", seconds - found.stats.iterate_seconds}};
                   return seconds;
                 },
                 {},
                 {}});
  }
  void outliers() {
    const std::int64_t n = scaled(10'000'000);
    const std::unique_ptr<const float[]> rows = made_rows(host_, n, 16, 5);
    const TableView table(rows.get(), n, 16);
    const LofOptions options{.k = 20};
    const auto score = [&](const Context& own, const Index& index) { return lof(own, index, options); };
    measure_job({"lof", fmt::format("{} x 16, k 20", n),
                 [&](const Context& ctx, DevicesAnswer& answer) {
                   Lof found;
                   const double seconds = seconds_of([&] { return lof(ctx, table, options); }, found);
                   answer.numbers = std::move(found.scores);
                   answer.plan = found.plan;
                   answer.seconds = parts_of(found.stats, seconds - found.score_seconds);
                   answer.seconds["score"] = found.score_seconds;
                   return seconds;
                 },
                 [&](const Context& ctx) { return asked_again(ctx, table, score); },
                 // Where a call takes so long, kernels are loaded by a small one.
                 [&](const Context& ctx) { lof(ctx, table.slice(0, std::max<std::int64_t>(200, n / 100)), options); },
                 1});
  }

  static Json parts_of(const SearchStats& stats, double seconds) {
    return {{"prepare", stats.prepare_seconds},
            {"search", stats.search_seconds},
            {"beside", seconds - stats.prepare_seconds - stats.search_seconds}};
  }
  template <class Call>
  static double searched(const Call& call, DevicesAnswer& answer) {
    NeighborGraph graph;
    const double seconds = seconds_of(call, graph);
    answer = {std::move(graph.ids), std::move(graph.distances), std::move(graph.plan), parts_of(graph.stats, seconds)};
    return seconds;
  }
  /// The first call, which is not timed, takes the rows to where they stay.
  template <class Ask>
  static std::function<double()> asked_again(const Context& ctx, const TableView& table, const Ask& ask) {
    const auto index = std::make_shared<const Index>(ctx, table);
    ask(ctx, *index);
    return [&ctx, index, ask] {
      decltype(ask(ctx, *index)) result;
      return seconds_of([&] { return ask(ctx, *index); }, result);
    };
  }

  void measure_job(const DevicesJob& job) {
    std::unique_ptr<DevicesAnswer> first;
    double of_one = 0;
    for (const int count : options_.counts) {
      std::vector<int> devices(static_cast<std::size_t>(count));
      std::iota(devices.begin(), devices.end(), 0);
      CudaOptions cuda;
      cuda.devices = devices;
      cuda.threads = options_.common.threads;
      cuda.cancel = interrupt_token();
      const Context ctx = Context::cuda(cuda);
      auto answer = std::make_unique<DevicesAnswer>();
      const int repeat = options_.repeat > 0 ? options_.repeat : job.repeat;
      if (options_.warmup < 0 && job.warm) job.warm(ctx);
      const int warmup = options_.warmup >= 0 ? options_.warmup : job.warm ? 0 : 1;
      Timings seconds;
      double there = -1;
      for (int i = 0; i < warmup + repeat; ++i) {
        ctx.check_cancelled();
        *answer = {};
        times_.clear();
        const double taken = job.run(ctx, *answer);
        if (i < warmup) continue;
        seconds.seconds.push_back(taken);
        if (answer->apart >= 0) there = i == warmup ? answer->apart : std::min(there, answer->apart);
      }
      const Json phases = times_.sums();
      if (job.again) {
        const std::function<double()> ask = job.again(ctx);
        for (int i = 0; i < repeat; ++i) there = i == 0 ? ask() : std::min(there, ask());
      }
      if (count == options_.counts.front()) of_one = seconds.least() * count;
      const bool same = first == nullptr || answer->same(*first);
      different_ += same ? 0 : 1;
      const double efficiency = of_one / (seconds.least() * count);
      const double share = std::max(0.0, 1 - there / seconds.least());
      lines_.push_back({{"job", job.name},
                        {"shape", job.shape},
                        {"devices", count},
                        {"device", ctx.device()},
                        {"threads", ctx.threads()},
                        {"seconds", to_json(seconds)},
                        {"seconds_of_last", answer->seconds},
                        {"phases_of_last", phases},
                        {"seconds_without_transfer", there},
                        {"transfer_share", share},
                        {"efficiency", efficiency},
                        {"same_bits", same},
                        {"method", name_of(answer->plan.method)},
                        {"reason", answer->plan.reason},
                        {"device_memory", answer->plan.device_memory},
                        {"memory", answer->plan.memory}});
      printed_.push_back({job.name, job.shape, fmt::format("{}", count), fmt::format("{:.3f}", seconds.least()),
                          fmt::format("{:.1f} %", 100 * efficiency), fmt::format("{:.1f} %", 100 * share),
                          same ? "yes" : "NO", std::string(name_of(answer->plan.method))});
      for (const auto& [phase, sums] : phases.items()) {
        std::vector<double> each;
        for (const Json& own : sums["devices"]) each.push_back(own.get<double>());
        printed_phases_.push_back(
            {job.name, fmt::format("{}", count), phase, fmt::format("{}", sums["runs"].get<int>()),
             fmt::format("{:.3f}", sums["host"].get<double>()), fmt::format("{:.3f}", fmt::join(each, " "))});
      }
      if (first == nullptr) first = std::move(answer);
      // After every line, so that a run that is ended leaves what it has.
      if (!options_.output.empty()) write_text(options_.output, result().dump(2) + "\n");
    }
  }

  [[nodiscard]] Json result() const {
    Json json = head_;
    json["different_answers"] = different_;
    json["scale"] = options_.scale;
    json["lines"] = lines_;
    return json;
  }

  const DevicesOptions& options_;
  const PhaseTimes times_;
  const Context host_;
  const Json head_ = head_of_results("bench devices", options_.commit);
  std::vector<std::vector<std::string>> printed_ = {
      {"job", "shape", "devices", "least s", "efficiency", "transfer", "same bits", "method"}};
  std::vector<std::vector<std::string>> printed_phases_ = {
      {"job", "devices", "phase of the last run", "runs", "host s before", "s of each device"}};
  std::vector<Json> lines_;
  int different_ = 0;
};

}  // namespace

Command add_bench_devices(const Parser& root) {
  auto options = std::make_shared<DevicesOptions>();
  const Parser app = root.add_subcommand("devices", "Time the same jobs on one CUDA device and on several");
  app.add_option("--job", options->jobs, "knn-within, knn-queries, kmeans or lof; nothing: all")
      .type_name("NAME")
      .repeatable();
  app.add_option("--devices", options->list, "How many devices to use, the first one to compare with [1,2,4]")
      .type_name("N,N...");
  app.add_option("--scale", options->scale, "Times the rows and queries of each job")
      .type_name("X")
      .capture_default_str();
  app.add_option("--repeat", options->repeat, "Timed runs [3; of lof 1]").type_name("N").between(1, 1000);
  app.add_option("--warmup", options->warmup, "Runs before them [1; of lof one of a hundredth of the rows]")
      .type_name("N")
      .between(0, 1000);
  app.add_option("--commit", options->commit, "Commit to note in the result").type_name("ID");
  app.add_option("-o,--output", options->output, "Where to write the result, too (.json)").type_name("FILE");
  add_common_options(app, options->common);
  return {app,
          [options] {
            check_output("-o", options->output, {".json"});
            const CudaStatus status = cuda_status();
            if (!status.missing.empty()) throw Error(ErrorCode::device_unavailable, "devices: " + status.missing);
            std::istringstream list(options->list.empty() ? "1,2,4" : options->list);
            for (std::string word; std::getline(list, word, ',');) {
              const int count = std::atoi(word.c_str());
              if (count < 1)
                throw Error(ErrorCode::invalid_argument, "--devices: '" + word + "' is no number of devices");
              if (count <= std::ssize(status.devices)) options->counts.push_back(count);
            }
            if (options->counts.empty()) throw Error(ErrorCode::device_unavailable, "--devices: there are not so many");
            DevicesBench(*options).run();
          },
          &options->common.json};
}

}  // namespace vicinal::cli
