// The screen: fp16 products of packed queries and packed rows, or int8 ones of bytes, compared with one threshold a
// query. What may be a neighbor is appended to the query's survivors; nothing else leaves the registers. (screen.cu for
// Hopper, portable.cu for all others; the proofs that what is dropped is no neighbor:
// formulas/nearest/half_screen.hpp and formulas/nearest/byte_screen.hpp.)
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/nearest/screen/chosen.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

// Packed rows lie as the matrix unit reads them: a tile's steps of 16 columns one after another, a step as 2 columns of
// core matrices (8 rows of 8 elements, 128 bytes). Of bytes two count as one element, so that a step has 32 of them.
inline constexpr int kStep = 16;        ///< columns of one product
inline constexpr int kTableTile = 128;  ///< rows
inline constexpr int kQueryTile = 256;  ///< rows

/// Where element (row, col) of a tile of `tile_rows` rows lies.
__host__ __device__ constexpr std::int64_t packed_offset(int tile_rows, int row, int col) {
  return static_cast<std::int64_t>(col / kStep) * tile_rows * kStep + (col % kStep / 8) * tile_rows * 8 + row * 8 +
         col % 8;
}

/// What lies before the steps of a table tile of bytes: 32 bits a row, counted in elements of two bytes.
inline constexpr int kStartElements = kTableTile * 2;
/// Elements of a table tile.
__host__ __device__ constexpr std::int64_t table_tile_elements(int columns, bool bytes) {
  return static_cast<std::int64_t>(kTableTile) * columns + (bytes ? kStartElements : 0);
}

/// A row that a screen let through: an upper bound of its score, and its number among the chosen rows.
struct Survivor {
  float score;
  std::uint32_t number;
};

/// Chosen rows of a table, packed in an order that spreads neighbors over all tiles: a prefix is a fair sample.
struct PackedTable {
  const __half* tiles = nullptr;  ///< [tile_count][kTableTile x columns]; of bytes each with its starts before it
  Chosen chosen;                  ///< position p holds number (p % kTableTile) tile_count + p / kTableTile of these
  std::int64_t tile_count = 0;
  int columns = 0;     ///< a multiple of kStep, spare columns included
  bool bytes = false;  ///< rows and queries are int8
};
__host__ __device__ inline std::int64_t packed_number(const PackedTable& table, std::int64_t position) {
  return position % kTableTile * table.tile_count + position / kTableTile;
}

/// Queries and what is known of each; arrays of tile_count * kQueryTile.
struct ScreenQueries {
  const __half* tiles = nullptr;  ///< [tile_count][kQueryTile x columns]
  std::int64_t rows = 0;
  std::int64_t tile_count = 0;
  const float* thresholds = nullptr;  ///< keep a row when !(score < threshold)
  Eligible eligible;                  ///< without its filter
  std::uint32_t* counts = nullptr;    ///< survivors so far; beyond `capacity` they were not stored
  Survivor* survivors = nullptr;      ///< [., capacity]
  std::uint32_t capacity = 0;
  std::uint8_t* lost = nullptr;  ///< set for queries that lost rows because a stream was full
};

/// Four scores of a query, at least one of which passed, before they are dealt to its list.
struct alignas(16) Passed {
  float scores[4];
  std::uint32_t place;  ///< in the warp's 16 queries and the tile's rows
  std::uint32_t tile;
  std::uint32_t first_query;
  std::uint32_t unused;
};
/// Where the warps of a screen leave what passes.
struct Streams {
  Passed* passed = nullptr;         ///< [stream_count, capacity]
  std::uint32_t* counts = nullptr;  ///< [stream_count]
  std::uint32_t capacity = 0;
};
std::int64_t stream_count(const Engine& engine);

/// Screens tiles [begin, end) of the table.
void screen(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
            std::int64_t end, const Streams& streams);
/// The best of each 32 / `parts` rows of tiles [begin, end), no threshold: best[query][4 parts tile + ...], tiles
/// counted from `begin`, a score whose lowest bits are the number of the row in its tile (`row_of_best`); -infinity
/// where the query may have none of the rows. For the sample. `parts`: 2, 4 or 8.
void screen_best(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
                 std::int64_t end, int parts, float* best);
__host__ __device__ constexpr std::int64_t bests_a_tile(int parts) {
  return std::int64_t{4} * parts;
}
__device__ inline int row_of_best(float best) {
  return static_cast<int>(__float_as_uint(best) & (kTableTile - 1));
}
/// Every score of tiles [begin, end): scores[query][position], no threshold; -infinity for what the query may not
/// have.
void screen_all(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
                std::int64_t end, float* scores);

/// From such scores to the queries' lists, as `screen` does at once: what fusing saves.
void pick(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
          std::int64_t end, const float* scores);

}  // namespace vicinal::cuda
