// Clause 26: the merged parts of any shards are what the whole search finds. Every metric and dtype, 1 to 7 shards of
// unequal sizes, one of them smaller than k, searched on different devices, instruction sets and methods, merged in any
// order; compared with the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "parts_check.hpp"
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

// Their distances from a query of one value are the same but for rounding: many have different keys, and the same root.
TEST(Parts, AreMergedByKeysAndNotByDistances) {
  constexpr std::int64_t kCols = 24;
  constexpr std::int64_t kNeighbors = 10;
  for (const auto& [metric, p] : {std::pair(Metric::euclidean, 2.0), std::pair(Metric::minkowski, 3.0)}) {
    const bool slow = metric == Metric::minkowski;
    const std::int64_t n = slow ? 100 : 600;
    const std::int64_t m = slow ? 25 : 200;
    const std::vector<double> rows = permuted_decimals(n, kCols, 7);
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

}  // namespace
}  // namespace vicinal::contract
