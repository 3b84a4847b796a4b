// What k-means++ does not look at (cpu/kmeans/seeding.hpp): a row whose least key is M cannot be changed by a drawn row
// whose key to the row's center is not below `unchanged_from(M)`. Tried where both are equal but for a rounding, by the
// keys that the library computes.
#include "cpu/kmeans/seeding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/distance.hpp"

namespace vicinal::cpu {
namespace {

// Whether the rule says that y leaves the row x of the center c as it is, which it then must; a key of 0 is no news.
bool is_ruled_out(const std::vector<double>& x, const std::vector<double>& c, const std::vector<double>& y) {
  const auto d = static_cast<std::int64_t>(x.size());
  const double least = core::euclidean_key(x.data(), c.data(), d);
  const double between = core::euclidean_key(y.data(), c.data(), d);
  if (between < unchanged_from(least, d)) return false;
  EXPECT_FALSE(core::euclidean_key(x.data(), y.data(), d) < least) << "d " << d << " at " << x[0];
  return least > 0;
}

// c = 0, and y nearly 2 x: on the line through both, as far from x as the center is.
TEST(KMeansSeeding, NoDrawIsRuledOutThatIsNearer) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0.5, 1);
  std::int64_t ruled_out = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    const auto d = static_cast<std::size_t>(1 + trial % 19);
    // Where squares are whole, and where they are so small that they lose digits.
    const double size = std::ldexp(1.0, trial % 2 == 0 ? 0 : -530 - trial / 2 % 8);
    std::vector<double> x(d);
    std::vector<double> y(d);
    for (std::size_t j = 0; j < d; ++j) {
      x[j] = uniform(random) * size;
      y[j] = 2 * x[j];
    }
    const double less = std::ldexp(uniform(random), -static_cast<int>(random() % 56));
    if (trial % 3 == 0) {
      for (double& value : y) value -= value * less;
    } else {
      y[random() % d] *= 1 - less;
    }
    ruled_out += is_ruled_out(x, std::vector<double>(d, 0), y) ? 1 : 0;
  }
  EXPECT_EQ(ruled_out, 0);  // all of them are nearer, or as near
}

TEST(KMeansSeeding, RulesOutWhatIsFarAndAllOfAKeyOfZero) {
  EXPECT_TRUE(is_ruled_out({1, 1}, {0, 0}, {2.001, 2}));
  EXPECT_LE(unchanged_from(0, 2), 0);
}

}  // namespace
}  // namespace vicinal::cpu
