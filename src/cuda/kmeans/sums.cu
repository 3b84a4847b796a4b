// The exact sums of clusters: rows whose label changed leave one and join another. Where rows are few and narrow, a
// warp a row adds its terms by atomics. Where they are many, the changes are put in the order of their clusters first
// (a counting sort), and a warp adds 64 of them in registers before it touches the sums: an atomic a cluster and column
// then stands for tens of terms. Integers, so the order does not matter (formulas/kmeans/limbs.hpp; contract clause
// 12). Cost: one read of the changed rows, twice where they had a label before.
#include "cuda/base/element.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/kmeans/cluster.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda::kmeans {
namespace {

constexpr int kSumWarps = kThreads / 32;
constexpr int kPlaceThreads = 1024;
constexpr int kRun = 64;         // changes that a warp adds up
constexpr int kLaneColumns = 2;  // columns of a lane
constexpr int kWidth = 32 * kLaneColumns;
constexpr int kRowsAhead = 8;  // changes whose values are read before the first is added
constexpr int kFewClusters = 2048;
constexpr std::uint32_t kLeaves = 0x80000000U;

__device__ std::int64_t changed_rows(const ClusterView& v) {
  return static_cast<std::int64_t>(v.outcome->tally.changed);
}

__device__ void add_part(std::int64_t* limb, std::uint64_t part) {
  if (part != 0) atomicAdd(reinterpret_cast<unsigned long long*>(limb), static_cast<unsigned long long>(part));
}

__device__ void add_term(const ClusterView& v, double term, int column, std::int64_t cluster, bool leaves) {
  if (term == 0) return;
  const core::LimbParts to = core::limb_parts(term, v.bases[column], v.bits);
  std::int64_t* const limbs = v.sums + (cluster * v.limbs + to.limb) * v.columns + column;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    add_part(limbs + static_cast<std::int64_t>(i) * v.columns, to.negative != leaves ? 0 - to.parts[i] : to.parts[i]);
  }
}

/// Of a row's term in a column; the last one is of the weights, where there are some.
template <class T>
__device__ __forceinline__ double term_of(const ClusterView& v, const T* rows, std::int64_t row, int column) {
  const int d = static_cast<int>(v.rows.d);
  const double value = column < d ? widen(rows[row * d + column]) : 1.0;
  return v.weights != nullptr ? __dmul_rn(v.weights[row], value) : value;
}

__device__ void change_sizes(const ClusterView& v, std::int32_t cluster, std::int64_t rows) {
  auto* const filled = reinterpret_cast<unsigned long long*>(&v.outcome->filled);
  const auto change = static_cast<unsigned long long>(rows);
  const unsigned long long before = atomicAdd(reinterpret_cast<unsigned long long*>(v.sizes) + cluster, change);
  if (before == 0) atomicAdd(filled, 1ULL);
  if (before + change == 0) atomicAdd(filled, ~0ULL);
}

// By a warp.
template <class T>
__device__ void relabel(const T* rows, const ClusterView& v, std::int64_t row, std::int32_t to) {
  const int lane = threadIdx.x % 32;
  const std::int32_t from = v.labels[row];
  for (int j = lane; j < v.columns && v.limbs > 0; j += 32) {
    const double term = term_of(v, rows, row, j);
    add_term(v, term, j, to, false);
    if (from >= 0) add_term(v, term, j, from, true);
  }
  __syncwarp();
  if (lane != 0) return;
  change_sizes(v, to, 1);
  if (from >= 0) change_sizes(v, from, -1);
  v.labels[row] = to;
}

template <class T>
__global__ void __launch_bounds__(kThreads) add_kernel(const T* rows, const __grid_constant__ ClusterView v) {
  const std::int64_t changed = changed_rows(v);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kSumWarps;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kSumWarps + threadIdx.x / 32; i < changed; i += step) {
    const std::int64_t row = v.changed[i];
    relabel(rows, v, row, v.fresh[row]);
  }
}

template <class T>
__global__ void move_kernel(const T* rows, const __grid_constant__ ClusterView v, std::int64_t row,
                            std::int32_t cluster) {
  relabel(rows, v, row, cluster);
}

// Calls with each change of some changed rows, a lane a change: whether there is one, its cluster, its entry.
template <class Body>
__device__ __forceinline__ void each_change(const ClusterView& v, std::int64_t begin, std::int64_t end,
                                            const Body& body) {
  for (std::int64_t first = begin + threadIdx.x / 32 * 32; first < end; first += kThreads) {
    const std::int64_t i = first + threadIdx.x % 32;
    const bool is_row = i < end;
    const std::uint32_t row = is_row ? v.changed[i] : 0;
    const std::int32_t from = is_row ? v.labels[row] : -1;
    body(is_row, is_row ? v.fresh[row] : -1, row);
    body(from >= 0, from, row | kLeaves);
  }
}

// The lanes that have a change of the same cluster: one of them speaks for all.
struct Peers {
  unsigned mask;
  __device__ Peers(bool has, std::int32_t cluster) : mask(__match_any_sync(kWholeWarp, has ? cluster : -1)) {}
  [[nodiscard]] __device__ int leader() const { return __ffs(static_cast<int>(mask)) - 1; }
  [[nodiscard]] __device__ bool leads() const { return static_cast<int>(threadIdx.x % 32) == leader(); }
  [[nodiscard]] __device__ unsigned count() const { return static_cast<unsigned>(__popc(mask)); }
  [[nodiscard]] __device__ unsigned before() const {
    return static_cast<unsigned>(__popc(mask & ((1U << threadIdx.x % 32) - 1)));
  }
};

// The changed rows are dealt to blocks in runs, which count in shared memory where there are few clusters.
struct Deal {
  std::int64_t begin;
  std::int64_t end;
  __device__ explicit Deal(const ClusterView& v) {
    const std::int64_t changed = changed_rows(v);
    const std::int64_t each = (changed + gridDim.x - 1) / gridDim.x;
    begin = min(each * blockIdx.x, changed);
    end = min(begin + each, changed);
  }
};

template <bool kFew>
__global__ void __launch_bounds__(kThreads) count_kernel(const __grid_constant__ ClusterView v) {
  __shared__ std::uint32_t counts[2][kFew ? kFewClusters : 1];  // of rows that join and that leave
  auto* const totals = reinterpret_cast<unsigned long long*>(v.change_counts);
  if constexpr (kFew) {
    for (int c = static_cast<int>(threadIdx.x); c < v.k; c += kThreads) counts[0][c] = counts[1][c] = 0;
    __syncthreads();
  }
  const Deal deal(v);
  each_change(v, deal.begin, deal.end, [&](bool has, std::int32_t cluster, std::uint32_t entry) {
    const Peers peers(has, cluster);
    if (!has || !peers.leads()) return;
    const int leaves = (entry & kLeaves) != 0 ? 1 : 0;
    if constexpr (kFew) {
      atomicAdd(&counts[leaves][cluster], peers.count());
    } else {
      atomicAdd(totals + cluster, static_cast<unsigned long long>(peers.count()) << 32 * leaves);
    }
  });
  if constexpr (kFew) {
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < v.k; c += kThreads) {
      const auto count = counts[0][c] + (static_cast<unsigned long long>(counts[1][c]) << 32);
      if (count != 0) atomicAdd(totals + c, count);
    }
  }
}

// One block: counts (of rows that join, and in the upper half of those that leave) become sizes, and places of the
// clusters' first changes; the number of all is kept behind them.
__global__ void __launch_bounds__(kPlaceThreads) places_kernel(const __grid_constant__ ClusterView v) {
  __shared__ std::uint32_t sums[kPlaceThreads];
  const std::int64_t each = (v.k + kPlaceThreads - 1) / kPlaceThreads;
  const std::int64_t begin = each * threadIdx.x;
  const std::int64_t end = begin + each < v.k ? begin + each : v.k;
  std::uint32_t sum = 0;
  long long filled = 0;
  for (std::int64_t c = begin; c < end; ++c) {
    const std::uint64_t counts = v.change_counts[c];
    const auto joins = static_cast<std::uint32_t>(counts);
    const auto leaves = static_cast<std::uint32_t>(counts >> 32);
    sum += joins + leaves;
    v.sizes[c] += static_cast<long long>(joins) - static_cast<long long>(leaves);
    filled += v.sizes[c] > 0 ? 1 : 0;
  }
  if (threadIdx.x == 0) v.outcome->filled = 0;
  sums[threadIdx.x] = sum;
  for (int step = 1; step < kPlaceThreads; step *= 2) {
    __syncthreads();
    const std::uint32_t other = static_cast<int>(threadIdx.x) >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += other;
  }
  if (filled != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&v.outcome->filled), static_cast<unsigned long long>(filled));
  std::uint32_t place = sums[threadIdx.x] - sum;
  for (std::int64_t c = begin; c < end; ++c) {
    v.cursors[c] = place;
    place += static_cast<std::uint32_t>(v.change_counts[c]) + static_cast<std::uint32_t>(v.change_counts[c] >> 32);
  }
  if (threadIdx.x + 1 == kPlaceThreads) v.cursors[v.k] = sums[threadIdx.x];
}

template <bool kFew>
__global__ void __launch_bounds__(kThreads) order_kernel(const __grid_constant__ ClusterView v) {
  __shared__ std::uint32_t places[kFew ? kFewClusters : 1];  // of the block's next change of each cluster
  std::uint32_t* const cursors = kFew ? places : v.cursors;
  const Deal deal(v);
  if constexpr (kFew) {
    for (int c = static_cast<int>(threadIdx.x); c < v.k; c += kThreads) places[c] = 0;
    __syncthreads();
    each_change(v, deal.begin, deal.end, [&](bool has, std::int32_t cluster, std::uint32_t) {
      const Peers peers(has, cluster);
      if (has && peers.leads()) atomicAdd(places + cluster, peers.count());
    });
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < v.k; c += kThreads) {
      if (places[c] != 0) places[c] = atomicAdd(v.cursors + c, places[c]);
    }
    __syncthreads();
  }
  each_change(v, deal.begin, deal.end, [&](bool has, std::int32_t cluster, std::uint32_t entry) {
    const Peers peers(has, cluster);
    std::uint32_t place = 0;
    if (has && peers.leads()) place = atomicAdd(cursors + cluster, peers.count());
    place = __shfl_sync(kWholeWarp, place, peers.leader());
    if (has) v.entries[place + peers.before()] = entry;
  });
}

// As add_term, not inlined, because it is seldom met.
__device__ __noinline__ void add_rest(const ClusterView& v, double term, int column, std::int64_t cluster,
                                      bool leaves) {
  add_term(v, term, column, cluster, leaves);
}

// A sum that is a whole number of units, less than 2^53 of them. Not inlined, because it is seldom met.
__device__ __noinline__ void add_units(std::int64_t* limb, double sum, int unit) {
  add_part(limb, static_cast<std::uint64_t>(__double2ll_rn(ldexp(sum, -unit))));
}

// A warp adds a run of changes in 64 columns. A term is split at the unit of the highest limb, and what is above and
// below is added in float64, exactly: both are less than 2^42 units, and 2^6 of them less than 2^53. What lies below
// the two highest limbs, in columns of values very far apart, goes to its limbs one by one.
template <class T>
class Adder {
 public:
  __device__ Adder(const ClusterView& v, const T* rows, int first_column)
      : v_(v),
        rows_(rows),
        first_(first_column + static_cast<int>(threadIdx.x % 32)),
        limb_(core::power_of_two(-v.bits)) {
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      unit_[c] = (column(c) < v.columns ? v.bases[column(c)] : 0) + (v.limbs - 1) * v.bits;
      splitter_[c] = core::power_of_two(unit_[c]) * 0x1.8p52;
    }
  }

  __device__ void run(std::int64_t first, std::int64_t end) {
    for (; first < end; first += 32) {
      const int count = static_cast<int>(min(end - first, std::int64_t{32}));
      const int lane = static_cast<int>(threadIdx.x % 32);
      const std::uint32_t entry = lane < count ? v_.entries[first + lane] : 0;
      const std::uint32_t row = entry & ~kLeaves;
      const std::int32_t cluster = lane >= count ? -1 : (entry & kLeaves) != 0 ? v_.labels[row] : v_.fresh[row];
#pragma unroll 1
      for (int i = 0; i < count; i += kRowsAhead) {
        T values[kRowsAhead][kLaneColumns];
        double weights[kRowsAhead];
#pragma unroll
        for (int a = 0; a < kRowsAhead; ++a) {
          // Beyond the last one a row is read twice.
          const std::int64_t at = __shfl_sync(kWholeWarp, row, min(i + a, count - 1));
          weights[a] = v_.weights != nullptr ? v_.weights[at] : 1.0;
#pragma unroll
          for (int c = 0; c < kLaneColumns; ++c) {
            if (column(c) < v_.rows.d) values[a][c] = rows_[at * v_.rows.d + column(c)];
          }
        }
#pragma unroll
        for (int a = 0; a < kRowsAhead; ++a) {
          const std::int32_t to = __shfl_sync(kWholeWarp, cluster, i + a);
          const bool leaves = (__shfl_sync(kWholeWarp, entry, i + a) & kLeaves) != 0;
          if (i + a >= count) break;
          if (to != cluster_) {
            flush();
            cluster_ = to;
          }
#pragma unroll
          for (int c = 0; c < kLaneColumns; ++c) {
            // The last column is of the weights, where there are some.
            const double value = column(c) < v_.rows.d ? widen(values[a][c]) : column(c) < v_.columns ? 1.0 : 0.0;
            add(v_.weights != nullptr ? __dmul_rn(weights[a], value) : value, c, leaves);
          }
        }
      }
    }
    flush();
  }

 private:
  [[nodiscard]] __device__ __forceinline__ int column(int c) const {
    return first_ + 32 * c;
  }

  __device__ __forceinline__ void add(double term, int c, bool leaves) {
    const double sign = leaves ? -1 : 1;
    double above = term;
    if (v_.limbs > 1) {
      above = __dsub_rn(__dadd_rn(term, splitter_[c]), splitter_[c]);
      double below = __dsub_rn(term, above);
      if (v_.limbs > 2) below = within(below, c, leaves);
      below_[c] = __fma_rn(sign, below, below_[c]);
    }
    above_[c] = __fma_rn(sign, above, above_[c]);
  }

  // What of a term is a multiple of the second highest limb's unit; the rest is added to the sums at once.
  __device__ __forceinline__ double within(double below, int c, bool leaves) {
    const double splitter = splitter_[c] * limb_;
    const double kept = __dsub_rn(__dadd_rn(below, splitter), splitter);
    if (kept != below) add_rest(v_, __dsub_rn(below, kept), column(c), cluster_, leaves);
    return kept;
  }

  __device__ __forceinline__ void flush() {
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      if (cluster_ >= 0 && column(c) < v_.columns) {
        std::int64_t* const top = v_.sums + (std::int64_t{cluster_ + 1} * v_.limbs - 1) * v_.columns + column(c);
        add_units(top, above_[c], unit_[c]);
        if (v_.limbs > 1) add_units(top - v_.columns, below_[c], unit_[c] - v_.bits);
      }
      above_[c] = below_[c] = 0;
    }
  }

  const ClusterView& v_;
  const T* rows_;
  int first_;
  std::int32_t cluster_ = -1;
  double limb_;             // 2^-bits
  int unit_[kLaneColumns];  // of the highest limb, an exponent
  double splitter_[kLaneColumns];
  double above_[kLaneColumns] = {};
  double below_[kLaneColumns] = {};
};

template <class T>
__global__ void __launch_bounds__(kThreads, 3)
    add_ordered_kernel(const T* rows, const __grid_constant__ ClusterView v) {
  const std::int64_t changes = v.cursors[v.k];
  const std::int64_t bands = (v.columns + kWidth - 1) / kWidth;
  const std::int64_t items = (changes + kRun - 1) / kRun * bands;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kSumWarps;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kSumWarps + threadIdx.x / 32; item < items;
       item += step) {
    const std::int64_t first = item / bands * kRun;
    Adder<T>(v, rows, static_cast<int>(item % bands) * kWidth).run(first, min(first + kRun, changes));
  }
}

__global__ void __launch_bounds__(kThreads) relabel_kernel(const __grid_constant__ ClusterView v) {
  const std::int64_t changed = changed_rows(v);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < changed; i += step) {
    v.labels[v.changed[i]] = v.fresh[v.changed[i]];
  }
}

}  // namespace

void add_changed(const Engine& engine, const ClusterView& view) {
  const auto grid = static_cast<unsigned>(engine.multiprocessors * 8);
  if (view.entries == nullptr) {
    with_elements(view.rows.data, view.rows.dtype,
                  [&](const auto* data) { add_kernel<<<grid, kThreads, 0, engine.stream>>>(data, view); });
    return check_launch("add changed rows");
  }
  check(cudaMemsetAsync(view.change_counts, 0, static_cast<std::size_t>(view.k) * sizeof(std::uint64_t), engine.stream),
        "clear counts");
  const bool few = view.k <= kFewClusters;
  (few ? count_kernel<true> : count_kernel<false>)<<<grid, kThreads, 0, engine.stream>>>(view);
  check_launch("count changes");
  places_kernel<<<1, kPlaceThreads, 0, engine.stream>>>(view);
  check_launch("add up counts of changes");
  (few ? order_kernel<true> : order_kernel<false>)<<<grid, kThreads, 0, engine.stream>>>(view);
  check_launch("order changes");
  with_elements(view.rows.data, view.rows.dtype,
                [&](const auto* data) { add_ordered_kernel<<<grid, kThreads, 0, engine.stream>>>(data, view); });
  check_launch("add ordered changes");
  relabel_kernel<<<grid, kThreads, 0, engine.stream>>>(view);
  check_launch("relabel changed rows");
}

void add_moved(const Engine& engine, const ClusterView& view, std::int64_t row, std::int32_t cluster) {
  with_elements(view.rows.data, view.rows.dtype,
                [&](const auto* data) { move_kernel<<<1, 32, 0, engine.stream>>>(data, view, row, cluster); });
  check_launch("move a row");
}

}  // namespace vicinal::cuda::kmeans
