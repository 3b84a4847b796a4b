// Digits of weights beside the exact sum of float64 numbers (core/exact_sum.hpp): a sum is enough by its digits if and
// only if it is when it is rounded once.
#include "formulas/density/weight_digits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/exact_sum.hpp"

namespace vicinal::core {
namespace {

bool is_enough_by_digits(const std::vector<double>& weights, double min_weight) {
  const WeightDigits digits = weight_digits(weights, min_weight);
  DigitSum all;
  for (int number = 0; number < static_cast<int>(digits.least.size()); ++number) {
    std::int64_t sum = 0;
    for (const double weight : weights) sum += weight_digit(weight, digits.base, digits.bits, number);
    all.take(sum, digits.least[static_cast<std::size_t>(number)], digits.bits);
  }
  return all.is_enough();
}

void expect_the_rounded_sums(const std::vector<double>& weights, double min_weight) {
  ExactSum sum;
  bool is_negative = false;
  for (const double weight : weights) {
    sum.add(weight);
    is_negative = is_negative || weight < 0;
  }
  const std::string what = std::to_string(sum.rounded()) + " beside " + std::to_string(min_weight);
  EXPECT_EQ(is_enough_by_digits(weights, min_weight), sum.rounded() >= min_weight) << what;
  EXPECT_EQ(weight_digits(weights, min_weight).may_shrink, is_negative) << what;
}

TEST(WeightDigits, DecideAsTheRoundedSumAtEachEdge) {
  for (const double least : {1.0, 2.0, 3.0, 7.0, 64.0, 1000003.0, 0x1p52, 0x1p52 + 1, 0x1p53, 0x1p53 + 2, 0x1p62}) {
    const double below = std::nextafter(least, 0.0);
    const double half = (least - below) / 2;
    for (const double rest : {0.0, half, std::nextafter(half, 0.0), std::nextafter(half, 1e300), 0x1p-1074, 0x1p-500}) {
      expect_the_rounded_sums({below, rest}, least);
      expect_the_rounded_sums({least, -rest}, least);
      expect_the_rounded_sums({below, rest, 0x1p-1074}, least);
      expect_the_rounded_sums({below, rest, -0x1p-1074}, least);
      expect_the_rounded_sums({least, 1e300, -1e300, -rest}, least);
    }
    expect_the_rounded_sums({-least}, least);
    expect_the_rounded_sums({0.0, 0.0}, least);
    expect_the_rounded_sums({-0x1p-1074, 0x1p-1074}, least);
  }
}

TEST(WeightDigits, DecideAsTheRoundedSumBeyondTheLargestFloat) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  expect_the_rounded_sums({kLargest, kLargest, kLargest}, 5);
  expect_the_rounded_sums({-kLargest, -kLargest, kLargest}, 5);
  expect_the_rounded_sums({kLargest, -kLargest, 4.5, 0.5}, 5);
  expect_the_rounded_sums({kLargest, -kLargest, 4.5, 0.25}, 5);
}

TEST(WeightDigits, DecideAsTheRoundedSumOfAnyWeights) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (int turn = 0; turn < 4000; ++turn) {
    std::vector<double> weights;
    const double spread = static_cast<double>(random() % 60);
    const bool negative = random() % 2 != 0;
    for (std::uint64_t i = 0; i < 1 + random() % 50; ++i) {
      double weight = normal(random) * std::exp2(std::round(normal(random) * spread));
      if (turn % 3 == 0) weight = static_cast<double>(random() % 9) * 0.25;
      weights.push_back(negative && random() % 4 == 0 ? -std::fabs(weight) : std::fabs(weight));
    }
    ExactSum sum;
    for (const double weight : weights) sum.add(weight);
    for (const double least : {1.0, std::round(sum.rounded()), std::floor(sum.rounded()), std::ceil(sum.rounded())}) {
      if (least >= 1 && least < 0x1p63) expect_the_rounded_sums(weights, least);
    }
  }
}

}  // namespace
}  // namespace vicinal::core
