// The int8 tile for machines with a dot product of bytes (u8 x s8, four at a time into 32 bits, without saturation).
// `Lanes` wraps one width of the instruction; included by one translation unit an instruction set.
#pragma once

#include "simd/intrinsics.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {
namespace {

// Of the tile's queries the first `used`, which are at least the valid ones.
template <class Lanes, int tile_queries, int used = tile_queries>
inline void screen_int8_tile(const ScreenTile& tile) {
  using Vec = typename Lanes::Vec;
  constexpr int kLanes = Lanes::kLanes;
  constexpr std::ptrdiff_t kWord = 4;  // bytes
  Vec low[used];
  Vec high[used];
  const Vec start_low = Lanes::start(tile, 0);
  const Vec start_high = Lanes::start(tile, kLanes);
#pragma GCC unroll 12
  for (int q = 0; q < used; ++q) {
    low[q] = start_low;
    high[q] = start_high;
  }
  const std::byte* rows = tile.rows;
  const std::byte* queries = tile.queries;
  for (std::int64_t j = 0; j < tile.words; ++j) {
    const Vec row_low = Lanes::load(rows);
    const Vec row_high = Lanes::load(rows + kWord * kLanes);
#pragma GCC unroll 12
    for (int q = 0; q < used; ++q) {
      const Vec query = Lanes::broadcast(queries + kWord * q);
      Lanes::dot(low[q], query, row_low);
      Lanes::dot(high[q], query, row_high);
    }
    rows += kWord * 2 * kLanes;
    queries += kWord * tile_queries;
  }
  const std::uint64_t valid = (std::uint64_t{1} << tile.valid_rows) - std::uint64_t{1};
#pragma GCC unroll 12
  for (int q = 0; q < used; ++q) {
    const std::uint64_t keep = ~Lanes::smaller(low[q], high[q], tile.least[q]) & valid;
    if (__builtin_expect(keep == 0, 1)) continue;
    if (q >= tile.valid_queries) continue;
    alignas(64) std::int32_t sums[2 * kLanes];
    Lanes::store(sums, low[q]);
    Lanes::store(sums + kLanes, high[q]);
    append_survivors(tile, q, keep, sums);
  }
}

}  // namespace
}  // namespace vicinal::cpu
