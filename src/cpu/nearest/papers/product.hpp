// The distances of the GS paper (Liu, Zheng and Liu 2019): |x|^2 + |y|^2 - 2 x.y of all rows from one product of
// matrices in float32. What cancellation leaves of that is no distance to answer with, so here it is a screen: the
// scores are upper bounds (cpu/nearest/screen.hpp), selection takes rows in the order of their scores, each one taken
// is ranked by its float64 key, and selection ends when the next score is below the threshold of the k-th key so far.
// Usually that is after k rows and a few. Cost: O(n d) a query, and the selection.
#pragma once

#include <cstdint>

#include "cpu/nearest/papers/workspace.hpp"

namespace vicinal::cpu::papers {

/// The first method's selection: what is left of the rows plays a tournament for every neighbor.
class KMinSearch {
 public:
  /// Takes over scratch.chosen, and overwrites the scores as rows are taken.
  KMinSearch(float* scores, std::int64_t n, Scratch& scratch);
  /// The row with the largest score of those left; false when none is.
  bool next(Ranked& best);

 private:
  [[nodiscard]] std::int64_t winner(std::int64_t node) const { return node >= n_ ? node - n_ : winners_[node]; }
  void play(std::int64_t node);

  float* scores_;
  std::int64_t n_;
  std::int64_t* winners_;  // [n] of the inner nodes 1 to n - 1; node i has the children 2i and 2i + 1, leaves follow
};

/// The second one's: a bitonic sort of all rows.
class BitonicSort {
 public:
  /// Takes over scratch.ranked.
  BitonicSort(const Context& ctx, const float* scores, std::int64_t n, Scratch& scratch);
  bool next(Ranked& best);

 private:
  const Ranked* next_;
  const Ranked* end_;
};

/// Selects for a tile of queries (as many as SimdKernels::tile_queries), by product_kmin or product_bitonic. lists[i]
/// is of query i of the batch.
void select_from_products(const Workspace& work, Method method, std::int64_t tile, const List* lists, Scratch& scratch);

/// The third method: times the two on one query, drawn by Philox, and says which was quicker. Loads a batch of its own.
Method quicker_selection(Workspace& work, Scratch& scratch);

}  // namespace vicinal::cpu::papers
