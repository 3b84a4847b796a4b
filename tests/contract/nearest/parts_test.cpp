// Clause 26: the merged parts of any shards are what the whole search finds. Every metric and dtype, 1 to 7 shards of
// unequal sizes, one of them smaller than k, searched on different devices, instruction sets and methods, merged in any
// order; compared with the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "reference/reference.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr Metric kPartMetrics[] = {Metric::euclidean, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                                   Metric::manhattan, Metric::chebyshev,   Metric::minkowski,     Metric::hamming};
constexpr DType kPartDTypes[] = {DType::uint8, DType::float16, DType::bfloat16, DType::float32, DType::float64};

/// First rows of shards, and the number of rows. With more than two shards the second one has two rows.
std::vector<std::int64_t> cuts_of(std::int64_t n, std::int64_t shards) {
  std::vector<std::int64_t> cuts = {0};
  for (std::int64_t s = 1; s < shards; ++s) {
    cuts.push_back(s == 2 ? cuts.back() + 2 : s * n / shards + 3 * (s % 2));
  }
  cuts.push_back(n);
  return cuts;
}

/// Rows from `begin` on as a filter of their own.
std::vector<std::uint64_t> filter_from(const std::vector<std::uint64_t>& words, std::int64_t begin, std::int64_t end) {
  if (words.empty()) return {};
  std::vector<std::uint64_t> here(static_cast<std::size_t>((end - begin + 63) / 64), 0);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint64_t bit = words[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1;
    here[static_cast<std::size_t>((i - begin) / 64)] |= bit << ((i - begin) % 64);
  }
  return here;
}

/// A whole search and how it is divided.
struct Whole {
  TableView table;
  TableView queries;  ///< self: those of the table
  bool self = false;
  std::vector<std::uint64_t> filter;
  std::vector<std::int64_t> exclude;
  std::vector<std::int64_t> row_cuts;
  std::vector<std::int64_t> query_cuts;
  std::vector<Way> ways;  ///< of the shards, in turns
  bool totals = true;

  [[nodiscard]] PartOptions place(std::int64_t first_id, std::int64_t first_query) const {
    return {first_id, first_query, self, totals ? table.rows() : 0, totals ? queries.rows() : 0};
  }
  /// The parts of all shards and ranges of queries, shuffled. `search(ctx, shard, queries, options, place)`.
  template <class Options, class Search>
  [[nodiscard]] std::vector<NeighborPart> parts(Options options, std::span<const double> radii, std::uint64_t seed,
                                                const Search& search) const {
    std::vector<NeighborPart> found;
    std::size_t turn = seed;
    for (std::size_t r = 0; r + 1 < row_cuts.size(); ++r) {
      const TableView shard = table.slice(row_cuts[r], row_cuts[r + 1]);
      const auto here = filter_from(filter, row_cuts[r], row_cuts[r + 1]);
      for (std::size_t q = 0; q + 1 < query_cuts.size(); ++q) {
        const auto first = static_cast<std::size_t>(query_cuts[q]);
        const std::size_t count = static_cast<std::size_t>(query_cuts[q + 1]) - first;
        options.filter = here;
        if (!exclude.empty()) options.exclude = std::span(exclude).subspan(first, count);
        if constexpr (std::is_same_v<Options, RadiusOptions>) {
          if (!radii.empty()) options.radii = radii.subspan(first, count);
        }
        const Way& way = ways[turn++ % ways.size()];
        options.method = Method::automatic;
        options.screen = ScreenType::automatic;
        if (serves(way.method, options.metric) && !way.cuda && !is_of_a_paper(way.method)) {
          options.method = way.method;
          options.screen = way.screen;
        }
        if (shard.is_block_source() && options.method == Method::kdtree) options.method = Method::automatic;
        found.push_back(search(context_of(way), shard, queries.slice(query_cuts[q], query_cuts[q + 1]), options,
                               place(row_cuts[r], query_cuts[q])));
      }
    }
    std::shuffle(found.begin(), found.end(), std::mt19937_64(seed));
    return found;
  }
};

const auto kKnnPart = [](const auto&... arguments) { return knn_part(arguments...); };
const auto kRadiusPart = [](const auto&... arguments) { return radius_part(arguments...); };
const auto kCountPart = [](const auto&... arguments) { return count_part(arguments...); };
/// The same with an index that is made first.
const auto kKnnPartOfIndex = [](const Context& ctx, const TableView& shard, const auto&... arguments) {
  return knn_part(ctx, Index(ctx, shard), arguments...);
};

/// Parts as sources.
std::vector<PartSource> sources_of(const std::vector<NeighborPart>& parts) {
  std::vector<PartSource> sources;
  for (const NeighborPart& part : parts) sources.push_back(source_of(Context::cpu(), part));
  return sources;
}

/// Merged in memory, and from sources.
NeighborGraph merged(const Context& ctx, const std::vector<NeighborPart>& parts) {
  const NeighborGraph graph = merge(ctx, parts);
  expect_same(merge(ctx, sources_of(parts)), graph, "sources");
  return graph;
}

class PartsOf : public ::testing::TestWithParam<std::tuple<Metric, DType>> {};

TEST_P(PartsOf, AnyShardsMergeToTheWhole) {
  constexpr Family kFamilies[] = {Family::integer_ties, Family::duplicates, Family::gaussian, Family::permutations,
                                  Family::mostly_duplicates};
  const auto [metric, dtype] = GetParam();
  const auto start = static_cast<std::uint64_t>(metric) * 5 + static_cast<std::uint64_t>(dtype);
  std::uint64_t turn = start;
  for (const std::int64_t shards : {1, 2, 3, 4, 7}) {
    for (const bool self : {false, true}) {
      if (is_left_out(++turn)) continue;
      const bool slow = metric == Metric::minkowski;
      const Shape shape = {slow ? 61 : 173, slow ? 5 : 9, slow ? 13 : 37};
      const Rows rows = make_rows(kFamilies[turn % std::size(kFamilies)], shape, turn);
      const Layout layout = turn % 4 == 0 ? Layout::padded : Layout::contiguous;
      const Stored table(rows.table, shape.d, dtype, layout);
      const Stored queries(rows.queries, shape.d, dtype);
      Whole whole;
      whole.table = table.view();
      whole.queries = self ? table.view() : queries.view();
      whole.self = self;
      whole.row_cuts = cuts_of(shape.n, shards);
      whole.query_cuts = {0, whole.queries.rows()};
      if (turn % 3 == 0) whole.query_cuts = {0, 5, 6, whole.queries.rows()};
      whole.ways = some_ways(turn);
      whole.totals = turn % 2 == 0;
      if (turn % 4 >= 2) {
        whole.filter.assign(static_cast<std::size_t>((shape.n + 63) / 64), 0x5b6db6db6db6db6dU);
      }
      if (turn % 5 >= 3) {
        for (std::int64_t i = 0; i < whole.queries.rows(); ++i)
          whole.exclude.push_back(i % 4 == 0 ? -1 : i * 7 % shape.n);
      }
      const std::string what = std::string(name_of(metric)) + " of " + std::string(name_of(dtype)) + ", " +
                               std::to_string(shards) + " shards, turn " + std::to_string(turn);
      SCOPED_TRACE(what);
      const double p = slow ? std::vector<double>{3, 1.5, 1}[turn % 3] : 2;
      const auto ranking =
          reference::rank(whole.table, whole.queries,
                          {.metric = metric, .p = p, .self = self, .filter = whole.filter, .exclude = whole.exclude});
      const Context& ctx = context_of(whole.ways[turn % whole.ways.size()]);

      std::int64_t largest = shape.n;
      for (const auto& list : ranking) largest = std::min(largest, std::ssize(list));
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{5}, std::int64_t{23}, largest}) {
        const KnnOptions options = {.k = k, .metric = metric, .p = p};
        const auto parts =
            turn % 2 == 0 ? whole.parts(options, {}, turn, kKnnPart) : whole.parts(options, {}, turn, kKnnPartOfIndex);
        const NeighborGraph got = merged(ctx, parts);
        EXPECT_EQ(got.table_rows, shape.n);
        EXPECT_EQ(got.k, k);
        EXPECT_EQ(got.metric, metric);
        expect_same(got, reference::knn(ranking, k), "k = " + std::to_string(k));
      }
      refused([&] { merge(ctx, whole.parts(KnnOptions{.k = largest + 1, .metric = metric, .p = p}, {}, 1, kKnnPart)); },
              ErrorCode::invalid_argument, "k: is " + std::to_string(largest + 1) + ", but at most ");

      const auto& middle = ranking[ranking.size() / 2];
      const double near = middle[std::min<std::size_t>(middle.size() - 1, 11)].distance;
      const double far = middle[middle.size() / 2].distance;
      if (metric != Metric::inner_product && near < 0) continue;
      std::vector<double> radii;
      for (std::int64_t i = 0; i < whole.queries.rows(); ++i) radii.push_back(i % 3 == 0 ? far : near);
      for (const RadiusOrder order : {RadiusOrder::key, RadiusOrder::id}) {
        const RadiusOptions options = {.radius = near, .metric = metric, .p = p, .order = order};
        const auto in_order = [order](NeighborGraph graph) {
          return order == RadiusOrder::id ? reference::by_id(std::move(graph)) : graph;
        };
        expect_same(merged(ctx, whole.parts(options, {}, turn, kRadiusPart)),
                    in_order(reference::radius(ranking, near)), "radius");
        expect_same(merged(ctx, whole.parts(options, radii, turn, kRadiusPart)),
                    in_order(reference::radius(ranking, radii)), "radii");
        const auto counts = whole.parts(options, radii, turn, kCountPart);
        EXPECT_EQ(merge_counts(ctx, counts).counts, reference::count(ranking, radii));
        EXPECT_EQ(merge_counts(ctx, sources_of(counts)).counts, reference::count(ranking, radii));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Search, PartsOf,
                         ::testing::Combine(::testing::ValuesIn(kPartMetrics), ::testing::ValuesIn(kPartDTypes)),
                         [](const auto& tested) {
                           return std::string(name_of(std::get<0>(tested.param))) + "_" +
                                  std::string(name_of(std::get<1>(tested.param)));
                         });

/// Rows that permute the same two-decimal values.
std::vector<double> permuted_rows(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  std::mt19937_64 draws(seed);
  std::vector<double> values;
  for (std::int64_t j = 0; j < d; ++j) values.push_back(static_cast<double>(draws() % 1000) / 100);
  std::vector<double> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    std::shuffle(values.begin(), values.end(), draws);
    rows.insert(rows.end(), values.begin(), values.end());
  }
  return rows;
}

// Their distances from a query of one value are the same but for rounding: many have different keys, and the same root.
TEST(Parts, AreMergedByKeysAndNotByDistances) {
  constexpr std::int64_t kCols = 24;
  constexpr std::int64_t kNeighbors = 10;
  for (const auto& [metric, p] : {std::pair(Metric::euclidean, 2.0), std::pair(Metric::minkowski, 3.0)}) {
    const bool slow = metric == Metric::minkowski;
    const std::int64_t n = slow ? 100 : 600;
    const std::int64_t m = slow ? 25 : 200;
    const std::vector<double> rows = permuted_rows(n, kCols, 7);
    std::vector<double> asked;
    for (std::int64_t i = 0; i < m; ++i) asked.insert(asked.end(), kCols, 0.01 * static_cast<double>(i) + 0.005);
    Whole whole;
    whole.table = TableView(rows.data(), n, kCols);
    whole.queries = TableView(asked.data(), m, kCols);
    whole.row_cuts = cuts_of(n, 3);
    whole.query_cuts = {0, m};
    whole.ways = some_ways(3);
    const KnnOptions options = {.k = kNeighbors, .metric = metric, .p = p};
    const auto ranking = reference::rank(whole.table, whole.queries, {.metric = metric, .p = p});
    const NeighborGraph wanted = reference::knn(ranking, kNeighbors);
    const auto parts = whole.parts(options, {}, 1, kKnnPart);
    expect_same(merged(context_of(whole.ways[0]), parts), wanted, "by keys");

    std::int64_t others = 0;  // queries that would get other ids from distances
    for (std::int64_t q = 0; q < m; ++q) {
      std::vector<std::pair<double, std::int64_t>> list;
      for (const NeighborPart& part : parts) {
        const std::int64_t begin = part.offsets.empty() ? q * kNeighbors : part.offsets[static_cast<std::size_t>(q)];
        const std::int64_t end =
            part.offsets.empty() ? begin + kNeighbors : part.offsets[static_cast<std::size_t>(q) + 1];
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          list.emplace_back(reference::distance_of(metric, p, part.keys[i]), part.ids[i]);
        }
      }
      std::sort(list.begin(), list.end());
      bool same = true;
      for (std::size_t i = 0; i < kNeighbors; ++i) same = same && list[i].second == wanted.ids_of(q)[i];
      others += same ? 0 : 1;
    }
    EXPECT_GT(others, 0) << name_of(metric);
    RecordProperty(std::string(name_of(metric)) + "_queries_with_other_ids", std::to_string(others));
  }
}

/// Twelve rows on a line, of which queries are.
class LineParts : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 12;

  LineParts() {
    for (std::int64_t i = 0; i < kRows; ++i) rows_.push_back(static_cast<double>(i * i));
  }
  [[nodiscard]] TableView table() const { return {rows_.data(), kRows, 1}; }
  NeighborPart part(std::int64_t begin, std::int64_t end, const KnnOptions& options = {.k = 3},
                    PartOptions place = {.self = true}) const {
    place.first_id = begin;
    return knn_part(ctx_, table().slice(begin, end), table(), options, place);
  }
  void expect_refused(const std::vector<NeighborPart>& parts, const std::string& sentence,
                      ErrorCode code = ErrorCode::invalid_argument) const {
    refused([&] { merge(ctx_, parts); }, code, sentence);
    refused([&] { merge(ctx_, sources_of(parts)); }, code, sentence);
  }

  std::vector<double> rows_;
  Context ctx_ = Context::cpu({.threads = 2});
};

TEST_F(LineParts, ThatDoNotFitAreRefused) {
  const std::vector<NeighborPart> none;
  expect_refused(none, "parts: there are none to merge");
  expect_refused({part(0, 5), part(5, 12, {.k = 2})}, "parts: the k of part 0 is 3, but that of part 1 is 2");
  expect_refused({part(0, 5), part(5, 12, {.k = 3, .metric = Metric::manhattan})},
                 "parts: the metric of part 0 is euclidean, but that of part 1 is manhattan");
  expect_refused({part(0, 5, {.k = 3, .metric = Metric::minkowski, .p = 3}),
                  part(5, 12, {.k = 3, .metric = Metric::minkowski, .p = 1.5})},
                 "parts: the exponent p of part 0 is 3, but that of part 1 is 1.5");
  expect_refused({part(0, 5), part(5, 12, {.k = 3}, {.self = false})},
                 "the queries of part 0 are rows of the table, but those of part 1 are not");
  expect_refused({part(0, 5), part(5, 12, {.k = 3}, {.self = true, .total_rows = 12})}, "the number of all rows");
  expect_refused({part(0, 5), part(5, 12, {.k = 3}, {.self = true, .total_queries = 12})}, "the number of all queries");
  const std::vector<double> wide(24, 1.0);
  const NeighborPart of_two_columns = knn_part(ctx_, TableView(wide.data(), 7, 2), TableView(wide.data(), 12, 2),
                                               {.k = 3}, {.first_id = 5, .self = true});
  expect_refused({part(0, 5), of_two_columns}, "the number of columns of part 0 is 1, but that of part 1 is 2");
  const NeighborPart within =
      radius_part(ctx_, table().slice(5, 12), table(), {.radius = 9}, {.first_id = 5, .self = true});
  expect_refused({part(0, 5), within}, "the kind of part 0 is knn, but that of part 1 is radius");
  const NeighborPart other = radius_part(ctx_, table().slice(0, 5), table(), {.radius = 8}, {.self = true});
  expect_refused({within, other}, "the radius of part 0 is 9, but that of part 1 is 8");
  const std::vector<double> radii(kRows, 9);
  const NeighborPart each = radius_part(ctx_, table().slice(0, 5), table(), {.radii = radii}, {.self = true});
  expect_refused({within, each}, "part 1 has a radius for each query, but part 0 has one for all");
  std::vector<double> others = radii;
  others[4] = 8;
  const NeighborPart again =
      radius_part(ctx_, table().slice(5, 12), table(), {.radii = others}, {.first_id = 5, .self = true});
  expect_refused({each, again}, "the radii of part 0 are others than those of part 1");
  const NeighborPart by_id =
      radius_part(ctx_, table().slice(0, 5), table(), {.radius = 9, .order = RadiusOrder::id}, {.self = true});
  expect_refused({within, by_id}, "the order of lists of part 0 is key, but that of part 1 is id");
  // Numbers that no search has.
  NeighborPart strange = part(0, 12);
  strange.info.order = RadiusOrder::id;
  expect_refused({strange}, "describe no part of a search");
  for (const double p :
       {0.5, 0.0, -0.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    strange = part(0, 12, {.k = 3, .metric = Metric::minkowski, .p = 3});
    strange.info.p = p;
    expect_refused({strange}, "describe no part of a search");
  }
  strange = within;
  strange.info.radius = std::numeric_limits<double>::quiet_NaN();
  expect_refused({strange}, "describe no part of a search");
  const NeighborPart counts = count_part(ctx_, table(), table(), {.radius = 9}, {.self = true});
  expect_refused({counts}, "merge_counts merges");
  refused([&] { merge_counts(ctx_, std::vector{part(0, 12)}); }, ErrorCode::invalid_argument, "which merge merges");
}

TEST_F(LineParts, ThatAreMissingAreNamed) {
  expect_refused({part(0, 2), part(4, 5), part(8, 12)}, "parts: rows 2 to 3, 5 to 7 are missing");
  expect_refused({part(3, 12)}, "parts: rows 0 to 2 are missing");
  expect_refused({part(0, 11, {.k = 3}, {.self = true, .total_rows = 12})}, "parts: rows 11 are missing");
  expect_refused({part(0, 6), part(5, 12)}, "parts: part 0 and part 1 both have rows 5 for the same queries");
  expect_refused({part(0, 12), part(0, 12)}, "both have rows 0 to 11");
  const auto some = [&](std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to,
                        std::int64_t total = 0) {
    return knn_part(ctx_, table().slice(begin, end), table().slice(from, to), {.k = 2},
                    {.first_id = begin, .first_query = from, .self = true, .total_queries = total});
  };
  expect_refused({some(0, 12, 0, 4), some(0, 12, 6, 12)}, "parts: queries 4 to 5 are missing");
  expect_refused({some(0, 12, 3, 12, 12)}, "parts: queries 0 to 2 are missing");
  expect_refused({some(0, 12, 0, 9, 12)}, "parts: queries 9 to 11 are missing");
  expect_refused({some(0, 12, 0, 5), some(0, 12, 4, 12)}, "which must be the same or have none in common");
  expect_refused({some(0, 12, 0, 5), some(0, 9, 5, 12)}, "parts: rows 9 to 11 are missing for some of the queries");
  expect_refused({some(0, 12, 0, 5), some(3, 12, 5, 12)}, "parts: rows 0 to 2 are missing for queries 5 to 11");
  // Without a total any consecutive queries can be merged.
  const NeighborGraph graph = merge(ctx_, std::vector{some(7, 12, 3, 6), some(0, 7, 3, 6), some(0, 12, 6, 8)});
  EXPECT_EQ(graph.rows, 5);
  const NeighborGraph whole = knn(ctx_, table(), {.k = 2});
  EXPECT_TRUE(std::equal(graph.ids.begin(), graph.ids.end(), whole.ids.begin() + 6));
}

TEST_F(LineParts, KMayExceedAShardButNotTheTable) {
  expect_refused({part(0, 5, {.k = 12}), part(5, 12, {.k = 12})},
                 "k: is 12, but at most 11 of the 12 table rows can be neighbors; a row is not its own neighbor");
  refused([&] { part(0, 5, {.k = 12}, {.self = true, .total_rows = 12}); }, ErrorCode::invalid_argument,
          "k: is 12, but at most 11 of the 12 table rows");
  refused([&] { part(0, 5, {.k = 0}); }, ErrorCode::invalid_argument, "k: is 0, must be at least 1");
  // With a filter only the merge knows.
  const std::vector<std::uint64_t> three = {0b10101};
  const std::vector<std::uint64_t> nobody = {0};
  const NeighborPart first = part(0, 5, {.k = 3, .filter = three});
  EXPECT_EQ(first.offsets[1], 2);  // row 0 is one of the three
  const NeighborPart second = part(5, 12, {.k = 3, .filter = nobody});
  EXPECT_TRUE(second.ids.empty());
  expect_refused({first, second}, "k: is 3, but at most 2 of the 12 table rows");
  const std::vector<std::uint64_t> one_more = {0b100};
  EXPECT_EQ(merge(ctx_, std::vector{first, part(5, 12, {.k = 3, .filter = one_more})}).ids_of(2)[2], 7);
}

TEST_F(LineParts, ListsThatNoSearchMakesAreRefused) {
  const std::string sentence = "is none that a search makes";
  const auto broken = [&](const auto& breaks) {
    std::vector<NeighborPart> parts = {part(0, 5), part(5, 12)};
    breaks(parts[1]);
    return parts;
  };
  expect_refused(broken([](NeighborPart& p) { p.ids[4] = 12; }), sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.ids[4] = 4; }), sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.ids[4] = -1; }), sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { std::swap(p.ids[3], p.ids[4]), std::swap(p.keys[3], p.keys[4]); }),
                 "query 1 " + sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.ids[4] = p.ids[3], p.keys[4] = p.keys[3]; }), sentence,
                 ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.keys[5] = std::nan(""); }), sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.keys[5] = std::numeric_limits<double>::infinity(); }), sentence,
                 ErrorCode::bad_data);
  // Its own row, where queries are rows of the table.
  expect_refused(broken([](NeighborPart& p) { p.ids[7 * 3] = 7, p.keys[7 * 3] = 0; }), sentence, ErrorCode::bad_data);
  const auto refuse_sizes = [&](const std::vector<NeighborPart>& parts, const std::string& why) {
    refused([&] { merge(ctx_, parts); }, ErrorCode::bad_data, why);
  };
  refuse_sizes(broken([](NeighborPart& p) { p.ids.pop_back(); }), "more ids than keys, or fewer");
  refuse_sizes(broken([](NeighborPart& p) { p.ids.pop_back(), p.keys.pop_back(); }), "k neighbors each");
  refuse_sizes(broken([](NeighborPart& p) { p.offsets = {0, 36}; }), "its offsets do not divide its lists");
  refuse_sizes(broken([](NeighborPart& p) { p.radii = {1}; }), "its radii do not number its queries");
  refuse_sizes(broken([](NeighborPart& p) { p.counts = {1}; }), "it has counts beside its lists");
  refuse_sizes(broken([](NeighborPart& p) {
                 p.offsets.assign(13, 36);
                 p.offsets[0] = 0;
               }),
               "a list is longer than it may be");
  std::vector<NeighborPart> counts = {count_part(ctx_, table(), table(), {.radius = 9}, {.self = true})};
  counts[0].counts[3] = 13;
  refused([&] { merge_counts(ctx_, counts); }, ErrorCode::bad_data, "above the number of its rows");
  counts[0].info.queries = 0;
  refused([&] { merge_counts(ctx_, counts); }, ErrorCode::invalid_argument, "describe no part of a search");
}

TEST_F(LineParts, SentencesCountRowsAndQueriesOfTheWholeSearch) {
  for (const Way& way : some_ways(0)) {
    const Context& ctx = context_of(way);
    const PartOptions place = {.first_id = 1000, .first_query = 500};
    std::vector<double> bad = rows_;
    bad[3] = std::nan("");
    const TableView broken(bad.data(), kRows, 1);
    refused([&] { knn_part(ctx, broken, table(), {.k = 3}, place); }, ErrorCode::bad_data, "table: row 1003, column 0");
    refused([&] { knn_part(ctx, table(), broken, {.k = 3}, place); }, ErrorCode::bad_data,
            "queries: row 503, column 0");
    refused([&] { count_part(ctx, table(), broken, {.radius = 1}, place); }, ErrorCode::bad_data, "queries: row 503");
    bad = rows_;
    bad[7] = 1e200;
    const TableView huge(bad.data(), kRows, 1);
    for (const Method method : {Method::automatic, Method::kdtree, Method::insertion}) {
      refused([&] { knn_part(ctx, huge, table().slice(4, 5), {.k = 3, .method = method}, place); }, ErrorCode::bad_data,
              "query row 500 and table row 1007 overflows");
    }
    // Its own row cannot overflow: it is no neighbor.
    const NeighborPart without =
        knn_part(ctx, huge.slice(7, 8), huge.slice(7, 8), {.k = 3}, {.first_id = 7, .first_query = 7, .self = true});
    EXPECT_TRUE(without.ids.empty());
  }
  refused([&] { part(0, 5, {.k = 3, .exclude = std::vector<std::int64_t>(3, 0)}); }, ErrorCode::invalid_argument,
          "exclude: 3 ids for 12 queries");
  std::vector<std::int64_t> exclude(kRows, -1);
  exclude[2] = 12;
  EXPECT_NO_THROW(part(0, 5, {.k = 3, .exclude = exclude}));
  refused([&] { part(0, 5, {.k = 3, .exclude = exclude}, {.self = true, .total_rows = 12}); },
          ErrorCode::invalid_argument, "exclude: entry 2 is 12, not -1 or a row of the table");
  exclude[2] = -2;
  refused([&] { part(0, 5, {.k = 3, .exclude = exclude}); }, ErrorCode::invalid_argument, "exclude: entry 2 is -2");
}

TEST_F(LineParts, PlacesOutsideOfTheWholeAreRefused) {
  const auto refuse_place = [&](const PartOptions& place, const std::string& why) {
    refused([&] { knn_part(ctx_, table(), table(), {.k = 3}, place); }, ErrorCode::invalid_argument, why);
    refused([&] { radius_part(ctx_, table(), table(), {.radius = 3}, place); }, ErrorCode::invalid_argument, why);
    refused([&] { plan_knn_part(ctx_, table(), table(), {.k = 3}, place); }, ErrorCode::invalid_argument, why);
  };
  refuse_place({.first_id = -1}, "first_id: is -1, must be at least 0");
  refuse_place({.first_query = -1}, "first_query: is -1, must be at least 0");
  refuse_place({.total_rows = -1}, "total_rows: is -1, must be at least 0");
  refuse_place({.first_id = 9, .total_rows = 20}, "first_id: 9 to 20 are not all among the 20 that total_rows says");
  refuse_place({.first_query = 9, .total_queries = 20}, "first_query: 9 to 20 are not all among the 20");
  refuse_place({.first_query = 9, .self = true, .total_rows = 20}, "first_query: 9 to 20 are not all among the 20");
  refuse_place({.first_id = std::numeric_limits<std::int64_t>::max() - 3}, "do not fit 64 bits");
  refused([&] { part(0, 5, {.k = 3, .metric = Metric::cosine, .method = Method::kdtree}); },
          ErrorCode::invalid_argument, "kdtree");
  refused([&] { part(0, 2, {.k = 3, .metric = Metric::cosine, .method = Method::kdtree}); },
          ErrorCode::invalid_argument, "kdtree");
}

TEST_F(LineParts, VotesAndMeansOfAMergedGraphAreThoseOfTheWhole) {
  const std::vector<std::int64_t> classes = {0, 1, 2, 0, 1, 2, 2, 1, 0, 1, 1, 0};
  const Labels labels = encode_labels(classes);
  const NeighborGraph whole = knn(ctx_, table(), {.k = 4});
  const NeighborGraph graph =
      merge(ctx_, std::vector{part(9, 12, {.k = 4}), part(0, 2, {.k = 4}), part(2, 9, {.k = 4})});
  const VoteOptions by_distance = {.weights = Weighting::distance, .probabilities = true};
  EXPECT_EQ(vote(ctx_, graph, labels, by_distance).probabilities, vote(ctx_, whole, labels, by_distance).probabilities);
  EXPECT_EQ(average(ctx_, graph, table(), {.weights = Weighting::distance}),
            average(ctx_, whole, table(), {.weights = Weighting::distance}));
  EXPECT_EQ(lof(ctx_, graph, {.k = 4}).scores, lof(ctx_, whole, {.k = 4}).scores);
  EXPECT_EQ(graph.stats.distinct_rows, 12);
}

/// Two shards of random rows.
class LargeParts : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 3001;
  static constexpr std::int64_t kCols = 6;

  [[nodiscard]] TableView table() const { return {rows_.table.data(), kRows, kCols}; }
  [[nodiscard]] std::vector<NeighborPart> knn_parts() const {
    std::vector<NeighborPart> parts;
    for (const auto& [begin, end] : {std::pair(1501, 3001), std::pair(0, 1501)}) {
      parts.push_back(knn_part(ctx_, table().slice(begin, end), table(), {.k = 20}, {.first_id = begin, .self = true}));
    }
    return parts;
  }
  [[nodiscard]] std::vector<NeighborPart> radius_parts() const {
    std::vector<NeighborPart> parts;
    for (const auto& [begin, end] : {std::pair(1501, 3001), std::pair(0, 1501)}) {
      parts.push_back(
          radius_part(ctx_, table().slice(begin, end), table(), {.radius = 2}, {.first_id = begin, .self = true}));
    }
    return parts;
  }

  Rows rows_ = make_rows(Family::gaussian, {kRows, kCols, 1}, 11);
  Context ctx_ = Context::cpu({.threads = 2});
};

/// The number of bytes that a refusal names, which is enough and no more.
std::uint64_t bytes_needed(const Context& ctx, const std::function<void(const Context&)>& work) {
  std::uint64_t low = 1;
  std::uint64_t high = std::uint64_t{1} << 30;
  while (low + 1 < high) {
    const std::uint64_t middle = (low + high) / 2;
    try {
      work(ctx.with_memory_limit(middle));
      high = middle;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
      low = middle;
    }
  }
  return high;
}

TEST_F(LargeParts, AreMergedInTheMemoryThatIsThere) {
  const auto parts = knn_parts();
  const NeighborGraph whole = knn(ctx_, table(), {.k = 20});
  const NeighborGraph graph = merge(ctx_, parts);
  expect_same(graph, whole, "in memory");
  EXPECT_GE(graph.plan.memory, static_cast<std::uint64_t>(kRows) * 20 * 16);
  refused([&] { merge(ctx_.with_memory_limit(graph.plan.memory - 1), parts); }, ErrorCode::over_memory, "merge needs");
  expect_same(merge(ctx_.with_memory_limit(graph.plan.memory), parts), whole, "in just enough memory");

  // Sources: blocks of some queries, however few fit.
  auto sources = sources_of(parts);
  std::int64_t longest = 0;
  for (PartSource& source : sources) {
    source.read = [read = source.read, &longest](std::int64_t begin, std::int64_t end) {
      longest = std::max(longest, end - begin);
      return read(begin, end);
    };
  }
  const std::uint64_t least = bytes_needed(ctx_, [&](const Context& ctx) { merge(ctx, sources); });
  EXPECT_LT(least, graph.plan.memory + 4096);
  longest = 0;
  expect_same(merge(ctx_.with_memory_limit(least + 40000), sources), whole, "in blocks");
  EXPECT_GT(longest, 1);
  EXPECT_LT(longest, kRows);

  const auto within = radius_parts();
  const NeighborGraph near = radius(ctx_, table(), {.radius = 2});
  expect_same(merge(ctx_, within), near, "within a radius");
  const auto near_sources = sources_of(within);
  NeighborGraph joined;
  joined.offsets = {0};
  std::int64_t blocks = 0;
  const auto take = [&](std::int64_t first, const NeighborGraph& lists) {
    EXPECT_EQ(first, joined.rows);
    const std::int64_t before = joined.offsets.back();
    joined.rows += lists.rows;
    ++blocks;
    joined.ids.insert(joined.ids.end(), lists.ids.begin(), lists.ids.end());
    joined.distances.insert(joined.distances.end(), lists.distances.begin(), lists.distances.end());
    for (std::size_t i = 1; i < lists.offsets.size(); ++i) joined.offsets.push_back(before + lists.offsets[i]);
  };
  const RadiusSummary summary = merge_batches(ctx_.with_memory_limit(300000), near_sources, take);
  expect_same(joined, near, "in batches");
  EXPECT_GT(blocks, 3);
  EXPECT_EQ(summary.neighbors, std::ssize(near.ids));
  EXPECT_EQ(summary.rows, kRows);
  refused([&] { merge_batches(ctx_.with_memory_limit(2000), near_sources, take); }, ErrorCode::over_memory,
          "merge needs");
  refused([&] { merge_batches(ctx_, near_sources, {}); }, ErrorCode::invalid_argument, "take: must be a function");
}

TEST_F(LargeParts, ArePlannedAsTheyAreSearched) {
  const PartOptions place = {.first_id = 7, .self = true};
  const TableView queries = table().slice(0, 100);
  for (const std::int64_t k : {5, 2999, 3001, 4000}) {
    const KnnOptions options = {.k = k};
    const std::uint64_t planned = plan_knn_part(ctx_, table(), queries, options, place).memory;
    EXPECT_NO_THROW(knn_part(ctx_.with_memory_limit(planned), table(), queries, options, place)) << k;
    refused([&] { knn_part(ctx_.with_memory_limit(planned / 8), table(), queries, options, place); },
            ErrorCode::over_memory, "needs");
  }
  const RadiusOptions options = {.radius = 1};
  EXPECT_NO_THROW(count_part(ctx_.with_memory_limit(plan_radius_part(ctx_, table(), queries, options, place).memory),
                             table(), queries, options, place));
}

TEST_F(LargeParts, OneShardFindsWhatTheTableDoes) {
  const NeighborPart part = knn_part(ctx_, table(), table(), {.k = 20}, {.self = true});
  EXPECT_TRUE(part.offsets.empty());
  EXPECT_EQ(part.stats.survivors, knn(ctx_, table(), {.k = 20}).stats.survivors);
  expect_same(merge(ctx_, std::span(&part, 1)), knn(ctx_, table(), {.k = 20}), "one shard");
}

TEST_F(LargeParts, MergingStopsAndReports) {
  const auto parts = knn_parts();
  const auto sources = sources_of(parts);
  CancelToken token;
  double last = 0;
  const Context ctx = Context::cpu({.threads = 2,
                                    .progress =
                                        [&](std::string_view stage, double fraction) {
                                          EXPECT_EQ(stage, "merge");
                                          EXPECT_GE(fraction, last);
                                          last = fraction;
                                        },
                                    .cancel = token});
  merge(ctx, parts);
  EXPECT_EQ(last, 1);
  last = 0;
  merge(ctx, sources);
  EXPECT_EQ(last, 1);
  token.cancel();
  refused([&] { merge(ctx, parts); }, ErrorCode::cancelled, "");
  refused([&] { merge(ctx, sources); }, ErrorCode::cancelled, "");
  refused([&] { merge_counts(ctx, std::vector{count_part(ctx_, table(), table(), {.radius = 1}, {})}); },
          ErrorCode::cancelled, "");
  refused([&] { knn_part(ctx, table(), table(), {.k = 4000}, {}); }, ErrorCode::cancelled, "");
}

}  // namespace
}  // namespace vicinal::contract
