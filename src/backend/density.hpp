// Density clustering and the minimum spanning tree under it (contract clauses 27, 28 and 30): what a backend provides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/memory_need.hpp"
#include "backend/nearest.hpp"
#include "vicinal/context.hpp"

namespace vicinal::kernels {

/// An edge of the complete graph of a table's rows, a < b. Edges are ordered by (key, a, b).
struct TreeEdge {
  double key = 0;
  std::int64_t a = -1;  ///< -1: no edge
  std::int64_t b = -1;
};

struct SpanningTask {
  /// The search of the k lists, which names table, metric and method (fused, direct or kdtree with its tree).
  NearestTask search;
  std::int64_t rank = 0;  ///< the neighbor whose key is a row's core key, at most k; 0: edges by distance alone
  double divisor = 1;     ///< of the keys of pairs, but not of core keys
  // [n, k] each: ids, and distances, which the backend turns into keys. It may write into both. Empty for a backend
  // that finds lists itself.
  std::span<std::int64_t> ids;
  std::span<double> keys;
  bool in_tree_order = false;  ///< list i is that of row `order[i]` of the tree
};

struct SpanningResult {
  std::vector<TreeEdge>& edges;    ///< [n - 1] ascending
  std::vector<double>& core_keys;  ///< [n] with a rank, else empty
  SearchStats& stats;              ///< of the lists, where the backend finds them
  double seconds = 0;              ///< after the lists were found
};

/// DBSCAN of a table within itself: rows are neighbors where their key is not above `limit`.
struct DbscanTask {
  NearestTask search;  ///< names table, metric and method (fused, direct or kdtree with its tree)
  double limit = 0;
  std::int64_t min_samples = 1;
  std::span<const double> weights;  ///< [n] finite, or empty: each row weighs 1
};

struct DbscanResult {
  std::span<std::uint8_t> core;    ///< [n] 1 for core rows
  std::span<std::int64_t> labels;  ///< [n] numbers of clusters, or -1
  std::int64_t clusters = 0;
};

/// The order of OPTICS of a table within itself: rows are neighbors where their key is not above `limit`.
struct OpticsTask {
  NearestTask search;     ///< of the k lists; names table, metric and method (fused, direct or kdtree with its tree)
  std::int64_t rank = 1;  ///< the neighbor whose key is a row's core key, at most k
  double limit = 0;
  std::span<const std::int64_t> ids;  ///< [n, k] lists
  std::span<const double> keys;       ///< [n, k]
};

struct OpticsResult {
  std::span<std::int64_t> ordering;      ///< [n]
  std::span<double> reach_keys;          ///< [n] of each row; infinity where no row reaches
  std::span<std::int64_t> predecessors;  ///< [n] of each row, or -1
};

/// What a device may be able to do without the others.
enum class DensityWork : std::uint8_t { spanning_tree, dbscan, optics };

class DensityBackend {
 public:
  DensityBackend() = default;
  DensityBackend(const DensityBackend&) = delete;
  DensityBackend& operator=(const DensityBackend&) = delete;
  virtual ~DensityBackend() = default;

  [[nodiscard]] virtual bool serves(DensityWork /*work*/) const { return true; }
  /// Whether `spanning_tree` finds the lists itself, and leaves them where they are found.
  [[nodiscard]] virtual bool finds_lists() const { return false; }

  virtual void spanning_tree(const Context& ctx, const SpanningTask& task, SpanningResult& result) const = 0;
  /// What it takes beside table, lists and result; with the lists and their search where it finds them itself. Throws
  /// `over_memory` where a device has no room.
  virtual MemoryNeed spanning_tree_bytes(const Context& ctx, const SpanningTask& task) const = 0;

  virtual void dbscan(const Context& ctx, const DbscanTask& task, DbscanResult& result) const = 0;
  /// What it takes beside table and result.
  virtual MemoryNeed dbscan_bytes(const Context& ctx, const DbscanTask& task) const = 0;

  virtual void optics(const Context& ctx, const OpticsTask& task, OpticsResult& result) const = 0;
  /// What it takes beside table, lists and result.
  virtual MemoryNeed optics_bytes(const Context& ctx, const OpticsTask& task) const = 0;
};

}  // namespace vicinal::kernels
