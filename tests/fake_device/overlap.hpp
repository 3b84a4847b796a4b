// The map half of the fake plug-in (plugin.cpp): every pair by trying all boxes, in parts of both maps;
// every third pair is left to the host, as a device leaves what is hard.
#pragma once

#include <algorithm>
#include <vector>

#include "geo/join.hpp"
#include "plugin/abi/overlap.hpp"

namespace vicinal::plugin {

inline geo::Layer fake_layer(const PolygonLayer& layer) {
  geo::Layer made;
  const std::int64_t runs = layer.first_run[layer.features];
  made.points.assign(layer.points, layer.points + layer.point_count);
  made.runs.assign(layer.runs, layer.runs + runs);
  made.first_run.assign(layer.first_run, layer.first_run + layer.features + 1);
  made.boxes.assign(layer.boxes, layer.boxes + layer.features);
  made.areas.assign(layer.areas, layer.areas + layer.features);
  return made;
}

/// False where the host found no room.
inline bool fake_join(OverlapJoin& task) {
  const geo::Layer a = fake_layer(task.a);
  const geo::Layer b = fake_layer(task.b);
  geo::PairJudge judge(Context::cpu({.threads = 1}));
  const auto half_of = [](std::int64_t n) { return n / 2; };
  for (const bool late_b : {false, true}) {
    for (const bool late_a : {false, true}) {
      std::vector<Overlap> pairs;
      for (std::int64_t i = late_a ? half_of(a.size()) : 0; i < (late_a ? a.size() : half_of(a.size())); ++i) {
        for (std::int64_t j = late_b ? half_of(b.size()) : 0; j < (late_b ? b.size() : half_of(b.size())); ++j) {
          if (!geo::meet(a.boxes[static_cast<std::size_t>(i)], b.boxes[static_cast<std::size_t>(j)])) continue;
          if ((i + j) % 3 == 0) {
            pairs.push_back({i, j, kUndecided, 0, 0});
          } else {
            pairs.push_back(judge(a, i, b, j, task.widths != 0));
          }
        }
      }
      Overlap* to = nullptr;
      if (task.make_room(task.user, static_cast<std::int64_t>(pairs.size()), &to) != 0) return false;
      std::copy(pairs.begin(), pairs.end(), to);
    }
  }
  return true;
}

}  // namespace vicinal::plugin
