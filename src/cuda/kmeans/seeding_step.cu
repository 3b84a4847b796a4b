// A step of k-means++ (contract clause 12) in two launches that wait for nothing on the host: what each drawn row would
// leave as a center; and the best of them, and the draws of the next step.
//
// A block takes a chunk of 1,024 rows, a warp 64 of them. The changes that the last winner made become the rows' keys;
// a product of bytes (seeding_screen.cuh) finds the pairs of row and draw that may change a key; their float64 keys
// decide, by eight lanes a pair; and the sums of 32 rows of which some changed are made anew. All other sums are those
// of before. A second kernel, of one block, adds the upper levels, takes the draw with the least total, and goes down
// the tree for the next ones; meanwhile the blocks of the next step begin to read.
// Cost: a reading of the packed rows, a byte a column, and d fused multiply-adds for each pair that the screen lets
// through.
#include "cuda/base/mma.cuh"
#include "cuda/base/shared_memory.hpp"
#include "cuda/kmeans/seeding.cuh"
#include "cuda/kmeans/seeding_screen.cuh"

namespace vicinal::cuda::kmeans {
namespace {

constexpr int kStepThreads = 512;
constexpr int kSettleThreads = 1024;
constexpr int kStepWarps = kStepThreads / 32;
constexpr int kWarpRows = kSeedChunk / kStepWarps;
constexpr int kWarpGroups = kWarpRows / 32;
constexpr int kWarpSums = kWarpGroups * kTrialsAtOnce;
constexpr int kTiles = kWarpRows / 16;  // of one product
constexpr int kAhead = 2;               // products whose rows are read before the first is made
static_assert(kWarpSums <= 32);

// A launch may begin while the one before ends (sm_90): until this returns nothing that it writes may be touched.
__device__ __forceinline__ void wait_for_last() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// What a warp knows and finds out about its rows.
struct WarpShare {
  SeedFacts facts[kWarpRows];
  double keys[kWarpRows];
  std::uint32_t changed[kWarpSums];  // [group][trial] rows whose key changed
  int count;                         // of pairs that the screen let through
};

// Shared memory of a warp: first its packed rows, for kAhead products, of which each lane sees its own part alone; when
// these are made, the pairs of row and trial that the screen let through.
union WarpRoom {
  uint4 words[kAhead][kTiles][32];
  std::uint16_t pairs[kWarpRows * kTrialsAtOnce];
};
constexpr std::size_t kPackedBytes = sizeof(WarpRoom) * kStepWarps;
constexpr std::size_t kPairsBytes = sizeof(std::uint16_t) * kSeedChunk * kTrialsAtOnce;

// Begins to read the warp's rows for products from `step`.
__device__ __forceinline__ void read_packed(const SeedView& v, std::int64_t first, int step, WarpRoom& room) {
  const int lane = threadIdx.x % 32;
  const uint4* const rows = v.packed + first / 16 * v.steps * 32 + lane;
#pragma unroll
  for (int k = 0; k < kAhead; ++k) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      if (step + k < v.steps) mma::copy(&room.words[k][i][lane], rows + (i * v.steps + step + k) * 32);
    }
  }
  mma::copies_commit();
}

// The rows' keys and reaches, those that the last winner changed made new, by a warp.
__device__ __forceinline__ void take_winner(const SeedView& v, std::int64_t first, int winner, WarpShare& share) {
  const int lane = threadIdx.x % 32;
  double keys[kWarpGroups];
  float reaches[kWarpGroups];
  bool changed[kWarpGroups];
#pragma unroll
  for (int g = 0; g < kWarpGroups; ++g) {
    const std::int64_t row = first + g * 32 + lane;
    keys[g] = row < v.n ? v.keys[row] : 0;
    reaches[g] = v.reaches[row];
    changed[g] = row < v.n && (v.changed[row / 32 * v.slots + winner] >> lane & 1) != 0;
  }
#pragma unroll
  for (int g = 0; g < kWarpGroups; ++g) {
    if (changed[g]) keys[g] = v.tried[winner * v.n + first + g * 32 + lane];
  }
#pragma unroll
  for (int g = 0; g < kWarpGroups; ++g) {
    const int local = g * 32 + lane;
    if (changed[g]) {
      reaches[g] = reach_of(v, keys[g], share.facts[local].error);
      v.keys[first + local] = keys[g];
      v.reaches[first + local] = reaches[g];
    }
    share.keys[local] = keys[g];
    share.facts[local].reach = reaches[g];
  }
  __syncwarp();
}

// The two trials that a lane compares its rows with; of eight, from `begin`.
__device__ __forceinline__ void read_trials(const SeedView& v, const SeedStep& step, int begin,
                                            SeedTrial (&trials)[2]) {
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const int t = begin + threadIdx.x % 4 * 2 + c;
    const SeedFacts facts = v.facts[v.state->drawn[t < step.trials ? t : 0]];
    trials[c] = {-2 * facts.scale, facts.square, t < step.trials ? facts.error : NAN};
  }
}

// Lists the pairs of the warp's rows and of eight trials that the screen cannot rule out.
__device__ __forceinline__ void screen(const SeedView& v, const SeedStep& step, std::int64_t first, int begin,
                                       const SeedTrial (&trials)[2], WarpShare& share, WarpRoom& room) {
  const int lane = threadIdx.x % 32;
  std::int32_t sums[kTiles][4] = {};
  if (v.screened) {
    const int own = begin + lane / 4;
    const std::int64_t drawn = v.state->drawn[own < step.trials ? own : 0];
    const auto* const centre = reinterpret_cast<const std::uint32_t*>(v.packed + drawn / 16 * v.steps * 32) +
                               (drawn % 8 * 4 + lane % 4) * 4 + drawn % 16 / 8;
    for (int at = 0; at < v.steps; at += kAhead) {
      if (at != 0 || begin != 0) read_packed(v, first, at, room);
      mma::copies_wait<0>();
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (at + k >= v.steps) break;
        const std::uint32_t b0 = centre[(at + k) * 128];
        const std::uint32_t b1 = centre[(at + k) * 128 + 2];
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          const uint4 a = room.words[k][i][lane];
          const std::uint32_t words[4] = {a.x, a.y, a.z, a.w};
          mma::multiply_add(sums[i], words, b0, b1);
        }
      }
    }
  }
  unsigned open = 0;
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i) {
    const SeedFacts facts = share.facts[i * 8 + lane / 4];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      if (may_be_nearer(facts, trials[c], sums[i / 2][i % 2 * 2 + c])) open |= 1U << (i * 2 + c);
    }
  }
  __syncwarp();
  if (open != 0) {
    int place = atomicAdd(&share.count, __popc(open));
    for (; open != 0; open &= open - 1) {
      const int bit = __ffs(static_cast<int>(open)) - 1;
      room.pairs[place++] =
          static_cast<std::uint16_t>((bit / 2 * 8 + lane / 4) * kTrialsAtOnce + lane % 4 * 2 + bit % 2);
    }
  }
  __syncwarp();
}

// The keys of the listed pairs; those below the rows' own are kept, and marked.
template <class T>
__device__ __forceinline__ void try_pairs(const T* rows, const SeedView& v, const SeedStep& step, std::int64_t first,
                                          int begin, WarpShare& share, const WarpRoom& room) {
  const auto d = static_cast<int>(v.d);
  const int count = share.count;
  const int team = threadIdx.x % 32 / 8;
  for (int at = 0; at < count; at += 4) {
    const int pair = room.pairs[min(at + team, count - 1)];
    const int local = pair / kTrialsAtOnce;
    const int t = begin + pair % kTrialsAtOnce;
    const std::int64_t row = first + local;
    const double before = step.first ? INFINITY : share.keys[local];
    const double key = squared_differences(rows + v.state->drawn[t] * d, rows + row * d, d, kWholeWarp);
    if (threadIdx.x % 8 != 0 || at + team >= count || !(key < before)) continue;
    v.tried[t * v.n + row] = key;
    atomicOr(share.changed + local / 32 * kTrialsAtOnce + pair % kTrialsAtOnce, 1U << local % 32);
  }
  __syncwarp();
}

// The sum of the lane's 32 rows after its trial: `before` where none of them changed. By a warp, four sums at a time.
__device__ __forceinline__ double sum_after(const SeedView& v, std::int64_t first, int begin, std::uint32_t changed,
                                            double before, const WarpShare& share) {
  const int lane = threadIdx.x % 32;
  double sum = before;
  int rank = __popc(__ballot_sync(kWholeWarp, changed != 0) & ((1U << lane) - 1));
  for (unsigned pending = __ballot_sync(kWholeWarp, changed != 0); pending != 0; rank -= 4) {
    int pair = 0;
    for (int team = 0; team < 4; ++team) {
      if (team == lane / 8) pair = __ffs(static_cast<int>(pending)) - 1;
      pending &= pending - 1;
    }
    const std::uint32_t word = __shfl_sync(kWholeWarp, changed, pair < 0 ? 0 : pair);
    double made = 0;
    if (pair >= 0) {
      const double* const tried = v.tried + (begin + pair % kTrialsAtOnce) * v.n;
      made = sum_of_rows(v, first + pair / kTrialsAtOnce * 32, [&](std::int64_t row) {
        return (word >> row % 32 & 1) != 0 ? tried[row] : share.keys[row - first];
      });
    }
    const double theirs = __shfl_sync(kWholeWarp, made, (rank & 3) * 8);
    if (changed != 0 && rank >= 0 && rank < 4) sum = theirs;
  }
  return sum;
}

// Adds the sums below the nodes of a level, for all trials; by eight threads a sum, four sums at a time.
__device__ __forceinline__ void add_level(const SeedView& v, int level) {
  constexpr int kSums = 4;
  constexpr int kTeams = kSettleThreads / 8;
  const int lane = threadIdx.x % 8;
  const auto sums = static_cast<int>(v.tree.sizes[level]) * v.slots;
  const auto below = static_cast<int>(v.tree.sizes[level - 1]);
  for (int first = threadIdx.x / 8; first < sums; first += kSums * kTeams) {
    double made[kSums];
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int at = first + i * kTeams;
      const int part = at / v.slots * static_cast<int>(core::kMassParts) + lane;
      made[i] = 0;
#pragma unroll
      for (int j = 0; j < core::kMassParts; j += 8) {
        if (at >= sums || part + j >= below) continue;
        made[i] = __dadd_rn(made[i], __ldcg(v.sums + (v.tree.begins[level - 1] + part + j) * v.slots + at % v.slots));
      }
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const double sum = core::sum_of_eight(made[i], core::mask_of_eight());
      const int at = first + i * kTeams;
      if (at < sums && lane == 0) v.sums[v.tree.begins[level] * v.slots + at] = sum;
    }
  }
}

// Totals, the winner, and the next draws; one block.
__global__ void __launch_bounds__(kSettleThreads)
    settle_kernel(const __grid_constant__ SeedView v, const __grid_constant__ SeedStep step) {
  __shared__ double parts[kMaxTrials][core::kMassParts];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  let_next_begin();
  const double draw = warp < step.next_trials ? step.next[warp] : 0;
  wait_for_last();
  const std::int64_t drawn = lane < step.trials ? v.state->drawn[lane] : 0;
  for (int level = 2; level < v.tree.levels; ++level) {
    add_level(v, level);
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
  if (warp == 0 && lane == winner) *step.chosen = drawn;
  if (threadIdx.x == 0) v.state->winner = winner;
  __syncthreads();  // all have read what was drawn
  if (warp >= step.next_trials) return;
  const std::int64_t row = drawn_row(v, draw, winner, parts[warp]);
  if (lane == 0) v.state->drawn[warp] = row;
}
static_assert(kSettleThreads / 32 >= kMaxTrials);

template <class T>
__global__ void __launch_bounds__(kStepThreads, 2)
    step_kernel(const T* rows, const __grid_constant__ SeedView v, const __grid_constant__ SeedStep step) {
  extern __shared__ uint4 rooms[];
  __shared__ WarpShare shares[kStepWarps];
  __shared__ double group_sums[core::kMassParts][kTrialsAtOnce];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const std::int64_t chunk = step.backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const std::int64_t first = chunk * kSeedChunk + warp * kWarpRows;
  WarpShare& share = shares[warp];
  // Where nothing is screened there is room for pairs alone.
  WarpRoom& room = *reinterpret_cast<WarpRoom*>(reinterpret_cast<std::byte*>(rooms) +
                                                warp * ((v.screened ? kPackedBytes : kPairsBytes) / kStepWarps));
  for (int row = lane; row < kWarpRows; row += 32) mma::copy(share.facts + row, v.facts + first + row);
  if (v.screened) read_packed(v, first, 0, room);
  mma::copies_commit();
  wait_for_last();
  let_next_begin();
  const int winner = v.state->winner;
  const std::int64_t group = first / 32 + lane / kTrialsAtOnce;  // of the lane's sums
  const bool has_sum = lane < kWarpSums && group < v.tree.sizes[0];
  const double before = has_sum ? v.sums[group * v.slots + winner] : 0;
  SeedTrial trials[2];
  read_trials(v, step, 0, trials);
  mma::copies_wait<0>();
  __syncwarp();
  take_winner(v, first, winner, share);
  for (int begin = 0; begin < step.trials; begin += kTrialsAtOnce) {
    if (begin != 0) read_trials(v, step, begin, trials);
    if (lane < kWarpSums) share.changed[lane] = 0;
    if (lane == 0) share.count = 0;
    __syncwarp();
    screen(v, step, first, begin, trials, share, room);
    try_pairs(rows, v, step, first, begin, share, room);
    const std::uint32_t changed = lane < kWarpSums ? share.changed[lane] : 0;
    const double sum = sum_after(v, first, begin, changed, before, share);
    const int trial = lane % kTrialsAtOnce;
    if (has_sum) {
      v.changed[group * v.slots + begin + trial] = changed;
      v.sums[group * v.slots + begin + trial] = sum;
    }
    if (lane < kWarpSums) group_sums[warp * kWarpGroups + lane / kTrialsAtOnce][trial] = sum;
    __syncthreads();
    if (threadIdx.x < kTrialsAtOnce * 8 && v.tree.levels > 1) {
      const int own = threadIdx.x / 8;
      double total = 0;
      for (int i = threadIdx.x % 8; i < core::kMassParts; i += 8) total = __dadd_rn(total, group_sums[i][own]);
      total = core::sum_of_eight(total, kWholeWarp);
      if (threadIdx.x % 8 == 0) v.sums[(v.tree.begins[1] + chunk) * v.slots + begin + own] = total;
    }
    if (begin + kTrialsAtOnce < step.trials) __syncthreads();
  }
}

// Begins where the launch before lets it (sm_90), else where that has ended.
template <class Kernel, class... Arguments>
void launch_early(const Engine& engine, unsigned blocks, int threads, std::size_t shared, Kernel kernel,
                  const Arguments&... arguments) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = blocks;
  launch.blockDim = threads;
  launch.dynamicSmemBytes = shared;
  launch.stream = engine.stream;
  launch.attrs = &early;
  launch.numAttrs = engine.compiled_for >= 90 ? 1 : 0;
  check(cudaLaunchKernelEx(&launch, kernel, arguments...), "a step of k-means++");
}

}  // namespace

void choose_seed(const Engine& engine, const Rows& rows, const SeedView& view, const SeedStep& step) {
  const std::size_t shared = view.screened ? kPackedBytes : kPairsBytes;
  with_elements(rows.data, rows.dtype, [&]<class T>(const T* data) {
    if (step.first && view.screened) allow_shared_memory(engine, step_kernel<T>, kPackedBytes);
    launch_early(engine, blocks_for(view.n, kSeedChunk), kStepThreads, shared, step_kernel<T>, data, view, step);
  });
  launch_early(engine, 1, kSettleThreads, 0, settle_kernel, view, step);
}

}  // namespace vicinal::cuda::kmeans
