// See growth.hpp. Sizes of a sweep are measured one after another, and each has data of its own; of its calls the first
// warms up, and shows how much memory a call takes.
#include "command/growth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "base/common_options.hpp"
#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/commands.hpp"
#include "command/growth_page.hpp"
#include "command/peak_memory.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

constexpr int kMostCalls = 50;           // of a short call
constexpr double kShortCalls = 0.05;     // seconds, that calls are repeated for
constexpr double kLongCall = 1;          // seconds: it is timed once
constexpr std::size_t kFewestSizes = 3;  // of a sweep: they fit a power and its error
constexpr std::int64_t kQuickLimit = 5;

struct BenchGrowth {
  CommonOptions common;
  std::vector<std::string> names;
  std::string output = "growth.json";
  std::string html = "growth.html";
  std::string commit;
  std::int64_t time_limit = 60;
  int repeat = 3;
  bool quick = false;
  bool spoil = false;
  bool lists = false;

  void run() const;
  [[nodiscard]] std::vector<const GrowthSystem*> chosen() const;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Timed calls of a size whose first call took so long.
int calls_of(double first, int repeat) {
  if (first >= kLongCall) return 1;
  return std::clamp(static_cast<int>(std::ceil(kShortCalls / std::max(first, 1e-6))), repeat,
                    std::max(kMostCalls, repeat));
}

Json fit_json(const std::vector<double>& sizes, const std::vector<double>& values) {
  const auto fit = values.empty() ? std::nullopt : fit_growth(sizes, values);
  if (!fit) return nullptr;
  return {{"exponent", fit->exponent},
          {"error", fit->error},
          {"low", fit->exponent - fit->margin},
          {"high", fit->exponent + fit->margin},
          {"margin", fit->margin}};
}

Json json_of(const GrowthPoint& point) {
  Json json = {{"size", point.size},
               {"least_seconds", point.least()},
               {"median_seconds", point.median()},
               {"seconds", point.seconds},
               {"peak_bytes", point.peak_bytes ? Json(*point.peak_bytes) : Json(nullptr)},
               {"how", point.how},
               {"counters", Json::object()},
               {"parts", Json::object()}};
  for (const auto& [name, count] : point.counts) json["counters"][name] = count;
  for (const auto& [name, seconds] : point.parts) json["parts"][name] = seconds;
  return json;
}

Json json_of(const GrowthSystem& system, const MeasuredSweep& measured) {
  const std::vector<double> sizes = sizes_of(measured);
  Json json = {{"meaning", system.meaning.at(measured.sweep->axis)},
               {"fixed", fixed_text(system, *measured.sweep)},
               {"sentence", growth_sentence(measured)},
               {"stopped", measured.stopped.empty() ? Json(nullptr) : Json(measured.stopped)},
               {"time", fit_json(sizes, least_seconds(measured))},
               {"memory", fit_json(sizes, peak_bytes(measured))},
               {"counters", Json::object()},
               {"step_exponents", step_exponents(sizes, least_seconds(measured))},
               {"bends", Json::array()},
               {"points", Json::array()}};
  if (!measured.points.empty()) {
    for (const auto& [name, count] : measured.points.front().counts) {
      json["counters"][name] = fit_json(sizes, counts_of(measured, name));
    }
  }
  for (const GrowthBend& bend : find_bends(measured.points, letter_of(measured.sweep->axis))) {
    json["bends"].push_back({{"from", bend.from},
                             {"to", bend.to},
                             {"exponent", bend.exponent},
                             {"counter", bend.counter.empty() ? Json(nullptr) : Json(bend.counter)},
                             {"counter_exponent", bend.counter.empty() ? Json(nullptr) : Json(bend.counter_exponent)},
                             {"reason", bend.reason}});
  }
  for (const GrowthPoint& point : measured.points) json["points"].push_back(json_of(point));
  return json;
}

Json json_of(const MeasuredSystem& measured) {
  Json json = {{"title", measured.system->title},
               {"checked_answers", measured.verdict.checked},
               {"wrong_answers", measured.verdict.wrong},
               {"sweeps", Json::object()}};
  for (const MeasuredSweep& sweep : measured.sweeps) {
    json["sweeps"][letter_of(sweep.sweep->axis)] = json_of(*measured.system, sweep);
  }
  return json;
}

class Growth {
 public:
  Growth(const BenchGrowth& options, const Context& ctx) : options_(options), ctx_(ctx) {
    head_ = head_of_results("bench growth", options.commit);
    head_["threads"] = ctx.threads();
    head_["quick"] = options.quick;
    head_["repeat"] = options.repeat;
    head_["time_limit"] = limit();
  }

  void run() {
    for (const GrowthSystem* system : options_.chosen()) {
      measured_.push_back({system, {}, {}});
      measure(measured_.back());
      // After every system, so that a run that is ended leaves what it has.
      write_text(options_.output, result().dump(2) + "\n");
      write_text(options_.html, growth_page(head_, measured_));
    }
    if (options_.common.json) print_json(result());
    if (verdict_.wrong > 0) {
      throw Error(ErrorCode::internal,
                  fmt::format("{} of {} checked answers are wrong", verdict_.wrong, verdict_.checked));
    }
  }

 private:
  [[nodiscard]] std::int64_t limit() const { return options_.time_limit; }

  void measure(MeasuredSystem& measured) {
    if (options_.spoil) return spoil(measured);
    double spent = 0;
    std::size_t left = measured.system->sweeps.size();
    for (const GrowthSweep& sweep : measured.system->sweeps) {
      MeasuredSweep one;
      one.sweep = &sweep;
      const double share = (static_cast<double>(limit()) - spent) / static_cast<double>(left--);
      spent += measure(measured, one, share);
      tell(measured, one);
      measured.sweeps.push_back(std::move(one));
    }
    verdict_ += measured.verdict;
  }

  /// Measures three sizes, and others until the next one would take longer than what is left of `share`. Returns what
  /// they took.
  double measure(MeasuredSystem& measured, MeasuredSweep& one, double share) {
    double spent = 0;
    double last = 0;  // seconds of all calls of the last size and their data
    double before = 0;
    const std::string letter = letter_of(one.sweep->axis);
    std::size_t count = one.sweep->along.size();
    if (options_.quick) count = std::min(count, kFewestSizes);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t size = one.sweep->along[i];
      const double predicted = i < kFewestSizes ? 0 : predict(*one.sweep, i, before, last);
      if (i >= kFewestSizes && spent + predicted > share) {
        one.stopped = fmt::format(
            "Sizes from {} = {} are left out: this one would take about {:.0f} s, and {:.0f} s of "
            "the limit are left for this sweep.",
            letter, with_commas(size), predicted, std::max(share - spent, 0.0));
        break;
      }
      ctx_.check_cancelled();
      const auto start = std::chrono::steady_clock::now();
      const GrowthJob job = measured.system->make(ctx_, one.sweep->sizes.with(one.sweep->axis, size));
      one.points.push_back(measure_point(size, job));
      before = last;
      last = seconds_since(start);
      spent += last;
      if (i == 0 && &one.sweep->along == &measured.system->sweeps.front().along) measured.verdict = job.check();
    }
    return spent;
  }

  /// By the growth of the last step, but at least by that of the size.
  static double predict(const GrowthSweep& sweep, std::size_t i, double before, double last) {
    const auto ratio = [&](std::size_t to) {
      return std::log(static_cast<double>(sweep.along[to]) / static_cast<double>(sweep.along[to - 1]));
    };
    const double exponent = std::max(std::log(last / before) / ratio(i - 1), 1.0);
    return last * std::exp(exponent * ratio(i));
  }

  [[nodiscard]] GrowthPoint measure_point(std::int64_t size, const GrowthJob& job) const {
    GrowthPoint point;
    point.size = size;
    const auto time = [&] {
      const auto start = std::chrono::steady_clock::now();
      GrowthCall call = job.call();
      const double seconds = seconds_since(start);
      point.counts = std::move(call.counts);
      point.parts = std::move(call.parts);
      point.how = std::move(call.how);
      return std::pair(seconds, std::max(call.seconds.value_or(seconds), 1e-9));
    };
    const PeakMemory memory;
    const double first = time().first;
    point.peak_bytes = memory.bytes();
    for (int i = calls_of(first, options_.repeat); i > 0; --i) {
      ctx_.check_cancelled();
      point.seconds.push_back(time().second);
    }
    return point;
  }

  /// Checks an answer that is changed, of the size whose answer `measure` checks. Measures nothing.
  void spoil(MeasuredSystem& measured) {
    const GrowthSweep& sweep = measured.system->sweeps.front();
    const GrowthJob job = measured.system->make(ctx_, sweep.sizes.with(sweep.axis, sweep.along.front()));
    job.call();
    job.spoil();
    measured.verdict = job.check();
    verdict_ += measured.verdict;
  }

  void tell(const MeasuredSystem& measured, const MeasuredSweep& one) const {
    if (options_.common.quiet || options_.common.json) return;
    std::string text = fmt::format("{:22} {}\n", measured.system->name, growth_sentence(one));
    for (const GrowthBend& bend : find_bends(one.points, letter_of(one.sweep->axis))) {
      text += fmt::format("{:22} {}\n", "", bend.reason);
    }
    if (!one.stopped.empty()) text += fmt::format("{:22} {}\n", "", one.stopped);
    print_text(text);
  }

  [[nodiscard]] Json result() const {
    Json json = head_;
    json["checked_answers"] = verdict_.checked;
    json["wrong_answers"] = verdict_.wrong;
    json["systems"] = Json::object();
    for (const MeasuredSystem& measured : measured_) json["systems"][measured.system->name] = json_of(measured);
    return json;
  }

  const BenchGrowth& options_;
  const Context& ctx_;
  Json head_;
  std::vector<MeasuredSystem> measured_;
  Verdict verdict_;
};

std::vector<const GrowthSystem*> BenchGrowth::chosen() const {
  std::vector<const GrowthSystem*> found;
  const std::vector<GrowthSystem>& all = growth_systems();
  for (const std::string& name : names) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const GrowthSystem& one) { return one.name == name; });
    if (at == all.end()) {
      std::string known;
      for (const GrowthSystem& one : all) known += (known.empty() ? "" : ", ") + one.name;
      throw Error(ErrorCode::invalid_argument, fmt::format("SYSTEM: '{}' is none of {}", name, known));
    }
    if (std::find(found.begin(), found.end(), &*at) == found.end()) found.push_back(&*at);
  }
  if (found.empty()) {
    found.reserve(all.size());
    for (const GrowthSystem& one : all) found.push_back(&one);
  }
  return found;
}

std::string list_text(const std::vector<const GrowthSystem*>& systems) {
  std::string text;
  for (const GrowthSystem* system : systems) {
    text += fmt::format("{:22} {}\n", system->name, system->title);
    for (const GrowthSweep& sweep : system->sweeps) {
      const std::string fixed = fixed_text(*system, sweep);
      text += fmt::format("{:22}   {} from {} to {}{}\n", "", axis_text(*system, sweep.axis),
                          with_commas(sweep.along.front()), with_commas(sweep.along.back()),
                          fixed.empty() ? "" : "; " + fixed);
    }
  }
  return text;
}

Json list_json(const std::vector<const GrowthSystem*>& systems) {
  Json json = {{"command", "bench growth"}, {"systems", Json::object()}};
  for (const GrowthSystem* system : systems) {
    Json& one = json["systems"][system->name] = {{"title", system->title}, {"sweeps", Json::object()}};
    for (const GrowthSweep& sweep : system->sweeps) {
      one["sweeps"][letter_of(sweep.axis)] = {
          {"meaning", system->meaning.at(sweep.axis)}, {"fixed", fixed_text(*system, sweep)}, {"sizes", sweep.along}};
    }
  }
  return json;
}

void BenchGrowth::run() const {
  const std::vector<const GrowthSystem*> systems = chosen();
  if (lists) {
    if (common.json) return print_json(list_json(systems));
    return print_text(list_text(systems));
  }
  check_output("-o", output, {".json"});
  check_output("--html", html, {".html"});
  const Runtime runtime = make_runtime(common, Computes::on_host);
  Growth(*this, runtime.ctx).run();
}

}  // namespace

std::string axis_text(const GrowthSystem& system, GrowthAxis axis) {
  return letter_of(axis) + " (" + system.meaning.at(axis) + ")";
}

std::string fixed_text(const GrowthSystem& system, const GrowthSweep& sweep) {
  std::string text;
  for (const auto& [axis, meaning] : system.meaning) {
    if (axis == sweep.axis) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", letter_of(axis), with_commas(sweep.sizes.of(axis)));
  }
  return text;
}

std::string growth_sentence(const MeasuredSweep& measured) {
  const std::string letter = letter_of(measured.sweep->axis);
  const auto fit = fit_growth(sizes_of(measured), least_seconds(measured));
  if (!fit) return fmt::format("time as {} grows: fewer than three sizes were measured", letter);
  return fmt::format("time grows as {0}^a (a = {1:.2f} ± {2:.2f}) from {0} = {3} to {4}", letter, fit->exponent,
                     fit->margin, with_commas(measured.points.front().size), with_commas(measured.points.back().size));
}

std::vector<double> sizes_of(const MeasuredSweep& measured) {
  std::vector<double> sizes;
  sizes.reserve(measured.points.size());
  for (const GrowthPoint& point : measured.points) sizes.push_back(static_cast<double>(point.size));
  return sizes;
}

std::vector<double> least_seconds(const MeasuredSweep& measured) {
  std::vector<double> seconds;
  seconds.reserve(measured.points.size());
  for (const GrowthPoint& point : measured.points) seconds.push_back(point.least());
  return seconds;
}

std::vector<double> peak_bytes(const MeasuredSweep& measured) {
  std::vector<double> bytes;
  bytes.reserve(measured.points.size());
  for (const GrowthPoint& point : measured.points) {
    if (!point.peak_bytes) return {};
    bytes.push_back(*point.peak_bytes);
  }
  return bytes;
}

std::vector<double> counts_of(const MeasuredSweep& measured, const std::string& counter) {
  std::vector<double> counts;
  counts.reserve(measured.points.size());
  for (const GrowthPoint& point : measured.points) {
    const auto count = point.counts.find(counter);
    if (count == point.counts.end()) return {};
    counts.push_back(count->second);
  }
  return counts;
}

Command add_bench_growth(const Parser& root) {
  auto options = std::make_shared<BenchGrowth>();
  const Parser app = root.add_subcommand("growth", "Measure how time and memory grow with n, d, k and m");
  app.add_option("SYSTEM", options->names, "What to measure [all]; --list names them");
  app.add_flag("--list", options->lists, "Print the systems and their sizes, and measure nothing");
  app.add_flag("--quick", options->quick, "The three smallest sizes of each sweep, about a minute in all");
  const Option limit =
      app.add_option("--time-limit", options->time_limit,
                     "Seconds of each system. A sweep has an equal share of what is left of them. It ends "
                     "before the size that would take longer, and says so; three sizes are always measured")
          .type_name("S")
          .capture_default_str()
          .between(1, 1'000'000);
  app.add_option("--repeat", options->repeat,
                 "Timed calls of a size, after one to warm up; short calls are timed up "
                 "to 50 times, calls of more than a second once")
      .type_name("N")
      .capture_default_str()
      .between(1, 1000);
  app.add_flag("--spoil", options->spoil,
               "Measure nothing, and change an answer of each system before it is checked, so that the run must fail");
  app.add_option("--commit", options->commit, "Commit to note in the result").type_name("ID");
  app.add_option("-o,--output", options->output, "Where to write the result (.json)")
      .type_name("FILE")
      .capture_default_str();
  app.add_option("--html", options->html, "Where to write the page (.html)").type_name("FILE").capture_default_str();
  add_common_options(app, options->common);
  app.add_examples({"vicinal-bench growth --list", "vicinal-bench growth cocluster --quick"});
  return {app,
          [options, limit] {
            if (options->quick && !limit.given()) options->time_limit = kQuickLimit;
            options->run();
          },
          &options->common.json};
}

}  // namespace vicinal::cli
