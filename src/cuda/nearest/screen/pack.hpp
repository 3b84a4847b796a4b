// Rows brought into the form that the screen multiplies (bytes: pack_bytes.hpp): centered, scaled by a power of two,
// rounded to fp16, with the five spare columns that carry norm and error bound (formulas/nearest/half_screen.hpp), in
// the matrix unit's own order. (pack.cu)
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/nearest/screen/screen.hpp"
#include "cuda/nearest/task.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda {

/// What rows were centered and scaled with; the same for a table and its queries.
struct Quantization {
  /// What kernels are given of it.
  struct Numbers {
    Metric metric = Metric::euclidean;
    const double* centre = nullptr;        ///< [d]
    const float* narrow_centre = nullptr;  ///< [d] the same, where the table is no wider than float32
    int d = 0;
    bool bytes = false;  ///< of bytes, which are multiplied as int8: nothing below is used
    int columns = 0;     ///< core::half_columns(d), or core::byte_columns(d)
    int exponent = 0;    ///< of the scale, a power of two
    /// Rows far out are shortened (formulas/nearest/half_screen.hpp), queries there not screened.
    bool shortens = false;
    bool narrow = false;        ///< centring and scaling in float32 lose nothing that matters
    double beta = 0;            ///< of the matrix unit's sums
    double* typical = nullptr;  ///< [2] sum of |y~| over some rows, and their number
  };
  Buffer<double> memory;
  Numbers numbers;
};
/// `moves`: for distances rows are centered, else never.
Quantization make_frame(const Engine& engine, const Rows& table, const TableFacts& facts, Metric metric,
                        bool moves = true);

/// Owns what a PackedTable points to.
struct TablePack {
  Buffer<__half> tiles;
  PackedTable view;
};
TablePack pack_table(const Engine& engine, const Rows& table, const Chosen& chosen, const Quantization& frame);

/// What is known of one query.
struct QueryFacts {
  core::HalfRow row;        ///< of bytes only exact_sq, which is core::byte_own
  double limit_key;         ///< no answer has a larger key; infinity: nothing is known
  std::int32_t exponent;    ///< of the scale that is the query's own
  core::HalfForm form;      ///< fixed with the first threshold
  std::uint8_t overflowed;  ///< survivors were lost, or it cannot be screened: not certified
  std::uint8_t zero;        ///< cosine: a row of zeros
};

/// The queries of one batch.
struct PackedQueries {
  Quantization::Numbers frame;
  Buffer<double> wide;       ///< [m, d] exact values; for cosine normalized
  Buffer<__half> tiles;      ///< [tile_count][kQueryTile x columns]
  Buffer<QueryFacts> facts;  ///< [tile_count * kQueryTile], as the next three
  Buffer<float> thresholds;
  Buffer<std::uint32_t> counts;
  Buffer<std::uint8_t> lost;
  Buffer<Survivor> survivors;  ///< [m, capacity]
  ScreenQueries view;
};
/// `capacity`: survivors a query may have between two calls of `tighten`.
PackedQueries pack_queries(const Engine& engine, const Rows& queries, const Quantization& frame,
                           std::uint32_t capacity);

}  // namespace vicinal::cuda
