// The k-means half of the fake plug-in (plugin.cpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"

namespace vicinal::plugin {

/// The CPU's iterations over rows of its own, behind the plug-in's functions.
class FakeClustering {
 public:
  /// `part`: rows that there is room for at a time.
  FakeClustering(std::vector<double> values, std::int64_t cols, std::vector<double> weights, std::int64_t clusters,
                 bool sums, std::int64_t rows_at_a_time)
      : part(rows_at_a_time),
        values_(std::move(values)),
        weights_(std::move(weights)),
        cols_(cols),
        task_{TableView(values_.data(), static_cast<std::int64_t>(values_.size()) / cols, cols), weights_, clusters,
              sums},
        lloyd_(kernels::cpu_backend().kmeans().lloyd(Context::cpu({.threads = 1}), task_)) {
    ++alive;
  }
  ~FakeClustering() { --alive; }
  FakeClustering(const FakeClustering&) = delete;
  FakeClustering& operator=(const FakeClustering&) = delete;

  static inline std::atomic<std::int64_t> alive = 0;
  static inline std::atomic<std::int64_t> label_copies = 0;

  kernels::Lloyd& lloyd() { return *lloyd_; }
  std::unique_ptr<kernels::Seeding>& seeding() { return seeding_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t rows() const { return task_.table.rows(); }
  const std::vector<double>& values() const { return values_; }
  std::int64_t k = 0;
  std::int64_t rechecked = 0;
  std::int64_t part = 0;

 private:
  std::vector<double> values_;
  std::vector<double> weights_;
  std::int64_t cols_;
  kernels::ClusterTask task_;
  std::unique_ptr<kernels::Lloyd> lloyd_;
  std::unique_ptr<kernels::Seeding> seeding_;
};

}  // namespace vicinal::plugin
