// What a block of threads that dissects a part (dissect.hpp) finds where, and what its threads find out together.
#pragma once

#include <cstdint>

#include "cuda/warp.cuh"

namespace vicinal::cuda {

enum PartSide : std::uint8_t { kCutSide = 0, kLeftSide = 1, kRightSide = 2 };  // solver::Side

/// Blocks, and what is noted of points and blocks: each belongs to one part, and so to one block of threads, at a time.
struct PartGraph {
  const std::int32_t* cols;   // [n, width]
  const std::int64_t* first;  // [n + 1] of the blocks that have a point
  const std::uint32_t* places;
  const std::int32_t* cell_of;  // [n]
  std::uint32_t width;
  std::int32_t* order;  // [n]
  std::int32_t* spare;  // [n]
  std::int32_t* cell;   // [n] of a part's points, among the cells of all parts; -1 of others
  std::uint8_t* side;   // [n]
  std::int32_t* band;   // [n] where in the band a point is, or kUnseen
  std::int32_t* hub;    // [n] likewise of a block

  /// Of this thread's share.
  template <class Body>
  __device__ void for_each_block(std::int32_t point, const Body& body) const;
  template <class Body>
  __device__ void for_each_alive(std::int32_t block, const Body& body) const {
    const std::int32_t* of = cols + static_cast<std::int64_t>(block) * width;
    for (std::uint32_t c = 0; c < width; ++c) {
      if (side[of[c]] != kCutSide) body(of[c]);
    }
  }
};

constexpr std::int32_t kUnseen = -1;
constexpr std::int32_t kSeen = -2;
constexpr std::int32_t kSpread = -3;

/// The cells of a part, [0, cells), and those that are their neighbors, up to `places`.
struct PartCells {
  const std::int32_t* number;     // [cells] in the finest graph, ascending
  const std::int64_t* first;      // [cells + 1]
  const std::int32_t* neighbors;  // of all parts
  std::int32_t begin;             // the part's first cell among those of all parts
  std::int32_t cells;
  std::int32_t places;
};

constexpr int kPartThreads = 256;
constexpr int kPartWarps = kPartThreads / 32;
constexpr int kPointThreads = 8;  // that share the blocks of a point

__device__ inline int rank() {
  return static_cast<int>(threadIdx.x);
}
/// Which of the threads that share a point, and which of the points that are shared at a time.
__device__ inline int rank_at_point() {
  return rank() % kPointThreads;
}
__device__ inline int rank_of_point() {
  return rank() / kPointThreads;
}

/// What `combine` makes of a number of each thread.
template <class T, class Combine>
__device__ T combined(T x, const Combine& combine) {
  __shared__ T parts[kPartWarps];
  for (int step = 16; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(kWholeWarp, x, step));
  if (rank() % 32 == 0) parts[rank() / 32] = x;
  __syncthreads();
  x = parts[0];
  for (int warp = 1; warp < kPartWarps; ++warp) x = combine(x, parts[warp]);
  __syncthreads();
  return x;
}
__device__ inline int least_of(int x) {
  return combined(x, [](int a, int b) { return min(a, b); });
}
__device__ inline int most_of(int x) {
  return combined(x, [](int a, int b) { return max(a, b); });
}
__device__ inline int sum_of(int x) {
  return combined(x, [](int a, int b) { return a + b; });
}
/// The sum of the threads before, and of all.
__device__ inline int sum_before(int x, int& all) {
  __shared__ int parts[kPartWarps];
  int sum = x;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(kWholeWarp, sum, step);
    if (rank() % 32 >= step) sum += other;
  }
  if (rank() % 32 == 31) parts[rank() / 32] = sum;
  __syncthreads();
  all = 0;
  for (int warp = 0; warp < kPartWarps; ++warp) {
    if (warp < rank() / 32) sum += parts[warp];
    all += parts[warp];
  }
  __syncthreads();
  return sum - x;
}

/// Memory of one block: shared while there is some, then global. All threads take the same.
class PartRoom {
 public:
  __device__ PartRoom(std::int32_t* shared, int size, std::int32_t* global)
      : shared_(shared), left_(size), global_(global) {}
  __device__ std::int32_t* take(int count) {
    if (count <= left_) {
      std::int32_t* const taken = shared_;
      shared_ += count;
      left_ -= count;
      return taken;
    }
    std::int32_t* const taken = global_;
    global_ += count;
    return taken;
  }
  __device__ std::int32_t* take(int count, std::int32_t value) {
    std::int32_t* const taken = take(count);
    for (int i = rank(); i < count; i += kPartThreads) taken[i] = value;
    return taken;
  }

 private:
  std::int32_t* shared_;
  int left_;
  std::int32_t* global_;
};

/// An increasing number that all threads draw from; who gets or sets it waits for all others.
class Counter {
 public:
  __device__ explicit Counter(int* at) : at_(at) {}
  __device__ void set(int value) const {
    __syncthreads();
    if (rank() == 0) *at_ = value;
    __syncthreads();
  }
  __device__ int draw(int count = 1) const { return atomicAdd(at_, count); }
  __device__ int get() const {
    __syncthreads();
    const int value = *at_;
    __syncthreads();
    return value;
  }

 private:
  int* at_;
};

template <class Body>
__device__ void PartGraph::for_each_block(std::int32_t point, const Body& body) const {
  for (std::int64_t e = first[point] + rank_at_point(); e < first[point + 1]; e += kPointThreads) {
    body(static_cast<std::int32_t>(places[e] / width));
  }
}

}  // namespace vicinal::cuda
