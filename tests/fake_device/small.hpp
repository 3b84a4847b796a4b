// Small matrices as the plug-in's functions have them, of the fake plug-in (plugin.cpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "solver/tall.hpp"

namespace vicinal::plugin {

inline solver::Small taken(const double* from, std::int64_t rows, std::int64_t cols) {
  solver::Small small(rows, cols);
  std::copy_n(from, rows * cols, small.values.begin());
  return small;
}
inline void give(const solver::Small& small, double* to) {
  std::copy(small.values.begin(), small.values.end(), to);
}

}  // namespace vicinal::plugin
