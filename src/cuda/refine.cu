// The exact half of the fused search: a warp a query reads the query's scores, finds the k best of them, computes their
// float64 keys (eight lanes a key), and has with the k-th of these keys an upper limit of the k-th neighbor's; from it
// follows the threshold (core/half_screen.hpp). At the end what still passes is ranked by (key, id) and written out.
// A warp and not a block, because every step is a chain of latencies: what counts is how many queries are under way.
// Contract clauses 1 to 3 and 5. Cost a query and call: O(s) for s scores, k to 1.25 k keys.
#include <algorithm>

#include "cuda/exact_key.cuh"
#include "cuda/refine.hpp"
#include "cuda/threshold.cuh"

namespace vicinal::cuda {
namespace {

constexpr unsigned kAll = 0xFFFFFFFF;
constexpr int kWarps = 4;                 // queries of a block
constexpr int kGroups = 128;              // whose maxima stand for all scores where a cut is looked for
constexpr int kMostSharedColumns = 1024;  // of a query that is kept in shared memory

// Unsigned numbers in the order of the floats. -infinity stands for a row that does not count.
__device__ __forceinline__ std::uint32_t ordered(float score) {
  const std::uint32_t bits = __float_as_uint(score);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
constexpr std::uint32_t kNone = 0x007FFFFF;  // ordered(-infinity)
// The same of keys, the smallest first: the upper half of the double's bits, because a key may be beyond float32.
__device__ __forceinline__ std::uint32_t nearness(double key) {
  const auto bits = static_cast<std::uint32_t>(__double2hiint(-key));
  return max((bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U, kNone + 1);
}

// Rows beyond k whose keys are computed because a coarser cut is found sooner.
__host__ __device__ constexpr int slack_of(int k) {
  return k / 4 + 8;
}
// Rows that may be ranked at the end, of lists of `capacity`: the answers, ties, and what the bound could not tell from
// them; a quarter of a list, so that many queries fit on a multiprocessor.
constexpr int room_for(int k, int capacity) {
  return std::min(capacity, std::max(2 * k + 128, capacity / 4));
}

// A warp's part of shared memory.
struct Shared {
  double* query;        // [d], or none where d is large
  double* keys;         // [ranked]
  std::uint32_t* rows;  // [ranked]
};
__host__ __device__ constexpr int shared_columns(int d) {
  return d <= kMostSharedColumns ? d : 0;
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

__device__ __forceinline__ int sum_of_warp(int value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kAll, value);
#else
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAll, value, step);
  return value;
#endif
}

// The largest cut that at least k of the lanes' values reach, as `reaching(cut)` counts them, or a lower one that at
// most `most` reach; kNone + 1, which all rows that count reach, where fewer than k do.
template <class Reaching>
__device__ std::uint32_t cut_for(const Reaching& reaching, int k, int most) {
  std::uint32_t low = kNone + 1;
  std::uint32_t high = 0xFFFFFFFFU;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    const int reached = sum_of_warp(reaching(middle));
    if (reached >= k) {
      low = middle;
      if (reached <= most) break;
    } else {
      high = middle;
    }
  }
  return low;
}

// A cut that at least k of the scores reach, and as a rule not many more: the k-th largest of the maxima of groups, or,
// where k is large or groups are few, of all scores. score_of(i) for i in [0, count).
template <class ScoreOf>
__device__ std::uint32_t cut_of_scores(const ScoreOf& score_of, int count, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (k <= kGroups / 2) {
    constexpr int kMine = kGroups / 32;
    float maxima[kMine];
#pragma unroll
    for (float& largest : maxima) largest = -HUGE_VALF;
    for (int first = kMine * lane; first < count; first += kGroups) {
#pragma unroll
      for (int g = 0; g < kMine; ++g)
        maxima[g] = fmaxf(maxima[g], first + g < count ? score_of(first + g) : -HUGE_VALF);
    }
    std::uint32_t order[kMine];
#pragma unroll
    for (int g = 0; g < kMine; ++g) order[g] = ordered(maxima[g]);
    const std::uint32_t cut = cut_for(
        [&](std::uint32_t at) {
          int reached = 0;
#pragma unroll
          for (int g = 0; g < kMine; ++g) reached += order[g] >= at ? 1 : 0;
          return reached;
        },
        k, k + k / 16);
    if (cut > kNone + 1) return cut;
  }
  return cut_for(
      [&](std::uint32_t at) {
        int reached = 0;
        for (int i = lane; i < count; i += 32) reached += ordered(score_of(i)) >= at ? 1 : 0;
        return reached;
      },
      k, k + slack_of(k));
}

template <class T>
struct Exact {
  const T* table;
  const double* query;
  Metric metric;
  bool zero;
  int d;
  __device__ void keys_of(const std::uint32_t* rows, int first, int count, double* keys) const {
    __syncwarp();
    const unsigned mask = mask_of_eight();
    for (int i = first + static_cast<int>(threadIdx.x % 32 / 8); i < count; i += 4) {
      const double key = exact_key(metric, query, zero, table + static_cast<std::int64_t>(rows[i]) * d, d, mask);
      if (threadIdx.x % 8 == 0) keys[i] = key;
    }
    __syncwarp();
  }
};

// Not below the k-th smallest of keys[0 .. count), count >= k, and above it by 2^-19 of it at most.
__device__ double kth_smallest(const double* keys, int count, int k) {
  const std::uint32_t cut = cut_for(
      [&](std::uint32_t at) {
        int reached = 0;
        for (int i = static_cast<int>(threadIdx.x % 32); i < count; i += 32) {
          reached += nearness(keys[i]) >= at ? 1 : 0;
        }
        return reached;
      },
      k, k);
  // The largest of those that reach it.
  double largest = -HUGE_VAL;
  for (int i = static_cast<int>(threadIdx.x % 32); i < count; i += 32) {
    if (nearness(keys[i]) >= cut) largest = fmax(largest, keys[i]);
  }
  for (int step = 16; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(kAll, largest, step));
  return largest;
}

// Adds to rows[held ..) the rows of the entries that `wanted`; returns how many there are then. Those beyond `room` are
// counted, not stored.
template <class Wanted, class RowOf>
__device__ int gather(std::uint32_t* rows, int held, int room, int count, const Wanted& wanted, const RowOf& row_of) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 4
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane;
    const bool mine = i < count && wanted(i);
    const unsigned hits = __ballot_sync(kAll, mine);
    if (hits == 0) continue;
    const int place = held + __popc(hits & ((1U << lane) - 1));
    if (mine && place < room) rows[place] = row_of(i);
    held += __popc(hits);
  }
  return held;
}

struct Best {
  int found;          // rows whose keys are known, in shared.rows and shared.keys
  std::uint32_t cut;  // every entry that reaches it is among them, if there was room
};
// Lowers the query's limit to the k-th key of its best scores.
template <class T, class ScoreOf, class RowOf>
__device__ Best lower_limit(const Shared& shared, int room, int count, int k, const Exact<T>& exact,
                            const ScoreOf& score_of, const RowOf& row_of, QueryFacts& facts) {
  const std::uint32_t cut = cut_of_scores(score_of, count, k);
  const int reached = gather(
      shared.rows, 0, room, count, [&](int i) { return ordered(score_of(i)) >= cut; }, row_of);
  const int found = min(reached, room);
  exact.keys_of(shared.rows, 0, found, shared.keys);
  if (found >= k) facts.limit_key = fmin(facts.limit_key, kth_smallest(shared.keys, found, k));
  return {reached, cut};
}

struct Arguments {
  std::int64_t queries;
  Frame::Numbers frame;
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
Arguments arguments_of(const PackedQueries& q, int k, int room) {
  return {q.view.rows,
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
  return {table, wide, a.frame.metric, facts.zero != 0, d};
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
  return __shfl_sync(kAll, threshold, 0);
}

template <class T>
__global__ void __launch_bounds__(kWarps * 32)
    seed_kernel(Arguments a, const T* table, PackedTable packed, const float* scores, int positions) {
  const std::int64_t query = query_of_warp();
  if (query >= a.queries) return;
  const Shared shared = shared_of(a.frame.d, a.room);
  QueryFacts facts = a.facts[query];
  const float* mine = scores + query * positions;
  const auto row_of = [&](int position) { return static_cast<std::uint32_t>(packed_row(packed, position)); };
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  lower_limit(
      shared, a.room, positions, a.k, exact, [&](int i) { return mine[i]; }, row_of, facts);
  renew_threshold(a, query, facts, true);
}

// The query's list: how long it is, and whether all that passed is in it.
__device__ int list_of(const Arguments& a, std::int64_t query, QueryFacts& facts) {
  facts = a.facts[query];
  const std::uint32_t added = a.counts[query];
  if (added > a.capacity || a.lost[query] != 0) facts.overflowed = 1;
  return static_cast<int>(min(added, a.capacity));
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
    const unsigned hits = __ballot_sync(kAll, stays);
    // Never beyond what the warp has read.
    if (stays) list[kept + __popc(hits & ((1U << lane) - 1))] = entry;
    kept += __popc(hits);
  }
  if (lane == 0) a.counts[query] = static_cast<std::uint32_t>(kept);
}

template <class T>
__global__ void __launch_bounds__(kWarps * 32) tighten_kernel(Arguments a, const T* table) {
  const std::int64_t query = query_of_warp();
  if (query >= a.queries) return;
  const Shared shared = shared_of(a.frame.d, a.room);
  QueryFacts facts;
  const int count = list_of(a, query, facts);
  if (count <= a.k) {
    if (threadIdx.x % 32 == 0) a.facts[query] = facts;
    return;
  }
  const Survivor* list = a.survivors + query * a.capacity;
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  lower_limit(
      shared, a.room, count, a.k, exact, [&](int i) { return list[i].score; }, [&](int i) { return list[i].row; },
      facts);
  drop_below(a, query, count, renew_threshold(a, query, facts, false));
}

__global__ void resume_kernel(Arguments a, const double* limits) {
  const std::int64_t query = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (query >= a.queries) return;
  QueryFacts facts = a.facts[query];
  facts.limit_key = limits[query];
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

template <class T>
__global__ void __launch_bounds__(kWarps * 32) finish_kernel(Arguments a, const T* table, Outputs out) {
  const std::int64_t query = query_of_warp();
  if (query >= a.queries) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const Shared shared = shared_of(a.frame.d, a.room);
  QueryFacts facts;
  const int count = list_of(a, query, facts);
  const Survivor* list = a.survivors + query * a.capacity;
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  const auto score_of = [&](int i) { return list[i].score; };
  const auto row_of = [&](int i) { return list[i].row; };
  // The best first: their keys say which of the others still matter.
  const Best best = lower_limit(shared, a.room, count, a.k, exact, score_of, row_of, facts);
  float least = lane == 0 ? current_threshold(a.frame, facts) : 0;
  least = __shfl_sync(kAll, least, 0);
  const int left = gather(
      shared.rows, best.found, a.room, count,
      [&](int i) { return ordered(list[i].score) < best.cut && !(list[i].score < least); }, row_of);
  if (facts.overflowed != 0 || best.found < a.k || left > a.room) {
    if (lane == 0) {
      const std::uint32_t place = atomicAdd(out.unanswered.count, 1U);
      out.unanswered.queries[place] = out.rows != nullptr ? out.rows[query] : query;
      out.unanswered.limits[place] = facts.limit_key;
    }
    return;
  }
  exact.keys_of(shared.rows, best.found, left, shared.keys);
  // Where many are left, only those are ranked whose keys, to 20 bits, are among the k smallest, ties included.
  const auto value_of_key = [&](int i) { return nearness(shared.keys[i]); };
  std::uint32_t cut = 0;
  if (left > 2 * a.k + 64) {
    cut = cut_for(
        [&](std::uint32_t at) {
          int reached = 0;
          for (int i = lane; i < left; i += 32) reached += value_of_key(i) >= at ? 1 : 0;
          return reached;
        },
        a.k, a.k + slack_of(a.k));
  }
  const std::int64_t row = out.rows != nullptr ? out.rows[query] : query;
  for (int i = lane; i < left; i += 32) {
    if (value_of_key(i) < cut) continue;
    const double key = shared.keys[i];
    const std::uint32_t id = shared.rows[i];
    int before = 0;
    for (int j = 0; j < left; ++j) before += core::nearer(shared.keys[j], shared.rows[j], key, id) ? 1 : 0;
    if (before < a.k) {
      out.ids[row * a.k + before] = id;
      out.distances[row * a.k + before] = a.frame.metric == Metric::euclidean ? __dsqrt_rn(key) : key;
    }
  }
  if (lane == 0) atomicAdd(out.survivors, static_cast<unsigned long long>(left));
}

template <class Kernel, class... Rest>
void launch(const Engine& engine, Kernel kernel, const char* name, const Arguments& a, const Rest&... rest) {
  const std::size_t bytes = kWarps * shared_bytes(a.frame.d, a.room);
  if (bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), name);
  }
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
          const float* scores, int positions) {
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    launch(engine, seed_kernel<T>, "seed", arguments_of(queries, k, k + slack_of(k)), rows, packed, scores, positions);
  });
}

void tighten(const Engine& engine, const Rows& table, PackedQueries& queries, int k) {
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    launch(engine, tighten_kernel<T>, "tighten", arguments_of(queries, k, k + slack_of(k)), rows);
  });
}

void resume(const Engine& engine, PackedQueries& queries, const double* limits) {
  resume_kernel<<<static_cast<unsigned>((queries.view.rows + 127) / 128), 128, 0, engine.stream>>>(
      arguments_of(queries, 0, 0), limits);
  check_launch("resume");
}

void finish(const Engine& engine, const Rows& table, PackedQueries& queries, const KLists& lists,
            const std::int64_t* outputs, unsigned long long* survivors, const Unanswered& unanswered) {
  const int k = static_cast<int>(lists.k);
  const int room =
      std::min(room_for(k, static_cast<int>(queries.view.capacity)), room_of_device(engine, queries.frame.d));
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    launch(engine, finish_kernel<T>, "finish", arguments_of(queries, k, room), rows,
           Outputs{lists.ids, lists.distances, outputs, survivors, unanswered});
  });
}

}  // namespace vicinal::cuda
