// Clusters made blobs, then gives new rows the nearest of the found centers.
#include <cstdio>

#include "vicinal/vicinal.hpp"

namespace vc = vicinal;

int main() {
  const vc::Context ctx = vc::Context::cpu();
  const vc::Generated made = vc::generate(ctx, {.shape = vc::Shape::blobs, .rows = 600, .cols = 2, .centers = 3});
  const vc::TableView rows(made.points.data(), 500, 2);
  const vc::TableView new_rows(made.points.data() + 1000, 100, 2);
  const vc::KMeans found = vc::kmeans(ctx, rows, {.clusters = 3, .runs = 5, .seed = 42});
  for (int c = 0; c < 3; ++c) {
    std::printf("cluster %d: %lld rows around (%.2f, %.2f)\n", c, static_cast<long long>(found.sizes[c]),
                found.centres[2 * c], found.centres[2 * c + 1]);
  }
  const auto labels = vc::predict(ctx, found, new_rows);
  std::printf("inertia %.1f after %lld iterations; the first new row belongs to cluster %d\n", found.inertia,
              static_cast<long long>(found.iterations), labels[0]);
  return found.inertia < 2 * 500 * 3 ? 0 : 1;
}
