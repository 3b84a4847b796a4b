// The inner loops that are compiled once for each instruction set, behind one table of functions.
// Every table gives the same bits for keys (contract clause 4); the screen's scores may differ inside its proven bound
// (src/cpu/nearest/screen.hpp) and never reach a result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cpu {

/// A row that passed the screen: its position in the block, and its score (larger is nearer).
struct Survivor {
  float score;
  std::uint32_t row;
};

/// One tile of a screen: `tile_queries` queries against `tile_rows` rows, both packed word by word (Screen::pack) and
/// padded. float32 and bfloat16 form, for each pair,
///   start[row] + sum_j queries[j] rows[j] + a[query] rho[row] + b[query] kappa[row],
/// rounded step by step in that order, and the pair survives unless that is smaller than threshold[query] (a NaN
/// survives). int8 forms base[row] + sum_j queries[j] rows[j] + [a[0] rho[row] + b[0] kappa[row] rounded up, at most
/// 2^30], and the pair survives unless that is smaller than least[query].
struct ScreenTile {
  const std::byte* queries;    // [words, tile_queries] of 32 bits
  const std::byte* rows;       // [words, tile_rows]
  const float* start;          // [tile_rows]
  const std::int32_t* base;    // [tile_rows]
  const float* rho;            // [tile_rows]
  const float* kappa;          // [tile_rows]
  const float* a;              // [tile_queries]
  const float* b;              // [tile_queries]
  const float* threshold;      // [tile_queries]
  const std::int32_t* least;   // [tile_queries]
  std::int64_t words;          // 32-bit words of a packed row
  std::int32_t valid_queries;  // of tile_queries
  std::int32_t valid_rows;     // of tile_rows
  std::uint32_t first_row;     // position of the tile's first row in the block
  Survivor* survivors;         // [valid_queries, capacity]
  std::int64_t capacity;       // at least the rows of the block, so an append never checks
  std::int32_t* counts;        // [valid_queries]
};
using ScreenFn = void (*)(const ScreenTile& tile);

/// Appends the rows of a tile whose bits are set to a query's survivors. Static: each translation unit keeps the copy
/// compiled for its own instruction set.
template <class Score>
static inline void append_survivors(const ScreenTile& tile, int query, std::uint64_t bits, const Score* scores) {
  Survivor* out = tile.survivors + query * tile.capacity;
  std::int32_t count = tile.counts[query];
  while (bits != 0) {
    const int lane = __builtin_ctzll(bits);
    bits &= bits - 1;
    out[count].score = static_cast<float>(scores[lane]);
    out[count].row = tile.first_row + static_cast<std::uint32_t>(lane);
    ++count;
  }
  tile.counts[query] = count;
}

/// Keys whose columns are independent: what is added (or kept) of each column.
enum class KeyOp : std::uint8_t { squares, products, absolutes, maximum, differing };
inline constexpr int kKeyOps = 5;

/// Element types a key kernel reads directly; other types are widened to one of these first.
enum class Element : std::uint8_t { uint8, float32, float64 };
inline constexpr int kElements = 3;

/// Sums of contract clause 1 (before sign, half or division) of one query against `count` rows.
/// x: [d rounded up to 8] float64, zero beyond d; rows: pointers to d elements each.
using KeysFn = void (*)(const double* x, const void* const* rows, std::int64_t count, std::int64_t d, double* sums);

/// Products of one query's bytes, unsigned, with those of `count` rows, signed: exact sums modulo 2^32. `bytes`: of the
/// query and of each row, a multiple of 64.
using ByteProductsFn = void (*)(const std::byte* query, const std::byte* const* rows, std::int64_t count,
                                std::int64_t bytes, std::int32_t* sums);

inline constexpr int kScreens = 3;
constexpr int screen_index(ScreenType type) {
  return static_cast<int>(type) - 1;  // `automatic` has none
}

struct SimdKernels {
  Isa isa;
  std::int32_t tile_queries;
  std::int32_t tile_rows;
  ScreenFn screens[kScreens];      // each screen works everywhere ...
  bool quick[kScreens];            // ... but only these by an instruction that makes them quicker than finer ones
  std::int64_t kept_int8_queries;  // up to so many queries of rows that an index keeps int8 pays without one, too
  KeysFn keys[kKeyOps][kElements];
  ByteProductsFn byte_products;
};

inline constexpr int kMaxTileQueries = 12;
inline constexpr int kMaxTileRows = 32;

#if defined(__x86_64__)
/// Dot products of bytes and of bfloat16 pairs, for machines that have the instructions (core::has_feature).
void screen_int8_avx512vnni(const ScreenTile& tile);
void screen_int8_avxvnni(const ScreenTile& tile);
void screen_bfloat16_avx512(const ScreenTile& tile);
#endif

/// The table for an instruction set in use (never `automatic`), with what this machine has beyond it.
const SimdKernels& simd_kernels(Isa isa);

}  // namespace vicinal::cpu
