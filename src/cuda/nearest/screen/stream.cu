// The two sides of a screen's streams: which kernel fills them, and how they are dealt out to the queries' lists.
#include <algorithm>

#include "cuda/nearest/screen/stream.cuh"

namespace vicinal::cuda {
namespace {

// From the streams to the queries' lists, a block a stream, a thread an entry, of whose four scores seldom more than
// one passes; leaves out scores below the threshold, rows that are none, and those that the query may not have.
__global__ void deal_kernel(PackedTable table, ScreenQueries queries, Streams streams) {
  const std::uint32_t count = streams.counts[blockIdx.x];
  const Passed* stream = streams.passed + static_cast<std::int64_t>(blockIdx.x) * streams.capacity;
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const Passed passed = stream[i];
    const std::int64_t query = passed.first_query + query_in(passed.place);
    if (query >= queries.rows) continue;
    const float threshold = queries.thresholds[query];
    const std::int64_t first = passed.tile * std::int64_t{kTableTile} + row_in(passed.place);
#pragma unroll
    for (int which = 0; which < 4; ++which) {
      const float score = passed.scores[which];
      if (score < threshold) continue;
      const std::int64_t number = packed_number(table, first + row_of_score(which));
      if (number >= table.chosen.count || !Available(queries.eligible, query).any(table.chosen, number)) continue;
      const std::uint32_t place = atomicAdd(&queries.counts[query], 1U);
      if (place < queries.capacity) {
        queries.survivors[query * queries.capacity + place] = {score, static_cast<std::uint32_t>(number)};
      }
    }
  }
}

__global__ void pick_kernel(PackedTable table, ScreenQueries queries, std::int64_t begin, std::int64_t positions,
                            const float* scores) {
  const std::int64_t query = blockIdx.y + static_cast<std::int64_t>(blockIdx.z) * gridDim.y;
  const std::int64_t place = own_number();
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

unsigned run(const Engine& engine, ScreenArguments& a) {
  return engine.portable ? screen_portably(engine, a) : screen_on_hopper(engine, a);
}

}  // namespace

std::int64_t stream_count(const Engine& engine) {
  return std::int64_t{engine.multiprocessors} * (engine.portable ? kPortableWarps : kHopperWarps);
}

void screen(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
            std::int64_t end, const Streams& streams) {
  if (begin >= end || queries.rows == 0) return;
  ScreenArguments a{table, queries, begin, end, {}, streams, nullptr, 0};
  deal_kernel<<<run(engine, a), 128, 0, engine.stream>>>(table, queries, streams);
  check_launch("deal");
}

void screen_best(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
                 std::int64_t end, int parts, float* best) {
  if (begin >= end || queries.rows == 0) return;
  ScreenArguments a{table, queries, begin, end, {}, {}, best, parts};
  run(engine, a);
}

void screen_all(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
                std::int64_t end, float* scores) {
  if (begin >= end || queries.rows == 0) return;
  ScreenArguments a{table, queries, begin, end, {}, {}, scores, 0};
  run(engine, a);
}

void pick(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
          std::int64_t end, const float* scores) {
  constexpr std::int64_t kMaxInARow = 1 << 15;
  const std::int64_t positions = (end - begin) * kTableTile;
  const auto rows = static_cast<unsigned>(std::min(queries.rows, kMaxInARow));
  const dim3 blocks(blocks_for(positions, 256), rows, blocks_for(queries.rows, rows));
  pick_kernel<<<blocks, 256, 0, engine.stream>>>(table, queries, begin, positions, scores);
  check_launch("pick");
}

}  // namespace vicinal::cuda
