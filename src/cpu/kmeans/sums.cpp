// See sums.hpp.
#include "cpu/kmeans/sums.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal::cpu {
namespace {

constexpr int kBits = kernels::SumGrid::kBits;               // between two grids
constexpr std::int32_t kSettleAfter = (1 << 22) - (1 << 8);  // additions; a few more are what a carry brings

}  // namespace

SlicePlan::SlicePlan(const kernels::SumGrid& grid)
    : slices_(grid.limbs() - 1),
      stride_((grid.cols() + 7) / 8 * 8),
      magic_(static_cast<std::size_t>(cluster_size()), 0x3p51) {
  for (std::int64_t s = 0; s <= slices_; ++s) {
    for (std::int64_t j = 0; j < grid.cols(); ++j) {
      magic_[static_cast<std::size_t>(s * stride_ + j)] =
          std::ldexp(0x3p51, grid.base(j) + kBits * static_cast<int>(slices_ - s));
    }
  }
}

ClusterSums::ClusterSums(const SlicePlan& plan, std::int64_t clusters, bool weighted)
    : plan_(&plan),
      clusters_(clusters),
      sums_(clusters * plan.cluster_size()),
      sizes_(static_cast<std::size_t>(clusters)),
      additions_(static_cast<std::size_t>(clusters)),
      touched_(static_cast<std::size_t>(clusters)),
      weights_(weighted ? static_cast<std::size_t>(clusters) : 0) {
  clear();
}

void ClusterSums::clear() {
  std::fill_n(sums_.data(), clusters_ * plan_->cluster_size(), 0.0);
  std::fill(sizes_.begin(), sizes_.end(), 0);
  std::fill(additions_.begin(), additions_.end(), 0);
  std::fill(touched_.begin(), touched_.end(), 0);
  std::fill(weights_.begin(), weights_.end(), core::ExactSum());
}

void ClusterSums::add(AddRowFn add_row, const void* row, double factor, std::int64_t cluster, std::int64_t d) {
  const auto c = static_cast<std::size_t>(cluster);
  add_row(row, factor, d, plan_->slices(), plan_->stride(), plan_->magic(), at(cluster));
  sizes_[c] += factor < 0 ? -1 : 1;
  touched_[c] = 1;
  if (!weights_.empty()) weights_[c].add(factor);
  if (++additions_[c] == kSettleAfter) settle(cluster);
}

void ClusterSums::settle(std::int64_t cluster) {
  double* const sums = at(cluster);
  const std::int64_t stride = plan_->stride();
  for (std::int64_t s = plan_->slices(); s > 0; --s) {
    const double* const magic = plan_->magic() + (s - 1) * stride;
    for (std::int64_t j = 0; j < stride; ++j) {
      const double part = (sums[s * stride + j] + magic[j]) - magic[j];
      sums[(s - 1) * stride + j] += part;
      sums[s * stride + j] -= part;
    }
  }
  additions_[static_cast<std::size_t>(cluster)] = 0;
}

void ClusterSums::take(ClusterSums& other, std::int64_t cluster) {
  const auto c = static_cast<std::size_t>(cluster);
  if (other.touched_[c] == 0) return;
  other.settle(cluster);
  double* const from = other.at(cluster);
  double* const to = at(cluster);
  for (std::int64_t i = 0; i < plan_->cluster_size(); ++i) {
    to[i] += from[i];
    from[i] = 0;
  }
  settle(cluster);
  sizes_[c] += other.sizes_[c];
  other.sizes_[c] = 0;
  other.touched_[c] = 0;
  if (weights_.empty()) return;
  weights_[c].add(other.weights_[c]);
  other.weights_[c] = core::ExactSum();
}

double ClusterSums::rounded(std::int64_t cluster, std::span<double> sums) const {
  const double* const from = at(cluster);
  const std::int64_t stride = plan_->stride();
  const std::int64_t slices = plan_->slices();
  for (std::size_t j = 0; j < sums.size(); ++j) {
    // After a carry every slice is below half the grid of the one above it. So the top two, where their sum is exact,
    // leave one rounding to the last of three.
    const double top = from[j];
    const double first = from[static_cast<std::size_t>(stride) + j];
    const double high = top + first;
    const double second = slices > 1 ? from[2 * static_cast<std::size_t>(stride) + j] : 0;
    if (slices <= 2 && (top - high) + first == 0) {
      sums[j] = high + second + 0.0;
      continue;
    }
    core::ExactSum exact;
    for (std::int64_t s = 0; s <= slices; ++s) exact.add(from[static_cast<std::size_t>(s * stride) + j]);
    sums[j] = exact.rounded();
  }
  const auto c = static_cast<std::size_t>(cluster);
  return weights_.empty() ? static_cast<double>(sizes_[c]) : weights_[c].rounded();
}

void ClusterSums::parts(std::int64_t cluster, const kernels::SumGrid& grid, std::span<std::int64_t> parts) const {
  const auto c = static_cast<std::size_t>(cluster);
  std::int64_t* to = parts.data();
  *to++ = sizes_[c];
  if (!weights_.empty()) {
    const core::ExactSum::Limbs limbs = weights_[c].limbs();
    const std::span<const std::int64_t> part = grid.weight_part(limbs);
    to = std::copy(part.begin(), part.end(), to);
  }
  const double* const from = at(cluster);
  for (std::int64_t j = 0; j < grid.cols(); ++j) {
    for (int i = 0; i < grid.limbs(); ++i) {
      const double slice = from[(grid.limbs() - 1 - i) * plan_->stride() + j];
      *to++ = static_cast<std::int64_t>(std::ldexp(slice, -(grid.base(j) + kBits * i)));
    }
  }
}

}  // namespace vicinal::cpu
