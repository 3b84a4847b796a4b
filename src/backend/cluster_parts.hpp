// Sums of clusters as integers, so that shards of a table can be merged (contract clause 12, shards). What the numbers
// of all shards are like fixes one grid; on it the sums of each shard are int64 limbs, and integer additions in any
// order give those of the whole table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/exact_sum.hpp"
#include "vicinal/dtype.hpp"

namespace vicinal::kernels {

/// What the numbers of a column are like, but for zeros.
struct NumberRange {
  double largest = 0;   ///< of |number|
  double last_bit = 0;  ///< a power of two that divides every number; 0: every number is 0
  double least = 0;     ///< of |number|
};

/// What the rows of a table are like, and their weights.
struct TableRanges {
  std::vector<NumberRange> columns;  ///< [d]
  std::int64_t rows = 0;
  double least_weight = 1;
  double largest_weight = 1;
};

/// Throws `bad_data` where weighted sums of so many rows may overflow: `largest` is that of |value| in any of d
/// columns.
void require_no_overflow(double largest, double largest_weight, std::int64_t rows, std::int64_t d);

/// The ranges of weight times value, rounded: [d]. Throws `bad_data` where sums of them might overflow.
std::vector<NumberRange> weighted_terms(const TableRanges& ranges);

/// The grid of a table's sums. A term of column j is a multiple of 2^base(j) and below 2^base(j) times 2^(30 (limbs -
/// 1)) in magnitude. A sum has `limbs` integers; limb i counts 2^(base(j) + 30 i). A shard's limbs
/// below the last are at most 2^30 in magnitude, so that those of 2^32 shards can be added; the last one is at most the
/// number of terms, but for a carry.
class SumGrid {
 public:
  static constexpr int kBits = 30;

  SumGrid() = default;
  /// Of terms that are the values themselves.
  explicit SumGrid(std::span<const NumberRange> terms);
  /// Of a table's values, times its weights if it has some. Throws as `weighted_terms`.
  SumGrid(const TableRanges& ranges, bool weighted);

  [[nodiscard]] std::int64_t cols() const noexcept { return static_cast<std::int64_t>(bases_.size()); }
  [[nodiscard]] int limbs() const noexcept { return limbs_; }
  [[nodiscard]] int base(std::int64_t column) const noexcept { return bases_[static_cast<std::size_t>(column)]; }

  /// The integers of a cluster: its size; the limbs of core::ExactSum that its weight can touch, none without weights;
  /// and [cols, limbs] of its sums, the lowest limb first.
  [[nodiscard]] std::int64_t cluster_size() const noexcept { return 1 + weight_limbs_ + cols() * limbs_; }
  [[nodiscard]] bool weighted() const noexcept { return weight_limbs_ > 0; }
  /// The part of a weight's limbs that is kept; the others are 0.
  [[nodiscard]] std::span<const std::int64_t> weight_part(const core::ExactSum::Limbs& limbs) const {
    return std::span(limbs).subspan(static_cast<std::size_t>(first_weight_limb_),
                                    static_cast<std::size_t>(weight_limbs_));
  }
  /// The sum of weights whose part this is.
  [[nodiscard]] core::ExactSum weight_of(std::span<const std::int64_t> part) const;
  [[nodiscard]] std::int64_t weight_limbs() const noexcept { return weight_limbs_; }

 private:
  std::vector<int> bases_;
  int limbs_ = 2;
  int first_weight_limb_ = 0;
  int weight_limbs_ = 0;
};

/// Limbs of a sum that plans of memory count before the values are known: for float32 of magnitudes up to 2^36 apart;
/// for float64, and products with weights, up to 2^67 apart.
constexpr std::int64_t planned_limbs(DType dtype, bool weighted) noexcept {
  return dtype == DType::float64 || weighted ? 5 : 3;
}

/// The mean of a cluster that has rows, from its integers, which are used up: each sum and the weight are rounded once,
/// then divided.
void mean_of(const SumGrid& grid, std::span<std::int64_t> cluster, std::span<double> mean);

}  // namespace vicinal::kernels
