// See overlap.hpp.
#include "geo/overlap.hpp"

#include <algorithm>
#include <cmath>

#include "core/infinity.hpp"

namespace vicinal::geo {

void OverlapArea::Lanes::fill(const Chain& chain, Measure measure, double ceiling, cpu::OverlapPieces& pieces) {
  const std::int64_t count = chain.size();
  const std::int64_t padded = (count + 7) / 8 * 8;
  for (auto* array : {&left, &right, &height, &slope, &sign, &weight}) array->reserve(padded);
  for (std::int64_t i = 0; i < padded; ++i) {
    const PieceLine line = i < count ? line_of(chain[i], measure, ceiling) : PieceLine{0, -1, 0, 0, 0, 0};
    left[i] = line.left;
    right[i] = line.right;
    height[i] = line.height;
    slope[i] = line.slope;
    sign[i] = line.sign;
    weight[i] = line.weight;
  }
  const std::int64_t eights = padded / 8;
  const std::int64_t padded_eights = (eights + 7) / 8 * 8;
  for (auto* array : {&first, &last}) array->reserve(padded_eights);
  for (std::int64_t k = 0; eights > cpu::kFewEights && k < padded_eights; ++k) {
    first[k] = kInfinity;
    last[k] = -kInfinity;
    for (std::int64_t i = 8 * k; i < std::min(8 * (k + 1), count); ++i) {
      first[k] = std::min(first[k], left[i]);
      last[k] = std::max(last[k], right[i]);
    }
  }
  pieces = {left.data(),   right.data(), height.data(), slope.data(), sign.data(),
            weight.data(), first.data(), last.data(),   count};
}

SharedArea OverlapArea::sum(const Chain& a, const Chain& b, double height) {
  cpu::OverlapPieces pieces[2];
  lanes_[0].fill(a, measure_, height, pieces[0]);
  lanes_[1].fill(b, measure_, height, pieces[1]);
  if (measure_ != Measure::area) return {kernels_.lengths(pieces[0], pieces[1]), 0};
  const cpu::OverlapSums sums = kernels_.areas(pieces[0], pieces[1]);
  return {sums.area, sum_error(height, sums.span, pieces[0].count, pieces[1].count)};
}

SharedArea OverlapArea::integrate(int depth, double width, double height) {
  const Chain& a = chains_[static_cast<std::size_t>(depth)][0];
  const Chain& b = chains_[static_cast<std::size_t>(depth)][1];
  if (a.empty() || b.empty()) return {};
  const std::int64_t pairs = a.size() * b.size();
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
      const Chain& whole_chain = chains_[static_cast<std::size_t>(depth)][side];
      next[side].start(whole_chain.size());
      for (const Piece& piece : whole_chain) {
        cut_edge(next[side], piece.from, piece.to, window);
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
  if (is_flat(box)) return {};
  measure_ = Measure::area;
  cut(a, i, b, j, box);
  SharedArea shared = integrate(0, box.x1 - box.x0, box.y1 - box.y0);
  shared.error += cut_error(first, second, chains_[0][0].size() + chains_[0][1].size());
  shared.area = std::max(shared.area, 0.0);
  return shared;
}

double OverlapArea::perimeter(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j) {
  Box box = common(a.boxes[static_cast<std::size_t>(i)], b.boxes[static_cast<std::size_t>(j)]);
  if (is_flat(box)) return 0;
  box = with_margin(box);
  const double width = box.x1 - box.x0;
  const double height = box.y1 - box.y0;
  measure_ = Measure::flat_edges;
  cut(a, i, b, j, box);
  const double flat = integrate(0, width, height).area;
  measure_ = Measure::steep_edges;
  cut(a, i, b, j, box);
  return flat + integrate(0, height, width).area;
}

/// Both features by the box that they share, sideways for steep edges.
void OverlapArea::cut(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j, const Box& box) {
  const bool turned = measure_ == Measure::steep_edges;
  const Edges sides[2] = {edges_of(a, i), edges_of(b, j)};
  for (std::size_t side = 0; side < 2; ++side) {
    const Edges& edges = sides[side];
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < edges.count; ++r) count += edges.runs[r].edges;
    chains_[0][side].start(count);
    cut_edges(chains_[0][side], edges, box, turned);
  }
}

}  // namespace vicinal::geo
