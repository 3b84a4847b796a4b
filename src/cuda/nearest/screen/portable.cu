// The fused screen on every device since Turing, by mma.sync: one persistent block a multiprocessor, eight warps, each
// of which multiplies 64 of the block's 256 queries with 64 of a tile's 128 rows. That shape loads 4 kB from shared
// memory for 32 products of 16 x 8 x 16, so that shared memory can keep up. The table passes through a ring of slots,
// each of some steps of 16 columns: each warp copies its share of a later slot (cp.async; on Turing it waits for its
// copies) before it multiplies one. Barriers in shared memory count what has arrived and what is no longer read, so
// that warps may be two slots apart: one compares sums with thresholds while the other one of its scheduler multiplies.
// What a step multiplies is loaded into registers during the step before. Packed tiles are made of core matrices of 8
// rows of 16 bytes, 128 bytes together, which is what ldmatrix reads without a conflict of banks. The queries stay in
// shared memory where there is room for them, and else pass through the ring beside the table. Each sum takes its steps
// in the order of the columns, as the proof wants it. Everything that comes after the products is that of screen.cu.
// Contract clause 3. Cost: as there, at the rate of mma.sync.
#include <algorithm>

#include "cuda/base/mma.cuh"
#include "cuda/base/ring.cuh"
#include "cuda/nearest/screen/stream.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kPortableThreads = kPortableWarps * 32;
constexpr int kSlots = 4;         // of the ring
constexpr int kAhead = 2;         // slots that are filled before they are needed
constexpr int kWidestSlot = 6;    // steps
constexpr int kWarpQueries = 64;  // of a warp
constexpr int kWarpRows = 64;
constexpr int kQueryParts = kQueryTile / kWarpQueries;
static_assert(kQueryParts * (kTableTile / kWarpRows) == kPortableWarps);
constexpr std::size_t kBarrierBytes = 256;

struct Barriers {
  Barrier full[kSlots];
  Barrier empty[kSlots];
  Barrier queries_full;
  Barrier queries_empty;
};
static_assert(sizeof(Barriers) <= kBarrierBytes);

// A block's way over the slots of its items, as far as they were set going.
template <class Sum, bool kStreamQueries>
class Filling {
 public:
  __device__ explicit Filling(const ScreenArguments& a) : number_(blockIdx.x) { begin_item(a); }

  /// Sets the thread's share of the next slot going, if there is one, when all have read what the slot had before.
  __device__ __forceinline__ void fill(const ScreenArguments& a, Barriers* barriers, char* ring) {
    if (tiles_left_ == 0) return;
    const int steps = min(a.shape.steps_a_slot, a.shape.steps - step_);
    char* slot = ring + cursor_.slot * slot_bytes_of<Sum, kStreamQueries>(a.shape.steps_a_slot);
    barrier_wait(&barriers->empty[cursor_.slot], cursor_.round ^ 1);
    if constexpr (kStartBytes < Sum >> 0) {
      if (step_ == 0) {
        if (own_ < kStartBytes<Sum>) mma::copy(slot + own_, rows_ + own_);
        rows_ += kStartBytes<Sum>;
      }
      slot += kStartBytes<Sum>;
    }
#pragma unroll
    for (int s = 0; s < kWidestSlot; ++s) {
      if (s < steps) mma::copy(slot + own_ + s * kTableStepBytes, rows_ + own_ + s * kTableStepBytes);
    }
    rows_ += steps * kTableStepBytes;
    if constexpr (kStreamQueries) {
      slot += a.shape.steps_a_slot * kTableStepBytes;
      const char* const queries = queries_ + step_ * kQueryStepBytes;
#pragma unroll
      for (int s = 0; s < 2 * kWidestSlot; ++s) {
        const std::uint32_t at = own_ + s * kTogether;
        if (s < 2 * steps) mma::copy(slot + at, queries + at);
      }
    }
    mma::copies_arrive(&barriers->full[cursor_.slot]);
    cursor_.advance(kSlots);
    step_ += steps;
    if (step_ < a.shape.steps) return;
    step_ = 0;
    if (--tiles_left_ > 0) return;
    number_ += gridDim.x;
    begin_item(a);
  }

 private:
  __device__ void begin_item(const ScreenArguments& a) {
    if (number_ >= items_of(a)) return;
    const ScreenItem item(a, number_);
    tiles_left_ = static_cast<int>(item.end - item.begin);
    rows_ = reinterpret_cast<const char*>(a.table.tiles) +
            item.begin * (kStartBytes<Sum> + static_cast<std::int64_t>(kTableStepBytes) * a.shape.steps);
    queries_ = reinterpret_cast<const char*>(a.queries.tiles) +
               item.query_tile * static_cast<std::int64_t>(kQueryStepBytes) * a.shape.steps;
  }

  static constexpr std::uint32_t kTogether = kPortableThreads * 16;  // bytes that all threads copy at a time
  static_assert(kTableStepBytes == kTogether && kQueryStepBytes == 2 * kTogether);

  const std::uint32_t own_ = threadIdx.x * 16;
  std::int64_t number_;
  const char* rows_ = nullptr;
  const char* queries_ = nullptr;
  int tiles_left_ = 0;
  int step_ = 0;
  Cursor cursor_;
};

// What a warp multiplies in one step: from the lane's places in shared memory.
struct Fragments {
  std::uint32_t x[kWarpQueries / 16][4];
  std::uint32_t y[kWarpRows / 16][4];

  __device__ __forceinline__ void load(const char* queries, const char* rows) {
#pragma unroll
    for (int i = 0; i < kWarpQueries / 16; ++i) mma::load_four(x[i], queries + i * 256);
#pragma unroll
    for (int j = 0; j < kWarpRows / 16; ++j) mma::load_four(y[j], rows + j * 256);
  }
  // Sums that begin with this step are not read. Each of the next step's is loaded, if there is one, when this step
  // needs the one before it no more.
  template <bool kBegin, bool kNext, class Sum>
  __device__ __forceinline__ void multiply(Sum (&sums)[kWarpQueries / 16][kWarpRows / 2], const char* queries,
                                           const char* rows) {
#pragma unroll
    for (int j = 0; j < kWarpRows / 16; ++j) {
#pragma unroll
      for (int i = 0; i < kWarpQueries / 16; ++i) {
        if constexpr (kBegin) {
          mma::multiply(sums[i] + 8 * j, x[i], y[j][0], y[j][1]);
          mma::multiply(sums[i] + 8 * j + 4, x[i], y[j][2], y[j][3]);
        } else {
          mma::multiply_add(sums[i] + 8 * j, x[i], y[j][0], y[j][1]);
          mma::multiply_add(sums[i] + 8 * j + 4, x[i], y[j][2], y[j][3]);
        }
        if (kNext && j == kWarpRows / 16 - 1) mma::load_four(x[i], queries + i * 256);
      }
      if (kNext) mma::load_four(y[j], rows + j * 256);
    }
  }
};

template <class Sum>
__device__ __forceinline__ void clear(Sum (&sums)[kWarpQueries / 16][kWarpRows / 2]) {
#pragma unroll
  for (auto& of_queries : sums) {
#pragma unroll
    for (Sum& sum : of_queries) sum = 0;
  }
}

template <class Sum, bool kStreamQueries, bool kAll>
__device__ void screen_items(const ScreenArguments& a, Barriers* barriers, char* resident, char* ring) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int query_part = warp % kQueryParts * kWarpQueries;
  const int row_part = warp / kQueryParts * kWarpRows;
  // Which row of which core matrix the lane names to ldmatrix: of queries two of 8 rows, then the next 16 bytes of
  // both; of table rows both 16 bytes of 8, then those of the next 8.
  const int query_place = (lane / 16 * kQueryTile + query_part + lane % 16) * 16;
  const int row_place = (lane / 8 % 2 * kTableTile + row_part + lane / 16 * 8 + lane % 8) * 16;
  const int slot_bytes = slot_bytes_of<Sum, kStreamQueries>(a.shape.steps_a_slot);
  const char* const rows_of_ring = ring + kStartBytes<Sum> + row_place;
  const char* const queries_of_ring =
      ring + kStartBytes<Sum> + a.shape.steps_a_slot * static_cast<int>(kTableStepBytes) + query_place;
  const std::int64_t stream = static_cast<std::int64_t>(blockIdx.x) * kPortableWarps + warp;
  Stream passed{a.streams.passed + stream * a.streams.capacity, a.streams.capacity};
  const int steps = a.shape.steps;
  constexpr bool kStarts = kStartBytes < Sum >> 0;

  Filling<Sum, kStreamQueries> filling(a);
#pragma unroll 1
  for (int ahead = 0; ahead < kAhead; ++ahead) filling.fill(a, barriers, ring);
  Cursor cursor;
  std::uint32_t item_round = 0;
  Sum least[kWarpQueries / 16][2] = {};
#pragma unroll 1
  for (std::int64_t number = blockIdx.x; number < items_of(a); number += gridDim.x, item_round ^= 1) {
    const ScreenItem item(a, number);
    const std::int64_t first_query = item.query_tile * kQueryTile + query_part;
    if constexpr (!kAll) {
#pragma unroll
      for (int i = 0; i < kWarpQueries / 16; ++i) {
        least[i][0] = least_sum<Sum>(a.queries.thresholds[first_query + 16 * i + lane / 4]);
        least[i][1] = least_sum<Sum>(a.queries.thresholds[first_query + 16 * i + lane / 4 + 8]);
      }
    }
    if constexpr (!kStreamQueries) {
      const char* const queries = reinterpret_cast<const char*>(a.queries.tiles) +
                                  item.query_tile * static_cast<std::int64_t>(kQueryStepBytes) * steps;
      barrier_wait(&barriers->queries_empty, item_round ^ 1);
#pragma unroll 4
      for (std::uint32_t at = threadIdx.x * 16; at < steps * kQueryStepBytes; at += kPortableThreads * 16) {
        mma::copy(resident + at, queries + at);
      }
      mma::copies_arrive(&barriers->queries_full);
      barrier_wait(&barriers->queries_full, item_round);
    }
    // Where the lane's part of a slot's first step is.
    const auto rows_of = [&](int slot) { return rows_of_ring + slot * slot_bytes; };
    const auto queries_of = [&](int slot, int step) {
      return kStreamQueries ? queries_of_ring + slot * slot_bytes
                            : resident + query_place + step * static_cast<int>(kQueryStepBytes);
    };
    Fragments fragments;
    barrier_wait(&barriers->full[cursor.slot], cursor.round);
    fragments.load(queries_of(cursor.slot, 0), rows_of(cursor.slot));
    const int end = static_cast<int>(item.end);
#pragma unroll 1
    for (int tile = static_cast<int>(item.begin); tile < end; ++tile) {
      Sum sums[kWarpQueries / 16][kWarpRows / 2];
      if constexpr (kStarts) {
#pragma unroll
        for (auto& of_queries : sums) {
          take_starts(reinterpret_cast<const std::int32_t*>(ring + cursor.slot * slot_bytes) + row_part, of_queries);
        }
      } else if (a.shape.steps_a_slot == 1) {  // else the first step's products begin them
        clear(sums);
      }
#pragma unroll 1
      for (int step = 0; step < steps; step += a.shape.steps_a_slot) {
        filling.fill(a, barriers, ring);
        const int slot = cursor.slot;
        const char* rows = rows_of(slot);
        const char* queries = queries_of(slot, step);
        cursor.advance(kSlots);
        // All of the slot's steps but the last one, whose next is of another slot.
        int left = min(a.shape.steps_a_slot, steps - step) - 1;
        const auto go_on = [&] {
          rows += kTableStepBytes;
          queries += kQueryStepBytes;
          --left;
        };
        if constexpr (!kStarts) {
          if (step == 0 && left > 0) {
            go_on();
            fragments.template multiply<true, true>(sums, queries, rows);
          }
        }
#pragma unroll 1
        while (left > 0) {
          go_on();
          fragments.template multiply<false, true>(sums, queries, rows);
        }
        const int next = step + a.shape.steps_a_slot < steps ? step + a.shape.steps_a_slot : 0;
        if (next > 0 || tile + 1 < end) {
          barrier_wait(&barriers->full[cursor.slot], cursor.round);
          fragments.template multiply<false, true>(sums, queries_of(cursor.slot, next), rows_of(cursor.slot));
        } else {
          fragments.template multiply<false, false>(sums, nullptr, nullptr);
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(&barriers->empty[slot]);
      }

      if constexpr (kAll) {
#pragma unroll
        for (int i = 0; i < kWarpQueries / 16; ++i) write_scores(a, sums[i], first_query + 16 * i, tile, row_part);
      } else {
        bool any = false;
#pragma unroll
        for (int i = 0; i < kWarpQueries / 16; ++i) {
          const Quads<Sum, kWarpRows / 2> quads(sums[i]);
          if (__any_sync(kWholeWarp, quads.passes(least[i]))) {
            any = true;
            quads.hand_over(least[i], passed, 16 * i, row_part, tile, first_query);
          }
        }
        // A stream that is full loses rows: its queries are not certified.
        if (any && passed.count > passed.capacity) {
          a.queries.lost[first_query + lane] = 1;
          a.queries.lost[first_query + lane + 32] = 1;
        }
      }
    }
    if constexpr (!kStreamQueries) {
      __syncwarp();
      if (lane == 0) barrier_arrive(&barriers->queries_empty);
    }
  }
  if (!kAll && lane == 0) a.streams.counts[stream] = min(passed.count, passed.capacity);
}

template <class Sum, bool kStreamQueries, bool kAll>
__global__ void __launch_bounds__(kPortableThreads, 1) screen_kernel(const __grid_constant__ ScreenArguments a) {
  extern __shared__ __align__(1024) char memory[];
  auto* const barriers = reinterpret_cast<Barriers*>(memory);
  char* const resident = memory + kBarrierBytes;
  char* const ring = resident + (kStreamQueries ? 0 : static_cast<std::size_t>(kQueryStepBytes) * a.shape.steps);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kSlots; ++i) {
      barrier_init(&barriers->full[i], kPortableThreads);
      barrier_init(&barriers->empty[i], kPortableWarps);
    }
    barrier_init(&barriers->queries_full, kPortableThreads);
    barrier_init(&barriers->queries_empty, kPortableWarps);
  }
  __syncthreads();
  screen_items<Sum, kStreamQueries, kAll>(a, barriers, resident, ring);
}

struct PortableScreen {
  static constexpr int kThreads = kPortableThreads;
  static constexpr int kWarps = kPortableWarps;
  template <class Sum>
  static ScreenShape shape_of(const Engine& engine, const ScreenArguments& a, bool& streams) {
    ScreenShape shape{};
    shape.steps = a.table.columns / kStep;
    shape.slots = kSlots;
    shape.splits = splits_for(engine, a.queries.tile_count, a.end - a.begin);
    const std::size_t resident = static_cast<std::size_t>(kQueryStepBytes) * shape.steps;
    const std::size_t room = engine.shared_memory - kBarrierBytes;
    // Queries that leave the ring less than two steps a slot are streamed.
    const int least = std::min(2, shape.steps);
    streams = resident + kSlots * slot_bytes_of<Sum, false>(least) > room;
    const auto fits = [&](int steps) {
      const std::size_t slots = kSlots * (streams ? slot_bytes_of<Sum, true>(steps) : slot_bytes_of<Sum, false>(steps));
      return (streams ? 0 : resident) + slots <= room;
    };
    int widest = 1;
    while (widest < kWidestSlot && fits(widest + 1)) ++widest;
    shape.steps_a_slot = steps_a_slot_for(shape.steps, widest);
    return shape;
  }

  template <class Sum, bool kStreamQueries>
  static std::size_t shared_bytes(const ScreenShape& shape) {
    return kBarrierBytes + (kStreamQueries ? 0 : static_cast<std::size_t>(kQueryStepBytes) * shape.steps) +
           kSlots * slot_bytes_of<Sum, kStreamQueries>(shape.steps_a_slot);
  }

  template <class Sum, bool kStreamQueries, bool kAll>
  static auto kernel(const ScreenShape& /*shape*/) {
    return screen_kernel<Sum, kStreamQueries, kAll>;
  }
};

}  // namespace

unsigned screen_portably(const Engine& engine, ScreenArguments& a) {
  return run_screen<PortableScreen>(engine, a);
}

}  // namespace vicinal::cuda
