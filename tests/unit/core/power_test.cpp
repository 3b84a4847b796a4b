// core/power.hpp against 113-bit arithmetic: the float64 itself, the error before rounding, exact middles, subnormals.

#include "core/power.hpp"

#include <gtest/gtest.h>
#include <quadmath.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/infinity.hpp"

namespace vicinal::core {
namespace {

constexpr double kTinyBase = std::numeric_limits<double>::denorm_min();

// How far powq's result is from the middle of two floats, relative; below 1e-25 it cannot judge the rounding.
bool is_judge(__float128 exact) {
  const double near = static_cast<double>(exact);
  if (near == 0 || std::isinf(near)) return true;
  const double other = exact > near ? std::nextafter(near, kInfinity) : std::nextafter(near, 0.0);
  const __float128 middle = (static_cast<__float128>(near) + other) / 2;
  return fabsq(exact - middle) > static_cast<__float128>(1e-25) * exact;
}

class Comparison {
 public:
  void check(double t, double p) {
    const __float128 exact = powq(t, p);
    ++checked_;
    if (!is_judge(exact)) return;
    const double expected = static_cast<double>(exact);
    if (power(t, p) != expected && ++wrong_ <= 5) {
      ADD_FAILURE() << std::hexfloat << "power(" << t << ", " << p << ") = " << power(t, p) << ", not " << expected;
    }
  }
  ~Comparison() { EXPECT_EQ(wrong_, 0) << "of " << checked_; }

 private:
  long checked_ = 0;
  long wrong_ = 0;
};

double uniform_power(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}
double any_exponent(std::mt19937_64& random) {
  return std::ldexp(1 + uniform_power(random), static_cast<int>(random() % 2098) - 1074);
}

TEST(Power, EqualsTheNearestFloatOverTheWholeExponentRange) {
  std::mt19937_64 random(20240601);
  Comparison comparison;
  for (int i = 0; i < 120000; ++i) {
    const double t = any_exponent(random);
    comparison.check(t, std::exp(std::log(0.5) + uniform_power(random) * std::log(200.0)));
    comparison.check(t, uniform_power(random));
    comparison.check(t, std::ldexp(1 + uniform_power(random), -static_cast<int>(random() % 80)));
    comparison.check(t, static_cast<double>(1 + random() % 64));
    comparison.check(100 * uniform_power(random), 1 + 9 * uniform_power(random));
    comparison.check(100 * uniform_power(random), 1 / (1 + 9 * uniform_power(random)));
  }
}

TEST(Power, EqualsTheNearestFloatNearOne) {
  std::mt19937_64 random(7);
  Comparison comparison;
  for (int i = 0; i < 120000; ++i) {
    const double offset = std::ldexp(uniform_power(random), -static_cast<int>(random() % 52));
    const double p = std::ldexp(1 + uniform_power(random), static_cast<int>(random() % 62));
    comparison.check(1 + offset, p);
    comparison.check(1 - offset / 2, p);
    comparison.check(1 + offset, 1.5);
  }
}

TEST(Power, RoundsSubnormalResultsOnce) {
  std::mt19937_64 random(11);
  Comparison comparison;
  for (int i = 0; i < 120000; ++i) {
    const double t = std::ldexp(1 + uniform_power(random), -1 - static_cast<int>(random() % 300));
    // Exponent chosen so that the result lies between 2^-1077 and 2^-1020.
    comparison.check(t, (1020 + 57 * uniform_power(random)) / -std::log2(t));
    comparison.check(std::ldexp(1 + uniform_power(random), -350 + static_cast<int>(random() % 10)), 3);
  }
}

TEST(Power, LogarithmsAreWithin2ToMinus104) {
  std::mt19937_64 random(13);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double t =
        i % 2 == 0 ? any_exponent(random) : 1 + std::ldexp(uniform_power(random), -static_cast<int>(random() % 52));
    if (t == 1) continue;  // the function leaves that to its caller
    bool is_negative = false;
    const fixed::Number log = fixed::log2_magnitude(fixed::unpack(t), is_negative);
    const __float128 value =
        ldexpq(static_cast<__float128>(static_cast<double>(log.significand >> 75)), log.exponent - 52);
    const auto tail = static_cast<double>(log.significand & ((fixed::U128{1} << 75) - 1));
    const __float128 found = value + ldexpq(static_cast<__float128>(tail), log.exponent - 127);
    worst = std::max(worst, static_cast<double>(fabsq(found / fabsq(log2q(t)) - 1)));
  }
  // 2^-104 is what 113-bit logarithms and the tail's conversion above let a test see.
  EXPECT_TRUE(worst <= 0x1p-104) << std::hexfloat << worst;
}

TEST(Power, TablesAreWithin2ToMinus110) {
  const fixed::PowerTables& tables = fixed::power_tables();
  const auto value = [](fixed::U128 x, int unit) {
    return ldexpq(static_cast<__float128>(x >> 64), 64 - unit) +
           ldexpq(static_cast<__float128>(static_cast<std::uint64_t>(x)), -unit);
  };
  for (int j = 0; j < 128; ++j) {
    EXPECT_TRUE(fabsq(value(tables.exp_coarse[j], 127) - exp2q(j / 128.0)) <= 0x1p-110) << j;
    EXPECT_TRUE(fabsq(value(tables.exp_fine[j], 127) - exp2q(j / 16384.0)) <= 0x1p-110) << j;
    const bool negative = tables.log_factor[j] < 0;
    const auto magnitude = static_cast<fixed::U128>(negative ? -tables.log_factor[j] : tables.log_factor[j]);
    const __float128 expected = log2q(static_cast<__float128>(tables.factor[j]) / 512);
    EXPECT_TRUE(fabsq((negative ? -1 : 1) * value(magnitude, 126) + expected) <= 0x1p-110) << j;
  }
  for (int j = -128; j <= 128; ++j) {
    const fixed::I128 entry = tables.log_fine[j + 128];
    const auto magnitude = static_cast<fixed::U128>(entry < 0 ? -entry : entry);
    EXPECT_TRUE(fabsq((entry < 0 ? -1 : 1) * value(magnitude, 126) + log2q(1 - j / 16384.0)) <= 0x1p-110) << j;
  }
}

TEST(Power, ExactMiddlesGoToTheEvenFloat) {
  // r^q with exactly 54 significant bits is a middle: its float is r^q rounded to even, as integer conversion does.
  std::mt19937_64 random(17);
  int middles = 0;
  for (unsigned q = 2; q <= 34; ++q) {
    const double low = std::exp2(53.0 / q);
    const double high = std::exp2(54.0 / q);
    for (int i = 0; i < 2000; ++i) {
      const auto r = static_cast<std::uint64_t>(low + (high - low) * uniform_power(random)) | 1;
      fixed::U128 product = 1;
      for (unsigned k = 0; k < q && product < fixed::U128{1} << 60; ++k) product *= r;
      if (product < fixed::U128{1} << 53 || product >= fixed::U128{1} << 54) continue;
      ++middles;
      const auto expected = static_cast<double>(static_cast<std::uint64_t>(product));
      ASSERT_EQ(power(static_cast<double>(r), q), expected) << r << "^" << q;
      // The same number as a power q / 2^s of r^(2^s), where that is a float.
      double base = static_cast<double>(r);
      double p = q;
      while (base < 0x1p26) {
        base *= base;
        p /= 2;
        ASSERT_EQ(power(base, p), expected) << base << "^" << p;
      }
    }
  }
  EXPECT_GT(middles, 3000);
}

TEST(Power, ExactMiddlesOfSubnormalsGoToTheEvenFloat) {
  // In units of 2^-1074: 243 / 2 lies between 121 and 122, 27 / 2 between 13 and 14, 1 / 2 between 0 and 1.
  EXPECT_EQ(power(std::ldexp(3, -215), 5), 122 * kTinyBase);
  EXPECT_EQ(power(std::ldexp(9, -430), 2.5), 122 * kTinyBase);
  EXPECT_EQ(power(std::ldexp(81, -860), 1.25), 122 * kTinyBase);
  EXPECT_EQ(power(std::ldexp(1, -215), 5), 0);
  EXPECT_EQ(power(std::ldexp(1, -430), 2.5), 0);
  EXPECT_EQ(power(std::nextafter(std::ldexp(1, -430), 1.0), 2.5), kTinyBase);
  EXPECT_EQ(power(std::nextafter(std::ldexp(1, -215), 1.0), 5), kTinyBase);
}

TEST(Power, SpecialValues) {
  EXPECT_EQ(power(0, 0.3), 0);
  EXPECT_EQ(power(0, 3), 0);
  EXPECT_EQ(power(1, 1e300), 1);
  EXPECT_EQ(power(3.25, 1), 3.25);
  EXPECT_EQ(power(3.25, 2), 3.25 * 3.25);
  EXPECT_EQ(power(1e200, 2), kInfinity);
  EXPECT_EQ(power(1e200, 1.7), kInfinity);
  EXPECT_EQ(power(1e200, 3), kInfinity);
  EXPECT_EQ(power(2, 1e308), kInfinity);
  EXPECT_EQ(power(0.5, 1e308), 0);
  EXPECT_EQ(power(1e-200, 3), 0);
  EXPECT_EQ(power(7, kTinyBase), 1);
  EXPECT_EQ(power(2, 1023), 0x1p1023);
  EXPECT_EQ(power(2, 1024), kInfinity);
  EXPECT_EQ(power(0.5, 1074), kTinyBase);
  EXPECT_EQ(power(kTinyBase, 0.25), std::sqrt(std::sqrt(kTinyBase)));
  EXPECT_EQ(power(std::numeric_limits<double>::max(), 0.5), std::sqrt(std::numeric_limits<double>::max()));
}

}  // namespace
}  // namespace vicinal::core
