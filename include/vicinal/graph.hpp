// NeighborGraph: the neighbors of each query with their distances, from which votes, means, LOF and LLE are computed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/error.hpp"

namespace vicinal {

/// Distance metrics (docs/contract.md, clause 1, defines the key of each).
enum class Metric : std::uint8_t {
  euclidean,
  sqeuclidean,
  inner_product,  ///< minus the inner product, so that smaller is nearer
  cosine,
  manhattan,
  chebyshev,
  minkowski,  ///< p-th root of the sum of p-th powers; `p` is an option
  hamming,    ///< fraction of columns that differ
};

/// How neighbors are found. Every method gives the same bits.
enum class Method : std::uint8_t {
  automatic,  ///< the planner decides
  fused,      ///< low-precision products with a proven error bound drop most rows; the others are ranked in float64
  direct,  ///< all keys in float64; any method falls back to it, and the plan says so, if float64 keys might overflow
  kdtree,  ///< a tree of boxes around rows; boxes that are too far away are skipped; for metrics of differences
  // Methods of the papers, for comparison (docs/papers.md): k nearest neighbors only, with the table in memory.
  product_kmin,     ///< a product of matrices, then k searches for the smallest element of each row
  product_bitonic,  ///< the same product, then a bitonic sort of each row
  product_timed,    ///< the faster one of these two for a query drawn at random
  direct_filter,    ///< all keys, then a threshold that is moved until about k keys are below it
  tiled_insertion,  ///< keys by tiles, each inserted into a sorted list
  insertion,        ///< all keys, then insertion into a sorted list
  block_heap,       ///< all keys, one heap; lanes buffer the keys that may enter it
};

/// The arithmetic in which Method::fused drops rows. Every screen gives the same results, because float64 keys decide.
enum class ScreenType : std::uint8_t {
  automatic,  ///< the types that are fast on this machine; finer ones follow for queries that need them
  float32,
  bfloat16,  ///< float32's range with 8 bits: native on AVX512-BF16, emulated elsewhere
  int8,      ///< 256 steps for all columns together, exact for bytes: native on VNNI, else by AVX2 for few queries
};

VICINAL_API std::string_view name_of(Metric metric) noexcept;
VICINAL_API std::string_view name_of(Method method) noexcept;
VICINAL_API std::string_view name_of(ScreenType screen) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API Metric metric_from(std::string_view name);
VICINAL_API Method method_from(std::string_view name);
VICINAL_API ScreenType screen_from(std::string_view name);

/// How a call runs, or would run, and why.
struct Plan {
  Method method = Method::automatic;  ///< never `automatic` in a result
  /// `fused`, and `direct` of few queries on a device: the screens from coarse to fine; a finer one follows if too many
  /// rows pass.
  std::string screens;
  std::string device = "cpu";
  std::string isa;                  ///< instruction set of the kernels: "avx512", "sm_90"
  int threads = 1;                  ///< number of host threads
  std::uint64_t memory = 0;         ///< bytes of host memory planned for workspace and result
  std::uint64_t device_memory = 0;  ///< bytes of device memory in addition to a table that is already there
  double expected_seconds = 0;      ///< estimate from shapes; 0 when unknown
  std::string reason;               ///< one sentence: why this method
};

/// Counters of the search, the same for every thread count, and times.
struct SearchStats {
  std::int64_t distinct_rows = 0;  ///< number of different table rows, compared bit for bit
  /// Pairs that were ranked by the float64 key: a screen did not drop them, or a tree visited them.
  std::int64_t survivors = 0;
  std::int64_t escalated = 0;    ///< queries that needed a finer screen than the first one
  std::int64_t uncertified = 0;  ///< queries for which over a quarter of a block (CUDA: all rows) was ranked in float64
  double prepare_seconds = 0;
  double search_seconds = 0;
  double selection_seconds = 0;  ///< part of `search_seconds` for selection; 0 if it is not separate from the distances
};

/// The neighbors of m queries among n table rows, in the order of (key, id): nearest first, ties by the smaller id;
/// unless RadiusOptions::order is another.
struct NeighborGraph {
  std::int64_t rows = 0;        ///< m
  std::int64_t table_rows = 0;  ///< n
  std::int64_t k = 0;           ///< neighbors per query; 0 for CSR
  /// [m, k] row numbers of the table; or CSR: list i is offsets[i] to offsets[i + 1] - 1.
  std::vector<std::int64_t> ids;
  std::vector<double> distances;      ///< like ids
  std::vector<std::int64_t> offsets;  ///< [m + 1] for CSR, else empty
  Metric metric = Metric::euclidean;
  double p = 2;
  Plan plan;
  SearchStats stats;

  [[nodiscard]] bool is_csr() const noexcept { return !offsets.empty(); }
  [[nodiscard]] std::span<const std::int64_t> ids_of(std::int64_t row) const noexcept {
    return {ids.data() + begin_of(row), static_cast<std::size_t>(size_of_row(row))};
  }
  [[nodiscard]] std::span<const double> distances_of(std::int64_t row) const noexcept {
    return {distances.data() + begin_of(row), static_cast<std::size_t>(size_of_row(row))};
  }

 private:
  [[nodiscard]] std::int64_t begin_of(std::int64_t row) const noexcept { return is_csr() ? offsets[row] : row * k; }
  [[nodiscard]] std::int64_t size_of_row(std::int64_t row) const noexcept {
    return is_csr() ? offsets[row + 1] - offsets[row] : k;
  }
};

}  // namespace vicinal
