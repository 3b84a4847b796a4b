// See pieces.hpp: union-find by all threads at once.
#include "solver/pieces.hpp"

#include <algorithm>

#include "core/parallel.hpp"
#include "formulas/graph/forest.hpp"

namespace vicinal::solver {

std::vector<std::int64_t> pieces_of(const Context& ctx, const LocalRows& a) {
  const Point n = a.points;
  const std::int64_t tasks = (n + kTaskPoints - 1) / kTaskPoints;
  core::Forest<Point> forest(n, ctx.threads() == 1);
  const auto for_each_point = [&](const auto& body) {
    core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
      const auto end = static_cast<Point>(std::min<std::int64_t>(n, (task + 1) * kTaskPoints));
      for (auto i = static_cast<Point>(task * kTaskPoints); i < end; ++i) body(i);
    });
  };
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    forest.reset(task * kTaskPoints, std::min<std::int64_t>(n, (task + 1) * kTaskPoints));
  });
  for_each_point([&](Point i) {
    for (std::int64_t c = 0; c < a.width; ++c) forest.unite(i, a.cols[i * a.width + c]);
  });
  std::vector<std::int64_t> piece(static_cast<std::size_t>(n));
  for_each_point([&](Point i) { piece[i] = forest.flatten(i); });
  std::int64_t count = 0;
  for (Point i = 0; i < n; ++i) piece[i] = piece[i] == i ? count++ : piece[piece[i]];
  return piece;
}

}  // namespace vicinal::solver
