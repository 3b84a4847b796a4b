// Philox4x32-10 against the known answers published with Random123.
#include "core/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace vicinal::core {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ULL, ~0ULL, ~0ULL), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ULL, 0x0370734413198a2eULL, 0x85a308d3243f6a88ULL),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformNumbersAreTheUpperBitsOfTheFirstTwoWords) {
  EXPECT_EQ(philox_uniform(0x299f31d0a4093822ULL, 0x0370734413198a2eULL, 0x85a308d3243f6a88ULL),
            static_cast<double>(0xd16cfe0994fdccebULL >> 11) * 0x1p-53);
}

TEST(Philox, UniformNumbersLieInTheHalfOpenUnitIntervalWithItsMean) {
  double sum = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = philox_uniform(7, 1, static_cast<std::uint64_t>(i));
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
  }
  // Six standard errors of the mean, 1 / sqrt(12 n) each.
  EXPECT_TRUE(std::abs(sum / kDraws - 0.5) <= 6 * 0.000913);
}

}  // namespace
}  // namespace vicinal::core
