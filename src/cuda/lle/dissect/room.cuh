// What a block of threads that dissects a part (dissect.hpp) finds where. A test without a device has a block of one
// thread instead of team.cuh (tests/fake_device/dissect.hpp).
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#include "cuda/lle/dissect/team.cuh"
#endif

namespace vicinal::cuda::lle {

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
  __device__ void for_each_block(std::int32_t point, const Body& body) const {
    for (std::int64_t e = first[point] + rank_at_point(); e < first[point + 1]; e += kPointThreads) {
      body(static_cast<std::int32_t>(places[e] / width));
    }
  }
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

/// Where among so many ascending numbers the first one that is not less stands.
__device__ inline int place_among(const std::int32_t* numbers, int count, std::int32_t number) {
  int low = 0;
  int high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (numbers[middle] < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// For each i of [begin, end) tell(i, sum of number(j) for j < i, number(i)); gives the sum of all. `number` may read
/// what `tell` writes, of a chunk before. All threads of the block, which have told all when it comes back.
template <class Number, class Tell>
__device__ int running_sum(int begin, int end, const Number& number, const Tell& tell) {
  int sum = 0;
  for (int base = begin; base < end; base += kPartThreads) {
    const int i = base + rank();
    const int own = i < end ? number(i) : 0;
    int all = 0;
    const int before = sum_before(own, all);
    if (i < end) tell(i, sum + before, own);
    sum += all;
    __syncthreads();
  }
  return sum;
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

}  // namespace vicinal::cuda::lle
