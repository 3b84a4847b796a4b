// Neighbors within a radius, in batches: any number of neighbors in bounded memory (docs/contract.md, clause 7).
#pragma once

#include <cstdint>
#include <functional>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// Takes the neighbors of consecutive queries, as compressed rows: row i has those of query `first` + i.
/// Borrowed: when it returns, they are gone. It is called on the calling thread, and must not compute on the search's
/// CUDA device, which waits meanwhile. What it throws ends the search.
using TakeLists = std::function<void(std::int64_t first, const NeighborGraph& lists)>;

/// Sizes, plan and counters of a search whose lists were taken batch by batch. The counters of a fused search depend on
/// how the batches were cut.
struct RadiusSummary {
  std::int64_t rows = 0;        ///< m
  std::int64_t table_rows = 0;  ///< n
  std::int64_t neighbors = 0;   ///< of all rows
  Plan plan;
  SearchStats stats;  ///< its times without those of `take`
};

/// All rows within a radius of each row of a table, itself excluded, or of each query, as `radius` finds them, handed
/// to `take` batch by batch in the order of the queries. So any number of neighbors fits into the memory that
/// `plan_radius_batches` names: the limit determines how many queries a batch has, and no bit of a list. Where a limit
/// is below that number, batches share what it leaves.
///
/// Throws `invalid_argument` for options outside their domain, queries of another width, a method that does not serve
/// the metric and an empty `take`, `bad_data` for NaN, infinity and distances that overflow, `over_memory` before work
/// begins or when the list of one query alone exceeds the limit, with a number of bytes that is enough for any lists,
/// `cancelled`. If it throws, the batches before have been taken. Time of `radius`.
VICINAL_API RadiusSummary radius_batches(const Context& ctx, const TableView& table, const RadiusOptions& options,
                                         const TakeLists& take);
VICINAL_API RadiusSummary radius_batches(const Context& ctx, const TableView& table, const TableView& queries,
                                         const RadiusOptions& options, const TakeLists& take);
VICINAL_API RadiusSummary radius_batches(const Context& ctx, const Index& index, const RadiusOptions& options,
                                         const TakeLists& take);
VICINAL_API RadiusSummary radius_batches(const Context& ctx, const Index& index, const TableView& queries,
                                         const RadiusOptions& options, const TakeLists& take);

/// The plan of `radius_batches`. Its memory is enough for any lists: 64 bytes for each row of the table, more where
/// several short lists fit into 64 MiB; at most the limit, where lists may fit that. Throws as `plan_radius` does.
VICINAL_API Plan plan_radius_batches(const Context& ctx, const TableView& table, const TableView* queries,
                                     const RadiusOptions& options);

}  // namespace vicinal
