// core/distance.hpp on rows small enough to follow by hand, and at the ends of the exponent range.

#include "core/distance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace vicinal::core {
namespace {

constexpr double kTiny = std::numeric_limits<double>::denorm_min();

TEST(Order, IsByKeyThenById) {
  EXPECT_TRUE(nearer(1, 9, 2, 0));
  EXPECT_FALSE(nearer(2, 0, 1, 9));
  EXPECT_TRUE(nearer(1, 3, 1, 4));
  EXPECT_FALSE(nearer(1, 4, 1, 4));
  EXPECT_FALSE(nearer(0.0, 4, -0.0, 3));
}

TEST(Distance, KeysOfASmallPair) {
  const std::vector<double> x = {1, 2, 3};
  const std::vector<double> y = {4, 2, 1};
  EXPECT_EQ(euclidean_key(x.data(), y.data(), 3), 13);
  EXPECT_EQ(manhattan_key(x.data(), y.data(), 3), 5);
  EXPECT_EQ(chebyshev_key(x.data(), y.data(), 3), 3);
  EXPECT_EQ(minkowski_key(x.data(), y.data(), 3, 3), 35);
  EXPECT_EQ(inner_product_key(x.data(), y.data(), 3), -11);
  EXPECT_EQ(hamming_key(x.data(), y.data(), 3), 2.0 / 3.0);
}

TEST(Distance, TheTreeOfEightAccumulatorsShows) {
  // Columns 0 and 4 meet first, so 1 is lost beside 2^53 unless its partner is 1 as well.
  std::vector<double> x(8, 0.0);
  x[0] = 0x1p53;
  x[4] = 1;
  x[1] = 1;
  EXPECT_EQ(manhattan_key(x.data(), std::vector<double>(8, 0.0).data(), 8), 0x1p53);
  x[4] = 0;
  x[5] = 1;
  EXPECT_EQ(manhattan_key(x.data(), std::vector<double>(8, 0.0).data(), 8), 0x1p53 + 2);
}

TEST(Distance, EuclideanTermsAreFused) {
  // t^2 = 1 + 2^-29 + 2^-60 does not fit. With the accumulator, a little below 2^-53, it is beyond the middle between
  // two float64; 1 + 2^-29 would not be.
  const double t = 1 + 0x1p-30;
  std::vector<double> x(9, 0.0);
  x[0] = std::nextafter(std::sqrt(0x1p-53), 0);
  x[8] = t;
  const std::vector<double> zero(9, 0.0);
  EXPECT_EQ(euclidean_key(x.data(), zero.data(), 9), 1 + 0x1p-29 + 0x1p-52);
}

TEST(Distance, AnEmptyProductIsPlusZero) {
  const std::vector<double> x = {0, 1};
  const std::vector<double> y = {1, 0};
  EXPECT_FALSE(std::signbit(inner_product_key(x.data(), y.data(), 2)));
}

TEST(Distance, MinusZeroEqualsZero) {
  const std::vector<double> x = {-0.0, 1};
  const std::vector<double> y = {0.0, 1};
  EXPECT_EQ(hamming_key(x.data(), y.data(), 2), 0);
  EXPECT_EQ(chebyshev_key(x.data(), y.data(), 2), 0);
}

TEST(Distance, RowsOfLengthOneAtBothEndsOfTheRange) {
  for (const double scale : {1.0, kTiny, 0x1p-1060, 0x1p-1022, 0x1p-500, 0x1p1020}) {
    const std::vector<double> x = {3 * scale, 4 * scale, 0};
    std::vector<double> unit(3);
    ASSERT_TRUE(normalize_row(x.data(), 3, unit.data()));
    EXPECT_EQ(unit, (std::vector<double>{3.0 / 5, 4.0 / 5, 0})) << scale;
  }
  std::vector<double> zero = {0, -0.0};
  EXPECT_FALSE(normalize_row(zero.data(), 2, zero.data()));
}

TEST(Distance, Cosine) {
  const std::vector<double> x = {1, 0};
  const std::vector<double> y = {0, 1};
  EXPECT_EQ(cosine_key_normalized(x.data(), false, x.data(), false, 2), 0);
  EXPECT_EQ(cosine_key_normalized(x.data(), false, y.data(), false, 2), 1);
  EXPECT_EQ(cosine_key_normalized(x.data(), false, x.data(), true, 2), 1);
  EXPECT_EQ(cosine_key_normalized(x.data(), true, x.data(), true, 2), 1);
}

TEST(Distance, ReportedDistances) {
  EXPECT_EQ(reported_distance(Metric::euclidean, 2, 2), std::sqrt(2.0));
  EXPECT_EQ(reported_distance(Metric::sqeuclidean, 2, 2), 2);
  EXPECT_EQ(reported_distance(Metric::minkowski, 27, 1), 27);
  EXPECT_EQ(reported_distance(Metric::minkowski, 16, 4), 2);
  EXPECT_EQ(reported_distance(Metric::inner_product, -3, 2), -3);
}

TEST(Distance, EveryPowerOfTwo) {
  for (int e = -1074; e <= 1023; ++e) EXPECT_EQ(power_of_two(e), std::ldexp(1.0, e));
}

}  // namespace
}  // namespace vicinal::core
