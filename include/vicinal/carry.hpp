// carry: transfers values of the features of one map to the features of another, by the shares of area that `match`
// found. Amounts are divided, rates are averaged, and of codes the one with the largest share is taken
// (docs/contract.md, clause 18).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/match.hpp"

namespace vicinal {

/// What a number of a feature of `a` means when the feature is divided.
enum class CarryRule : std::uint8_t {
  sum,   ///< an amount, such as a population: a part of a feature gets the fraction of the amount that it has of the
         ///< area
  mean,  ///< a rate, such as a density or a price: every part keeps the rate; parts are averaged, weighted by their
         ///< areas
};

/// One number for each feature of `b`.
struct CarriedNumbers {
  std::vector<double> values;  ///< [features of b]; NaN where no feature with a value shares area
  std::vector<double> shares;  ///< [features of b] fraction of its area that it shares with features that have a value
  double left = 0;  ///< CarryRule::sum: the part of all amounts that no feature of `b` gets; CarryRule::mean: 0
};

/// One code for each feature of `b`.
struct CarriedCodes {
  std::vector<std::int64_t> codes;  ///< [features of b]; -1 where no feature with a code shares area
  std::vector<double> shares;       ///< [features of b] fraction of its area that it shares with features of that code
};

/// Carries `values` [features of a] along all pairs that share area, kept or not. NaN is a missing value and is
/// ignored. /// CarryRule::sum: the exact sum of value * share_a; each product is rounded, the sum is rounded once.
/// CarryRule::mean: /// the exact sum of value * share_b divided by the sum of share_b, never outside the range of
/// these values. So results /// do not depend on the order of the pairs and have the same bits for every thread count.
/// If features of `a` overlap, /// the place counts twice, and `shares` may exceed 1; an excess of at most 1e-9, which
/// may come from rounding of /// coordinates, is removed. Throws `invalid_argument` for another number of values and
/// for infinite ones, `bad_data` for a sum beyond float64, `over_memory`, `cancelled`. O(pairs) time and memory.
VICINAL_API CarriedNumbers carry(const Context& ctx, const Match& match, std::span<const double> values,
                                 CarryRule rule);

/// Carries `codes` [features of a]; features with equal codes belong together, and -1 is a missing code. A feature of
/// `b` gets the code with the largest share: the exact sum of share_b over its pairs with features of that code,
/// rounded once; ties go to the smaller code. All pairs that share area count, kept or not. Throws `invalid_argument`
/// for another number of codes and for codes below -1, `over_memory`, `cancelled`. O(pairs log partners) time, O(pairs)
/// memory.
VICINAL_API CarriedCodes carry_codes(const Context& ctx, const Match& match, std::span<const std::int64_t> codes);

}  // namespace vicinal
