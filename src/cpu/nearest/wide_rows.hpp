// Distances of any two rows of a table, which no search has asked for. O(d) each.
#pragma once

#include <cstdint>
#include <vector>

#include "core/raw_vector.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

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
  core::RawVector<double> copy_;
  std::vector<std::uint8_t> zero_;  // for cosine
};

}  // namespace vicinal::cpu
