// Keys of few queries, formed from the table's rows as they lie: the table is read once, and nothing is packed.
#pragma once

#include <cstdint>

#include "cuda/nearest/keys.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// The queries of a search that core::few_queries_serve, where all threads can read them.
class FewQueries {
 public:
  struct Task;

  /// Of the k nearest; `rows`: of the table's first block. `counts` [m] become 0. Writes search.not_finite where that
  /// is asked for.
  FewQueries(const Engine& engine, const Search& search, std::int64_t k, std::int64_t rows, unsigned long long* counts);
  static std::uint64_t bytes(std::int64_t m, std::int64_t d, std::int64_t k, std::int64_t rows);

  /// Takes limits from some of the first rows of the table, unless they are too few or a filter may leave them out.
  /// Returns whether there are such limits.
  bool sample(const Engine& engine) const;
  /// Compares all queries with `count` rows of the table from `first_row` on, after `sample`: a key has to be within
  /// that limit, too.
  void form_keys(const Engine& engine, std::int64_t first_row, std::int64_t count, const KeySink& sink) const;

 private:
  static std::int64_t doubles(std::int64_t m, std::int64_t d, std::int64_t sampled);
  [[nodiscard]] Task task(std::int64_t first_row, std::int64_t count) const;

  const Search& search_;
  std::int64_t k_;
  std::int64_t stride_;
  std::int64_t sampled_;
  Buffer<double> memory_;
  double* wide_ = nullptr;   // [m, stride], queries of zeros after them
  float* narrow_ = nullptr;  // the same
  double* nearest_ = nullptr;
  double* limits_ = nullptr;
};

}  // namespace vicinal::cuda
