// Layers of polygons as flat arrays, and the overlap join: which features of two layers share points, and how large the
// shared area is (docs/contract.md, clause 18).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal {

/// Borrowed features; a feature is any number of polygons with holes. Feature i has the parts features[i] .. features[i
/// + 1] - 1, or none. Part p has the rings parts[p] .. parts[p + 1] - 1: the shell first, then its holes. Ring r has
/// the points rings[r] .. rings[r + 1] - 1, in either direction; the first point may be repeated at the end. Rings and
/// parts may touch each other and themselves, at points or along edges. Every array of offsets begins with 0 and has
/// one element more than there are rings, parts or features.
struct PolygonsView {
  std::span<const double> points;          ///< [2 * number of points]: x, y
  std::span<const std::int64_t> rings;     ///< [rings + 1]
  std::span<const std::int64_t> parts;     ///< [parts + 1]
  std::span<const std::int64_t> features;  ///< [n + 1]

  [[nodiscard]] std::int64_t size() const noexcept {
    return features.empty() ? 0 : static_cast<std::int64_t>(features.size()) - 1;
  }
};

/// The same arrays as PolygonsView, owned.
struct Polygons {
  std::vector<double> points;
  std::vector<std::int64_t> rings = {0};
  std::vector<std::int64_t> parts = {0};
  std::vector<std::int64_t> features = {0};

  [[nodiscard]] PolygonsView view() const noexcept { return {points, rings, parts, features}; }
  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(features.size()) - 1; }
  /// Adds a ring (x, y, x, y, ..) to the current part. Call `end_part` after the last ring of a part, and `end_feature`
  /// after the last part of a feature.
  void add_ring(std::span<const double> xy) {
    points.insert(points.end(), xy.begin(), xy.end());
    rings.push_back(static_cast<std::int64_t>(points.size() / 2));
  }
  void end_part() { parts.push_back(static_cast<std::int64_t>(rings.size()) - 1); }
  void end_feature() { features.push_back(static_cast<std::int64_t>(parts.size()) - 1); }
};

/// The relation of two closed regions (Egenhofer's eight, from the 9-intersection of interior, boundary and exterior).
enum class RegionRelation : std::uint8_t {
  disjoint,
  touches,     ///< only boundaries meet
  overlaps,    ///< interiors meet, and each has a part outside the other
  covers,      ///< b is inside a, and their boundaries meet
  covered_by,  ///< a is inside b, and their boundaries meet
  contains,    ///< b is in the interior of a
  within,      ///< a is in the interior of b
  equals,
};
/// "disjoint", "touches", "overlaps", "covers", "covered_by", "contains", "within", "equals".
VICINAL_API std::string_view name_of(RegionRelation relation) noexcept;

/// Two features whose closed regions meet.
struct Overlap {
  std::int64_t a = 0;
  std::int64_t b = 0;
  RegionRelation relation = RegionRelation::touches;
  double area = 0;   ///< area of the intersection, in square units of the coordinates; 0 if they only touch
  double width = 0;  ///< mean width of the intersection, 2 area / perimeter; 0 unless OverlapOptions::widths
};

struct Overlaps {
  std::vector<Overlap> pairs;   ///< by (a, b): every pair that is not disjoint
  std::vector<double> areas_a;  ///< [features of a]
  std::vector<double> areas_b;  ///< [features of b]
  std::int64_t candidates = 0;  ///< pairs whose boxes meet
  std::int64_t on_host = 0;     ///< candidates that were decided on the host instead of the device; 0 without a device
  double device_seconds = 0;    ///< time of the join on the device, without copies; 0 without a device
};

struct OverlapOptions {
  bool widths = true;  ///< compute mean widths, which doubles the time of the areas
};

/// The overlap join: every pair of a feature of `a` and a feature of `b` that share a point, with their relation and
/// the area of their intersection. Relations are exact: they are decided by the signs of determinants of the given
/// coordinates. Areas are float64 sums with the same bits on every machine; their error is about 1e-12 of the smaller
/// feature in practice, and if one feature is inside the other, the area equals that of the inner one. Coordinates are
/// planar: project degrees first. A place that a region covers twice (`self_overlapping` finds such regions) counts
/// twice. With a CUDA context the device finds the pairs and decides those with up to 40 edges whose borders do not
/// touch; the host decides the others, with the same bits.
///
/// Throws `invalid_argument` for offsets that do not fit, `bad_data` for coordinates that are neither 0 nor of a
/// magnitude from 1e-120 to 1e140, `over_memory` before pairs are computed, `cancelled`. Time O((m + n) log n) for the
/// boxes, and O(e log e) per pair with e edges in the intersection of their boxes.
VICINAL_API Overlaps overlaps(const Context& ctx, const PolygonsView& a, const PolygonsView& b,
                              const OverlapOptions& options = {});

/// The numbers of the features that cover a place twice or inside out (bow-ties), ascending: features whose winding
/// number is not 0 or 1 everywhere, except for slivers within rounding. Throws `invalid_argument` for offsets that do
/// not fit, `bad_data` for coordinates that are neither 0 nor of a magnitude from 1e-120 to 1e140, `over_memory`,
/// `cancelled`. O(e log e) per feature of e edges.
VICINAL_API std::vector<std::int64_t> self_overlapping(const Context& ctx, const PolygonsView& polygons);

/// How much the features of one layer overlap each other.
struct LayerOverlap {
  std::int64_t pairs = 0;     ///< pairs of features of the layer that share area, by more than rounding
  std::int64_t features = 0;  ///< features in such a pair
  double area = 0;            ///< sum of the areas of all features
  /// The part of `area` on other features of the layer: the sum over features of the area that each shares with all
  /// others, at most its own area. Exact if no place is covered three times, else an upper bound.
  double covered = 0;
  std::int64_t first = -1;  ///< the pair with the largest shared area, ties to smaller numbers; -1: none
  std::int64_t second = -1;
  double largest = 0;  ///< the area that this pair shares
};

/// How much the features of one layer overlap each other, as in a file with several levels of a hierarchy. Two features
/// count as a pair if they share more than 1e-9 of the smaller one's area and more than the bound of its rounding
/// error. The same bits for every thread count. Throws as `overlaps` does, and `over_memory` if there are too many
/// pairs. Half the cost of the areas of `overlaps(polygons, polygons)`.
VICINAL_API LayerOverlap overlaps_within(const Context& ctx, const PolygonsView& polygons);

}  // namespace vicinal
