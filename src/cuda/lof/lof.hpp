// Outlier scores of neighborhoods on the device (contract clause 13).
#pragma once

#include <cstdint>

#include "cuda/base/session.hpp"
#include "formulas/lof/outlier.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::cuda::lof {

/// Finds the neighborhoods where there is a search, else uploads them; fills the task's results.
void score_outliers(Session& session, const Host& host, const plugin::Search* search, plugin::Outliers& task,
                    plugin::Counters& counters);
/// Bytes of device memory it takes beyond the search. Throws `over_memory` where they are not to be had.
std::uint64_t outlier_bytes(const Session& session, const plugin::Outliers& task);

/// Neighborhoods of some of a table's rows, on the device until their scores are made.
class OutlierRows {
 public:
  /// Finds them; fills k-distances and `copied`.
  OutlierRows(Session& session, const Host& host, const plugin::Search& search, plugin::Outliers& task,
              plugin::Counters& counters);
  ~OutlierRows();
  OutlierRows(const OutlierRows&) = delete;
  OutlierRows& operator=(const OutlierRows&) = delete;

  void densities(const double* k_distances, double* densities);
  void scores(const double* densities, std::int64_t first_row, double* scores);
  [[nodiscard]] Session& session() const { return session_; }

 private:
  const double* upload(const double* values);

  Session& session_;
  OutlierScore score_;
  Duplicates duplicates_;
  AcrossK across_;
  std::int64_t k_from_;
  std::int64_t ks_;
  std::int64_t known_rows_;
  std::uint64_t bytes_;
  core::Neighborhoods near_;
  Buffer<std::int64_t> ids_;
  Buffer<double> distances_;
  Buffer<double> known_;  // of all rows
};

}  // namespace vicinal::cuda::lof
