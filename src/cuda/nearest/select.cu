// Selection of the k first by (key, id) (contract clause 2), exact whatever the order of arrival.
// A block a query. Where list and candidates together exceed k, the k-th of them is found digit by digit: histograms of
// eight bits of the key, from the most significant on, then of the id among equal keys; as soon as a digit's bin is
// taken whole, the search ends. Candidates then fill the places of entries that leave. O(k + candidates) a digit read,
// at most 16 digits; without candidates nothing is read at all. Lists are put in order once, at the end, by a bitonic
// sort whose comparators all point up, so that any length will do: O(k log^2 k). Lists of up to 32 entries that were
// empty are made without digits and sort, if few candidates are near (`pick`).
#include <algorithm>
#include <climits>
#include <cmath>

#include "core/distance.hpp"
#include "core/order.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/select.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kDigitValues = 256;   // and as many threads of a block
constexpr int kSharedSort = 2048;   // entries that are sorted in shared memory
constexpr int kPicks = 64;          // groups of candidates, of which each gives its first one,
constexpr int kPickNeighbors = 32;  // for at most so many neighbors
constexpr int kLanesOfPick = kDigitValues / kPicks;

/// Doubles as integers in the same order.
__device__ unsigned long long ordered(double x) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(x));
  return (bits >> 63) != 0 ? ~bits : bits | 1ULL << 63;
}
constexpr unsigned long long kOrderedZero = 1ULL << 63;  // the one below is -0, which equals it
__device__ double from_ordered(unsigned long long bits) {
  return __longlong_as_double(static_cast<long long>((bits >> 63) != 0 ? bits & ~(1ULL << 63) : ~bits));
}

/// A list and its candidates as one sequence.
struct Joined {
  const double* keys;
  const std::int64_t* ids;
  std::int64_t size;
  const double* more_keys;
  const std::int64_t* more_ids;
  std::int64_t more;

  __device__ unsigned long long key(std::int64_t i) const { return ordered(i < size ? keys[i] : more_keys[i - size]); }
  __device__ std::int64_t id(std::int64_t i) const { return i < size ? ids[i] : more_ids[i - size]; }
};

/// The last (key, id) that is taken; of keys equal to this one, ids up to this one.
struct Bound {
  unsigned long long key;
  unsigned long long id;

  __device__ bool takes(unsigned long long k, std::int64_t i) const {
    return k < key || (k == key && static_cast<unsigned long long>(i) <= id);
  }
};

/// The bound that takes exactly `wanted` of the sequence, fewer than it has. All threads of the block.
__device__ Bound find_bound(const Joined& all, std::int64_t wanted) {
  __shared__ unsigned histogram[kDigitValues];
  __shared__ unsigned warps[kDigitValues / 32];
  __shared__ unsigned chosen;
  __shared__ unsigned before;
  __shared__ unsigned inside;
  const std::int64_t total = all.size + all.more;
  unsigned long long key = 0;
  unsigned long long id = 0;
  for (int digit = 0; digit < 16; ++digit) {
    const int shift = 56 - 8 * (digit & 7);
    const bool of_key = digit < 8;
    histogram[threadIdx.x] = 0;
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < total; i += kDigitValues) {
      const unsigned long long k = all.key(i);
      if (of_key) {
        // The digits above must be those found so far.
        if (digit > 0 && (k ^ key) >> (shift + 8) != 0) continue;
        atomicAdd(&histogram[k >> shift & 255], 1U);
      } else {
        if (k != key) continue;
        const auto number = static_cast<unsigned long long>(all.id(i));
        if (digit > 8 && (number ^ id) >> (shift + 8) != 0) continue;
        atomicAdd(&histogram[number >> shift & 255], 1U);
      }
    }
    __syncthreads();
    // The bin in which the wanted one lies: a running sum over all bins, one a thread.
    const unsigned mine = histogram[threadIdx.x];
    unsigned sum = mine;
    for (int step = 1; step < 32; step *= 2) {
      const unsigned theirs = __shfl_up_sync(kWholeWarp, sum, step);
      if (threadIdx.x % 32 >= step) sum += theirs;
    }
    if (threadIdx.x % 32 == 31) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    for (unsigned w = 0; w < threadIdx.x / 32; ++w) sum += warps[w];
    if (sum - mine < wanted && wanted <= sum) {
      chosen = threadIdx.x;
      before = sum - mine;
      inside = mine;
    }
    __syncthreads();
    const auto found = static_cast<unsigned long long>(chosen) << shift;
    const unsigned long long rest = (1ULL << shift) - 1;
    wanted -= before;
    const bool whole = inside == wanted;
    __syncthreads();  // before the next digit overwrites what was just read
    if (of_key) {
      key |= found;
      if (whole) return {key | rest, ~0ULL};
    } else {
      id |= found;
      if (whole) return {key, id | rest};
    }
  }
  return {key, id};
}

/// Takes in the candidates of query q. All threads of the block.
__device__ void take(const RunningLists& lists, const Candidates& candidates, std::int64_t q) {
  __shared__ unsigned holes;
  __shared__ unsigned filled;
  __shared__ unsigned long long last;
  const auto count = static_cast<std::int64_t>(candidates.counts[q]);
  if (count == 0) return;
  const std::int64_t k = lists.k;
  const std::int64_t size = lists.sizes[q];
  double* const keys = lists.keys + q * k;
  std::int64_t* const ids = lists.ids + q * k;
  const Joined all = {keys, ids, size, candidates.keys + q * candidates.room, candidates.ids + q * candidates.room,
                      count};
  std::int32_t* const places = candidates.holes + q * (k < candidates.room ? k : candidates.room);
  if (threadIdx.x == 0) {
    holes = 0;
    filled = 0;
    last = 0;
  }
  __syncthreads();
  const Bound bound = size + count > k ? find_bound(all, k) : Bound{~0ULL, ~0ULL};
  unsigned long long largest = 0;
  for (std::int64_t i = threadIdx.x; i < size; i += kDigitValues) {
    const unsigned long long key = all.key(i);
    if (bound.takes(key, ids[i])) {
      largest = key > largest ? key : largest;
    } else {
      places[atomicAdd(&holes, 1U)] = static_cast<std::int32_t>(i);
    }
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < count; i += kDigitValues) {
    const unsigned long long key = ordered(all.more_keys[i]);
    if (!bound.takes(key, all.more_ids[i])) continue;
    largest = key > largest ? key : largest;
    const unsigned place = atomicAdd(&filled, 1U);
    const std::int64_t at = place < holes ? places[place] : size + (place - holes);
    keys[at] = all.more_keys[i];
    ids[at] = all.more_ids[i];
  }
  for (int other = 16; other > 0; other /= 2) {
    const unsigned long long theirs = __shfl_xor_sync(kWholeWarp, largest, other);
    largest = theirs > largest ? theirs : largest;
  }
  if (threadIdx.x % 32 == 0) atomicMax(&last, largest);
  __syncthreads();
  if (threadIdx.x != 0) return;
  const std::int64_t now = size + count < k ? size + count : k;
  lists.sizes[q] = now;
  // Later candidates have larger ids: at an equal key they come after what is here.
  if (now == k) lists.limits[q] = from_ordered(last == kOrderedZero ? last - 2 : last - 1);
  candidates.counts[q] = 0;
}

__global__ void __launch_bounds__(kDigitValues) take_kernel(RunningLists lists, Candidates candidates) {
  take(lists, candidates, blockIdx.x);
}

__global__ void clear_kernel(RunningLists lists, std::int64_t queries) {
  const std::int64_t q = own_number();
  if (q >= queries) return;
  lists.sizes[q] = 0;
  lists.limits[q] = INFINITY;
}

/// All threads of the block sort n entries; comparators point up, so entries beyond the end count as infinitely far.
__device__ void sort_entries(double* keys, std::int64_t* ids, std::int64_t n) {
  const auto compare = [&](std::int64_t low, std::int64_t high) {
    if (high >= n || !core::nearer(keys[high], ids[high], keys[low], ids[low])) return;
    const double key = keys[low];
    const std::int64_t id = ids[low];
    keys[low] = keys[high];
    ids[low] = ids[high];
    keys[high] = key;
    ids[high] = id;
  };
  std::int64_t size = 1;
  while (size < n) size *= 2;
  for (std::int64_t width = 2; width <= size; width *= 2) {
    // First each half with the mirrored other one, then ever closer partners.
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < size / 2; i += blockDim.x) {
      const std::int64_t within = i & (width / 2 - 1);
      const std::int64_t begin = (i - within) * 2;
      compare(begin + within, begin + width - 1 - within);
    }
    for (std::int64_t stride = width / 4; stride > 0; stride /= 2) {
      __syncthreads();
      for (std::int64_t i = threadIdx.x; i < size / 2; i += blockDim.x) {
        const std::int64_t low = 2 * i - (i & (stride - 1));
        compare(low, low + stride);
      }
    }
  }
  __syncthreads();
}

/// n entries in order, their keys as distances. In `shared` memory, which has room for min(n, kSharedSort) of them. All
/// threads of the block.
__device__ void finish(Metric metric, double p, double* keys, std::int64_t* ids, std::int64_t n, double* shared) {
  if (n > kSharedSort) {
    sort_entries(keys, ids, n);
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) keys[i] = core::reported_distance(metric, keys[i], p);
    return;
  }
  auto* const shared_ids = reinterpret_cast<std::int64_t*>(shared + n);
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    shared[i] = keys[i];
    shared_ids[i] = ids[i];
  }
  sort_entries(shared, shared_ids, n);
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    keys[i] = core::reported_distance(metric, shared[i], p);
    ids[i] = shared_ids[i];
  }
}

__global__ void finish_kernel(Metric metric, double p, double* keys, std::int64_t* ids, const std::int64_t* offsets,
                              std::int64_t k) {
  extern __shared__ double shared[];
  const std::int64_t q = blockIdx.x;
  const std::int64_t begin = offsets != nullptr ? offsets[q] : q * k;
  finish(metric, p, keys + begin, ids + begin, offsets != nullptr ? offsets[q + 1] - begin : k, shared);
}

/// The list of query q in order, of candidates alone, with distances: of kPicks groups of candidates the first ones are
/// ranked; the k-th of them is not before the k-th of all, so that only candidates up to it are ranked again. False,
/// and nothing is done, where they are too many, or too few. All threads of the block.
__device__ bool pick(const RunningLists& lists, const Candidates& candidates, std::int64_t q, Metric metric, double p) {
  __shared__ double keys[kDigitValues];
  __shared__ std::int64_t ids[kDigitValues];
  __shared__ double last_key;
  __shared__ std::int64_t last_id;
  __shared__ unsigned picked;
  const auto count = static_cast<std::int64_t>(candidates.counts[q]);
  const std::int64_t k = lists.k;
  if (k > kPickNeighbors || count < kLanesOfPick * k || lists.sizes[q] > 0) return false;
  const double* const more_keys = candidates.keys + q * candidates.room;
  const std::int64_t* const more_ids = candidates.ids + q * candidates.room;
  double key = INFINITY;
  std::int64_t id = LLONG_MAX;
  const auto lower = [&](double other_key, std::int64_t other_id) {
    if (!core::nearer(other_key, other_id, key, id)) return;
    key = other_key;
    id = other_id;
  };
  for (std::int64_t i = threadIdx.x; i < count; i += kDigitValues) lower(more_keys[i], more_ids[i]);
  for (int step = kLanesOfPick / 2; step > 0; step /= 2) {
    const double other_key = __shfl_xor_sync(kWholeWarp, key, step);
    lower(other_key, __shfl_xor_sync(kWholeWarp, id, step));
  }
  const int group = static_cast<int>(threadIdx.x) / kLanesOfPick;
  if (threadIdx.x % kLanesOfPick == 0) {
    keys[group] = key;
    ids[group] = id;
  }
  if (threadIdx.x == 0) picked = 0;
  __syncthreads();
  int before = 0;  // each lane of a group counts its share
  for (int i = static_cast<int>(threadIdx.x) % kLanesOfPick; i < kPicks; i += kLanesOfPick) {
    before += core::nearer(keys[i], ids[i], key, id) ? 1 : 0;
  }
  for (int step = kLanesOfPick / 2; step > 0; step /= 2) before += __shfl_xor_sync(kWholeWarp, before, step);
  if (before == k - 1) {  // one group
    last_key = key;
    last_id = id;
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < count; i += kDigitValues) {
    if (core::nearer(last_key, last_id, more_keys[i], more_ids[i])) continue;
    const unsigned place = atomicAdd(&picked, 1U);
    if (place >= kDigitValues) break;
    keys[place] = more_keys[i];
    ids[place] = more_ids[i];
  }
  __syncthreads();
  const unsigned total = picked;
  if (total > kDigitValues) return false;
  if (threadIdx.x >= total) return true;
  key = keys[threadIdx.x];
  id = ids[threadIdx.x];
  std::int64_t rank = 0;
  for (unsigned i = 0; i < total; ++i) rank += core::nearer(keys[i], ids[i], key, id) ? 1 : 0;
  if (rank >= k) return true;
  lists.keys[q * k + rank] = core::reported_distance(metric, key, p);
  lists.ids[q * k + rank] = id;
  return true;
}

__global__ void __launch_bounds__(kDigitValues)
    take_last_kernel(RunningLists lists, Candidates candidates, Metric metric, double p) {
  extern __shared__ double shared[];
  const std::int64_t begin = blockIdx.x * lists.k;
  if (pick(lists, candidates, blockIdx.x, metric, p)) return;
  take(lists, candidates, blockIdx.x);
  __syncthreads();
  const std::int64_t size = lists.sizes[blockIdx.x];
  finish(metric, p, lists.keys + begin, lists.ids + begin, size, shared);
  for (std::int64_t i = size + threadIdx.x; i < lists.k; i += kDigitValues) {  // of a search that is refused
    lists.keys[begin + i] = INFINITY;
    lists.ids[begin + i] = -1;
  }
}

std::size_t shared_bytes(std::int64_t entries) {
  return static_cast<std::size_t>(std::min<std::int64_t>(entries, kSharedSort)) *
         (sizeof(double) + sizeof(std::int64_t));
}

}  // namespace

void clear_lists(const Engine& engine, const RunningLists& lists, std::int64_t queries) {
  clear_kernel<<<blocks_for(queries, kDigitValues), kDigitValues, 0, engine.stream>>>(lists, queries);
  check_launch("clear lists");
}

void take_candidates(const Engine& engine, const RunningLists& lists, const Candidates& candidates,
                     std::int64_t queries) {
  take_kernel<<<static_cast<unsigned>(queries), kDigitValues, 0, engine.stream>>>(lists, candidates);
  check_launch("select neighbors");
}

void take_last_candidates(const Engine& engine, const RunningLists& lists, const Candidates& candidates,
                          std::int64_t queries, Metric metric, double p) {
  take_last_kernel<<<static_cast<unsigned>(queries), kDigitValues, shared_bytes(lists.k), engine.stream>>>(
      lists, candidates, metric, p);
  check_launch("select and order neighbors");
}

void finish_lists(const Engine& engine, Metric metric, double p, double* keys, std::int64_t* ids,
                  const std::int64_t* offsets, std::int64_t k, std::int64_t queries) {
  std::int64_t threads = 32;
  while (threads < 512 && 2 * threads < k) threads *= 2;
  if (offsets != nullptr) threads = kDigitValues;
  const std::size_t shared = shared_bytes(offsets != nullptr ? kSharedSort : k);
  finish_kernel<<<static_cast<unsigned>(queries), static_cast<unsigned>(threads), shared, engine.stream>>>(
      metric, p, keys, ids, offsets, k);
  check_launch("order neighbors");
}

}  // namespace vicinal::cuda
