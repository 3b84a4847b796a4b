// The plug-in's interface for density clustering: plain structs, as in plugin.hpp.
#pragma once

#include <cstdint>

namespace vicinal::plugin {

/// As kernels::TreeEdge.
struct TreeEdge {
  double key = 0;
  std::int64_t a = -1;
  std::int64_t b = -1;
};

/// What is made of a search of k lists by key, of a table within itself: its minimum spanning tree. All memory is the
/// host's.
struct SpanningTask {
  std::int64_t rank = 0;        ///< the neighbor whose key is a row's core key, at most k; 0: edges by distance alone
  double divisor = 1;           ///< of the keys of pairs, but not of core keys
  TreeEdge* edges = nullptr;    ///< [rows - 1] filled, ascending
  double* core_keys = nullptr;  ///< [rows] filled; null without a rank
  double seconds = 0;           ///< filled: after the search
};

}  // namespace vicinal::plugin
