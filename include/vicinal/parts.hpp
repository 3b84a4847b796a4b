// Searches in shards of a table, and their merge: the same bits from several processes, machines and devices
// (docs/contract.md, clause 26; docs/scale.md). A shard is a range of the table's rows. A part is what a search in one
// shard finds for a range of the queries. Parts are merged by (key, id), because rows with different keys may have the
// same reported distance (clause 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/radius_batches.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// The place of a call's shard and queries within the whole search.
struct PartOptions {
  std::int64_t first_id = 0;     ///< id of the shard's row 0 in the whole table
  std::int64_t first_query = 0;  ///< number of query 0 among all queries
  /// Whether the queries are rows of the whole table: then the number of a query is its id, and no row is its own
  /// neighbor. The shard need not contain these rows.
  bool self = false;
  std::int64_t total_rows = 0;     ///< rows of the whole table; 0: unknown, so `merge` cannot notice missing last rows
  std::int64_t total_queries = 0;  ///< number of all queries; 0: unknown, so any consecutive ones can be merged
};

/// What a part has for each query: k neighbors, all neighbors within a radius, or their number.
enum class PartKind : std::uint8_t { knn, radius, count };
/// "knn", "radius", "count".
VICINAL_API std::string_view name_of(PartKind kind) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API PartKind part_kind_from(std::string_view name);

/// A part's place, and the search that it is from.
struct PartInfo {
  PartKind kind = PartKind::knn;
  PartOptions place;
  std::int64_t rows = 0;     ///< rows of the shard: ids are from place.first_id to place.first_id + rows - 1
  std::int64_t queries = 0;  ///< m: their numbers begin at place.first_query
  std::int64_t cols = 0;
  Metric metric = Metric::euclidean;
  double p = 2;
  std::int64_t k = 0;  ///< knn: neighbors per query of the whole search; else 0
  double radius = 0;   ///< radius and count, unless `has_radii`; else 0
  bool has_radii = false;
  RadiusOrder order = RadiusOrder::key;  ///< radius: the order of the lists
};

/// What a search in one shard found. Ids are those of the whole table. A list has keys (clause 1) instead of reported
/// distances, and is in the order of (key, id), or of ids with RadiusOrder::id.
struct NeighborPart {
  PartInfo info;
  std::vector<std::int64_t> ids;
  std::vector<double> keys;           ///< of the neighbors in `ids`
  std::vector<std::int64_t> offsets;  ///< [m + 1] list i is offsets[i] to offsets[i + 1] - 1; knn: empty if all have k
  std::vector<double> radii;          ///< [m] if `has_radii`
  std::vector<std::int64_t> counts;   ///< count: [m] neighbors of each query; else empty
  Plan plan;
  SearchStats stats;
};

/// The k nearest rows of a shard for each query. A list is shorter than k if the shard has fewer rows that can be the
/// query's neighbors; only `merge` decides whether k is too large (clause 5). The options are those of `knn`, except
/// that the filter is of the shard's rows, and `exclude` has ids of the whole table. Error sentences name rows and
/// queries by their numbers in the whole search. (Errors of an Index, which checks its rows before, name its own rows.)
///
/// Throws what `knn` throws, and `invalid_argument` for a place outside of the totals. Time of `knn`. Memory: 16 m k
/// bytes for the lists (at most 16 m (n + 1) if n is below k), and 8 m for `exclude`.
VICINAL_API NeighborPart knn_part(const Context& ctx, const TableView& shard, const TableView& queries,
                                  const KnnOptions& options, const PartOptions& place);
VICINAL_API NeighborPart knn_part(const Context& ctx, const Index& shard, const TableView& queries,
                                  const KnnOptions& options, const PartOptions& place);

/// All rows of a shard within a radius of each query; as `radius` and `knn_part`.
VICINAL_API NeighborPart radius_part(const Context& ctx, const TableView& shard, const TableView& queries,
                                     const RadiusOptions& options, const PartOptions& place);
VICINAL_API NeighborPart radius_part(const Context& ctx, const Index& shard, const TableView& queries,
                                     const RadiusOptions& options, const PartOptions& place);

/// How many rows of a shard are within a radius of each query; as `count` and `knn_part`.
VICINAL_API NeighborPart count_part(const Context& ctx, const TableView& shard, const TableView& queries,
                                    const RadiusOptions& options, const PartOptions& place);
VICINAL_API NeighborPart count_part(const Context& ctx, const Index& shard, const TableView& queries,
                                    const RadiusOptions& options, const PartOptions& place);

/// The plans of these searches, as `plan_knn` and `plan_radius` make them.
VICINAL_API Plan plan_knn_part(const Context& ctx, const TableView& shard, const TableView& queries,
                               const KnnOptions& options, const PartOptions& place);
VICINAL_API Plan plan_radius_part(const Context& ctx, const TableView& shard, const TableView& queries,
                                  const RadiusOptions& options, const PartOptions& place);

/// A part that is stored elsewhere, such as in a file: `merge` reads the lists of some queries at a time.
struct PartSource {
  PartInfo info;
  std::string name = {};  ///< its name in error sentences, such as "'0.part'"; empty: its number
  /// Returns a part with the queries [begin, end), which are counted from 0 within this part. Called on the thread that
  /// called `merge`. If it throws, the merge ends with this error.
  std::function<NeighborPart(std::int64_t begin, std::int64_t end)> read;
  /// radius: returns the number of all neighbors of the queries [begin, end).
  std::function<std::int64_t(std::int64_t begin, std::int64_t end)> neighbors = {};
  SearchStats stats = {};
  std::uint32_t check_sum = 0;  ///< of a part in a file: that of all bytes before it, as `write_part` returned it
};

/// A part in memory as a source, which borrows it. Throws `invalid_argument` and `bad_data` if its numbers or the sizes
/// of its arrays do not fit together. O(m).
VICINAL_API PartSource source_of(const Context& ctx, const NeighborPart& part);

/// The neighbors of the whole search from the parts of all its shards, in any order: the same bits as `knn` or `radius`
/// of the whole table. Several ranges of queries may be merged at once; row i of the graph is then the i-th of all of
/// these queries. Counters of the search are added up.
///
/// Throws `invalid_argument` for parts that do not fit together: different metrics, exponents, k, radii, orders,
/// columns or kinds, ids or queries that two parts have, rows and queries that are missing (all of them are named), and
/// for a k that is larger than clause 5 allows; `bad_data` for lists that cannot be from a search; `over_memory` before
/// work begins, `cancelled`. Time O(m k log s) for s shards. Memory: that of the result; for sources also up to 64 MiB,
/// or the lists of one query if these are larger.
VICINAL_API NeighborGraph merge(const Context& ctx, std::span<const NeighborPart> parts);
VICINAL_API NeighborGraph merge(const Context& ctx, std::span<const PartSource> parts);
/// The same of counts, which add up.
VICINAL_API NeighborCounts merge_counts(const Context& ctx, std::span<const NeighborPart> parts);
VICINAL_API NeighborCounts merge_counts(const Context& ctx, std::span<const PartSource> parts);
/// As `merge` of knn or radius parts, but passes the lists of consecutive queries to `take`, so that memory does not
/// grow with the number of queries. If it throws, `take` has received the lists of earlier queries.
VICINAL_API RadiusSummary merge_batches(const Context& ctx, std::span<const PartSource> parts, const TakeLists& take);

/// The plan of `merge` of knn parts, of `merge_batches` of radius parts, or of `merge_counts`. Throws as these do if
/// parts do not fit together, and `over_memory`.
VICINAL_API Plan plan_merge(const Context& ctx, std::span<const PartSource> parts);

/// Writes a part to a file (safetensors layout) under a temporary name and then renames it. Returns the check sum that
/// ends the file. Throws `io`, `cancelled`, and `invalid_argument` for arrays that do not fit together.
VICINAL_API std::uint32_t write_part(const Context& ctx, const std::filesystem::path& path, const NeighborPart& part);
/// As `radius_part`, but writes the lists to the file batch by batch: memory does not grow with the number of neighbors
/// (as in `radius_batches`). The part that it returns has no lists; `neighbors`, unless null, receives their number.
VICINAL_API NeighborPart radius_part_file(const Context& ctx, const TableView& shard, const TableView& queries,
                                          const RadiusOptions& options, const PartOptions& place,
                                          const std::filesystem::path& path, std::int64_t* neighbors = nullptr);
VICINAL_API NeighborPart radius_part_file(const Context& ctx, const Index& shard, const TableView& queries,
                                          const RadiusOptions& options, const PartOptions& place,
                                          const std::filesystem::path& path, std::int64_t* neighbors = nullptr);
/// The plan of `radius_part_file`.
VICINAL_API Plan plan_radius_part_file(const Context& ctx, const TableView& shard, const TableView& queries,
                                       const RadiusOptions& options, const PartOptions& place);

/// A part in a file, which must not change while it is used. The whole file is read once to compare its checksum.
/// Throws `io` for a file that cannot be read, `bad_data` for a file that is not a part or is damaged, `cancelled`.
/// Memory: 8 (m + 1) bytes if lists have different lengths, and that of the lists that are read.
VICINAL_API PartSource open_part(const Context& ctx, const std::filesystem::path& path);
/// Reads the whole part to memory. Throws as `open_part`, and `over_memory`.
VICINAL_API NeighborPart read_part(const Context& ctx, const std::filesystem::path& path);
/// The bytes of the file that `write_part` writes, to send a part to another process. Throws as `write_part`, and
/// `over_memory`. They take what the lists take, and about 1 kB.
VICINAL_API std::vector<std::byte> part_bytes(const Context& ctx, const NeighborPart& part);
/// A part in such bytes, which it borrows. `name` stands for the path in error sentences. Throws as `open_part`.
VICINAL_API PartSource open_part_bytes(const Context& ctx, std::span<const std::byte> bytes, const std::string& name);
/// Whether the header of a file says that it is a part; false for a file that cannot be read.
VICINAL_API bool is_part_file(const Context& ctx, const std::filesystem::path& path);

}  // namespace vicinal
