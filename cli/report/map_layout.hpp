// Where two maps are drawn on one sheet: their main part as large as the sheet, parts that lie far from it in insets
// below.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vicinal/polygons.hpp"

namespace vicinal::cli::report {

struct Box {
  double x0 = HUGE_VAL;
  double y0 = HUGE_VAL;
  double x1 = -HUGE_VAL;
  double y1 = -HUGE_VAL;

  [[nodiscard]] bool empty() const { return !(x0 <= x1); }
  [[nodiscard]] double width() const { return empty() ? 0 : x1 - x0; }
  [[nodiscard]] double height() const { return empty() ? 0 : y1 - y0; }
  void add(double x, double y);
  void add(const Box& other);
};

/// A rectangle of the sheet: the plane from (x, y), its upper left corner, magnified and moved to (left, top).
struct MapFrame {
  double x = 0;
  double y = 0;
  double scale = 1;
  double left = 0;
  double top = 0;
  double width = 1;
  double height = 1;
};

struct MapMember {
  const PolygonsView* polygons = nullptr;
  std::int64_t feature = 0;
};

class MapLayout {
 public:
  /// The larger side of the main frame has `size` units. Insets where all of it together would fill less than two
  /// fifths of the sheet; at most 6 of them, for parts that lie near each other one. O(points) time.
  MapLayout(std::span<const PolygonsView> layers, double size);
  /// These features alone in one frame.
  MapLayout(std::span<const MapMember> members, double size);

  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const { return height_; }
  /// The main one first.
  [[nodiscard]] const std::vector<MapFrame>& frames() const { return frames_; }

  /// The feature's rings as SVG path data, in whole units; points nearer than three units to the one before are left
  /// out, and so are rings of less than three points.
  [[nodiscard]] std::string path(const PolygonsView& polygons, std::int64_t feature) const;
  /// Where the features are drawn: in the frame in which they fill most. None without polygons.
  [[nodiscard]] std::optional<Box> place(std::span<const MapMember> members) const;

 private:
  static constexpr int kCells = 64;
  using Cells = std::array<int, std::size_t{kCells} * kCells>;

  void find_parts(const std::vector<Box>& parts);
  void set_frames(const std::vector<Box>& boxes, double size);
  [[nodiscard]] int cell(double value, double low) const;
  /// The cell of the part's corner of least x and y.
  [[nodiscard]] std::size_t cell_of(const Box& part) const;
  [[nodiscard]] const MapFrame& frame_of(const Box& part) const;

  Box whole_;
  double cell_size_ = 1;
  Cells frame_of_cell_ = {};
  std::vector<MapFrame> frames_;
  double width_ = 1;
  double height_ = 1;
};

}  // namespace vicinal::cli::report
