// Sums in limbs against core::ExactSum, bit by bit: any base, any width of limbs, terms that cancel, subnormal ones.
#include "formulas/kmeans/limbs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/exact_sum.hpp"
#include "core/philox.hpp"

namespace vicinal::core {
namespace {

double sum_in_limbs(const std::vector<double>& terms, int base, int bits, int count) {
  std::vector<std::int64_t> limbs(static_cast<std::size_t>(count) + 2, 0);
  for (const double term : terms) {
    const LimbParts to = limb_parts(term, base, bits);
    for (int i = 0; i < 3; ++i) {
      if (to.parts[i] == 0) continue;
      const auto part = static_cast<std::int64_t>(to.parts[i]);
      limbs.at(static_cast<std::size_t>(to.limb + i)) += to.negative ? -part : part;
    }
  }
  EXPECT_EQ(limbs[static_cast<std::size_t>(count)], 0) << "a term beyond the last limb";
  const std::int64_t carry = settle_limbs(limbs.data(), 1, count, bits);
  return rounded_limbs(limbs.data(), 1, count, bits, carry, base);
}

void check_limbs(const std::vector<double>& terms, const std::string& what) {
  ExactSum exact;
  double largest = 0;
  int last = 1024;
  for (const double term : terms) {
    exact.add(term);
    largest = std::max(largest, std::fabs(term));
    if (term == 0) continue;
    int exponent = 0;
    double rest = std::frexp(std::fabs(term), &exponent);
    while (rest != std::floor(rest)) {
      rest *= 2;
      --exponent;
    }
    last = std::min(last, exponent);
  }
  const double wanted = exact.rounded();
  const int top = largest == 0 ? 0 : std::ilogb(largest) + 1;
  for (const int bits : {31, 32, 37, 42}) {
    for (const int base : {last, std::max(-1074, last - 5), -1074}) {
      const int count = std::max(1, (std::max(top - base, 1) + bits - 1) / bits);
      const double got = sum_in_limbs(terms, base, bits, count);
      EXPECT_EQ(std::memcmp(&got, &wanted, sizeof got), 0) << what << ": " << got << " " << wanted << " " << bits;
    }
  }
}

TEST(Limbs, SumsAreThoseOfExactSum) {
  for (std::uint64_t turn = 0; turn < 400; ++turn) {
    std::vector<double> terms;
    const int spread = static_cast<int>(turn % 7) * 40;
    const int offset = turn % 5 == 0 ? -1060 : static_cast<int>(turn % 11) * 60 - 300;
    for (std::uint64_t i = 0; i < 1 + turn % 90; ++i) {
      const double u = philox_uniform(turn, 1, 3 * i) - 0.5;
      const int shift = static_cast<int>(philox_uniform(turn, 1, 3 * i + 1) * (spread + 1)) + offset;
      terms.push_back(std::ldexp(turn % 3 == 0 ? static_cast<double>(static_cast<float>(u)) : u, shift));
      if (turn % 4 == 1 && i > 3) terms.push_back(-terms[i / 2]);
    }
    check_limbs(terms, "turn " + std::to_string(turn));
  }
}

TEST(Limbs, Edges) {
  check_limbs({}, "nothing");
  check_limbs({0.0, -0.0}, "zeros");
  check_limbs({1.5, -1.5}, "cancelled");
  check_limbs({0x1p53, 1.0}, "half, to even");
  check_limbs({0x1p53, 1.0, 0x1p-60}, "just beyond half");
  check_limbs({-0x1p53, -1.0, -0x1p-60}, "and below zero");
  check_limbs({0x1p53, 3.0}, "half, away from odd");
  check_limbs({0x1p-1074, 0x1p-1074, -0x1p-1073, 0x1p-1074}, "the least");
  check_limbs({0x1.fffffffffffffp500, 0x1p-500}, "far apart");
  check_limbs({-0x1p300, 0x1p-300}, "borrowed all the way");
  // Twice the highest bit of the last limb, for each width.
  for (int exponent = 0; exponent < kMaxLimbBits; ++exponent) {
    const double half = -std::ldexp(1.0, exponent);
    check_limbs({half, half}, "limbs of 0 and a carry below it, " + std::to_string(exponent));
  }
}

}  // namespace
}  // namespace vicinal::core
