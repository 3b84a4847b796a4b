// The comparison of check.hpp. The reference's ranking is made once a case and cut for every k and radius.

#include "check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "reference/reference.hpp"

namespace vicinal::contract {

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Everything the library and the reference need, alive as long as the case.
struct Material {
  Stored table;
  Stored queries;
  std::vector<std::uint64_t> filter;
  std::vector<std::int64_t> exclude;
};

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  return x ^ (x >> 29);
}

std::vector<std::uint64_t> filter_bits(const Case& c) {
  if (c.filter == Filter::none) return {};
  std::vector<std::uint64_t> words(static_cast<std::size_t>((c.shape.n + 63) / 64), 0);
  for (std::int64_t i = 0; i < c.shape.n; ++i) {
    const bool is_in = mixed(static_cast<std::uint64_t>(i) + c.seed) % 16 == 0;
    if (is_in == (c.filter == Filter::few) || i == c.shape.n / 2) {
      words[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64);
    }
  }
  // Bits beyond the last row mean nothing.
  if (c.shape.n % 64 != 0) words.back() |= ~std::uint64_t{0} << (c.shape.n % 64);
  return words;
}

std::vector<std::int64_t> excluded_ids(const Case& c) {
  if (!c.exclude) return {};
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < (c.self ? c.shape.n : c.shape.m); ++i) {
    const auto draw = mixed(static_cast<std::uint64_t>(i) * 7 + c.seed);
    ids.push_back(draw % 4 == 0 ? -1 : static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(c.shape.n)));
  }
  return ids;
}

Material make_material(const Case& c, const Rows& rows) {
  return {Stored(rows.table, c.shape.d, c.dtype, c.layout),
          Stored(rows.queries, c.shape.d, c.query_dtype, c.query_layout), filter_bits(c), excluded_ids(c)};
}

// The library, asked one way.
class Asker {
 public:
  Asker(const Case& c, const Material& material, const Way& way)
      : case_(c), material_(material), way_(way), context_(context_of(way)), index_(context_, material.table.view()) {}

  [[nodiscard]] NeighborGraph knn(std::int64_t k) const {
    KnnOptions options = with_common(KnnOptions{.k = k});
    const bool has_limits =
        way_.method == Method::fused || (way_.method == Method::kdtree && case_.layout != Layout::blocks);
    const bool in_doubt = way_.cuda && has_limits && serves(way_.method, case_.metric);
    if (in_doubt && !runs(options)) options.method = Method::automatic;
    if (case_.self) return vicinal::knn(context_, index_, options);
    // Odd lists go through the overload without an index.
    if (k % 2 != 0) return vicinal::knn(context_, material_.table.view(), material_.queries.view(), options);
    return vicinal::knn(context_, index_, material_.queries.view(), options);
  }
  [[nodiscard]] NeighborGraph radius(const RadiusOptions& asked) const {
    const RadiusOptions options = within(asked);
    if (case_.self) return vicinal::radius(context_, index_, options);
    return vicinal::radius(context_, index_, material_.queries.view(), options);
  }
  /// The lists of batches that have room for little more than the longest one, joined.
  [[nodiscard]] NeighborGraph radius_in_batches(const RadiusOptions& asked, std::size_t longest) const {
    const RadiusOptions options = within(asked);
    const TableView* const queries = case_.self ? nullptr : &material_.queries.view();
    const Context none = context_.with_memory_limit(1);
    const std::uint64_t room_for_any = plan_radius_batches(none, material_.table.view(), queries, options).memory -
                                       plan_radius(none, material_.table.view(), queries, options).memory;
    NeighborGraph joined;
    const auto ask = [&](const Context& context, const TakeLists& take) {
      return case_.self ? radius_batches(context, index_, options, take)
                        : radius_batches(context, index_, *queries, options, take);
    };
    // The search itself, in an index that is made and has its tree.
    const std::uint64_t whole = ask(context_, [](std::int64_t, const NeighborGraph&) {}).plan.memory;
    const std::uint64_t room = 64 * longest + (64 << 10);
    const RadiusSummary found = ask(
        context_.with_memory_limit(whole - room_for_any + room), [&](std::int64_t first, const NeighborGraph& lists) {
          if (joined.offsets.empty()) joined.offsets.push_back(0);
          EXPECT_EQ(first, joined.rows);
          const std::int64_t before = joined.offsets.back();
          joined.rows += lists.rows;
          joined.ids.insert(joined.ids.end(), lists.ids.begin(), lists.ids.end());
          joined.distances.insert(joined.distances.end(), lists.distances.begin(), lists.distances.end());
          for (std::int64_t i = 1; i <= lists.rows; ++i) {
            joined.offsets.push_back(before + lists.offsets[static_cast<std::size_t>(i)]);
          }
        });
    EXPECT_EQ(found.rows, joined.rows);
    EXPECT_EQ(found.neighbors, static_cast<std::int64_t>(joined.ids.size()));
    return joined;
  }
  [[nodiscard]] std::vector<std::int64_t> count(const RadiusOptions& asked) const {
    const RadiusOptions options = within(asked);
    if (case_.self) return vicinal::count(context_, index_, options).counts;
    return vicinal::count(context_, index_, material_.queries.view(), options).counts;
  }

 private:
  /// On a device two methods serve some widths and lengths of lists only, and their plans say which.
  [[nodiscard]] bool runs(const KnnOptions& options) const {
    try {
      (void)plan_knn(context_, material_.table.view(), case_.self ? nullptr : &material_.queries.view(), options);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      return false;
    }
  }

  [[nodiscard]] RadiusOptions within(const RadiusOptions& asked) const {
    RadiusOptions options = with_common(asked);
    if (way_.cuda && way_.method == Method::fused) options.method = Method::automatic;
    return options;
  }

  template <class Options>
  Options with_common(Options options) const {
    options.metric = case_.metric;
    options.p = case_.p;
    options.method = way_.method;
    options.screen = way_.screen;
    options.filter = material_.filter;
    options.exclude = material_.exclude;
    return options;
  }

  const Case& case_;
  const Material& material_;
  const Way& way_;
  const Context& context_;
  Index index_;
};

bool same_value(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Empty when equal, else a sentence about the first difference.
std::string difference(const NeighborGraph& got, const NeighborGraph& expected) {
  std::ostringstream text;
  text.precision(17);
  if (got.rows != expected.rows || got.k != expected.k) {
    text << "shape [" << got.rows << ", " << got.k << "] instead of [" << expected.rows << ", " << expected.k << "]";
    return text.str();
  }
  if (got.is_csr() != expected.is_csr() || (got.is_csr() && got.offsets.size() != expected.offsets.size()))
    return "offsets of another size";
  for (std::int64_t row = 0; row < expected.rows; ++row) {
    const auto ids = got.ids_of(row);
    const auto want = expected.ids_of(row);
    for (std::size_t r = 0; r < std::min(ids.size(), want.size()); ++r) {
      const double distance = got.distances_of(row)[r];
      const double wanted = expected.distances_of(row)[r];
      if (ids[r] == want[r] && same_value(distance, wanted)) continue;
      text << "row " << row << " rank " << r << ": got (" << ids[r] << ", " << distance << "), expected (" << want[r]
           << ", " << wanted << ")" << std::hexfloat << " " << distance << " / " << wanted;
      return text.str();
    }
    if (ids.size() != want.size()) {
      text << "row " << row << ": " << ids.size() << " neighbors instead of " << want.size();
      return text.str();
    }
  }
  if (got.ids.size() != expected.ids.size() || got.distances.size() != expected.distances.size())
    return "arrays of another size";
  return "";
}

std::string difference(const std::vector<std::int64_t>& got, const std::vector<std::int64_t>& expected) {
  if (got.size() != expected.size()) return "counts of another size";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    return "row " + std::to_string(i) + ": count " + std::to_string(got[i]) + " instead of " +
           std::to_string(expected[i]);
  }
  return "";
}

std::set<std::int64_t> numbers_in(const std::string& sentence) {
  std::set<std::int64_t> numbers;
  for (std::size_t i = 0; i < sentence.size();) {
    if (std::isdigit(static_cast<unsigned char>(sentence[i])) == 0) {
      ++i;
      continue;
    }
    std::int64_t value = 0;
    for (; i < sentence.size() && std::isdigit(static_cast<unsigned char>(sentence[i])) != 0; ++i)
      value = value * 10 + (sentence[i] - '0');
    numbers.insert(value);
  }
  return numbers;
}

void expect_overflow(const Case& c, const Way& way, const Pairs& overflow, const Asker& asker) {
  try {
    (void)asker.knn(1);
    ADD_FAILURE() << describe(c) << describe(way) << "knn: no error, though the key of query " << overflow[0].first
                  << " and row " << overflow[0].second << " overflows";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data) << error.what();
    const auto numbers = numbers_in(error.what());
    const bool names_pair = std::any_of(overflow.begin(), overflow.end(), [&](const auto& pair) {
      return numbers.count(pair.first) != 0 && numbers.count(pair.second) != 0;
    });
    EXPECT_TRUE(names_pair) << describe(c) << describe(way)
                            << "the error does not name a pair that overflows: " << error.what();
  }
}

void expect_not_served(const Case& c, const Way& way, const Asker& asker) {
  try {
    (void)asker.knn(1);
    ADD_FAILURE() << describe(c) << describe(way) << "no error, though this method does not serve the search";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    EXPECT_NE(std::string(error.what()).find(name_of(way.method)), std::string::npos) << error.what();
  }
}

// Radii worth asking for: 0, a reported distance of a middle rank, and the floats beside it.
std::vector<double> radii_of(const Case& c, const Asked& asked, const reference::Ranking& ranking) {
  std::vector<double> radii = {0};
  for (const std::size_t share : {0, 16, 3}) {  // the farthest row, and such that leave that share of all beyond them
    const auto& list = ranking[ranking.size() / 2];
    if (!asked.far || list.empty()) continue;
    const double far = list[list.size() - 1 - (share > 0 ? (list.size() - 1) / share : 0)].distance;
    radii.push_back(far);
    radii.push_back(std::nextafter(far, -std::numeric_limits<double>::infinity()));
  }
  for (const std::size_t row : {std::size_t{0}, ranking.size() / 2}) {
    const auto& list = ranking[row];
    if (list.empty()) continue;
    const double middle = list[std::min<std::size_t>(list.size() - 1, 7)].distance;
    radii.push_back(middle);
    radii.push_back(std::nextafter(middle, -std::numeric_limits<double>::infinity()));
  }
  if (!ranking[0].empty()) radii.push_back(ranking[0][ranking[0].size() / 2].distance);
  if (c.metric != Metric::inner_product) {
    radii.erase(std::remove_if(radii.begin(), radii.end(), [](double r) { return r < 0; }), radii.end());
  }
  return radii;
}

// What the reference says, cut once for all ways.
struct Answers {
  std::map<std::int64_t, NeighborGraph> lists;
  std::vector<RadiusOptions> radii;
  std::vector<NeighborGraph> within;
  std::vector<std::vector<std::int64_t>> counts;
  std::vector<double> mixed;  ///< [m] a radius a query
};

Answers answers_of(const Case& c, const Asked& asked, const reference::Ranking& ranking) {
  Answers answers;
  auto eligible = std::numeric_limits<std::int64_t>::max();
  for (const auto& list : ranking) eligible = std::min(eligible, static_cast<std::int64_t>(list.size()));
  std::vector<std::int64_t> ks = asked.ks;
  if (asked.all_rows) ks.push_back(eligible);
  for (const std::int64_t k : ks) {
    const std::int64_t cut = std::min(k, eligible);
    if (cut > 0) answers.lists.try_emplace(cut, reference::knn(ranking, cut));
  }
  if (!asked.radii) return answers;
  const std::vector<double> radii = radii_of(c, asked, ranking);
  for (const double radius : radii) {
    answers.radii.push_back({.radius = radius});
    answers.within.push_back(reference::radius(ranking, radius));
    answers.counts.push_back(reference::count(ranking, radius));
  }
  // One list by ascending id; and with a radius a query, in either order.
  if (radii.empty()) return answers;
  answers.radii.push_back({.radius = radii.back(), .order = RadiusOrder::id});
  answers.within.push_back(reference::by_id(answers.within.back()));
  answers.counts.push_back(answers.counts.back());
  for (std::size_t i = 0; i < ranking.size(); ++i) answers.mixed.push_back(radii[(i + c.seed) % radii.size()]);
  const RadiusOrder order = c.seed % 2 == 0 ? RadiusOrder::id : RadiusOrder::key;
  answers.radii.push_back({.order = order, .radii = answers.mixed});
  const NeighborGraph within = reference::radius(ranking, answers.mixed);
  answers.within.push_back(order == RadiusOrder::id ? reference::by_id(within) : within);
  answers.counts.push_back(reference::count(ranking, answers.mixed));
  return answers;
}

// Stops at the first difference: one sentence a way is enough to find the cause.
void compare(const Case& c, const Way& way, const Answers& answers, const Asker& asker, bool in_batches) {
  for (const auto& [k, expected] : answers.lists) {
    const NeighborGraph got = asker.knn(k);
    EXPECT_EQ(got.metric, c.metric);
    EXPECT_EQ(got.table_rows, c.shape.n);
    EXPECT_NE(got.plan.method, Method::automatic);
    const std::string found = difference(got, expected);
    if (found.empty()) continue;
    ADD_FAILURE() << describe(c) << describe(way) << "knn k=" << k << " (ran as " << name_of(got.plan.method)
                  << "): " << found;
    return;
  }
  if (is_of_a_paper(way.method)) return;  // they find k lists alone
  for (std::size_t i = 0; i < answers.radii.size(); ++i) {
    const RadiusOptions& radius = answers.radii[i];
    std::string found = difference(asker.radius(radius), answers.within[i]);
    if (found.empty()) found = difference(asker.count(radius), answers.counts[i]);
    std::int64_t longest = 0;  // of lists that are found: on a device those of the largest radius, which are then cut
    for (std::size_t j = radius.radii.empty() ? i : 0; j <= i; ++j) {
      longest = std::max(longest, *std::max_element(answers.counts[j].begin(), answers.counts[j].end()));
    }
    if (found.empty() && in_batches) {
      found = difference(asker.radius_in_batches(radius, static_cast<std::size_t>(longest)), answers.within[i]);
      if (!found.empty()) found = "in batches, " + found;
    }
    if (found.empty()) continue;
    ADD_FAILURE() << describe(c) << describe(way) << std::hexfloat << "radius and count "
                  << (radius.radii.empty() ? radius.radius : radius.radii.front())
                  << (radius.radii.empty() ? "" : " and others") << " by " << name_of(radius.order) << ": " << found;
    return;
  }
}

}  // namespace

std::string describe(const Case& c) {
  std::ostringstream text;
  text << "[" << name_of(c.metric);
  if (c.metric == Metric::minkowski) text << " p=" << c.p;
  text << " " << name_of(c.dtype) << "/" << name_of(c.query_dtype) << " " << name_of(c.layout) << "/"
       << name_of(c.query_layout) << " n=" << c.shape.n << " d=" << c.shape.d << " m=" << c.shape.m << " "
       << name_of(c.family) << " seed=" << c.seed;
  if (c.self) text << " self";
  if (c.filter != Filter::none) text << (c.filter == Filter::few ? " filter=few" : " filter=many");
  if (c.exclude) text << " exclude";
  text << "] ";
  return text.str();
}

bool serves(Method method, Metric metric) {
  if (method == Method::fused) {
    return metric == Metric::euclidean || metric == Metric::sqeuclidean || metric == Metric::inner_product ||
           metric == Metric::cosine;
  }
  if (method == Method::product_kmin || method == Method::product_bitonic || method == Method::product_timed) {
    return serves(Method::fused, metric);
  }
  return method != Method::kdtree ||
         (metric != Metric::inner_product && metric != Metric::cosine && metric != Metric::hamming);
}

std::string describe(const Way& way) {
  std::ostringstream text;
  if (way.cuda) {
    text << "[cuda " << name_of(way.method);
  } else {
    text << "[" << name_of(way.isa) << " threads=" << way.threads << " " << name_of(way.method);
  }
  if (way.screen != ScreenType::automatic) text << " " << name_of(way.screen);
  text << "] ";
  return text.str();
}

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> kIsas = [] {
    std::vector<Isa> isas;
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
      try {
        (void)Context::cpu({.threads = 1, .isa = isa});
        isas.push_back(isa);
      } catch (const Error& error) {
        std::printf("not tested: instruction set %s: %s\n", std::string(name_of(isa)).c_str(), error.what());
      }
    }
    // ThreadSanitizer does not watch the AVX kernels, and what calls them is the same for both sets.
    if (kFewestThreads > 1 && isas.size() == 3) {
      std::printf("not tested: instruction set avx2: avx512 is\n");
      isas.erase(isas.begin() + 1);
    }
    return isas;
  }();
  return kIsas;
}

namespace {
std::string test_device() {
  const char* const name = std::getenv("VICINAL_TEST_DEVICE");
  return name == nullptr ? "" : name;
}
bool is_cuda_only() {
  static const bool kOnly = test_device() == "cuda";
  return kOnly;
}
}  // namespace

const std::string& cuda_missing() {
  static const std::string kMissing = [] {
    std::string missing;
    if (test_device() == "cpu") {
      missing = "VICINAL_TEST_DEVICE=cpu leaves it out";
    } else if (!is_cuda_only()) {
      missing = cuda_status().missing;
    }
    if (!missing.empty()) std::printf("not tested: CUDA: %s\n", missing.c_str());
    return missing;
  }();
  return kMissing;
}

const Context& cuda_context() {
  // "cuda:0,1": the same tests on several devices.
  const char* const devices = std::getenv("VICINAL_TEST_DEVICES");
  static const Context kContext =
      Context::cuda({.devices = cuda_devices_from(devices != nullptr ? devices : "cuda"), .threads = 3});
  return kContext;
}

const Context& context_of(Isa isa, int threads) {
  if (is_cuda_only()) return cuda_context();
  static std::map<std::pair<Isa, int>, Context> contexts;
  const auto key = std::make_pair(isa, threads);
  const auto found = contexts.find(key);
  if (found != contexts.end()) return found->second;
  return contexts.emplace(key, Context::cpu({.threads = threads, .isa = isa})).first->second;
}

const Context& context_of(const Way& way) {
  return way.cuda ? cuda_context() : context_of(way.isa, way.threads);
}

namespace {
// Each screen runs on every instruction set: by an instruction of its own, or emulated.
constexpr ScreenType kScreens[] = {ScreenType::int8, ScreenType::bfloat16, ScreenType::float32};
constexpr Method kPaperMethods[] = {Method::product_kmin,  Method::product_bitonic, Method::product_timed,
                                    Method::direct_filter, Method::tiled_insertion, Method::insertion,
                                    Method::block_heap};
}  // namespace

bool is_of_a_paper(Method method) {
  return std::find(std::begin(kPaperMethods), std::end(kPaperMethods), method) != std::end(kPaperMethods);
}

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  if (cuda_missing().empty()) {
    for (const Method method : {Method::automatic, Method::fused, Method::direct, Method::kdtree}) {
      ways.push_back({.method = method, .cuda = true});
    }
    for (const Method method : kPaperMethods) ways.push_back({.method = method, .cuda = true});
  }
  if (is_cuda_only()) return ways;
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2, 3, 7}) {
      for (const Method method : {Method::automatic, Method::fused, Method::direct, Method::kdtree})
        ways.push_back({isa, threads, method});
      for (const ScreenType screen : kScreens) ways.push_back({isa, threads, Method::fused, screen});
      if (threads == 2) {
        for (const Method method : kPaperMethods) ways.push_back({isa, threads, method});
      }
    }
  }
  return ways;
}

std::vector<Way> some_ways(std::uint64_t turn) {
  constexpr int kThreads[] = {1, 2, 3, 7};
  std::vector<Way> ways;
  if (cuda_missing().empty()) {
    ways.push_back({.method = Method::direct, .cuda = true});
    ways.push_back({.method = turn % 2 == 0 ? Method::automatic : Method::fused, .cuda = true});
    ways.push_back({.method = Method::kdtree, .cuda = true});
    ways.push_back({.method = kPaperMethods[turn % std::size(kPaperMethods)], .cuda = true});
  }
  if (is_cuda_only()) return ways;
  const std::size_t before = ways.size();
  for (const Isa isa : available_isas()) {
    ways.push_back({isa, kThreads[turn % 4], Method::fused, kScreens[turn % 3]});
    ways.push_back({isa, kThreads[(turn + 1) % 4], Method::direct});
    if (kSparse == 1 || ways.size() == before + 2) ways.push_back({isa, kThreads[(turn + 2) % 4], Method::kdtree});
    ++turn;
  }
  const int others = std::size(kPaperMethods);
  ways.push_back({available_isas()[turn % available_isas().size()], kThreads[turn % 4], kPaperMethods[turn % others]});
  ways.push_back({available_isas().back(), kThreads[(turn + 1) % 4], Method::automatic});
  return ways;
}

std::vector<Way> two_ways(std::uint64_t turn) {
  const std::vector<Way> ways = some_ways(turn);
  return {ways[turn % ways.size()], ways[(turn + 1 + turn / ways.size() % (ways.size() - 1)) % ways.size()]};
}

void check(const Case& c, const Asked& asked, const std::vector<Way>& ways) {
  const Rows rows = make_rows(c.family, c.shape, c.seed);
  const Material material = make_material(c, rows);
  const TableView& queries = c.self ? material.table.view() : material.queries.view();
  const reference::Question question = {c.metric, c.p, c.self, material.filter, material.exclude};
  Pairs overflow;
  const reference::Ranking ranking = reference::rank(material.table.view(), queries, question, &overflow);
  const Answers answers = overflow.empty() ? answers_of(c, asked, ranking) : Answers{};
  bool was_in_batches = false;  // in one way
  for (const Way& way : ways) {
    if (!way.cuda && way.threads < kFewestThreads) continue;
    try {
      const Asker asker(c, material, way);
      const bool in_memory = way.method == Method::kdtree || is_of_a_paper(way.method);
      if (!serves(way.method, c.metric) || (in_memory && c.layout == Layout::blocks)) {
        if (!answers.lists.empty()) expect_not_served(c, way, asker);
      } else if (overflow.empty()) {
        compare(c, way, answers, asker, !was_in_batches);
        was_in_batches = was_in_batches || !is_of_a_paper(way.method);
      } else {
        expect_overflow(c, way, overflow, asker);
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << describe(c) << describe(way) << "unexpected error: " << error.what();
    }
  }
}

}  // namespace vicinal::contract
