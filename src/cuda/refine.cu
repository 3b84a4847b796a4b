// The exact half of the fused search: a block of 128 threads a query reads the query's scores, finds the k best of them
// by bisection, computes their float64 keys (eight lanes a key), and has with the k-th of these keys an upper limit of
// the k-th neighbor's; from it follows the threshold (core/half_screen.hpp). At the end what still passes is ranked by
// (key, id) and written out. Contract clauses 1 to 3 and 5. Cost a query and call: O(s) for s scores, k to 1.25 k keys.
#include "cuda/refine.hpp"

#include <algorithm>

#include "cuda/exact_key.cuh"
#include "cuda/threshold.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kThreads = 128;

// Unsigned numbers in the order of the floats; never 0, which stands for a row that does not count.
__device__ std::uint32_t ordered(float score) {
  const std::uint32_t bits = __float_as_uint(score);
  return max(bits & 0x80000000U ? ~bits : bits | 0x80000000U, 1U);
}

// Rows beyond k whose keys are computed because a coarser cut is found sooner.
__host__ __device__ constexpr int slack_of(int k) {
  return k / 4 + 8;
}

// Rows that may be ranked at the end, of lists of `capacity`: the answers, ties, and what the bound could not tell from
// them; a quarter of a list, so that many blocks fit on a multiprocessor.
constexpr int room_for(int k, int capacity) {
  return std::min(capacity, std::max(2 * k + 128, capacity / 4));
}

// Shared memory of a block, cut from one dynamic array.
struct Shared {
  double* query;         // [d]
  double* keys;          // [ranked]
  std::uint32_t* rows;   // [ranked]
  std::uint32_t* order;  // [listed]
};
__device__ Shared shared_of(int d, int ranked) {
  extern __shared__ __align__(16) char memory[];
  auto* query = reinterpret_cast<double*>(memory);
  auto* keys = query + d;
  auto* rows = reinterpret_cast<std::uint32_t*>(keys + ranked);
  return {query, keys, rows, rows + ranked};
}
std::size_t shared_bytes(int d, int ranked, int listed) {
  return static_cast<std::size_t>(d) * 8 + static_cast<std::size_t>(ranked) * 12 + static_cast<std::size_t>(listed) * 4;
}

// How many of order[0 .. count) reach the cut.
__device__ int count_reaching(const std::uint32_t* order, int count, std::uint32_t cut) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  int mine = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) mine += order[i] >= cut ? 1 : 0;
  mine = __reduce_add_sync(0xFFFFFFFF, mine);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, mine);
  __syncthreads();
  const int reached = total;
  __syncthreads();
  return reached;
}

// A cut that at least k of order[0 .. count) reach, and as a rule not many more: the k-th largest of the maxima of
// kThreads groups, k <= kThreads / 2.
__device__ std::uint32_t cut_by_groups(const std::uint32_t* order, int count, int k) {
  __shared__ __align__(16) std::uint32_t maxima[kThreads];
  __shared__ std::uint32_t cut;
  std::uint32_t mine = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) mine = max(mine, order[i]);
  maxima[threadIdx.x] = mine;
  if (threadIdx.x == 0) cut = 1;
  __syncthreads();
  int before = 0;
  const auto* others = reinterpret_cast<const uint4*>(maxima);
#pragma unroll 8
  for (int i = 0; i < kThreads / 4; ++i) {
    const uint4 o = others[i];
    before += (o.x > mine ? 1 : 0) + (o.y > mine ? 1 : 0) + (o.z > mine ? 1 : 0) + (o.w > mine ? 1 : 0);
  }
  // Equal maxima share a rank: the last rank at or before k - 1 is the k-th's.
  int same = 0;
#pragma unroll 8
  for (int i = 0; i < kThreads / 4; ++i) {
    const uint4 o = others[i];
    same += (o.x == mine ? 1 : 0) + (o.y == mine ? 1 : 0) + (o.z == mine ? 1 : 0) + (o.w == mine ? 1 : 0);
  }
  if (mine > 0 && before < k && before + same >= k) cut = mine;
  __syncthreads();
  return cut;
}

// The same by bisection, for any k: the largest such cut, or one a little lower that at most `most` reach.
__device__ std::uint32_t cut_by_bisection(const std::uint32_t* order, int count, int k, int most) {
  std::uint32_t low = 1;
  std::uint32_t high = 0xFFFFFFFFU;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    const int reached = count_reaching(order, count, middle);
    if (reached >= k) {
      low = middle;
      if (reached <= most) break;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class T>
struct Exact {
  const T* table;
  const double* query;  // in shared memory
  Metric metric;
  bool zero;
  int d;
  __device__ void keys_of(const std::uint32_t* rows, int first, int count, double* keys) const {
    const unsigned mask = mask_of_eight();
    for (int i = first + threadIdx.x / 8; i < count; i += kThreads / 8) {
      const double key = exact_key(metric, query, zero, table + static_cast<std::int64_t>(rows[i]) * d, d, mask);
      if (threadIdx.x % 8 == 0) keys[i] = key;
    }
    __syncthreads();
  }
};

// The k-th smallest of keys[0 .. count), count >= k.
__device__ double kth_smallest(const double* keys, int count, int k) {
  __shared__ double answer;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    int before = 0;
    for (int j = 0; j < count; ++j) before += keys[j] < keys[i] || (keys[j] == keys[i] && j < i) ? 1 : 0;
    if (before == k - 1) answer = keys[i];
  }
  __syncthreads();
  return answer;
}

// Lowers the query's limit to the k-th key of its best scores, order[0 .. count); row_of names the row of an entry.
// Leaves those in shared.rows and shared.keys, takes them out of shared.order, and returns their number.
template <class T, class RowOf>
__device__ int lower_limit(const Shared& shared, int count, int k, const Exact<T>& exact, const RowOf& row_of,
                           QueryFacts& facts) {
  const int most = k + slack_of(k);
  __shared__ int chosen;
  if (threadIdx.x == 0) chosen = 0;
  std::uint32_t cut = k <= kThreads / 2 ? cut_by_groups(shared.order, count, k) : 1;
  if (cut == 1) cut = cut_by_bisection(shared.order, count, k, most);  // k is large, or there are few groups
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) {
    if (shared.order[i] < cut) continue;
    const int place = atomicAdd(&chosen, 1);
    if (place >= most) continue;
    shared.rows[place] = row_of(i);
    shared.order[i] = 0;
  }
  __syncthreads();
  const int found = min(chosen, most);
  exact.keys_of(shared.rows, 0, found, shared.keys);
  if (found < k) return found;  // not enough rows seen: the limit stays
  const double limit = kth_smallest(shared.keys, found, k);
  if (threadIdx.x == 0 && limit < facts.limit_key) facts.limit_key = limit;
  __syncthreads();
  return found;
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
  const std::int64_t* self;
  const std::int64_t* exclude;
  const std::uint8_t* lost;
  std::uint32_t capacity;
  int k;
  [[nodiscard]] __device__ Metric metric() const { return frame.metric; }
  [[nodiscard]] __device__ int d() const { return frame.d; }
};
Arguments arguments_of(const PackedQueries& q, int k) {
  return {q.view.rows,     q.frame,            q.facts.data(), q.thresholds.data(), q.tiles.data(),    q.wide.data(),
          q.counts.data(), q.survivors.data(), q.view.self,    q.view.exclude,      q.view.lost, q.view.capacity, k};
}

// Brings the query into shared memory.
template <class T>
__device__ Exact<T> exact_of(const Arguments& a, const T* table, std::int64_t query, const Shared& shared,
                             const QueryFacts& facts) {
  for (int j = threadIdx.x; j < a.d(); j += kThreads) shared.query[j] = a.wide[query * a.d() + j];
  __syncthreads();
  return {table, shared.query, a.metric(), facts.zero != 0, a.d()};
}

// Threshold and spare columns that follow from the query's limit.
__device__ void renew_threshold(const Arguments& a, std::int64_t query, QueryFacts& facts, bool first) {
  if (threadIdx.x == 0) {
    __half* tile = a.tiles + query / kQueryTile * kQueryTile * a.frame.columns;
    a.thresholds[query] = renewed_threshold(a.frame, facts, first, tile, static_cast<int>(query % kQueryTile));
    a.facts[query] = facts;
  }
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(kThreads) seed_kernel(Arguments a, const T* table, PackedTable packed,
                                                        const float* scores, int positions) {
  const std::int64_t query = blockIdx.x;
  const Shared shared = shared_of(a.d(), a.k + slack_of(a.k));
  __shared__ QueryFacts facts;
  if (threadIdx.x == 0) facts = a.facts[query];
  const std::int64_t self = a.self != nullptr ? a.self[query] : -1;
  const std::int64_t exclude = a.exclude != nullptr ? a.exclude[query] : -1;
  const auto row_of = [&](int position) { return static_cast<std::uint32_t>(packed_row(packed, position)); };
  for (int p = threadIdx.x; p < positions; p += kThreads) {
    const std::int64_t row = packed_row(packed, p);
    const bool counts = row < packed.rows && row != self && row != exclude;
    shared.order[p] = counts ? ordered(scores[query * positions + p]) : 0;
  }
  __syncthreads();
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  lower_limit(shared, positions, a.k, exact, row_of, facts);
  renew_threshold(a, query, facts, true);
}

// Loads the scores of the query's list into shared.order; returns its length.
__device__ int load_list(const Arguments& a, std::int64_t query, const Shared& shared, QueryFacts& facts) {
  const std::uint32_t added = a.counts[query];
  const int count = static_cast<int>(min(added, a.capacity));
  __syncthreads();
  if (threadIdx.x == 0) {
    facts = a.facts[query];
    if (added > a.capacity || a.lost[query] != 0) facts.overflowed = 1;
  }
  const Survivor* list = a.survivors + query * a.capacity;
  for (int i = threadIdx.x; i < count; i += kThreads) shared.order[i] = ordered(list[i].score);
  __syncthreads();
  return count;
}

// Drops what lies below the threshold; what stays moves to the front. Returns how many.
__device__ int drop_below(const Arguments& a, std::int64_t query, int count) {
  __shared__ int kept;
  const float least = a.thresholds[query];
  Survivor* list = a.survivors + query * a.capacity;
  if (threadIdx.x == 0) kept = 0;
  for (int first = 0; first < count; first += kThreads) {
    const int i = first + static_cast<int>(threadIdx.x);
    Survivor entry{};
    bool stays = false;
    if (i < count) {
      entry = list[i];
      stays = !(entry.score < least);
    }
    __syncthreads();
    if (stays) list[atomicAdd(&kept, 1)] = entry;
    __syncthreads();
  }
  __syncthreads();
  const int stayed = kept;
  if (threadIdx.x == 0) a.counts[query] = static_cast<std::uint32_t>(stayed);
  __syncthreads();
  return stayed;
}

template <class T>
__global__ void __launch_bounds__(kThreads) tighten_kernel(Arguments a, const T* table) {
  const std::int64_t query = blockIdx.x;
  __shared__ QueryFacts facts;
  const Shared shared = shared_of(a.d(), a.k + slack_of(a.k));
  const int count = load_list(a, query, shared, facts);
  if (count > a.k) {
    const Survivor* list = a.survivors + query * a.capacity;
    const Exact<T> exact = exact_of(a, table, query, shared, facts);
    lower_limit(shared, count, a.k, exact, [&](int i) { return list[i].row; }, facts);
    renew_threshold(a, query, facts, false);
    drop_below(a, query, count);
  } else if (threadIdx.x == 0) {
    a.facts[query] = facts;
  }
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
  int room;  // rows that can be ranked
};

template <class T>
__global__ void __launch_bounds__(kThreads) finish_kernel(Arguments a, const T* table, Outputs out) {
  const std::int64_t query = blockIdx.x;
  __shared__ QueryFacts facts;
  __shared__ int ranked;
  __shared__ float least;
  const Shared shared = shared_of(a.d(), out.room);
  const int count = load_list(a, query, shared, facts);
  const Survivor* list = a.survivors + query * a.capacity;
  const Exact<T> exact = exact_of(a, table, query, shared, facts);
  // The best first: their keys say which of the others still matter.
  const int found = facts.overflowed != 0 || count >= a.k
                        ? lower_limit(shared, count, a.k, exact, [&](int i) { return list[i].row; }, facts)
                        : 0;
  if (threadIdx.x == 0) {
    ranked = found;
    least = current_threshold(a.frame, facts);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) {
    if (shared.order[i] == 0 || list[i].score < least) continue;
    const int place = atomicAdd(&ranked, 1);
    if (place < out.room) shared.rows[place] = list[i].row;
  }
  __syncthreads();
  const int left = ranked;
  if (facts.overflowed != 0 || found < a.k || left > out.room) {
    if (threadIdx.x == 0) {
      const std::uint32_t place = atomicAdd(out.unanswered.count, 1U);
      out.unanswered.queries[place] = out.rows != nullptr ? out.rows[query] : query;
      out.unanswered.limits[place] = facts.limit_key;
    }
    return;
  }
  exact.keys_of(shared.rows, found, left, shared.keys);
  // Where many are left, only those are ranked whose keys, in float32, are among the k smallest, ties included.
  std::uint32_t cut = 1;
  if (left > 4 * a.k + kThreads) {
    for (int i = threadIdx.x; i < left; i += kThreads) shared.order[i] = ordered(-static_cast<float>(shared.keys[i]));
    __syncthreads();
    cut = cut_by_bisection(shared.order, left, a.k, a.k + slack_of(a.k));
  }
  const std::int64_t row = out.rows != nullptr ? out.rows[query] : query;
  for (int i = threadIdx.x; i < left; i += kThreads) {
    if (cut > 1 && shared.order[i] < cut) continue;
    const double key = shared.keys[i];
    const std::uint32_t id = shared.rows[i];
    int before = 0;
    for (int j = 0; j < left; ++j) before += core::nearer(shared.keys[j], shared.rows[j], key, id) ? 1 : 0;
    if (before < a.k) {
      out.ids[row * a.k + before] = id;
      out.distances[row * a.k + before] = a.metric() == Metric::euclidean ? __dsqrt_rn(key) : key;
    }
  }
  if (threadIdx.x == 0) atomicAdd(out.survivors, static_cast<unsigned long long>(left));
}

void allow(const void* kernel, std::size_t bytes) {
  if (bytes <= 48 * 1024) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "shared memory of the exact finish");
}

}  // namespace

void seed(const Engine& engine, const Rows& table, const PackedTable& packed, PackedQueries& queries, int k,
          const float* scores, int positions) {
  with_type(table.dtype, table.data, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    const std::size_t bytes = shared_bytes(queries.frame.d, k + slack_of(k), positions);
    allow(reinterpret_cast<const void*>(seed_kernel<T>), bytes);
    seed_kernel<T><<<static_cast<unsigned>(queries.view.rows), kThreads, bytes, engine.stream>>>(
        arguments_of(queries, k), rows, packed, scores, positions);
    check_launch("seed");
  });
}

void tighten(const Engine& engine, const Rows& table, PackedQueries& queries, int k) {
  with_type(table.dtype, table.data, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    const std::size_t bytes =
        shared_bytes(queries.frame.d, k + slack_of(k), static_cast<int>(queries.view.capacity));
    allow(reinterpret_cast<const void*>(tighten_kernel<T>), bytes);
    tighten_kernel<T><<<static_cast<unsigned>(queries.view.rows), kThreads, bytes, engine.stream>>>(
        arguments_of(queries, k), rows);
    check_launch("tighten");
  });
}

void resume(const Engine& engine, PackedQueries& queries, const double* limits) {
  resume_kernel<<<static_cast<unsigned>((queries.view.rows + 127) / 128), 128, 0, engine.stream>>>(
      arguments_of(queries, 0), limits);
  check_launch("resume");
}

void finish(const Engine& engine, const Rows& table, PackedQueries& queries, const KLists& lists,
            const std::int64_t* outputs, unsigned long long* survivors, const Unanswered& unanswered) {
  with_type(table.dtype, table.data, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    const auto capacity = static_cast<int>(queries.view.capacity);
    const int k = static_cast<int>(lists.k);
    const int room = room_for(k, capacity);
    const std::size_t bytes = shared_bytes(queries.frame.d, room, capacity);
    allow(reinterpret_cast<const void*>(finish_kernel<T>), bytes);
    finish_kernel<T><<<static_cast<unsigned>(queries.view.rows), kThreads, bytes, engine.stream>>>(
        arguments_of(queries, k), rows,
        Outputs{lists.ids, lists.distances, outputs, survivors, unanswered, room});
    check_launch("finish");
  });
}

}  // namespace vicinal::cuda
