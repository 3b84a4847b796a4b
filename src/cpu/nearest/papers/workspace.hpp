// What the papers' methods share: the table's rows made ready once, queries a batch at a time, float64 keys of whole
// rows of pairs, and the lists that are the result. A table row stands for itself here: equal rows are not grouped.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "backend/nearest.hpp"
#include "cpu/nearest/block.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/keys.hpp"
#include "cpu/nearest/query_batch.hpp"

namespace vicinal::cpu::papers {

/// The k nearest of one query, in the result's own arrays; of `keys` distances are made at the end.
struct List {
  double* keys;
  std::int64_t* ids;
  std::int64_t k;

  [[nodiscard]] NearestHeap heap() const { return {keys, ids, k}; }
};

/// A row and how near it seems: larger is nearer.
struct Ranked {
  float score;
  std::int64_t row;
};

/// What one worker writes to; every method uses what it needs of it.
struct Scratch {
  std::vector<double> keys;          // [queries of a group, rows]
  std::vector<float> scores;         // [queries of a group, n]
  std::vector<Survivor> survivors;   // of one stretch of rows
  std::vector<Ranked> ranked;        // [n up to a power of two]
  std::vector<std::int64_t> chosen;  // rows, or winners of a tournament
  double selection_seconds = 0;
};

/// Adds the time of its scope to a worker's selection.
class SelectionTimer {
 public:
  explicit SelectionTimer(Scratch& scratch) : scratch_(scratch), start_(std::chrono::steady_clock::now()) {}
  ~SelectionTimer() {
    scratch_.selection_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  SelectionTimer(const SelectionTimer&) = delete;
  SelectionTimer& operator=(const SelectionTimer&) = delete;

 private:
  Scratch& scratch_;
  std::chrono::steady_clock::time_point start_;
};

class Workspace {
 public:
  /// Prepares every row of the task's table. `screens`: empty, or the one that products are made with.
  Workspace(const Context& ctx, const kernels::NearestTask& task, std::vector<Screen> screens);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Queries [begin, end) become the batch.
  void load(std::int64_t begin, std::int64_t end) { batch_.load(ctx_, begin, end); }
  [[nodiscard]] const Context& context() const noexcept { return ctx_; }
  [[nodiscard]] const kernels::NearestTask& task() const noexcept { return task_; }
  [[nodiscard]] const SimdKernels& simd() const noexcept { return simd_; }
  [[nodiscard]] const std::vector<Screen>& screens() const noexcept { return screens_; }
  [[nodiscard]] const QueryBatch& batch() const noexcept { return batch_; }
  [[nodiscard]] const RowBlock& rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t n() const noexcept { return index_.table.rows(); }
  [[nodiscard]] std::int64_t ranked() const noexcept { return ranked_.load(std::memory_order_relaxed); }

  /// Whether a row may be a neighbor of query i of the batch.
  [[nodiscard]] bool eligible(std::int64_t i, std::int64_t row) const noexcept {
    return candidates_.eligible(batch_.begin() + i, row);
  }
  /// The key of query i of the batch and an eligible row.
  [[nodiscard]] double key(std::int64_t i, std::int64_t row) const;
  /// Keys of `count` queries from the first-th of the batch and rows [begin, begin + rows), [count, rows]; infinity for
  /// rows that may not be neighbors. Made by tiles: a stretch of rows stays in the cache while the queries pass over
  /// it.
  void keys_of_tile(std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t rows, double* keys) const;

  /// Queries of a group whose keys or scores a worker holds at once, at most `most`.
  static std::int64_t group(std::int64_t n, std::int64_t most);

 private:
  const Context& ctx_;
  kernels::Prepared index_;    // the task's without its groups
  kernels::NearestTask task_;  // of that
  const SimdKernels& simd_;
  std::vector<Screen> screens_;
  Candidates candidates_;
  PairKeys pair_keys_;
  RowBlock rows_;
  QueryBatch batch_;
  mutable std::atomic<std::int64_t> ranked_ = 0;
};

}  // namespace vicinal::cpu::papers
