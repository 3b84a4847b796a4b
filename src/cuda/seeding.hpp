// The rows' masses while k-means++ draws centres (contract clause 12), on the device.
#pragma once

#include <cstdint>

#include "cuda/cluster.hpp"

namespace vicinal::cuda {

class Seeding {
 public:
  /// At most `trials` rows an attempt. What is in `view` must outlive it.
  Seeding(const Engine& engine, const ClusterView& view, std::int64_t trials);

  std::int64_t draw(double u);
  void attempt(const std::int64_t* rows, std::int64_t count, double* totals);
  void take(std::int64_t attempt);

  static std::uint64_t bytes(std::int64_t n, std::int64_t d, std::int64_t trials);

 private:
  /// Of all rows: least keys, masses of chunks, and their running sums, the total last.
  struct Masses {
    double* keys = nullptr;     // [n]
    double* chunks = nullptr;   // [chunks]
    double* running = nullptr;  // [chunks + 1]
  };
  [[nodiscard]] Masses masses(std::int64_t slot) const;

  const Engine& engine_;
  const ClusterView& view_;
  std::int64_t chunks_;
  std::int64_t trials_;
  bool chosen_ = false;
  Buffer<double> keys_;    // [trials + 1][n]; the last slot has those that count
  Buffer<double> sums_;    // [trials + 1][chunks], then [trials + 1][chunks + 1]
  Buffer<double> values_;  // [trials, d]
  Buffer<std::int64_t> rows_;
  Buffer<std::int64_t> drawn_;
};

}  // namespace vicinal::cuda
