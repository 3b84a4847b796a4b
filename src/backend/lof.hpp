// Outlier scores (contract clause 13): what a backend provides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/memory_need.hpp"
#include "backend/nearest.hpp"
#include "formulas/lof/outlier.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::kernels {

/// What of the table's own rows is known where others are scored: [n, ks] each.
struct LofModel {
  std::span<const double> k_distances;
  std::span<const double> densities;
  std::span<const double> caps;  ///< [ks], or empty
};

/// Scores to make of neighborhoods (contract clause 13), checked by the caller.
struct LofTask {
  OutlierScore score = OutlierScore::lof;
  Duplicates duplicates = Duplicates::sklearn;  ///< `distinct` is the neighborhoods' matter, and then `infinite`
  AcrossK across = AcrossK::max;
  core::Neighborhoods near;  ///< on the host; where they are yet to be found, of k lists: rows, k and stride only
  std::int64_t k_from = 0;   ///< of a range that ends with near.k; 0: one k
  TableView table;           ///< [n, d] that ids number, for scores that need it
  Metric metric = Metric::euclidean;
  double p = 2;
  const LofModel* model = nullptr;  ///< null: the neighborhoods are of a table within itself
  bool keep = false;                ///< k-distances and densities are wanted

  [[nodiscard]] std::int64_t ks() const noexcept { return k_from > 0 ? near.k - k_from + 1 : 1; }
};

struct LofResult {
  std::span<double> scores;          ///< [rows]; of loop the PLOFs
  std::vector<double>& k_distances;  ///< [rows, ks] where kept
  std::vector<double>& densities;    ///< [rows, ks] where kept
  std::vector<double>& caps;         ///< [ks] with Duplicates::cap, unless there is a model
  std::int64_t copied = 0;           ///< rows whose last k-distance is 0
  double seconds = 0;                ///< after the neighbors were found, where they were found first
};

class LofBackend {
 public:
  LofBackend() = default;
  LofBackend(const LofBackend&) = delete;
  LofBackend& operator=(const LofBackend&) = delete;
  virtual ~LofBackend() = default;

  virtual void score(const Context& ctx, const LofTask& task, LofResult& result) const = 0;
  /// The most bytes it takes beyond the result, the neighborhoods not counted. Throws `over_memory` where a device has
  /// no room.
  virtual MemoryNeed bytes(const Context& ctx, const LofTask& task) const = 0;
  /// Whether `search_and_score` leaves lists where they are found: NearestTask::lists_stay of its search.
  virtual bool lists_stay(const LofTask& /*task*/) const { return false; }
  /// A search of k lists, and scores of what it found.
  virtual void search_and_score(const Context& ctx, const NearestTask& search, const LofTask& task, LofResult& result,
                                SearchStats& stats) const = 0;
};

/// `search_and_score` of a backend that has no way of its own: lists in host memory, and then their scores.
void search_then_score(const Context& ctx, const NearestBackend& nearest, const LofBackend& lof,
                       const NearestTask& search, const LofTask& task, LofResult& result, SearchStats& stats);

}  // namespace vicinal::kernels
