// Exact nearest neighbors: k nearest rows, radius search and counts, for the rows of a table or for queries.
// Results are those of brute force with the float64 key of docs/contract.md, ties by the smaller id. They have the same
// bits for every number of threads, instruction set, method and device.
#pragma once

#include <filesystem>
#include <limits>
#include <memory>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

namespace kernels {
struct IndexAccess;
struct Prepared;
}  // namespace kernels

struct KnnOptions {
  /// Neighbors per query: at least 1, and at most the smallest number of rows that any query may choose from: the rows
  /// that the filter admits, without the query's own row (if the table is searched within itself) and without the row
  /// that `exclude` names for it.
  std::int64_t k = 5;
  Metric metric = Metric::euclidean;
  double p = 2;                               ///< exponent of `minkowski`, finite and at least 1
  Method method = Method::automatic;          ///< all methods give the same result
  ScreenType screen = ScreenType::automatic;  ///< first screen of `fused`
  Bitmap filter = {};                         ///< rows that may be neighbors, (n + 63) / 64 words; empty: all
  /// [m] for each query the id of one row that is not its neighbor, or -1; empty: no such rows.
  std::span<const std::int64_t> exclude = {};
  /// Rows farther away than this reported distance are not neighbors, so lists may be shorter than k. At least 0 except
  /// for `inner_product`; infinity: no limit. Only `knn` accepts a finite value.
  double max_radius = std::numeric_limits<double>::infinity();
};

/// In which order lists within a radius come.
enum class RadiusOrder : std::uint8_t {
  key,  ///< nearest first, ties by the smaller id
  id,   ///< by ascending id
};

/// "key", "id".
VICINAL_API std::string_view name_of(RadiusOrder order) noexcept;
/// The inverse of `name_of`; throws `invalid_argument` listing the names there are.
VICINAL_API RadiusOrder radius_order_from(std::string_view name);

struct RadiusOptions {
  double radius = 0;  ///< inclusive, in reported distances; at least 0 except for `inner_product`
  Metric metric = Metric::euclidean;
  double p = 2;                                ///< exponent of `minkowski`, finite and at least 1
  Method method = Method::automatic;           ///< automatic, fused, direct or kdtree; all give the same result
  ScreenType screen = ScreenType::automatic;   ///< first screen of `fused`
  Bitmap filter = {};                          ///< as KnnOptions::filter
  std::span<const std::int64_t> exclude = {};  ///< as KnnOptions::exclude
  RadiusOrder order = RadiusOrder::key;        ///< of the rows in a list; votes and means are added up in it
  std::span<const double> radii = {};          ///< [m] a radius per query, which replaces `radius`; empty: `radius`
};

/// The number of rows within a radius of each query.
struct NeighborCounts {
  std::vector<std::int64_t> counts;  ///< [m]
  Plan plan;
  SearchStats stats;
};

/// When an index keeps the rows that method fused packs on the CPU.
enum class Packing : std::uint8_t {
  automatic,  ///< from the first search that packs them, if the memory limit allows
  never,      ///< each search packs them
  now,        ///< as `automatic`; rows for the first screen of euclidean distances are packed when the index is made
};

/// "automatic", "never", "now".
VICINAL_API std::string_view name_of(Packing packing) noexcept;
/// The inverse of `name_of`; throws `invalid_argument` listing the names there are.
VICINAL_API Packing packing_from(std::string_view name);

struct IndexOptions {
  bool copy = false;  ///< own a copy of the table instead of borrowing it
  bool tree = false;  ///< build the kd-tree now instead of in the first search that needs it; `save` writes it
  /// Packed rows make a search of few queries much faster. They take, for each screen that was used, d + 12 bytes a row
  /// (int8), 2 d + 12 (bfloat16) or 4 d + 12 (float32), for euclidean distances, cosine and inner product each. Plans
  /// count them. A later search of the index that needs their memory drops them; they stay in memory as long as another
  /// search or a RepeatedKnn uses them. Not kept: rows of block sources, and with a CUDA context.
  Packing packed = Packing::automatic;
  /// Pruned rows make a search of 1 to 64 queries faster if most of the variance of the rows is in few directions. The
  /// image of a row has c = 16 to 128 rotated columns of one byte, and the distance of two images is a proven lower
  /// bound. A search first reads the images, then only the rows that the bound does not drop. `automatic`: the first
  /// search that they make faster makes them; `now`: those of euclidean distances are made with the index, if a sample
  /// of the rows shows that they make searches faster. They take c + 12 bytes per row, for euclidean distances, cosine
  /// and inner product each; plans count them, and they are dropped as packed rows are. The axes, at most 1,024 bytes
  /// per column of the table for each of these metrics, stay with the index. Making them takes O(n d c), and the sample
  /// about 10^9 multiplications. They serve k nearest neighbors by the automatic screen, but not searches within a
  /// radius and counts. A saved index records that it has them, and loading makes them again. Not made: of tables of
  /// fewer than 1,024 different rows or 32 columns, of block sources, with a CUDA context, on x86 without AVX2, and on
  /// Arm.
  Packing pruned = Packing::never;
};

/// A table prepared for searches by any metric: it is checked for NaN and infinity, its center is computed, and equal
/// rows are grouped. An index borrows the table, which must outlive it, unless IndexOptions::copy is set or the index
/// was loaded. Copies of an index share the prepared data. Several threads may search one index.
class VICINAL_API Index {
 public:
  /// Throws `bad_data` naming row and column of the first NaN or infinity, `invalid_argument` for a table without rows
  /// or columns and for IndexOptions::tree of a block source without `copy`, `device_unavailable` for a table in memory
  /// that the context cannot access, `over_memory` above the context's limit, `cancelled`. O(n d) time, O(n + d) memory
  /// beyond the table; the options add the bytes of a copy, of a tree, and of packed and pruned rows.
  Index(const Context& ctx, const TableView& table, const IndexOptions& options = {});

  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] std::int64_t cols() const noexcept;
  [[nodiscard]] const TableView& table() const noexcept;

  /// Writes the table and the prepared data to one file (safetensors layout), first under a temporary name; it is
  /// renamed when it is complete. Throws `io` if writing fails, `cancelled`. O(n d).
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads an index from a file of `save`, or from that of a NeighborModel or LleModel. Throws `io` for a file that
  /// cannot be read, `bad_data` for anything that `save` did not write, `over_memory`, and `invalid_argument` for a
  /// model with a Preparation, which an index cannot hold: load such a file as a model. O(n d).
  static Index load(const Context& ctx, const std::filesystem::path& path);

 private:
  friend struct kernels::IndexAccess;  // the library's own sources
  explicit Index(std::shared_ptr<const kernels::Prepared> prepared) : prepared_(std::move(prepared)) {}
  std::shared_ptr<const kernels::Prepared> prepared_;
};

/// The k nearest rows of a table for each of its own rows (a row is not its own neighbor) or for each query: ids [m, k]
/// and distances [m, k], nearest first, ties by the smaller id. The same bits for every method, thread count,
/// instruction set and device.
///
/// With `max_radius`: of the rows within it, the k nearest, as compressed rows (offsets [m + 1]); these are the first k
/// of each list of `radius`. A CUDA device finds k rows for each query, and the host removes those beyond `max_radius`.
///
/// Throws `invalid_argument` for options outside their domain, queries of another width than the table, and a method
/// that does not serve the metric, `device_unavailable` for rows in memory that the context cannot access, `bad_data`
/// naming row and column of the first NaN or infinity or two rows whose distance overflows float64, `over_memory`
/// before work begins, `cancelled`. Time O(m n d) by brute force, about O((n + m) log n) by kd-tree in few dimensions.
/// Memory 16 m k bytes for the result, O(n + m) and a fixed amount per thread, and what an Index keeps (tree, packed
/// rows); never m x n. Queries on a table without an Index prepare it first, O(n d).
VICINAL_API NeighborGraph knn(const Context& ctx, const TableView& table, const KnnOptions& options);
VICINAL_API NeighborGraph knn(const Context& ctx, const TableView& table, const TableView& queries,
                              const KnnOptions& options);
VICINAL_API NeighborGraph knn(const Context& ctx, const Index& index, const KnnOptions& options);
VICINAL_API NeighborGraph knn(const Context& ctx, const Index& index, const TableView& queries,
                              const KnnOptions& options);

/// The caller's memory for k lists, in the layout of NeighborGraph.
struct KnnOutput {
  std::int64_t* ids = nullptr;   ///< [m, k]
  double* distances = nullptr;   ///< [m, k]
  Memory memory = Memory::host;  ///< the memory that both are in; cuda: that of the context's device
};

/// Sizes, plan and counters of a search that wrote its lists to the caller's memory.
struct KnnSummary {
  std::int64_t rows = 0;        ///< m
  std::int64_t table_rows = 0;  ///< n
  std::int64_t k = 0;
  Plan plan;
  SearchStats stats;
};

/// As `knn`, but writes ids [m, k] and distances [m, k] to the caller's memory. With a CUDA context they are written
/// directly to `output` in device memory, or by one copy to host memory; with a CPU context they are computed in an
/// internal buffer and copied. If it throws, the contents of `output` are unspecified.
///
/// Throws `invalid_argument` for a null pointer, options outside their domain, queries of another width, and a method
/// that does not serve the metric, `device_unavailable` for memory that the context's device cannot access, `bad_data`
/// for NaN, infinity and distances that overflow, `over_memory` before work begins, `cancelled`. Time and memory are
/// those of `knn`.
VICINAL_API KnnSummary knn_into(const Context& ctx, const TableView& table, const KnnOptions& options,
                                const KnnOutput& output);
VICINAL_API KnnSummary knn_into(const Context& ctx, const TableView& table, const TableView& queries,
                                const KnnOptions& options, const KnnOutput& output);
VICINAL_API KnnSummary knn_into(const Context& ctx, const Index& index, const KnnOptions& options,
                                const KnnOutput& output);
VICINAL_API KnnSummary knn_into(const Context& ctx, const Index& index, const TableView& queries,
                                const KnnOptions& options, const KnnOutput& output);

/// A k-nearest search of an index that is repeated with other queries, as many each time, such as those of a service:
/// it is checked, planned and given its memory once.
///
/// With a CPU context, methods fused and direct, and table and queries in memory (no block sources), `find` allocates
/// no memory, makes no plan and starts no thread. The method is chosen when the object is made: made before the index
/// has packed rows, it stays with `direct` for fewer than 24 queries. One object serves one call at a time, its copies
/// included; several threads take one object each, of contexts of their own. It holds the plan's memory, and the packed
/// rows that it uses, as long as it lives.
class VICINAL_API RepeatedKnn {
 public:
  /// `example` [m, d]: queries like those that will come, which are searched once. What the options borrow must outlive
  /// the object. Throws as `knn_into` does. Time and memory are those of `knn_into`, and 16 m k bytes more.
  RepeatedKnn(const Context& ctx, const Index& index, const TableView& example, const KnnOptions& options);
  [[nodiscard]] const Plan& plan() const noexcept;
  /// Finds the k nearest of m queries as `knn_into` does, with the same bits: of ids and distances [m, k] in `output`.
  /// Queries may be of any element type and memory layout. Throws `invalid_argument` for another number of rows or
  /// columns than the example's and for a null pointer, `device_unavailable`, `bad_data`, `cancelled`; then what
  /// `output` has is unspecified, and the object can be used again.
  SearchStats find(const TableView& queries, const KnnOutput& output);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// All rows within a radius (inclusive, in reported distances) of each row of a table, itself excluded, or of each
/// query: ids and distances as compressed rows, offsets [m + 1], in the order of the options, by default nearest first,
/// ties by the smaller id. With a CUDA context and `radii`, the device searches all queries within the largest radius,
/// and the host removes the rows beyond each query's own; the plan has up to 64 MiB of host memory for this, or 32 n
/// bytes if that is more.
///
/// Throws `invalid_argument` for options outside their domain, queries of another width, and a method that does not
/// serve the metric, `device_unavailable` as `knn` does, `bad_data` for NaN, infinity and distances that overflow,
/// `over_memory` before work begins or when the neighbors found so far exceed the limit, `cancelled`. Time O(m n d) by
/// brute force; memory 16 bytes per neighbor found, and O(n + m). The same bits for every method, thread count,
/// instruction set and device.
VICINAL_API NeighborGraph radius(const Context& ctx, const TableView& table, const RadiusOptions& options);
VICINAL_API NeighborGraph radius(const Context& ctx, const TableView& table, const TableView& queries,
                                 const RadiusOptions& options);
VICINAL_API NeighborGraph radius(const Context& ctx, const Index& index, const RadiusOptions& options);
VICINAL_API NeighborGraph radius(const Context& ctx, const Index& index, const TableView& queries,
                                 const RadiusOptions& options);

/// The number of rows within a radius (inclusive, in reported distances) of each row of a table, without the row
/// itself, or of each query: counts [m]. Throws as `radius` does. Time O(m n d) by brute force; memory O(n + m), none
/// for neighbors (with a CUDA context and `radii`, the lists that the host cuts, as in `radius`). The same bits for
/// every method, thread count, instruction set and device.
VICINAL_API NeighborCounts count(const Context& ctx, const Index& index, const RadiusOptions& options);
VICINAL_API NeighborCounts count(const Context& ctx, const Index& index, const TableView& queries,
                                 const RadiusOptions& options);

/// The plan of `knn` without the search: method, bytes of memory, expected seconds and the reason. `queries` null: the
/// table within itself. If a tree may be faster, the table is prepared and trees of samples are tried, as `knn` would:
/// O(n d). Throws `invalid_argument` for options outside their domain and `bad_data` for NaN and infinity.
VICINAL_API Plan plan_knn(const Context& ctx, const TableView& table, const TableView* queries,
                          const KnnOptions& options);
/// The plan of `radius` and `count`. Its memory does not include the neighbors that `radius` finds, because their
/// number is not known in advance. Throws `invalid_argument` for options outside their domain and `bad_data` for NaN
/// and infinity.
VICINAL_API Plan plan_radius(const Context& ctx, const TableView& table, const TableView* queries,
                             const RadiusOptions& options);

}  // namespace vicinal
