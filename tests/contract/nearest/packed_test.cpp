// Packed rows that an index keeps: searches of one index, one after the other and at once, by several metrics and
// screens, with filters and within the table itself. All are compared with the keys of every row (Method::direct),
// which the other tests compare with the reference, and those of small tables with the reference itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr Metric kScreened[] = {Metric::euclidean, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

void expect_equal(const NeighborGraph& got, const NeighborGraph& wanted, const std::string& what) {
  EXPECT_EQ(got.ids, wanted.ids) << what;
  EXPECT_EQ(got.distances, wanted.distances) << what;
  EXPECT_EQ(got.offsets, wanted.offsets) << what;
}

/// One bit in three.
std::vector<std::uint64_t> third_of(std::int64_t n) {
  std::vector<std::uint64_t> filter(static_cast<std::size_t>((n + 63) / 64), 0);
  for (std::int64_t i = 0; i < n; i += 3) filter[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64);
  return filter;
}

class PackedIndex : public ::testing::TestWithParam<std::tuple<Metric, DType>> {
 protected:
  void SetUp() override {
    if (std::string(getenv("VICINAL_TEST_DEVICE") != nullptr ? getenv("VICINAL_TEST_DEVICE") : "") == "cuda") {
      GTEST_SKIP() << "packed rows are the CPU's";
    }
  }
  [[nodiscard]] Metric metric() const { return std::get<0>(GetParam()); }
  [[nodiscard]] DType dtype() const { return std::get<1>(GetParam()); }
};

// The first search packs, the second finds what it packed; then fewer queries, which now are screened, lists of other
// lengths, a radius, counts, a filter, excluded rows, the table within itself, and another metric between them.
TEST_P(PackedIndex, RepeatedSearchesOfOneIndex) {
  std::uint64_t turn = static_cast<std::uint64_t>(metric()) * 5 + static_cast<std::uint64_t>(dtype());
  for (const Family family : {Family::gaussian, Family::integer_ties, Family::mostly_duplicates, Family::offset,
                              Family::clusters_1e3, Family::zero_rows}) {
    if (is_left_out(++turn)) continue;
    const Shape shape = {sanitized<std::int64_t>(2311, 1111), turn % 2 == 0 ? 33 : 12, 47};
    const Rows rows = make_rows(family, shape, turn);
    const Stored table(rows.table, shape.d, dtype(), turn % 3 == 0 ? Layout::padded : Layout::contiguous);
    const Stored asked(rows.queries, shape.d, dtype(), Layout::contiguous);
    const auto filter = third_of(shape.n);
    std::vector<std::int64_t> exclude;
    for (std::int64_t q = 0; q < shape.m; ++q) exclude.push_back(q % 3 == 0 ? -1 : q * 31 % shape.n);
    for (const Isa isa : available_isas()) {
      const Context& ctx = context_of(isa, std::max(kFewestThreads, static_cast<int>(turn % 3) + 1));
      const Index index(ctx, table.view());
      const Index truth(ctx, table.view(), {.packed = Packing::never});
      const auto compare = [&](KnnOptions options, std::int64_t queries, const char* what) {
        const TableView some = asked.view().slice(0, queries);
        KnnOptions every = options;
        every.method = Method::direct;
        every.screen = ScreenType::automatic;
        expect_equal(knn(ctx, index, some, options), knn(ctx, truth, some, every),
                     std::string(name_of(family)) + " " + std::string(name_of(isa)) + ", " + what);
      };
      const KnnOptions options = {.k = 10, .metric = metric()};
      compare(options, 47, "first");
      compare(options, 47, "second");
      compare(options, 1, "one query");
      compare(options, 13, "few queries");
      compare({.k = 1, .metric = metric()}, 5, "k = 1");
      compare({.k = 300, .metric = metric()}, 30, "k = 300");
      KnnOptions other = options;
      other.metric = metric() == Metric::cosine ? Metric::euclidean : Metric::cosine;
      compare(other, 47, "another metric");
      for (const ScreenType screen : {ScreenType::int8, ScreenType::bfloat16, ScreenType::float32}) {
        KnnOptions of_screen = options;
        of_screen.method = Method::fused;
        of_screen.screen = screen;
        compare(of_screen, 47, "a screen");
        compare(of_screen, 2, "a screen again");
      }
      KnnOptions fewer = options;
      fewer.filter = filter;
      fewer.exclude = exclude;
      compare(fewer, 47, "filtered");
      fewer.method = Method::fused;
      compare(fewer, 47, "filtered and fused");
      compare(options, 47, "last");
      expect_equal(knn(ctx, index, options), knn(ctx, truth, {.k = 10, .metric = metric(), .method = Method::direct}),
                   "within itself");
      const NeighborGraph lists = knn(ctx, truth, asked.view(), options);
      RadiusOptions within = {.radius = lists.distances[4], .metric = metric(), .method = Method::fused};
      if (metric() != Metric::inner_product && !(within.radius >= 0)) continue;
      RadiusOptions direct = within;
      direct.method = Method::direct;
      expect_equal(radius(ctx, index, asked.view(), within), radius(ctx, truth, asked.view(), direct), "radius");
      EXPECT_EQ(count(ctx, index, asked.view(), within).counts, count(ctx, truth, asked.view(), direct).counts);
    }
  }
}

// Several threads search one index at once that has nothing packed yet: each is right, and so is whoever comes later.
TEST_P(PackedIndex, SearchedByThreadsAtOnce) {
  const Shape shape = {sanitized<std::int64_t>(9001, 3001), 16, 31};
  const Rows rows = make_rows(Family::gaussian, shape, 7);
  const Stored table(rows.table, shape.d, dtype(), Layout::contiguous);
  const Stored asked(rows.queries, shape.d, dtype(), Layout::contiguous);
  const Context& ctx = context_of(available_isas().back(), 2);
  const KnnOptions options = {.k = 5, .metric = metric(), .method = Method::fused};
  const NeighborGraph wanted =
      knn(ctx, table.view(), asked.view(), {.k = 5, .metric = metric(), .method = Method::direct});
  const Index index(ctx, table.view());
  constexpr int kThreads = 4;
  std::vector<NeighborGraph> found(2 * kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> waiting{kThreads};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Context own = Context::cpu({.threads = 2});  // pools of one context take turns
      waiting.fetch_sub(1);
      while (waiting.load() > 0) std::this_thread::yield();
      found[static_cast<std::size_t>(2 * t)] = knn(own, index, asked.view(), options);
      found[static_cast<std::size_t>(2 * t + 1)] = knn(own, index, asked.view(), options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const NeighborGraph& graph : found) expect_equal(graph, wanted, "at once");
  expect_equal(knn(ctx, index, asked.view(), options), wanted, "afterwards");
}

// What is counted does not depend on the number of threads.
TEST_P(PackedIndex, SameStatisticsForEveryNumberOfThreads) {
  const Shape shape = {5003, 24, 40};
  const Rows rows = make_rows(Family::clusters_1e3, shape, 3);
  const Stored table(rows.table, shape.d, dtype(), Layout::contiguous);
  const Stored asked(rows.queries, shape.d, dtype(), Layout::contiguous);
  std::vector<SearchStats> stats;
  for (const int threads : {1, 2, 3, 7}) {
    const Context& ctx = context_of(available_isas().back(), threads);
    const Index index(ctx, table.view(), {.packed = Packing::now});
    stats.push_back(knn(ctx, index, asked.view(), {.k = 7, .metric = metric(), .method = Method::fused}).stats);
    EXPECT_EQ(stats.back().survivors, stats.front().survivors) << threads;
    EXPECT_EQ(stats.back().escalated, stats.front().escalated) << threads;
    EXPECT_EQ(stats.back().uncertified, stats.front().uncertified) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Search, PackedIndex,
                         ::testing::Combine(::testing::ValuesIn(kScreened),
                                            ::testing::Values(DType::uint8, DType::float16, DType::bfloat16,
                                                              DType::float32, DType::float64)),
                         [](const auto& of) {
                           return std::string(name_of(std::get<0>(of.param))) + "_" +
                                  std::string(name_of(std::get<1>(of.param)));
                         });

}  // namespace
}  // namespace vicinal::contract
