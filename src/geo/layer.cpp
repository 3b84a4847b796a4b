// See layer.hpp. Runs of 16 edges: few enough that a box says much of them, so many that boxes cost little.
#include "geo/layer.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "geo/border.hpp"

namespace vicinal::geo {
namespace {

constexpr std::int64_t kRun = 16;
constexpr std::int64_t kLayerChunk = 1024;  // features of a task

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

bool is_exact(double v) {
  const double magnitude = std::fabs(v);
  return ((magnitude <= kLargest) & ((magnitude >= kSmallest) | (magnitude == 0))) != 0;
}

std::int64_t runs_of(std::int64_t edges) {
  return (edges + kRun - 1) / kRun;
}

struct Sizes {
  std::int64_t points = 0;
  std::int64_t runs = 0;
};

/// How far the arrays of a feature are filled.
struct Filling {
  std::int64_t point = 0;
  std::int64_t run = 0;
  std::int64_t chain = 0;
  double area = 0;
  Box box = kEmptyBox;
};

std::uint64_t bytes_of(std::uint64_t points, std::uint64_t runs, std::uint64_t features) {
  return points * sizeof(Point) + runs * sizeof(Run) + features * (sizeof(Box) + 3 * sizeof(double) + sizeof(char));
}

class Builder {
 public:
  Builder(const Context& ctx, const PolygonsView& polygons, std::string_view name, Layer& layer)
      : ctx_(ctx), polygons_(polygons), name_(name), layer_(layer) {}

  void build() {
    const std::int64_t n = polygons_.size();
    begins_.resize(static_cast<std::size_t>(n) + 1);
    layer_.first_run.resize(static_cast<std::size_t>(n) + 1);
    layer_.boxes.assign(static_cast<std::size_t>(n), kEmptyBox);
    layer_.areas.resize(static_cast<std::size_t>(n));
    touching_.resize(static_cast<std::size_t>(n));
    borders_.assign(static_cast<std::size_t>(ctx_.threads()), Border(ctx_.cancel_token()));
    for_features([this](std::int64_t i, Border& border) { measure(i, border); });
    ctx_.check_cancelled();
    Sizes sum;
    for (std::int64_t i = 0; i <= n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Sizes own = i < n ? Sizes{begins_[at], layer_.first_run[at]} : Sizes{};
      begins_[at] = sum.points;
      layer_.first_run[at] = sum.runs;
      sum.points += own.points;
      sum.runs += own.runs;
    }
    // More than was planned only where features touch themselves.
    core::require_memory(ctx_, bytes_of(std::uint64_t(sum.points), std::uint64_t(sum.runs), std::uint64_t(n)), name_);
    layer_.points.resize(static_cast<std::size_t>(sum.points));
    layer_.runs.resize(static_cast<std::size_t>(sum.runs));
    for_features([this](std::int64_t i, Border& border) { fill(i, border); });
    ctx_.check_cancelled();
  }

 private:
  template <class Work>
  void for_features(const Work& work) {
    const std::int64_t n = polygons_.size();
    core::parallel_for(ctx_, (n + kLayerChunk - 1) / kLayerChunk, [&](std::int64_t task, int worker) {
      Border& border = borders_[static_cast<std::size_t>(worker)];
      for (std::int64_t i = task * kLayerChunk; i < std::min(n, (task + 1) * kLayerChunk); ++i) work(i, border);
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

  void measure(std::int64_t i, Border& border) {
    Sizes sizes;
    for_rings(i, [&](std::int64_t ring, bool /*shell*/) {
      const std::int64_t first = polygons_.rings[static_cast<std::size_t>(ring)];
      for (std::int64_t p = first; p < polygons_.rings[static_cast<std::size_t>(ring) + 1]; ++p) {
        if (!is_exact(polygons_.points[static_cast<std::size_t>(2 * p)]) ||
            !is_exact(polygons_.points[static_cast<std::size_t>(2 * p) + 1])) {
          refuse(ErrorCode::bad_data, name_,
                 "feature " + std::to_string(i) + ", point " + std::to_string(p - first) + " of ring " +
                     std::to_string(ring) + ": a coordinate must be 0 or of a magnitude from 1e-120 to 1e140");
        }
      }
    });
    std::int64_t rings = 0;
    const double* ring_points = nullptr;
    for_rings_with_points(i, [&](const double* xy, std::int64_t edges, bool /*shell*/) {
      ++rings;
      ring_points = xy;
      sizes.points += edges + 1;
      sizes.runs += runs_of(edges);
    });
    const bool small = rings == 1 && sizes.points <= kMaxSmallRing + 1;
    if (!small) load(i, border);
    const bool touching = small ? touches_itself(ring_points, sizes.points - 1) : border.touches_itself();
    if (touching) {
      if (small) load(i, border);
      border.cut();
      sizes = {static_cast<std::int64_t>(border.points().size()), 0};
      for (const Border::Chain& chain : border.chains()) sizes.runs += runs_of(chain.edges);
    }
    touching_[static_cast<std::size_t>(i)] = touching ? 1 : 0;
    begins_[static_cast<std::size_t>(i)] = sizes.points;
    layer_.first_run[static_cast<std::size_t>(i)] = sizes.runs;
  }

  /// Its rings that enclose something.
  template <class Work>
  void for_rings_with_points(std::int64_t feature, const Work& work) const {
    for_rings(feature, [&](std::int64_t ring, bool shell) {
      const std::int64_t edges = open_size(polygons_, ring);
      const double* const xy = polygons_.points.data() + 2 * polygons_.rings[static_cast<std::size_t>(ring)];
      if (edges >= 3) work(xy, edges, shell);
    });
  }

  void load(std::int64_t i, Border& border) const {
    border.clear();
    for_rings_with_points(i,
                          [&](const double* xy, std::int64_t edges, bool shell) { border.add_ring(xy, edges, shell); });
  }

  void fill(std::int64_t i, Border& border) {
    const auto at = static_cast<std::size_t>(i);
    Filling filling = {begins_[at], layer_.first_run[at]};
    if (touching_[at] != 0) {
      load(i, border);
      border.cut();
      std::copy(border.points().begin(), border.points().end(), layer_.points.begin() + begins_[at]);
      for (const Border::Chain& chain : border.chains()) add_chain(filling, chain.edges);
      filling.area = border.area();
    } else {
      for_rings_with_points(i, [&](const double* xy, std::int64_t edges, bool shell) {
        Point* const to = layer_.points.data() + filling.point;
        for (std::int64_t p = 0; p < edges; ++p) to[p] = {xy[2 * p], xy[2 * p + 1]};
        to[edges] = to[0];
        filling.area += turn_ring(to, edges, shell);
        add_chain(filling, edges);
      });
    }
    layer_.boxes[at] = filling.box;
    layer_.areas[at] = filling.area;
  }

  /// Runs of the chain whose points are next.
  void add_chain(Filling& filling, std::int64_t edges) {
    const Point* const p = layer_.points.data() + filling.point;
    for (std::int64_t e = 0; e < edges; e += kRun) {
      Run& run = layer_.runs[static_cast<std::size_t>(filling.run++)];
      run = {kEmptyBox, filling.point + e, std::min(kRun, edges - e), filling.chain};
      for (std::int64_t k = e; k <= e + run.edges; ++k) widen(run.box, p[k]);
      widen(filling.box, {run.box.x0, run.box.y0});
      widen(filling.box, {run.box.x1, run.box.y1});
    }
    filling.point += edges + 1;
    ++filling.chain;
  }

  const Context& ctx_;
  const PolygonsView& polygons_;
  std::string_view name_;
  Layer& layer_;
  std::vector<std::int64_t> begins_;  // first point of each feature
  std::vector<char> touching_;        // whether it touches itself
  std::vector<Border> borders_;       // one a thread
};

}  // namespace

std::uint64_t layer_bytes(const PolygonsView& polygons) {
  const std::uint64_t points = polygons.points.size() / 2;
  const std::uint64_t rings = polygons.rings.size();
  return bytes_of(points + rings, points / kRun + rings, polygons.features.size());
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
