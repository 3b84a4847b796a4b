// The fused screen on Hopper: one persistent block a multiprocessor, one warp that feeds, four warpgroups that multiply
// and compare. A block keeps 256 queries in shared memory (or streams them beside the table where they are too wide),
// and walks over table tiles of 128 rows. The epilogue of a warpgroup (one maximum an element, then one comparison a
// query) runs while the others multiply.
// What passes goes to a warp's own stream in device memory, without an atomic or a wait; a second kernel deals the
// streams out to the queries' lists.
// Cost: 2 m n K flops on the matrix unit, m / 256 reads of the packed table through L2. Contract clause 3.
#include <algorithm>
#include <cmath>

#include "cuda/hopper.cuh"
#include "cuda/screen.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kGroups = 4;                  // warpgroups that multiply: 64 queries each
constexpr int kConsumers = kGroups * 128;   // threads
constexpr int kThreads = kConsumers + 128;  // and the warp that feeds, in a warpgroup of its own
constexpr int kMostSlots = 16;              // of the ring
constexpr std::uint32_t kTableStepBytes = kTableTile * kStep * sizeof(__half);
constexpr std::uint32_t kQueryStepBytes = kQueryTile * kStep * sizeof(__half);
constexpr std::size_t kBarrierBytes = 512;

struct Shape {
  int steps;  // of 16 columns
  int steps_a_slot;
  int slots;
  int splits;  // of the table's tiles
};

// What becomes of scores.
enum class Epilogue { compare, best, all };

struct Arguments {
  PackedTable table;
  ScreenQueries queries;
  std::int64_t begin;
  std::int64_t end;
  Shape shape;
  Streams streams;
  float* scores;  // of screen_best and screen_all
  int parts;      // of screen_best
};

struct Barriers {
  std::uint64_t full[kMostSlots];
  std::uint64_t empty[kMostSlots];
  std::uint64_t queries_full;
  std::uint64_t queries_empty;
};
static_assert(sizeof(Barriers) <= kBarrierBytes);

// The position in the ring, and how often it went round.
struct Cursor {
  int slot = 0;
  std::uint32_t round = 0;
  __device__ void advance(int slots) {
    if (++slot == slots) {
      slot = 0;
      round ^= 1;
    }
  }
  [[nodiscard]] __device__ int before(int slots) const { return slot == 0 ? slots - 1 : slot - 1; }
};

// What a block works on: a tile of queries and a run of table tiles. Blocks that run at the same time share the run.
struct Item {
  std::int64_t query_tile;
  std::int64_t begin;
  std::int64_t end;
  __device__ Item(const Arguments& a, std::int64_t number) {
    query_tile = number % a.queries.tile_count;
    const std::int64_t split = number / a.queries.tile_count;
    const std::int64_t tiles = a.end - a.begin;
    begin = a.begin + tiles * split / a.shape.splits;
    end = a.begin + tiles * (split + 1) / a.shape.splits;
  }
};
__device__ std::int64_t items_of(const Arguments& a) {
  return a.queries.tile_count * a.shape.splits;
}

template <bool kStreamQueries>
__device__ void feed(const Arguments& a, Barriers* barriers, char* resident, char* ring) {
  const Shape& shape = a.shape;
  const std::size_t table_tile = static_cast<std::size_t>(kTableStepBytes) * shape.steps;
  const std::size_t query_tile = static_cast<std::size_t>(kQueryStepBytes) * shape.steps;
  const std::size_t slot_bytes =
      static_cast<std::size_t>(kTableStepBytes + (kStreamQueries ? kQueryStepBytes : 0)) * shape.steps_a_slot;
  Cursor cursor;
  std::uint32_t item_round = 0;
  for (std::int64_t number = blockIdx.x; number < items_of(a); number += gridDim.x, item_round ^= 1) {
    const Item item(a, number);
    const char* queries = reinterpret_cast<const char*>(a.queries.tiles) + item.query_tile * query_tile;
    if constexpr (!kStreamQueries) {
      hopper::barrier_wait(&barriers->queries_empty, item_round ^ 1);
      hopper::barrier_arrive_expect(&barriers->queries_full, static_cast<std::uint32_t>(query_tile));
      hopper::bulk_copy(resident, queries, static_cast<std::uint32_t>(query_tile), &barriers->queries_full);
    }
    for (std::int64_t tile = item.begin; tile < item.end; ++tile) {
      const char* rows = reinterpret_cast<const char*>(a.table.tiles) + tile * table_tile;
      for (int step = 0; step < shape.steps; step += shape.steps_a_slot) {
        const int steps = min(shape.steps_a_slot, shape.steps - step);
        const std::uint32_t bytes = steps * kTableStepBytes;
        std::uint64_t* full = &barriers->full[cursor.slot];
        char* slot = ring + cursor.slot * slot_bytes;
        hopper::barrier_wait(&barriers->empty[cursor.slot], cursor.round ^ 1);
        hopper::barrier_arrive_expect(full, bytes + (kStreamQueries ? steps * kQueryStepBytes : 0));
        hopper::bulk_copy(slot, rows + static_cast<std::size_t>(step) * kTableStepBytes, bytes, full);
        if constexpr (kStreamQueries) {
          hopper::bulk_copy(slot + static_cast<std::size_t>(kTableStepBytes) * shape.steps_a_slot,
                            queries + static_cast<std::size_t>(step) * kQueryStepBytes, steps * kQueryStepBytes, full);
        }
        cursor.advance(shape.slots);
      }
    }
  }
}

// Which of the warp's 16 queries and of the tile's rows.
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

// Which rows of a tile a query may have: as a rule all of them, which is seen without asking for each.
class Askable {
 public:
  __device__ Askable(const PackedTable& table, const Eligible& eligible, std::int64_t query)
      : table_(table), available_(eligible, query) {
    const Chosen& chosen = table.chosen;
    if (available_.own < 0 && available_.excluded < 0) return;
    if (chosen.rows != nullptr) {
      everywhere_ = true;
    } else {
      if (available_.own >= 0) own_tile_ = available_.own % table.tile_count;
      if (available_.excluded >= 0) excluded_tile_ = available_.excluded % table.tile_count;
    }
  }
  __device__ void enter(std::int64_t tile) {
    tile_ = tile;
    ask_ = everywhere_ || tile == own_tile_ || tile == excluded_tile_ ||
           packed_number(table_, tile * kTableTile + kTableTile - 1) >= table_.chosen.count;
  }
  [[nodiscard]] __device__ bool asks() const { return ask_; }
  [[nodiscard]] __device__ bool may_have(int row) const {
    if (!ask_) return true;
    const std::int64_t number = packed_number(table_, tile_ * kTableTile + row);
    return number < table_.chosen.count && available_.any(table_.chosen, number);
  }

 private:
  const PackedTable& table_;
  Available available_;
  std::int64_t own_tile_ = -1;
  std::int64_t excluded_tile_ = -1;
  std::int64_t tile_ = 0;
  bool everywhere_ = false;
  bool ask_ = false;
};

// The best of a thread's 32 rows of one query, part by part. What is not finite becomes NaN when the row's number is
// written into it, or keeps its value, and fmaxf passes over NaN: for a sample that will do.
template <int kHalf, bool kAsk>
__device__ __forceinline__ void write_best(const float (&sums)[64], const Askable& askable, int parts, float* out) {
  const unsigned lane_rows = threadIdx.x % 4 * 2;
  const int span = 16 / parts;
  float best = -HUGE_VALF;
#pragma unroll
  for (int j = 0; j < 16; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      constexpr unsigned kRowBits = kTableTile - 1;
      const float named = __uint_as_float((__float_as_uint(sums[4 * j + 2 * kHalf + i]) & ~kRowBits) |
                                          static_cast<unsigned>(8 * j + i));
      if (!kAsk || askable.may_have(8 * j + i + static_cast<int>(lane_rows))) best = fmaxf(best, named);
    }
    if ((j + 1) % span == 0) {
      *out++ = best > -HUGE_VALF ? __uint_as_float(__float_as_uint(best) | lane_rows) : best;
      best = -HUGE_VALF;
    }
  }
}
template <int kHalf>
__device__ __forceinline__ void write_best(const float (&sums)[64], const Askable& askable, int parts, float* out) {
  if (askable.asks()) {
    write_best<kHalf, true>(sums, askable, parts, out);
  } else {
    write_best<kHalf, false>(sums, askable, parts, out);
  }
}

template <bool kStreamQueries, Epilogue kEpilogue>
__device__ void consume(const Arguments& a, Barriers* barriers, const char* resident, const char* ring) {
  const Shape& shape = a.shape;
  const int warp = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x / 32), 0);  // known to be the same in all lanes
  const int group = warp / 4;
  const int lane = threadIdx.x % 32;
  const std::size_t slot_bytes =
      static_cast<std::size_t>(kTableStepBytes + (kStreamQueries ? kQueryStepBytes : 0)) * shape.steps_a_slot;
  const std::int64_t stream = static_cast<std::int64_t>(blockIdx.x) * (kConsumers / 32) + warp;
  Stream passed{a.streams.passed + stream * a.streams.capacity, a.streams.capacity};
  Cursor cursor;
  std::uint32_t item_round = 0;
  for (std::int64_t number = blockIdx.x; number < items_of(a); number += gridDim.x, item_round ^= 1) {
    const Item item(a, number);
    const std::int64_t first_query = item.query_tile * kQueryTile + warp * 16;
    float least[2] = {};
    if constexpr (kEpilogue == Epilogue::compare) {
      least[0] = a.queries.thresholds[first_query + lane / 4];
      least[1] = a.queries.thresholds[first_query + lane / 4 + 8];
    }
    Askable askable[2] = {{a.table, a.queries.eligible, min(first_query + lane / 4, a.queries.rows - 1)},
                          {a.table, a.queries.eligible, min(first_query + lane / 4 + 8, a.queries.rows - 1)}};
    if constexpr (!kStreamQueries) hopper::barrier_wait(&barriers->queries_full, item_round);
    for (std::int64_t tile = item.begin; tile < item.end; ++tile) {
      float sums[64];
      hopper::products_fence(sums);
      for (int step = 0; step < shape.steps; step += shape.steps_a_slot) {
        const int steps = min(shape.steps_a_slot, shape.steps - step);
        const char* slot = ring + cursor.slot * slot_bytes;
        const char* query_steps = kStreamQueries ? slot + static_cast<std::size_t>(kTableStepBytes) * shape.steps_a_slot
                                                 : resident + static_cast<std::size_t>(step) * kQueryStepBytes;
        std::uint64_t queries = hopper::matrix(query_steps + group * 64 * 16, kQueryTile * 16, 128);
        std::uint64_t rows = hopper::matrix(slot, kTableTile * 16, 128);
        hopper::barrier_wait(&barriers->full[cursor.slot], cursor.round);
        hopper::products_begin();
        for (int i = 0; i < steps; ++i) {
          hopper::multiply_add(sums, queries, rows, step + i > 0 ? 1 : 0);
          queries += kQueryStepBytes >> 4;
          rows += kTableStepBytes >> 4;
        }
        hopper::products_commit();
        if (step > 0) {
          hopper::products_wait<1>();
          if (lane == 0) hopper::barrier_arrive(&barriers->empty[cursor.before(shape.slots)]);
        }
        cursor.advance(shape.slots);
      }
      hopper::products_wait<0>();
      hopper::products_fence(sums);
      if (lane == 0) hopper::barrier_arrive(&barriers->empty[cursor.before(shape.slots)]);

      if constexpr (kEpilogue != Epilogue::compare) {
        const std::int64_t tiles = a.end - a.begin;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const std::int64_t query = first_query + lane / 4 + 8 * half;
          if (query >= a.queries.rows) continue;
          askable[half].enter(tile);
          if constexpr (kEpilogue == Epilogue::best) {
            const std::int64_t width = bests_a_tile(a.parts);
            float* best = a.scores + (query * tiles + tile - a.begin) * width + lane % 4 * a.parts;
            if (half == 0) {
              write_best<0>(sums, askable[half], a.parts, best);
            } else {
              write_best<1>(sums, askable[half], a.parts, best);
            }
          } else {
            float* out = a.scores + (query * tiles + tile - a.begin) * kTableTile + lane % 4 * 2;
            const auto counted = [&](int j, int i) {
              const float score = sums[4 * j + 2 * half + i];
              return askable[half].may_have(8 * j + lane % 4 * 2 + i) ? score : -HUGE_VALF;
            };
#pragma unroll
            for (int j = 0; j < 16; ++j) *reinterpret_cast<float2*>(out + 8 * j) = {counted(j, 0), counted(j, 1)};
          }
        }
      } else {
        // The largest of each four scores of a query: [2 quad + half].
        float largest[16];
#pragma unroll
        for (int q = 0; q < 16; ++q) {
          const float* s = sums + 8 * (q / 2) + 2 * (q % 2);
          largest[q] = fmaxf(fmaxf(s[0], s[1]), fmaxf(s[4], s[5]));
        }
        float most[2] = {largest[0], largest[1]};
#pragma unroll
        for (int q = 2; q < 16; ++q) most[q % 2] = fmaxf(most[q % 2], largest[q]);
        if (__any_sync(0xFFFFFFFF, !(most[0] < least[0]) || !(most[1] < least[1]))) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            unsigned hits[8];
#pragma unroll
            for (int q = 0; q < 8; ++q) hits[q] = __ballot_sync(0xFFFFFFFF, !(largest[2 * q + half] < least[half]));
#pragma unroll
            for (int q = 0; q < 8; ++q) {
              if (hits[q] == 0) continue;
              const float* s = sums + 8 * q + 2 * half;
              passed.add(hits[q], lane, {s[0], s[1], s[4], s[5]},
                         {place_of(lane / 4 + 8 * half, lane % 4 * 2 + 16 * q), static_cast<std::uint32_t>(tile),
                          static_cast<std::uint32_t>(first_query), 0});
            }
          }
          // A stream that is full loses rows: its queries are not certified.
          if (passed.count > passed.capacity && lane < 16) a.queries.lost[first_query + lane] = 1;
        }
      }
    }
    if constexpr (!kStreamQueries) {
      if (lane == 0) hopper::barrier_arrive(&barriers->queries_empty);
    }
  }
  if (kEpilogue == Epilogue::compare && lane == 0) a.streams.counts[stream] = min(passed.count, passed.capacity);
}

template <bool kStreamQueries, Epilogue kEpilogue>
__global__ void __launch_bounds__(kThreads, 1) screen_kernel(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) char memory[];
  auto* barriers = reinterpret_cast<Barriers*>(memory);
  char* resident = memory + kBarrierBytes;
  char* ring = resident + (kStreamQueries ? 0 : static_cast<std::size_t>(kQueryStepBytes) * a.shape.steps);
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.shape.slots; ++i) {
      hopper::barrier_init(&barriers->full[i], 1);
      hopper::barrier_init(&barriers->empty[i], kConsumers / 32);
    }
    hopper::barrier_init(&barriers->queries_full, 1);
    hopper::barrier_init(&barriers->queries_empty, kConsumers / 32);
    hopper::barrier_init_fence();
  }
  __syncthreads();
  if (__shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x / 128), 0) == kGroups) {
    hopper::give_registers<24>();  // of the 96 each has at launch: 4 x 112 + 24 <= 5 x 96
    if (threadIdx.x == kConsumers) feed<kStreamQueries>(a, barriers, resident, ring);
  } else {
    hopper::take_registers<112>();
    consume<kStreamQueries, kEpilogue>(a, barriers, resident, ring);
  }
}

// From the streams to the queries' lists, a block a stream, four threads an entry; leaves out scores below the
// threshold, rows that are none, and those that the query may not have.
__global__ void deal_kernel(PackedTable table, ScreenQueries queries, Streams streams) {
  const std::uint32_t count = streams.counts[blockIdx.x];
  const Passed* stream = streams.passed + static_cast<std::int64_t>(blockIdx.x) * streams.capacity;
  const int which = static_cast<int>(threadIdx.x % 4);
  for (std::uint32_t i = threadIdx.x / 4; i < count; i += blockDim.x / 4) {
    const Passed& passed = stream[i];
    const float score = passed.scores[which];
    const std::int64_t query = passed.first_query + query_in(passed.place);
    const std::int64_t number =
        packed_number(table, passed.tile * std::int64_t{kTableTile} + row_in(passed.place) + row_of_score(which));
    if (query >= queries.rows || number >= table.chosen.count || score < queries.thresholds[query]) continue;
    if (!Available(queries.eligible, query).any(table.chosen, number)) continue;
    const std::uint32_t place = atomicAdd(&queries.counts[query], 1U);
    if (place < queries.capacity) {
      queries.survivors[query * queries.capacity + place] = {score, static_cast<std::uint32_t>(number)};
    }
  }
}

__global__ void pick_kernel(PackedTable table, ScreenQueries queries, std::int64_t begin, std::int64_t positions,
                            const float* scores) {
  const std::int64_t query = blockIdx.y + static_cast<std::int64_t>(blockIdx.z) * gridDim.y;
  const std::int64_t place = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (query >= queries.rows || place >= positions) return;
  const float score = scores[query * positions + place];
  const std::int64_t number = packed_number(table, begin * kTableTile + place);
  if (score < queries.thresholds[query] || number >= table.chosen.count) return;
  if (!Available(queries.eligible, query).any(table.chosen, number)) return;
  const std::uint32_t at = atomicAdd(&queries.counts[query], 1U);
  if (at < queries.capacity) {
    queries.survivors[query * queries.capacity + at] = {score, static_cast<std::uint32_t>(number)};
  }
}

// Queries that are wider than this are streamed beside the table.
constexpr int kMostResidentSteps = 18;

Shape shape_of(const Engine& engine, int columns, std::int64_t query_tiles, std::int64_t tiles, bool& streams) {
  Shape shape{};
  shape.steps = columns / kStep;
  streams = shape.steps > kMostResidentSteps;
  const std::size_t room = engine.shared_memory - 1024 - kBarrierBytes -
                           (streams ? 0 : static_cast<std::size_t>(kQueryStepBytes) * shape.steps);
  const std::size_t step_bytes = kTableStepBytes + (streams ? kQueryStepBytes : 0);
  // A slot is a whole tile where the ring holds some of those, else three or four steps. Then a tile's last slot should
  // not be short.
  constexpr std::size_t kTilesAhead = 3;
  const bool whole = !streams && room / (step_bytes * shape.steps) >= kTilesAhead;
  const int widest = whole ? shape.steps : streams ? 3 : 4;
  const int slots_a_tile = (shape.steps + widest - 1) / widest;
  shape.steps_a_slot = (shape.steps + slots_a_tile - 1) / slots_a_tile;
  shape.slots = static_cast<int>(std::min<std::size_t>(room / (step_bytes * shape.steps_a_slot), kMostSlots));
  // Runs of table tiles: as many as fill the multiprocessors evenly, each long enough to pay for loading the queries.
  const std::int64_t blocks = engine.multiprocessors;
  const std::int64_t most = std::max<std::int64_t>(1, std::min<std::int64_t>(tiles, 16 * blocks));
  double best = 0;
  shape.splits = 1;
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    const std::int64_t items = splits * query_tiles;
    const std::int64_t rounds = (items + blocks - 1) / blocks;
    const double run = static_cast<double>((tiles + splits - 1) / splits);
    const double share = static_cast<double>(tiles) * static_cast<double>(query_tiles) /
                         (static_cast<double>(rounds * blocks) * (run + 2));  // an item costs about two tiles to begin
    if (share > best * 1.005) {
      best = share;
      shape.splits = static_cast<int>(splits);
    }
    if (rounds > 16 && splits > 1) break;
  }
  return shape;
}

template <bool kStreamQueries, Epilogue kEpilogue>
unsigned launch(const Engine& engine, const Arguments& a) {
  const auto kernel = screen_kernel<kStreamQueries, kEpilogue>;
  const std::size_t slot =
      static_cast<std::size_t>(kTableStepBytes + (kStreamQueries ? kQueryStepBytes : 0)) * a.shape.steps_a_slot;
  const std::size_t bytes = kBarrierBytes +
                            (kStreamQueries ? 0 : static_cast<std::size_t>(kQueryStepBytes) * a.shape.steps) +
                            slot * a.shape.slots;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "shared memory of the screen");
  const std::int64_t items = a.queries.tile_count * a.shape.splits;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(items, engine.multiprocessors));
  kernel<<<blocks, kThreads, bytes, engine.stream>>>(a);
  check_launch("screen");
  return blocks;
}

template <Epilogue kEpilogue>
void run(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
         std::int64_t end, const Streams& streams, float* scores, int parts) {
  if (begin >= end || queries.rows == 0) return;
  bool stream_queries = false;
  Arguments a{table, queries, begin, end, {}, streams, scores, parts};
  a.shape = shape_of(engine, table.columns, queries.tile_count, end - begin, stream_queries);
  const unsigned blocks = stream_queries ? launch<true, kEpilogue>(engine, a) : launch<false, kEpilogue>(engine, a);
  if constexpr (kEpilogue == Epilogue::compare) {
    deal_kernel<<<blocks*(kConsumers / 32), 128, 0, engine.stream>>>(table, queries, streams);
    check_launch("deal");
  }
}

}  // namespace

std::int64_t stream_count(const Engine& engine) {
  return static_cast<std::int64_t>(engine.multiprocessors) * (kConsumers / 32);
}

void screen(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
            std::int64_t end, const Streams& streams) {
  run<Epilogue::compare>(engine, table, queries, begin, end, streams, nullptr, 0);
}

void screen_best(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
                 std::int64_t end, int parts, float* best) {
  run<Epilogue::best>(engine, table, queries, begin, end, {}, best, parts);
}

void screen_all(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
                std::int64_t end, float* scores) {
  run<Epilogue::all>(engine, table, queries, begin, end, {}, scores, 0);
}

void pick(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
          std::int64_t end, const float* scores) {
  constexpr std::int64_t kMostInARow = 1 << 15;
  const std::int64_t positions = (end - begin) * kTableTile;
  const auto rows = static_cast<unsigned>(std::min(queries.rows, kMostInARow));
  const dim3 blocks(blocks_for(positions, 256), rows, blocks_for(queries.rows, rows));
  pick_kernel<<<blocks, 256, 0, engine.stream>>>(table, queries, begin, positions, scores);
  check_launch("pick");
}

}  // namespace vicinal::cuda
