// Clusters of any shape: DBSCAN, and the spanning tree from which the clusters of every eps follow.
#include <algorithm>
#include <iostream>
#include <vicinal/vicinal.hpp>

int main() {
  namespace vc = vicinal;
  const auto ctx = vc::Context::cpu();
  const vc::Generated moons = vc::generate(ctx, {.shape = vc::Shape::moons, .rows = 2000, .noise = 0.05, .seed = 1});
  const vc::TableView table{moons.points.data(), moons.rows, moons.cols};

  const vc::Dbscan found = vc::dbscan(ctx, table, {.eps = 0.1, .min_samples = 5});
  std::cout << found.clusters << " clusters, " << found.core_rows << " core rows, " << found.noise << " noise\n";

  // By mutual reachability with the same `min_samples`, edges of at most eps join the core rows of each cluster.
  const vc::SpanningTree tree = vc::minimum_spanning_tree(ctx, table, {.min_samples = 5});
  const auto longer = std::count_if(tree.lengths.begin(), tree.lengths.end(), [](double x) { return x > 0.1; });
  const std::int64_t parts = longer + 1;  // each row that is no core row is a part of its own
  const std::int64_t others = found.clusters + (moons.rows - found.core_rows);
  std::cout << "the tree falls into " << parts << " parts\n";
  return found.clusters == 2 && parts == others ? 0 : 1;
}
