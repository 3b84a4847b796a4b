// What the screens share, be it wgmma (screen.cu) or mma.sync (portable.cu) that multiplies, float16 or bytes:
// how the work is cut into items, what a warp does with the sums of a tile, and where it leaves what passes. Both
// instructions hand a lane the same part of 16 queries by 8 rows: queries l / 4 and 8 more, rows 2 (l % 4) and the
// next. float16's sums are float32 and err (formulas/nearest/half_screen.hpp); those of bytes are whole and do not, and
// begin at a number that each row brings with it, in front of its tile (formulas/nearest/byte_screen.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda/base/shared_memory.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/screen/screen.hpp"

namespace vicinal::cuda {

inline constexpr std::uint32_t kTableStepBytes = kTableTile * kStep * sizeof(__half);
inline constexpr std::uint32_t kQueryStepBytes = kQueryTile * kStep * sizeof(__half);
/// What lies in front of a table tile's steps.
template <class Sum>
inline constexpr std::uint32_t kStartBytes = std::is_same_v<Sum, float> ? 0 : kStartElements * sizeof(__half);

/// A slot of a ring: starts, where there are some, steps of the table, steps of the queries, where they are streamed.
template <class Sum, bool kStreamQueries>
__host__ __device__ constexpr int slot_bytes_of(int steps) {
  return static_cast<int>(kStartBytes<Sum> + (kTableStepBytes + (kStreamQueries ? kQueryStepBytes : 0)) * steps);
}

struct ScreenShape {
  int steps;         ///< of 16 columns, or 32 of bytes
  int steps_a_slot;  ///< of the ring in shared memory
  int slots;
  int splits;  ///< of the table's tiles
};

struct ScreenArguments {
  PackedTable table;
  ScreenQueries queries;
  std::int64_t begin;
  std::int64_t end;
  ScreenShape shape;
  Streams streams;
  float* scores;  ///< of screen_best and screen_all
  int parts;      ///< of screen_best, else 0
};

/// What a block works on: a tile of queries and a run of table tiles, at least one. Blocks that run at the same time
/// share the run.
struct ScreenItem {
  std::int64_t query_tile;
  std::int64_t begin;
  std::int64_t end;
  __device__ ScreenItem(const ScreenArguments& a, std::int64_t number) {
    query_tile = number % a.queries.tile_count;
    const std::int64_t split = number / a.queries.tile_count;
    const std::int64_t tiles = a.end - a.begin;
    begin = a.begin + tiles * split / a.shape.splits;
    end = a.begin + tiles * (split + 1) / a.shape.splits;
  }
};
__host__ __device__ inline std::int64_t items_of(const ScreenArguments& a) {
  return a.queries.tile_count * a.shape.splits;
}

/// Runs of table tiles: as many as fill the multiprocessors evenly, each long enough to pay for loading the queries.
inline int splits_for(const Engine& engine, std::int64_t query_tiles, std::int64_t tiles) {
  const std::int64_t blocks = engine.multiprocessors;
  const std::int64_t most = std::max<std::int64_t>(1, std::min<std::int64_t>(tiles, 16 * blocks));
  double best = 0;
  int chosen = 1;
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    const std::int64_t items = splits * query_tiles;
    const std::int64_t rounds = (items + blocks - 1) / blocks;
    const double run = static_cast<double>((tiles + splits - 1) / splits);
    const double share = static_cast<double>(tiles) * static_cast<double>(query_tiles) /
                         (static_cast<double>(rounds * blocks) * (run + 2));  // an item costs about two tiles to begin
    if (share > best * 1.005) {
      best = share;
      chosen = static_cast<int>(splits);
    }
    if (rounds > 16 && splits > 1) break;
  }
  return chosen;
}

/// The slots' width that leaves a tile's last slot not short, where a slot may have `widest` steps.
inline int steps_a_slot_for(int steps, int widest) {
  const int slots_a_tile = (steps + widest - 1) / widest;
  return (steps + slots_a_tile - 1) / slots_a_tile;
}

// Which of the warp's queries and of the tile's rows.
__device__ constexpr std::uint32_t place_of(int query, int row) {
  return static_cast<std::uint32_t>(query << 8 | row);
}
__device__ constexpr int query_in(std::uint32_t place) {
  return static_cast<int>(place >> 8);
}
__device__ constexpr int row_in(std::uint32_t place) {
  return static_cast<int>(place & 0xFF);
}
// Rows of the four scores of a quad, from the first: the matrix unit leaves pairs of neighbors, eight apart.
__device__ constexpr int row_of_score(int i) {
  return i / 2 * 8 + i % 2;
}

// Sums and scores. A score is not below the sum; a whole number is not below the threshold when it is not below what
// the threshold, rounded up, is (beyond int32 it is the last of its numbers: sums are below that).
__device__ __forceinline__ float larger(float a, float b) {
  return fmaxf(a, b);
}
__device__ __forceinline__ std::int32_t larger(std::int32_t a, std::int32_t b) {
  return max(a, b);
}
__device__ __forceinline__ float score_of_sum(float sum) {
  return sum;
}
__device__ __forceinline__ float score_of_sum(std::int32_t sum) {
  return __int2float_ru(sum);
}
template <class Sum>
__device__ __forceinline__ Sum least_sum(float threshold) {
  if constexpr (std::is_same_v<Sum, float>) {
    return threshold;
  } else {
    return __float2int_ru(threshold);
  }
}

// Where a warp leaves what passes. No atomics, because all lanes know how many there are, and nobody waits for a store.
struct Stream {
  Passed* passed;
  std::uint32_t capacity;
  std::uint32_t count = 0;

  // Two stores of 16 bytes, the layout of Passed.
  __device__ void add(unsigned hits, int lane, float4 scores, uint4 where) {
    const std::uint32_t place = count + __popc(hits & ((1U << lane) - 1));
    if ((hits >> lane & 1U) != 0 && place < capacity) {
      *reinterpret_cast<float4*>(passed + place) = scores;
      *(reinterpret_cast<uint4*>(passed + place) + 1) = where;
    }
    count += __popc(hits);
  }
};

/// What a lane has of the sums of 16 queries and kSums / 2 rows, [row / 8][query half][row % 2], and the largest of
/// each four of a query, [2 quad + half], and of each four fours of it, [2 group + half].
template <class Sum, int kSums>
struct Quads {
  static constexpr int kQuads = kSums / 8;
  static constexpr int kGroup = 4;
  static constexpr int kGroups = kQuads / kGroup;
  static_assert(kGroups * kGroup == kQuads);
  const Sum (&sums)[kSums];
  Sum largest[2 * kQuads];
  Sum groups[2 * kGroups];

  __device__ __forceinline__ explicit Quads(const Sum (&of)[kSums]) : sums(of) {
#pragma unroll
    for (int q = 0; q < 2 * kQuads; ++q) {
      const Sum* s = sums + 8 * (q / 2) + 2 * (q % 2);
      largest[q] = larger(larger(s[0], s[1]), larger(s[4], s[5]));
    }
#pragma unroll
    for (int g = 0; g < 2 * kGroups; ++g) {
      const Sum* of = largest + 2 * kGroup * (g / 2) + g % 2;
      groups[g] = larger(larger(of[0], of[2]), larger(of[4], of[6]));
    }
  }

  /// Whether one of them is not below its query's.
  [[nodiscard]] __device__ __forceinline__ bool passes(const Sum (&least)[2]) const {
    Sum most[2] = {groups[0], groups[1]};
#pragma unroll
    for (int g = 2; g < 2 * kGroups; ++g) most[g % 2] = larger(most[g % 2], groups[g]);
    return !(most[0] < least[0]) || !(most[1] < least[1]);
  }

  /// Hands over the fours that are not: `query`, `row`: the first of these among the warp's and the tile's.
  __device__ __forceinline__ void hand_over(const Sum (&least)[2], Stream& passed, int query, int row,
                                            std::int64_t tile, std::int64_t first_query) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    // Few of them as a rule, so that most groups are passed over at once.
    bool any[2 * kGroups];
#pragma unroll
    for (int g = 0; g < 2 * kGroups; ++g) any[g] = __any_sync(kWholeWarp, !(groups[g] < least[g % 2])) != 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        if (!any[2 * g + half]) continue;
        unsigned hits[kGroup];
#pragma unroll
        for (int i = 0; i < kGroup; ++i) {
          hits[i] = __ballot_sync(kWholeWarp, !(largest[2 * (kGroup * g + i) + half] < least[half]));
        }
#pragma unroll
        for (int i = 0; i < kGroup; ++i) {
          if (hits[i] == 0) continue;
          const int q = kGroup * g + i;
          const Sum* s = sums + 8 * q + 2 * half;
          passed.add(hits[i], lane, {score_of_sum(s[0]), score_of_sum(s[1]), score_of_sum(s[4]), score_of_sum(s[5])},
                     {place_of(query + lane / 4 + 8 * half, row + lane % 4 * 2 + 16 * q),
                      static_cast<std::uint32_t>(tile), static_cast<std::uint32_t>(first_query), 0});
        }
      }
    }
  }
};

/// Which of a lane's rows of a tile a query may have, bit 2 j + i the row 8 j + i after `first_row`. In a loop, because
/// instructions that are met this seldom would only push the others out of their cache; not out of line, because a
/// kernel that calls anything waits for each of its products.
__device__ __forceinline__ unsigned rows_had(const PackedTable& table, const Available& available, std::int64_t tile,
                                             int first_row, int rows) {
  unsigned mask = 0;
#pragma unroll 1
  for (int bit = 0; bit < rows; ++bit) {
    const std::int64_t number = packed_number(table, tile * kTableTile + first_row + bit / 2 * 8 + bit % 2);
    if (number < table.chosen.count && available.any(table.chosen, number)) mask |= 1U << bit;
  }
  return mask;
}

/// The same; as a rule it has all of them, or all but one, which is seen without asking for each.
template <int kRows>
__device__ __forceinline__ unsigned rows_of_lane(const PackedTable& table, const Eligible& eligible, std::int64_t query,
                                                 std::int64_t tile, int first_row) {
  const Available available(eligible, query);
  unsigned mask = 0xFFFFFFFFU;
  // In 32 bits, which are enough for a row of the table and much quicker.
  const auto leave_out = [&](std::int64_t number) {
    if (number < 0 || number >= table.chosen.count) return;
    const auto tiles = static_cast<std::uint32_t>(table.tile_count);
    const std::uint32_t row = static_cast<std::uint32_t>(number) / tiles;
    if (static_cast<std::uint32_t>(number) - row * tiles != static_cast<std::uint32_t>(tile)) return;
    const int place = static_cast<int>(row) - first_row;
    if (place >= 0 && place / 8 < kRows / 2 && place % 8 < 2) mask &= ~(1U << (place / 8 * 2 + place % 8));
  };
  const bool somewhere = available.own >= 0 || available.excluded >= 0;
  const bool numbered = table.chosen.rows == nullptr;  // by their rows
  if (packed_number(table, tile * kTableTile + kTableTile - 1) >= table.chosen.count || (somewhere && !numbered)) {
    return rows_had(table, available, tile, first_row, kRows);
  }
  if (somewhere) {
    leave_out(available.own);
    leave_out(available.excluded);
  }
  return mask;
}

/// What a sum is where the query may not have the row: no sum of products, and no score.
template <class Sum>
inline constexpr Sum kNoSum = std::is_same_v<Sum, float> ? static_cast<Sum>(-HUGE_VALF)
                                                         : std::numeric_limits<Sum>::min();
__device__ __forceinline__ float score_or_none(float sum) {
  return sum;
}
__device__ __forceinline__ float score_or_none(std::int32_t sum) {
  return sum == kNoSum<std::int32_t> ? -HUGE_VALF : score_of_sum(sum);
}

/// The best of a lane's rows of one query, part by part. What is not finite becomes NaN when the row's number is
/// written into it, and fmaxf passes over NaN: for a sample that will do. Two instructions a sum.
template <int kHalf, class Sum, int kSums>
__device__ __forceinline__ void write_best(const Sum (&sums)[kSums], int parts, unsigned first_row, float* out) {
  const int span = 16 / parts;  // a power of two
  float best = -HUGE_VALF;
#pragma unroll
  for (int j = 0; j < kSums / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      constexpr unsigned kRowBits = kTableTile - 1;
      const unsigned score = __float_as_uint(score_or_none(sums[4 * j + 2 * kHalf + i]));
      best = fmaxf(best, __uint_as_float((score & ~kRowBits) | static_cast<unsigned>(8 * j + i)));
    }
    if (((j + 1) & (span - 1)) == 0) {
      *out++ = best > -HUGE_VALF ? __uint_as_float(__float_as_uint(best) | first_row) : best;
      best = -HUGE_VALF;
    }
  }
}

/// Writes the best scores of a tile, or, where a.parts is 0, every score. `first_query`: the first of the 16; `row`:
/// the first of the tile's. Sums of rows that a query may not have are overwritten.
template <int kHalf, class Sum, int kSums>
__device__ __forceinline__ void write_half(const ScreenArguments& a, Sum (&sums)[kSums], std::int64_t first_query,
                                           std::int64_t tile, int row) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t query = first_query + lane / 4 + 8 * kHalf;
  if (query >= a.queries.rows) return;
  const std::int64_t place = query * (a.end - a.begin) + tile - a.begin;
  const int first_row = row + lane % 4 * 2;
  const unsigned mask = rows_of_lane<kSums / 2>(a.table, a.queries.eligible, query, tile, first_row);
  if (mask != 0xFFFFFFFFU) {
#pragma unroll
    for (int bit = 0; bit < kSums / 2; ++bit) {
      Sum& sum = sums[4 * (bit / 2) + 2 * kHalf + bit % 2];
      sum = (mask >> bit & 1U) != 0 ? sum : kNoSum<Sum>;
    }
  }
  if (a.parts > 0) {
    write_best<kHalf>(sums, a.parts, static_cast<unsigned>(first_row),
                      a.scores + place * bests_a_tile(a.parts) + lane % 4 * a.parts + row * a.parts / kTableTile);
    return;
  }
  float* out = a.scores + place * kTableTile + first_row;
#pragma unroll
  for (int j = 0; j < kSums / 4; ++j) {
    *reinterpret_cast<float2*>(out + 8 * j) = {score_or_none(sums[4 * j + 2 * kHalf]),
                                               score_or_none(sums[4 * j + 2 * kHalf + 1])};
  }
}
template <class Sum, int kSums>
__device__ __forceinline__ void write_scores(const ScreenArguments& a, Sum (&sums)[kSums], std::int64_t first_query,
                                             std::int64_t tile, int row) {
  write_half<0>(a, sums, first_query, tile, row);
  write_half<1>(a, sums, first_query, tile, row);
}

/// The sums before the first product: of eight rows after each other, `starts` being those of the first.
template <int kSums>
__device__ __forceinline__ void take_starts(const std::int32_t* starts, std::int32_t (&sums)[kSums]) {
  const int2* mine = reinterpret_cast<const int2*>(starts) + threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < kSums / 4; ++j) {
    const int2 start = mine[4 * j];
    sums[4 * j] = sums[4 * j + 2] = start.x;
    sums[4 * j + 1] = sums[4 * j + 3] = start.y;
  }
}

/// Starts one of the screens, which names the shape of its blocks and its kernels.
template <class Screen, class Sum, bool kStreamQueries, bool kAll>
unsigned launch_screen(const Engine& engine, const ScreenArguments& a) {
  const auto kernel = Screen::template kernel<Sum, kStreamQueries, kAll>(a.shape);
  const std::size_t bytes = Screen::template shared_bytes<Sum, kStreamQueries>(a.shape);
  allow_shared_memory(engine, kernel, bytes);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(items_of(a), engine.multiprocessors));
  kernel<<<blocks, Screen::kThreads, bytes, engine.stream>>>(a);
  check_launch("screen");
  return blocks * Screen::kWarps;
}
template <class Screen, class Sum>
unsigned run_screen(const Engine& engine, ScreenArguments& a) {
  bool streams = false;
  a.shape = Screen::template shape_of<Sum>(engine, a, streams);
  if (a.scores != nullptr) {
    return streams ? launch_screen<Screen, Sum, true, true>(engine, a)
                   : launch_screen<Screen, Sum, false, true>(engine, a);
  }
  return streams ? launch_screen<Screen, Sum, true, false>(engine, a)
                 : launch_screen<Screen, Sum, false, false>(engine, a);
}
template <class Screen>
unsigned run_screen(const Engine& engine, ScreenArguments& a) {
  return a.table.bytes ? run_screen<Screen, std::int32_t>(engine, a) : run_screen<Screen, float>(engine, a);
}

// Warps of a block that leave streams.
inline constexpr int kHopperWarps = 16;
inline constexpr int kPortableWarps = 8;

/// Screens tiles a.begin to a.end, or writes all scores where a.scores is given. a.shape is theirs to choose. They
/// return how many streams have a count.
unsigned screen_on_hopper(const Engine& engine, ScreenArguments& a);
unsigned screen_portably(const Engine& engine, ScreenArguments& a);

}  // namespace vicinal::cuda
