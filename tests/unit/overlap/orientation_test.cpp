// Sides of lines (formulas/overlap/orientation.hpp) against whole numbers of 128 bits: points within a rounding of one
// line, whose differences need 54 bits, so that every step of the float64 determinant is rounded, often all of them the
// same way.
#include "formulas/overlap/orientation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace vicinal::geo {
namespace {

// Of whole coordinates below 2^53.
int exact_side(const Point& p, const Point& q, const Point& r) {
  const auto less = [](double a, double b) {
    return static_cast<__int128>(static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b));
  };
  const __int128 determinant = less(p.x, r.x) * less(q.y, r.y) - less(p.y, r.y) * less(q.x, r.x);
  return determinant > 0 ? 1 : determinant < 0 ? -1 : 0;
}

TEST(Orientation, IsExactWhereEveryStepIsRounded) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto far = [&](double from) { return std::nearbyint((from + (1 - from) * uniform(random)) * 0x1p53); };
  for (int trial = 0; trial < 3000000; ++trial) {
    const Point r = {-far(0.01), -far(0.01)};
    const Point p = {far(0.01), far(0.01)};
    const double share = 0.5 + uniform(random) / 2;
    const Point q = {std::nearbyint(r.x + share * (p.x - r.x)), std::nearbyint(r.y + share * (p.y - r.y))};
    const int exact = exact_side(p, q, r);
    const int quick = quick_orientation(p, q, r);
    ASSERT_TRUE(quick == exact || quick == kUnsure) << trial;
    if (trial % 16 != 0) continue;  // slower
    ASSERT_EQ(orientation(p, q, r), exact) << trial;
    ASSERT_EQ(orientation(q, r, p), exact) << trial;
    ASSERT_EQ(orientation(q, p, r), -exact) << trial;
  }
}

TEST(Orientation, TellsPointsOfALine) {
  const Point p = {0.1, 0.3};
  const Point q = {0.2, 0.6};  // 2 p in float64, too
  EXPECT_EQ(orientation({0, 0}, p, q), 0);
  EXPECT_EQ(orientation({0, 0}, p, {q.x, std::nextafter(q.y, 1)}), 1);
  EXPECT_EQ(orientation({0, 0}, p, {std::nextafter(q.x, 1), q.y}), -1);
  EXPECT_EQ(orientation({0, 0}, {1, 0}, {2, 0}), 0);
  EXPECT_EQ(orientation(p, p, q), 0);
  EXPECT_EQ(orientation(p, q, p), 0);
}

}  // namespace
}  // namespace vicinal::geo
