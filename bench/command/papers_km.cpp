// See papers_km.hpp. Times are of whole calls, divided by the iterations that they took.
#include "command/papers_km.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/input.hpp"
#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/data.hpp"
#include "command/harness.hpp"
#include "command/serial_lloyd.hpp"
#include "kmeans/classical.hpp"
#include "vicinal/io.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::cli {
namespace {

constexpr double kShare = 0.001;
constexpr std::int64_t kMaxIterations = 501;

struct ClassicalSet {
  const char* name;
  std::vector<const char*> files;
  std::int64_t rows;
  std::int64_t cols;
};

const std::vector<ClassicalSet>& classical_sets() {
  static const std::vector<ClassicalSet> kShapes = {
      {"color100", {"color100.bin", "color100.txt"}, 100, 9},
      {"edge100", {"edge100.bin", "edge100.txt"}, 100, 18},
      {"texture100", {"texture100.bin", "texture100.txt"}, 100, 20},
      {"color17695", {"color17695.bin", "color17695.bin.xz"}, 17695, 9},
      {"edge17695", {"edge17695.bin", "edge17695.bin.xz"}, 17695, 18},
      {"texture17695", {"texture17695.bin", "texture17695.bin.xz"}, 17695, 20},
  };
  return kShapes;
}

struct Objects {
  std::string source;
  std::vector<float> values;
  std::int64_t cols = 0;

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(values.size()) / cols; }
  [[nodiscard]] TableView view() const { return {values.data(), rows(), cols}; }
};

Objects read_or_made(const Context& ctx, const PapersOptions& options, const ClassicalSet& shape) {
  Objects objects;
  for (const char* file : shape.files) {
    const std::filesystem::path path = std::filesystem::path(options.data_dir) / file;
    if (options.data_dir.empty() || !std::filesystem::exists(path)) continue;
    const Table table = read_table(ctx, path);
    if (table.format != FileFormat::kmeans_text && table.format != FileFormat::kmeans_binary) {
      throw Error(ErrorCode::bad_data, fmt::format("{} is no file of the classical tools", path.string()));
    }
    objects.source = shape.name;
    objects.cols = table.view.cols();
    for (std::int64_t i = 0; i < std::min(table.view.rows(), options.most_rows); ++i) {
      for (std::int64_t j = 0; j < objects.cols; ++j) {
        objects.values.push_back(static_cast<float>(value_at(table.view, i, j)));
      }
    }
    return objects;
  }
  BenchData data;
  data.rows = std::min(shape.rows, options.most_rows);
  data.cols = shape.cols;
  const std::vector<double> made = make_bench_table(ctx, data);
  objects.source = fmt::format("synthetic {}", shape.name);
  objects.cols = shape.cols;
  objects.values.assign(made.begin(), made.end());
  return objects;
}

KMeansOptions classical(std::int64_t k) {
  KMeansOptions options;
  options.clusters = k;
  options.init = KMeansInit::first_k;
  options.rule = KMeansRule::classical;
  options.empty = EmptyClusters::keep;
  options.changed_share = kShare;
  options.max_iterations = kMaxIterations;
  return options;
}

Timings per_iteration(Timings timings, std::int64_t iterations) {
  for (double& seconds : timings.seconds) seconds /= static_cast<double>(iterations);
  return timings;
}

class IterationBench {
 public:
  explicit IterationBench(const PapersOptions& options)
      : options_(options), runtime_(make_runtime(options.common)), contexts_(cpu_and_device(options.common, runtime_)) {
    std::vector<std::string> head = {"data", "rows", "cols", "k", "iterations", "serial ms"};
    for (const Context& ctx : contexts_) head.push_back(fmt::format("{} ms", ctx.device()));
    head.emplace_back("other labels");
    printed_.push_back(head);
  }

  PapersPart run() {
    for (const ClassicalSet& shape : classical_sets()) {
      const Objects objects = read_or_made(runtime_.ctx, options_, shape);
      for (std::int64_t k = 2; k <= std::min<std::int64_t>(128, objects.rows()); k *= 2) line(objects, k);
    }
    runtime_.progress->clear();
    PapersPart part = result();
    part.text = fmt::format("an iteration, milliseconds\n{}\n", format_table(printed_));
    return part;
  }

 private:
  void line(const Objects& objects, std::int64_t k) {
    SerialLloyd serial;
    const Timings of_serial = measure(contexts_[0], options_.runs(), [&] {
      serial = serial_lloyd(objects.values, objects.cols, k, kShare, kMaxIterations);
    });
    add(objects, k, "serial", serial.iterations, of_serial, {}, {});
    std::vector<std::string> text = {objects.source, fmt::format("{}", objects.rows()), fmt::format("{}", objects.cols),
                                     fmt::format("{}", k)};
    std::vector<std::string> times = {milliseconds(of_serial, serial.iterations)};
    std::optional<KMeans> first;
    std::int64_t others = 0;
    for (const Context& ctx : contexts_) {
      KMeans found;
      const Timings timings = measure(ctx, options_.runs(), [&] { found = kmeans(ctx, objects.view(), classical(k)); });
      if (options_.spoil) found.labels[0] = (found.labels[0] + 1) % static_cast<std::int32_t>(k);
      Verdict verdict;
      if (options_.verify) verdict = check_classical(objects.view(), classical(k), found);
      verdict_ += verdict;
      others = 0;
      for (std::size_t i = 0; i < found.labels.size(); ++i) others += found.labels[i] != serial.labels[i] ? 1 : 0;
      add(objects, k, ctx.device(), found.iterations, timings, others, verdict);
      times.push_back(milliseconds(timings, found.iterations));
      if (first && (first->labels != found.labels || first->centres != found.centres)) ++different_;
      if (!first) first = std::move(found);
    }
    text.push_back(fmt::format("{}", first->iterations));
    text.insert(text.end(), times.begin(), times.end());
    text.push_back(fmt::format("{}", others));
    printed_.push_back(text);
    // After every line, so that a run that is ended leaves what it has.
    if (!options_.output.empty()) write_text(options_.output, result().json.dump(2) + "\n");
  }

  static std::string milliseconds(const Timings& timings, std::int64_t iterations) {
    return fmt::format("{:.4f}", 1e3 * timings.median() / static_cast<double>(iterations));
  }

  void add(const Objects& objects, std::int64_t k, const std::string& method, std::int64_t iterations,
           const Timings& timings, std::optional<std::int64_t> other_labels, const Verdict& verdict) {
    lines_.push_back({{"data", objects.source},
                      {"rows", objects.rows()},
                      {"dims", objects.cols},
                      {"clusters", k},
                      {"method", method},
                      {"iterations", iterations},
                      {"seconds_an_iteration", to_json(per_iteration(timings, iterations))},
                      {"labels_unlike_serial", other_labels ? Json(*other_labels) : Json(nullptr)},
                      {"checked", verdict.checked},
                      {"wrong", verdict.wrong}});
  }

  [[nodiscard]] PapersPart result() const {
    Json methods = {"serial"};
    for (const Context& ctx : contexts_) methods.push_back(ctx.device());
    Json json = head_;
    json["device"] = runtime_.ctx.device();
    json["threads"] = runtime_.ctx.threads();
    PapersPart part{std::move(json), {}, different_, verdict_};
    note_answers(part);
    part.json["tables"] = Json::array();
    part.json["tables"].push_back(
        {{"title", "an iteration of k-means from the first k rows"}, {"methods", methods}, {"lines", lines_}});
    return part;
  }

  const PapersOptions& options_;
  const Runtime runtime_;
  const std::vector<Context> contexts_;
  const Json head_ = head_of_results("bench papers km", options_.commit);
  std::vector<std::vector<std::string>> printed_;
  Json lines_ = Json::array();
  std::int64_t different_ = 0;
  Verdict verdict_;
};

}  // namespace

bool has_classical_files(const std::filesystem::path& folder) {
  const auto is_there = [&](const char* file) { return std::filesystem::exists(folder / file); };
  const auto& sets = classical_sets();
  return !folder.empty() && std::any_of(sets.begin(), sets.end(), [&](const ClassicalSet& shape) {
    return std::any_of(shape.files.begin(), shape.files.end(), is_there);
  });
}

PapersPart measure_papers_km(const PapersOptions& options) {
  return IterationBench(options).run();
}

}  // namespace vicinal::cli
