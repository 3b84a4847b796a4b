// See neighbor_weights.hpp.
#include "formulas/nearest/neighbor_weights.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "formulas/nearest/reciprocal_weight.hpp"
#include "vicinal/error.hpp"

namespace vicinal::core {

void NeighborWeights::fail(std::int64_t row, const std::string& what) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: query row {} {}", operation_, row, what));
}

void NeighborWeights::refuse_id(std::int64_t id, std::int64_t table_rows, std::int64_t row) const {
  fail(row, fmt::format("has the neighbor id {}, outside the table's {} rows", id, table_rows));
}

void NeighborWeights::refuse_sum(std::int64_t row) const {
  fail(row, "got weights whose sum is beyond a float64");
}

void NeighborWeights::reciprocal(std::int64_t row, std::span<const double> distances, std::span<double> weights) const {
  bool any_zero = false;
  for (const double d : distances) {
    if (!(d >= 0)) fail(row, fmt::format("has a neighbor at distance {}, which cannot be a weight's inverse", d));
    any_zero = any_zero || d < kTinyDistance;
  }
  for (std::size_t i = 0; i < distances.size(); ++i) weights[i] = reciprocal_weight(any_zero, distances[i]);
}

void NeighborWeights::check(std::int64_t row, const char* which, std::span<const double> weights) const {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) {
      fail(row, fmt::format("got the {} weight {} for its neighbor of rank {}: weights must be finite and not negative",
                            which, weights[i], i));
    }
  }
}

void NeighborWeights::weigh(std::int64_t row, std::ptrdiff_t begin, std::span<const double> distances,
                            std::span<double> weights) const {
  switch (weighting_) {
    case Weighting::uniform:
      std::fill(weights.begin(), weights.end(), 1.0);
      return;
    case Weighting::distance:
      return reciprocal(row, distances, weights);
    case Weighting::custom:
      std::fill(weights.begin(), weights.end(), 0.0);
      custom_(distances, weights);
      return check(row, "custom", weights);
    case Weighting::given:
      std::copy_n(given_.begin() + begin, weights.size(), weights.begin());
      return check(row, "given", weights);
  }
}

}  // namespace vicinal::core
