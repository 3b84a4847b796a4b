// Faults that were found once in the CPU search, each by the input that showed it.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "core/philox.hpp"
#include "vicinal/knn.hpp"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace vicinal {
namespace {

std::vector<float> regression_rows(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  std::vector<float> rows(static_cast<std::size_t>(n * d));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(core::philox_uniform(seed, 0, i));
  return rows;
}

// The sample that seeds the thresholds judged self, filter and exclusions by a dead variable: neighbors were lost.
TEST(SearchRegression, TheSampleLeavesOutWhoMayNotBeANeighbor) {
  struct Case {
    std::int64_t n, d, k;
  };
  const Context ctx = Context::cpu({.threads = 2});
  for (const Case c : {Case{1567, 3, 1}, {2430, 5, 2}, {4001, 2, 1}}) {
    const std::vector<float> rows = regression_rows(c.n, c.d, 17);
    const TableView table(rows.data(), c.n, c.d);
    std::vector<std::uint64_t> filter(static_cast<std::size_t>((c.n + 63) / 64), 0x5555555555555555U);
    std::vector<std::int64_t> exclude(static_cast<std::size_t>(c.n));
    for (std::int64_t i = 0; i < c.n; ++i) exclude[i] = (i * 7) % c.n;
    for (const Bitmap allowed : {Bitmap{}, Bitmap{filter}}) {
      for (const std::span<const std::int64_t> excluded : {std::span<const std::int64_t>{}, {exclude}}) {
        KnnOptions options{.k = c.k, .method = Method::fused, .filter = allowed, .exclude = excluded};
        const NeighborGraph fused = knn(ctx, table, options);
        options.method = Method::direct;
        const NeighborGraph direct = knn(ctx, table, options);
        EXPECT_EQ(fused.ids, direct.ids) << c.n << " x " << c.d;
        EXPECT_EQ(fused.distances, direct.distances) << c.n << " x " << c.d;
      }
    }
  }
}

// Work outside the pool's tasks ran in whatever floating-point environment the caller had.
TEST(SearchRegression, TheRoundingModeOfTheCallerDoesNotShow) {
  const std::vector<double> rows = {0, 0, 0, 1, 1, 1};
  const std::vector<double> queries(3 * 64, 0.0);
  const Context ctx = Context::cpu({.threads = 1});
  const Index index(ctx, TableView(rows.data(), 2, 3));
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  const NeighborCounts counts = count(ctx, index, TableView(queries.data(), 64, 3), {.radius = 1.7320508075688772});
  std::fesetround(before);
  EXPECT_EQ(counts.counts, std::vector<std::int64_t>(64, 2));
}

#if defined(__x86_64__)
TEST(SearchRegression, FlushingSwitchedOnByTheCallerDoesNotShow) {
  const std::vector<float> rows = {0, 1e-40F};
  const float query = 1e-40F;
  const Context ctx = Context::cpu({.threads = 1});
  const TableView queries = TableView::blocks(
      DType::float32, 1, 1, [&](std::int64_t, std::int64_t, void* to) { std::memcpy(to, &query, sizeof query); });
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040U);  // flush to zero, denormals are zero
  const NeighborGraph graph = knn(ctx, TableView(rows.data(), 2, 1), queries, {.k = 1});
  _mm_setcsr(before);
  EXPECT_EQ(graph.ids, std::vector<std::int64_t>{1});
}
#endif

TEST(SearchRegression, AnIndexWhoseDeviationOverflowsIsLoadedAgain) {
  const std::vector<double> rows = {1e308, -1e308};
  const Context ctx = Context::cpu({.threads = 1});
  const auto path = std::filesystem::path(testing::TempDir()) / "vicinal_far_apart.index";
  Index(ctx, TableView(rows.data(), 2, 1)).save(ctx, path);
  const Index index = Index::load(ctx, path);
  std::filesystem::remove(path);
  EXPECT_EQ(knn(ctx, index, {.k = 1, .metric = Metric::cosine}).distances, (std::vector<double>{2, 2}));
}

TEST(SearchRegression, RowsNeedNotBeAligned) {
  const std::vector<float> rows = regression_rows(300, 5, 23);
  std::vector<std::byte> shifted(rows.size() * sizeof(float) + 1);
  std::memcpy(shifted.data() + 1, rows.data(), rows.size() * sizeof(float));
  const Context ctx = Context::cpu({.threads = 1});
  const TableView odd(shifted.data() + 1, DType::float32, 300, 5, 5);
  for (const Method method : {Method::fused, Method::direct}) {
    EXPECT_EQ(knn(ctx, odd, {.k = 3, .method = method}).ids,
              knn(ctx, TableView(rows.data(), 300, 5), {.k = 3, .method = method}).ids);
  }
}

// Rows whose hashes were made to collide took time quadratic in their number; whatever the hash, the answer is the
// same.
TEST(SearchRegression, RowsMadeToShareAHashAreToldApart) {
  constexpr std::int64_t kRows = 4096;
  std::vector<std::uint8_t> rows(kRows * 16);
  for (std::int64_t i = 0; i < kRows; ++i) {
    const auto first = static_cast<std::uint64_t>(i / 2) * 0x0101010101U;  // each row twice
    const std::uint64_t second = first ^ 3;
    std::memcpy(rows.data() + i * 16, &first, 8);
    std::memcpy(rows.data() + i * 16 + 8, &second, 8);
  }
  const Context ctx = Context::cpu({.threads = 2});
  const NeighborGraph graph = knn(ctx, TableView(rows.data(), kRows, 16), {.k = 1});
  for (std::int64_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(graph.ids_of(i)[0], i ^ 1);
  }
}

}  // namespace
}  // namespace vicinal
