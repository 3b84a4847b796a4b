// Keys of few queries, formed from the table's rows as they lie: the table is read once, and nothing is packed.
#pragma once

#include <cstdint>

#include "cuda/nearest/keys.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// The queries of a search that core::few_queries_serve, where all threads can read them.
class FewQueries {
 public:
  FewQueries(const Engine& engine, const Search& search);
  static std::uint64_t bytes(std::int64_t m, std::int64_t d);

  /// Meets all queries with `count` rows of the table from `first_row` on.
  void form_keys(const Engine& engine, std::int64_t first_row, std::int64_t count, const KeySink& sink) const;

 private:
  const Search& search_;
  std::int64_t stride_;
  Buffer<double> wide_;   // [m, stride]
  Buffer<float> narrow_;  // [m, stride]
};

}  // namespace vicinal::cuda
