// The lemma few_queries.bound: float32 sums, in the order of cuda/nearest/few_rows.cuh, of pairs of rows and their
// keys.
#include "formulas/nearest/few_queries.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "core/distance.hpp"

namespace vicinal {
namespace {

/// As the device adds: eight lanes of four columns each, then the lanes.
float narrow_sum(const std::vector<float>& x, const std::vector<float>& y) {
  float lanes[8] = {};
  for (std::size_t j = 0; j < x.size(); ++j) {
    const float t = y[j] - x[j];
    float& sum = lanes[j / 4 % 8];
    sum = std::fma(t, t, sum);
  }
  for (const std::size_t step : {4U, 2U, 1U}) {
    for (std::size_t lane = 0; lane < step; ++lane) lanes[lane] += lanes[lane + step];
  }
  return lanes[0];
}

double key(const std::vector<float>& x, const std::vector<float>& y) {
  const std::vector<double> a(x.begin(), x.end());
  const std::vector<double> b(y.begin(), y.end());
  return core::euclidean_key(a.data(), b.data(), static_cast<std::int64_t>(a.size()));
}

/// The bound as the device has it.
float bound_of(double limit, std::int64_t d) {
  const double exact = core::few_queries_bound(limit, d);
  const auto rounded = static_cast<float>(exact);
  return static_cast<double>(rounded) < exact ? std::nextafter(rounded, std::numeric_limits<float>::infinity())
                                              : rounded;
}

TEST(FewQueries, NoSumOfAPairWithinTheLimitIsAboveTheBound) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> positive(0.0F, 1.0F);
  const std::vector<std::function<float()>> kinds = {
      [&] { return normal(random); },
      [&] { return 1e6F + normal(random); },
      [&] { return 2.8e-23F + 1e-25F * positive(random); },  // squares are rounded up to the least number
      [&] { return 1e-41F * normal(random); },
      [&] { return 1e19F * normal(random); },  // squares above it
      [&] { return 3e38F * (positive(random) - 0.5F); },
      [&] { return std::ldexp(positive(random), static_cast<int>(random() % 40) - 20); },
  };
  std::int64_t closest = 0;
  for (const std::int64_t d : {1, 3, 4, 31, 32, 33, 128, 1000, 20000}) {
    for (const auto& value : kinds) {
      for (int pair = 0; pair < 50; ++pair) {
        std::vector<float> x(static_cast<std::size_t>(d));
        std::vector<float> y(x.size());
        for (float& v : x) v = value();
        for (float& v : y) v = pair % 2 == 0 ? 0.0F : value();
        const double exact = key(x, y);
        const float sum = narrow_sum(x, y);
        EXPECT_FALSE(sum > bound_of(exact, d)) << d << " columns, key " << exact << ", sum " << sum;
        if (static_cast<double>(sum) > exact) ++closest;
      }
    }
  }
  EXPECT_GT(closest, 500);  // the bound is needed: sums are above keys
}

TEST(FewQueries, AreThoseOfNarrowRowsAndSquares) {
  using core::few_queries_serve;
  EXPECT_TRUE(few_queries_serve(Metric::euclidean, DType::float32, DType::float16, 8, 65536, 1024));
  EXPECT_TRUE(few_queries_serve(Metric::sqeuclidean, DType::uint8, DType::bfloat16, 1, 1, 1));
  EXPECT_TRUE(few_queries_serve(Metric::euclidean, DType::bfloat16, DType::uint8, 16, 8, 1));
  EXPECT_FALSE(few_queries_serve(Metric::euclidean, DType::float32, DType::float32, 17, 8, 1));
  EXPECT_FALSE(few_queries_serve(Metric::euclidean, DType::uint8, DType::float32, 9, 8, 1));
  EXPECT_FALSE(few_queries_serve(Metric::euclidean, DType::float32, DType::float32, 1, 65537, 1));
  EXPECT_FALSE(few_queries_serve(Metric::euclidean, DType::float32, DType::float32, 1, 8, 1025));
  EXPECT_FALSE(few_queries_serve(Metric::euclidean, DType::float64, DType::float32, 1, 8, 1));
  EXPECT_FALSE(few_queries_serve(Metric::euclidean, DType::float32, DType::float64, 1, 8, 1));
  EXPECT_FALSE(few_queries_serve(Metric::cosine, DType::float32, DType::float32, 1, 8, 1));
}

}  // namespace
}  // namespace vicinal
