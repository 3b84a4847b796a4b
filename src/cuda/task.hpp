// What a search inside the plug-in is given: rows and results in device memory. Checked above the waist.
#pragma once

#include <cstdint>

#include "cuda/device.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cuda {

constexpr std::int64_t size_of_type(DType dtype) noexcept {
  return dtype == DType::uint8 ? 1 : dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
}

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
  double largest = 0;              ///< max |value - centre| over the table
  double largest_value = 0;        ///< >= max |value|
};

/// A block of queries against a table that lies wholly on the device.
struct Search {
  Rows table;
  TableFacts facts;
  Rows queries;
  /// [m] in device memory: the table row that query q is, and that is not its own neighbor; null: none.
  const std::int64_t* self = nullptr;
  Metric metric = Metric::euclidean;
  double p = 2;
  const std::uint64_t* filter = nullptr;  ///< [(n + 63) / 64] in device memory, or null
  const std::int64_t* exclude = nullptr;  ///< [m] in device memory, or null
};

/// k neighbors a query in (key, id) order, in device memory. Distances are the reported ones (contract clause 2).
struct KLists {
  std::int64_t k = 0;
  std::int64_t* ids = nullptr;    ///< [m, k]
  double* distances = nullptr;    ///< [m, k]
};

/// As SearchStats.
struct Counters {
  std::int64_t survivors = 0;
  std::int64_t escalated = 0;
  std::int64_t uncertified = 0;
};

/// Every key in float64: any metric, any k (direct.cu).
void direct_k_lists(const Engine& engine, const Search& search, const KLists& lists);
/// The fused screen (fused.cu). Which metrics, widths and k it serves: `fused_serves`.
void fused_k_lists(const Engine& engine, const Search& search, const KLists& lists, Counters& counters);
bool fused_serves(const Engine& engine, Metric metric, std::int64_t d, std::int64_t k);

}  // namespace vicinal::cuda
