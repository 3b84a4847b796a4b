// Every term of the bounds of the CPU's screens (cpu/nearest/screen.hpp), against the lemmas in 113 bits. What a row
// and a query are measured to be is given, not measured, so that each term can be made the only one that counts, and t
// put where nothing but its margins is left.
#include <gtest/gtest.h>
#include <quadmath.h>

#include <cmath>
#include <limits>
#include <random>

#include "cpu/nearest/screen.hpp"
#include "quad.hpp"

namespace vicinal::cpu {
namespace {

constexpr ScreenType kTypes[] = {ScreenType::float32, ScreenType::bfloat16, ScreenType::int8};

// v (1 + 4 q) and the results below the normal range.
Quad beta_of(ScreenType type, std::int64_t d) {
  if (type == ScreenType::int8) return 0;
  return power2(type == ScreenType::bfloat16 ? -23 : -24) * (1 + 4 * static_cast<Quad>(d + 4) * power2(-23));
}
Quad tiny_of(ScreenType type, std::int64_t d) {
  return static_cast<Quad>(2 * d + 8) * power2(type == ScreenType::bfloat16 ? -126 : -149);
}
const Quad kVanishing = power2(-300);  // of t; a row's start allows for 2^-149
// Relative errors of a sum of d squares in eight lanes, a key's too; the bounds allow for more.
Quad error_of_eight_sums(std::int64_t d) {
  return (static_cast<Quad>(d) / 8 + 4) * power2(-53);
}

TEST(ScreenBound, ARowStartsAboveEveryTermOfItsOwn) {
  for (const ScreenType type : {ScreenType::float32, ScreenType::bfloat16}) {
    for (const std::int64_t d : {1, 5, 100, 10000}) {
      const Screen screen(type, ScreenKind::distance, d, 1, {});
      const Screen product(type, ScreenKind::product, d, 1, {});
      for (const double rounded_sq : {0.0, 0x1p-100, 1.0, 0.7}) {
        for (const double error_sq : {0.0, 0x1p-60, 0x1p-20, 0.3}) {
          for (const double exact_sq : {0.0, 1.0}) {
            const RoundedRow row{exact_sq, rounded_sq, error_sq, 7 * rounded_sq, 0, true};
            const RowTerms terms = screen.row_terms(row);
            const Quad rho = sqrtq(error_sq) + power2(-53) * sqrtq(exact_sq);
            const Quad h = static_cast<Quad>(rounded_sq) / 2;
            EXPECT_FALSE(!(terms.rho >= rho));
            EXPECT_FALSE(!(terms.kappa >= sqrtq(row.weighted_sq)));
            EXPECT_FALSE(!(terms.start >= -h + rho * rho / 2 +
                                              beta_of(type, d) * static_cast<Quad>(d + 3) * (h + rho * rho) +
                                              tiny_of(type, d)))
                << d << " " << rounded_sq << " " << error_sq;
            EXPECT_FALSE(!(product.row_terms(row).start >= tiny_of(type, d)));
          }
        }
      }
    }
  }
}

TEST(ScreenBound, ARowOfBytesStartsAboveEveryTermOfItsOwn) {
  const Screen screen(ScreenType::int8, ScreenKind::distance, 10, 1, {});
  for (const double rounded_sq : {0.0, 1.0, 8.0, 9.0, 10.0}) {
    for (const double error_sq : {0.0, 0x1p-60, 0.5, 2 * (1 - 0x1p-18), 2.0, 3.0}) {
      for (const double sum : {-3.0, 0.0, 3.0}) {
        const RowTerms terms = screen.row_terms({rounded_sq, rounded_sq, error_sq, 0, sum, true});
        EXPECT_FALSE(!(terms.base >= -128 * static_cast<Quad>(sum) - static_cast<Quad>(rounded_sq) / 2 +
                                         static_cast<Quad>(error_sq) / 2));
        EXPECT_FALSE(!(terms.rho >= sqrtq(error_sq)));
        EXPECT_FALSE(!(terms.kappa >= sqrtq(rounded_sq)));
      }
    }
  }
}

TEST(ScreenBound, RowsBeyondTheScaleSurviveAlways) {
  const Screen screen(ScreenType::float32, ScreenKind::distance, 4, 1, {});
  EXPECT_EQ(screen.row_terms({9, 8.0001, 0, 0, 0, true}).start, HUGE_VALF);
  EXPECT_EQ(screen.row_terms({1, 1, 0, 0, 0, false}).start, HUGE_VALF);
  EXPECT_LT(screen.row_terms({8, 8, 0, 0, 0, true}).start, 0);
  const Screen bytes(ScreenType::int8, ScreenKind::distance, 4, 1, {});
  EXPECT_EQ(bytes.row_terms({9, 9, 0x1p28, 0, 1, true}).base, (1 << 30) - 128);
  EXPECT_EQ(bytes.row_terms({9, 9, 0, 0, 1, false}).base, (1 << 30) - 128);
}

TEST(ScreenBound, AThresholdIsBelowEveryTermOfTAndF) {
  for (const ScreenType type : kTypes) {
    for (const std::int64_t d : {1, 100, 30000}) {
      const Screen screen(type, ScreenKind::distance, d, 0.25, {});
      const Quad norms = type == ScreenType::int8 ? 1 : Quad(0.5);
      for (const double key : {0.0, 0x1p-1070, 1.0, 3.0, 1e6}) {
        for (const double rho : {0.0, 0x1p-60, 0.01, 1.0}) {
          for (const double kappa : {0.0, 5.0}) {
            const Quad reach =
                Quad(0.25) * sqrtq(key * (1 + error_of_eight_sums(d)) + static_cast<Quad>(d) * power2(-1074));
            // T, and a length that leaves nothing of t but its margins.
            const double a = std::sqrt(key) * 0.25 + rho;
            for (const double length_sq : {a * a, std::nextafter(a * a, 1e9), 2 * a * a + 1}) {
              const Quad length = length_sq * (1 - error_of_eight_sums(d));
              const Threshold of_t = screen.threshold({length_sq, length_sq, rho, kappa, true}, key, 1e30);
              EXPECT_FALSE(!(of_t.a >= reach + rho));
              EXPECT_FALSE(!(of_t.b >= beta_of(type, d) * kappa));
              EXPECT_FALSE(!(of_t.t <= (length - (reach + rho) * (reach + rho)) / 2 + kVanishing))
                  << d << " " << key << " " << rho;
              const double far_sq = (length_sq - rho * rho);
              const Threshold of_f = screen.threshold({far_sq, length_sq, rho, kappa, true}, key, -1);
              EXPECT_FALSE(!(of_f.a >= reach));
              EXPECT_FALSE(!(of_f.b >= beta_of(type, d) * kappa + norms * rho));
              EXPECT_FALSE(!(of_f.t <= (far_sq * (1 - error_of_eight_sums(d)) - reach * reach) / 2 + kVanishing));
              // |X|^2 = U^2
              const double far = 0.0625 * key;
              EXPECT_FALSE(!(screen.threshold({far, far, rho, kappa, true}, key, -1).t <=
                             (far * (1 - error_of_eight_sums(d)) - reach * reach) / 2 + kVanishing));
            }
          }
        }
      }
    }
  }
}

TEST(ScreenBound, AThresholdIsBelowEveryTermOfP) {
  for (const ScreenType type : kTypes) {
    for (const std::int64_t d : {1, 100, 30000}) {
      const Screen screen(type, ScreenKind::product, d, 0.5, {});
      const Quad norms = type == ScreenType::int8 ? 1 : Quad(0.5);
      for (const double key : {0.0, 1.0, -3.3, 1e-300, -1e300}) {
        for (const double rho : {0.0, 0x1p-60, 1.0}) {
          for (const double exact_sq : {0.0, 1.0, 0x1p100}) {
            const Threshold found = screen.threshold({exact_sq, 0, rho, 3, true}, key, 0);
            const Quad length = sqrtq(exact_sq * (1 + error_of_eight_sums(d)));
            EXPECT_FALSE(!(found.a >= length));
            EXPECT_FALSE(
                !(found.b >= beta_of(type, d) * 3 + norms * (rho + static_cast<Quad>(d + 4) * power2(-52) * length)))
                << d << " " << rho << " " << exact_sq;
            EXPECT_FALSE(!(found.t <= -static_cast<Quad>(key) / 4));
          }
        }
      }
      // Products may vanish, up to d of them, by the scale's square times 2^-1074.
      const Screen wide(type, ScreenKind::product, d, 0x1p400, {});
      EXPECT_FALSE(!(wide.threshold({1, 1, 0, 0, true}, 0, 0).t <= -static_cast<Quad>(d) * power2(800 - 1074)));
    }
  }
}

TEST(ScreenBound, NothingIsKnownOfAnInfiniteKeyAndOfUnusableQueries) {
  for (const ScreenType type : kTypes) {
    const Screen screen(type, ScreenKind::distance, 3, 1, {});
    EXPECT_TRUE(screen.threshold({1, 1, 0, 0, true}, HUGE_VAL, 1).open());
    EXPECT_TRUE(screen.threshold({1, 1, 0, 0, false}, 1, 1).open());
    EXPECT_FALSE(screen.threshold({1, 1, 0, 0, true}, 1, 1).open());
    EXPECT_FALSE(screen.query_terms({1, 0x1p160, 0, 0, 0, true}).usable);
    EXPECT_FALSE(screen.query_terms({1, 1, 0, 0, 0, false}).usable);
  }
  EXPECT_EQ(integer_threshold({0, 0, -HUGE_VAL}, 1, 1, 1, 1), std::numeric_limits<std::int32_t>::min());
}

TEST(ScreenBound, TheLeastSumOfBytesIsNotAboveTheExactOne) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int trial = 0; trial < 100000; ++trial) {
    const Threshold query{uniform(random) * 4, uniform(random) * 4, trial % 2 == 0 ? 0 : std::ldexp(1.0, trial % 27)};
    const double rho = uniform(random) * 100;
    const double kappa = trial % 3 == 0 ? 0 : uniform(random) * 1000;
    // An `a` that brings the rest just below a whole number.
    const double whole = std::ceil(rho * 3) + 1;
    double a = query.a + whole / rho;
    while ((Quad(a) - query.a) * rho >= whole) a = std::nextafter(a, 0);
    const double b = query.b + (trial % 5 == 0 ? uniform(random) : 0);
    const Quad exact = query.t + (Quad(a) - query.a) * rho + (Quad(b) - query.b) * kappa;
    EXPECT_FALSE(!(integer_threshold(query, a, b, rho, kappa) <= floorq(exact))) << trial;
  }
  EXPECT_EQ(integer_threshold({0, 0, 0x1p40}, 0, 0, 0, 0), 1 << 28);  // what was capped survives
  EXPECT_EQ(integer_threshold({0, 0, -0x1p40}, 0, 0, 0, 0), std::numeric_limits<std::int32_t>::min());
}

TEST(ScreenBound, ASurvivorIsDroppedOnlyWhenItsExactBoundIsBelow) {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int trial = 0; trial < 100000; ++trial) {
    // Whole sums of up to 29 bits, of which a float32 has 24.
    const auto sum = static_cast<std::int32_t>(random() % (1U << (24 + trial % 5)));
    const std::int32_t whole = trial % 2 == 0 ? sum : -sum;
    const double scale = trial % 3 == 0 ? 0 : std::ldexp(1.0, trial % 40 - 8);
    const ScoreTerms terms{static_cast<float>(whole), uniform(random) * scale, uniform(random) * scale};
    const auto largest_below = [](Quad exact) {
      const auto near = static_cast<double>(exact);
      return near <= exact ? near : std::nextafter(near, -HUGE_VAL);
    };
    EXPECT_FALSE(is_dropped(true, terms, largest_below(whole + Quad(terms.of_rho) + terms.of_kappa))) << whole;
    EXPECT_FALSE(is_dropped(false, terms, largest_below(terms.score + Quad(terms.of_rho) + terms.of_kappa))) << whole;
    EXPECT_FALSE(!(static_cast<float>(whole) >= least_score(whole))) << whole;
    // No threshold drops what may have been capped.
    EXPECT_FALSE(is_dropped(true, {0x1p28F + std::fabs(terms.score), terms.of_rho, -0x1p60}, 0x1p50));
  }
  EXPECT_FALSE(is_dropped(true, {0, 0, 0}, 0));  // a tie
  EXPECT_TRUE(is_dropped(true, {100, 1, -1}, 101));
  EXPECT_TRUE(is_dropped(false, {100, 1, -1}, 100.001));
  EXPECT_GT(least_score(1000), 999);
}

TEST(ScreenBound, RoundsToTheNeighboringFloat) {
  for (const double x : {1.0, 1 + 0x1p-40, 1 - 0x1p-40, -1 - 0x1p-40, 0x1p-160, -0x1p-160, 0.0}) {
    EXPECT_GE(round_up(x), x);
    EXPECT_LE(round_down(x), x);
    EXPECT_LE(round_up(x), std::nextafterf(round_down(x), HUGE_VALF));
  }
}

}  // namespace
}  // namespace vicinal::cpu
