// Every term of the bound of the float16 screen (formulas/nearest/half_screen.hpp), against its lemma in 113 bits: each
// spare column holds at least what the table there says, and thresholds are below the lemma's.
#include "formulas/nearest/half_screen.hpp"

#include <gtest/gtest.h>
#include <quadmath.h>

#include <random>

#include "quad.hpp"

namespace vicinal::core {
namespace {

constexpr Accumulation kSums = {.width = 16, .alignment = 24};

Quad error_of_sum(std::int64_t d) {
  return static_cast<Quad>(d) * power2(-53);
}
const Quad kGrown = 1 + power2(-9);

TEST(HalfScreen, BetaCountsEveryErrorOfAStep) {
  for (const Accumulation& sums : {kSums, Accumulation{.width = 4, .alignment = 23}}) {
    const Quad step = static_cast<Quad>(sums.width + 1) * power2(-sums.alignment) + power2(-23);
    EXPECT_FALSE(!(half_beta(sums) >= static_cast<Quad>(16) / sums.width * step * (1 + power2(-9))));
  }
  EXPECT_EQ(half_columns(11), 16);
  EXPECT_EQ(half_columns(12), 32);
  EXPECT_EQ(half_weight(0, 32), 2);
  EXPECT_EQ(half_weight(15, 32), 2);
  EXPECT_EQ(half_weight(16, 32), 1);
}

TEST(HalfScreen, ColumnsOfARowHoldItsTerms) {
  const double beta = half_beta(kSums);
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int trial = 0; trial < 20000; ++trial) {
    // Norms that n1 and n2 hold without a rest, too.
    const double rounded_sq =
        trial % 2 == 0 ? std::ldexp(static_cast<double>(random() % 1024 + 1), 4 + trial % 8) : uniform(random) * 0x1p28;
    const double rho = trial % 3 == 0 ? 0 : uniform(random) * std::ldexp(1.0, trial % 14);
    const HalfRow row{rounded_sq, rounded_sq, rho, 2 * std::sqrt(rounded_sq), std::sqrt(rounded_sq) * (1 + 0x1p-50)};
    std::uint16_t spare[kSpareColumns];
    table_columns(row, false, beta, spare);
    const Quad g = Quad(rounded_sq) / 2 * (1 - beta * (1 + power2(-8))) - (1 + power2(-8)) * Quad(rho) * rho / 2;
    EXPECT_FALSE(!(power2(13) * half_value(spare[0]) + 4 * half_value(spare[1]) <= g)) << rounded_sq << " " << rho;
    EXPECT_FALSE(!(half_value(spare[2]) >= 8 * Quad(beta) * row.kappa * kGrown));
    EXPECT_FALSE(!(half_value(spare[3]) >= rho));
    EXPECT_FALSE(!(half_value(spare[4]) >= row.norm));
    table_columns(row, true, beta, spare);
    EXPECT_EQ(spare[0], 0);
    EXPECT_EQ(spare[1], 0);
  }
  std::uint16_t spare[kSpareColumns];
  table_columns({1, 1, 0, 1, 0x1p15}, false, beta, spare);
  EXPECT_EQ(half_value(spare[0]), -HUGE_VAL);
}

TEST(HalfScreen, ColumnsOfAQueryHoldItsTerms) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int trial = 0; trial < 20000; ++trial) {
    const int exponent = -trial % 17;
    const std::int64_t d = trial % 2 == 0 ? 3 : 8000;
    const double reach = uniform(random) * 0x1p10;
    const double rho = uniform(random) * std::ldexp(1.0, trial % 12);
    const double length = uniform(random) * 0x1p13;
    const HalfRow query{length * length, length * length, rho, 2 * length, length};
    const auto columns = [&](HalfForm form) {
      std::array<std::uint16_t, kSpareColumns> spare{};
      query_columns(query, exponent, form, reach, d, spare.data());
      EXPECT_EQ(half_value(spare[0]), std::ldexp(-1.0, 13 + exponent));
      EXPECT_EQ(half_value(spare[1]), std::ldexp(-1.0, 2 + exponent));
      EXPECT_FALSE(!(half_value(spare[2]) >= query.kappa / Quad(8)));
      return spare;
    };
    const auto t = columns(HalfForm::triangle);
    EXPECT_FALSE(!(half_value(t[3]) >= (Quad(reach) + rho) * kGrown)) << reach << " " << rho;
    EXPECT_EQ(t[4], 0);
    EXPECT_EQ(reach_column(query, HalfForm::triangle, reach), t[3]);
    const auto f = columns(HalfForm::far);
    EXPECT_FALSE(!(half_value(f[3]) >= reach * kGrown));
    EXPECT_FALSE(!(half_value(f[4]) >= rho * kGrown));
    EXPECT_EQ(reach_column(query, HalfForm::far, reach), f[3]);
    const auto p = columns(HalfForm::product);
    EXPECT_FALSE(!(half_value(p[3]) >= length * kGrown));
    EXPECT_FALSE(!(half_value(p[4]) >= (rho + static_cast<Quad>(d + 4) * power2(-51) * length) * kGrown));
  }
  // What no float16 tells from rho alone.
  std::uint16_t spare[kSpareColumns];
  query_columns({0x1p28, 0, 0, 0, 0}, 0, HalfForm::product, 0, 8000, spare);
  EXPECT_FALSE(!(half_value(spare[4]) >= 8004 * power2(-51 + 14)));
}

// What zeros take part with is below 2 beta.
TEST(HalfScreen, AThresholdIsBelowEveryTerm) {
  const double beta = half_beta(kSums);
  for (const std::int64_t d : {1, 100, 8000}) {
    for (const int exponent : {0, -3}) {
      for (const double key : {0.0, 1.0, 1e5, 1e7}) {
        for (const double rho : {0.0, 0x1p-40, 2.0, 8192.0}) {
          const Quad scale = power2(2 + exponent);
          const Quad reach = scale * sqrtq(key * (1 + error_of_sum(d)));
          EXPECT_FALSE(!(half_reach(key, d, std::ldexp(1.0, 2 + exponent)) >= reach));
          const double away = std::sqrt(key) * std::ldexp(1.0, 2 + exponent) + rho;
          // Where nothing is left of t but its margins, and where it is large.
          for (const double length_sq : {away * away, 1.1e8}) {
            const HalfRow query{length_sq, length_sq, rho, 1, std::sqrt(length_sq)};
            const Quad exact = length_sq * (1 - error_of_sum(d));
            const Quad unit = power2(exponent);
            EXPECT_FALSE(!(half_threshold(query, exponent, HalfForm::triangle, key, d, 2, beta) <=
                           (exact - (reach + rho) * (reach + rho)) / 2 / unit - 2 * Quad(beta)))
                << d << " " << key << " " << rho;
            const HalfRow far{away * away - rho * rho, length_sq, rho, 1, std::sqrt(length_sq)};
            EXPECT_FALSE(!(half_threshold(far, exponent, HalfForm::far, key, d, 2, beta) <=
                           (far.exact_sq * (1 - error_of_sum(d)) - reach * reach) / 2 / unit - 2 * Quad(beta)));
            EXPECT_FALSE(!(half_threshold(query, exponent, HalfForm::product, key, d, 2, beta) <=
                           -Quad(key) * 16 * unit - 2 * Quad(beta)));
          }
        }
      }
    }
    // Products that vanish, up to d of them.
    EXPECT_FALSE(!(half_threshold({1, 1, 0, 1, 1}, 0, HalfForm::product, 0, d, 600, beta) <=
                   -static_cast<Quad>(d) * power2(1200 - 1074) - 2 * Quad(beta)));
  }
  EXPECT_EQ(half_threshold({1, 1, 0, 1, 1}, -17, HalfForm::triangle, 1, 4, 0, beta), -HUGE_VALF);
  EXPECT_EQ(half_threshold({1, 1, 0, 1, 1}, 0, HalfForm::triangle, HUGE_VAL, 4, 0, beta), -HUGE_VALF);
  EXPECT_EQ(half_threshold({1, 1, 0, 1, 0x1p15}, 0, HalfForm::triangle, 1, 4, 0, beta), -HUGE_VALF);
}

TEST(HalfScreen, ARowIsMeasuredFromAbove) {
  const HalfRow row = half_row({1, 2, 3, 5});
  EXPECT_FALSE(!(row.rho >= sqrtq(3) + power2(-53)));
  EXPECT_FALSE(!(row.kappa >= sqrtq(5)));
  EXPECT_FALSE(!(row.norm >= sqrtq(2)));
  EXPECT_FALSE(!(half_row({1, 0, 0, 0}).rho >= power2(-53)));
  HalfSums sums;
  EXPECT_EQ(half_value(add_half(1 + 0x1p-20, 3, sums)), 1);
  EXPECT_EQ(sums.error_sq, 0x1p-40);
  EXPECT_EQ(sums.weighted_sq, 3);
  add_half(0, 2, sums);
  EXPECT_EQ(sums.weighted_sq, 3 + 2 * 0x1p-28);  // a zero may take part as 2^-14
  EXPECT_EQ(half_value(add_half(1e9, 1, sums)), 65504);
  EXPECT_TRUE(half_inside(0x1p12));
  EXPECT_FALSE(half_inside(0x1p13));
  EXPECT_EQ(half_shortening(0x1p14), -1);
  EXPECT_EQ(half_shortening(0x1p13), 0);
}

}  // namespace
}  // namespace vicinal::core
