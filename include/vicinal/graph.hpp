// NeighborGraph: who is near whom. The noun that every consumer (vote, LOF, LLE) shares.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vicinal/error.hpp"

namespace vicinal {

/// Distances the library knows (docs/contract.md, clause 1, has each key).
enum class Metric : std::uint8_t {
  euclidean,
  sqeuclidean,
  inner_product,  ///< minus the inner product, so that smaller is nearer
  cosine,
  manhattan,
  chebyshev,
  minkowski,  ///< with `p`
  hamming,    ///< share of columns that differ
};

/// How neighbors are found. Every method gives the same bits.
enum class Method : std::uint8_t {
  automatic,  ///< the planner decides
  fused,      ///< low-precision product with a proven bound fused with the threshold test, exact finish
  direct,     ///< every key in float64; also what runs, and what the plan says, where float64 keys might overflow
  kdtree,     ///< boxes around rows, of which those too far away are never opened; for metrics of differences
  // Those of the papers, for comparison (docs/papers.md): k nearest only, with the table in memory.
  product_kmin,     ///< a product of matrices, then the least of each row again and again
  product_bitonic,  ///< the same product, then a bitonic sort of each row
  product_timed,    ///< whichever of the two is quicker for a query drawn at random
  direct_filter,    ///< every key, then a threshold moved until about k pass it
  tiled_insertion,  ///< keys by tiles, then a sorted list that takes in one after the other
  insertion,        ///< every key, then such a list
  block_heap,       ///< every key, lanes that buffer what may enter one heap
};

/// The arithmetic in which Method::fused drops rows. Every screen gives the same bits, because none decides an answer.
enum class ScreenType : std::uint8_t {
  automatic,  ///< those that have a quick instruction here; each query uses as fine a one as it needs
  float32,
  bfloat16,  ///< float32's range with 8 bits: native on AVX512-BF16, emulated elsewhere
  int8,      ///< 256 steps for all columns together, exact for bytes: native on VNNI, emulated elsewhere
};

VICINAL_API std::string_view name_of(Metric metric) noexcept;
VICINAL_API std::string_view name_of(Method method) noexcept;
VICINAL_API std::string_view name_of(ScreenType screen) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the names there are.
VICINAL_API Metric metric_from(std::string_view name);
VICINAL_API Method method_from(std::string_view name);
VICINAL_API ScreenType screen_from(std::string_view name);

/// What ran, or would run, and why.
struct Plan {
  Method method = Method::automatic;  ///< never `automatic` in a result
  std::string screens;                ///< of `fused`, coarse to fine: a query climbs where too many rows survive
  std::string device = "cpu";
  std::string isa;                  ///< instruction set of the kernels: "avx512", "sm_90"
  int threads = 1;                  ///< of the host
  std::uint64_t memory = 0;         ///< bytes of host memory the job was planned with, scratch and result
  std::uint64_t device_memory = 0;  ///< bytes of device memory, beyond the table that stays there
  double expected_seconds = 0;      ///< estimate from shapes; 0 when unknown
  std::string reason;               ///< one sentence: why this method
};

/// What the search did; deterministic for a given input, whatever the thread count.
struct SearchStats {
  std::int64_t distinct_rows = 0;  ///< table rows that differ bit for bit
  std::int64_t survivors = 0;      ///< pairs ranked by the float64 key: those a screen let through, or a tree touched
  std::int64_t escalated = 0;      ///< queries that a finer screen than the first one served
  std::int64_t uncertified = 0;    ///< queries the screen could not narrow down in some block: full float64 there
  double prepare_seconds = 0;
  double search_seconds = 0;
  double selection_seconds = 0;  ///< of these, for selecting among distances; 0 where that is one with making them
};

/// The neighbors of m queries among n table rows. Rows are in (key, id) order, unless RadiusOptions::order is another.
struct NeighborGraph {
  std::int64_t rows = 0;              ///< m
  std::int64_t table_rows = 0;        ///< n
  std::int64_t k = 0;                 ///< neighbors a row; 0 for CSR
  std::vector<std::int64_t> ids;      ///< [m, k], or CSR
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
