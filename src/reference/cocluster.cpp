// See cocluster.hpp.
#include "reference/cocluster.hpp"

#include <algorithm>

namespace vicinal::reference {
namespace {

using Neighbors = std::vector<std::vector<std::int64_t>>;

Neighbors neighbors_of(const BipartiteEdges& edges) {
  Neighbors near(static_cast<std::size_t>(edges.n_a() + edges.n_b()));
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    const std::int64_t b = edges.n_a() + edges.b(e);
    near.at(static_cast<std::size_t>(edges.a(e))).push_back(b);
    near.at(static_cast<std::size_t>(b)).push_back(edges.a(e));
  }
  return near;
}

/// Edges on the shortest way from `start` to each member; -1: there is none.
void walk(const Neighbors& near, std::size_t start, std::vector<std::int64_t>& steps, std::vector<std::size_t>& met) {
  met = {start};
  steps[start] = 0;
  for (std::size_t next = 0; next < met.size(); ++next) {
    for (const std::int64_t w : near[met[next]]) {
      if (steps[static_cast<std::size_t>(w)] >= 0) continue;
      steps[static_cast<std::size_t>(w)] = steps[met[next]] + 1;
      met.push_back(static_cast<std::size_t>(w));
    }
  }
}

}  // namespace

Cocluster cocluster(const BipartiteEdges& edges) {
  const Neighbors near = neighbors_of(edges);
  const auto n_a = static_cast<std::size_t>(edges.n_a());
  std::vector<std::int64_t> steps(near.size(), -1);
  std::vector<std::int64_t> labels(near.size());
  std::vector<std::size_t> met;
  Cocluster found;
  for (std::size_t start = 0; start < near.size(); ++start) {
    if (steps[start] >= 0) continue;
    walk(near, start, steps, met);
    CoclusterGroup group;
    group.label = static_cast<std::int64_t>(start);
    for (const std::size_t v : met) {
      labels[v] = group.label;
      ++(v < n_a ? group.count_a : group.count_b);
    }
    found.groups.push_back(group);
  }
  found.labels_a.assign(labels.begin(), labels.begin() + edges.n_a());
  found.labels_b.assign(labels.begin() + edges.n_a(), labels.end());
  return found;
}

std::vector<std::int64_t> closure_nonzeros(const BipartiteEdges& edges) {
  const Neighbors near = neighbors_of(edges);
  std::vector<std::int64_t> pairs;  // at each distance
  std::vector<std::size_t> met;
  for (std::size_t start = 0; start < near.size(); ++start) {
    std::vector<std::int64_t> steps(near.size(), -1);
    walk(near, start, steps, met);
    for (const std::size_t v : met) {
      const auto length = static_cast<std::size_t>(steps[v]);
      if (pairs.size() <= length) pairs.resize(length + 1);
      ++pairs[length];
    }
  }
  const auto ones_within = [&](std::size_t length) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < std::min(pairs.size(), length + 1); ++i) sum += pairs[i];
    return sum;
  };
  std::vector<std::int64_t> ones;
  std::int64_t before = ones_within(1);
  for (std::size_t reach = 2;; reach *= 2) {
    ones.push_back(ones_within(reach));
    if (ones.back() == before) return ones;
    before = ones.back();
  }
}

}  // namespace vicinal::reference
