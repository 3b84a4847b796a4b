// What each neighbor of a query weighs (docs: include/vicinal/vote.hpp), for votes and for means; and what is wrong
// with a neighborhood that cannot be weighed. O(k) a query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "vicinal/vote.hpp"

namespace vicinal::core {

class NeighborWeights {
 public:
  /// `operation` begins every sentence. `custom` and `given` are borrowed.
  NeighborWeights(std::string_view operation, Weighting weighting, const WeightFn& custom,
                  std::span<const double> given)
      : operation_(operation), weighting_(weighting), custom_(custom), given_(given) {}

  /// Fills the weights of one query's neighbors, the first of which is neighbor `begin` of the graph. Throws
  /// `invalid_argument` naming the query row.
  void weigh(std::int64_t row, std::ptrdiff_t begin, std::span<const double> distances,
             std::span<double> weights) const;

  [[noreturn]] void refuse_id(std::int64_t id, std::int64_t table_rows, std::int64_t row) const;
  [[noreturn]] void refuse_sum(std::int64_t row) const;

 private:
  [[noreturn]] void fail(std::int64_t row, const std::string& what) const;
  void reciprocal(std::int64_t row, std::span<const double> distances, std::span<double> weights) const;
  void check(std::int64_t row, const char* which, std::span<const double> weights) const;

  std::string_view operation_;
  Weighting weighting_;
  const WeightFn& custom_;
  std::span<const double> given_;
};

}  // namespace vicinal::core
