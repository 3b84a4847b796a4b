// The float16 screen of k-means on Hopper: as screen.cu, one persistent block a multiprocessor, one warp that feeds,
// four warpgroups that multiply 64 rows each with tiles of 128 centers; but what a warpgroup does with its sums is to
// keep the best and second best score of each row in registers, with the center's number in the last bits of the best.
// Up to kMostSteps steps the warpgroups multiply in turns (base/turns.cuh).
// Rows stay in shared memory while all centers pass; the next 256 rows arrive meanwhile where there is room for both,
// and where there is not even room for one, rows pass beside the centers. Cost: 2 n k K flops on the matrix unit.
//
// Why the label is float64's (contract clauses 3 and 12). Notation of formulas/nearest/half_screen.hpp: X and C_k the
// row and a center, centered and scaled by s, T_k = X.C_k - |C_k|^2 / 2, so that |X - C_k|^2 = |X|^2 - 2 T_k. Form P
// holds for any two rows: |X.C_k - x~.c~_k| <= |X| rho_k + rho_x |c~_k|, and the norm column carries H_k = |C_k|^2 / 2
// of the exact center (g = H_k (1 - beta (1 + 2^-8)), no rho), so that by the proof there the score P_k that the matrix
// unit makes is T_k - 4 beta at least. From above, P_b <= T_b + D_b with
//   D_b = (41/20) (A_1 + A_2 + A_3) + ((41/20) beta + 2^-19) H_b + 1,
// A_i the products of the three allowances, each factor taken (1 + 1/100) times as large and 2^-13 more: twice, because
// they are in the score, and because the rounding of rows may have gone the other way; beta H for the sum, and beta H +
// 2^-20 H + 2^-10 for what g and its two float16 fall short of H. Replacing the seven last bits of a score by a number
// moves it by 2^-16 of itself at most, to P'. So center b is the label, whatever the ids, when for the second best
//   P'_2 + 2^-16 |P'_2| + 4 beta + m < P'_b - 2^-16 |P'_b| - D_b,
// m = (d + 8) 2^-20 for the roundings of two keys, (d + 8) 2^-51 of |X - C|^2 <= 2^30 each. What is evaluated in
// float32 takes 2^-20 of the scores for its own roundings, and the inequality is kept as a number that P'_2 must stay
// below: x + c |x| < y holds where x < y - 2 c |y|. Rows that stay open are multiplied a second time, alone, and of the
// centers only those are kept whose scores do not stay below that number: by the same inequality no other center can be
// the label, so that keys of these few decide. Centers that may not win (none, or equal to an earlier one)
// are rows of zeros with n1 = 65504: their score, -2^29, is below all others, which are above -2^28 - 2^27. A center
// that is too far away for float16 leaves every row open.
//
// Where nearly all rows are expected to keep their labels, the best score is not looked for: a row's own center a, that
// of its label, says what the others have to reach. S is the sum of the products of x~ and c~_a in float32, in chains
// of at most K steps, K the columns, so that |S - x~.c~_a| <= K 2^-24 |x~| |c~_a|, and by form P
//   T_a >= L_a = S - K 2^-24 |x~| |c~_a| - |X| rho_a - rho_x |c~_a| - H_a.
// As P_k >= T_k - 4 beta, center k is not the label where P_k + 4 beta + m < L_a. The others, seldom any, are the row's
// rivals, as far as no rival's own score leaves them out by the inequality before; they and a decide by their keys, and
// a row without rivals keeps its label. A score is looked at by one maximum instead of the four instructions that the
// best two take, and no row is multiplied twice. An own center that may not win has H_a = infinity, and its rows
// are compared with all centers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cuda/base/hopper.cuh"
#include "cuda/base/ring.cuh"
#include "cuda/base/shared_memory.hpp"
#include "cuda/base/turns.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/kmeans/cluster.hpp"
#include "cuda/kmeans/list.cuh"
#include "cuda/nearest/screen/screen.hpp"
#include "cuda/nearest/screen/stream.cuh"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda::kmeans {
namespace {

/// What a pass of the kernel looks for.
enum class Pass : std::uint8_t {
  label,    ///< the best center of each row
  narrow,   ///< candidates of the open rows
  confirm,  ///< centers that may be nearer to a row than its own
};

constexpr int kGroups = 4;
constexpr int kConsumers = kGroups * 128;
constexpr int kHalfThreads = kConsumers + 128;
constexpr int kMaxSlots = 16;
constexpr int kRowStepBytes = kQueryTile * kStep * 2;
constexpr int kCentreStepBytes = kTableTile * kStep * 2;
constexpr std::size_t kBarrierBytes = 512;
using Lists = WarpLists<16>;
constexpr std::size_t kListBytes = sizeof(Lists::Store) * 2 * kConsumers / 32;

struct Barriers {
  Barrier full[kMaxSlots];
  Barrier empty[kMaxSlots];
  Barrier rows_full[2];
  Barrier rows_empty[2];
};
static_assert(sizeof(Barriers) <= kBarrierBytes);

constexpr unsigned kNumberBits = kTableTile - 1;  // of a score: they hold the center's number in its tile

struct Shape {
  unsigned mask;  ///< ~kNumberBits, where the compiler does not see it
  int steps;
  int steps_a_slot;
  int slots;
  int resident;  ///< tiles of rows in shared memory: 2, 1, or 0: they are streamed
  int tiles;     ///< of centers
};

__host__ __device__ constexpr std::size_t slot_bytes_of(const Shape& s) {
  return static_cast<std::size_t>(kCentreStepBytes + (s.resident == 0 ? kRowStepBytes : 0)) * s.steps_a_slot;
}
__host__ __device__ constexpr std::size_t rows_bytes_of(const Shape& s) {
  return static_cast<std::size_t>(kRowStepBytes) * s.steps;
}

/// What a pass multiplies: all rows with all centers, or the open rows; these are few, so that blocks share the
/// centers.
struct Work {
  const __half* tiles;
  std::int64_t items;
  int parts;  ///< of the centers, an item each
};
template <Pass kPass>
__device__ Work work_of(const ClusterView& v, int tiles_of_centres) {
  if (kPass != Pass::narrow) return {v.half.tiles, v.half.tile_count, 1};
  const std::int64_t tiles = (narrowed_rows(v) + kQueryTile - 1) / kQueryTile;
  const std::int64_t parts = tiles > 0 ? gridDim.x / tiles : 1;
  const int most = parts < tiles_of_centres ? static_cast<int>(parts) : tiles_of_centres;
  return {v.half.open_tiles, tiles * max(most, 1), max(most, 1)};
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

struct Item {
  std::int64_t rows;
  int begin;  ///< tiles of centers
  int end;
};
__device__ Item item_of(const Work& work, std::int64_t number, int tiles_of_centres) {
  const auto part = static_cast<int>(number % work.parts);
  return {number / work.parts, tiles_of_centres * part / work.parts, tiles_of_centres * (part + 1) / work.parts};
}

__device__ void feed(const ClusterView& v, const Work& work, const Shape& s, Barriers* barriers, char* rows,
                     char* ring) {
  const std::size_t slot_bytes = slot_bytes_of(s);
  const std::size_t rows_bytes = rows_bytes_of(s);
  const auto* row_tiles = reinterpret_cast<const char*>(work.tiles);
  const auto* centre_tiles = reinterpret_cast<const char*>(v.half.centre_tiles);
  Cursor cursor;
  Cursor place;
  for (std::int64_t number = blockIdx.x; number < work.items; number += gridDim.x) {
    const Item item = item_of(work, number, s.tiles);
    const char* from = row_tiles + item.rows * rows_bytes;
    if (s.resident > 0) {
      barrier_wait(&barriers->rows_empty[place.slot], place.round ^ 1);
      hopper::barrier_arrive_expect(&barriers->rows_full[place.slot], static_cast<std::uint32_t>(rows_bytes));
      hopper::bulk_copy(rows + place.slot * rows_bytes, from, static_cast<std::uint32_t>(rows_bytes),
                        &barriers->rows_full[place.slot]);
      place.advance(s.resident);
    }
    for (int tile = item.begin; tile < item.end; ++tile) {
      const char* centres = centre_tiles + static_cast<std::size_t>(tile) * kCentreStepBytes * s.steps;
      for (int step = 0; step < s.steps; step += s.steps_a_slot) {
        const int steps = min(s.steps_a_slot, s.steps - step);
        Barrier* full = &barriers->full[cursor.slot];
        char* slot = ring + cursor.slot * slot_bytes;
        const auto bytes = static_cast<std::uint32_t>(steps * kCentreStepBytes);
        const auto row_bytes = static_cast<std::uint32_t>(steps * kRowStepBytes);
        barrier_wait(&barriers->empty[cursor.slot], cursor.round ^ 1);
        hopper::barrier_arrive_expect(full, bytes + (s.resident == 0 ? row_bytes : 0));
        hopper::bulk_copy(slot, centres + static_cast<std::size_t>(step) * kCentreStepBytes, bytes, full);
        if (s.resident == 0) {
          hopper::bulk_copy(slot + static_cast<std::size_t>(kCentreStepBytes) * s.steps_a_slot,
                            from + static_cast<std::size_t>(step) * kRowStepBytes, row_bytes, full);
        }
        cursor.advance(s.slots);
      }
    }
  }
}

// (bits & mask) | low in one instruction, which takes one constant only: the mask must be in a register.
__device__ __forceinline__ float put_bits(float x, unsigned mask, unsigned low) {
  unsigned bits;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(bits) : "r"(__float_as_uint(x)), "r"(mask), "r"(low));
  return __uint_as_float(bits);
}

// Of one row, as far as a lane has seen its centers.
struct Nearest {
  float best = -HUGE_VALF;
  float second = -HUGE_VALF;
  int tile = 0;

  /// Takes a lane's scores of so many groups of eight centers; `half`: which of its two rows.
  template <int half, int groups>
  __device__ __forceinline__ void take(const float (&sums)[64], unsigned mask, int number) {
    const float before = best;
#pragma unroll
    for (int j = 0; j < groups; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float score = put_bits(sums[4 * j + 2 * half + i], mask, static_cast<unsigned>(8 * j + i));
        second = fmaxf(second, fminf(score, best));
        best = fmaxf(best, score);
      }
    }
    if (best > before) tile = number;
  }
  [[nodiscard]] __device__ __forceinline__ int centre() const {
    return tile * kTableTile + static_cast<int>(__float_as_uint(best) & kNumberBits);
  }
};

// What is known of a row before its centers pass: two of four lanes have one each.
struct Row {
  std::int64_t number;
  bool counts;
  bool usable = false;
  std::int32_t label = -1;
  HalfFacts facts{};

  __device__ Row(const ClusterView& v, std::int64_t first_row)
      : number(first_row + threadIdx.x % 32 / 4 + 8 * (threadIdx.x % 4)),
        counts(threadIdx.x % 4 < 2 && number < v.rows.n) {
    if (!counts) return;
    usable = v.outcome->tally.unusable == 0;
    label = v.labels[number];
    facts = v.half.row_facts[number];
  }
};

// Of one lane's two rows: the best two centers, and what is known of one of the rows.
struct Labels {
  Nearest nearest[2];
  Row row;

  __device__ Labels(const ClusterView& v, std::int64_t first_row) : row(v, first_row) {}
  __device__ __forceinline__ void take(const ClusterView& v, const float (&sums)[64], unsigned mask, int tile) {
    // A half or a quarter of the last tile, where all centers are in it: see takes_half.
    const std::int64_t left = v.k - std::int64_t{tile} * kTableTile;
    if (left > kTableTile / 2) {
      nearest[0].take<0, 16>(sums, mask, tile);
      nearest[1].take<1, 16>(sums, mask, tile);
    } else if (left > kTableTile / 4) {
      nearest[0].take<0, 8>(sums, mask, tile);
      nearest[1].take<1, 8>(sums, mask, tile);
    } else {
      nearest[0].take<0, 4>(sums, mask, tile);
      nearest[1].take<1, 4>(sums, mask, tile);
    }
  }
};

__device__ void decide(const ClusterView& v, const Nearest (&nearest)[2], const Row& row, Lists& lists) {
  const int lane = threadIdx.x % 32;
  float best[2];
  float second[2];
  int centre[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    best[half] = nearest[half].best;
    second[half] = nearest[half].second;
    centre[half] = nearest[half].centre() + lane % 4 * 2;
#pragma unroll
    for (int other = 1; other < 4; other *= 2) {
      const float their_best = __shfl_xor_sync(kWholeWarp, best[half], other);
      const float their_second = __shfl_xor_sync(kWholeWarp, second[half], other);
      const int their_centre = __shfl_xor_sync(kWholeWarp, centre[half], other);
      second[half] = fmaxf(fmaxf(second[half], their_second), fminf(best[half], their_best));
      if (their_best > best[half]) {
        best[half] = their_best;
        centre[half] = their_centre;
      }
    }
  }
  const bool upper = lane % 4 != 0;
  int label = 0;
  float reach = -HUGE_VALF;
  if (row.usable) {
    label = upper ? centre[1] : centre[0];
    reach = half_reach(v.half, upper ? best[1] : best[0], row.facts, v.half.centre_facts[label]);
  }
  const bool decided = (upper ? second[1] : second[0]) < reach;
  lists.take(row.number, row.counts, decided, label, row.label, reach);
}

// Of one lane's two open rows: the centers whose scores reach what the rows' best left possible.
struct Candidates {
  std::int64_t first = 0;
  float reach[2] = {HUGE_VALF, HUGE_VALF};

  __device__ Candidates(const ClusterView& v, std::int64_t first_row) : first(first_row + threadIdx.x % 32 / 4) {
    const std::int64_t open = narrowed_rows(v);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (first + 8 * half < open) reach[half] = v.half.reaches[first + 8 * half];
    }
  }
  __device__ __forceinline__ void take(const ClusterView& v, const float (&sums)[64], int tile) const {
    const int centre = tile * kTableTile + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const float* const four = sums + 4 * j;
      if (fmaxf(four[0], four[1]) < reach[0] && fmaxf(four[2], four[3]) < reach[1]) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (!(four[i] < reach[i / 2])) add(v, first + i / 2 * 8, centre + 8 * j + i % 2);
      }
    }
  }

 private:
  __device__ __forceinline__ static void add(const ClusterView& v, std::int64_t row, int centre) {
    const int place = atomicAdd(&v.half.candidate_counts[row], 1);
    if (place < kMaxCandidates) v.half.candidates[row * kMaxCandidates + place] = centre;
  }
};

// The eight float16 at an address, as float32.
__device__ __forceinline__ void widen_eight(const uint4& bits, float (&values)[8]) {
  const auto* const pairs = reinterpret_cast<const __half2*>(&bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(pairs[i]);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

// Rivals of a warp's rows: centers other than a row's own whose scores reach what the best known one leaves possible.
struct RivalStore {
  static constexpr int kMost = 14;  // of a row; with more it meets all centers
  static_assert(1 + kMost <= kMaxCandidates);
  struct OfRow {
    int count;
    std::uint16_t centres[kMost];
  };
  OfRow rows[16];
};
static_assert(sizeof(RivalStore) <= 2 * sizeof(Lists::Store));

/// The label of the warp's row that a lane asks for, one of the first sixteen.
__device__ __forceinline__ std::int32_t label_of_lane(const ClusterView& v, std::int64_t first_row) {
  const std::int64_t row = first_row + threadIdx.x % 32;
  return threadIdx.x % 32 < 16 && row < v.rows.n ? v.labels[row] : -1;
}

// Of one lane's two rows: what other centers' scores must reach, and the row's own center.
struct Rivals {
  float reach[2];
  std::int32_t own[2];

  /// `label`: of the lane's row, as label_of_lane has it; `rows`: the warp's first of a packed tile.
  __device__ __forceinline__ Rivals(const ClusterView& v, std::int64_t first_row, std::int32_t label,
                                    const __half* rows, RivalStore& store) {
    // Two lanes a row, which take its chunks of eight columns in turns: lanes that read together meet all banks.
    const HalfView& h = v.half;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int last = h.columns / 8 - 1;  // its spare columns do not count
    const std::int32_t theirs = __shfl_sync(kWholeWarp, label, lane % 16);
    const __half* const centre = h.centre_rows + std::int64_t{max(theirs, 0)} * h.columns;
    const std::int64_t own_row = min(first_row + lane % 16, v.rows.n - 1);
    const HalfFacts row_facts = h.row_facts[own_row];
    const HalfFacts centre_facts = h.centre_facts[max(theirs, 0)];
    float mine = 0;
    constexpr int kAhead = 5;  // chunks that a lane waits for at once
#pragma unroll 1
    for (int begin = lane / 16; begin <= last; begin += 2 * kAhead) {
      uint4 chunks[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        chunks[i] = uint4{};
        if (begin + 2 * i <= last) chunks[i] = *reinterpret_cast<const uint4*>(centre + (begin + 2 * i) * 8);
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int chunk = begin + 2 * i;
        if (chunk > last) break;
        float x[8];
        float y[8];
        widen_eight(*reinterpret_cast<const uint4*>(rows + packed_offset(kQueryTile, lane % 16, chunk * 8)), x);
        widen_eight(chunks[i], y);
        constexpr int kOwn = 8 - static_cast<int>(core::kSpareColumns);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          if (j < kOwn || chunk < last) mine = __fmaf_rn(x[j], y[j], mine);
        }
      }
    }
    mine += __shfl_xor_sync(kWholeWarp, mine, 16);
    const std::int64_t row = first_row + lane;
    float least = HUGE_VALF;
    if (lane < 16) {
      bool none = false;  // without a limit of its own a row is not compared: it meets all centers
      if (row < v.rows.n) {
        const bool asks = label >= 0 && v.outcome->tally.unusable == 0;
        if (asks) least = own_reach(h, mine, row_facts, centre_facts);
        none = !asks || !(least > -HUGE_VALF);
        if (none) least = HUGE_VALF;
      }
      store.rows[lane].count = none ? RivalStore::kMost + 1 : 0;
    }
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      reach[half] = __shfl_sync(kWholeWarp, least, lane / 4 + 8 * half);
      own[half] = __shfl_sync(kWholeWarp, label, lane / 4 + 8 * half);
    }
  }

  __device__ __forceinline__ void take(const ClusterView& v, std::int64_t first_row, const float (&sums)[64], int tile,
                                       RivalStore& store) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int first = tile * kTableTile + lane % 4 * 2;
    unsigned mine[2];  // which of a row's 32 scores is that of its own center
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int place = own[half] - first;
      mine[half] = static_cast<unsigned>(place) < kTableTile && place % 8 < 2 ? 1U << (place / 8 * 2 + place % 8) : 0;
    }
    const Quads<float, 64> quads(sums);
    if (!__any_sync(kWholeWarp, (mine[0] | mine[1]) != 0)) {
      if (!__any_sync(kWholeWarp, quads.passes(reach))) return;
    } else {
      // As its score passes for certain, the others are looked at without it.
      float most[2] = {-HUGE_VALF, -HUGE_VALF};
#pragma unroll
      for (int i = 0; i < 32; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if ((mine[half] >> i & 1U) == 0) most[half] = fmaxf(most[half], sums[4 * (i / 2) + 2 * half + i % 2]);
        }
      }
      if (!__any_sync(kWholeWarp, !(most[0] < reach[0]) || !(most[1] < reach[1]))) return;
    }
    unsigned found[2] = {};  // which of a row's 32 scores are those of rivals
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int q = 0; q < 8; ++q) {
        if (quads.largest[2 * q + half] < reach[half]) continue;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (!(sums[8 * q + 2 * half + i / 2 * 4 + i % 2] < reach[half])) found[half] |= 1U << (4 * q + i);
        }
      }
      found[half] &= ~mine[half];
    }
    if (!__any_sync(kWholeWarp, (found[0] | found[1]) != 0)) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!__any_sync(kWholeWarp, found[half] != 0)) continue;
      const int own_row = lane / 4 + 8 * half;
      float best = -HUGE_VALF;
      int centre = 0;
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const float score = sums[4 * (i / 2) + 2 * half + i % 2];
        if ((found[half] >> i & 1U) != 0 && score > best) {
          best = score;
          centre = first + row_of_score(i);
        }
      }
      // The best of them says what the others have to reach.
      if (best > -HUGE_VALF) {
        reach[half] = fmaxf(
            reach[half], half_reach(v.half, best, v.half.row_facts[first_row + own_row], v.half.centre_facts[centre]));
      }
      __syncwarp();
#pragma unroll
      for (int other = 1; other < 4; other *= 2) {
        reach[half] = fmaxf(reach[half], __shfl_xor_sync(kWholeWarp, reach[half], other));
      }
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        if ((found[half] >> i & 1U) == 0 || sums[4 * (i / 2) + 2 * half + i % 2] < reach[half]) continue;
        RivalStore::OfRow& row = store.rows[own_row];
        const int place = atomicAdd(&row.count, 1);
        if (place < RivalStore::kMost) row.centres[place] = static_cast<std::uint16_t>(first + row_of_score(i));
      }
    }
  }

  /// Rows that have rivals are open; their candidates are these and their own center.
  __device__ void hand_over(const ClusterView& v, std::int64_t first_row, std::int32_t label,
                            const RivalStore& store) const {
    __syncwarp();
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int count = lane < 16 ? store.rows[lane].count : 0;
    const unsigned open = __ballot_sync(kWholeWarp, count > 0);
    if (open != 0) {
      unsigned long long first = 0;
      if (lane == 0) first = atomicAdd(&v.outcome->tally.open, static_cast<unsigned long long>(__popc(open)));
      first = __shfl_sync(kWholeWarp, first, 0);
      const auto place = static_cast<std::int64_t>(first) + __popc(open & ((1U << lane) - 1));
      if (count > 0) v.open[place] = static_cast<std::uint32_t>(first_row + lane);
      if (count > 0 && place < v.half.open_room) {
        std::int32_t* const candidates = v.half.candidates + place * kMaxCandidates;
        const bool all = count > RivalStore::kMost;
        v.half.candidate_counts[place] = all ? kMaxCandidates + 1 : count + 1;
        candidates[0] = label;
        for (int i = 0; i < count && !all; ++i) candidates[1 + i] = store.rows[lane].centres[i];
      }
    }
    __syncwarp();
  }
};

// kSteps: of a tile, which is one slot then, and the warpgroups multiply in turns; 0: any number.
template <Pass kPass, int kSteps>
__device__ void consume(const ClusterView& v, const Work& work, const Shape& s, Barriers* barriers, const char* rows,
                        const char* ring, Lists::Store* stores) {
  using Found =
      std::conditional_t<kPass == Pass::label, Labels, std::conditional_t<kPass == Pass::narrow, Candidates, Rivals>>;
  const int warp = __shfl_sync(kWholeWarp, static_cast<int>(threadIdx.x / 32), 0);  // known to be the same in all lanes
  const int group = warp / 4;
  const int lane = threadIdx.x % 32;
  const std::size_t slot_bytes = slot_bytes_of(s);
  const std::size_t rows_bytes = rows_bytes_of(s);
  Lists lists(v, stores + 2 * warp);
  [[maybe_unused]] auto& rivals = *reinterpret_cast<RivalStore*>(stores + 2 * warp);
  [[maybe_unused]] std::int32_t next_label = 0;  // asked for while the rows before are multiplied
  if constexpr (kPass == Pass::confirm) {
    next_label = label_of_lane(v, std::int64_t{blockIdx.x} * kQueryTile + warp * 16);
  }
  Cursor cursor;
  Cursor place;
  [[maybe_unused]] const std::conditional_t<(kSteps > 0), Turns<kGroups>, int> turns(group);
  for (std::int64_t number = blockIdx.x; number < work.items; number += gridDim.x) {
    const Item item = item_of(work, number, s.tiles);
    const std::int64_t first_row = item.rows * kQueryTile + warp * 16;
    [[maybe_unused]] const std::int32_t label = next_label;
    if constexpr (kPass == Pass::confirm) next_label = label_of_lane(v, first_row + gridDim.x * kQueryTile);
    const auto begin = [&] {
      const auto wait = [&] {
        if (s.resident > 0) barrier_wait(&barriers->rows_full[place.slot], place.round);
      };
      if constexpr (kPass == Pass::confirm) {
        wait();
        const char* const tile = s.resident > 0 ? rows + place.slot * rows_bytes
                                                : reinterpret_cast<const char*>(work.tiles) + item.rows * rows_bytes;
        return Rivals(v, first_row, label,
                      reinterpret_cast<const __half*>(tile) + packed_offset(kQueryTile, warp * 16, 0), rivals);
      } else {
        const Found first(v, first_row);
        wait();
        return first;
      }
    };
    Found found = begin();
#pragma unroll 1
    for (int tile = item.begin; tile < item.end; ++tile) {
      float sums[64];
      hopper::products_fence(sums);
      if constexpr (kSteps > 0) {
        std::uint64_t those = hopper::matrix(rows + place.slot * rows_bytes + group * 64 * 16, kQueryTile * 16, 128);
        std::uint64_t centres = hopper::matrix(ring + cursor.slot * slot_bytes, kTableTile * 16, 128);
        barrier_wait(&barriers->full[cursor.slot], cursor.round);
        turns.wait();
        hopper::products_begin();
        hopper::multiply_group<kSteps>(sums, those, centres, kRowStepBytes >> 4, kCentreStepBytes >> 4, 0);
        hopper::products_commit();
        turns.pass();
        cursor.advance(s.slots);
      }
#pragma unroll 1
      for (int step = 0; kSteps == 0 && step < s.steps; step += s.steps_a_slot) {
        const int steps = min(s.steps_a_slot, s.steps - step);
        const char* slot = ring + cursor.slot * slot_bytes;
        const char* own = s.resident == 0
                              ? slot + static_cast<std::size_t>(kCentreStepBytes) * s.steps_a_slot
                              : rows + place.slot * rows_bytes + static_cast<std::size_t>(step) * kRowStepBytes;
        std::uint64_t those = hopper::matrix(own + group * 64 * 16, kQueryTile * 16, 128);
        std::uint64_t centres = hopper::matrix(slot, kTableTile * 16, 128);
        barrier_wait(&barriers->full[cursor.slot], cursor.round);
        hopper::multiply_steps(sums, those, centres, kRowStepBytes >> 4, kCentreStepBytes >> 4, steps, step == 0);
        hopper::products_commit();
        if (step > 0) {
          hopper::products_wait<1>();
          if (lane == 0) barrier_arrive(&barriers->empty[cursor.before(s.slots)]);
        }
        cursor.advance(s.slots);
      }
      hopper::products_wait<0>();
      hopper::products_fence(sums);
      if (lane == 0) {
        barrier_arrive(&barriers->empty[cursor.before(s.slots)]);
        if (s.resident > 0 && tile + 1 == item.end) barrier_arrive(&barriers->rows_empty[place.slot]);
      }
      if constexpr (kPass == Pass::label) {
        found.take(v, sums, s.mask, tile);
      } else if constexpr (kPass == Pass::narrow) {
        found.take(v, sums, tile);
      } else {
        found.take(v, first_row, sums, tile, rivals);
      }
    }
    if (s.resident > 0) place.advance(s.resident);
    if constexpr (kPass == Pass::label) decide(v, found.nearest, found.row, lists);
    if constexpr (kPass == Pass::confirm) found.hand_over(v, first_row, label, rivals);
  }
  if constexpr (kSteps > 0) turns.end();
  if constexpr (kPass == Pass::label) lists.flush();
}

#endif

template <Pass kPass, int kSteps>
__global__ void __launch_bounds__(kHalfThreads, 1)
    half_kernel(const __grid_constant__ ClusterView v, const __grid_constant__ Shape s) {
  // For other devices there is nothing to compile; they take screen.cu.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  const Work work = work_of<kPass>(v, s.tiles);
  auto* barriers = reinterpret_cast<Barriers*>(memory);
  auto* stores = reinterpret_cast<Lists::Store*>(memory + kBarrierBytes);
  char* rows = memory + kBarrierBytes + kListBytes;
  char* ring = rows + rows_bytes_of(s) * s.resident;
  if (threadIdx.x == 0) {
    for (int i = 0; i < s.slots; ++i) {
      barrier_init(&barriers->full[i], 1);
      barrier_init(&barriers->empty[i], kConsumers / 32);
    }
    for (int i = 0; i < 2; ++i) {
      barrier_init(&barriers->rows_full[i], 1);
      barrier_init(&barriers->rows_empty[i], kConsumers / 32);
    }
    hopper::barrier_init_fence();
  }
  __syncthreads();
  if (__shfl_sync(kWholeWarp, static_cast<int>(threadIdx.x / 128), 0) == kGroups) {
    hopper::give_registers<24>();  // of the 96 each has at launch: 4 x 112 + 24 <= 5 x 96
    if (threadIdx.x == kConsumers) feed(v, work, s, barriers, rows, ring);
  } else {
    hopper::take_registers<112>();
    consume<kPass, kSteps>(v, work, s, barriers, rows, ring, stores);
  }
#endif
}

Shape shape_of(const Engine& engine, const ClusterView& v) {
  Shape s{};
  s.mask = ~kNumberBits;
  s.steps = v.half.columns / kStep;
  s.tiles = static_cast<int>((v.k + kTableTile - 1) / kTableTile);
  const std::size_t room = engine.shared_memory - 1024 - kBarrierBytes - kListBytes;
  const auto slot_steps = [&](int steps) { return static_cast<std::size_t>(steps) * kCentreStepBytes; };
  // Two tiles of rows beside two of centers; else one beside three quarters of that; else none.
  if (2 * rows_bytes_of(s) + slot_steps(2 * s.steps) <= room) {
    s.resident = 2;
  } else if (rows_bytes_of(s) + slot_steps(s.steps + 4) <= room) {
    s.resident = 1;
  }
  const std::size_t left = room - rows_bytes_of(s) * s.resident;
  // A slot is a whole tile where the ring holds two of those: what a slot costs is then paid once a tile.
  const bool whole = s.resident > 0 && slot_steps(2 * s.steps) <= left;
  const int widest = whole ? s.steps : s.resident == 0 ? 3 : 4;
  const int slots_a_tile = (s.steps + widest - 1) / widest;
  s.steps_a_slot = (s.steps + slots_a_tile - 1) / slots_a_tile;
  s.slots = static_cast<int>(std::min<std::size_t>(left / slot_bytes_of(s), kMaxSlots));
  return s;
}

constexpr int kMostSteps = 9;  // of rows that are multiplied in turns
using HalfKernel = void (*)(ClusterView, Shape);
/// That of so many steps, from kSteps on.
template <Pass kPass, int kSteps>
HalfKernel kernel_in_turns(int steps) {
  if constexpr (kSteps > kMostSteps) {
    return half_kernel<kPass, 0>;
  } else {
    return steps == kSteps ? half_kernel<kPass, kSteps> : kernel_in_turns<kPass, kSteps + 1>(steps);
  }
}
template <Pass kPass>
HalfKernel kernel_of(const Shape& s) {
  if constexpr (kPass != Pass::narrow) {
    if (s.resident > 0 && s.steps_a_slot == s.steps && s.tiles > 1) return kernel_in_turns<kPass, 1>(s.steps);
  }
  return half_kernel<kPass, 0>;
}

template <Pass kPass>
void launch(const Engine& engine, const ClusterView& view) {
  const Shape s = shape_of(engine, view);
  const std::size_t bytes = kBarrierBytes + kListBytes + rows_bytes_of(s) * s.resident + slot_bytes_of(s) * s.slots;
  const HalfKernel kernel = kernel_of<kPass>(s);
  allow_shared_memory(engine, kernel, bytes);
  const std::int64_t tiles = kPass == Pass::narrow ? engine.multiprocessors : view.half.tile_count;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, engine.multiprocessors));
  kernel<<<blocks, kHalfThreads, bytes, engine.stream>>>(view, s);
  check_launch("screen rows in float16");
}

// Copies the packed open rows into tiles of their own, eight threads a row; rows of zeros fill the last one.
__global__ void __launch_bounds__(kHalfThreads) gather_kernel(const __grid_constant__ ClusterView v) {
  const HalfView& h = v.half;
  const std::int64_t open = narrowed_rows(v);
  const std::int64_t padded = (open + kQueryTile - 1) / kQueryTile * kQueryTile;
  const std::int64_t step = std::int64_t{gridDim.x} * (kHalfThreads / 8);
  for (std::int64_t to = (std::int64_t{blockIdx.x} * kHalfThreads + threadIdx.x) / 8; to < padded; to += step) {
    const std::int64_t from = to < open ? v.open[to] : 0;
    const __half* const from_tile = h.tiles + from / kQueryTile * kQueryTile * h.columns;
    __half* const to_tile = h.open_tiles + to / kQueryTile * kQueryTile * h.columns;
    for (int j = static_cast<int>(threadIdx.x) % 8 * 8; j < h.columns; j += 64) {
      uint4 chunk = {};
      if (to < open) {
        chunk = *reinterpret_cast<const uint4*>(from_tile +
                                                packed_offset(kQueryTile, static_cast<int>(from % kQueryTile), j));
      }
      *reinterpret_cast<uint4*>(to_tile + packed_offset(kQueryTile, static_cast<int>(to % kQueryTile), j)) = chunk;
    }
    if (threadIdx.x % 8 == 0) h.candidate_counts[to] = 0;
  }
}

}  // namespace

void screen_half(const Engine& engine, const ClusterView& view) {
  launch<Pass::label>(engine, view);
}

void confirm_half(const Engine& engine, const ClusterView& view) {
  launch<Pass::confirm>(engine, view);
}

void narrow_half(const Engine& engine, const ClusterView& view) {
  gather_kernel<<<static_cast<unsigned>(engine.multiprocessors * 3), kHalfThreads, 0, engine.stream>>>(view);
  check_launch("gather open rows");
  launch<Pass::narrow>(engine, view);
}

}  // namespace vicinal::cuda::kmeans
