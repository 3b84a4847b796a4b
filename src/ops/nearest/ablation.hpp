// For `vicinal bench`: searches with one idea left out.
#pragma once

#include "backend/nearest.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::ops {

/// As `knn`, without some of its ideas. `queries` = nullptr: self mode.
VICINAL_API NeighborGraph knn_without(const Context& ctx, const TableView& table, const TableView* queries,
                                      const KnnOptions& options, kernels::Without without);

}  // namespace vicinal::ops
