// What tests of the solver's parts are fed with.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/philox.hpp"
#include "solver/ordering.hpp"
#include "solver/symbolic.hpp"

namespace vicinal::solver {

inline double draw(std::uint64_t stream, std::uint64_t counter) {
  return core::philox_uniform(11, stream, counter);
}

inline Context threads(int count, Isa isa = Isa::automatic) {
  return Context::cpu({.threads = count, .isa = isa});
}

// Blocks of a grid: each point and the points beside it, with weights that differ and add to nothing.
inline LocalRows grid(Point side, bool torn = false) {
  LocalRows a;
  a.points = side * side;
  a.width = 5;
  a.first = {0};
  for (Point y = 0; y < side; ++y) {
    for (Point x = 0; x < side; ++x) {
      const Point i = y * side + x;
      std::vector<Point> cols = {i};
      for (const auto& [dx, dy] :
           {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {2, 0}, {-2, 0}, {0, 2}, {0, -2}}) {
        const Point u = x + dx;
        const Point v = y + dy;
        if (u < 0 || v < 0 || u >= side || v >= side || cols.size() == 5) continue;
        if (torn && (u < side / 2) != (x < side / 2)) continue;
        cols.push_back(v * side + u);
      }
      double sum = 0;
      a.values.push_back(1);
      for (std::uint64_t c = 1; c < 5; ++c) {
        a.values.push_back(-0.5 - draw(77, static_cast<std::uint64_t>(i) * 5 + c));
        sum -= a.values.back();
      }
      for (std::size_t c = 1; c < 5; ++c) a.values[a.values.size() - c] /= sum;
      a.cols.insert(a.cols.end(), cols.begin(), cols.end());
      a.first.push_back(i + 1);
    }
  }
  return a;
}

struct Ordered {
  LocalRows a;
  Incidence in;
  Dissection dissection;
  Symbolic symbolic;
};

inline Ordered ordered(const Context& ctx, const LocalRows& given, Point side) {
  core::RawVector<float> places;
  for (Point i = 0; i < given.points; ++i) {
    const Point line = i / side;
    places.insert(places.end(), {static_cast<float>(i % side), static_cast<float>(line)});
  }
  const Cells cells = kd_cells(ctx, places, 2);
  Ordered made;
  const LocalRows near = renumbered(ctx, given, cells.order);
  const Incidence in = incidence_of(ctx, near);
  made.dissection = dissect(ctx, Pattern{near, in}, cells.first);
  made.symbolic = analyse(ctx, Pattern{near, in}, made.dissection);
  made.a = renumbered(ctx, near, made.dissection.order);
  made.in = incidence_of(ctx, made.a);
  return made;
}

}  // namespace vicinal::solver
