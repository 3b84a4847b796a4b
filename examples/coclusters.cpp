// Groups the members of two sets that are joined by edges, and splits a group that is too large.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "vicinal/vicinal.hpp"

namespace vc = vicinal;

int main() {
  const vc::Context ctx = vc::Context::cpu();
  // Old districts 0, 1 and 2 became new ones: 0 was split into 0 and 1; 1 and 2 were merged into 2; a sliver joins
  // both.
  const std::vector<std::int64_t> old_ids = {0, 0, 1, 2, 0};
  const std::vector<std::int64_t> new_ids = {0, 1, 2, 2, 2};
  const std::vector<double> areas = {5, 4, 6, 3, 0.01};
  const vc::BipartiteEdges edges(3, 3, old_ids, new_ids, areas);
  const vc::Cocluster whole = vc::cocluster(ctx, edges);
  const vc::CoclusterSplit split = vc::split_groups(ctx, edges, whole, {.max_members = 4});
  for (const vc::CoclusterGroup& group : split.parts.groups) {
    std::printf("group %lld: %lld old and %lld new\n", static_cast<long long>(group.label),
                static_cast<long long>(group.count_a), static_cast<long long>(group.count_b));
  }
  std::printf("%zu edge cut\n", split.cut_edges.size());
  return whole.groups.size() == 1 && split.parts.groups.size() == 2 && split.cut_edges.size() == 1 ? 0 : 1;
}
