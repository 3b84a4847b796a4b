// Where a warp cuts a list of scores or keys so that at least k of them are kept, by bisection over the bits of the
// numbers: O(1) a step where they are held in registers, at most 32 steps.
#pragma once

#include <cstdint>

#include "cuda/base/warp.cuh"

namespace vicinal::cuda {

constexpr int kFewHeld = 4;      ///< scores that a lane keeps in registers where a cut is looked for, these
constexpr int kHeld = 16;        ///< or these
constexpr int kCutGroups = 128;  ///< whose maxima stand for all scores

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
// The smallest and the largest of the values of a warp that count; where none does, `least` is above `most`.
struct Range {
  std::uint32_t least = 0xFFFFFFFFU;
  std::uint32_t most = 0;
  __device__ void take(std::uint32_t value) {
    if (value <= kNone) return;
    least = min(least, value);
    most = max(most, value);
  }
  __device__ void meet() {
    least = least_of_warp(least);
    most = most_of_warp(most);
  }
};

// The largest cut that at least k of the lanes' values reach, as `reaching(cut)` counts them, or a lower one that at
// most `most` reach; one that all that count reach, where fewer than k do. The range is the values': numbers that are
// near each other have most of their bits in common, and the search need not find these.
template <class Reaching>
__device__ inline std::uint32_t cut_for(const Reaching& reaching, const Range& range, int k, int most) {
  if (range.least > range.most) return kNone + 1;
  std::uint32_t low = range.least;
  std::uint32_t high = min(range.most, 0xFFFFFFFEU) + 1;
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

// Scores that lie at one distance from each other.
struct Scores {
  const float* first;
  int stride;
  __device__ float operator()(int i) const { return first[static_cast<std::int64_t>(i) * stride]; }
};
// A cut that at least k of the scores reach, and as a rule not many more: the k-th largest of the maxima of groups, or,
// where k is large or groups are few, of all scores.
template <int kHeld>
__device__ __forceinline__ std::uint32_t cut_of_held(const Scores& score_of, int count, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  std::uint32_t order[kHeld];
  Range range;
#pragma unroll
  for (int h = 0; h < kHeld; ++h) {
    order[h] = lane + 32 * h < count ? ordered(score_of(lane + 32 * h)) : 0;
    range.take(order[h]);
  }
  range.meet();
  return cut_for(
      [&](std::uint32_t at) {
        int reached = 0;
#pragma unroll
        for (int h = 0; h < kHeld; ++h) reached += order[h] >= at ? 1 : 0;
        return reached;
      },
      range, k, k + slack_of(k));
}
__device__ inline std::uint32_t cut_of_scores(Scores score_of, int count, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (count <= 32 * kFewHeld) return cut_of_held<kFewHeld>(score_of, count, k);
  if (count <= 32 * kHeld) return cut_of_held<kHeld>(score_of, count, k);
  if (k <= kCutGroups / 2) {
    constexpr int kMine = kCutGroups / 32;
    float maxima[kMine];
#pragma unroll
    for (float& largest : maxima) largest = -HUGE_VALF;
    for (int first = kMine * lane; first < count; first += kCutGroups) {
#pragma unroll
      for (int g = 0; g < kMine; ++g)
        maxima[g] = fmaxf(maxima[g], first + g < count ? score_of(first + g) : -HUGE_VALF);
    }
    std::uint32_t order[kMine];
    Range range;
#pragma unroll
    for (int g = 0; g < kMine; ++g) {
      order[g] = ordered(maxima[g]);
      range.take(order[g]);
    }
    range.meet();
    const std::uint32_t cut = cut_for(
        [&](std::uint32_t at) {
          int reached = 0;
#pragma unroll
          for (int g = 0; g < kMine; ++g) reached += order[g] >= at ? 1 : 0;
          return reached;
        },
        range, k, k + k / 16);
    // Fewer than k groups have a row that counts: all rows are looked at.
    int counting = 0;
#pragma unroll
    for (int g = 0; g < kMine; ++g) counting += order[g] > kNone ? 1 : 0;
    if (sum_of_warp(counting) >= k) return cut;
  }
  Range range;
  for (int i = lane; i < count; i += 32) range.take(ordered(score_of(i)));
  range.meet();
  return cut_for(
      [&](std::uint32_t at) {
        int reached = 0;
        for (int i = lane; i < count; i += 32) reached += ordered(score_of(i)) >= at ? 1 : 0;
        return reached;
      },
      range, k, k + slack_of(k));
}

// The same of the nearness of keys[0 .. count).
__device__ inline std::uint32_t cut_of_keys(const double* keys, int count, int k, int most) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  Range range;
  for (int i = lane; i < count; i += 32) range.take(nearness(keys[i]));
  range.meet();
  return cut_for(
      [&](std::uint32_t at) {
        int reached = 0;
        for (int i = lane; i < count; i += 32) reached += nearness(keys[i]) >= at ? 1 : 0;
        return reached;
      },
      range, k, most);
}

// Not below the k-th smallest of keys[0 .. count), count >= k, and above it by 2^-19 of it at most.
__device__ inline double kth_smallest(const double* keys, int count, int k) {
  const std::uint32_t cut = cut_of_keys(keys, count, k, k);
  // The largest of those that reach it.
  double largest = -HUGE_VAL;
  for (int i = static_cast<int>(threadIdx.x % 32); i < count; i += 32) {
    if (nearness(keys[i]) >= cut) largest = fmax(largest, keys[i]);
  }
  for (int step = 16; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(kWholeWarp, largest, step));
  return largest;
}

}  // namespace vicinal::cuda
