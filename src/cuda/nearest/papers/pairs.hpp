// A block of queries and the whole table, widened to float64 (and brought to length one for cosine), as the papers'
// kernels read them: row by row, and column by column where neighboring threads have neighboring rows.
#pragma once

#include <cstdint>

#include "cuda/nearest/task.hpp"

namespace vicinal::cuda::papers {

/// Some of them.
struct WideBlock {
  const double* rows = nullptr;        ///< [count, d]
  const double* columns = nullptr;     ///< [d, count], or null
  const std::uint8_t* zero = nullptr;  ///< [count] for cosine: rows of zeros
  std::int64_t count = 0;
};

/// What a kernel is given.
struct Pairs {
  WideBlock queries;
  WideBlock table;
  std::int64_t d = 0;
  double p = 2;
  std::int64_t first_query = 0;            ///< of the block, within the search
  Eligible may;                            ///< of the search
  unsigned long long* overflow = nullptr;  ///< the smallest code of an eligible pair whose key is not finite

  __device__ bool eligible(std::int64_t q, std::int64_t row) const { return may(first_query + q, row); }
  __device__ bool zero(std::int64_t q, std::int64_t row) const {
    return table.zero != nullptr && (queries.zero[q] != 0 || table.zero[row] != 0);
  }
  __device__ void note_overflow(std::int64_t q, std::int64_t row) const {
    atomicMin(overflow,
              static_cast<unsigned long long>(first_query + q) << kRowBits | static_cast<unsigned long long>(row));
  }
  static constexpr int kRowBits = 40;
};

/// Memory of widened rows.
struct WideMemory {
  Buffer<double> rows;
  Buffer<double> columns;
  Buffer<std::uint8_t> zero;

  [[nodiscard]] WideBlock view(std::int64_t count) const { return {rows.data(), columns.data(), zero.data(), count}; }
};
/// Widens rows [begin, begin + count); `by_column`: the second order, too.
WideMemory widen_rows(const Engine& engine, Metric metric, const Rows& rows, std::int64_t begin, std::int64_t count,
                      bool by_column);

/// Keys of every query of the block with rows [begin, begin + rows); infinity where the pair may not be neighbors.
struct KeyMatrix {
  double* keys = nullptr;
  std::int64_t query_stride = 0;
  std::int64_t row_stride = 0;

  __device__ double& at(std::int64_t q, std::int64_t r) const { return keys[q * query_stride + r * row_stride]; }
};

/// The LOF paper's kernel: a pair a thread, columns read by neighboring threads from neighboring addresses, nothing
/// shared. Threads run along the matrix's inner side. Needs both sides by column.
void keys_by_columns(const Engine& engine, Metric metric, const Pairs& pairs, std::int64_t begin, std::int64_t rows,
                     const KeyMatrix& to);
/// The LLE paper's: 16 x 16 pairs a block, whose rows travel through shared memory.
void keys_by_tiles(const Engine& engine, Metric metric, const Pairs& pairs, std::int64_t begin, std::int64_t rows,
                   const KeyMatrix& to);

/// Keys of chosen pairs: rows[q * room + i] for i < counts[q]; of metrics that a product serves. `fixed`: as many for
/// every query, in place of counts.
void keys_of_chosen(const Engine& engine, Metric metric, const Pairs& pairs, const std::int64_t* rows,
                    const unsigned long long* counts, std::int64_t fixed, std::int64_t room, double* keys);

}  // namespace vicinal::cuda::papers
