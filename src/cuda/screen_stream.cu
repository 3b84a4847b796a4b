// The two sides of a screen's streams: which kernel fills them, and how they are dealt out to the queries' lists.
#include "cuda/screen_stream.cuh"

namespace vicinal::cuda {
namespace {

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
    const std::int64_t row =
        packed_row(table, passed.tile * std::int64_t{kTableTile} + row_in(passed.place) + row_of_score(which));
    if (query >= queries.rows || row >= table.rows || score < queries.thresholds[query]) continue;
    if (!queries.eligible(query, row)) continue;
    const std::uint32_t place = atomicAdd(&queries.counts[query], 1U);
    if (place < queries.capacity) {
      queries.survivors[query * queries.capacity + place] = {score, static_cast<std::uint32_t>(row)};
    }
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
  ScreenArguments a{table, queries, begin, end, {}, streams, nullptr};
  deal_kernel<<<run(engine, a), 128, 0, engine.stream>>>(table, queries, streams);
  check_launch("deal");
}

void screen_all(const Engine& engine, const PackedTable& table, const ScreenQueries& queries, std::int64_t begin,
                std::int64_t end, float* scores) {
  if (begin >= end || queries.rows == 0) return;
  ScreenArguments a{table, queries, begin, end, {}, {}, scores};
  run(engine, a);
}

}  // namespace vicinal::cuda
