// The inner loops that are compiled once for each instruction set, behind one table of functions.
// Every table gives the same bits for keys (contract clause 4); the screen's scores may differ inside its proven bound
// (src/cpu/screen.hpp) and never reach a result.
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// A row that passed the screen: its position in the block, and its score (larger is nearer).
struct Survivor {
  float score;
  std::uint32_t row;
};

/// One tile of the screen: `tile_queries` queries against `tile_rows` rows, both packed column by column and padded.
/// For each pair: start[row] + sum_j queries[j] rows[j] + a[query] rho[row] + b[query] kappa[row], rounded step by step
/// in that order; the pair survives unless that is smaller than threshold[query] (a NaN survives).
struct ScreenTile {
  const float* queries;    // [d, tile_queries]
  const float* rows;       // [d, tile_rows]
  const float* start;      // [tile_rows]
  const float* rho;        // [tile_rows]
  const float* kappa;      // [tile_rows]
  const float* a;          // [tile_queries]
  const float* b;          // [tile_queries]
  const float* threshold;  // [tile_queries]
  std::int64_t d;
  std::int32_t valid_queries;  // of tile_queries
  std::int32_t valid_rows;     // of tile_rows
  std::uint32_t first_row;     // position of the tile's first row in the block
  Survivor* survivors;         // [valid_queries, capacity]
  std::int64_t capacity;       // at least the rows of the block, so an append never checks
  std::int32_t* counts;        // [valid_queries]
};

/// Keys whose columns are independent: what is added (or kept) of each column.
enum class KeyOp : std::uint8_t { squares, products, absolutes, maximum, differing };
inline constexpr int kKeyOps = 5;

/// Element types a key kernel reads directly; other types are widened to one of these first.
enum class Element : std::uint8_t { uint8, float32, float64 };
inline constexpr int kElements = 3;

/// Sums of contract clause 1 (before sign, half or division) of one query against `count` rows.
/// x: [d rounded up to 8] float64, zero beyond d; rows: pointers to d elements each.
using KeysFn = void (*)(const double* x, const void* const* rows, std::int64_t count, std::int64_t d, double* sums);

struct SimdKernels {
  Isa isa;
  std::int32_t tile_queries;
  std::int32_t tile_rows;
  void (*screen_tile)(const ScreenTile& tile);
  KeysFn keys[kKeyOps][kElements];
};

inline constexpr int kMaxTileQueries = 12;
inline constexpr int kMaxTileRows = 32;

const SimdKernels& baseline_kernels();
const SimdKernels& avx2_kernels();
const SimdKernels& avx512_kernels();

/// The table for an instruction set in use (never `automatic`).
const SimdKernels& simd_kernels(Isa isa);

}  // namespace vicinal::cpu
