// A step of k-means++ (contract clause 12) in one launch: what each drawn row would leave as a centre, the best of
// them, and the draws of the next step. Nothing waits for the host.
//
// A block takes a chunk of 1,024 rows, a warp 128 of them. The changes that the last winner made become the rows' keys;
// a product of bytes (seeding_screen.cuh) finds the pairs of row and draw that may change a key; their float64 keys
// decide, by eight lanes a pair; and the sums of the 32 rows that changed are made anew. All other sums are those of
// before, so that few masses are read. The last block to end adds the upper levels, takes the draw with the least
// total, and goes down the tree for the next ones.
// Cost: a reading of the packed rows, a byte a column, and d fused multiply-adds for each pair that the screen lets
// through.
#include "cuda/mma.cuh"
#include "cuda/seeding.cuh"
#include "cuda/seeding_screen.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kWarpRows = kSeedChunk / kWarps;
constexpr int kWarpGroups = kWarpRows / 32;
constexpr int kTiles = 4;  // of 16 rows that a warp multiplies at a time
static_assert(kWarpGroups * kTrialsAtOnce == 32);

// What a warp finds out about its rows.
struct WarpShare {
  std::uint16_t pairs[kWarpRows * kTrialsAtOnce];      // row and trial that the screen let through
  std::uint32_t changed[kWarpGroups * kTrialsAtOnce];  // [group][trial] rows whose key changed
};

// The changes of the step before, by a warp: the rows' keys, and how near a centre must be to change them again.
__device__ void take_winner(const SeedView& v, std::int64_t first, int winner) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int g = 0; g < kWarpGroups; ++g) {
    const std::int64_t row = first + g * 32 + lane;
    if (row >= v.n || (v.changed[row / 32 * v.slots + winner] >> lane & 1) == 0) continue;
    const double key = v.tried[winner * v.n + row];
    v.keys[row] = key;
    v.facts[row].reach = reach_of(v, key, v.facts[row].error);
  }
  __syncwarp();
}

// Lists the pairs of the warp's rows and of eight trials, from `begin`, that the screen cannot rule out. Their number.
__device__ int screen(const SeedView& v, const SeedStep& step, std::int64_t first, int begin, std::uint16_t* pairs) {
  const int lane = threadIdx.x % 32;
  SeedTrial trials[2];
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const int t = begin + lane % 4 * 2 + c;
    const SeedFacts facts = v.facts[v.state->drawn[t < step.trials ? t : 0]];
    trials[c] = {-2 * facts.scale, facts.square, t < step.trials ? facts.error : NAN};
  }
  const int own = begin + lane / 4;
  const std::int64_t drawn = v.state->drawn[own < step.trials ? own : 0];
  const auto* const centre = reinterpret_cast<const std::uint32_t*>(v.packed + drawn / 16 * v.steps * 32) +
                             (drawn % 8 * 4 + lane % 4) * 4 + drawn % 16 / 8;
  int count = 0;
  for (int tile = 0; tile < kWarpRows / 16; tile += kTiles) {
    std::int32_t sums[kTiles][4] = {};
    if (v.screened) {
      const uint4* const rows = v.packed + (first / 16 + tile) * v.steps * 32 + lane;
#pragma unroll 2
      for (int k = 0; k < v.steps; ++k) {
        uint4 a[kTiles];
#pragma unroll
        for (int i = 0; i < kTiles; ++i) a[i] = rows[(i * v.steps + k) * 32];
        const std::uint32_t b0 = centre[k * 128];
        const std::uint32_t b1 = centre[k * 128 + 2];
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          const std::uint32_t words[4] = {a[i].x, a[i].y, a[i].z, a[i].w};
          mma::multiply_add(sums[i], words, b0, b1);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int local = (tile + i) * 16 + half * 8 + lane / 4;
        const SeedFacts facts = v.facts[first + local];
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const bool open = may_be_nearer(facts, trials[c], sums[i][half * 2 + c]);
          const unsigned lanes = __ballot_sync(kWholeWarp, open);
          if (open) {
            pairs[count + __popc(lanes & ((1U << lane) - 1))] =
                static_cast<std::uint16_t>(local * kTrialsAtOnce + lane % 4 * 2 + c);
          }
          count += __popc(lanes);
        }
      }
    }
  }
  __syncwarp();
  return count;
}

// The keys of the listed pairs; those below the rows' own are kept, and marked.
template <class T>
__device__ void try_pairs(const T* rows, const SeedView& v, const SeedStep& step, std::int64_t first, int begin,
                          int count, WarpShare& share) {
  const auto d = static_cast<int>(v.d);
  const int team = threadIdx.x % 32 / 8;
  for (int at = 0; at < count; at += 4) {
    const int pair = share.pairs[min(at + team, count - 1)];
    const int local = pair / kTrialsAtOnce;
    const int t = begin + pair % kTrialsAtOnce;
    const std::int64_t row = first + local;
    const double before = step.first ? INFINITY : v.keys[row];
    const double key = squared_differences(rows + v.state->drawn[t] * d, rows + row * d, d, kWholeWarp);
    if (threadIdx.x % 8 != 0 || at + team >= count || !(key < before)) continue;
    v.tried[t * v.n + row] = key;
    atomicOr(share.changed + local / 32 * kTrialsAtOnce + pair % kTrialsAtOnce, 1U << local % 32);
  }
  __syncwarp();
}

// The sum of the lane's 32 rows after its trial: `before` where none of them changed. By a warp.
__device__ double sum_after(const SeedView& v, std::int64_t first, int begin, std::uint32_t changed, double before) {
  const int lane = threadIdx.x % 32;
  const unsigned pending = __ballot_sync(kWholeWarp, changed != 0);
  double sum = before;
  for (int at = 0; at < 32; at += 4) {
    if ((pending >> at & 0xFU) == 0) continue;
    const int pair = at + lane / 8;
    const std::uint32_t word = __shfl_sync(kWholeWarp, changed, pair);
    const std::int64_t group = first + pair / kTrialsAtOnce * 32;
    const double* const tried = v.tried + (begin + pair % kTrialsAtOnce) * v.n;
    const double made = word == 0 ? 0 : sum_of_rows(v, group, [&](std::int64_t row) {
      return (word >> row % 32 & 1) != 0 ? tried[row] : v.keys[row];
    });
    const double theirs = __shfl_sync(kWholeWarp, made, (lane - at & 3) * 8);
    if (lane >= at && lane < at + 4 && changed != 0) sum = theirs;
  }
  return sum;
}

// What the last block does: totals, the winner, and the next draws.
__device__ void finish(const SeedView& v, const SeedStep& step, double (*parts)[core::kMassParts]) {
  const int lane = threadIdx.x % 32;
  for (int level = 2; level < v.tree.levels; ++level) {
    const std::int64_t sums = v.tree.sizes[level] * v.slots;
    for (std::int64_t i = threadIdx.x; i < sums; i += kThreads) {
      add_node(v, level, i / v.slots, static_cast<int>(i % v.slots));
    }
    __syncthreads();
  }
  double least = lane < step.trials ? __ldcg(v.sums + v.tree.total() * v.slots + lane) : INFINITY;
  int winner = lane;
  for (int other = 16; other > 0; other /= 2) {
    const double total = __shfl_xor_sync(kWholeWarp, least, other);
    const int trial = __shfl_xor_sync(kWholeWarp, winner, other);
    if (total < least || (total == least && trial < winner)) {
      least = total;
      winner = trial;
    }
  }
  const std::int64_t chosen = v.state->drawn[winner];
  __syncthreads();
  if (threadIdx.x == 0) {
    *step.chosen = chosen;
    v.state->winner = winner;
    v.state->arrived = 0;
  }
  const int warp = threadIdx.x / 32;
  for (int t = warp; t < step.next_trials; t += kWarps) {
    const std::int64_t row = drawn_row(v, step.next[t], winner, parts[warp]);
    if (lane == 0) v.state->drawn[t] = row;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    step_kernel(const T* rows, const __grid_constant__ SeedView v, const __grid_constant__ SeedStep step) {
  __shared__ WarpShare shares[kWarps];
  __shared__ double group_sums[kWarps * kWarpGroups][kTrialsAtOnce];
  __shared__ double parts[kWarps][core::kMassParts];
  __shared__ bool is_last;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const std::int64_t chunk = step.backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const std::int64_t first = chunk * kSeedChunk + warp * kWarpRows;
  WarpShare& share = shares[warp];
  const std::int64_t group = first / 32 + lane / kTrialsAtOnce;  // of the lane's sums
  const bool is_group = group < v.tree.sizes[0];
  const int winner = v.state->winner;
  const double before = is_group ? v.sums[group * v.slots + winner] : 0;
  take_winner(v, first, winner);
  for (int begin = 0; begin < step.trials; begin += kTrialsAtOnce) {
    share.changed[lane] = 0;
    const int count = screen(v, step, first, begin, share.pairs);
    try_pairs(rows, v, step, first, begin, count, share);
    const std::uint32_t changed = share.changed[lane];
    const double sum = sum_after(v, first, begin, changed, before);
    const int slot = begin + lane % kTrialsAtOnce;
    if (is_group) {
      v.changed[group * v.slots + slot] = changed;
      v.sums[group * v.slots + slot] = sum;
    }
    group_sums[warp * kWarpGroups + lane / kTrialsAtOnce][lane % kTrialsAtOnce] = sum;
    __syncthreads();
    if (threadIdx.x < kTrialsAtOnce * 8 && v.tree.levels > 1) {
      const int trial = threadIdx.x / 8;
      double total = 0;
      for (int i = threadIdx.x % 8; i < core::kMassParts; i += 8) total = __dadd_rn(total, group_sums[i][trial]);
      total = sum_of_eight(total, kWholeWarp);
      if (threadIdx.x % 8 == 0) v.sums[(v.tree.begins[1] + chunk) * v.slots + begin + trial] = total;
    }
    __syncthreads();
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(&v.state->arrived, 1) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  finish(v, step, parts);
}

}  // namespace

void choose_seed(const Engine& engine, const Rows& rows, const SeedView& view, const SeedStep& step) {
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    step_kernel<<<blocks_for(view.n, kSeedChunk), kThreads, 0, engine.stream>>>(data, view, step);
  });
  check_launch("a step of k-means++");
}

}  // namespace vicinal::cuda
