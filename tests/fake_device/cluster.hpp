// The k-means half of the fake plug-in (plugin.cpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "core/distance.hpp"
#include "engine.hpp"
#include "formulas/kmeans/limbs.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::plugin {

/// The CPU's iterations over rows of its own, behind the plug-in's functions.
class FakeClustering {
 public:
  /// `part`: rows that there is room for at a time.
  FakeClustering(std::vector<double> values, std::int64_t cols, std::vector<double> weights, std::int64_t clusters,
                 bool sums, std::int64_t rows_at_a_time, std::int64_t first_row, const Engine& of)
      : part(rows_at_a_time),
        engine(of),
        values_(std::move(values)),
        weights_(std::move(weights)),
        cols_(cols),
        task_{TableView(values_.data(), static_cast<std::int64_t>(values_.size()) / cols, cols), weights_, clusters,
              sums, first_row},
        lloyd_(kernels::cpu_backend().kmeans().lloyd(Context::cpu({.threads = 1}), task_)) {
    ++alive;
  }
  ~FakeClustering() { --alive; }
  FakeClustering(const FakeClustering&) = delete;
  FakeClustering& operator=(const FakeClustering&) = delete;

  static inline std::atomic<std::int64_t> alive = 0;
  static inline std::atomic<std::int64_t> label_copies = 0;

  kernels::Lloyd& lloyd() { return *lloyd_; }
  std::unique_ptr<kernels::Seeding>& seeding() { return seeding_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t rows() const { return task_.table.rows(); }
  const std::vector<double>& values() const { return values_; }
  std::int64_t k = 0;
  std::int64_t rechecked = 0;
  std::int64_t part = 0;
  const Engine& engine;

  // Of some of a table's rows: all terms are added anew each time, one by one.
  void ranges(TermRange* columns) const {
    for (std::int64_t row = 0; row < rows(); ++row) {
      for (std::int64_t j = 0; j < columns_of_sums(); ++j) {
        const double term = std::fabs(term_of(row, j));
        TermRange& column = columns[j];
        if (j < cols_) column.largest = std::max(column.largest, std::fabs(values_[at(row, j)]));
        column.largest_term = std::max(column.largest_term, term);
        if (term == 0) continue;
        int exponent = 0;
        const auto bits = static_cast<std::uint64_t>(std::ldexp(std::frexp(term, &exponent), 53));
        column.last = std::min(column.last, exponent - 53 + std::countr_zero(bits) + 1074);
      }
    }
  }
  void share(const SumLayout& layout) {
    layout_ = layout;
    bases_.assign(layout.bases, layout.bases + columns_of_sums());
  }
  std::int64_t* parts() {
    parts_.assign(static_cast<std::size_t>(k * (layout_.limbs * columns_of_sums() + 1)), 0);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(rows()));
    lloyd_->labels(labels);
    for (std::int64_t row = 0; row < rows(); ++row) {
      const std::int32_t cluster = labels[static_cast<std::size_t>(row)];
      for (std::int64_t j = 0; j < columns_of_sums(); ++j) {
        const core::LimbParts to = core::limb_parts(term_of(row, j), bases_[static_cast<std::size_t>(j)], layout_.bits);
        for (int i = 0; i < 3; ++i) {
          const auto units = static_cast<std::int64_t>(to.parts[i]);
          if (units != 0) parts_[sum_at(cluster, to.limb + i, j)] += to.negative ? -units : units;
        }
      }
      ++parts_[size_at(cluster)];
    }
    return parts_.data();
  }
  double means_of(const std::int64_t* parts) {
    std::vector<double> centres(static_cast<std::size_t>(k * cols_));
    lloyd_->centres(centres);
    double shift = 0;
    for (std::int64_t c = 0; c < k; ++c) {
      const std::int64_t size = parts[size_at(c)];
      if (size == 0) continue;
      const auto sum_of = [&](std::int64_t j) {
        std::vector<std::int64_t> limbs;
        for (int i = 0; i < layout_.limbs; ++i) limbs.push_back(parts[sum_at(c, i, j)]);
        const std::int64_t carry = core::settle_limbs(limbs.data(), 1, layout_.limbs, layout_.bits);
        return core::rounded_limbs(limbs.data(), 1, layout_.limbs, layout_.bits, carry,
                                   bases_[static_cast<std::size_t>(j)]);
      };
      const double weight = weights_.empty() ? static_cast<double>(size) : sum_of(cols_);
      std::vector<double> mean;
      for (std::int64_t j = 0; j < cols_; ++j) mean.push_back(sum_of(j) / weight);
      double* const centre = centres.data() + c * cols_;
      shift += core::euclidean_key(centre, mean.data(), cols_);
      std::copy(mean.begin(), mean.end(), centre);
    }
    lloyd_->recentre(centres);
    return shift;
  }
  void inertia_limbs(std::int64_t* limbs) {
    std::vector<double> keys(static_cast<std::size_t>(rows()));
    lloyd_->keys(keys);
    std::fill(limbs, limbs + kInertiaLimbs, 0);
    for (std::size_t row = 0; row < keys.size(); ++row) {
      const core::LimbParts to = core::limb_parts(weights_.empty() ? keys[row] : weights_[row] * keys[row], -1074, 32);
      for (int i = 0; i < 3; ++i) {
        if (to.parts[i] != 0) limbs[to.limb + i] += static_cast<std::int64_t>(to.parts[i]);
      }
    }
  }

 private:
  std::int64_t columns_of_sums() const { return cols_ + (weights_.empty() ? 0 : 1); }
  std::size_t at(std::int64_t row, std::int64_t j) const { return static_cast<std::size_t>(row * cols_ + j); }
  double term_of(std::int64_t row, std::int64_t j) const {
    const double value = j < cols_ ? values_[at(row, j)] : 1;
    return weights_.empty() ? value : weights_[static_cast<std::size_t>(row)] * value;
  }
  std::size_t sum_at(std::int64_t cluster, std::int64_t limb, std::int64_t j) const {
    return static_cast<std::size_t>((cluster * layout_.limbs + limb) * columns_of_sums() + j);
  }
  std::size_t size_at(std::int64_t cluster) const {
    return static_cast<std::size_t>(k * layout_.limbs * columns_of_sums() + cluster);
  }

  std::vector<double> values_;
  std::vector<double> weights_;
  std::int64_t cols_;
  kernels::ClusterTask task_;
  std::unique_ptr<kernels::Lloyd> lloyd_;
  std::unique_ptr<kernels::Seeding> seeding_;
  SumLayout layout_;
  std::vector<std::int32_t> bases_;
  std::vector<std::int64_t> parts_;
};

}  // namespace vicinal::plugin
