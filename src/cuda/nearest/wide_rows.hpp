// Rows in float64 on the device, for distances of any two of them.
#pragma once

#include "cuda/base/session.hpp"

namespace vicinal::cuda {

/// Widens `count` elements of a type in device memory to `to`.
void widen_elements(const Engine& engine, const void* from, DType dtype, std::int64_t count, double* to);
/// Brings n rows of d columns to length one where they lie; zero: [n] which are rows of zeros.
void normalize_rows(const Engine& engine, double* rows, std::int64_t n, std::int64_t d, std::uint8_t* zero);

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
