// DBSCAN on the CPU (kernels::DensityBackend::dbscan).
#pragma once

#include <cstdint>
#include <memory>

#include "backend/density.hpp"
#include "cpu/density/neighborhood_weight.hpp"
#include "cpu/density/shared_forest.hpp"

namespace vicinal::cpu {

/// What the searches of a run share.
struct DbscanRun {
  const Context& ctx;
  const kernels::DbscanTask& task;
  kernels::DbscanResult& result;  ///< `core` is made by the first search, `labels` of core rows before the last
  SharedForest forest;
  WeighingRule rule;
};

/// The three searches of DBSCAN. Each looks at rows whose pair keys are at most the task's limit.
class DbscanSearches {
 public:
  virtual ~DbscanSearches() = default;
  virtual void find_core_rows() = 0;
  /// Joins core rows.
  virtual void join_core_rows() = 0;
  /// Gives every other row the smallest label of the core rows around it.
  virtual void label_border_rows() = 0;
};

std::unique_ptr<DbscanSearches> dbscan_in_tree(DbscanRun& run);
std::unique_ptr<DbscanSearches> dbscan_by_screens(DbscanRun& run);
std::uint64_t dbscan_in_tree_bytes(const Context& ctx, const kernels::DbscanTask& task);
std::uint64_t dbscan_by_screens_bytes(const Context& ctx, const kernels::DbscanTask& task);

void dbscan(const Context& ctx, const kernels::DbscanTask& task, kernels::DbscanResult& result);
std::uint64_t dbscan_bytes(const Context& ctx, const kernels::DbscanTask& task);

}  // namespace vicinal::cpu
