// See radius.hpp.
#include "formulas/nearest/radius.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "core/distance.hpp"
#include "core/ordered_bits.hpp"

namespace vicinal::core {
namespace {

/// Numbers of doubles around the likely key where the bisection looks first: the largest key within r is at most two
/// from the rounded square of r, and r itself where the distance is the key.
constexpr std::int64_t kAround = 4;

}  // namespace

double largest_key_within(Metric metric, double r, double p) {
  const auto within = [&](std::int64_t key) { return reported_distance(metric, from_ordered_bits(key), p) <= r; };
  std::int64_t low =
      metric == Metric::inner_product ? ordered_bits(-std::numeric_limits<double>::max()) : ordered_bits(0.0);
  std::int64_t high = ordered_bits(std::numeric_limits<double>::max());
  if (within(high)) return from_ordered_bits(high);
  if (!within(low)) return -std::numeric_limits<double>::infinity();
  if (metric != Metric::minkowski) {
    // Each end is taken only if it is one: nothing rests on the guess.
    const std::int64_t likely = ordered_bits(metric == Metric::euclidean ? r * r : r);
    const std::int64_t from = std::clamp(likely - kAround, low, high);
    const std::int64_t to = std::clamp(likely + kAround, low, high);
    if (within(from)) low = from;
    if (!within(to)) high = to;
  }
  while (low + 1 < high) {
    const std::int64_t middle = std::midpoint(low, high);
    (within(middle) ? low : high) = middle;
  }
  return from_ordered_bits(low);
}

}  // namespace vicinal::core
