// Exact nearest neighbors: k lists, radius search and counts, of a table within itself or of queries against it.
// Every answer is that of brute force with the float64 key of docs/contract.md, ties by the smaller id.
#pragma once

#include <filesystem>
#include <memory>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/model_options.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

namespace kernels {
struct Prepared;
}

struct LleModel;
struct LofModel;
struct NeighborModel;

struct KnnOptions {
  std::int64_t k = 5;  ///< 1 <= k <= eligible rows (one less in self mode)
  Metric metric = Metric::euclidean;
  double p = 2;  ///< exponent of `minkowski`, finite and >= 1
  Method method = Method::automatic;
  ScreenType screen = ScreenType::automatic;
  Bitmap filter = {};  ///< rows that may be neighbors; empty: all. (n + 63) / 64 words
  std::span<const std::int64_t> exclude =
      {};  ///< [m] one id a query that may not be its neighbor, -1 for none; empty: none
};

struct RadiusOptions {
  double radius = 0;  ///< inclusive; negative is an error except for inner_product
  Metric metric = Metric::euclidean;
  double p = 2;
  Method method = Method::automatic;
  ScreenType screen = ScreenType::automatic;
  Bitmap filter = {};
  std::span<const std::int64_t> exclude = {};
};

/// How many rows lie within a radius of each query.
struct NeighborCounts {
  std::vector<std::int64_t> counts;  ///< [m]
  Plan plan;
  SearchStats stats;
};

struct IndexOptions {
  bool copy = false;  ///< own a copy of the table instead of borrowing it
  bool tree =
      false;  ///< build the kd-tree now instead of at the first search that needs it; it is saved with the index
};

/// A table made ready for queries: checked, its duplicates grouped, its centre found. Any metric may be asked of it.
class VICINAL_API Index {
 public:
  /// Throws `bad_data` naming row and column of the first NaN or infinity. O(n d) time, O(n + d) memory beyond the
  /// table.
  Index(const Context& ctx, const TableView& table, const IndexOptions& options = {});

  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] std::int64_t cols() const noexcept;
  [[nodiscard]] const TableView& table() const noexcept;

  /// Writes table and preparation to one file (safetensors layout), to a temporary first, then renamed.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Maps a saved index, or that of a NeighborModel or LleModel. Throws `bad_data` for anything that `save` did not
  /// write, `invalid_argument` for the index of a model with a `preparation`, unless the options allow it.
  static Index load(const Context& ctx, const std::filesystem::path& path, const ModelOptions& options = {});

  [[nodiscard]] const kernels::Prepared& prepared() const noexcept { return *prepared_; }

 private:
  friend struct LleModel;  // whose files hold an index, too
  friend struct LofModel;
  friend struct NeighborModel;
  explicit Index(std::shared_ptr<const kernels::Prepared> prepared) : prepared_(std::move(prepared)) {}
  std::shared_ptr<const kernels::Prepared> prepared_;
};

/// The k nearest rows of the table for each of its own rows, itself excluded by id.
VICINAL_API NeighborGraph knn(const Context& ctx, const TableView& table, const KnnOptions& options);
/// The k nearest rows of the table for each query.
VICINAL_API NeighborGraph knn(const Context& ctx, const TableView& table, const TableView& queries,
                              const KnnOptions& options);
VICINAL_API NeighborGraph knn(const Context& ctx, const Index& index, const KnnOptions& options);
VICINAL_API NeighborGraph knn(const Context& ctx, const Index& index, const TableView& queries,
                              const KnnOptions& options);

/// Memory of the caller's for k lists, written as in NeighborGraph.
struct KnnOutput {
  std::int64_t* ids = nullptr;   ///< [m, k]
  double* distances = nullptr;   ///< [m, k]
  Memory memory = Memory::host;  ///< where both lie; cuda: in the memory of the context's device
};

/// What a search that wrote its lists elsewhere has to tell.
struct KnnSummary {
  std::int64_t rows = 0;        ///< m
  std::int64_t table_rows = 0;  ///< n
  std::int64_t k = 0;
  Plan plan;
  SearchStats stats;
};

/// `knn` into memory of the caller's. On a CUDA context the lists go there without a detour through host memory, and
/// not through it at all where they are to lie on the device; the CPU makes them first and copies them. Throws what
/// `knn` throws, `invalid_argument` for a null pointer, and `device_unavailable` for memory that the context's device
/// does not reach.
VICINAL_API KnnSummary knn_into(const Context& ctx, const TableView& table, const KnnOptions& options,
                                const KnnOutput& output);
VICINAL_API KnnSummary knn_into(const Context& ctx, const TableView& table, const TableView& queries,
                                const KnnOptions& options, const KnnOutput& output);
VICINAL_API KnnSummary knn_into(const Context& ctx, const Index& index, const KnnOptions& options,
                                const KnnOutput& output);
VICINAL_API KnnSummary knn_into(const Context& ctx, const Index& index, const TableView& queries,
                                const KnnOptions& options, const KnnOutput& output);

/// All rows within the radius (inclusive, on the reported distance), as CSR.
VICINAL_API NeighborGraph radius(const Context& ctx, const TableView& table, const RadiusOptions& options);
VICINAL_API NeighborGraph radius(const Context& ctx, const TableView& table, const TableView& queries,
                                 const RadiusOptions& options);
VICINAL_API NeighborGraph radius(const Context& ctx, const Index& index, const RadiusOptions& options);
VICINAL_API NeighborGraph radius(const Context& ctx, const Index& index, const TableView& queries,
                                 const RadiusOptions& options);

/// As `radius`, counting only.
VICINAL_API NeighborCounts count(const Context& ctx, const Index& index, const RadiusOptions& options);
VICINAL_API NeighborCounts count(const Context& ctx, const Index& index, const TableView& queries,
                                 const RadiusOptions& options);

/// What `knn` would do, without doing it: method, memory, expected time, why. `queries` = nullptr: self mode.
/// Where a tree may be worth it the table is prepared and a tree tried on samples of it, as the search would.
VICINAL_API Plan plan_knn(const Context& ctx, const TableView& table, const TableView* queries,
                          const KnnOptions& options);
/// The same for `radius` and `count`; how many neighbors a radius will find, and their memory, is not known before.
VICINAL_API Plan plan_radius(const Context& ctx, const TableView& table, const TableView* queries,
                             const RadiusOptions& options);

}  // namespace vicinal
