// From radii to keys: the narrow bisection finds what one over all doubles does.
#include "formulas/nearest/radius.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "core/distance.hpp"
#include "core/ordered_bits.hpp"

namespace vicinal {
namespace {

constexpr double kMaxDouble = std::numeric_limits<double>::max();

double by_full_bisection(Metric metric, double r, double p) {
  const auto within = [&](std::int64_t i) {
    return core::reported_distance(metric, core::from_ordered_bits(i), p) <= r;
  };
  std::int64_t low = core::ordered_bits(metric == Metric::inner_product ? -kMaxDouble : 0.0);
  std::int64_t high = core::ordered_bits(kMaxDouble);
  if (within(high)) return kMaxDouble;
  if (!within(low)) return -std::numeric_limits<double>::infinity();
  while (low + 1 < high) {
    const std::int64_t middle = std::midpoint(low, high);
    (within(middle) ? low : high) = middle;
  }
  return core::from_ordered_bits(low);
}

/// Extreme values and their neighbors, and values of every magnitude.
std::vector<double> many_radii() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> radii = {0.0, -0.0, kInfinity, -kInfinity};
  for (const double at : {0.0, 5e-324, std::numeric_limits<double>::min(), 0x1p-537, 0x1p-511, 1e-160, 0.5, 1.0,
                          std::sqrt(2.0), 2.0, 0x1p511, std::sqrt(kMaxDouble), 1e200, kMaxDouble}) {
    double below = at;
    double above = at;
    for (int i = 0; i < 8; ++i) {
      for (const double r : {below, above}) {
        radii.push_back(r);
        radii.push_back(-r);
      }
      below = std::nextafter(below, -kInfinity);
      above = std::nextafter(above, kInfinity);
    }
  }
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> bits(0, core::ordered_bits(kMaxDouble));
  std::uniform_real_distribution<double> ordinary(0, 100);
  for (int i = 0; i < 3000; ++i) {
    const double r = core::from_ordered_bits(bits(random));
    radii.insert(radii.end(), {r, -r, ordinary(random)});
  }
  return radii;
}

TEST(Radius, BecomesTheLargestKeyWithinIt) {
  const std::vector<double> radii = many_radii();
  for (const Metric metric :
       {Metric::euclidean, Metric::cosine, Metric::inner_product, Metric::manhattan, Metric::chebyshev}) {
    for (const double r : radii) {
      const double key = core::largest_key_within(metric, r, 2);
      const double expected = by_full_bisection(metric, r, 2);
      ASSERT_EQ(core::ordered_bits(key), core::ordered_bits(expected)) << name_of(metric) << " " << r;
      ASSERT_EQ(std::signbit(key), std::signbit(expected)) << name_of(metric) << " " << r;
    }
  }
}

}  // namespace
}  // namespace vicinal
