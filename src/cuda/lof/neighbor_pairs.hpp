// Distances of neighbors to each other on the device: what ldof and the cofs are made of (contract clause 13).
#pragma once

#include "cuda/base/session.hpp"
#include "formulas/lof/outlier.hpp"

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

/// scores[row] of ldof. Throws `bad_data` naming two rows whose distance overflows; so does `find_chains`.
void find_ldof(const Engine& engine, const core::Neighborhoods& near, const WideRows& rows, double* scores);
/// chains[row]: chaining distances.
void find_chains(const Engine& engine, const core::Neighborhoods& near, const WideRows& rows, bool in_order,
                 double* chains);
/// Bytes the two take besides.
std::uint64_t pair_bytes(const Engine& engine, std::int64_t k);

}  // namespace vicinal::cuda
