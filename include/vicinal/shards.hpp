// Tables whose rows are divided among the ranks of a Communicator: each rank calls the same function with its own rows
// and gets what the function of the whole table gives, with the same bits (docs/contract.md, clauses 4 and 12;
// docs/ranks.md).
//
// Every rank has at least one row, and a context of its own: ranks of one host should share its cores and memory by
// CpuOptions. All of them pass the same options; weights are those of the rank's rows.
//
// Ranks fail together. If one of them finds something wrong (NaN, too little memory, a cancel), all throw its error,
// with the same sentence: "rank 2: table: row 1017, column 3 is not a finite number". Rows in sentences are those of
// the whole table. After an error of the options or the data the communicator can be used again. A cancel of one rank
// ends all of them as soon as the phase is over in which they are; a cancel of all ends them within 100 ms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/communicator.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lof.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// `knn` of the whole table within itself, for the rows of the rank: `shard` [rows, d] has the rows from `first_row`
/// on, after those of the lower ranks. Lists have the ids of the whole table, whose rows are `table_rows` of the graph;
/// their order and bits are those of `knn`. `filter` has the rows of the shard, `exclude` [rows] ids of the whole table
/// for these rows. A shard may have fewer rows than k. Counters of `stats` are those of the rank's searches.
///
/// Each shard travels round the ranks, in its own element type. A rank sends every shard once, except that of the next
/// rank: about n d values in all, and n / 8 bytes of a filter (docs/ranks.md). Where all ranks have the memory, each
/// collects the shards and searches them at once: beside the shard, a copy of the whole table, 16 rows k bytes for the
/// lists, and what a search in the table needs; time as that of the rank's rows in all n rows. Otherwise a rank
/// searches one shard at a time and keeps the k nearest so far, whose keys bound the next search on the CPU once each
/// list of the rank has k of them: two copies of the largest shard, twice the lists, and what a search in one shard
/// needs; up to some tens of percent more time. Sending does not overlap with searches.
///
/// Throws as `knn`, and `invalid_argument` for options that differ between ranks and a `first_row` that is not the
/// number of rows before; `device_unavailable` for rows in the memory of a device, `io` as Communicator.
VICINAL_API NeighborGraph knn(const Context& ctx, Communicator& communicator, const TableView& shard,
                              std::int64_t first_row, const KnnOptions& options);
/// The same for queries [m, d]: each rank passes its own, of which it may have none, and gets their lists. Queries have
/// the same element type on all ranks. Error sentences number the queries of all ranks in the order of the ranks.
///
/// Either the shards travel, as above, or all queries are sent to all ranks, each of which searches its own shard, and
/// k lists travel back: whichever sends fewer bytes and fits into memory, as the plan says. In the second case a rank
/// also holds the queries of all ranks, and lists for them.
VICINAL_API NeighborGraph knn(const Context& ctx, Communicator& communicator, const TableView& shard,
                              std::int64_t first_row, const TableView& queries, const KnnOptions& options);

/// The same lists as a part, with keys instead of reported distances: of the rank's queries in a shard that is the
/// whole table. `merge` of the parts of all ranks that have queries, which may be files, is the graph of all queries.
/// Throws as `knn`, and `invalid_argument` for a `max_radius`.
VICINAL_API NeighborPart knn_part(const Context& ctx, Communicator& communicator, const TableView& shard,
                                  std::int64_t first_row, const KnnOptions& options);
VICINAL_API NeighborPart knn_part(const Context& ctx, Communicator& communicator, const TableView& shard,
                                  std::int64_t first_row, const TableView& queries, const KnnOptions& options);

/// As `knn`, all rows within a radius. `radius` and `radii` are those of the rank's rows or queries. Memory: 32 bytes
/// per neighbor found. Throws as `radius`.
VICINAL_API NeighborGraph radius(const Context& ctx, Communicator& communicator, const TableView& shard,
                                 std::int64_t first_row, const RadiusOptions& options);
VICINAL_API NeighborGraph radius(const Context& ctx, Communicator& communicator, const TableView& shard,
                                 std::int64_t first_row, const TableView& queries, const RadiusOptions& options);
/// As `radius`, the number of neighbors of the rank's rows or queries.
VICINAL_API NeighborCounts count(const Context& ctx, Communicator& communicator, const TableView& shard,
                                 std::int64_t first_row, const RadiusOptions& options);
VICINAL_API NeighborCounts count(const Context& ctx, Communicator& communicator, const TableView& shard,
                                 std::int64_t first_row, const TableView& queries, const RadiusOptions& options);

/// The same as parts, which `merge` and `merge_counts` read; as `knn_part` of ranks. `merge` refuses parts of ranks
/// whose `radius` differs. Memory of radius_part: where shards are searched one at a time, twice that of the lists.
VICINAL_API NeighborPart radius_part(const Context& ctx, Communicator& communicator, const TableView& shard,
                                     std::int64_t first_row, const RadiusOptions& options);
VICINAL_API NeighborPart radius_part(const Context& ctx, Communicator& communicator, const TableView& shard,
                                     std::int64_t first_row, const TableView& queries, const RadiusOptions& options);
VICINAL_API NeighborPart count_part(const Context& ctx, Communicator& communicator, const TableView& shard,
                                    std::int64_t first_row, const RadiusOptions& options);
VICINAL_API NeighborPart count_part(const Context& ctx, Communicator& communicator, const TableView& shard,
                                    std::int64_t first_row, const TableView& queries, const RadiusOptions& options);

/// The plans of these searches: the method of a rank's searches, its memory, what travels and why. All ranks call them.
/// `queries` null: the rows of the table. Throw as the searches do before they begin, except `over_memory`.
VICINAL_API Plan plan_knn(const Context& ctx, Communicator& communicator, const TableView& shard,
                          std::int64_t first_row, const TableView* queries, const KnnOptions& options);
VICINAL_API Plan plan_radius(const Context& ctx, Communicator& communicator, const TableView& shard,
                             std::int64_t first_row, const TableView* queries, const RadiusOptions& options);
VICINAL_API Plan plan_count(const Context& ctx, Communicator& communicator, const TableView& shard,
                            std::int64_t first_row, const TableView* queries, const RadiusOptions& options);

/// `kmeans` of the whole table. `shard` [rows, d] has the rows from `first_row` on, after those of the lower ranks.
/// Labels [rows] are those of the shard; centers, sizes, inertia, history and iterations are those of the whole table
/// and the same on every rank, as are the counters of `stats`. The plan is the rank's own. Contexts are of the CPU.
///
/// Each rank sends 8 (k (1 + w + d l) + k + 1) bytes an iteration and 8 for each vote: l = 2 or 3 integers for most
/// data hold a sum, and w, 0 without weights, a weight. Seeding by k-means++ takes k rounds of few bytes; k-means||
/// takes about 6. Memory as `kmeans` of the shard, and O(k d l). Time of an iteration as `kmeans` of the largest shard.
///
/// Throws as `kmeans`, and `invalid_argument` for options that differ between ranks, a `first_row` that is not the
/// number of rows before, for mini-batches and checkpoints; `device_unavailable` for a context of a device; `io` as
/// Communicator.
VICINAL_API KMeans kmeans(const Context& ctx, Communicator& communicator, const TableView& shard,
                          std::int64_t first_row, const KMeansOptions& options);

/// `lof` of a graph whose lists are divided among the ranks: `graph` has those of the rows from `first_row` on, after
/// those of the lower ranks; ids are those of the whole table, whose rows are `graph.table_rows`. Scores [rows], and
/// with LofOptions::novelty `k_distances` and `densities` [rows, ks], are those of the rank's rows; threshold,
/// outliers, copied, caps and spread are those of the whole table.
///
/// For the scores lof, simplified_lof, knn, knn_weighted and loop, by a graph of k neighbors, for lof also by a range
/// of k, or by a graph of a radius. All others, and Duplicates::distinct and Ties::all, are refused by name.
///
/// Each rank sends the density of each of its rows, and for lof the k-distance: 8 bytes each for every k; for loop
/// 568 bytes, and for a contamination 16 kB. It holds those of all n rows: 16 n bytes for every k. On the CPU, whatever
/// the context's device is. Throws as `lof`, and `invalid_argument` for options that differ between ranks and rows that
/// do not fit together; `io` as Communicator.
VICINAL_API Lof lof(const Context& ctx, Communicator& communicator, const NeighborGraph& graph, std::int64_t first_row,
                    const LofOptions& options = {});

/// The connected components of a graph whose edges are divided among shards, from those of each shard. `labels`
/// [shards] has for each shard [n] a label for each of the same n vertices: the number of some vertex of its group,
/// such as the smallest one. Returns [n] the smallest number of each group of the whole graph. O(shards n) time up to a
/// factor that stays below 4 in practice, and 8 n bytes beside the result. Throws `invalid_argument` for shards of
/// different sizes, `bad_data` naming shard and vertex of a label that is no vertex, `over_memory`, `cancelled`.
VICINAL_API std::vector<std::int64_t> merge_labels(const Context& ctx,
                                                   std::span<const std::span<const std::int64_t>> labels);
/// As above, with the labels of each rank's shard, merged for all of them. Each rank sends 16 bytes for each vertex
/// whose label is another one, and 16 more.
VICINAL_API std::vector<std::int64_t> merge_labels(const Context& ctx, Communicator& communicator,
                                                   std::span<const std::int64_t> labels);

}  // namespace vicinal
