// Clause 25: every pair of rows is looked up in a map.
#include "reference/symmetrize.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace vicinal::reference {

NeighborGraph symmetrize(const NeighborGraph& graph, Symmetry symmetry) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> listed;
  for (std::int64_t i = 0; i < graph.rows; ++i) {
    for (std::size_t at = 0; at < graph.ids_of(i).size(); ++at) {
      const auto [place, is_new] = listed.emplace(std::pair(i, graph.ids_of(i)[at]), graph.distances_of(i)[at]);
      if (!is_new) place->second = std::min(place->second, graph.distances_of(i)[at]);
    }
  }
  std::vector<std::vector<std::pair<double, std::int64_t>>> lists(static_cast<std::size_t>(graph.rows));
  for (const auto& [pair, distance] : listed) {
    const auto [i, j] = pair;
    const auto back = listed.find({j, i});
    if (back == listed.end() && symmetry == Symmetry::mutual) continue;
    const double least = back == listed.end() ? distance : std::min(distance, back->second);
    lists[static_cast<std::size_t>(i)].emplace_back(least, j);
    if (back == listed.end()) lists[static_cast<std::size_t>(j)].emplace_back(least, i);
  }
  NeighborGraph made;
  made.rows = made.table_rows = graph.rows;
  made.offsets = {0};
  for (auto& list : lists) {
    std::sort(list.begin(), list.end());
    for (const auto& [distance, id] : list) {
      made.ids.push_back(id);
      made.distances.push_back(distance);
    }
    made.offsets.push_back(static_cast<std::int64_t>(made.ids.size()));
  }
  return made;
}

}  // namespace vicinal::reference
