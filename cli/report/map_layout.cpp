// See map_layout.hpp. Parts of features are marked on a grid of cells; cells near each other make one component, and
// the reach of "near" grows until there are few of them.
#include "report/map_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/interrupt.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::size_t kMostFrames = 7;
constexpr double kMainShare = 0.4;
constexpr double kInsetWidth = 0.24;  // of the main frame's larger side
constexpr double kInsetHeight = 0.2;
constexpr double kGap = 0.02;
constexpr double kMostMagnified = 8;  // times the main frame's scale

std::int64_t at(std::span<const std::int64_t> list, std::int64_t i) {
  return list[static_cast<std::size_t>(i)];
}

/// Of the part's shell; its holes lie within.
Box box_of_part(const PolygonsView& polygons, std::int64_t part) {
  Box box;
  const std::int64_t ring = at(polygons.parts, part);
  if (ring == at(polygons.parts, part + 1)) return box;
  for (std::int64_t p = at(polygons.rings, ring); p < at(polygons.rings, ring + 1); ++p) {
    box.add(polygons.points[static_cast<std::size_t>(2 * p)], polygons.points[static_cast<std::size_t>(2 * p) + 1]);
  }
  return box;
}

}  // namespace

void Box::add(double x, double y) {
  x0 = std::min(x0, x);
  y0 = std::min(y0, y);
  x1 = std::max(x1, x);
  y1 = std::max(y1, y);
}

void Box::add(const Box& other) {
  if (other.empty()) return;
  add(other.x0, other.y0);
  add(other.x1, other.y1);
}

MapLayout::MapLayout(std::span<const PolygonsView> layers, double size) {
  std::vector<Box> parts;
  for (const PolygonsView& layer : layers) {
    for (std::int64_t part = 0; part < at(layer.features, layer.size()); ++part) {
      if (part % 1024 == 0) poll_interrupt();
      parts.push_back(box_of_part(layer, part));
      whole_.add(parts.back());
    }
  }
  if (whole_.empty()) whole_ = {0, 0, 1, 1};
  cell_size_ = std::max({whole_.width(), whole_.height(), 1e-300}) / kCells;
  std::erase_if(parts, [](const Box& box) { return box.empty(); });
  find_parts(parts);
  std::vector<Box> boxes;
  for (const Box& part : parts) {
    const auto frame = static_cast<std::size_t>(frame_of_cell_[cell_of(part)]);
    if (frame >= boxes.size()) boxes.resize(frame + 1);
    boxes[frame].add(part);
  }
  if (boxes.empty()) boxes.push_back(whole_);
  const double share = boxes[0].width() * boxes[0].height() / std::max(whole_.width() * whole_.height(), 1e-300);
  if (boxes.size() > 1 && share > kMainShare) {
    frame_of_cell_ = {};
    boxes = {whole_};
  }
  set_frames(boxes, size);
}

MapLayout::MapLayout(std::span<const MapMember> members, double size) {
  for (const MapMember& member : members) {
    const std::span<const std::int64_t> features = member.polygons->features;
    for (std::int64_t part = at(features, member.feature); part < at(features, member.feature + 1); ++part) {
      whole_.add(box_of_part(*member.polygons, part));
    }
  }
  if (whole_.empty()) whole_ = {0, 0, 1, 1};
  set_frames({whole_}, size);
}

int MapLayout::cell(double value, double low) const {
  return std::clamp(static_cast<int>((value - low) / cell_size_), 0, kCells - 1);
}

std::size_t MapLayout::cell_of(const Box& part) const {
  return static_cast<std::size_t>(cell(part.y0, whole_.y0) * kCells + cell(part.x0, whole_.x0));
}

/// Numbers the components of cells: 0 is the one whose parts have the largest boxes.
void MapLayout::find_parts(const std::vector<Box>& parts) {
  Cells marked = {};
  for (const Box& part : parts) {
    poll_interrupt();
    for (int y = cell(part.y0, whole_.y0); y <= cell(part.y1, whole_.y0); ++y) {
      for (int x = cell(part.x0, whole_.x0); x <= cell(part.x1, whole_.x0); ++x) {
        marked[static_cast<std::size_t>(y * kCells + x)] = 1;
      }
    }
  }
  std::vector<double> weights;
  for (int reach = 2;; reach += reach / 2) {
    frame_of_cell_.fill(-1);
    weights.clear();
    for (int seed = 0; seed < kCells * kCells; ++seed) {
      if (marked[static_cast<std::size_t>(seed)] == 0 || frame_of_cell_[static_cast<std::size_t>(seed)] >= 0) continue;
      if (weights.size() > kMostFrames) break;
      const auto number = static_cast<int>(weights.size());
      weights.push_back(0);
      std::vector<int> open = {seed};
      frame_of_cell_[static_cast<std::size_t>(seed)] = number;
      while (!open.empty()) {
        const int from = open.back();
        open.pop_back();
        for (int y = std::max(0, from / kCells - reach); y <= std::min(kCells - 1, from / kCells + reach); ++y) {
          for (int x = std::max(0, from % kCells - reach); x <= std::min(kCells - 1, from % kCells + reach); ++x) {
            const auto to = static_cast<std::size_t>(y * kCells + x);
            if (marked[to] == 0 || frame_of_cell_[to] >= 0) continue;
            frame_of_cell_[to] = number;
            open.push_back(static_cast<int>(to));
          }
        }
      }
    }
    if (weights.size() <= kMostFrames) break;
  }
  if (weights.empty()) return;
  for (const Box& part : parts) {
    weights[static_cast<std::size_t>(frame_of_cell_[cell_of(part)])] +=
        part.width() / cell_size_ * (part.height() / cell_size_);
  }
  const auto main = static_cast<int>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  for (int& number : frame_of_cell_) {
    if (number == main) {
      number = 0;
    } else if (number >= 0 && number < main) {
      ++number;
    }
  }
}

void MapLayout::set_frames(const std::vector<Box>& boxes, double size) {
  const auto framed = [](const Box& box, double scale) {
    return MapFrame{.x = box.x0,
                    .y = box.y1,
                    .scale = scale,
                    .width = std::max(1.0, box.width() * scale),
                    .height = std::max(1.0, box.height() * scale)};
  };
  const auto scale_within = [](const Box& box, double width, double height) {
    return std::min(width / std::max(box.width(), 1e-300), height / std::max(box.height(), 1e-300));
  };
  const double main_scale = size / std::max({boxes[0].width(), boxes[0].height(), 1e-300});
  frames_.push_back(framed(boxes[0], main_scale));
  width_ = frames_[0].width;
  height_ = frames_[0].height;
  if (boxes.size() == 1) return;
  // Insets stand in rows below the main frame.
  const double gap = kGap * size;
  const double room = std::max(width_, size / 2);
  double left = gap;
  double top = height_ + 2 * gap;
  double tallest = 0;
  for (std::size_t i = 1; i < boxes.size(); ++i) {
    const double scale =
        std::min(scale_within(boxes[i], kInsetWidth * size, kInsetHeight * size), kMostMagnified * main_scale);
    MapFrame inset = framed(boxes[i], scale);
    if (left > gap && left + inset.width + gap > room) {
      left = gap;
      top += tallest + 2 * gap;
      tallest = 0;
    }
    inset.left = left;
    inset.top = top;
    left += inset.width + 2 * gap;
    tallest = std::max(tallest, inset.height);
    width_ = std::max(width_, inset.left + inset.width + gap);
    frames_.push_back(inset);
  }
  height_ = top + tallest + gap;
  frames_[0].left = (width_ - frames_[0].width) / 2;
}

const MapFrame& MapLayout::frame_of(const Box& part) const {
  if (frames_.size() == 1 || part.empty()) return frames_[0];
  return frames_[static_cast<std::size_t>(std::max(0, frame_of_cell_[cell_of(part)]))];
}

std::string MapLayout::path(const PolygonsView& polygons, std::int64_t feature) const {
  poll_interrupt();
  std::string text;
  for (std::int64_t part = at(polygons.features, feature); part < at(polygons.features, feature + 1); ++part) {
    const MapFrame& frame = frame_of(box_of_part(polygons, part));
    for (std::int64_t ring = at(polygons.parts, part); ring < at(polygons.parts, part + 1); ++ring) {
      const std::size_t begin = text.size();
      std::int64_t last_x = 0;
      std::int64_t last_y = 0;
      int points = 0;
      for (std::int64_t p = at(polygons.rings, ring); p < at(polygons.rings, ring + 1); ++p) {
        const double* const xy = polygons.points.data() + 2 * p;
        const std::int64_t x = std::llround(frame.left + (xy[0] - frame.x) * frame.scale);
        const std::int64_t y = std::llround(frame.top + (frame.y - xy[1]) * frame.scale);
        if (points == 0) {
          fmt::format_to(std::back_inserter(text), "M{} {}", x, y);
        } else if (std::llabs(x - last_x) + std::llabs(y - last_y) < 3) {
          continue;
        } else {
          fmt::format_to(std::back_inserter(text), "l{} {}", x - last_x, y - last_y);
        }
        last_x = x;
        last_y = y;
        ++points;
      }
      if (points < 3) {
        text.resize(begin);
      } else {
        text += 'z';
      }
    }
  }
  return text;
}

std::optional<Box> MapLayout::place(std::span<const MapMember> members) const {
  std::vector<Box> boxes(frames_.size());
  poll_interrupt();
  for (const MapMember& member : members) {
    const PolygonsView& polygons = *member.polygons;
    for (std::int64_t part = at(polygons.features, member.feature); part < at(polygons.features, member.feature + 1);
         ++part) {
      const Box box = box_of_part(polygons, part);
      if (box.empty()) continue;
      const MapFrame& frame = frame_of(box);
      Box& place = boxes[static_cast<std::size_t>(&frame - frames_.data())];
      place.add(frame.left + (box.x0 - frame.x) * frame.scale, frame.top + (frame.y - box.y1) * frame.scale);
      place.add(frame.left + (box.x1 - frame.x) * frame.scale, frame.top + (frame.y - box.y0) * frame.scale);
    }
  }
  const auto largest = std::max_element(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
    return (a.empty() ? -1 : a.width() * a.height()) < (b.empty() ? -1 : b.width() * b.height());
  });
  return largest->empty() ? std::nullopt : std::optional(*largest);
}

}  // namespace vicinal::cli::report
