// See overlap.hpp.
#include "geo/overlap.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal::geo {
namespace {

constexpr std::int64_t kWhole = 4096;  // pairs of pieces that are not worth cutting a box for
constexpr double kEpsilon = 0x1p-53;
constexpr double kMargin = 0x1.3p-7;

double clamp(double v, double low, double high) {
  return v < low ? low : v > high ? high : v;
}

Box common(const Box& a, const Box& b) {
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

}  // namespace

void OverlapArea::add(Chain& chain, const Point& from, const Point& to, double ceiling) {
  if (from.x == to.x) return;
  if (from.y == ceiling && to.y == ceiling && !chain.empty()) {
    Piece& last = chain.back();
    if (last.to == from && last.from.y == ceiling) {  // one flat piece; back and forth is none
      last.to.x = to.x;
      if (last.to.x == last.from.x) chain.pop_back();
      return;
    }
  }
  chain.push_back({from, to});
}

/// The pieces of an edge between the floor and the ceiling of a window, from whose corner they are counted; flat ones
/// at the ceiling for what is above it.
void OverlapArea::cut(Chain& chain, Point from, Point to, const Window& window) {
  const double w = window.width;
  const double h = window.height;
  const Point p = {from.x - window.corner.x, from.y - window.corner.y};
  const Point q = {to.x - window.corner.x, to.y - window.corner.y};
  const double left = std::min(p.x, q.x);
  const double right = std::max(p.x, q.x);
  const double low = std::min(p.y, q.y);
  const double high = std::max(p.y, q.y);
  if (right <= 0 || left >= w || high <= 0 || left == right) return;
  if (left >= 0 && right <= w && low >= 0 && high <= h) return add(chain, p, q, h);
  const double slope = (q.y - p.y) / (q.x - p.x);
  const auto height = [&](double x) { return clamp(p.y + slope * (x - p.x), low, high); };
  Point a = {clamp(p.x, 0, w), p.y};
  Point b = {clamp(q.x, 0, w), q.y};
  if (a.x != p.x) a.y = height(a.x);
  if (b.x != q.x) b.y = height(b.x);
  if (a.y <= 0 && b.y <= 0) return;
  const auto crossing = [&](double y) {
    return clamp(p.x + (y - p.y) / slope, std::min(a.x, b.x), std::max(a.x, b.x));
  };
  if (a.y < 0) a = {crossing(0), 0};  // what is below the floor adds nothing
  if (b.y < 0) b = {crossing(0), 0};
  if (a.y >= h && b.y >= h) return add(chain, {a.x, h}, {b.x, h}, h);
  if (a.y > h) {
    const Point at = {crossing(h), h};
    add(chain, {a.x, h}, at, h);
    a = at;
  }
  if (b.y > h) {
    const Point at = {crossing(h), h};
    add(chain, a, at, h);
    add(chain, at, {b.x, h}, h);
    return;
  }
  add(chain, a, b, h);
}

/// `turned`: x and y change places, and with them left and right, so that rings run backwards.
void OverlapArea::cut_feature(Chain& chain, const Layer& layer, std::int64_t feature, const Box& box, bool turned) {
  chain.clear();
  const auto place = [turned](const Point& p) { return turned ? Point{p.y, p.x} : p; };
  const Point corner = place({box.x0, box.y0});
  const Point far = place({box.x1, box.y1});
  const Window window = {corner, far.x - corner.x, far.y - corner.y};
  const std::int64_t first = layer.first_run[static_cast<std::size_t>(feature)];
  const std::int64_t last = layer.first_run[static_cast<std::size_t>(feature) + 1] - 1;
  for (std::int64_t k = first; k <= last; ++k) {
    const std::int64_t r = turned ? first + last - k : k;
    const Run& run = layer.runs[static_cast<std::size_t>(r)];
    const Point low = place({run.box.x0, run.box.y0});
    const Point high = place({run.box.x1, run.box.y1});
    if (high.x <= corner.x || low.x >= far.x || high.y <= corner.y) continue;
    const Point* const p = layer.points.data() + run.first;
    if (low.y >= far.y) {
      const double from = clamp(place(p[0]).x - corner.x, 0, window.width);
      const double to = clamp(place(p[run.edges]).x - corner.x, 0, window.width);
      add(chain, {turned ? to : from, window.height}, {turned ? from : to, window.height}, window.height);
    } else if (turned) {
      for (std::int64_t e = run.edges; e-- > 0;) cut(chain, place(p[e + 1]), place(p[e]), window);
    } else {
      for (std::int64_t e = 0; e < run.edges; ++e) cut(chain, p[e], p[e + 1], window);
    }
  }
}

/// Pieces that only stand for what is above the ceiling have no length of their own. A piece of an edge at 45 degrees
/// is a flat one, however it was rounded.
void OverlapArea::Lanes::fill(const Chain& chain, Measure measure, double ceiling, cpu::OverlapPieces& pieces) {
  const double steepest = measure == Measure::flat_edges    ? 1 + 0x1p-30
                          : measure == Measure::steep_edges ? 1 - 0x1p-30
                                                            : -1;
  const auto count = static_cast<std::int64_t>(chain.size());
  const std::int64_t padded = (count + 7) / 8 * 8;
  for (auto* array : {&left, &right, &height, &slope, &sign, &weight}) array->reserve(padded);
  for (std::int64_t i = 0; i < count; ++i) {
    const Piece& piece = chain[static_cast<std::size_t>(i)];
    const bool rightwards = piece.from.x < piece.to.x;
    const Point& l = rightwards ? piece.from : piece.to;
    const Point& r = rightwards ? piece.to : piece.from;
    left[i] = l.x;
    right[i] = r.x;
    height[i] = l.y;
    slope[i] = (r.y - l.y) / (r.x - l.x);
    sign[i] = rightwards ? 1 : -1;
    const bool counts = std::fabs(slope[i]) <= steepest && !(l.y == ceiling && r.y == ceiling);
    weight[i] = counts ? std::sqrt(1 + slope[i] * slope[i]) : 0;
  }
  for (std::int64_t i = count; i < padded; ++i) {
    left[i] = 0;
    right[i] = -1;
    height[i] = slope[i] = sign[i] = weight[i] = 0;
  }
  pieces = {left.data(), right.data(), height.data(), slope.data(), sign.data(), weight.data(), count};
}

// Rounding. A height is off by at most 4 roundings of at most the ceiling H, so a term by 24 w H eps; adding up rounds
// each accumulator once a vector. `span` is the sum of all w.
SharedArea OverlapArea::sum(const Chain& a, const Chain& b, double height) {
  cpu::OverlapPieces pieces[2];
  lanes_[0].fill(a, measure_, height, pieces[0]);
  lanes_[1].fill(b, measure_, height, pieces[1]);
  if (measure_ != Measure::area) return {kernels_.lengths(pieces[0], pieces[1]), 0};
  const cpu::OverlapSums sums = kernels_.areas(pieces[0], pieces[1]);
  const std::int64_t vectors = (pieces[1].count + 7) / 8;
  const double additions = static_cast<double>(pieces[0].count) * static_cast<double>(vectors);
  return {sums.area, kEpsilon * height * sums.span * (32 + additions)};
}

SharedArea OverlapArea::integrate(int depth, double width, double height) {
  const Chain& a = chains_[static_cast<std::size_t>(depth)][0];
  const Chain& b = chains_[static_cast<std::size_t>(depth)][1];
  if (a.empty() || b.empty()) return {};
  const auto pairs = static_cast<std::int64_t>(a.size()) * static_cast<std::int64_t>(b.size());
  if (pairs <= kWhole || depth == kDeepest) return sum(a, b, height);
  // Where pieces are on average: all of them may be in one corner.
  const bool sideways = width >= height;
  double sum_of_middles = 0;
  for (const Chain* chain : {&a, &b}) {
    for (const Piece& piece : *chain) {
      sum_of_middles += sideways ? piece.from.x + piece.to.x : piece.from.y + piece.to.y;
    }
  }
  const double whole = sideways ? width : height;
  const double mean = sum_of_middles / 2 / static_cast<double>(a.size() + b.size());
  const double place = mean > 0 && mean < whole ? mean + (whole - mean) * kMargin / 4 : whole / 2;
  const Point half = sideways ? Point{place, height} : Point{width, place};
  const Window halves[2] = {
      {{0, 0}, half.x, half.y},
      {{sideways ? half.x : 0, sideways ? 0 : half.y},
       sideways ? width - half.x : width,
       sideways ? height : height - half.y},
  };
  SharedArea total;
  for (const Window& window : halves) {
    std::array<Chain, 2>& next = chains_[static_cast<std::size_t>(depth) + 1];
    for (std::size_t side = 0; side < 2; ++side) {
      next[side].clear();
      for (const Piece& piece : chains_[static_cast<std::size_t>(depth)][side]) {
        cut(next[side], piece.from, piece.to, window);
      }
    }
    const SharedArea part = integrate(depth + 1, window.width, window.height);
    total.area += part.area;
    total.error += part.error;
  }
  // Each piece was cut anew, at most two coordinates moved by some roundings of the box's size.
  total.error += 16 * kEpsilon * width * height * static_cast<double>(a.size() + b.size());
  return total;
}

SharedArea OverlapArea::operator()(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j) {
  const Box& first = a.boxes[static_cast<std::size_t>(i)];
  const Box& second = b.boxes[static_cast<std::size_t>(j)];
  const Box box = common(first, second);
  if (!(box.x0 < box.x1 && box.y0 < box.y1)) return {};
  measure_ = Measure::area;
  cut_feature(chains_[0][0], a, i, box, false);
  cut_feature(chains_[0][1], b, j, box, false);
  const double width = box.x1 - box.x0;
  const double height = box.y1 - box.y0;
  SharedArea shared = integrate(0, width, height);
  // Cutting an edge at the box moves it by some roundings of its own length, along a side of the box at most.
  const double extent = std::max(std::max(first.x1 - first.x0, first.y1 - first.y0),
                                 std::max(second.x1 - second.x0, second.y1 - second.y0));
  shared.error +=
      16 * kEpsilon * (width + height) * extent * static_cast<double>(chains_[0][0].size() + chains_[0][1].size());
  shared.area = std::max(shared.area, 0.0);
  return shared;
}

double OverlapArea::perimeter(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j) {
  Box box = common(a.boxes[static_cast<std::size_t>(i)], b.boxes[static_cast<std::size_t>(j)]);
  if (!(box.x0 < box.x1 && box.y0 < box.y1)) return 0;
  // Borders along the box's own sides count, and the box is halved where no border is likely to run.
  const double margin = kMargin * std::max(box.x1 - box.x0, box.y1 - box.y0);
  box = {box.x0 - margin, box.y0 - margin, box.x1 + 2 * margin, box.y1 + 2 * margin};
  double length = 0;
  for (const bool turned : {false, true}) {
    measure_ = turned ? Measure::steep_edges : Measure::flat_edges;
    cut_feature(chains_[0][0], a, i, box, turned);
    cut_feature(chains_[0][1], b, j, box, turned);
    const double width = box.x1 - box.x0;
    const double height = box.y1 - box.y0;
    length += integrate(0, turned ? height : width, turned ? width : height).area;
  }
  return length;
}

}  // namespace vicinal::geo
