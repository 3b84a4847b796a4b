// Exact sums: against the answer known by construction, and against themselves in another order and division. Also the
// slices of k-means' sums, against the same.
#include "core/exact_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/philox.hpp"
#include "cpu/kmeans/sums.hpp"
#include "vicinal/context.hpp"

namespace vicinal {
namespace {

using core::ExactSum;

double sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  return sum.rounded();
}

// Numbers of every magnitude, subnormal ones included, whose partial sums stay finite.
std::vector<double> wild(std::uint64_t seed, int count, int least, int most) {
  std::vector<double> terms;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const double exponent = least + (most - least) * core::philox_uniform(seed, 1, at);
    terms.push_back(std::ldexp(2 * core::philox_uniform(seed, 2, at) - 1, static_cast<int>(exponent)));
  }
  return terms;
}

TEST(ExactSum, KnownAnswers) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_FALSE(std::signbit(sum_of({-0.0})));
  EXPECT_EQ(sum_of({1e308, 1.0, -1e308}), 1.0);
  EXPECT_EQ(sum_of({largest, tiny, -largest}), tiny);
  EXPECT_EQ(sum_of({-largest, -largest, largest, largest, -3 * tiny}), -3 * tiny);
  EXPECT_EQ(sum_of({largest, largest}), HUGE_VAL);
  EXPECT_EQ(sum_of({-largest, -largest}), -HUGE_VAL);
  EXPECT_EQ(sum_of({0x1p53, 1}), 0x1p53);            // a tie goes to the even one
  EXPECT_EQ(sum_of({0x1p53, 2, 1}), 0x1p53 + 4);     // upwards too
  EXPECT_EQ(sum_of({0x1p53, 1, tiny}), 0x1p53 + 2);  // no tie any more
  EXPECT_EQ(sum_of({-0x1p53, -1, -tiny}), -0x1p53 - 2);
  EXPECT_EQ(sum_of({0x1p-1022, -tiny}), 0x1p-1022 - tiny);
}

// Every bit of a float64, wherever its limbs divide it.
TEST(ExactSum, OneNumberIsItsSum) {
  for (int exponent = -1074; exponent < 1024; ++exponent) {
    for (const double fraction : {0x1.fffffffffffffp0, -0x1.123456789abcdp0, 0x1.0000080000001p0}) {
      const double x = std::ldexp(fraction, exponent);
      core::ExactSum sum;
      sum.add(x);
      EXPECT_EQ(sum.rounded(), x) << exponent;
    }
  }
}

TEST(ExactSum, OrderAndDivisionDoNotShow) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<double> terms = wild(seed, 500, -1074, 900);
    const double expected = sum_of(terms);
    std::sort(terms.begin(), terms.end());
    EXPECT_EQ(sum_of(terms), expected);
    ExactSum parts[3];
    for (std::size_t i = 0; i < terms.size(); ++i) parts[i % 3].add(terms[i]);
    parts[0].add(parts[1]);
    parts[0].add(parts[2]);
    EXPECT_EQ(parts[0].rounded(), expected);
    for (const double term : wild(seed, 500, -1074, 900)) parts[0].add(-term);
    EXPECT_EQ(parts[0].rounded(), 0);
  }
}

// A column of terms cut into slices, by every instruction set.
TEST(ClusterSums, SlicesSumExactly) {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      Context::cpu({.threads = 1, .isa = isa});
    } catch (const Error&) {
      continue;  // not on this machine
    }
    const cpu::LloydKernels& kernels = cpu::lloyd_kernels(isa);
    for (const auto& [least, most] :
         {std::pair(-3, 3), std::pair(-40, 2), std::pair(-1070, -1000), std::pair(-900, 90)}) {
      constexpr std::int64_t kRows = 300;
      for (const std::int64_t d : {1, 5, 8, 19}) {
        std::vector<double> rows =
            wild(static_cast<std::uint64_t>(most + 2000), static_cast<int>(kRows * d), least, most);
        kernels::NumberRange range;
        for (const double x : rows) range.largest = std::max(range.largest, std::fabs(x));
        range.last_bit = std::ldexp(1.0, std::max(least - 60, -1074));
        // The draws have 53 bits below their own exponent at most.
        for (double& x : rows) x = std::ldexp(std::nearbyint(std::ldexp(x, 20 - least)), least - 20);
        const kernels::SumGrid grid(std::vector<kernels::NumberRange>(static_cast<std::size_t>(d), range));
        const cpu::SlicePlan plan(grid);
        cpu::ClusterSums sums(plan, 2, false);
        cpu::ClusterSums other(plan, 2, false);
        for (std::int64_t i = 0; i < kRows; ++i) {
          (i % 3 == 0 ? sums : other).add(kernels.add_float64, rows.data() + i * d, 1, 1, d);
        }
        for (std::int64_t i = 0; i < kRows; i += 7) sums.add(kernels.add_float64, rows.data() + i * d, -1, 1, d);
        sums.settle(1);
        sums.take(other, 1);
        std::vector<double> got(static_cast<std::size_t>(d));
        EXPECT_EQ(sums.rounded(1, got), static_cast<double>(sums.size(1)));
        for (std::int64_t j = 0; j < d; ++j) {
          ExactSum expected;
          for (std::int64_t i = 0; i < kRows; ++i) {
            if (i % 7 != 0) expected.add(rows[static_cast<std::size_t>(i * d + j)]);
          }
          const double sum = expected.rounded();
          EXPECT_EQ(std::memcmp(&got[static_cast<std::size_t>(j)], &sum, sizeof sum), 0)
              << least << " " << d << " " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace vicinal
