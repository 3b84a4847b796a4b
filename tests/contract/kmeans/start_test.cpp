// First centers by k-means++ and k-means|| against the reference, bit for bit (contract clause 12, draws), on data that
// a screen of them could get wrong: ties, rows far out, masses that vanish, as many centers as rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/philox.hpp"
#include "kmeans_check.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::contract {
namespace {

struct Start {
  std::string name;
  std::int64_t n;
  std::int64_t d;
  std::int64_t k;
  DType dtype;
  std::function<double(std::int64_t row, std::int64_t column, double normal)> value;
  std::function<double(std::int64_t row)> weight = nullptr;
};

// About normal, from a counter.
double start_normal(std::uint64_t seed, std::int64_t at) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += core::philox_uniform(seed, i, static_cast<std::uint64_t>(at));
  return sum;
}

std::vector<Start> starts() {
  const auto plain = [](std::int64_t, std::int64_t, double x) { return x; };
  const auto blobs = [](std::int64_t row, std::int64_t column, double x) {
    return 9 * start_normal(77, row % 40 * 1000 + column) + x;
  };
  return {
      {"normal", 2500, 33, 60, DType::float32, plain},
      {"blobs", 3000, 20, 50, DType::float32, blobs},
      {"blobs far from zero", 2100, 40, 45, DType::float64,
       [=](std::int64_t row, std::int64_t column, double x) { return 1e6 + blobs(row, column, x); }},
      {"ties", 4000, 3, 64, DType::float32, [](std::int64_t, std::int64_t, double x) { return std::floor(x + 0.5); }},
      {"every row many times", 3000, 5, 90, DType::float32,
       [](std::int64_t row, std::int64_t column, double) { return start_normal(5, row % 70 * 10 + column); }},
      {"a row far out", 2200, 8, 40, DType::float32,
       [](std::int64_t row, std::int64_t, double x) { return row == 1500 ? 1e12 : x; }},
      {"columns of all magnitudes", 2000, 12, 33, DType::float64,
       [](std::int64_t, std::int64_t column, double x) { return std::ldexp(x, 8 * static_cast<int>(column) - 40); }},
      {"as many centers as rows", 1100, 4, 1100, DType::float32, plain},
      {"nearly as many", 1150, 2, 1099, DType::float16, plain},
      {"four levels of sums", 33000, 2, 5, DType::float32, plain},
      {"bytes", 1500, 300, 30, DType::uint8, [](std::int64_t, std::int64_t, double x) { return 40 * x + 128; }},
      {"one column", 2000, 1, 70, DType::bfloat16, plain},
      {"masses that vanish", 1400, 6, 35, DType::float64, plain,
       [](std::int64_t row) { return row % 3 == 0 ? 1e-323 : std::ldexp(1.5, static_cast<int>(row % 9)); }},
      {"keys that vanish", 1300, 3, 30, DType::float64,
       [](std::int64_t row, std::int64_t, double x) { return row % 2 == 0 ? 1e-163 * x : x; }},
      // The int8 screen of the CPU:
      {"screened", 2600, 130, 170, DType::float32, plain},
      {"screened near 1e150", 1500, 30, 60, DType::float64,
       [](std::int64_t, std::int64_t, double x) { return 1e149 * x; }},
      {"screened far from zero", 1500, 30, 60, DType::float32,
       [](std::int64_t, std::int64_t, double x) { return 1e6 + std::floor(16 * x); }},
      {"screened with weights", 1700, 25, 70, DType::float32, blobs,
       [](std::int64_t row) { return 0.3 + static_cast<double>(row % 5); }},
      {"screened in float16", 1300, 50, 40, DType::float16, plain},
      {"screened with values beyond its range", 1800, 24, 50, DType::float32,
       [](std::int64_t row, std::int64_t column, double x) { return row % 9 == column % 9 ? 700 * x : x; }},
      {"screened with a dominating column", 1600, 40, 50, DType::float64,
       [](std::int64_t, std::int64_t column, double x) { return column == 3 ? 1e5 * x : x; }},
      {"screened rows of few kinds", 1200, 20, 90, DType::float32,
       [](std::int64_t row, std::int64_t column, double x) {
         return row % 12 == 0 ? 40 * x : std::floor(7 * std::cos(static_cast<double>(row % 50 * (column + 3))));
       }},
      {"nothing but small", 1300, 3, 30, DType::float64,
       [](std::int64_t, std::int64_t, double x) { return 1e-161 * x; }},
      {"screened clusters one after the other", 2600, 24, 90, DType::float32,
       [](std::int64_t row, std::int64_t column, double x) {
         return 9 * start_normal(77, row / 64 * 1000 + column) + x;
       }},
  };
}

class KMeansStart : public ::testing::TestWithParam<int> {};

TEST_P(KMeansStart, EqualsTheReference) {
  const Start start = starts()[static_cast<std::size_t>(GetParam())];
  const auto turn = static_cast<std::uint64_t>(GetParam());
  std::vector<double> rows;
  for (std::int64_t i = 0; i < start.n * start.d; ++i)
    rows.push_back(start.value(i / start.d, i % start.d, start_normal(turn, i)));
  std::vector<double> weights;
  for (std::int64_t i = 0; i < start.n && start.weight; ++i) weights.push_back(start.weight(i));
  const Stored stored(rows, start.d, start.dtype);
  for (const KMeansInit init : {KMeansInit::plus_plus, KMeansInit::parallel}) {
    if (is_left_out(2 * turn + (init == KMeansInit::parallel ? 1 : 0))) continue;
    // A device refuses them with the weights of the candidates of k-means|| (docs/limits.md).
    const bool refused = start.name == "screened near 1e150" && init == KMeansInit::parallel;
    if (refused && cuda_missing().empty()) continue;
    KMeansOptions options{.clusters = start.k, .init = init, .weights = weights, .seed = turn, .max_iterations = 1};
    options.rule = KMeansRule::classical;
    check_kmeans(stored.view(), options, start.name + ", " + text(options), turn);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KMeansStart, ::testing::Range(0, static_cast<int>(starts().size())), [](const auto& of) {
  std::string name = starts()[static_cast<std::size_t>(of.param)].name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// The int8 screen is memory for speed: a job that fits without it is not refused.
TEST(KMeansDraws, AreNotScreenedWhereMemoryIsScarce) {
  constexpr std::int64_t n = 2600;
  constexpr std::int64_t d = 130;
  std::vector<float> rows;
  for (std::int64_t i = 0; i < n * d; ++i) rows.push_back(static_cast<float>(start_normal(7, i)));
  const TableView table(rows.data(), n, d);
  for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
    KMeansOptions options{.clusters = 60, .init = KMeansInit::plus_plus, .max_iterations = 1};
    options.metric = metric;
    const Context wide = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{1} << 30});
    const std::uint64_t with = plan_kmeans(wide, table, options).memory;
    // Without an instruction for int8 there is no screen, and the plan is that of the portable code.
    const Context portable = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{1} << 30, .isa = Isa::baseline});
    if (with < plan_kmeans(portable, table, options).memory + static_cast<std::uint64_t>(n * d)) {
      GTEST_SKIP() << "this processor has no instruction for int8";
    }
    const Context narrow = Context::cpu({.threads = 2, .memory_limit = with - 1});
    const std::uint64_t without = plan_kmeans(narrow, table, options).memory;
    ASSERT_LT(without, with);
    const KMeans expected = kmeans(wide, table, options);
    const KMeans found = kmeans(narrow, table, options);
    EXPECT_EQ(found.centres, expected.centres);
    EXPECT_EQ(found.labels, expected.labels);
    EXPECT_LE(found.plan.memory, with - 1);
  }
}

}  // namespace
}  // namespace vicinal::contract
