// DBSCAN on the device (contract clause 28): what its searches share. The graph of neighbors is never written. Rows are
// known by their places: in the order of a tree (dbscan_tree.cu), or by id (dbscan_lists.cu).
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/base/session.hpp"
#include "cuda/nearest/tree/tree.hpp"
#include "formulas/density/weight_digits.hpp"
#include "plugin/abi/dbscan.hpp"

namespace vicinal::cuda::dbscan {

inline constexpr unsigned kNone = ~0U;           ///< no row, no number
inline constexpr unsigned kSeveral = kNone - 1;  ///< components
/// Places have 32 bits, of which the last two are taken.
inline constexpr std::int64_t kMaxPlaces = kMaxTreeRows;

/// Labels a table's rows.
void find_clusters(Session& session, const Host& host, const plugin::Search& search, plugin::DbscanTask& task,
                   plugin::Counters& counters);
/// The most bytes of device memory that takes beyond what stays there. Throws `over_memory` where they are not to be
/// had.
std::uint64_t dbscan_bytes(const Session& session, const plugin::Search& search, const plugin::DbscanTask& task);

/// What is found of the rows, by their places.
struct PlacedRows {
  std::int64_t count = 0;
  const std::uint32_t* order = nullptr;  ///< [count] ids of places; null: a place is an id
  Buffer<std::uint8_t> core;             ///< [count] 1 for core rows
  Buffer<unsigned> parent;               ///< [count] a forest (forest.cuh): roots are the smallest places
  Buffer<unsigned> labels;               ///< [count] numbers of clusters, or kNone

  PlacedRows(const Engine& engine, std::int64_t rows, const std::uint32_t* ids);
  static std::uint64_t bytes(std::int64_t rows);
};

/// When a row is a core row, on the device.
struct Rule {
  double limit = 0;              ///< the largest key of neighbors
  std::int64_t min_samples = 1;  ///< without weights
  core::WeightDigits digits;     ///< of weights
  Buffer<double> weights;        ///< [rows] by id, or empty
  Buffer<std::int64_t> least;    ///< digits.least

  Rule(const Engine& engine, const plugin::DbscanTask& task, std::int64_t rows);
  [[nodiscard]] bool has_weights() const { return weights.size() > 0; }
  static std::uint64_t bytes(const plugin::DbscanTask& task, std::int64_t rows);
};

/// The three searches: core rows, unions of those that are neighbors, and then the smallest numbers around other rows.
class Searches {
 public:
  Searches() = default;
  Searches(const Searches&) = delete;
  Searches& operator=(const Searches&) = delete;
  virtual ~Searches() = default;

  virtual void find_core_rows() = 0;
  virtual void join_core_rows() = 0;
  virtual void label_border_rows() = 0;
};

/// In a tree: bytes beside rows and rule.
std::uint64_t tree_walk_bytes(std::int64_t rows, bool weights);
std::unique_ptr<Searches> walk_tree(const Engine& engine, const TreeView& tree, const plugin::Search& search,
                                    const Rule& rule, PlacedRows& rows);

/// Through lists of neighbors, some queries at a time: bytes beside rows and rule, within `left`.
std::uint64_t list_bytes(const Engine& engine, const plugin::Search& search, std::uint64_t left);
std::unique_ptr<Searches> list_neighbors(const Engine& engine, const Resident& table, const plugin::Search& search,
                                         const Rule& rule, PlacedRows& rows, plugin::Counters& counters);

/// Makes each place a tree of its own.
void plant(const Engine& engine, unsigned* parent, std::int64_t count);
/// Makes every pointer lead to the root.
void flatten(const Engine& engine, unsigned* parent, std::int64_t count);

}  // namespace vicinal::cuda::dbscan
