// The fused screen on every device since Turing, by mma.sync: one persistent block a multiprocessor, eight warps, each
// of which multiplies 64 of the block's 256 queries with 64 of a tile's 128 rows. That shape loads 4 kB from shared
// memory for 32 products of 16 x 8 x 16, so that shared memory can keep up. All threads copy what the ring needs next
// while they multiply what has arrived (cp.async; on Turing the copies are waited for). Packed tiles are made of core
// matrices of 8 rows of 16 bytes, 128 bytes together, which is what ldmatrix reads without a conflict of banks. The
// queries stay in shared memory where there is room for them, and else pass through the ring beside the table. Each sum
// takes its steps in the order of the columns, as the proof wants it. Everything that comes after the products is that
// of screen.cu. Contract clause 3. Cost: as there, at the rate of mma.sync.
#include <algorithm>

#include "cuda/base/mma.cuh"
#include "cuda/nearest/screen/stream.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kPortableThreads = kPortableWarps * 32;
constexpr int kSlots = 4;         // of the ring
constexpr int kWidestSlot = 4;    // steps
constexpr int kWarpQueries = 64;  // of a warp
constexpr int kWarpRows = 64;
constexpr int kQueryParts = kQueryTile / kWarpQueries;
static_assert(kQueryParts * (kTableTile / kWarpRows) == kPortableWarps);

// A slot: starts, where there are some, steps of the table, steps of the queries, where they are streamed.
template <class Sum, bool kStreamQueries>
__host__ __device__ constexpr std::size_t slot_bytes_of(int steps) {
  return kStartBytes<Sum> + static_cast<std::size_t>(kTableStepBytes + (kStreamQueries ? kQueryStepBytes : 0)) * steps;
}

// A block's way over its items, their tiles and the slots of each.
struct Walk {
  std::int64_t number;
  ScreenItem item;
  std::int64_t tile;
  int step = 0;

  __device__ explicit Walk(const ScreenArguments& a) : number(blockIdx.x), item(a, number), tile(item.begin) {}
  [[nodiscard]] __device__ bool over(const ScreenArguments& a) const { return number >= items_of(a); }
  [[nodiscard]] __device__ int steps(const ScreenArguments& a) const {
    return min(a.shape.steps_a_slot, a.shape.steps - step);
  }
  __device__ void advance(const ScreenArguments& a) {
    step += a.shape.steps_a_slot;
    if (step < a.shape.steps) return;
    step = 0;
    if (++tile < item.end) return;
    number += gridDim.x;
    if (over(a)) return;
    item = ScreenItem(a, number);
    tile = item.begin;
  }
};

// By all threads of the block, 16 bytes each at a time.
__device__ void copy_bytes(char* to, const char* from, std::size_t bytes) {
  for (std::size_t at = threadIdx.x * 16; at < bytes; at += kPortableThreads * 16) mma::copy(to + at, from + at);
}

// Sets going what fills a slot.
template <class Sum, bool kStreamQueries>
__device__ void fill(const ScreenArguments& a, const Walk& walk, char* slot) {
  const std::size_t tile_bytes = kStartBytes<Sum> + static_cast<std::size_t>(kTableStepBytes) * a.shape.steps;
  const char* rows = reinterpret_cast<const char*>(a.table.tiles) + walk.tile * tile_bytes;
  const int steps = walk.steps(a);
  if (kStartBytes < Sum >> 0 && walk.step == 0) copy_bytes(slot, rows, kStartBytes<Sum>);
  char* to = slot + kStartBytes<Sum>;
  copy_bytes(to, rows + kStartBytes<Sum> + static_cast<std::size_t>(kTableStepBytes) * walk.step,
             static_cast<std::size_t>(kTableStepBytes) * steps);
  if constexpr (kStreamQueries) {
    const char* queries =
        reinterpret_cast<const char*>(a.queries.tiles) +
        static_cast<std::size_t>(kQueryStepBytes) * (walk.item.query_tile * a.shape.steps + walk.step);
    copy_bytes(to + static_cast<std::size_t>(kTableStepBytes) * a.shape.steps_a_slot, queries,
               static_cast<std::size_t>(kQueryStepBytes) * steps);
  }
}

// What a warp multiplies in one step.
struct Fragments {
  std::uint32_t x[kWarpQueries / 16][4];
  std::uint32_t y[kWarpRows / 16][4];

  // From the lane's places.
  __device__ __forceinline__ void load(const char* queries, const char* rows) {
#pragma unroll
    for (int i = 0; i < kWarpQueries / 16; ++i) mma::load_four(x[i], queries + i * 256);
#pragma unroll
    for (int j = 0; j < kWarpRows / 16; ++j) mma::load_four(y[j], rows + j * 256);
  }
  template <class Sum>
  __device__ __forceinline__ void multiply(Sum (&sums)[kWarpQueries / 16][kWarpRows / 2]) const {
#pragma unroll
    for (int j = 0; j < kWarpRows / 16; ++j) {
#pragma unroll
      for (int i = 0; i < kWarpQueries / 16; ++i) {
        mma::multiply_add(sums[i] + 8 * j, x[i], y[j][0], y[j][1]);
        mma::multiply_add(sums[i] + 8 * j + 4, x[i], y[j][2], y[j][3]);
      }
    }
  }
};

template <class Sum, bool kStreamQueries, bool kAll>
__global__ void __launch_bounds__(kPortableThreads, 1) screen_kernel(const __grid_constant__ ScreenArguments a) {
  extern __shared__ __align__(1024) char memory[];
  char* const resident = memory;
  char* const ring = memory + (kStreamQueries ? 0 : static_cast<std::size_t>(kQueryStepBytes) * a.shape.steps);
  const std::size_t slot_bytes = slot_bytes_of<Sum, kStreamQueries>(a.shape.steps_a_slot);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int query_part = warp % kQueryParts * kWarpQueries;
  const int row_part = warp / kQueryParts * kWarpRows;
  // Which row of which core matrix the lane names to ldmatrix: of queries two of 8 rows, then the next 16 bytes of
  // both; of table rows both 16 bytes of 8, then those of the next 8.
  const std::size_t query_place = static_cast<std::size_t>(lane / 16 * kQueryTile + query_part + lane % 16) * 16;
  const std::size_t row_place =
      static_cast<std::size_t>(lane / 8 % 2 * kTableTile + row_part + lane / 16 * 8 + lane % 8) * 16;
  const std::int64_t stream = static_cast<std::int64_t>(blockIdx.x) * kPortableWarps + warp;
  Stream passed{a.streams.passed + stream * a.streams.capacity, a.streams.capacity};

  // Slot i % kSlots has what the i-th step of the walk needs. It is set going kSlots - 1 turns ahead, after the barrier
  // at which all warps are done with what the slot had before. A group is committed each turn, empty or not, so that a
  // wait that leaves kSlots - 2 of them under way has seen this turn's.
  Walk filling(a);
  Walk walk(a);
#pragma unroll 1
  for (int i = 0; i < kSlots - 1; ++i) {
    if (!filling.over(a)) {
      fill<Sum, kStreamQueries>(a, filling, ring + i * slot_bytes);
      filling.advance(a);
    }
    mma::copies_commit();
  }
  int slot = 0;
  Sum least[kWarpQueries / 16][2] = {};
  Sum sums[kWarpQueries / 16][kWarpRows / 2];
#pragma unroll 1
  while (!walk.over(a)) {
    const std::int64_t first_query = walk.item.query_tile * kQueryTile + query_part;
    if (walk.step == 0 && walk.tile == walk.item.begin) {
      if constexpr (!kAll) {
#pragma unroll
        for (int i = 0; i < kWarpQueries / 16; ++i) {
          least[i][0] = least_sum<Sum>(a.queries.thresholds[first_query + 16 * i + lane / 4]);
          least[i][1] = least_sum<Sum>(a.queries.thresholds[first_query + 16 * i + lane / 4 + 8]);
        }
      }
      if constexpr (!kStreamQueries) {
        const std::size_t bytes = static_cast<std::size_t>(kQueryStepBytes) * a.shape.steps;
        __syncthreads();  // nobody reads the last item's any more
        copy_bytes(resident, reinterpret_cast<const char*>(a.queries.tiles) + walk.item.query_tile * bytes, bytes);
        mma::copies_commit();
        mma::copies_wait<0>();
      }
    }
    mma::copies_wait<kSlots - 2>();
    __syncthreads();
    if (!filling.over(a)) {
      const int last = slot == 0 ? kSlots - 1 : slot - 1;
      fill<Sum, kStreamQueries>(a, filling, ring + last * slot_bytes);
      filling.advance(a);
    }
    mma::copies_commit();

    const char* const own = ring + slot * slot_bytes;
    if (walk.step == 0) {
#pragma unroll
      for (int i = 0; i < kWarpQueries / 16; ++i) {
        if constexpr (kStartBytes < Sum >> 0) {
          take_starts(reinterpret_cast<const std::int32_t*>(own) + row_part, sums[i]);
        } else {
          // A zero that the compiler knows makes it copy the products for sums that begin with it, and spill.
          Sum zero = 0;
          asm volatile("" : "+f"(zero));
#pragma unroll
          for (int j = 0; j < kWarpRows / 2; ++j) sums[i][j] = zero;
        }
      }
    }
    const int steps = walk.steps(a);
    const char* rows = own + kStartBytes<Sum> + row_place;
    const char* queries =
        kStreamQueries ? own + kStartBytes<Sum> + static_cast<std::size_t>(kTableStepBytes) * a.shape.steps_a_slot
                       : resident + static_cast<std::size_t>(kQueryStepBytes) * walk.step;
    queries += query_place;
    // The next step is on its way into registers while one is multiplied.
    Fragments fragments[2];
    fragments[0].load(queries, rows);
#pragma unroll
    for (int s = 0; s < kWidestSlot; ++s) {
      if (s >= steps) break;
      if (s + 1 < kWidestSlot && s + 1 < steps) {
        fragments[(s + 1) % 2].load(queries + (s + 1) * kQueryStepBytes, rows + (s + 1) * kTableStepBytes);
      }
      fragments[s % 2].multiply(sums);
    }

    if (walk.step + steps == a.shape.steps) {
      if constexpr (kAll) {
#pragma unroll
        for (int i = 0; i < kWarpQueries / 16; ++i) {
          write_scores(a, sums[i], first_query + 16 * i, walk.tile, row_part);
        }
      } else {
        bool passes = false;
#pragma unroll
        for (int i = 0; i < kWarpQueries / 16; ++i) {
          passes = Quads<Sum, kWarpRows / 2>(sums[i]).passes(least[i]) || passes;
        }
        if (__any_sync(kWholeWarp, passes)) {
#pragma unroll
          for (int i = 0; i < kWarpQueries / 16; ++i) {
            Quads<Sum, kWarpRows / 2>(sums[i]).hand_over(least[i], passed, 16 * i, row_part, walk.tile, first_query);
          }
          // A stream that is full loses rows: its queries are not certified.
          if (passed.count > passed.capacity) {
            a.queries.lost[first_query + lane] = 1;
            a.queries.lost[first_query + lane + 32] = 1;
          }
        }
      }
    }
    walk.advance(a);
    slot = slot == kSlots - 1 ? 0 : slot + 1;
  }
  if (!kAll && lane == 0) a.streams.counts[stream] = min(passed.count, passed.capacity);
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
    // Queries that leave the ring less than two steps a slot are streamed.
    const int least = std::min(2, shape.steps);
    streams = resident + kSlots * slot_bytes_of<Sum, false>(least) > engine.shared_memory;
    const auto fits = [&](int steps) {
      return streams ? kSlots * slot_bytes_of<Sum, true>(steps) <= engine.shared_memory
                     : resident + kSlots * slot_bytes_of<Sum, false>(steps) <= engine.shared_memory;
    };
    int widest = 1;
    while (widest < kWidestSlot && fits(widest + 1)) ++widest;
    shape.steps_a_slot = steps_a_slot_for(shape.steps, widest);
    return shape;
  }

  template <class Sum, bool kStreamQueries>
  static std::size_t shared_bytes(const ScreenShape& shape) {
    return (kStreamQueries ? 0 : static_cast<std::size_t>(kQueryStepBytes) * shape.steps) +
           kSlots * slot_bytes_of<Sum, kStreamQueries>(shape.steps_a_slot);
  }

  template <class Sum, bool kStreamQueries, bool kAll>
  static auto kernel() {
    return screen_kernel<Sum, kStreamQueries, kAll>;
  }
};

}  // namespace

unsigned screen_portably(const Engine& engine, ScreenArguments& a) {
  return run_screen<PortableScreen>(engine, a);
}

}  // namespace vicinal::cuda
