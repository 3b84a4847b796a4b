// The papers' selections by themselves, against a sort; their certificate's price; the k-distances of an index, in
// memory and in a file. What they answer together is the contract tests' business.
#include "cpu/nearest/papers/papers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "cpu/nearest/papers/product.hpp"
#include "cpu/nearest/papers/selection.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::cpu::papers {
namespace {

constexpr Method kMethods[] = {Method::product_kmin,  Method::product_bitonic, Method::product_timed,
                               Method::direct_filter, Method::tiled_insertion, Method::insertion,
                               Method::block_heap};

// Rows of keys that are easy, tied, masked and of every size.
std::vector<std::vector<double>> rows_of_keys() {
  std::mt19937_64 random(5);
  std::vector<std::vector<double>> rows;
  for (const std::size_t n : {1U, 2U, 31U, 32U, 33U, 64U, 65U, 1000U}) {
    std::vector<double> keys(n);
    for (double& key : keys) key = std::uniform_real_distribution<double>(0, 100)(random);
    rows.push_back(keys);
    for (double& key : keys) key = std::floor(key / 20);  // five values
    rows.push_back(keys);
    for (double& key : keys) key = key - 3;  // below zero too
    rows.push_back(keys);
    std::fill(keys.begin(), keys.end(), 0.0);
    rows.push_back(keys);
    std::fill(keys.begin(), keys.end(), -1e300);
    rows.push_back(keys);
    for (std::size_t i = 0; i < n; ++i) keys[i] = std::ldexp(1.0, static_cast<int>(i * 37 % 2000) - 1000);
    rows.push_back(keys);
    for (std::size_t i = 1; i < n; i += 3) keys[i] = kInfinity;  // no candidates
    rows.push_back(keys);
    std::sort(keys.begin(), keys.end(), std::greater<>());  // every key enters a sorted list
    rows.push_back(keys);
  }
  return rows;
}

template <class Select>
void expect_selects(const Select& select) {
  for (const std::vector<double>& keys : rows_of_keys()) {
    std::vector<std::pair<double, std::int64_t>> wanted;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] < kInfinity) wanted.emplace_back(keys[i], static_cast<std::int64_t>(i));
    }
    std::sort(wanted.begin(), wanted.end());
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}, std::size_t{7}, wanted.size()}) {
      if (k > wanted.size()) continue;
      std::vector<double> got(k, -1);
      std::vector<std::int64_t> ids(k, -1);
      select(keys, List{got.data(), ids.data(), static_cast<std::int64_t>(k)});
      for (std::size_t r = 0; r < k; ++r) {
        ASSERT_EQ(got[r], wanted[r].first) << "n " << keys.size() << " k " << k << " rank " << r;
        ASSERT_EQ(ids[r], wanted[r].second) << "n " << keys.size() << " k " << k << " rank " << r;
      }
    }
  }
}

TEST(Papers, ASortedListTakesKeysInOneGoOrByTiles) {
  expect_selects([](const std::vector<double>& keys, List list) { SortedList(list).insert(keys, 0); });
  expect_selects([](const std::vector<double>& keys, List list) {
    SortedList sorted(list);
    for (std::size_t begin = 0; begin < keys.size(); begin += 13) {
      const std::size_t size = std::min<std::size_t>(13, keys.size() - begin);
      sorted.insert({keys.data() + begin, size}, static_cast<std::int64_t>(begin));
    }
  });
}

TEST(Papers, LanesShareAHeap) {
  expect_selects([](const std::vector<double>& keys, List list) { select_by_block_heap(keys, list); });
}

TEST(Papers, AFilterNeedsNoGoodSequence) {
  const std::vector<std::vector<double>> sequences = {
      {}, {50}, {0, 0, 0, 0}, {1, 2, 3, 4, 5, 10, 20, 40}, {1e-300, 1e300}, {-7, -3}, {-1e308, 1e308}, {1e200}};
  for (const std::vector<double>& sequence : sequences) {
    Scratch scratch;
    expect_selects(
        [&](const std::vector<double>& keys, List list) { select_by_filter(keys, sequence, scratch, list); });
  }
}

TEST(Papers, BothSelectionsOfProductsGoDownTheScores) {
  const Context ctx = Context::cpu({.threads = 1});
  std::mt19937_64 random(9);
  for (const std::int64_t n : {1, 2, 3, 7, 8, 100, 1000, 1025}) {
    std::vector<float> scores(static_cast<std::size_t>(n));
    for (float& score : scores) score = std::floor(std::normal_distribution<float>(0, 20)(random));
    for (std::int64_t i = 0; i < n; i += 5)
      scores[static_cast<std::size_t>(i)] = -std::numeric_limits<float>::infinity();
    if (n > 2) scores[1] = std::numeric_limits<float>::infinity();
    std::vector<float> wanted;
    for (const float score : scores) {
      if (score > -std::numeric_limits<float>::infinity()) wanted.push_back(score);
    }
    std::sort(wanted.begin(), wanted.end(), std::greater<>());
    const std::vector<float> before = scores;
    const auto expect_order = [&](auto&& selection) {
      std::vector<bool> seen(static_cast<std::size_t>(n));
      Ranked best{};
      for (const float score : wanted) {
        ASSERT_TRUE(selection.next(best));
        EXPECT_EQ(best.score, score);
        EXPECT_EQ(before[static_cast<std::size_t>(best.row)], score);
        EXPECT_FALSE(seen[static_cast<std::size_t>(best.row)]) << "twice";
        seen[static_cast<std::size_t>(best.row)] = true;
      }
      EXPECT_FALSE(selection.next(best));
    };
    Scratch scratch;
    expect_order(BitonicSort(ctx, scores.data(), n, scratch));
    expect_order(KMinSearch(scores.data(), n, scratch));
  }
}

std::vector<float> normal_rows(std::int64_t rows, std::int64_t cols) {
  std::mt19937_64 random(3);
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  for (float& v : values) v = std::normal_distribution<float>()(random);
  return values;
}

TEST(Papers, AProductRanksLittleMoreThanTheAnswer) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<float> data = normal_rows(5000, 24);
  const TableView table(data.data(), 5000, 24);
  for (const Method method : {Method::product_kmin, Method::product_bitonic}) {
    const NeighborGraph graph = knn(ctx, table, table.slice(0, 100), {.k = 10, .method = method});
    EXPECT_EQ(graph.plan.method, method);
    EXPECT_EQ(graph.plan.screens, "float32");
    // 4 k + 64 rows give the first limit.
    EXPECT_LT(graph.stats.survivors, 100 * (4 * 10 + 64 + 3 * 10));
    EXPECT_EQ(graph.ids, knn(ctx, table, table.slice(0, 100), {.k = 10, .method = Method::direct}).ids);
  }
}

TEST(Papers, AnswerAlikeWhateverTheThreads) {
  const std::vector<float> data = normal_rows(700, 7);
  const TableView table(data.data(), 700, 7);
  const NeighborGraph wanted = knn(Context::cpu({.threads = 1}), table, {.k = 9, .method = Method::direct});
  for (const Method method : kMethods) {
    for (const int threads : {1, 3}) {
      const NeighborGraph graph = knn(Context::cpu({.threads = threads}), table, {.k = 9, .method = method});
      EXPECT_EQ(graph.ids, wanted.ids) << name_of(method);
      EXPECT_EQ(graph.distances, wanted.distances) << name_of(method);
    }
  }
}

TEST(Papers, AreRefusedWhereTheyDoNotFit) {
  const std::vector<float> data = normal_rows(3000, 40);
  const TableView table(data.data(), 3000, 40);
  const Context small = Context::cpu({.threads = 1, .memory_limit = 700000});
  for (const Method method : kMethods) {
    const Plan plan = plan_knn(small, table, nullptr, {.k = 3, .method = method});
    EXPECT_GT(plan.memory, 0U);
    if (plan.memory <= small.memory_limit()) continue;
    try {
      static_cast<void>(knn(small, table, {.k = 3, .method = method}));
      ADD_FAILURE() << name_of(method) << " took " << plan.memory;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::over_memory);
    }
  }
}

TEST(Papers, KDistancesStayInTheIndexAndItsFile) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<float> data = normal_rows(3000, 4);
  const TableView table(data.data(), 3000, 4);
  const Index index(ctx, table);
  EXPECT_EQ(kernels::prepared_of(index).k_distances.get(), nullptr);
  const NeighborGraph wanted = knn(ctx, index, {.k = 6, .method = Method::direct_filter});
  const auto distances = kernels::prepared_of(index).k_distances.get();
  ASSERT_NE(distances, nullptr);
  EXPECT_EQ(distances->k, 6);
  EXPECT_EQ(distances->keys.size(), 1024U);
  EXPECT_TRUE(std::is_sorted(distances->keys.begin(), distances->keys.end()));
  // Every second row was sampled: the 6th neighbor of row 0 is among them.
  const double sixth = wanted.distances_of(0)[5] * wanted.distances_of(0)[5];
  EXPECT_TRUE(std::any_of(distances->keys.begin(), distances->keys.end(),
                          [&](double key) { return std::fabs(key - sixth) < 1e-12 * sixth; }));
  static_cast<void>(knn(ctx, index, {.k = 6, .method = Method::direct_filter}));
  EXPECT_EQ(kernels::prepared_of(index).k_distances.get(), distances) << "made again";

  const auto path = std::filesystem::path(testing::TempDir()) / ("vicinal_papers_" + std::to_string(getpid()));
  index.save(ctx, path);
  const Index loaded = Index::load(ctx, path);
  std::filesystem::remove(path);
  const auto read = kernels::prepared_of(loaded).k_distances.get();
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->keys, distances->keys);
  EXPECT_EQ(read->k, 6);
  EXPECT_EQ(read->metric, Metric::euclidean);
  const NeighborGraph got = knn(ctx, loaded, {.k = 6, .method = Method::direct_filter});
  EXPECT_EQ(got.ids, wanted.ids);
  EXPECT_EQ(got.distances, wanted.distances);
  EXPECT_EQ(kernels::prepared_of(loaded).k_distances.get(), read);
  static_cast<void>(knn(ctx, loaded, {.k = 7, .method = Method::direct_filter}));
  EXPECT_EQ(kernels::prepared_of(loaded).k_distances.get()->k, 7);
}

}  // namespace
}  // namespace vicinal::cpu::papers
