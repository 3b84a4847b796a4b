// The fused screen on Hopper: one persistent block a multiprocessor, one warp that feeds, four warpgroups that multiply
// and compare. A block keeps 256 queries in shared memory (or streams them beside the table where they are too wide),
// and walks over table tiles of 128 rows. The epilogue of a warpgroup (one maximum an element, then one comparison a
// query) runs while the others multiply: up to kMostSteps steps they do so in turns (base/turns.cuh).
// What passes goes to a warp's own stream in device memory, without an atomic or a wait; a second kernel deals the
// streams out to the queries' lists (stream.cu). For bytes all is the same but the instruction, the type of the
// sums, and what they begin with.
// Cost: 2 m n K flops on the matrix unit, m / 256 reads of the packed table through L2. Contract clause 3.
#include <algorithm>

#include "cuda/base/hopper.cuh"
#include "cuda/base/ring.cuh"
#include "cuda/base/turns.cuh"
#include "cuda/nearest/screen/stream.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kGroups = 4;                       // warpgroups that multiply: 64 queries each
constexpr int kConsumers = kGroups * 128;        // threads
constexpr int kBlockThreads = kConsumers + 128;  // and the warp that feeds, in a warpgroup of its own
constexpr int kMaxSlots = 16;                    // of the ring
constexpr int kMostSteps = 9;                    // of tables that are multiplied in turns
static_assert(kConsumers == kHopperWarps * 32);
constexpr std::size_t kBarrierBytes = 512;

struct Barriers {
  Barrier full[kMaxSlots];
  Barrier empty[kMaxSlots];
  Barrier queries_full;
  Barrier queries_empty;
};
static_assert(sizeof(Barriers) <= kBarrierBytes);

template <class Sum, bool kStreamQueries>
__device__ void feed(const ScreenArguments& a, Barriers* barriers, char* resident, char* ring) {
  const ScreenShape& shape = a.shape;
  const std::size_t table_tile = kStartBytes<Sum> + static_cast<std::size_t>(kTableStepBytes) * shape.steps;
  const std::size_t query_tile = static_cast<std::size_t>(kQueryStepBytes) * shape.steps;
  const std::size_t slot_bytes = slot_bytes_of<Sum, kStreamQueries>(shape.steps_a_slot);
  Cursor cursor;
  std::uint32_t item_round = 0;
  for (std::int64_t number = blockIdx.x; number < items_of(a); number += gridDim.x, item_round ^= 1) {
    const ScreenItem item(a, number);
    const char* queries = reinterpret_cast<const char*>(a.queries.tiles) + item.query_tile * query_tile;
    if constexpr (!kStreamQueries) {
      barrier_wait(&barriers->queries_empty, item_round ^ 1);
      hopper::barrier_arrive_expect(&barriers->queries_full, static_cast<std::uint32_t>(query_tile));
      hopper::bulk_copy(resident, queries, static_cast<std::uint32_t>(query_tile), &barriers->queries_full);
    }
    for (std::int64_t tile = item.begin; tile < item.end; ++tile) {
      const char* rows = reinterpret_cast<const char*>(a.table.tiles) + tile * table_tile;
      for (int step = 0; step < shape.steps; step += shape.steps_a_slot) {
        const int steps = min(shape.steps_a_slot, shape.steps - step);
        const std::uint32_t starts = step == 0 ? kStartBytes<Sum> : 0;
        const std::uint32_t bytes = starts + steps * kTableStepBytes;
        Barrier* full = &barriers->full[cursor.slot];
        char* slot = ring + cursor.slot * slot_bytes + kStartBytes<Sum>;
        barrier_wait(&barriers->empty[cursor.slot], cursor.round ^ 1);
        hopper::barrier_arrive_expect(full, bytes + (kStreamQueries ? steps * kQueryStepBytes : 0));
        hopper::bulk_copy(slot - starts,
                          rows + kStartBytes<Sum> + static_cast<std::size_t>(step) * kTableStepBytes - starts, bytes,
                          full);
        if constexpr (kStreamQueries) {
          hopper::bulk_copy(slot + static_cast<std::size_t>(kTableStepBytes) * shape.steps_a_slot,
                            queries + static_cast<std::size_t>(step) * kQueryStepBytes, steps * kQueryStepBytes, full);
        }
        cursor.advance(shape.slots);
      }
    }
  }
}

// kSteps: of a tile, which is one slot then, and the warpgroups multiply in turns; 0: any number.
template <class Sum, bool kStreamQueries, bool kAll, int kSteps>
__device__ void consume(const ScreenArguments& a, Barriers* barriers, const char* resident, const char* ring) {
  const ScreenShape& shape = a.shape;
  const int warp = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x / 32), 0);  // known to be the same in all lanes
  const int group = warp / 4;
  const int lane = threadIdx.x % 32;
  const std::size_t slot_bytes = slot_bytes_of<Sum, kStreamQueries>(shape.steps_a_slot);
  constexpr bool kStarts = kStartBytes < Sum >> 0;
  const std::int64_t stream = static_cast<std::int64_t>(blockIdx.x) * (kConsumers / 32) + warp;
  Stream passed{a.streams.passed + stream * a.streams.capacity, a.streams.capacity};
  Cursor cursor;
  std::uint32_t item_round = 0;
  [[maybe_unused]] const std::conditional_t<(kSteps > 0), Turns<kGroups>, int> turns(group);
  for (std::int64_t number = blockIdx.x; number < items_of(a); number += gridDim.x, item_round ^= 1) {
    const ScreenItem item(a, number);
    const std::int64_t first_query = item.query_tile * kQueryTile + warp * 16;
    Sum least[2] = {};
    if constexpr (!kAll) {
      least[0] = least_sum<Sum>(a.queries.thresholds[first_query + lane / 4]);
      least[1] = least_sum<Sum>(a.queries.thresholds[first_query + lane / 4 + 8]);
    }
    if constexpr (!kStreamQueries) barrier_wait(&barriers->queries_full, item_round);
    for (std::int64_t tile = item.begin; tile < item.end; ++tile) {
      Sum sums[64];
      if constexpr (kStarts) {
        barrier_wait(&barriers->full[cursor.slot], cursor.round);
        take_starts(reinterpret_cast<const std::int32_t*>(ring + cursor.slot * slot_bytes), sums);
      }
      hopper::products_fence(sums);
      if constexpr (kSteps > 0) {
        std::uint64_t queries = hopper::matrix(resident + group * 64 * 16, kQueryTile * 16, 128);
        std::uint64_t rows = hopper::matrix(ring + cursor.slot * slot_bytes + kStartBytes<Sum>, kTableTile * 16, 128);
        barrier_wait(&barriers->full[cursor.slot], cursor.round);
        turns.wait();
        hopper::products_begin();
        hopper::multiply_group<kSteps>(sums, queries, rows, kQueryStepBytes >> 4, kTableStepBytes >> 4,
                                       kStarts ? 1 : 0);
        hopper::products_commit();
        turns.pass();
        cursor.advance(shape.slots);
      }
      for (int step = 0; kSteps == 0 && step < shape.steps; step += shape.steps_a_slot) {
        const int steps = min(shape.steps_a_slot, shape.steps - step);
        const char* slot = ring + cursor.slot * slot_bytes + kStartBytes<Sum>;
        const char* query_steps = kStreamQueries ? slot + static_cast<std::size_t>(kTableStepBytes) * shape.steps_a_slot
                                                 : resident + static_cast<std::size_t>(step) * kQueryStepBytes;
        std::uint64_t queries = hopper::matrix(query_steps + group * 64 * 16, kQueryTile * 16, 128);
        std::uint64_t rows = hopper::matrix(slot, kTableTile * 16, 128);
        barrier_wait(&barriers->full[cursor.slot], cursor.round);
        hopper::multiply_steps(sums, queries, rows, kQueryStepBytes >> 4, kTableStepBytes >> 4, steps,
                               !kStarts && step == 0);
        hopper::products_commit();
        if (step > 0) {
          hopper::products_wait<1>();
          if (lane == 0) barrier_arrive(&barriers->empty[cursor.before(shape.slots)]);
        }
        cursor.advance(shape.slots);
      }
      hopper::products_wait<0>();
      hopper::products_fence(sums);
      if (lane == 0) barrier_arrive(&barriers->empty[cursor.before(shape.slots)]);

      if constexpr (kAll) {
        write_scores(a, sums, first_query, tile, 0);
      } else {
        const Quads<Sum, 64> quads(sums);
        if (__any_sync(kWholeWarp, quads.passes(least))) {
          quads.hand_over(least, passed, 0, 0, tile, first_query);
          // A stream that is full loses rows: its queries are not certified.
          if (passed.count > passed.capacity && lane < 16) a.queries.lost[first_query + lane] = 1;
        }
      }
    }
    if constexpr (!kStreamQueries) {
      if (lane == 0) barrier_arrive(&barriers->queries_empty);
    }
  }
  if constexpr (kSteps > 0) turns.end();
  if (!kAll && lane == 0) a.streams.counts[stream] = min(passed.count, passed.capacity);
}

template <class Sum, bool kStreamQueries, bool kAll, int kSteps>
__global__ void __launch_bounds__(kBlockThreads, 1) screen_kernel(const __grid_constant__ ScreenArguments a) {
  // For other devices there is nothing to compile; they take portable.cu.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  auto* barriers = reinterpret_cast<Barriers*>(memory);
  char* resident = memory + kBarrierBytes;
  char* ring = resident + (kStreamQueries ? 0 : static_cast<std::size_t>(kQueryStepBytes) * a.shape.steps);
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.shape.slots; ++i) {
      barrier_init(&barriers->full[i], 1);
      barrier_init(&barriers->empty[i], kConsumers / 32);
    }
    barrier_init(&barriers->queries_full, 1);
    barrier_init(&barriers->queries_empty, kConsumers / 32);
    hopper::barrier_init_fence();
  }
  __syncthreads();
  if (__shfl_sync(kWholeWarp, static_cast<int>(threadIdx.x / 128), 0) == kGroups) {
    hopper::give_registers<24>();  // of the 96 each has at launch: 4 x 112 + 24 <= 5 x 96
    if (threadIdx.x == kConsumers) feed<Sum, kStreamQueries>(a, barriers, resident, ring);
  } else {
    hopper::take_registers<112>();
    consume<Sum, kStreamQueries, kAll, kSteps>(a, barriers, resident, ring);
  }
#endif
}

// Queries that are wider than this are streamed beside the table.
constexpr int kMaxResidentSteps = 18;

struct HopperScreen {
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kWarps = kHopperWarps;
  template <class Sum>
  static ScreenShape shape_of(const Engine& engine, const ScreenArguments& a, bool& streams) {
    ScreenShape shape{};
    shape.steps = a.table.columns / kStep;
    streams = shape.steps > kMaxResidentSteps;
    const std::size_t room = engine.shared_memory - 1024 - kBarrierBytes -
                             (streams ? 0 : static_cast<std::size_t>(kQueryStepBytes) * shape.steps);
    const auto slot_bytes = [&](int steps) {
      return streams ? slot_bytes_of<Sum, true>(steps) : slot_bytes_of<Sum, false>(steps);
    };
    // A slot is a whole tile where the ring holds some of those, else three or four steps.
    constexpr std::size_t kTilesAhead = 3;
    const bool whole = !streams && room / slot_bytes(shape.steps) >= kTilesAhead;
    shape.steps_a_slot = steps_a_slot_for(shape.steps, whole ? shape.steps : streams ? 3 : 4);
    shape.slots = static_cast<int>(std::min<std::size_t>(room / slot_bytes(shape.steps_a_slot), kMaxSlots));
    shape.splits = splits_for(engine, a.queries.tile_count, a.end - a.begin);
    return shape;
  }

  template <class Sum, bool kStreamQueries>
  static std::size_t shared_bytes(const ScreenShape& shape) {
    return kBarrierBytes + (kStreamQueries ? 0 : static_cast<std::size_t>(kQueryStepBytes) * shape.steps) +
           slot_bytes_of<Sum, kStreamQueries>(shape.steps_a_slot) * shape.slots;
  }

  using Kernel = void (*)(ScreenArguments);
  template <class Sum, bool kStreamQueries, bool kAll>
  static Kernel kernel(const ScreenShape& shape) {
    if constexpr (!kStreamQueries && !kAll) {
      if (shape.steps_a_slot == shape.steps) return kernel_in_turns<Sum, 1>(shape.steps);
    }
    return screen_kernel<Sum, kStreamQueries, kAll, 0>;
  }

 private:
  /// That of so many steps, from kSteps on.
  template <class Sum, int kSteps>
  static Kernel kernel_in_turns(int steps) {
    if constexpr (kSteps > kMostSteps) {
      return screen_kernel<Sum, false, false, 0>;
    } else {
      return steps == kSteps ? screen_kernel<Sum, false, false, kSteps> : kernel_in_turns<Sum, kSteps + 1>(steps);
    }
  }
};

}  // namespace

unsigned screen_on_hopper(const Engine& engine, ScreenArguments& a) {
  return run_screen<HopperScreen>(engine, a);
}

}  // namespace vicinal::cuda
