// The exact half of the fused search: a warp a query reads the query's scores, finds the k best of them, computes their
// float64 keys (eight lanes a key), and has with the k-th of these keys an upper limit of the k-th neighbor's; from it
// follows the threshold (formulas/nearest/half_screen.hpp). At the end what still passes is ranked by (key, id) and
// written out. A warp and not a block, because every step is a chain of latencies: what counts is how many queries are
// under way. Contract clauses 1 to 3 and 5. Cost a query and call: O(s) for s scores, k to 1.25 k keys.
#include <algorithm>
#include <cstddef>

#include "cuda/base/exact_key.cuh"
#include "cuda/base/shared_memory.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/screen/cut.cuh"
#include "cuda/nearest/screen/refine.hpp"
#include "cuda/nearest/screen/threshold.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kWarps = 4;                // queries of a block
constexpr int kBlocks = 8;               // of a multiprocessor, for which registers are left
constexpr int kMaxSharedColumns = 1024;  // of a query that is kept in shared memory

// Rows that may be ranked at the end, of lists of `capacity`: the answers, ties, and what the bound could not tell from
// them; a quarter of a list, so that many queries fit on a multiprocessor.
constexpr int room_for(int k, int capacity) {
  return std::min(capacity, std::max(2 * k + 128, capacity / 4));
}

// A warp's part of shared memory.
struct Shared {
  double* query;           // [d], or none where d is large
  double* keys;            // [ranked]
  std::uint32_t* numbers;  // [ranked] of chosen rows
};
__host__ __device__ constexpr int shared_columns(int d) {
  return d <= kMaxSharedColumns ? d : 0;
}
__host__ __device__ constexpr std::size_t shared_bytes(int d, int ranked) {
  return (static_cast<std::size_t>(shared_columns(d)) * 8 + static_cast<std::size_t>(ranked) * 12 + 15) / 16 * 16;
}
__device__ Shared shared_of(int d, int ranked) {
  extern __shared__ __align__(16) char memory[];
  auto* query = reinterpret_cast<double*>(memory + threadIdx.x / 32 * shared_bytes(d, ranked));
  auto* keys = query + shared_columns(d);
  return {query, keys, reinterpret_cast<std::uint32_t*>(keys + ranked)};
}

__device__ __forceinline__ Scores scores_of(const Survivor* list) {
  static_assert(sizeof(Survivor) == 2 * sizeof(float) && offsetof(Survivor, score) == 0);
  return {&list->score, 2};
}

template <class T>
struct Exact {
  const T* table;
  Chosen chosen;
  const double* query;
  Metric metric;
  bool zero;
  int d;
  __device__ void keys_of(const std::uint32_t* numbers, int first, int count, double* keys) const {
    __syncwarp();
    const unsigned mask = core::mask_of_eight();
    const bool speaks = threadIdx.x % 8 == 0;
    int i = first + static_cast<int>(threadIdx.x % 32 / 8);
    if (metric == Metric::euclidean || metric == Metric::sqeuclidean) {
      for (; i + 4 < count; i += 8) {
        const T* const rows[2] = {table + chosen.row(numbers[i]) * d, table + chosen.row(numbers[i + 4]) * d};
        double two[2];
        squared_differences(query, rows, d, mask, two);
        if (speaks) keys[i] = two[0];
        if (speaks) keys[i + 4] = two[1];
      }
    }
    for (; i < count; i += 4) {
      const double key = exact_key(metric, query, zero, table + chosen.row(numbers[i]) * d, d, mask);
      if (speaks) keys[i] = key;
    }
    __syncwarp();
  }
};

// Adds to numbers[held ..) the rows of the entries that `wanted`; returns how many there are then. Those beyond `room`
// are counted, not stored.
template <class Wanted, class NumberOf>
__device__ int gather(std::uint32_t* numbers, int held, int room, int count, const Wanted& wanted,
                      const NumberOf& number_of) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 4
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane;
    const bool mine = i < count && wanted(i);
    const unsigned hits = __ballot_sync(kWholeWarp, mine);
    if (hits == 0) continue;
    const int place = held + __popc(hits & ((1U << lane) - 1));
    if (mine && place < room) numbers[place] = number_of(i);
    held += __popc(hits);
  }
  return held;
}

struct Best {
  int found;          // rows whose keys are known, in shared.numbers and shared.keys
  std::uint32_t cut;  // every entry that reaches it is among them, if there was room
};
// Lowers the query's limit to the k-th key of its best scores.
template <class T, class NumberOf>
__device__ Best lower_limit(const Shared& shared, int room, int count, int k, const Exact<T>& exact,
                            const Scores& score_of, const NumberOf& number_of, QueryFacts& facts) {
  const std::uint32_t cut = cut_of_scores(score_of, count, k);
  const int reached = gather(
      shared.numbers, 0, room, count, [&](int i) { return ordered(score_of(i)) >= cut; }, number_of);
  const int found = min(reached, room);
  exact.keys_of(shared.numbers, 0, found, shared.keys);
  if (found >= k) facts.limit_key = fmin(facts.limit_key, kth_smallest(shared.keys, found, k));
  return {reached, cut};
}

struct Arguments {
  std::int64_t queries;
  Chosen chosen;
  Eligible eligible;
  Quantization::Numbers frame;
  QueryFacts* facts;
  float* thresholds;
  __half* tiles;
  const double* wide;
  std::uint32_t* counts;
  Survivor* survivors;
  const std::uint8_t* lost;
  std::uint32_t capacity;
  int k;
  int room;  // rows that a warp can rank
};
Arguments arguments_of(const PackedQueries& q, const Chosen& chosen, int k, int room) {
  return {q.view.rows,
          chosen,
          q.view.eligible,
          q.frame,
          q.facts.data(),
          q.thresholds.data(),
          q.tiles.data(),
          q.wide.data(),
          q.counts.data(),
          q.survivors.data(),
          q.view.lost,
          q.view.capacity,
          k,
          room};
}
__device__ std::int64_t query_of_warp() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
}

// Brings the query into shared memory, if there is room for it.
template <class T>
__device__ Exact<T> exact_of(const Arguments& a, const T* table, std::int64_t query, const Shared& shared,
                             const QueryFacts& facts) {
  const int d = a.frame.d;
  const double* wide = a.wide + query * d;
  if (shared_columns(d) > 0) {
    for (int j = static_cast<int>(threadIdx.x % 32); j < d; j += 32) shared.query[j] = wide[j];
    __syncwarp();
    wide = shared.query;
  }
  return {table, a.chosen, wide, a.frame.metric, facts.zero != 0, d};
}

// Threshold and spare columns that follow from the query's limit.
__device__ float renew_threshold(const Arguments& a, std::int64_t query, QueryFacts& facts, bool first) {
  float threshold = 0;
  if (threadIdx.x % 32 == 0) {
    __half* tile = a.tiles + query / kQueryTile * kQueryTile * a.frame.columns;
    threshold = renewed_threshold(a.frame, facts, first, tile, static_cast<int>(query % kQueryTile));
    a.thresholds[query] = threshold;
    a.facts[query] = facts;
  }
  facts.form = static_cast<core::HalfForm>(__shfl_sync(kWholeWarp, static_cast<int>(facts.form), 0));
  return __shfl_sync(kWholeWarp, threshold, 0);
}

template <class T>
__global__ void __launch_bounds__(kWarps * 32, kBlocks)
    seed_kernel(Arguments a, const T* table, PackedTable packed, const float* best, int count, int bests) {
  const std::int64_t query = query_of_warp();
  if (query >= a.queries) return;
  const Shared shared = shared_of(a.frame.d, a.room);
  QueryFacts facts = a.facts[query];
  const float* mine = best + query * count;
  const auto number_of = [&](int i) {
    return static_cast<std::uint32_t>(
        packed_number(packed, i / bests * std::int64_t{kTableTile} + row_of_best(mine[i])));
  };
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  lower_limit(shared, a.room, count, a.k, exact, {mine, 1}, number_of, facts);
  renew_threshold(a, query, facts, true);
}

// The query's list, what is known of the query, and whether all that passed is in the list.
struct Listed {
  Shared shared;
  QueryFacts facts;
  const Survivor* list;
  int count;
};
__device__ __forceinline__ Listed list_of(const Arguments& a, std::int64_t query) {
  QueryFacts facts = a.facts[query];
  const std::uint32_t added = a.counts[query];
  if (added > a.capacity || a.lost[query] != 0) facts.overflowed = 1;
  return {shared_of(a.frame.d, a.room), facts, a.survivors + query * a.capacity,
          static_cast<int>(min(added, a.capacity))};
}

// Drops what lies below the threshold; what stays moves to the front.
__device__ void drop_below(const Arguments& a, std::int64_t query, int count, float least) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  Survivor* list = a.survivors + query * a.capacity;
  int kept = 0;
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane;
    const Survivor entry = i < count ? list[i] : Survivor{};
    const bool stays = i < count && !(entry.score < least);
    const unsigned hits = __ballot_sync(kWholeWarp, stays);
    // Never beyond what the warp has read.
    if (stays) list[kept + __popc(hits & ((1U << lane) - 1))] = entry;
    kept += __popc(hits);
  }
  if (lane == 0) a.counts[query] = static_cast<std::uint32_t>(kept);
}

// Scores of rows that passed while nothing was known of the query's limit are no bounds: its spare columns had no reach
// to allow for. Each gets the highest threshold that a row of its key must pass.
template <class T>
__device__ void rescore(const Arguments& a, std::int64_t query, int count, const Shared& shared, const Exact<T>& exact,
                        const QueryFacts& facts) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  Survivor* list = a.survivors + query * a.capacity;
  const int step = min(32, a.room);
  for (int first = 0; first < count; first += step) {
    const int some = min(step, count - first);
    __syncwarp();
    if (lane < some) shared.numbers[lane] = list[first + lane].number;
    exact.keys_of(shared.numbers, 0, some, shared.keys);
    if (lane < some) list[first + lane].score = threshold_of(a.frame, facts, shared.keys[lane]);
  }
  __syncwarp();
}
__device__ bool is_open(const QueryFacts& facts) {
  return !(facts.limit_key <= 0x1.fffffffffffffp1023);
}

template <class T>
__global__ void __launch_bounds__(kWarps * 32, kBlocks) tighten_kernel(Arguments a, const T* table) {
  const std::int64_t query = query_of_warp();
  if (query >= a.queries) return;
  auto [shared, facts, list, count] = list_of(a, query);
  if (count <= a.k) {
    if (threadIdx.x % 32 == 0) a.facts[query] = facts;
    return;
  }
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  const bool was_open = is_open(facts);
  lower_limit(
      shared, a.room, count, a.k, exact, scores_of(list), [&](int i) { return list[i].number; }, facts);
  const float least = renew_threshold(a, query, facts, was_open);
  if (was_open) rescore(a, query, count, shared, exact, facts);
  drop_below(a, query, count, least);
}

// limits null: all have the same.
__global__ void resume_kernel(Arguments a, const double* limits, double limit) {
  const std::int64_t query = own_number();
  if (query >= a.queries) return;
  QueryFacts facts = a.facts[query];
  facts.limit_key = limits != nullptr ? limits[query] : limit;
  __half* tile = a.tiles + query / kQueryTile * kQueryTile * a.frame.columns;
  a.thresholds[query] = renewed_threshold(a.frame, facts, true, tile, static_cast<int>(query % kQueryTile));
  a.facts[query] = facts;
}

struct Outputs {
  std::int64_t* ids;
  double* distances;
  const std::int64_t* rows;  // null: the query's own number
  unsigned long long* survivors;
  Unanswered unanswered;
};

// By one lane: the query goes further down the ladder, with the limit that is known.
__device__ void leave(const Unanswered& unanswered, std::int64_t query, const QueryFacts& facts) {
  const std::uint32_t place = atomicAdd(unanswered.count, 1U);
  unanswered.queries[place] = query;
  unanswered.limits[place] = facts.limit_key;
}

// Of ranked rows only those are kept whose keys, to 20 bits, are among the k smallest, ties included; returns how many
// they are. They move to the front.
__device__ int keep_best(const Shared& shared, int count, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::uint32_t cut = cut_of_keys(shared.keys, count, k, k + slack_of(k));
  int kept = 0;
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane;
    const double key = i < count ? shared.keys[i] : 0;
    const std::uint32_t number = i < count ? shared.numbers[i] : 0;
    const bool stays = i < count && nearness(key) >= cut;
    const unsigned hits = __ballot_sync(kWholeWarp, stays);
    __syncwarp();  // all have read what is overwritten now
    if (stays) {
      const int place = kept + __popc(hits & ((1U << lane) - 1));
      shared.keys[place] = key;
      shared.numbers[place] = number;
    }
    kept += __popc(hits);
    __syncwarp();
  }
  return kept;
}

// How many rows of the table the query may have of those that the numbers stand for.
__device__ std::int64_t rows_available(const Arguments& a, std::int64_t query, const std::uint32_t* numbers,
                                       int count) {
  const Available available(a.eligible, query);
  __syncwarp();
  unsigned long long sum = 0;
  for (int i = static_cast<int>(threadIdx.x % 32); i < count; i += 32) {
    sum += static_cast<unsigned long long>(available.of(a.chosen, numbers[i]));
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, step);
  return static_cast<std::int64_t>(sum);
}

// One query's answers.
struct Answers {
  int k;
  bool root;  // the distance is the key's root
  std::int64_t first_row;
  std::int64_t* ids;
  double* distances;
  __device__ void put(std::int64_t place, std::int64_t row, double key) const {
    if (place >= k) return;
    ids[place] = first_row + row;
    distances[place] = root ? __dsqrt_rn(key) : key;
  }
};

// Where numbers stand for several equal rows: the warp takes a number at a time. All rows with smaller keys come before
// its own, of the rows with the same key those with smaller ids.
__device__ void rank_groups(const Arguments& a, std::int64_t query, const Shared& shared, int left,
                            const Answers& answers) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const Available available(a.eligible, query);
  for (int i = 0; i < left; ++i) {
    const double key = shared.keys[i];
    unsigned long long before = 0;
    int ties = 0;
    for (int j = lane; j < left; j += 32) {
      if (shared.keys[j] < key) before += static_cast<unsigned long long>(available.of(a.chosen, shared.numbers[j]));
      ties += j != i && shared.keys[j] == key ? 1 : 0;
    }
    for (int step = 16; step > 0; step /= 2) before += __shfl_xor_sync(kWholeWarp, before, step);
    ties = sum_of_warp(ties);
    if (before >= static_cast<unsigned long long>(a.k)) continue;
    const std::uint32_t number = shared.numbers[i];
    const bool has_own = a.chosen.has(number, available.own);
    const bool has_excluded = a.chosen.has(number, available.excluded);
    // Two of them at most are left out.
    const std::int64_t most = min(static_cast<std::int64_t>(a.chosen.sizes[number]), std::int64_t{a.k} + 2);
    for (std::int64_t place = lane; place < most; place += 32) {
      const std::int64_t row = a.chosen.members[a.chosen.firsts[number] + place];
      if (row == available.own || row == available.excluded) continue;
      std::int64_t rank = static_cast<std::int64_t>(before) + place - (has_own && available.own < row ? 1 : 0) -
                          (has_excluded && available.excluded < row ? 1 : 0);
      for (int j = 0; ties > 0 && j < left; ++j) {
        if (j == i || shared.keys[j] != key) continue;
        const std::uint32_t other = shared.numbers[j];
        rank += a.chosen.rows_before(other, row);
        if (a.chosen.has(other, available.own) && available.own < row) --rank;
        if (a.chosen.has(other, available.excluded) && available.excluded < row) --rank;
      }
      answers.put(rank, row, key);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kWarps * 32, kBlocks) finish_kernel(Arguments a, const T* table, Outputs out) {
  const std::int64_t query = query_of_warp();
  if (query >= a.queries) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  auto [shared, facts, list, count] = list_of(a, query);
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  const auto number_of = [&](int i) { return list[i].number; };
  if (is_open(facts)) rescore(a, query, count, shared, exact, facts);
  // The best first: their keys say which of the others still matter.
  const Best best = lower_limit(shared, a.room, count, a.k, exact, scores_of(list), number_of, facts);
  float least = lane == 0 ? current_threshold(a.frame, facts) : 0;
  least = __shfl_sync(kWholeWarp, least, 0);
  const int left = gather(
      shared.numbers, best.found, a.room, count,
      [&](int i) { return ordered(list[i].score) < best.cut && !(list[i].score < least); }, number_of);
  std::int64_t available = min(left, a.room);
  if (a.chosen.grouped()) available = rows_available(a, query, shared.numbers, static_cast<int>(available));
  if (facts.overflowed != 0 || available < a.k || left > a.room) {
    if (lane == 0) leave(out.unanswered, out.rows != nullptr ? out.rows[query] : query, facts);
    return;
  }
  exact.keys_of(shared.numbers, best.found, left, shared.keys);
  const int ranked = left > a.k + 32 ? keep_best(shared, left, a.k) : left;
  const std::int64_t row = out.rows != nullptr ? out.rows[query] : query;
  const Answers answers{a.k, a.frame.metric == Metric::euclidean, a.eligible.first_row, out.ids + row * a.k,
                        out.distances + row * a.k};
  if (a.chosen.grouped()) {
    rank_groups(a, query, shared, ranked, answers);
  } else {
    for (int i = lane; i < ranked; i += 32) {
      const double key = shared.keys[i];
      const std::uint32_t number = shared.numbers[i];  // in the order of the ids
      int before = 0;
      for (int j = 0; j < ranked; ++j) before += core::nearer(shared.keys[j], shared.numbers[j], key, number) ? 1 : 0;
      answers.put(before, a.chosen.row(number), key);
    }
  }
  if (lane == 0) atomicAdd(out.survivors, static_cast<unsigned long long>(left));
}

struct Collection {
  DirectTask task;           // what of it says where keys go
  const std::int64_t* rows;  // null: the query's own number
  unsigned long long* survivors;
  Unanswered unanswered;
};

// 32 survivors at a time: their keys, then those within the limit in turn, each with all rows that it stands for.
template <class T>
__global__ void __launch_bounds__(kWarps * 32) collect_kernel(Arguments a, const T* table, Collection out) {
  const std::int64_t query = query_of_warp();
  if (query >= a.queries) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  auto [shared, facts, list, count] = list_of(a, query);
  const std::int64_t slot = out.rows != nullptr ? out.rows[query] : query;
  if (facts.overflowed != 0) {
    if (lane == 0) leave(out.unanswered, slot, facts);
    return;
  }
  const DirectTask& task = out.task;
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  const Available available(a.eligible, query);
  const std::int64_t begin = task.offsets != nullptr ? task.offsets[slot] : slot * task.room;
  const std::int64_t room = task.offsets != nullptr ? task.offsets[slot + 1] - begin : task.room;
  auto found = static_cast<std::int64_t>(task.counts[slot]);
  const auto put = [&](std::int64_t place, std::int64_t row, double key) {
    if (task.keys == nullptr || place >= room) return;
    task.keys[begin + place] = key;
    task.ids[begin + place] = a.eligible.first_row + row;
  };
  for (int first = 0; first < count; first += 32) {
    const int some = min(32, count - first);
    __syncwarp();
    if (lane < some) shared.numbers[lane] = list[first + lane].number;
    exact.keys_of(shared.numbers, 0, some, shared.keys);
    const bool within = lane < some && shared.keys[lane] <= task.largest_key;
    unsigned hits = __ballot_sync(kWholeWarp, within);
    if (!a.chosen.grouped()) {
      const int place = __popc(hits & ((1U << lane) - 1));
      if (within) put(found + place, a.chosen.row(shared.numbers[lane]), shared.keys[lane]);
      found += __popc(hits);
      continue;
    }
    for (; hits != 0; hits &= hits - 1) {
      const int hit = __ffs(static_cast<int>(hits)) - 1;
      const std::uint32_t number = shared.numbers[hit];
      const std::int64_t size = a.chosen.sizes[number];
      for (std::int64_t at = 0; at < size; at += 32) {
        const bool is_row = at + lane < size;
        const std::int64_t row = is_row ? a.chosen.members[a.chosen.firsts[number] + at + lane] : 0;
        const bool mine = is_row && row != available.own && row != available.excluded;
        const unsigned taken = __ballot_sync(kWholeWarp, mine);
        if (mine) put(found + __popc(taken & ((1U << lane) - 1)), row, shared.keys[hit]);
        found += __popc(taken);
      }
    }
  }
  if (lane == 0) {
    task.counts[slot] = static_cast<unsigned long long>(found);
    atomicAdd(out.survivors, static_cast<unsigned long long>(count));
  }
}

template <class Kernel, class... Rest>
void launch(const Engine& engine, Kernel kernel, const char* name, const Arguments& a, const Rest&... rest) {
  const std::size_t bytes = kWarps * shared_bytes(a.frame.d, a.room);
  allow_shared_memory(engine, kernel, bytes);
  kernel<<<static_cast<unsigned>((a.queries + kWarps - 1) / kWarps), kWarps * 32, bytes, engine.stream>>>(a, rest...);
  check_launch(name);
}

// Rows that a warp can rank in its part of the shared memory that a block may have.
int room_of_device(const Engine& engine, int d) {
  return (static_cast<int>(engine.shared_memory) / kWarps / 16 * 16 - shared_columns(d) * 8) / 12;
}

}  // namespace

bool can_refine(const Engine& engine, int d, int k) {
  return k + slack_of(k) <= room_of_device(engine, d);
}

void seed(const Engine& engine, const Rows& table, const PackedTable& packed, PackedQueries& queries, int k,
          const float* best, int tiles, int parts) {
  const int bests = static_cast<int>(bests_a_tile(parts));
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    launch(engine, seed_kernel<T>, "seed", arguments_of(queries, packed.chosen, k, k + slack_of(k)), rows, packed, best,
           tiles * bests, bests);
  });
}

void tighten(const Engine& engine, const Rows& table, const Chosen& chosen, PackedQueries& queries, int k) {
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    launch(engine, tighten_kernel<T>, "tighten", arguments_of(queries, chosen, k, k + slack_of(k)), rows);
  });
}

void resume(const Engine& engine, PackedQueries& queries, const double* limits) {
  resume_kernel<<<blocks_for(queries.view.rows, 128), 128, 0, engine.stream>>>(arguments_of(queries, {}, 0, 0), limits,
                                                                               0);
  check_launch("resume");
}

void aim(const Engine& engine, PackedQueries& queries, double largest_key) {
  resume_kernel<<<blocks_for(queries.view.rows, 128), 128, 0, engine.stream>>>(arguments_of(queries, {}, 0, 0), nullptr,
                                                                               largest_key);
  check_launch("aim");
}

void finish(const Engine& engine, const Rows& table, const Chosen& chosen, PackedQueries& queries, const KLists& lists,
            const std::int64_t* outputs, unsigned long long* survivors, const Unanswered& unanswered) {
  const int k = static_cast<int>(lists.k);
  const int room =
      std::min(room_for(k, static_cast<int>(queries.view.capacity)), room_of_device(engine, queries.frame.d));
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    launch(engine, finish_kernel<T>, "finish", arguments_of(queries, chosen, k, room), rows,
           Outputs{lists.ids, lists.distances, outputs, survivors, unanswered});
  });
}

void collect(const Engine& engine, const Rows& table, const Chosen& chosen, PackedQueries& queries,
             const DirectTask& task, const std::int64_t* outputs, unsigned long long* survivors,
             const Unanswered& unanswered) {
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    launch(engine, collect_kernel<T>, "collect", arguments_of(queries, chosen, 0, 32), rows,
           Collection{task, outputs, survivors, unanswered});
  });
}

}  // namespace vicinal::cuda
