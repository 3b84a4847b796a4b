// The float32 screen of k-means: a thread has a row, whose columns it multiplies with a panel of centers at a time from
// shared memory (24, or 8 where columns are many), and keeps the best and second best upper bound of each row in
// registers; then it either knows the label or lists the row. The bound, and why the label is float64's:
// formulas/kmeans/float_bound.hpp. Cost: n k (d + 2) fused multiply-adds and one read of the points, or
// one for each pass over the centers where they do not fit a block. Contract clauses 3 and 12.
#include <algorithm>
#include <cmath>

#include "cuda/base/shared_memory.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/kmeans/cluster.hpp"
#include "cuda/kmeans/list.cuh"

namespace vicinal::cuda::kmeans {
namespace {

constexpr int kScreenThreads = 128;
constexpr int kBlocks = 8;        // of a multiprocessor, so that many rows are on their way
constexpr int kColumnsAhead = 8;  // columns
using Lists = WarpLists<32>;
constexpr std::size_t kListBytes = sizeof(Lists::Store) * 2 * kScreenThreads / 32;
constexpr std::size_t kPanelBytes = std::size_t{24} << 10;  // of a block

/// One number a lane as formulas/kmeans/float_bound.hpp takes it.
struct FloatArithmetic {
  using Value = float;
  __device__ static float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
  __device__ static float sqrt(float a) { return sqrtf(a); }
  __device__ static float abs(float a) { return fabsf(a); }
  __device__ static float max(float a, float b) { return fmaxf(a, b); }
  __device__ static float at_most(float a, float b, float value, float otherwise) { return a <= b ? value : otherwise; }
};

template <int kPanel>
__global__ void __launch_bounds__(kScreenThreads, kBlocks)
    screen_kernel(const __grid_constant__ ClusterView v, std::int64_t panels, std::int64_t panels_a_pass) {
  constexpr int kQuads = kPanel / 4;
  extern __shared__ __align__(16) float shared[];
  __shared__ Lists::Store stores[kScreenThreads / 32][2];
  Lists lists(v, stores[threadIdx.x / 32]);
  const ClusterTally& tally = v.outcome->tally;
  const std::int64_t n = v.rows.n;
  const int d = static_cast<int>(v.rows.d);
  const int panel_floats = (d + 2) * kPanel;
  const int lane = threadIdx.x % 32;
  const bool usable = tally.unusable == 0;
  core::LloydBound bound = v.frame.bound;
  bound.least_norm = __uint_as_float(tally.least_norm);
  const bool one_pass = panels <= panels_a_pass;
  for (std::int64_t block = blockIdx.x; block * kScreenThreads < n; block += gridDim.x) {
    const std::int64_t row = block * kScreenThreads + threadIdx.x;
    const std::int64_t first =
        row - lane;  // of the warp's tile; beyond the last one the first is multiplied, for nothing
    const bool is_row = row < n;
    const float* const tile = v.points + (first < n ? first : 0) * d + lane;
    const float norm = v.norms[is_row ? row : 0];
    const std::int32_t label_before = is_row ? v.labels[row] : 0;
    const float g = core::lloyd_factor<FloatArithmetic>(bound, norm);
    float best = -INFINITY;
    float second = -INFINITY;
    std::int32_t index = 0;
    for (std::int64_t begin = 0; begin < panels && usable; begin += panels_a_pass) {
      const int count = static_cast<int>(panels_a_pass < panels - begin ? panels_a_pass : panels - begin);
      if (!one_pass || block == blockIdx.x) {
        __syncthreads();
        const auto* from = reinterpret_cast<const float4*>(v.panels + begin * panel_floats);
        for (int i = threadIdx.x; i < count * panel_floats / 4; i += kScreenThreads) {
          reinterpret_cast<float4*>(shared)[i] = from[i];
        }
        __syncthreads();
      }
#pragma unroll 1
      for (int p = 0; p < count; ++p) {
        const auto* panel = reinterpret_cast<const float4*>(shared + p * panel_floats);
        float sums[kPanel];
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
          const float4 a = panel[q];
          sums[4 * q] = a.x, sums[4 * q + 1] = a.y, sums[4 * q + 2] = a.z, sums[4 * q + 3] = a.w;
        }
        const auto multiply = [&](float x, const float4* line) {
#pragma unroll
          for (int q = 0; q < kQuads; ++q) {
            const float4 a = line[q];
            sums[4 * q] = __fmaf_rn(x, a.x, sums[4 * q]);
            sums[4 * q + 1] = __fmaf_rn(x, a.y, sums[4 * q + 1]);
            sums[4 * q + 2] = __fmaf_rn(x, a.z, sums[4 * q + 2]);
            sums[4 * q + 3] = __fmaf_rn(x, a.w, sums[4 * q + 3]);
          }
        };
        // Columns are read some turns before they are multiplied.
        float ahead[kColumnsAhead];
        const auto read = [&](int j) { return j < d ? __ldg(tile + j * kPointTile) : 0; };
#pragma unroll
        for (int a = 0; a < kColumnsAhead; ++a) ahead[a] = read(a);
#pragma unroll 1
        for (int j = 0; j < d; j += kColumnsAhead) {
#pragma unroll
          for (int a = 0; a < kColumnsAhead; ++a) {
            if (j + a < d) multiply(ahead[a], panel + kQuads * (j + a + 1));
            ahead[a] = read(j + a + kColumnsAhead);
          }
        }
        multiply(g, panel + kQuads * (d + 1));
        const auto base = static_cast<std::int32_t>((begin + p) * kPanel);
#pragma unroll
        for (int c = 0; c < kPanel; ++c) {
          second = fmaxf(second, fminf(sums[c], best));
          if (sums[c] > best) {
            best = sums[c];
            index = base + c;
          }
        }
      }
    }
    const core::LloydRow<float> facts{norm, g, best, v.lengths[index], v.allowances[index]};
    const bool decided = is_row && usable && second < core::lloyd_decision<FloatArithmetic>(bound, facts).threshold;
    lists.take(row, is_row, decided, index, label_before, 0);
  }
  lists.flush();
}

__global__ void open_all_kernel(const __grid_constant__ ClusterView v) {
  const std::int64_t row = own_number();
  if (row < v.rows.n) v.open[row] = static_cast<std::uint32_t>(row);
  if (row == 0) v.outcome->tally.open = static_cast<unsigned long long>(v.rows.n);
}

std::size_t panel_bytes(std::int64_t d, int panel) {
  return static_cast<std::size_t>((d + 2) * panel) * sizeof(float);
}

template <int kPanel>
void launch(const Engine& engine, const ClusterView& view) {
  const std::size_t one = panel_bytes(view.rows.d, kPanel);
  const auto panels = static_cast<std::size_t>(view.panel_count());
  const std::size_t a_pass = std::clamp<std::size_t>(kPanelBytes / one, 1, panels);
  allow_shared_memory(engine, screen_kernel<kPanel>, a_pass * one);
  const std::int64_t blocks = (view.rows.n + kScreenThreads - 1) / kScreenThreads;
  const auto grid =
      static_cast<unsigned>(std::min<std::int64_t>(blocks, engine.multiprocessors * std::int64_t{kBlocks}));
  screen_kernel<kPanel><<<grid, kScreenThreads, a_pass * one, engine.stream>>>(view, view.panel_count(),
                                                                               static_cast<std::int64_t>(a_pass));
  check_launch("screen points");
}

}  // namespace

int panel_for(const Engine& engine, std::int64_t d) {
  for (const int panel : {kWidePanel, kNarrowPanel}) {
    if (panel_bytes(d, panel) + kListBytes + 1024 <= engine.shared_memory) return panel;
  }
  return 0;
}

void screen_points(const Engine& engine, const ClusterView& view) {
  view.panel == kWidePanel ? launch<kWidePanel>(engine, view) : launch<kNarrowPanel>(engine, view);
}

void open_all(const Engine& engine, const ClusterView& view) {
  open_all_kernel<<<blocks_for(view.rows.n, 256), 256, 0, engine.stream>>>(view);
  check_launch("open all rows");
}

}  // namespace vicinal::cuda::kmeans
