// What the screens of k-means do with a row when they have seen all centers: its label goes to the list of changed
// rows, or the row to that of open ones.
#pragma once

#include <cmath>

#include "cuda/base/warp.cuh"
#include "cuda/kmeans/cluster.hpp"

namespace vicinal::cuda::kmeans {

/// A warp's part of two lists: the open rows, and the rows whose labels change. Rows gather in shared memory and go to
/// the lists tens at a time, because atomics of all warps on one address are served one after the other. `kMost`: rows
/// that come at a time.
template <int kMost>
class WarpLists {
 public:
  struct Store {
    std::uint32_t rows[2 * kMost];
    std::uint32_t notes[2 * kMost];  ///< of an open row the bits of its reach, of one that changes its label
  };
  __device__ WarpLists(const ClusterView& v, Store* stores) : v_(v), open_(stores[0]), changed_(stores[1]) {}

  /// By all lanes, each for a row of its own, if it has one.
  __device__ __forceinline__ void take(std::int64_t row, bool is_row, bool decided, int label, int label_before,
                                       float reach) {
    put(open_, open_count_, is_row && !decided, row, __float_as_uint(reach));
    put(changed_, changed_count_, is_row && decided && label_before != label, row, static_cast<std::uint32_t>(label));
    if (open_count_ > kMost) flush_open();
    if (changed_count_ > kMost) flush_changed();
  }
  __device__ void flush() {
    flush_open();
    flush_changed();
  }

  /// Room of a block for `end`.
  template <int kWarps>
  struct Ends {
    int counts[kWarps];
    unsigned long long first;
  };
  /// By all threads of a block: `flush` of its warps with one atomic, where no row was open.
  template <int kWarps>
  __device__ void end(Ends<kWarps>& ends) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) ends.counts[warp] = changed_count_;
    __syncthreads();
    int before = 0;
    int all = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) before += ends.counts[w];
      all += ends.counts[w];
    }
    if (threadIdx.x == 0 && all > 0) {
      ends.first = atomicAdd(&v_.outcome->tally.changed, static_cast<unsigned long long>(all));
    }
    __syncthreads();
    write_changed(ends.first + static_cast<unsigned long long>(before));
  }

 private:
  __device__ __forceinline__ void put(Store& store, int& count, bool asks, std::int64_t row, std::uint32_t note) {
    const unsigned asking = __ballot_sync(kWholeWarp, asks);
    if (asks) {
      const int place = count + __popc(asking & ((1U << threadIdx.x % 32) - 1));
      store.rows[place] = static_cast<std::uint32_t>(row);
      store.notes[place] = note;
    }
    count += __popc(asking);
  }
  // Places for so many rows in a list; in all lanes.
  __device__ __forceinline__ unsigned long long places(unsigned long long* total, int count) {
    __syncwarp();
    unsigned long long first = 0;
    if (threadIdx.x % 32 == 0 && count > 0) first = atomicAdd(total, static_cast<unsigned long long>(count));
    return __shfl_sync(kWholeWarp, first, 0);
  }
  __device__ __forceinline__ void flush_open() {
    const unsigned long long first = places(&v_.outcome->tally.open, open_count_);
    for (int i = static_cast<int>(threadIdx.x % 32); i < open_count_; i += 32) {
      v_.open[first + i] = open_.rows[i];
      if (static_cast<std::int64_t>(first) + i < v_.half.open_room) {
        v_.half.reaches[first + i] = __uint_as_float(open_.notes[i]);
      }
    }
    __syncwarp();
    open_count_ = 0;
  }
  __device__ __forceinline__ void flush_changed() { write_changed(places(&v_.outcome->tally.changed, changed_count_)); }
  __device__ __forceinline__ void write_changed(unsigned long long first) {
    for (int i = static_cast<int>(threadIdx.x % 32); i < changed_count_; i += 32) {
      v_.changed[first + i] = changed_.rows[i];
      v_.fresh[changed_.rows[i]] = static_cast<std::int32_t>(changed_.notes[i]);
    }
    __syncwarp();
    changed_count_ = 0;
  }

  const ClusterView& v_;
  Store& open_;
  Store& changed_;
  int open_count_ = 0;
  int changed_count_ = 0;
};

/// Open rows that are multiplied a second time; the rest are decided by the keys of all centers.
__device__ __forceinline__ std::int64_t narrowed_rows(const ClusterView& v) {
  const auto open = static_cast<std::int64_t>(v.outcome->tally.open);
  return open < v.half.open_room ? open : v.half.open_room;
}

/// What every other center's score must stay below for the best one to be the label: the last inequality of
/// half.cu.
__device__ __forceinline__ float half_reach(const HalfView& v, float best, const HalfFacts& row,
                                            const HalfFacts& centre) {
  const float a1 = (8.08F * v.beta * centre.kappa + 0x1p-13F) * (0.12625F * row.kappa + 0x1p-13F);
  const float a2 = (1.01F * centre.rho + 0x1p-13F) * (1.01F * row.norm + 0x1p-13F);
  const float a3 = (1.01F * centre.norm + 0x1p-13F) * (1.01F * row.rho + 0x1p-13F);
  const float below = 2.06F * (a1 + a2 + a3) + (2.06F * v.beta + 0x1p-19F) * centre.half_square + 1;
  const float cut = 0x1p-16F + 0x1p-20F;
  const float reach = best - cut * fabsf(best) - below - v.margin;
  return reach - 2 * cut * fabsf(reach);
}

/// What the score of another center must reach for it to be the label instead of the row's own, by the sum of the
/// products of the two's float16: L_a less 4 beta and m of half.cu.
__device__ __forceinline__ float own_reach(const HalfView& v, float products, const HalfFacts& row,
                                           const HalfFacts& centre) {
  const float summing = static_cast<float>(v.columns) * 0x1p-24F * (row.norm + row.rho) * centre.norm;
  const float below = 1.01F * (summing + row.norm * centre.rho + row.rho * centre.norm) + v.margin;
  const float rounding = 0x1p-20F * (fabsf(products) + centre.half_square + below);
  return products - centre.half_square - below - rounding;
}

}  // namespace vicinal::cuda::kmeans
