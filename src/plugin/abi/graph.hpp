// The plug-in's interface for graphs: plain structs, as in plugin.hpp.
#pragma once

#include "plugin/abi/plugin.hpp"

namespace vicinal::plugin {

/// No closure takes more products: powers double, and a path has fewer than 2^63 edges.
inline constexpr std::int32_t kMaxProducts = 66;

/// As kernels::GraphTask and kernels::GraphLabels.
struct Bipartite {
  Table a;  ///< [edges, 1] ids, 32 or 64 bits wide; its dtype is one as wide
  Table b;
  std::int64_t n_a = 0;
  std::int64_t n_b = 0;
  std::int32_t method = 0;
  std::int64_t* labels_a = nullptr;  ///< [n_a] host
  std::int64_t* labels_b = nullptr;  ///< [n_b] host

  // Filled.
  std::int64_t wrong_edge = -1;  ///< the first with an id outside its side; then there are no labels
  std::int64_t nonzeros[kMaxProducts] = {};
  std::int32_t products = 0;
  double seconds = 0;
};

}  // namespace vicinal::plugin
