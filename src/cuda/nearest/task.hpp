// What a search inside the plug-in is given: rows and results in device memory. Checked by the library.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/base/device.hpp"
#include "vicinal/dtype.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cuda {

/// Rows in device memory: row-major, contiguous, finite.
struct Rows {
  const void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t n = 0;
  std::int64_t d = 0;
};

/// What is known of a table before any query.
struct TableFacts {
  const double* centre = nullptr;  ///< [d] in device memory: coordinate median of a sample, rounded to integers for
                                   ///< integral columns
  double largest = 0;              ///< max |value - center| over the table
  double largest_value = 0;        ///< >= max |value|
  double longest = 0;              ///< no row is farther from the center
  double longest_value = 0;        ///< no row is longer
};

/// From the largest deviation of a value and the largest value.
inline TableFacts facts_of(const double* centre, std::int64_t d, double largest, double largest_value) {
  const double root = std::sqrt(static_cast<double>(d));
  return {centre, largest, largest_value, largest * root, largest_value * root};
}

/// Which rows a query may have as neighbors; rows by their numbers within the search's table.
struct Eligible {
  bool self = false;                      ///< a query has the id of its number and is not its own neighbor
  std::int64_t first_row = 0;             ///< id of the table's first row: of a tile; else 0
  std::int64_t first_query = 0;           ///< number of the first query
  const std::int64_t* numbers = nullptr;  ///< [m] in device memory where they do not follow from the first; else null
  const std::uint64_t* filter = nullptr;  ///< by id, of the whole table, in device memory, or null
  const std::int64_t* exclude = nullptr;  ///< [m] ids in device memory, or null

  /// The row that the query is, or below 0; of a tile also a row that is not in it.
  __host__ __device__ std::int64_t own_row(std::int64_t query) const {
    if (!self) return -1;
    return (numbers != nullptr ? numbers[query] : first_query + query) - first_row;
  }
  /// The same of the row that it may not have.
  __host__ __device__ std::int64_t excluded_row(std::int64_t query) const {
    return exclude != nullptr ? exclude[query] - first_row : -1;
  }
  __host__ __device__ bool operator()(std::int64_t query, std::int64_t row) const {
    if (row == own_row(query) || row == excluded_row(query)) return false;
    const std::int64_t id = first_row + row;
    return filter == nullptr || (filter[id >> 6] >> (id & 63) & 1) != 0;
  }
};

/// A block of queries against a table that lies wholly on the device, or a tile of one that does not. Kernels are given
/// its Eligible.
struct Search : Eligible {
  Rows table;
  std::int64_t first_id = 0;  ///< what is added to ids, and to numbers of queries, in sentences: of a shard
  TableFacts facts;
  Rows queries;
  /// [queries] where the device writes a few queries' first column that is not finite, or -1; null: all are finite.
  std::int64_t* not_finite = nullptr;
  Metric metric = Metric::euclidean;
  double p = 2;
  double root = 2;  ///< distances are reported with it: p, or where keys are wanted 1
};

/// k neighbors a query in (key, id) order, in device memory. Distances are the reported ones (contract clause 2).
struct KLists {
  std::int64_t k = 0;
  std::int64_t* ids = nullptr;  ///< [m, k]
  double* distances = nullptr;  ///< [m, k]
};

/// As SearchStats.
struct Counters {
  std::int64_t survivors = 0;
  std::int64_t escalated = 0;
  std::int64_t uncertified = 0;
};

/// Every key in float64: any metric, any k (direct.cu).
void direct_k_lists(const Engine& engine, const Search& search, const KLists& lists);
/// The fused screen, of a table that lies wholly on the device (fused.cu). Which metrics, widths and k it serves (of a
/// radius or count: 0): `fused_serves`; n, d and the type of the table say what its packed rows take.
void fused_k_lists(const Engine& engine, const Search& search, const KLists& lists, Counters& counters);
bool fused_serves(const Engine& engine, Metric metric, std::int64_t n, std::int64_t d, std::int64_t k);
/// Bytes it takes at most within `limit`, for m queries.
std::uint64_t fused_bytes(const Engine& engine, const Search& search, std::int64_t m, std::int64_t k,
                          std::uint64_t limit);

}  // namespace vicinal::cuda
