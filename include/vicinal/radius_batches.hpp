// Neighbors within a radius, in batches: any number of neighbors in bounded memory (docs/contract.md, clause 7).
#pragma once

#include <cstdint>
#include <functional>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// Receives the neighbors of consecutive queries as compressed rows: row i has those of query `first` + i. The lists
/// are borrowed and valid only during the call. The function is called on the calling thread. It must not compute on
/// the search's CUDA device, which waits for it. If it throws, the search ends with this exception.
using TakeLists = std::function<void(std::int64_t first, const NeighborGraph& lists)>;

/// Sizes, plan and counters of a search in batches. The counters of a fused search depend on the division into batches.
struct RadiusSummary {
  std::int64_t rows = 0;        ///< m
  std::int64_t table_rows = 0;  ///< n
  std::int64_t neighbors = 0;   ///< number of neighbors of all queries
  Plan plan;
  SearchStats stats;  ///< its times do not include those of `take`
};

/// Finds all rows within a radius of each row of a table, itself excluded, or of each query, as `radius` does, and
/// passes them to `take` batch by batch in the order of the queries. So the memory that `plan_radius_batches` names is
/// enough for any number of neighbors. The memory limit determines how many queries a batch has, but no bit of a list.
/// If the limit is below that memory, batches use what is left.
///
/// Throws `invalid_argument` for options outside their domain, queries of another width, a method that does not serve
/// the metric and an empty `take`, `bad_data` for NaN, infinity and distances that overflow, `over_memory` before work
/// begins or when the list of one query alone exceeds the limit, with a number of bytes that is enough for any lists,
/// `cancelled`. If it throws, `take` has received the earlier batches. Time of `radius`.
VICINAL_API RadiusSummary radius_batches(const Context& ctx, const TableView& table, const RadiusOptions& options,
                                         const TakeLists& take);
VICINAL_API RadiusSummary radius_batches(const Context& ctx, const TableView& table, const TableView& queries,
                                         const RadiusOptions& options, const TakeLists& take);
VICINAL_API RadiusSummary radius_batches(const Context& ctx, const Index& index, const RadiusOptions& options,
                                         const TakeLists& take);
VICINAL_API RadiusSummary radius_batches(const Context& ctx, const Index& index, const TableView& queries,
                                         const RadiusOptions& options, const TakeLists& take);

/// The plan of `radius_batches`. Its memory is enough for any lists: 64 bytes for each row of the table, or more if
/// several short lists fit into 64 MiB, but at most the memory limit if lists may fit into that. Throws as
/// `plan_radius` does.
VICINAL_API Plan plan_radius_batches(const Context& ctx, const TableView& table, const TableView* queries,
                                     const RadiusOptions& options);

}  // namespace vicinal
