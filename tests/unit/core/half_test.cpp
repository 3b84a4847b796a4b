// Conversions between float16 and float64: every float16, every neighborhood of one, and doubles beyond both ends.
#include "core/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/infinity.hpp"

namespace vicinal::core {
namespace {

// Finite float16 in ascending order: -65504 is 0, -0 and 0 are one.
double nth(int n) {
  const int magnitude = std::abs(n - 0x7bff);
  return half_value(static_cast<std::uint16_t>(magnitude)) * (n < 0x7bff ? -1 : 1);
}
constexpr int kCount = 2 * 0x7bff + 1;

double rounded(double value, HalfRounding rounding) {
  return half_value(half_bits(value, rounding));
}

TEST(Half, ValuesAscendAndComeBack) {
  for (int n = 0; n < kCount; ++n) {
    ASSERT_GT(nth(n), n > 0 ? nth(n - 1) : -kInfinity);
    for (const HalfRounding way : {HalfRounding::nearest_even, HalfRounding::up, HalfRounding::down}) {
      ASSERT_EQ(rounded(nth(n), way), nth(n));
    }
  }
  EXPECT_EQ(nth(0), -kHalfMax);
  EXPECT_EQ(half_value(0x0001), 0x1p-24);
  EXPECT_EQ(half_value(0x0400), kHalfNormal);
  EXPECT_EQ(half_value(0x3c00), 1);
  EXPECT_EQ(half_value(0xc000), -2);
  EXPECT_EQ(half_value(0x7c00), kInfinity);
  EXPECT_TRUE(std::isnan(half_value(0x7e00)));
  EXPECT_EQ(half_bits(-0.0, HalfRounding::up), 0x8000);
}

TEST(Half, RoundsBetweenNeighbors) {
  for (int n = 0; n + 1 < kCount; ++n) {
    const double below = nth(n);
    const double above = nth(n + 1);
    const double middle = below + (above - below) / 2;
    const double tie = (half_bits(below, HalfRounding::up) & 1) == 0 ? below : above;
    for (const double value : {std::nextafter(below, kInfinity), std::nextafter(middle, -kInfinity), middle,
                               std::nextafter(middle, kInfinity), std::nextafter(above, -kInfinity)}) {
      ASSERT_EQ(rounded(value, HalfRounding::up), above) << value;
      ASSERT_EQ(rounded(value, HalfRounding::down), below) << value;
      ASSERT_EQ(rounded(value, HalfRounding::nearest_even), value == middle ? tie : (value < middle ? below : above))
          << value;
    }
  }
}

TEST(Half, BeyondTheEnds) {
  EXPECT_EQ(rounded(65519.99, HalfRounding::nearest_even), kHalfMax);
  EXPECT_EQ(rounded(65520, HalfRounding::nearest_even), kInfinity);
  for (const double value : {65504.001, 65536.0, 1e10, 1e300}) {
    EXPECT_EQ(rounded(value, HalfRounding::up), kInfinity);
    EXPECT_EQ(rounded(value, HalfRounding::down), kHalfMax);
    EXPECT_EQ(rounded(-value, HalfRounding::up), -kHalfMax);
    EXPECT_EQ(rounded(-value, HalfRounding::down), -kInfinity);
  }
  for (const HalfRounding way : {HalfRounding::nearest_even, HalfRounding::up, HalfRounding::down}) {
    EXPECT_EQ(rounded(kInfinity, way), kInfinity);
    EXPECT_EQ(rounded(-kInfinity, way), -kInfinity);
    EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<double>::quiet_NaN(), way)));
  }
  for (const double tiny : {5e-324, 1e-310, 1e-100, 0x1p-26}) {
    EXPECT_EQ(rounded(tiny, HalfRounding::nearest_even), 0);
    EXPECT_EQ(rounded(tiny, HalfRounding::up), 0x1p-24);
    EXPECT_EQ(rounded(tiny, HalfRounding::down), 0);
    EXPECT_EQ(rounded(-tiny, HalfRounding::up), 0);
    EXPECT_EQ(rounded(-tiny, HalfRounding::down), -0x1p-24);
  }
}

TEST(Half, FloatDownIsTheLargestFloatNotAbove) {
  for (const double value : {0.1, -0.1, 1.0, 1 + 0x1p-40, -1 - 0x1p-40, 1 - 0x1p-40, 1e-50, -1e-50, 1e-310, 3.5e38}) {
    const float below = float_down(value);
    EXPECT_LE(static_cast<double>(below), value);
    EXPECT_GT(static_cast<double>(std::nextafterf(below, std::numeric_limits<float>::infinity())), value);
  }
  EXPECT_EQ(float_down(-1e300), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float_down(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace vicinal::core
