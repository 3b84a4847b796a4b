// Method direct (contract clauses 1 to 3): all m n keys, formed block by block (keys.cu), none of them written unless
// it may be an answer. For k lists each query's limit is its k-th key so far, so that after the first blocks next to
// nothing is written and selected (select.cu). Few queries read the rows of the table without packing them (few.cu).
// O(m n d) float64 operations; scratch O(block) whatever m and n.
#include <algorithm>
#include <string>

#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/few.hpp"

namespace vicinal::cuda {
namespace {

constexpr double kWork = 2e10;        // columns of pairs of one launch: some milliseconds, so that a cancel is noticed
constexpr double kPowerWork = 150;    // columns that a power costs
constexpr double kRowWork = 8;        // columns that a pair costs besides its own
constexpr std::int64_t kRows = 8192;  // of a block, where there are queries enough
constexpr std::uint64_t kScratch = std::uint64_t{768} << 20;  // more does not make it faster
constexpr std::int64_t kMaxBlockQueries = 65536;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Queries and rows of a block, padded, and what they take.
struct Sizes {
  bool reading = false;  // rows as they lie: then all queries are in one block
  std::int64_t queries = 0;
  std::int64_t rows = 0;
  std::uint64_t bytes = 0;

  Sizes(const DirectTask& task, std::int64_t n, std::int64_t m, std::uint64_t limit) {
    const Search& search = *task.search;
    const std::int64_t d = search.table.d;
    reading = few_serve(search, m, task.lists.k);
    const double column = search.metric == Metric::minkowski ? kPowerWork : 1;
    const double pairs = kWork / ((static_cast<double>(d) + kRowWork) * column);
    queries = std::min(m, kMaxBlockQueries);
    rows = std::min(n, kRows);
    if (static_cast<double>(queries) * static_cast<double>(rows) > pairs) {
      queries = std::max<std::int64_t>(64, static_cast<std::int64_t>(pairs / static_cast<double>(rows)));
    }
    if (queries >= m) {  // few of them: longer blocks
      queries = m;
      rows = std::clamp<std::int64_t>(static_cast<std::int64_t>(pairs / static_cast<double>(m)), rows, n);
    }
    const std::uint64_t most = std::min(limit, kScratch);
    for (;;) {
      bytes = needed(task, d);
      if (bytes <= most) break;
      const std::int64_t least_queries = std::min<std::int64_t>(m, 64);
      const std::int64_t least_rows = std::min<std::int64_t>(n, 256);
      if (queries <= least_queries && rows <= least_rows) {
        if (bytes <= limit) break;
        throw Failure{ErrorCode::over_memory, "the search needs " + std::to_string(bytes) +
                                                  " bytes of device memory for one block of rows, but " +
                                                  std::to_string(limit) + " are left within the limit"};
      }
      if (rows >= 2 * queries || queries <= least_queries) {
        rows = std::max(least_rows, rows / 2);
      } else {
        queries = std::max(least_queries, queries / 2);
      }
    }
  }

 private:
  [[nodiscard]] std::uint64_t needed(const DirectTask& task, std::int64_t d) const {
    const auto padded_queries = static_cast<std::uint64_t>(round_up(queries, query_tile(queries)));
    const auto padded_rows = static_cast<std::uint64_t>(round_up(rows, row_tile(queries)));
    if (reading) return few_bytes(queries, d, task.lists.k, rows) + 4096;
    std::uint64_t sum = (padded_queries + padded_rows) * (static_cast<std::uint64_t>(d) * sizeof(double) + 1);
    sum += padded_queries * (sizeof(double) + sizeof(unsigned long long));
    if (task.lists.keys != nullptr || task.lists.k > 0) {
      const auto room = static_cast<std::uint64_t>(rows);
      const auto holes = static_cast<std::uint64_t>(std::min(rows, task.lists.k));
      sum += static_cast<std::uint64_t>(queries) * (room * 16 + holes * 4);
    }
    return sum + 4096;
  }
};

/// Rows packed into memory of their own.
struct Packing {
  Buffer<double> values;
  Buffer<std::uint8_t> zero;
  PackedRows rows;

  Packing(const Engine& engine, Metric metric, std::int64_t count, std::int64_t tile, std::int64_t d) {
    rows.stride = round_up(count, tile);
    values = Buffer<double>(engine, rows.stride * d);
    if (metric == Metric::cosine) zero = Buffer<std::uint8_t>(engine, rows.stride);
    rows.values = values.data();
    rows.zero = zero.data();
  }
};

__global__ void fill_kernel(double* values, std::int64_t count, double value) {
  const std::int64_t i = own_number();
  if (i < count) values[i] = value;
}

void refuse_overflow(const Search& search, unsigned long long code) {
  if (code == kNoOverflow) return;
  std::int64_t query = search.first_query + static_cast<std::int64_t>(code >> kOverflowRowBits);
  if (search.numbers != nullptr) {
    check(cudaMemcpy(&query, search.numbers + (code >> kOverflowRowBits), sizeof query, cudaMemcpyDeviceToHost),
          "fetch results");
  }
  const auto row = static_cast<std::int64_t>(code & ((1ULL << kOverflowRowBits) - 1));
  throw Failure{ErrorCode::bad_data, "the distance of query row " + std::to_string(search.first_id + query) +
                                         " and table row " + std::to_string(search.first_id + search.first_row + row) +
                                         " overflows float64; scale the data down"};
}

}  // namespace

Pace::~Pace() {
  for (cudaEvent_t event : events_) {
    if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
  }
}

void Pace::step() {
  cudaEvent_t& event = events_[turn_];  // made while the device works
  if (event == nullptr) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
  check(cudaEventRecord(event, engine_.stream), "record an event");
  turn_ = 1 - turn_;
  if (++steps_ > 1) check(cudaEventSynchronize(events_[turn_]), "search");
  engine_.host.check_cancelled();
}

std::uint64_t direct_bytes(const DirectTask& task, std::int64_t n, std::int64_t m, std::uint64_t limit) {
  return Sizes(task, n, m, limit).bytes;
}

void direct_pass(const Engine& engine, const DirectTask& task) {
  const Search& search = *task.search;
  const std::int64_t n = search.table.n;
  const std::int64_t m = search.queries.n;
  const std::int64_t d = search.table.d;
  if (m > kMaxQueries || n > kMaxRows) throw Failure{ErrorCode::internal, "a pass over too many rows"};
  const Sizes sizes(task, n, m, engine.memory_limit);
  const bool listing = task.lists.keys != nullptr;
  if (listing && sizes.reading) return few_pass(engine, search, task.lists, sizes.rows);
  Packing queries(engine, search.metric, sizes.queries, query_tile(sizes.queries), d);
  Packing rows(engine, search.metric, sizes.rows, row_tile(sizes.queries), d);
  const Buffer<double> keys(engine, listing ? sizes.queries * sizes.rows : 0);
  const Buffer<std::int64_t> ids(engine, listing ? sizes.queries * sizes.rows : 0);
  const Buffer<unsigned long long> counts(engine, listing ? sizes.queries : 0);
  const Buffer<std::int32_t> holes(engine, listing ? sizes.queries * std::min(sizes.rows, task.lists.k) : 0);
  const Buffer<double> limits(engine, listing ? 0 : sizes.queries);
  const Buffer<unsigned long long> overflow(engine, 1);
  check(cudaMemsetAsync(overflow.data(), 0xff, overflow.bytes(), engine.stream), "clear results");
  if (listing) {
    counts.zero();
  } else {
    fill_kernel<<<blocks_for(sizes.queries, 256), 256, 0, engine.stream>>>(limits.data(), sizes.queries,
                                                                           task.largest_key);
    check_launch("fill");
  }

  Pace pace(engine);
  for (std::int64_t q = 0; q < m; q += sizes.queries) {
    const std::int64_t asked = std::min(sizes.queries, m - q);
    pack_rows(engine, search.metric, search.queries, q, asked, queries.rows);
    RunningLists lists = task.lists;
    KeySink sink;
    sink.overflow = overflow.data();
    if (listing) {
      lists.keys += q * lists.k;
      lists.ids += q * lists.k;
      lists.sizes += q;
      lists.limits += q;
      sink.limits = lists.limits;
      sink.counts = counts.data();
      sink.keys = keys.data();
      sink.ids = ids.data();
      sink.room = sizes.rows;
    } else {
      sink.limits = limits.data();
      sink.counts = task.counts;
      sink.keys = task.keys;
      sink.ids = task.ids;
      sink.room = task.room;
      if (task.slots != nullptr) {
        sink.slots = task.slots + q;
        sink.offsets = task.offsets;
      } else if (sink.counts += q; task.offsets != nullptr) {
        sink.offsets = task.offsets + q;
      } else if (sink.keys != nullptr) {
        sink.keys += q * task.room;
        sink.ids += q * task.room;
      }
    }
    for (std::int64_t r = 0, count = 0; r < n; r += count) {
      count = std::min(sizes.rows, n - r);
      pack_rows(engine, search.metric, search.table, r, count, rows.rows);
      form_keys(engine, {&search, q, r}, queries.rows, rows.rows, sink);
      if (listing) {
        take_candidates(engine, lists, {keys.data(), ids.data(), counts.data(), sizes.rows, holes.data()}, asked);
      }
      pace.step();
      engine.host.progress("search",
                           (static_cast<double>(q) +
                            static_cast<double>(asked) * static_cast<double>(r + count) / static_cast<double>(n)) /
                               static_cast<double>(m));
    }
  }
  unsigned long long code = kNoOverflow;
  check(cudaMemcpyAsync(&code, overflow.data(), sizeof code, cudaMemcpyDeviceToHost, engine.stream), "fetch results");
  engine.synchronize();
  refuse_overflow(search, code);
}

void direct_k_lists(const Engine& engine, const Search& search, const KLists& lists) {
  const std::int64_t m = search.queries.n;
  DirectTask task;
  task.search = &search;
  task.lists = {lists.k, lists.distances, lists.ids};
  if (few_serve(search, m, lists.k)) return direct_pass(engine, task);  // which begins them and puts them in order
  const Buffer<std::int64_t> sizes(engine, m);
  const Buffer<double> limits(engine, m);
  task.lists.sizes = sizes.data();
  task.lists.limits = limits.data();
  clear_lists(engine, task.lists, m);
  direct_pass(engine, task);
  finish_lists(engine, search.metric, search.root, lists.distances, lists.ids, nullptr, lists.k, m);
}

}  // namespace vicinal::cuda
