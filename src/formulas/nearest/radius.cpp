// See radius.hpp.
#include "formulas/nearest/radius.hpp"

#include <cstdint>
#include <limits>
#include <numeric>

#include "core/distance.hpp"
#include "core/ordered_bits.hpp"

namespace vicinal::core {

double largest_key_within(Metric metric, double r, double p) {
  std::int64_t low =
      metric == Metric::inner_product ? ordered_bits(-std::numeric_limits<double>::max()) : ordered_bits(0.0);
  std::int64_t high = ordered_bits(std::numeric_limits<double>::max());
  if (reported_distance(metric, from_ordered_bits(high), p) <= r) return from_ordered_bits(high);
  if (!(reported_distance(metric, from_ordered_bits(low), p) <= r)) return -std::numeric_limits<double>::infinity();
  while (low + 1 < high) {
    const std::int64_t middle = std::midpoint(low, high);
    (reported_distance(metric, from_ordered_bits(middle), p) <= r ? low : high) = middle;
  }
  return from_ordered_bits(low);
}

}  // namespace vicinal::core
