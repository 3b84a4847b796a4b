// See papers_cc.hpp. Times are of making labels from what lies where it is worked on (Cocluster::label_seconds),
// and beside them of the whole call.
#include "command/papers_cc.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/harness.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kPapersMembers = 1103;
constexpr std::int64_t kPathBreaks = 12;  // once in so many members: the longest path makes some six products

/// Made edges; numbers of 32 bits.
struct Made {
  std::string name;
  std::int64_t n_a = 0;
  std::int64_t n_b = 0;
  std::vector<std::int32_t> a;
  std::vector<std::int32_t> b;

  [[nodiscard]] BipartiteEdges edges() const { return {n_a, n_b, a, b}; }
  void add(std::int64_t i, std::int64_t j) {
    a.push_back(static_cast<std::int32_t>(i));
    b.push_back(static_cast<std::int32_t>(j));
  }
};

/// Below a bound; the generator's bits are the standard's, so that every machine makes the same graph.
std::int64_t below(std::mt19937_64& draws, std::int64_t bound) {
  return static_cast<std::int64_t>(draws() % static_cast<std::uint64_t>(bound));
}

void shuffle(std::mt19937_64& draws, std::vector<std::int32_t>& numbers) {
  for (std::int64_t i = std::ssize(numbers) - 1; i > 0; --i) {
    std::swap(numbers[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(below(draws, i + 1))]);
  }
}

/// Members of both sides in turn, each joined to the next, but for breaks.
Made papers_graph(std::int64_t members) {
  Made made{"paths", (members + 1) / 2, members / 2, {}, {}};
  std::mt19937_64 draws(1);
  for (std::int64_t e = 0; e + 1 < members; ++e) {
    if (below(draws, kPathBreaks) != 0) made.add((e + 1) / 2, e / 2);
  }
  return made;
}

/// As two maps of the same area give them, numbered along it: ten members of each side to fourteen edges, each to one
/// of the five next to it.
Made map_graph(std::int64_t edges) {
  const std::int64_t members = std::max<std::int64_t>(1, edges * 10 / 14);
  Made made{"numbered along the map", members, members, {}, {}};
  std::mt19937_64 draws(2);
  for (std::int64_t e = 0; e < edges; ++e) {
    const std::int64_t i = e * members / edges;
    made.add(i, std::clamp<std::int64_t>(i + below(draws, 5) - 2, 0, members - 1));
  }
  return made;
}

/// The same graph with members and edges in a random order.
Made shuffled(const Made& map) {
  Made made{"shuffled", map.n_a, map.n_b, map.a, map.b};
  std::mt19937_64 draws(3);
  for (auto* const ids : {&made.a, &made.b}) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(map.n_a));
    std::iota(numbers.begin(), numbers.end(), 0);
    shuffle(draws, numbers);
    for (std::int32_t& id : *ids) id = numbers[static_cast<std::size_t>(id)];
  }
  // Twice from the same draws, so that ends stay together.
  const std::mt19937_64 order = draws;
  for (auto* const ids : {&made.a, &made.b}) {
    std::mt19937_64 same = order;
    shuffle(same, *ids);
  }
  return made;
}

class CcBench {
 public:
  explicit CcBench(const PapersOptions& options)
      : options_(options),
        runtime_(make_runtime(options.common)),
        contexts_(cpu_and_device(options.common, runtime_)) {}

  PapersPart run() {
    const Made papers = papers_graph(std::min(kPapersMembers, options_.most_rows));
    for (const Context& ctx : contexts_) {
      for (const CoclusterMethod method :
           {CoclusterMethod::product_serial, CoclusterMethod::product_global, CoclusterMethod::product_tiled,
            CoclusterMethod::closure, CoclusterMethod::components}) {
        if (method == CoclusterMethod::product_serial && ctx.device() != "cpu") continue;  // the host's in any case
        line(ctx, papers, method);
      }
    }
    first_ = {};
    Made map = map_graph(options_.edges);
    for (const Context& ctx : contexts_) line(ctx, map, CoclusterMethod::components);
    first_ = {};
    map = shuffled(map);
    for (const Context& ctx : contexts_) line(ctx, map, CoclusterMethod::components);
    runtime_.progress->clear();
    PapersPart part = result();
    part.text = format_table(printed_);
    return part;
  }

 private:
  void line(const Context& ctx, const Made& made, CoclusterMethod method) {
    Cocluster found;
    Timings labels;
    // The serial product takes some ten seconds, and once they are enough.
    const bool once = method == CoclusterMethod::product_serial;
    const Timings whole = measure(
        ctx, once ? Runs{0, 1} : options_.runs(), [&] { found = cocluster(ctx, made.edges(), {.method = method}); },
        [&] { labels.seconds.push_back(found.label_seconds); });
    if (options_.spoil) found.labels_a[0] += 1;
    Verdict verdict;
    if (options_.verify) verdict = check_groups(made.edges(), found);
    verdict_ += verdict;
    const bool same = first_.groups.empty() || (first_.labels_a == found.labels_a && first_.labels_b == found.labels_b);
    if (!same) ++different_;
    const auto edges = static_cast<double>(made.a.size());
    lines_.push_back({{"graph", made.name},
                      {"members", made.n_a + made.n_b},
                      {"edges", made.a.size()},
                      {"method", name_of(method)},
                      {"device", ctx.device()},
                      {"threads", ctx.threads()},
                      {"groups", found.groups.size()},
                      {"nonzeros", found.nonzeros},
                      {"label_seconds", to_json(labels)},
                      {"edges_per_second", edges / labels.median()},
                      {"seconds", to_json(whole)},
                      {"checked", verdict.checked},
                      {"wrong", verdict.wrong}});
    printed_.push_back({made.name, format_count(made.n_a + made.n_b), format_count(std::ssize(made.a)),
                        std::string(name_of(method)), ctx.device(), fmt::format("{}", found.nonzeros.size()),
                        format_count(std::ssize(found.groups)), fmt::format("{:.4f}", 1e3 * labels.median()),
                        fmt::format("{:.1f}", edges / labels.median() / 1e6),
                        fmt::format("{:.4f}", 1e3 * whole.median())});
    if (first_.groups.empty()) first_ = std::move(found);
    // After every line, so that a run that is ended leaves what it has.
    if (!options_.output.empty()) write_text(options_.output, result().json.dump(2) + "\n");
  }

  [[nodiscard]] PapersPart result() const {
    Json json = head_;
    json["device"] = runtime_.ctx.device();
    json["threads"] = runtime_.ctx.threads();
    PapersPart part{std::move(json), {}, different_, verdict_};
    note_answers(part);
    part.json["lines"] = lines_;
    return part;
  }

  const PapersOptions& options_;
  const Runtime runtime_;
  const std::vector<Context> contexts_;
  const Json head_ = head_of_results("bench papers cc", options_.commit);
  std::vector<std::vector<std::string>> printed_ = {
      {"graph", "members", "edges", "method", "device", "products", "groups", "labels ms", "M edges/s", "whole ms"}};
  Json lines_ = Json::array();
  Cocluster first_;  // of a graph, which all others must equal
  std::int64_t different_ = 0;
  Verdict verdict_;
};

}  // namespace

PapersPart measure_papers_cc(const PapersOptions& options) {
  return CcBench(options).run();
}

}  // namespace vicinal::cli
