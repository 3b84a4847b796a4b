// Sums of the rows of each cluster, exact and rounded once (contract clause 12), fast enough to be kept while rows
// change clusters: float64 accumulators whose additions never round.
//
// Slices. Every term t of a column is a multiple of some 2^l, and |t| <= 2^E (found out by a scan). It is cut at the
// grids g_s = 2^(E - 30 s), s = 1 .. S, g_S <= 2^l: with m_s = 3 * 2^51 g_s, (r + m_s) - m_s is r rounded to a multiple
// of g_s, because m_s + r lies between 2^52 g_s and 2^53 g_s (|r| <= 2^30 g_s), where floats are g_s apart; r less that
// is exact, at most g_s / 2 = 2^29 g_{s+1}, and a multiple of 2^l; after S slices nothing is left. (Where g_s would be
// below 2^-1074 the first sum is exact already.) So slice s receives multiples of g_s, each at most 2^30 g_s, and 2^22
// of them sum to at most 2^52 g_s: a float64, exactly. Before that many were added, the carry is taken out upwards,
// bottom slice first: what exceeds 2^29 g_s goes to slice s - 1 as a multiple of 2^30 g_s = g_{s-1}, at most 2^22 of
// them, and from slice 1 to slice 0, the top, whose grid is 2^E; it holds 2^53 terms. A row is taken out by adding its
// negative. Order, threads and tiles cannot show. Two slices are enough for most float32 data; memory is k (S + 1) d
// float64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/cluster_parts.hpp"
#include "core/aligned.hpp"
#include "core/exact_sum.hpp"
#include "simd/lloyd_kernels.hpp"

namespace vicinal::cpu {

/// How the terms of a table are cut: slice s of a column is limb `slices` - s of its grid.
class SlicePlan {
 public:
  SlicePlan() = default;
  explicit SlicePlan(const kernels::SumGrid& grid);

  [[nodiscard]] std::int64_t slices() const noexcept { return slices_; }
  [[nodiscard]] std::int64_t stride() const noexcept { return stride_; }
  [[nodiscard]] std::int64_t cluster_size() const noexcept { return (slices_ + 1) * stride_; }
  [[nodiscard]] const double* magic() const noexcept { return magic_.data(); }

 private:
  std::int64_t slices_ = 1;
  std::int64_t stride_ = 8;    // columns, rounded up to whole vectors
  std::vector<double> magic_;  // [slices + 1][stride] m_s, that of the top first
};

class ClusterSums {
 public:
  ClusterSums() = default;
  ClusterSums(const SlicePlan& plan, std::int64_t clusters, bool weighted);

  void clear();
  /// Adds a row of d elements, times factor: a weight, or minus one.
  void add(AddRowFn add_row, const void* row, double factor, std::int64_t cluster, std::int64_t d);
  /// Moves what another one holds of a cluster here, and settles it.
  void take(ClusterSums& other, std::int64_t cluster);
  /// Takes the carries out; must follow the last `add` before `rounded`.
  void settle(std::int64_t cluster);
  /// The sums of a settled cluster; returns the sum of its weights (unweighted: its size). Each is rounded once.
  double rounded(std::int64_t cluster, std::span<double> sums) const;
  /// The integers of a settled cluster on the grid of the plan.
  void parts(std::int64_t cluster, const kernels::SumGrid& grid, std::span<std::int64_t> parts) const;
  [[nodiscard]] std::int64_t size(std::int64_t cluster) const { return sizes_[static_cast<std::size_t>(cluster)]; }

 private:
  [[nodiscard]] double* at(std::int64_t cluster) { return sums_.data() + cluster * plan_->cluster_size(); }
  [[nodiscard]] const double* at(std::int64_t cluster) const { return sums_.data() + cluster * plan_->cluster_size(); }

  const SlicePlan* plan_ = nullptr;
  std::int64_t clusters_ = 0;
  core::AlignedArray<double> sums_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int32_t> additions_;  // since it was settled
  std::vector<std::uint8_t> touched_;    // something was added since it was taken
  std::vector<core::ExactSum> weights_;  // empty: unweighted
};

}  // namespace vicinal::cpu
