// What each neighbor of a query weighs (docs: include/vicinal/vote.hpp), for votes and for means; and what is wrong
// with a neighborhood that cannot be weighed. O(k) a query.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "vicinal/vote.hpp"

namespace vicinal::core {

class NeighborWeights {
 public:
  /// `operation` begins every sentence. `custom` is borrowed.
  NeighborWeights(std::string_view operation, Weighting weighting, const WeightFn& custom)
      : operation_(operation), weighting_(weighting), custom_(custom) {}

  /// Fills the weights of one query's neighbors. Throws `invalid_argument` naming the query row.
  void weigh(std::int64_t row, std::span<const double> distances, std::span<double> weights) const;

  [[noreturn]] void refuse_id(std::int64_t id, std::int64_t table_rows, std::int64_t row) const;
  [[noreturn]] void refuse_sum(std::int64_t row) const;

 private:
  [[noreturn]] void fail(std::int64_t row, const std::string& what) const;
  void reciprocal(std::int64_t row, std::span<const double> distances, std::span<double> weights) const;
  void by_caller(std::int64_t row, std::span<const double> distances, std::span<double> weights) const;

  std::string_view operation_;
  Weighting weighting_;
  const WeightFn& custom_;
};

}  // namespace vicinal::core
