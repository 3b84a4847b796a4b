// What the operations of density clustering have in common: checks, and the engine that they need.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/density.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::ops {

/// The density backend of a context. Throws `device_unavailable` where its device cannot do that; `operation` begins
/// the sentence.
const kernels::DensityBackend& density_backend(const Context& ctx, kernels::DensityWork work,
                                               const std::string& operation);

/// Throws `invalid_argument` for a method that has no engine for rows of other components, and for tables in blocks.
void check_density_search(const TableView& table, Metric metric, double p, Method method, const std::string& operation);

/// How long neighbor lists are in which the neighbor of that rank gives the core key: a few more, from which most edges
/// and reaches follow.
std::int64_t listed_neighbors(std::int64_t rows, std::int64_t rank);

/// The neighbor lists [rows, k] of a search, with keys.
struct KeyLists {
  std::vector<std::int64_t> ids;
  std::vector<double> keys;
  bool in_tree_order = false;  ///< see NearestResult

  KeyLists(const Context& ctx, std::int64_t rows, std::int64_t k);
  void find(const Context& ctx, const kernels::NearestTask& task, SearchStats& stats);
};

/// The most of `bytes(task)` for the methods that may serve the search, as one of them will be chosen.
/// Where a device has room for some of them only, of those.
std::uint64_t most_bytes(const Context& ctx, kernels::NearestTask search,
                         const std::function<std::uint64_t(const kernels::NearestTask& by)>& bytes);

/// A table that is planned for and not looked at.
kernels::Prepared unread_index(const TableView& table);

/// The plan for a table of one row, in which nothing is searched.
Plan plan_of_one_row(const Context& ctx);

}  // namespace vicinal::ops
