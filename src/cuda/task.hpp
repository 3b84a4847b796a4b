// What a search inside the plug-in is given: rows and results in device memory. Checked above the waist.
#pragma once

#include <cstdint>

#include "cuda/device.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cuda {

/// Rows in device memory: row-major, contiguous, finite.
struct Rows {
  const void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t n = 0;
  std::int64_t d = 0;
};

/// What is known of a table before any query; in device memory beside its rows.
struct TableFacts {
  const double* centre = nullptr;   ///< [d] coordinate median of a sample, rounded to integers for integral columns
  const double* largest = nullptr;  ///< [1] max |value - centre| over the table
};

/// A block of queries against a table that lies wholly on the device, or a tile of one that does not.
struct Search {
  Rows table;
  std::int64_t first_row = 0;  ///< id of the table's first row: of a tile; else 0
  TableFacts facts;
  Rows queries;
  bool self = false;  ///< query q has the id first_query + q and is not its own neighbor
  std::int64_t first_query = 0;
  Metric metric = Metric::euclidean;
  double p = 2;
  const std::uint64_t* filter = nullptr;  ///< by id, of the whole table, in device memory, or null
  const std::int64_t* exclude = nullptr;  ///< [m] ids in device memory, or null
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
/// The fused screen, of a table that lies wholly on the device (fused.cu). Which metrics, widths and k it serves:
/// `fused_serves`.
void fused_k_lists(const Engine& engine, const Search& search, const KLists& lists, Counters& counters);
bool fused_serves(const Engine& engine, Metric metric, std::int64_t d, std::int64_t k);

}  // namespace vicinal::cuda
