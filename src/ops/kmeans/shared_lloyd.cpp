// See shared_lloyd.hpp.
#include "ops/kmeans/shared_lloyd.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/common/together.hpp"
#include "ops/kmeans/merged_means.hpp"
#include "ops/kmeans/shared_seeding.hpp"

namespace vicinal::ops {
namespace {

constexpr std::size_t kValuesAtOnce = 65536;

// Integers of a cluster that are planned: 16 are those of weights up to 2^384 apart.
std::int64_t planned_size(std::int64_t d, bool weighted, std::int64_t limbs) {
  return 1 + (weighted ? 16 : 0) + limbs * d;
}

}  // namespace

void SharedLloyd::start(std::span<const double> centres) {
  centres_.assign(centres.begin(), centres.end());
  k_ = static_cast<std::int64_t>(centres_.size() / d());
  together(ranks_, [&] {
    if (own_) own_->start(centres);
  });
}

kernels::LloydStep SharedLloyd::assign() {
  const auto k = static_cast<std::size_t>(k_);
  std::vector<std::int64_t> sums(k + 2, 0);  // sizes, what changed, and the vote
  together_sum(ranks_, sums, [&] {
    if (!own_) return;
    sums[k] = own_->assign().changed;
    own_->sizes(std::span(sums).first(k));
  });
  kernels::LloydStep step;
  step.changed = sums[k];
  step.empty = std::count(sums.begin(), sums.begin() + k_, std::int64_t{0});
  return step;
}

void SharedLloyd::move(std::int64_t row, std::int32_t cluster) {
  if (row >= first() && row < end()) own_->move(row - first(), cluster);
}

double SharedLloyd::means() {
  const auto size = static_cast<std::size_t>(grid_.cluster_size());
  parts_.assign(static_cast<std::size_t>(k_) * size + 1, 0);
  const auto parts = std::span(parts_).first(parts_.size() - 1);
  together_sum(ranks_, parts_, [&] {
    if (own_) own_->parts(parts);
  });
  double shift = 0;
  together(ranks_, [&] {
    shift = merged_means(ctx_, grid_, parts, centres_);
    if (own_) own_->recentre(centres_);
  });
  return shift;
}

void SharedLloyd::recentre(std::span<const double> centres) {
  centres_.assign(centres.begin(), centres.end());
  if (own_) own_->recentre(centres);
}

void SharedLloyd::centres(std::span<double> centres) const {
  std::copy(centres_.begin(), centres_.end(), centres.begin());
}

void SharedLloyd::sizes(std::span<std::int64_t> sizes) const {
  std::fill(sizes.begin(), sizes.end(), 0);
  if (own_) own_->sizes(sizes);
  ranks_.all_reduce_sum(sizes);
}

void SharedLloyd::labels(std::span<std::int32_t> labels) const {
  if (own_) own_->labels(labels);
}

void SharedLloyd::keys(std::span<double> keys) {
  together(ranks_, [&] {
    if (own_) own_->keys(keys);
  });
}

double SharedLloyd::inertia() {
  core::ExactSum::Limbs limbs = {};
  std::array<std::int64_t, std::tuple_size_v<core::ExactSum::Limbs> + 1> sums = {};
  together_sum(ranks_, sums, [&] {
    if (!own_) return;
    limbs = own_->exact_inertia().limbs();
    std::copy(limbs.begin(), limbs.end(), sums.begin());
  });
  std::copy(sums.begin(), sums.end() - 1, limbs.begin());
  return core::ExactSum(limbs).rounded();
}

// A row has one rank, which adds its bits to the zeros of the others, some values at a time.
void SharedLloyd::rows(std::span<const std::int64_t> rows, std::span<double> values) const {
  together(ranks_, [&] {
    std::fill(values.begin(), values.end(), 0.0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] < first() || rows[i] >= end()) continue;
      const std::array<std::int64_t, 1> own = {rows[i] - first()};
      own_->rows(own, values.subspan(i * d(), d()));
    }
  });
  std::vector<std::int64_t> bits;
  for (std::size_t at = 0; at < values.size(); at += bits.size()) {
    bits.resize(std::min(kValuesAtOnce, values.size() - at));
    std::memcpy(bits.data(), values.data() + at, bits.size() * sizeof(double));
    ranks_.all_reduce_sum(bits);
    std::memcpy(values.data() + at, bits.data(), bits.size() * sizeof(double));
  }
}

std::unique_ptr<kernels::Seeding> SharedLloyd::seeding(std::int64_t trials) {
  std::unique_ptr<kernels::ShardSeeding> own;
  together(ranks_, [&] {
    if (own_) own = own_->shard_seeding(trials, first());
  });
  return std::make_unique<SharedSeeding>(ranks_, *this, std::move(own), begins_, grid_.cols());
}

kernels::AssignCounts SharedLloyd::counts() const {
  kernels::AssignCounts counts;
  if (own_) counts = own_->counts();
  std::array<std::int64_t, 3> sums = {counts.rows, counts.skipped, counts.rechecked};
  ranks_.all_reduce_sum(sums);
  return {sums[0], sums[1], sums[2]};
}

std::uint64_t SharedLloyd::bytes(std::int64_t k, std::int64_t d, std::int64_t n, bool weighted, std::int64_t limbs) {
  // Centers, parts, shifts and counts; what draws know of all masses.
  const auto clusters = static_cast<std::uint64_t>(k);
  const auto cols = static_cast<std::uint64_t>(d);
  const std::uint64_t cluster = cols * 8 + static_cast<std::uint64_t>(planned_size(d, weighted, limbs)) * 8 + 16;
  return clusters * (cluster + 8 + cols * 16) + static_cast<std::uint64_t>(n / kernels::ShardSeeding::kAligned) * 16;
}

std::uint64_t SharedLloyd::more_bytes(std::int64_t k, const kernels::SumGrid& grid, std::int64_t planned_limbs) {
  const std::int64_t more = grid.cluster_size() - planned_size(grid.cols(), grid.weighted(), planned_limbs);
  return static_cast<std::uint64_t>(k * std::max<std::int64_t>(more, 0)) * 8;
}

}  // namespace vicinal::ops
