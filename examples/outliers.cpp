// Scores rows by the local outlier factor, then new rows by the same model.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "vicinal/vicinal.hpp"

namespace vc = vicinal;

int main() {
  const vc::Context ctx = vc::Context::cpu();
  const vc::Generated made = vc::generate(ctx, {.shape = vc::Shape::blobs, .rows = 400, .cols = 2, .centers = 2});
  std::vector<double> points = made.points;
  points.insert(points.end(), {60, -60});  // row 400 is far from everything
  const vc::TableView rows(points.data(), 401, 2);
  const vc::Index index(ctx, rows);
  const vc::Lof found = vc::lof(ctx, index, {.k = 20, .novelty = true});
  const auto worst = std::max_element(found.scores.begin(), found.scores.end()) - found.scores.begin();
  std::printf("%lld of 401 rows score above %.1f; the highest score is %.1f, of row %lld\n",
              static_cast<long long>(found.outliers), found.threshold, found.scores[worst],
              static_cast<long long>(worst));
  const auto best = std::min_element(found.scores.begin(), found.scores.end()) - found.scores.begin();
  const std::vector<double> queries = {points[2 * best], points[2 * best + 1], -80, 80};
  const std::vector<double> scores = vc::novelty(ctx, index, found, {queries.data(), 2, 2});
  std::printf("new rows: %.2f in a cluster, %.1f far away\n", scores[0], scores[1]);
  return worst == 400 && scores[0] < found.threshold && scores[1] > found.threshold ? 0 : 1;
}
