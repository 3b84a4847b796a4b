// The GS paper's distances on the device: one product of matrices in float32 (cuBLAS) for a block of queries and the
// whole table. As the cancellation in it would cost neighbors, it is a screen here: sums start from what makes them
// upper bounds (formulas/nearest/float_screen.hpp), a selection takes the k best of a row, whose float64 keys bound the
// answer, and every other row whose bound passes the threshold of that is ranked too.
#pragma once

#include <cstdint>

#include "cuda/nearest/papers/pairs.hpp"
#include "formulas/nearest/float_screen.hpp"

namespace vicinal::cuda::papers {

/// Rows of either side, rounded to float32.
struct FloatRows {
  Buffer<float> values;          ///< [count, d]
  Buffer<core::FloatRow> terms;  ///< [count]
  std::int64_t count = 0;
};

/// How all rows are centered and scaled.
struct FloatScale {
  Buffer<double> centre;  ///< [d]
  int exponent = 0;
};
FloatScale float_scale(const Engine& engine, const Search& search);
/// A row (or query) that the scale does not fit becomes zeros; its terms say so.
FloatRows round_rows(const Engine& engine, const FloatScale& scale, const WideBlock& rows, std::int64_t d,
                     bool queries);
/// The mean |y~| of a sample of the table.
double typical_norm(const Engine& engine, const FloatRows& table);

/// One block of queries on its way.
struct ProductBlock {
  const Pairs* pairs = nullptr;
  Metric metric = Metric::euclidean;
  std::int64_t k = 0;
  int exponent = 0;
  double typical = 0;
  const FloatRows* table = nullptr;
  const FloatRows* queries = nullptr;
  core::FloatQuery* limits = nullptr;    ///< [queries] what the sums start from, and the threshold
  double* seeds = nullptr;               ///< [queries] a key that bounds the answer
  float* scores = nullptr;               ///< [queries, n]
  std::int64_t* rows = nullptr;          ///< [queries, n] those that are ranked
  double* keys = nullptr;                ///< [queries, n] their keys
  unsigned long long* counts = nullptr;  ///< [queries] how many
};

/// Limits from the keys of some rows spread over the table; of all rows, where not enough of those are eligible.
void seed_block(const Engine& engine, const ProductBlock& block);
/// Scores; -infinity where the pair may not be neighbors.
void score_block(const Engine& engine, const ProductBlock& block);
/// Thresholds from the keys of rows that a selection chose, [queries, k]; then every row that may be an answer, with
/// its key. Returns nothing: `rows`, `keys` and `counts` are it.
void collect_block(const Engine& engine, const ProductBlock& block, const std::int64_t* chosen);

}  // namespace vicinal::cuda::papers
