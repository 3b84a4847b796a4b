// See cluster_parts.hpp. The cpu's slices (cpu/kmeans/sums.hpp) are on the same grid, as float64.
#include "backend/cluster_parts.hpp"

#include <algorithm>
#include <cmath>

#include "formulas/kmeans/limbs.hpp"
#include "vicinal/error.hpp"

namespace vicinal::kernels {
namespace {

constexpr int kSumBits = 32;          // of a limb of core::ExactSum
constexpr int kLeastExponent = 1074;  // its first bit is 2^-1074

}  // namespace

void require_no_overflow(double largest, double largest_weight, std::int64_t rows, std::int64_t d) {
  const auto n = static_cast<double>(rows);
  const double squares = largest * largest * 4 * static_cast<double>(d);
  if (!(std::max(largest, 1.0) * largest_weight * n < 0x1p1000) || !(squares * largest_weight * n < 0x1p1000)) {
    throw Error(ErrorCode::bad_data, "weights: so large that weighted sums may overflow");
  }
}

std::vector<NumberRange> weighted_terms(const TableRanges& ranges) {
  double largest = 0;
  for (const NumberRange& column : ranges.columns) largest = std::max(largest, column.largest);
  const double most = ranges.largest_weight;
  require_no_overflow(largest, most, ranges.rows, std::ssize(ranges.columns));
  std::vector<NumberRange> terms = ranges.columns;
  for (NumberRange& term : terms) {
    if (term.last_bit == 0) continue;
    // Rounding is monotone, so no term is larger than the one and, but for 0, none smaller than the other.
    const double smallest = term.least * ranges.least_weight;
    term.largest = std::max(term.largest * most, 0x1p-1074);
    term.last_bit = std::ldexp(1.0, std::max(smallest > 0 ? std::ilogb(smallest) - 52 : -1074, -1074));
  }
  return terms;
}

SumGrid::SumGrid(std::span<const NumberRange> terms) : bases_(terms.size(), 0) {
  int slices = 1;
  for (std::size_t j = 0; j < terms.size(); ++j) {
    if (terms[j].last_bit == 0) continue;
    bases_[j] = std::ilogb(terms[j].largest) + 1;
    const int depth = bases_[j] - std::ilogb(terms[j].last_bit);
    slices = std::max(slices, (depth + kBits - 1) / kBits);
  }
  for (int& base : bases_) base -= kBits * slices;
  limbs_ = slices + 1;
}

SumGrid::SumGrid(const TableRanges& ranges, bool weighted)
    : SumGrid(weighted ? weighted_terms(ranges) : ranges.columns) {
  if (!weighted) return;
  // A weight is a multiple of its last place, and so many of them sum to less than 2^63 times the largest.
  const int lowest = std::max(std::ilogb(ranges.least_weight) - 52, -kLeastExponent) + kLeastExponent;
  const int highest = std::ilogb(ranges.largest_weight) + 64 + kLeastExponent;
  first_weight_limb_ = lowest / kSumBits;
  const int end = std::min<int>(highest / kSumBits + 1, core::ExactSum::kLimbs);
  weight_limbs_ = end - first_weight_limb_;
}

core::ExactSum SumGrid::weight_of(std::span<const std::int64_t> part) const {
  core::ExactSum::Limbs limbs = {};
  std::copy(part.begin(), part.end(), limbs.begin() + first_weight_limb_);
  return core::ExactSum(limbs);
}

void mean_of(const SumGrid& grid, std::span<std::int64_t> cluster, std::span<double> mean) {
  const auto parts = static_cast<std::size_t>(grid.weight_limbs());
  const double weight =
      grid.weighted() ? grid.weight_of(cluster.subspan(1, parts)).rounded() : static_cast<double>(cluster[0]);
  std::int64_t* limbs = cluster.data() + 1 + parts;
  const int below = grid.limbs() - 1;
  for (std::size_t j = 0; j < mean.size(); ++j, limbs += grid.limbs()) {
    const std::int64_t last = limbs[below] + core::settle_limbs(limbs, 1, below, SumGrid::kBits);
    const int base = grid.base(static_cast<std::int64_t>(j));
    mean[j] = core::rounded_limbs(limbs, 1, below, SumGrid::kBits, last, base) / weight;
  }
}

}  // namespace vicinal::kernels
