// Pruned rows of an index: searches of few queries by every metric that they serve, of tables whose variance lies in
// few directions and of tables that are hard for a bound in few columns. All are compared with the keys of every row
// (Method::direct), which the other tests compare with the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "core/philox.hpp"
#include "data.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr std::int64_t kPrunedRows = 6000;
constexpr std::int64_t kPrunedCols = 64;
constexpr std::int64_t kPrunedQueries = 37;

enum class Hard : std::uint8_t {
  heavy_tailed,    // standard deviations 1, 1/2, 1/3, ..
  low_rank,        // six directions
  flat,            // every direction alike
  shells,          // on spheres in eight directions, queries at their center
  dominating,      // one column times 1e4
  offset,          // heavy-tailed, 1e6 away from 0
  duplicates,      // each row four times
  beyond_float32,  // heavy-tailed times 1e30: float32 holds no squares
  vanishing,       // times 1e-310
  outlier,         // one row 1e9 away
  zero_rows,       // every third row is 0
};
constexpr int kHard = static_cast<int>(Hard::zero_rows) + 1;
constexpr std::array<const char*, kHard> kHardNames = {"heavy_tailed", "low_rank", "flat",       "shells",
                                                       "dominating",   "offset",   "duplicates", "beyond_float32",
                                                       "vanishing",    "outlier",  "zero_rows"};

double normal(std::uint64_t stream, std::int64_t at) {
  const double u = 1 - core::philox_uniform(11, stream, static_cast<std::uint64_t>(2 * at));
  const double v = core::philox_uniform(11, stream, static_cast<std::uint64_t>(2 * at + 1));
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

/// Directions are turned by a reflection, so that no column is one of them.
std::vector<double> rows_of(Hard hard, std::int64_t count, std::uint64_t stream) {
  std::vector<double> rows(static_cast<std::size_t>(count * kPrunedCols));
  for (std::int64_t i = 0; i < count; ++i) {
    double* const row = rows.data() + i * kPrunedCols;
    const std::int64_t drawn = hard == Hard::duplicates && stream == 0 ? i / 4 : i;
    double square = 0;
    for (std::int64_t j = 0; j < kPrunedCols; ++j) {
      double deviation = 1 / static_cast<double>(j + 1);
      if (hard == Hard::flat) deviation = 1;
      if (hard == Hard::low_rank) deviation = j < 6 ? 1 : 0;
      if (hard == Hard::shells) deviation = j < 8 ? 1 : 0;
      row[j] = deviation * normal(stream, drawn * kPrunedCols + j);
      square += row[j] * row[j];
    }
    if (hard == Hard::shells) {  // queries 0, 5, .. at the center
      const double radius = stream == 1 ? (i % 5 == 0 ? 0 : 1) : static_cast<double>(1 + i % 3);
      for (std::int64_t j = 0; j < kPrunedCols; ++j) row[j] *= radius / std::sqrt(square);
    }
    double along = 0;
    double length = 0;
    for (std::int64_t j = 0; j < kPrunedCols; ++j) {
      along += row[j] * static_cast<double>(1 + j % 5);
      length += static_cast<double>((1 + j % 5) * (1 + j % 5));
    }
    for (std::int64_t j = 0; j < kPrunedCols; ++j) {
      row[j] -= 2 * along / length * static_cast<double>(1 + j % 5);
      if (hard == Hard::dominating && j == 7) row[j] *= 1e4;
      if (hard == Hard::offset) row[j] += 1e6;
      if (hard == Hard::beyond_float32) row[j] *= 1e30;
      if (hard == Hard::vanishing) row[j] *= 1e-310;
      if (hard == Hard::outlier && stream == 0 && i == 123) row[j] *= 1e9;
      if (hard == Hard::zero_rows && i % 3 == 0) row[j] = 0;
    }
  }
  return rows;
}

void expect_same_lists(const NeighborGraph& got, const NeighborGraph& wanted, const std::string& what) {
  EXPECT_EQ(got.ids, wanted.ids) << what;
  EXPECT_EQ(got.distances, wanted.distances) << what;
}

/// Contexts that are made meanwhile use pruned rows whether or not a sample says that they pay.
struct Always {
  Always() { static_cast<void>(setenv("VICINAL_ABLATION", "pruning-forecast", 1)); }
  Always(const Always&) = delete;
  Always& operator=(const Always&) = delete;
  ~Always() { static_cast<void>(unsetenv("VICINAL_ABLATION")); }
};
Context always_on(Isa isa, int threads) {
  const Always always;
  return Context::cpu({.threads = threads, .isa = isa});
}

bool is_pruned(const Plan& plan) {
  return plan.screens.find("rotated columns") != std::string::npos;
}

bool is_of_device() {
  const char* const device = getenv("VICINAL_TEST_DEVICE");
  return device != nullptr && std::string(device) == "cuda";
}

class PrunedIndex : public ::testing::TestWithParam<std::tuple<Metric, int>> {
 protected:
  void SetUp() override {
    if (is_of_device()) GTEST_SKIP() << "pruned rows are the CPU's";
  }
  [[nodiscard]] Metric metric() const { return std::get<0>(GetParam()); }
  [[nodiscard]] Hard hard() const { return static_cast<Hard>(std::get<1>(GetParam())); }
};

TEST_P(PrunedIndex, FewQueriesHaveTheNeighborsOfBruteForce) {
  const std::uint64_t turn = static_cast<std::uint64_t>(metric()) + static_cast<std::uint64_t>(hard());
  const bool needs_double = hard() == Hard::vanishing;
  const DType dtype = needs_double || turn % 2 == 0 ? DType::float64 : DType::float32;
  const Stored table(rows_of(hard(), kPrunedRows, 0), kPrunedCols, dtype,
                     turn % 3 == 0 ? Layout::padded : Layout::contiguous);
  const Stored asked(rows_of(hard(), kPrunedQueries, 1), kPrunedCols, dtype, Layout::contiguous);
  std::vector<std::uint64_t> filter(static_cast<std::size_t>((kPrunedRows + 63) / 64), 0);
  for (std::int64_t i = 0; i < kPrunedRows; i += 3)
    filter[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64);
  std::vector<std::int64_t> exclude;
  for (std::int64_t q = 0; q < kPrunedQueries; ++q) exclude.push_back(q % 3 == 0 ? -1 : q * 31 % kPrunedRows);
  const TableView all = asked.view();
  struct Search {
    const char* what;
    TableView queries;
    KnnOptions options;
  };
  std::vector<Search> searches = {
      {"one query", all.slice(0, 1), {.k = 10}},
      {"again", all.slice(0, 1), {.k = 10}},
      {"k = 1", all.slice(0, 5), {.k = 1}},
      {"k = 100", all.slice(0, 5), {.k = 100}},
      {"all queries", all, {.k = 10}},
      {"a filter", all.slice(3, 9), {.k = 10, .filter = filter}},
      {"rows left out", all, {.k = 10, .filter = filter, .exclude = exclude}},
      {"rows of the table", table.view().slice(100, 113), {.k = 3}},
      {"fused", all.slice(0, 2), {.k = 10, .method = Method::fused}},
      {"within a radius", all.slice(0, 2), {.k = 10, .max_radius = 0.5}},
  };
  // Of one instruction set: every other one has the same bits.
  const Context& fastest = context_of(available_isas().back(), kFewestThreads);
  const Index truth(fastest, table.view(), {.packed = Packing::never});
  std::vector<NeighborGraph> wanted;
  for (Search& search : searches) {
    search.options.metric = metric();
    KnnOptions every = search.options;
    every.method = Method::direct;
    wanted.push_back(knn(fastest, truth, search.queries, every));
  }
  for (const Isa isa : available_isas()) {
    const int threads = std::max(kFewestThreads, static_cast<int>(turn % 3) + 1);
    const Context& plain = context_of(isa, threads);
    const Context always = always_on(isa, threads);
    const Plan packs = plan_knn(plain, table.view(), &all, {.metric = metric(), .method = Method::fused});
    const bool bytes = packs.screens.rfind("int8", 0) == 0;  // which have products of their own here
    for (const bool forced : {false, true}) {
      const Context& ctx = forced ? always : plain;
      const Index index(ctx, table.view(),
                        {.packed = forced ? Packing::never : Packing::automatic, .pruned = Packing::automatic});
      std::vector<Plan> plans;
      for (std::size_t i = 0; i < searches.size(); ++i) {
        KnnOptions options = searches[i].options;
        if (forced) options.method = Method::fused;  // not by a tree
        const NeighborGraph found = knn(ctx, index, searches[i].queries, options);
        expect_same_lists(found, wanted[i], std::string(name_of(isa)) + ", " + searches[i].what);
        plans.push_back(found.plan);
      }
      const bool easy = hard() == Hard::low_rank;
      if (easy && bytes && metric() != Metric::inner_product) {
        EXPECT_TRUE(is_pruned(plans[0]) || plans[0].method == Method::kdtree);
      }
      // Of values that small there are no images; cosine brings them to length one.
      const bool has_images = hard() != Hard::vanishing || metric() == Metric::cosine;
      if (forced && bytes && has_images) {
        EXPECT_TRUE(is_pruned(plans[4]));  // all queries
      }
    }
  }
}

// An index with a tree keeps to it where the planner takes it.
TEST(PrunedIndexPlan, ATreeIsTakenAsBefore) {
  const Stored table(rows_of(Hard::low_rank, kPrunedRows, 0), kPrunedCols, DType::float64);
  const Context& ctx = context_of(available_isas().back(), 2);
  const TableView query = table.view().slice(7, 8);
  const Index plain(ctx, table.view(), {.tree = true, .packed = Packing::never});
  const Index pruned(ctx, table.view(), {.tree = true, .pruned = Packing::automatic});
  for (const Method method : {Method::kdtree, Method::automatic}) {
    const NeighborGraph wanted = knn(ctx, plain, query, {.k = 5, .method = method});
    const NeighborGraph found = knn(ctx, pruned, query, {.k = 5, .method = method});
    expect_same_lists(found, wanted, std::string(name_of(method)));
    if (wanted.plan.method == Method::kdtree && found.plan.method == Method::kdtree) {
      EXPECT_FALSE(is_pruned(found.plan));
    }
    if (method == Method::kdtree) {
      EXPECT_EQ(found.plan.method, Method::kdtree);
    }
  }
}

// One look at a sample serves all threads; a cancelled one leaves nothing behind.
TEST(PrunedIndexPlan, ManyThreadsAskAFreshIndex) {
  if (is_of_device()) GTEST_SKIP() << "pruned rows are the CPU's";
  const Stored table(rows_of(Hard::low_rank, kPrunedRows, 0), kPrunedCols, DType::float64);
  const Stored asked(rows_of(Hard::low_rank, kPrunedQueries, 1), kPrunedCols, DType::float64);
  const Context always = always_on(available_isas().back(), kFewestThreads);
  const Index plain(always, table.view(), {.packed = Packing::never});
  const NeighborGraph wanted = knn(always, plain, asked.view(), {.k = 6, .method = Method::direct});
  const Index index(always, table.view(), {.pruned = Packing::automatic});
  const CancelToken token;
  token.cancel();
  const Context cancelled = Context::cpu({.threads = kFewestThreads, .cancel = token});
  refused([&] { (void)knn(cancelled, index, asked.view(), {.k = 6, .method = Method::fused}); }, ErrorCode::cancelled,
          "cancelled");
  std::vector<std::jthread> threads;
  std::vector<NeighborGraph> found(4);
  for (NeighborGraph& graph : found) {
    threads.emplace_back([&graph, &always, &index, &asked] {
      graph = knn(always, index, asked.view(), {.k = 6, .method = Method::fused});
    });
  }
  threads.clear();
  for (const NeighborGraph& graph : found) expect_same_lists(graph, wanted, "one of many threads");
}

// What is counted does not depend on the number of threads.
TEST_P(PrunedIndex, SameStatisticsForEveryNumberOfThreads) {
  const Stored table(rows_of(hard(), kPrunedRows, 0), kPrunedCols, DType::float64);
  const Stored asked(rows_of(hard(), kPrunedQueries, 1), kPrunedCols, DType::float64);
  std::vector<SearchStats> stats;
  for (const int threads : {1, 2, 3, 7}) {
    if (threads < kFewestThreads) continue;
    const Context ctx = always_on(available_isas().back(), threads);
    const Index index(ctx, table.view(), {.pruned = Packing::now});
    stats.push_back(knn(ctx, index, asked.view(), {.k = 7, .metric = metric(), .method = Method::fused}).stats);
    EXPECT_EQ(stats.back().survivors, stats.front().survivors) << threads;
    EXPECT_EQ(stats.back().escalated, stats.front().escalated) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Search, PrunedIndex,
                         ::testing::Combine(::testing::Values(Metric::euclidean, Metric::sqeuclidean,
                                                              Metric::inner_product, Metric::cosine),
                                            ::testing::Range(0, kHard)),
                         [](const auto& given) {
                           const auto hard = static_cast<std::size_t>(std::get<1>(given.param));
                           return std::string(name_of(std::get<0>(given.param))) + "_" + kHardNames[hard];
                         });

}  // namespace
}  // namespace vicinal::contract
