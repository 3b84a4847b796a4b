// The contract's eight accumulators one after the other (clause 1): in the order 0, 4, 2, 6, 1, 5, 3, 7, in which rows
// are packed (keys.hpp), the tree ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7)) needs four numbers of a pair.
#pragma once

#include <cstdint>

namespace vicinal::cuda {

/// The place of an accumulator in that order, and the accumulator of a place: bits reversed.
__host__ __device__ constexpr int reversed(int i) {
  return (i & 1) << 2 | (i & 2) | (i & 4) >> 2;
}

/// Columns that the accumulator at a place takes, of d.
__host__ __device__ constexpr std::int64_t columns_at(int place, std::int64_t d) {
  return (d - reversed(place) + 7) / 8;
}

/// Where a column comes in packed rows.
__host__ __device__ constexpr std::int64_t packed_column(std::int64_t column, std::int64_t d) {
  const int place = reversed(static_cast<int>(column & 7));
  std::int64_t begin = 0;
  for (int before = 0; before < place; ++before) begin += columns_at(before, d);
  return begin + column / 8;
}

/// Takes the accumulator that comes `place`-th, finished. After the last one, `left` is the sum.
template <class Op>
__device__ __forceinline__ void join_at(int place, double a, double& left, double& right, double& last) {
  switch (place) {
    case 0:
      left = a;
      break;
    case 1:
      left = Op::join(left, a);
      break;
    case 2:
      right = a;
      break;
    case 3:
      left = Op::join(left, Op::join(right, a));
      break;
    case 4:
      right = a;
      break;
    case 5:
      right = Op::join(right, a);
      break;
    case 6:
      last = a;
      break;
    default:
      left = Op::join(left, Op::join(right, Op::join(last, a)));
  }
}

}  // namespace vicinal::cuda
