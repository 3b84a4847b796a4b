// Synthetic tables with known parameters: the same bits for the same seed on every machine
// (Philox4x32-10 by (seed, stream, counter); contract clause 8).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal {

enum class Shape : std::uint8_t { swiss_roll, s_curve, blobs, moons, kdd, poker, covertype };
VICINAL_API std::string_view name_of(Shape shape) noexcept;
VICINAL_API Shape shape_from(std::string_view name);

struct GenerateOptions {
  Shape shape = Shape::blobs;
  std::int64_t rows = 1000;  ///< >= 1
  std::int64_t cols = 2;     ///< blobs only; swiss_roll and s_curve have 3, moons 2, kdd 41, poker and covertype 10
  std::int64_t centers = 3;  ///< blobs only
  /// Standard deviation of the noise of each coordinate; blobs: of each cluster, 0 means 1; <= 1e300.
  double noise = 0;
  std::uint64_t seed = 0;
};

struct Generated {
  std::vector<double> points;  ///< [rows, cols]
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  /// [rows, 2], before noise: swiss_roll, s_curve: angle t and height; moons: angle and 0; else empty.
  std::vector<double> parameters;
  /// [rows] blobs: cluster; moons: 0 (outer) or 1 (inner); kdd: 0 (normal) or 1 to 22, the kind of attack; poker: 0 to
  /// 9, the class of the hand; covertype: 1 to 7, the cover type; else empty.
  std::vector<std::int64_t> labels;
};

/// The shapes, with u and v drawn from [0, 1) for each row (scikit-learn's formulas; its draws are others):
/// - swiss_roll: t = 1.5 pi (1 + 2 u), point (t cos t, 21 v, t sin t).
/// - s_curve: t = 3 pi (u - 0.5), point (sin t, 2 v, sign(t) (cos t - 1)).
/// - moons: the first rows / 2 on the outer half circle (cos t, sin t), the others on the inner one
///   (1 - cos t, 0.5 - sin t), t evenly spaced from 0 to pi in each.
/// - blobs: centers drawn from [-10, 10)^cols, row i belongs to cluster i mod centers.
/// - kdd, poker, covertype: synthetic rows with the columns, types, classes and shares of classes of KDD Cup 99 (texts
///   as numbers), Poker Hand and the ten quantities of Covertype. kdd repeats as many rows as the 10 percent file does;
///   poker deals hands of five cards, so that distances have few values.
/// O(rows * cols). Throws `invalid_argument` naming the option that is out of range, `over_memory` before it starts.
VICINAL_API Generated generate(const Context& ctx, const GenerateOptions& options);

}  // namespace vicinal
