// See layer.hpp. Runs of 16 edges: few enough that a box says much of them, so many that boxes cost little.
#include "geo/layer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/infinity.hpp"
#include "core/parallel.hpp"

namespace vicinal::geo {
namespace {

constexpr std::int64_t kRun = 16;
constexpr std::int64_t kLayerChunk = 1024;  // features of a task
constexpr double kLargest = 1e150;          // squares of coordinates do not overflow
constexpr Box kNowhere = {kInfinity, kInfinity, -kInfinity, -kInfinity};

[[noreturn]] void refuse(ErrorCode code, std::string_view name, const std::string& sentence) {
  throw Error(code, std::string(name) + ": " + sentence);
}

void check_offsets(std::string_view name, const char* what, std::span<const std::int64_t> offsets, std::int64_t end) {
  const std::string list = std::string("the offsets of its ") + what;
  if (offsets.empty() || offsets.front() != 0) {
    refuse(ErrorCode::invalid_argument, name, list + " do not begin with 0");
  }
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      refuse(ErrorCode::invalid_argument, name, list + " go down at " + std::to_string(i));
    }
  }
  if (offsets.back() != end) {
    refuse(ErrorCode::invalid_argument, name,
           list + " end with " + std::to_string(offsets.back()) + ", but there are " + std::to_string(end));
  }
}

/// The ring's points without a first one that is repeated at the end.
std::int64_t open_size(const PolygonsView& polygons, std::int64_t ring) {
  const double* const xy = polygons.points.data();
  const std::int64_t first = polygons.rings[static_cast<std::size_t>(ring)];
  std::int64_t last = polygons.rings[static_cast<std::size_t>(ring) + 1];
  while (last - first > 1 && xy[2 * first] == xy[2 * last - 2] && xy[2 * first + 1] == xy[2 * last - 1]) --last;
  return last - first;
}

void widen(Box& box, const Point& p) {
  box.x0 = std::min(box.x0, p.x);
  box.y0 = std::min(box.y0, p.y);
  box.x1 = std::max(box.x1, p.x);
  box.y1 = std::max(box.y1, p.y);
}

/// Twice the area of a closed ring, from its first point; positive where it runs clockwise.
double doubled_area(const Point* p, std::int64_t edges) {
  double sum = 0;
  for (std::int64_t e = 1; e + 1 < edges; ++e) {
    sum += (p[e].y - p[0].y) * (p[e + 1].x - p[0].x) - (p[e].x - p[0].x) * (p[e + 1].y - p[0].y);
  }
  return sum;
}

struct Sizes {
  std::int64_t points = 0;
  std::int64_t runs = 0;
};

class Builder {
 public:
  Builder(const Context& ctx, const PolygonsView& polygons, std::string_view name, Layer& layer)
      : ctx_(ctx), polygons_(polygons), name_(name), layer_(layer) {}

  void build() {
    const std::int64_t n = polygons_.size();
    begins_.resize(static_cast<std::size_t>(n) + 1);
    layer_.first_run.resize(static_cast<std::size_t>(n) + 1);
    layer_.boxes.assign(static_cast<std::size_t>(n), kNowhere);
    layer_.areas.resize(static_cast<std::size_t>(n));
    for_features([this](std::int64_t i) { measure(i); });
    Sizes sum;
    for (std::int64_t i = 0; i <= n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Sizes own = i < n ? Sizes{begins_[at], layer_.first_run[at]} : Sizes{};
      begins_[at] = sum.points;
      layer_.first_run[at] = sum.runs;
      sum.points += own.points;
      sum.runs += own.runs;
    }
    layer_.points.resize(static_cast<std::size_t>(sum.points));
    layer_.runs.resize(static_cast<std::size_t>(sum.runs));
    for_features([this](std::int64_t i) { fill(i); });
  }

 private:
  template <class Work>
  void for_features(const Work& work) {
    const std::int64_t n = polygons_.size();
    core::parallel_for(ctx_, (n + kLayerChunk - 1) / kLayerChunk, [&](std::int64_t task, int /*worker*/) {
      for (std::int64_t i = task * kLayerChunk; i < std::min(n, (task + 1) * kLayerChunk); ++i) work(i);
    });
  }

  template <class Work>
  void for_rings(std::int64_t feature, const Work& work) const {
    for (std::int64_t part = polygons_.features[static_cast<std::size_t>(feature)];
         part < polygons_.features[static_cast<std::size_t>(feature) + 1]; ++part) {
      const std::int64_t shell = polygons_.parts[static_cast<std::size_t>(part)];
      for (std::int64_t ring = shell; ring < polygons_.parts[static_cast<std::size_t>(part) + 1]; ++ring) {
        work(ring, ring == shell);
      }
    }
  }

  void measure(std::int64_t i) {
    Sizes sizes;
    for_rings(i, [&](std::int64_t ring, bool /*shell*/) {
      const std::int64_t first = polygons_.rings[static_cast<std::size_t>(ring)];
      for (std::int64_t p = first; p < polygons_.rings[static_cast<std::size_t>(ring) + 1]; ++p) {
        const double x = polygons_.points[static_cast<std::size_t>(2 * p)];
        const double y = polygons_.points[static_cast<std::size_t>(2 * p) + 1];
        if (!(std::fabs(x) <= kLargest && std::fabs(y) <= kLargest)) {
          refuse(ErrorCode::bad_data, name_,
                 "feature " + std::to_string(i) + ", point " + std::to_string(p - first) + " of ring " +
                     std::to_string(ring) + ": a coordinate is not a number within 1e150");
        }
      }
      const std::int64_t edges = open_size(polygons_, ring);
      if (edges < 3) return;  // it encloses nothing
      sizes.points += edges + 1;
      sizes.runs += (edges + kRun - 1) / kRun;
    });
    begins_[static_cast<std::size_t>(i)] = sizes.points;
    layer_.first_run[static_cast<std::size_t>(i)] = sizes.runs;
  }

  void fill(std::int64_t i) {
    std::int64_t at = begins_[static_cast<std::size_t>(i)];
    std::int64_t run = layer_.first_run[static_cast<std::size_t>(i)];
    double area = 0;
    Box whole = kNowhere;
    for_rings(i, [&](std::int64_t ring, bool shell) {
      const std::int64_t edges = open_size(polygons_, ring);
      if (edges < 3) return;
      const double* const xy = polygons_.points.data() + 2 * polygons_.rings[static_cast<std::size_t>(ring)];
      Point* const to = layer_.points.data() + at;
      for (std::int64_t p = 0; p < edges; ++p) to[p] = {xy[2 * p], xy[2 * p + 1]};
      to[edges] = to[0];
      double doubled = doubled_area(to, edges);
      if ((doubled < 0) == shell) std::reverse(to, to + edges + 1);
      doubled = std::fabs(doubled) / 2;
      area += shell ? doubled : -doubled;
      for (std::int64_t e = 0; e < edges; e += kRun) {
        Run& one = layer_.runs[static_cast<std::size_t>(run++)];
        one = {kNowhere, at + e, std::min(kRun, edges - e), ring};
        for (std::int64_t p = e; p <= e + one.edges; ++p) widen(one.box, to[p]);
        widen(whole, {one.box.x0, one.box.y0});
        widen(whole, {one.box.x1, one.box.y1});
      }
      at += edges + 1;
    });
    layer_.boxes[static_cast<std::size_t>(i)] = whole;
    layer_.areas[static_cast<std::size_t>(i)] = area;
  }

  const Context& ctx_;
  const PolygonsView& polygons_;
  std::string_view name_;
  Layer& layer_;
  std::vector<std::int64_t> begins_;  // first point of each feature
};

}  // namespace

std::uint64_t layer_bytes(const PolygonsView& polygons) {
  const std::uint64_t points = polygons.points.size() / 2;
  const std::uint64_t rings = polygons.rings.size();
  return (points + rings) * sizeof(Point) + (points / kRun + rings) * sizeof(Run) +
         polygons.features.size() * (sizeof(Box) + 3 * sizeof(double));
}

Layer make_layer(const Context& ctx, const PolygonsView& polygons, std::string_view name) {
  if (polygons.points.size() % 2 != 0) {
    refuse(ErrorCode::invalid_argument, name, "its points are an odd number of coordinates");
  }
  check_offsets(name, "rings", polygons.rings, static_cast<std::int64_t>(polygons.points.size() / 2));
  check_offsets(name, "parts", polygons.parts, static_cast<std::int64_t>(polygons.rings.size()) - 1);
  check_offsets(name, "features", polygons.features, static_cast<std::int64_t>(polygons.parts.size()) - 1);
  Layer layer;
  Builder(ctx, polygons, name, layer).build();
  return layer;
}

}  // namespace vicinal::geo
