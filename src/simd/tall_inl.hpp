// The loops of tall_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too. Columns are
// taken a vector at a time; those that are left one by one.

#include "simd/tall_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

namespace tall {

using Lanes = hn::ScalableTag<double>;
using Vec = hn::Vec<Lanes>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(Lanes()));
constexpr std::int64_t kRowsAtOnce = 256;  // of a pass over them, so that they stay in a cache
constexpr int kSums = 8;                   // in registers

// kCount rows of the sums, from a and a vector of b.
template <int kCount>
HWY_INLINE void inner_columns(std::int64_t n, const double* a, std::int64_t wide_a, const double* b,
                              std::int64_t wide_b, double* to) {
  const Lanes lanes;
  Vec sums[kCount];
#pragma GCC unroll 8
  for (int r = 0; r < kCount; ++r) sums[r] = hn::LoadU(lanes, to + r * wide_b);
  for (std::int64_t i = 0; i < n; ++i) {
    const Vec values = hn::LoadU(lanes, b + i * wide_b);
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) sums[r] = hn::MulAdd(hn::Set(lanes, a[i * wide_a + r]), values, sums[r]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kCount; ++r) hn::StoreU(sums[r], lanes, to + r * wide_b);
}

inline void inner(std::int64_t n, const double* a, std::int64_t wide_a, const double* b, std::int64_t wide_b,
                  double* sums) {
  for (std::int64_t first = 0; first < n; first += kRowsAtOnce, a += kRowsAtOnce * wide_a, b += kRowsAtOnce * wide_b) {
    const std::int64_t rows = n - first < kRowsAtOnce ? n - first : kRowsAtOnce;
    std::int64_t c = 0;
    for (; c + kLanes <= wide_b; c += kLanes) {
      std::int64_t r = 0;
      for (; r + kSums <= wide_a; r += kSums) {
        inner_columns<kSums>(rows, a + r, wide_a, b + c, wide_b, sums + r * wide_b + c);
      }
      for (; r < wide_a; ++r) inner_columns<1>(rows, a + r, wide_a, b + c, wide_b, sums + r * wide_b + c);
    }
    for (; c < wide_b; ++c) {
      for (std::int64_t r = 0; r < wide_a; ++r) {
        double sum = sums[r * wide_b + c];
        for (std::int64_t i = 0; i < rows; ++i) sum += a[i * wide_a + r] * b[i * wide_b + c];
        sums[r * wide_b + c] = sum;
      }
    }
  }
}

// Adds to the rows of y, or to zeros. Two rows at a time, for the latency.
template <bool kSubtract>
HWY_INLINE void product_of(std::int64_t n, const double* x, std::int64_t wide_x, const double* c, double* y,
                           std::int64_t wide_y) {
  const Lanes lanes;
  std::int64_t j = 0;
  for (; j + kLanes <= wide_y; j += kLanes) {
    std::int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      const double* const from = x + i * wide_x;
      double* const to = y + i * wide_y + j;
      Vec first = kSubtract ? hn::LoadU(lanes, to) : hn::Zero(lanes);
      Vec second = kSubtract ? hn::LoadU(lanes, to + wide_y) : hn::Zero(lanes);
      for (std::int64_t r = 0; r < wide_x; ++r) {
        const Vec factors = hn::LoadU(lanes, c + r * wide_y + j);
        if constexpr (kSubtract) {
          first = hn::NegMulAdd(hn::Set(lanes, from[r]), factors, first);
          second = hn::NegMulAdd(hn::Set(lanes, from[wide_x + r]), factors, second);
        } else {
          first = hn::MulAdd(hn::Set(lanes, from[r]), factors, first);
          second = hn::MulAdd(hn::Set(lanes, from[wide_x + r]), factors, second);
        }
      }
      hn::StoreU(first, lanes, to);
      hn::StoreU(second, lanes, to + wide_y);
    }
    for (; i < n; ++i) {
      double* const to = y + i * wide_y + j;
      Vec sum = kSubtract ? hn::LoadU(lanes, to) : hn::Zero(lanes);
      for (std::int64_t r = 0; r < wide_x; ++r) {
        const Vec factors = hn::LoadU(lanes, c + r * wide_y + j);
        const Vec value = hn::Set(lanes, x[i * wide_x + r]);
        sum = kSubtract ? hn::NegMulAdd(value, factors, sum) : hn::MulAdd(value, factors, sum);
      }
      hn::StoreU(sum, lanes, to);
    }
  }
  for (; j < wide_y; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      double sum = kSubtract ? y[i * wide_y + j] : 0;
      for (std::int64_t r = 0; r < wide_x; ++r) {
        const double product = x[i * wide_x + r] * c[r * wide_y + j];
        sum = kSubtract ? sum - product : sum + product;
      }
      y[i * wide_y + j] = sum;
    }
  }
}

inline void product(std::int64_t n, const double* x, std::int64_t wide_x, const double* c, double* y,
                    std::int64_t wide_y) {
  product_of<false>(n, x, wide_x, c, y, wide_y);
}

inline void subtract(std::int64_t n, const double* x, std::int64_t wide_x, const double* c, double* y,
                     std::int64_t wide_y) {
  product_of<true>(n, x, wide_x, c, y, wide_y);
}

inline void combine(std::int64_t count, const double* values, const double* const* rows, std::int64_t wide,
                    double* out) {
  const Lanes lanes;
  std::int64_t c = 0;
  for (; c + kLanes <= wide; c += kLanes) {
    Vec sum = hn::Zero(lanes);
    for (std::int64_t j = 0; j < count; ++j) {
      sum = hn::MulAdd(hn::Set(lanes, values[j]), hn::LoadU(lanes, rows[j] + c), sum);
    }
    hn::StoreU(sum, lanes, out + c);
  }
  for (; c < wide; ++c) {
    double sum = 0;
    for (std::int64_t j = 0; j < count; ++j) sum += values[j] * rows[j][c];
    out[c] = sum;
  }
}

inline void reflect(double* r, double* strip, std::int64_t q, std::int64_t j) {
  constexpr std::int64_t kVectors = kFoldedRows / kLanes;
  static_assert(kFoldedRows % kLanes == 0);
  const Lanes lanes;
  double* const own = strip + j * kFoldedRows;
  Vec most = hn::Zero(lanes);
  for (std::int64_t v = 0; v < kVectors; ++v) most = hn::Max(most, hn::Abs(hn::LoadU(lanes, own + v * kLanes)));
  const double of_strip = hn::GetLane(hn::MaxOfLanes(lanes, most));
  const double magnitude = r[j * q + j] < 0 ? -r[j * q + j] : r[j * q + j];
  const double largest = magnitude > of_strip ? magnitude : of_strip;  // one that is not a number stays
  if (largest == 0) return;
  Vec squares = hn::Zero(lanes);
  for (std::int64_t v = 0; v < kVectors; ++v) {
    const Vec value = hn::Div(hn::LoadU(lanes, own + v * kLanes), hn::Set(lanes, largest));
    hn::StoreU(value, lanes, own + v * kLanes);
    squares = hn::MulAdd(value, value, squares);
  }
  const double below = hn::GetLane(hn::SumOfLanes(lanes, squares));
  if (below == 0) return;
  const double head = r[j * q + j] / largest;
  const double length = __builtin_sqrt(head * head + below);
  const double pivot =
      head > 0 ? head + length : head - length;  // the reflection's vector: pivot, column j of the strip
  const double scale = 2 / (pivot * pivot + below);
  for (std::int64_t c = j + 1; c < q; ++c) {
    double* const other = strip + c * kFoldedRows;
    Vec along = hn::Zero(lanes);
    for (std::int64_t v = 0; v < kVectors; ++v) {
      along = hn::MulAdd(hn::LoadU(lanes, own + v * kLanes), hn::LoadU(lanes, other + v * kLanes), along);
    }
    const double sum = (pivot * r[j * q + c] + hn::GetLane(hn::SumOfLanes(lanes, along))) * scale;
    r[j * q + c] -= sum * pivot;
    const Vec taken = hn::Set(lanes, sum);
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const Vec rest = hn::NegMulAdd(taken, hn::LoadU(lanes, own + v * kLanes), hn::LoadU(lanes, other + v * kLanes));
      hn::StoreU(rest, lanes, other + v * kLanes);
    }
  }
  r[j * q + j] = (head > 0 ? -length : length) * largest;
}

}  // namespace tall

constexpr TallKernels make_tall_kernels() {
  return {tall::inner, tall::product, tall::subtract, tall::combine, tall::reflect};
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
