// Every term of the bound of the float32 screen (formulas/nearest/float_screen.hpp), against its lemma in 113 bits;
// each is made the only one that counts.
#include "formulas/nearest/float_screen.hpp"

#include <gtest/gtest.h>
#include <quadmath.h>

#include "quad.hpp"

namespace vicinal::core {
namespace {

Quad unit_of(std::int64_t d) {
  return static_cast<Quad>(d + 4) * power2(-24) * (1 + power2(-4));
}
// Relative errors of a sum of d squares in any order, a key's too.
Quad error_of_float_sum(std::int64_t d) {
  return static_cast<Quad>(d) * power2(-53);
}

TEST(FloatScreen, AStartIsAboveEveryTerm) {
  for (const std::int64_t d : {1, 50, 100000}) {
    const Quad v = unit_of(d);
    for (const FloatForm form : {FloatForm::triangle, FloatForm::far, FloatForm::product}) {
      for (const double rounded_sq : {0.0, 1.0}) {
        for (const double rho : {0.0, 0x1p-60, 0.5}) {
          for (const double norm : {0.0, 1.0}) {
            for (const double a : {0.0, 3.0}) {
              for (const double b : {0.0, 0.25}) {
                const float start = float_start({form, a, b, 0}, {1, rounded_sq, rho, norm}, d);
                const Quad h = form == FloatForm::product ? 0 : Quad(rounded_sq) / 2;
                const Quad square = form == FloatForm::product ? 0 : Quad(rho) * rho / 2;
                const Quad z = (1 + 2 * v) * (square + Quad(a) * rho + Quad(b) * norm);
                EXPECT_FALSE(!(start >= z - h * (1 - 2 * v) + static_cast<Quad>(2 * d + 8) * power2(-126)))
                    << d << " " << rounded_sq << " " << rho << " " << norm << " " << a << " " << b;
              }
            }
          }
        }
      }
    }
  }
}

TEST(FloatScreen, AQueryAllowsForEveryTerm) {
  for (const std::int64_t d : {1, 50, 100000}) {
    const Quad v = unit_of(d);
    for (const double key : {0.0, 1.0, 5.0, 1e4}) {
      for (const double rho : {0.0, 0x1p-60, 1.0}) {
        const Quad measured = rho * (1 - power2(-21));  // `float_row` has made it larger by a factor, for roundings
        for (const double norm : {0.0, 2.0}) {
          const Quad reach = sqrtq(key * (1 + error_of_float_sum(d))) / 2;
          const double away = std::sqrt(key) / 2 + rho;
          for (const double length_sq : {away * away, 3 * away * away}) {
            const FloatQuery t = float_query({length_sq, length_sq, rho, norm}, false, key, 1e30, d, -1);
            ASSERT_EQ(t.form, FloatForm::triangle);
            EXPECT_FALSE(!(t.a >= reach + rho));
            EXPECT_FALSE(!(t.b >= v * norm));
            EXPECT_FALSE(!(t.t <= (length_sq * (1 - error_of_float_sum(d)) - (reach + rho) * (reach + rho)) / 2));
          }
          const double far_sq = key / 4;
          const FloatQuery f = float_query({far_sq, 0, rho, norm}, false, key, -1, d, -1);
          ASSERT_EQ(f.form, FloatForm::far);
          EXPECT_FALSE(!(f.a >= reach));
          EXPECT_FALSE(!(f.b >= v * norm + measured));
          EXPECT_FALSE(!(f.t <= (far_sq * (1 - error_of_float_sum(d)) - reach * reach) / 2));
          const FloatQuery p = float_query({9, 0, rho, norm}, true, key, 0, d, -1);
          ASSERT_EQ(p.form, FloatForm::product);
          const Quad length = 3 * (1 + error_of_float_sum(d) / 2);
          EXPECT_FALSE(!(p.a >= length));
          EXPECT_FALSE(!(p.b >= v * norm + measured + static_cast<Quad>(d + 4) * power2(-51) * length));
          EXPECT_FALSE(!(p.t <= -Quad(key) / 4));
        }
      }
    }
    EXPECT_FALSE(!(float_query({1, 1, 0, 1}, true, 0, 0, d, 400).t <= -static_cast<Quad>(d) * power2(800 - 1074)));
    EXPECT_EQ(float_query({1, 1, 0, 1}, false, HUGE_VAL, 1, d, 0).t, -HUGE_VALF);
    EXPECT_EQ(float_query({1, 0x1p160, 0, 1}, false, 1, 1, d, 0).t, -HUGE_VALF);
  }
}

TEST(FloatScreen, ARowIsMeasuredFromAbove) {
  const FloatRow row = float_row({1, 2, 3});
  EXPECT_FALSE(!(row.rho >= sqrtq(3) + power2(-53)));
  EXPECT_FALSE(!(row.norm >= sqrtq(2)));
  EXPECT_FALSE(!(float_row({1, 0, 0}).rho >= power2(-53)));
  FloatSums sums;
  EXPECT_EQ(add_float(1 + 0x1p-30, sums), 1.0F);
  EXPECT_EQ(sums.error_sq, 0x1p-60);
  EXPECT_EQ(sums.rounded_sq, 1);
  EXPECT_GT(sums.exact_sq, 1);
  EXPECT_EQ(float_start({FloatForm::triangle, 0, 0, 0}, {1, 9, 0, 3}, 4), HUGE_VALF);  // beyond the scale
}

}  // namespace
}  // namespace vicinal::core
