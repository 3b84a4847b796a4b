// A whole table in float64 on the device, for distances of any two rows.
#pragma once

#include "cuda/base/session.hpp"

namespace vicinal::cuda {

/// A table's rows as their keys take them: float64, and for cosine of length one.
class WideRows {
 public:
  WideRows(Session& session, const plugin::Table& table, const Rows* resident, Metric metric, double p);
  static std::uint64_t bytes(const plugin::Table& table);

  const double* values() const { return values_.data(); }
  const std::uint8_t* zero() const { return zero_.data(); }
  std::int64_t cols() const { return cols_; }
  Metric metric() const { return metric_; }
  double p() const { return p_; }

 private:
  std::int64_t cols_;
  Metric metric_;
  double p_;
  Buffer<double> values_;
  Buffer<std::uint8_t> zero_;
};

}  // namespace vicinal::cuda
