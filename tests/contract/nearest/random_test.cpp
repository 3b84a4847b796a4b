// Random cases over everything at once. The seed is printed with each failure (it is in the case), and
// VICINAL_TEST_SEED starts elsewhere, so a nightly run can look at cases nobody has seen.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "check.hpp"

namespace vicinal::contract {
namespace {

std::uint64_t first_seed() {
  const char* text = std::getenv("VICINAL_TEST_SEED");
  return text == nullptr ? 20240607 : std::stoull(text);
}

Case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  // Sizes spread evenly over their logarithm, so that small odd ones are common.
  const auto size = [&](int bits) {
    return 1 + below(std::uint64_t{1} << below(static_cast<std::uint64_t>(bits) + 1));
  };
  Case c;
  c.seed = seed;
  c.family = static_cast<Family>(below(kFamilies));
  c.metric = static_cast<Metric>(below(8));
  c.p = 1 + static_cast<double>(below(40)) / 8;
  c.dtype = static_cast<DType>(below(5));
  c.query_dtype = below(2) == 0 ? c.dtype : static_cast<DType>(below(5));
  c.layout = static_cast<Layout>(below(kLayouts));
  c.query_layout = static_cast<Layout>(below(kLayouts));
  const bool is_slow = c.metric == Metric::minkowski;
  c.shape = {size(is_slow ? 7 : 11), size(is_slow ? 4 : 7), size(6)};
  c.self = below(4) == 0 && c.shape.n <= 300;
  c.filter = below(3) == 0 ? static_cast<Filter>(1 + below(2)) : Filter::none;
  c.exclude = below(4) == 0;
  return c;
}

TEST(Random, Cases) {
  const std::uint64_t start = first_seed();
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(1500 / kSparse); ++i) {
    const Case c = random_case(start + i);
    const auto k = static_cast<std::int64_t>(1 + (start + i) * 7919 % static_cast<std::uint64_t>(c.shape.n));
    check(c, {.ks = {k}, .radii = i % 3 == 0}, two_ways(i));
  }
}

}  // namespace
}  // namespace vicinal::contract
