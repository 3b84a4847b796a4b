// How much the rows around a row weigh (contract clause 28), known as soon as it is enough.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "core/exact_sum.hpp"

namespace vicinal::cpu {

/// When a row is a core row.
struct WeighingRule {
  double min_weight = 0;            ///< min_samples
  std::span<const double> weights;  ///< [n], or empty: each row weighs 1
  bool may_shrink = false;          ///< some weight is below 0: a part of the rows says nothing of all
  /// A sum of floats is off by less than n 2^-53 of it, relative to the exact one, where no term is below 0.
  double margin = 0;

  WeighingRule(double min_samples, std::span<const double> of_rows, std::int64_t rows)
      : min_weight(min_samples), weights(of_rows), margin(1 + static_cast<double>(rows) * 0x1p-51) {
    for (const double weight : weights) may_shrink = may_shrink || weight < 0;
  }
};

/// The weight around one row, added up.
class NeighborhoodWeight {
 public:
  void start(const WeighingRule& rule, std::int64_t row) {
    sum_ = 0;
    exact_.reset();
    if (!rule.weights.empty()) exact_.emplace();
    add(rule, row);
  }
  void add(const WeighingRule& rule, std::int64_t row) {
    if (!exact_) {
      sum_ += 1;  // a whole number, exactly
      return;
    }
    const double weight = rule.weights[static_cast<std::size_t>(row)];
    sum_ += weight;
    exact_->add(weight);
  }
  /// Whether it is enough whatever comes.
  [[nodiscard]] bool suffices(const WeighingRule& rule) const noexcept {
    if (!exact_) return sum_ >= rule.min_weight;
    return !rule.may_shrink && sum_ >= rule.min_weight * rule.margin;
  }
  /// Whether it is enough when all rows were added.
  [[nodiscard]] bool is_enough(const WeighingRule& rule) const noexcept {
    return (exact_ ? exact_->rounded() : sum_) >= rule.min_weight;
  }

 private:
  double sum_ = 0;
  std::optional<core::ExactSum> exact_;
};

}  // namespace vicinal::cpu
