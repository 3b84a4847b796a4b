// Synthetic tables with known parameters: the same bits for the same seed on every machine
// (Philox4x32-10 by (seed, stream, counter); contract clause 8).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal {

enum class Shape : std::uint8_t { swiss_roll, s_curve, blobs, moons };
VICINAL_API std::string_view name_of(Shape shape) noexcept;
VICINAL_API Shape shape_from(std::string_view name);

struct GenerateOptions {
  Shape shape = Shape::blobs;
  std::int64_t rows = 1000;
  std::int64_t cols = 2;       ///< blobs only; swiss_roll and s_curve have 3, moons 2
  std::int64_t centers = 3;    ///< blobs only
  double noise = 0;            ///< standard deviation added to each coordinate; blobs: of each cluster, 1 when 0
  std::uint64_t seed = 0;
};

struct Generated {
  std::vector<double> points;         ///< [rows, cols]
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> parameters;     ///< [rows, 2] swiss_roll, s_curve: angle t and height; moons: angle, 0; blobs: empty
  std::vector<std::int64_t> labels;   ///< [rows] blobs: cluster; moons: 0 or 1; else empty
};

/// O(rows * cols). Throws `invalid_argument` naming the option that is out of range.
VICINAL_API Generated generate(const Context& ctx, const GenerateOptions& options);

}  // namespace vicinal
