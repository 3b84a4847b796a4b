// Rows shaped like those of three public data sets: columns, types, classes and their shares, and how many rows are
// equal (contract clause 19). They stand in for the data where these are absent.
#pragma once

#include <cstdint>
#include <span>

#include "vicinal/generate.hpp"

namespace vicinal::ops {

inline constexpr std::int64_t kKddColumns = 41;
inline constexpr std::int64_t kPokerColumns = 10;
inline constexpr std::int64_t kCovertypeColumns = 10;

/// Whether a shape is one of the three.
constexpr bool is_twin(Shape shape) noexcept {
  return shape == Shape::kdd || shape == Shape::poker || shape == Shape::covertype;
}

/// Fills row i of a shape for which `is_twin`; returns its label. O(columns).
std::int64_t place_twin(Shape shape, std::uint64_t seed, std::int64_t row, std::span<double> point);

}  // namespace vicinal::ops
