// carry: values of the features of one map carried to those of another by the shares of area that `match` found: counts
// are divided, rates are averaged, codes are those of the largest share. docs/contract.md, clause 18.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/match.hpp"

namespace vicinal {

/// What a number of a feature of `a` means when the feature is divided.
enum class CarryRule : std::uint8_t {
  sum,   ///< an amount, such as a population: each part has the share of it that it has of the feature's area
  mean,  ///< a rate, such as a density or a price: each part has all of it, and parts are averaged by their areas
};

/// One number for each feature of `b`.
struct CarriedNumbers {
  std::vector<double> values;  ///< [features of b]; NaN where no feature with a value shares area
  std::vector<double> shares;  ///< [features of b]: of its area, what it shares with features that have a value
  double left = 0;             ///< of an amount: the part that no feature of `b` has; 0 of a rate
};

/// One code for each feature of `b`.
struct CarriedCodes {
  std::vector<std::int64_t> codes;  ///< [features of b]; -1 where no feature with a code shares area
  std::vector<double> shares;       ///< [features of b]: of its area, what it shares with features of that code
};

/// Carries `values` [features of a] along all pairs that share area, kept or not. NaN is a value that is missing and
/// takes no part. A sum is the exact sum of value * share_a, each product rounded, itself rounded once; a mean is the
/// exact sum of value * share_b divided by that of share_b, and within the values that it is made of. So results do not
/// depend on the order of the pairs, and are the same bits for every thread count. Where `a` covers a place twice, it
/// counts twice, and `shares` may exceed 1; by at most 1e-9, which may be rounding of coordinates, they are 1. Throws
/// `invalid_argument` for another number of values and for infinite ones, `bad_data` for a sum beyond float64,
/// `over_memory`, `cancelled`. O(pairs) time and memory.
VICINAL_API CarriedNumbers carry(const Context& ctx, const Match& match, std::span<const double> values,
                                 CarryRule rule);

/// Carries `codes` [features of a], of which equal ones mean the same and -1 is missing: a feature of `b` takes the
/// code with the largest share, the exact sum of share_b over the pairs of features of that code, rounded once; ties to
/// the smaller code. All pairs that share area count, kept or not. Throws `invalid_argument` for another number of
/// codes and for codes below -1, `over_memory`, `cancelled`. O(pairs log partners) time, O(pairs) memory.
VICINAL_API CarriedCodes carry_codes(const Context& ctx, const Match& match, std::span<const std::int64_t> codes);

}  // namespace vicinal
