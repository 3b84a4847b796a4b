// Distances of rows that no search has asked for, as those of neighbors to each other: what ldof and the cofs are made
// of (contract clause 13). O(k^2 d) a row.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "formulas/lof/outlier.hpp"

namespace vicinal::cpu {

/// A table's rows as their keys take them: float64, and for cosine of length one. Borrowed where they lie so already.
class WideRows {
 public:
  WideRows(const Context& ctx, const TableView& table, Metric metric, double p);
  static std::uint64_t bytes(const TableView& table, Metric metric);

  /// The reported distance of two rows. Throws `bad_data` naming them where it overflows.
  [[nodiscard]] double distance(std::int64_t a, std::int64_t b) const;
  /// Their key, which orders them; it may overflow.
  [[nodiscard]] double key(std::int64_t a, std::int64_t b) const;

 private:
  Metric metric_;
  double p_;
  std::int64_t cols_;
  std::int64_t stride_;
  const double* rows_;
  std::vector<double> copy_;
  std::vector<std::uint8_t> zero_;  // for cosine
};

/// The mean distance to the neighbors over theirs to each other.
double ldof_score(const core::Neighborhood& near, const WideRows& rows);

/// What a worker needs to walk through a neighborhood.
struct ChainScratch {
  std::vector<double> nearest;  ///< of each neighbor to the chain
  std::vector<std::int64_t> left;
};
/// The chaining distance of a neighborhood's row.
double chaining_distance(const core::Neighborhood& near, const WideRows& rows, bool in_order, ChainScratch& scratch);

}  // namespace vicinal::cpu
