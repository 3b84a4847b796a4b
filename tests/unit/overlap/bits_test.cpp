// Areas and widths by vectors of every instruction set are the bits of the same sum an edge at a time:
// formulas/overlap/pieces.hpp as a device compiles it, term j of the second feature in accumulator j mod 8 (contract
// clauses 4 and 18).
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/isa.hpp"
#include "geo/overlap.hpp"
#include "simd/overlap_kernels.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal::geo {
namespace {

using Pieces = std::vector<Piece>;

double tree_of(const std::array<double, 8>& a) {
  return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

double measured_sum_of(const Pieces& a, const Pieces& b, Measure measure, double ceiling) {
  std::array<double, 8> sums{};
  for (const Piece& piece : a) {
    const PieceLine f = line_of(piece, measure, ceiling);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const PieceLine g = line_of(b[j], measure, ceiling);
      const double left = std::max(f.left, g.left);
      const double width = std::min(f.right, g.right) - left;
      if (!(width > 0)) continue;
      const double right = std::min(f.right, g.right);
      const double f0 = f.height + f.slope * (left - f.left);
      const double f1 = f.height + f.slope * (right - f.left);
      const double g0 = g.height + g.slope * (left - g.left);
      const double g1 = g.height + g.slope * (right - g.left);
      const double d0 = f0 - g0;
      const double d1 = f1 - g1;
      const double s = std::fabs(d0) + std::fabs(d1);
      if (measure == Measure::area) {
        const double apart = d0 * d1 < 0 ? (d0 * d0 + d1 * d1) / s : s;
        sums[j % 8] += (((f0 + f1) + (g0 + g1)) - apart) * width * (f.sign / 4 * g.sign);
      } else {
        const double below = s > 0 ? (std::max(-d0, 0.0) + std::max(-d1, 0.0)) / s : 0.5;
        sums[j % 8] += (f.weight * g.sign * below + g.weight * f.sign * (1 - below)) * width;
      }
    }
  }
  return tree_of(sums);
}

/// As OverlapArea::integrate halves boxes.
double integral_of(const Pieces& a, const Pieces& b, Measure measure, double width, double height, int depth = 0) {
  if (a.empty() || b.empty()) return 0;
  if (static_cast<std::int64_t>(a.size() * b.size()) <= kWhole || depth == 40)
    return measured_sum_of(a, b, measure, height);
  const bool sideways = width >= height;
  double middles = 0;
  for (const Pieces* side : {&a, &b}) {
    for (const Piece& piece : *side) middles += sideways ? piece.from.x + piece.to.x : piece.from.y + piece.to.y;
  }
  const double whole = sideways ? width : height;
  const double mean = middles / 2 / static_cast<double>(a.size() + b.size());
  const double place = mean > 0 && mean < whole ? mean + (whole - mean) * kMargin / 4 : whole / 2;
  const Window halves[2] = {{{0, 0}, sideways ? place : width, sideways ? height : place},
                            {{sideways ? place : 0, sideways ? 0 : place},
                             sideways ? width - place : width,
                             sideways ? height : height - place}};
  double total = 0;
  for (const Window& window : halves) {
    Pieces next[2];
    for (const int side : {0, 1}) {
      for (const Piece& piece : side == 0 ? a : b) cut_edge(next[side], piece.from, piece.to, window);
    }
    total += integral_of(next[0], next[1], measure, window.width, window.height, depth + 1);
  }
  return total;
}

double area_of(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j) {
  const Box box = common(a.boxes[static_cast<std::size_t>(i)], b.boxes[static_cast<std::size_t>(j)]);
  if (is_flat(box)) return 0;
  Pieces cut[2];
  cut_edges(cut[0], edges_of(a, i), box, false);
  cut_edges(cut[1], edges_of(b, j), box, false);
  return std::max(integral_of(cut[0], cut[1], Measure::area, box.x1 - box.x0, box.y1 - box.y0), 0.0);
}

double perimeter_of(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j) {
  Box box = common(a.boxes[static_cast<std::size_t>(i)], b.boxes[static_cast<std::size_t>(j)]);
  if (is_flat(box)) return 0;
  box = with_margin(box);
  double total = 0;
  for (const bool turned : {false, true}) {
    Pieces cut[2];
    cut_edges(cut[0], edges_of(a, i), box, turned);
    cut_edges(cut[1], edges_of(b, j), box, turned);
    const double width = box.x1 - box.x0;
    const double height = box.y1 - box.y0;
    total += turned ? integral_of(cut[0], cut[1], Measure::steep_edges, height, width)
                    : integral_of(cut[0], cut[1], Measure::flat_edges, width, height);
  }
  return total;
}

void expect_equal(const Polygons& polygons) {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (!core::has_isa(isa)) continue;  // tests/unit/core/simd_test.cpp says so
    const Context ctx = Context::cpu({.threads = 1, .isa = isa});
    const Layer layer = make_layer(ctx, polygons.view(), "layer");
    OverlapArea area(cpu::overlap_kernels(isa));
    for (std::int64_t i = 0; i < layer.size(); ++i) {
      for (std::int64_t j = 0; j < layer.size(); ++j) {
        EXPECT_EQ(std::bit_cast<std::uint64_t>(area(layer, i, layer, j).area),
                  std::bit_cast<std::uint64_t>(area_of(layer, i, layer, j)))
            << i << ", " << j;
        EXPECT_EQ(std::bit_cast<std::uint64_t>(area.perimeter(layer, i, layer, j)),
                  std::bit_cast<std::uint64_t>(perimeter_of(layer, i, layer, j)))
            << i << ", " << j;
      }
    }
  }
}

double uniform_coordinate(std::mt19937_64& draws) {
  return static_cast<double>(draws() >> 11) * 0x1p-53;
}

// Stars of 3 to 200 corners, which are cut at every side of each other's boxes, and some boxes halved.
TEST(OverlapBits, OfStars) {
  std::mt19937_64 draws(1);
  Polygons polygons;
  for (const int corners : {3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18, 33, 50, 90, 200}) {
    std::vector<double> ring;
    const double x = uniform_coordinate(draws);
    const double y = uniform_coordinate(draws);
    for (int k = 0; k < corners; ++k) {
      const double radius = 0.3 + uniform_coordinate(draws);
      ring.push_back(x + radius * std::cos(6.2831853 * k / corners));
      ring.push_back(y + radius * std::sin(6.2831853 * k / corners));
    }
    polygons.add_ring(ring);
    polygons.end_part();
    polygons.end_feature();
  }
  expect_equal(polygons);
}

// Corners on a small grid: edges upright and flat, along sides of boxes, equal ones, and regions that cover themselves.
TEST(OverlapBits, OnAGrid) {
  std::mt19937_64 draws(2);
  Polygons polygons;
  for (int feature = 0; feature < 40; ++feature) {
    std::vector<double> ring(static_cast<std::size_t>(2 * (3 + feature % 20)));
    for (double& v : ring) v = static_cast<double>(draws() % 5) - (draws() % 7 == 0 ? 0.5 : 0);
    polygons.add_ring(ring);
    polygons.end_part();
    polygons.end_feature();
  }
  expect_equal(polygons);
}

// As large and as small as coordinates may be, beside each other; zeros of both signs.
TEST(OverlapBits, OfHostileNumbers) {
  std::mt19937_64 draws(3);
  const double numbers[] = {0, -0.0, 1, -1, 1e140, -1e140, 1e-120, 1 + 0x1p-52, 1e100, 0x1p-300};
  Polygons polygons;
  for (int feature = 0; feature < 40; ++feature) {
    std::vector<double> ring(static_cast<std::size_t>(2 * (3 + feature % 9)));
    for (double& v : ring) v = numbers[draws() % std::size(numbers)];
    polygons.add_ring(ring);
    polygons.end_part();
    polygons.end_feature();
  }
  expect_equal(polygons);
}

}  // namespace
}  // namespace vicinal::geo
