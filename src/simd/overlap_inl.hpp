// The loop of overlap_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too. Nothing is
// fused, because plain x86-64 cannot.

#include <bit>

#include "simd/overlap_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

inline std::uint32_t bits_of(hn::Mask<DoubleTag> mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(DoubleTag(), mask, bytes);
  return bytes[0];
}

struct PieceOfA {
  PieceOfA(const OverlapPieces& a, std::int64_t i)
      : left(hn::Set(DoubleTag(), a.left[i])),
        right(hn::Set(DoubleTag(), a.right[i])),
        height(hn::Set(DoubleTag(), a.height[i])),
        slope(hn::Set(DoubleTag(), a.slope[i])) {}

  DoubleVec left;
  DoubleVec right;
  DoubleVec height;
  DoubleVec slope;
};

// A piece of a (f) with a vector of pieces of b (g): the width that both span, whether there is any, and the heights of
// both at its ends.
struct Met {
  HWY_INLINE Met(const PieceOfA& a, const OverlapPieces& b, std::int64_t at) {
    const DoubleTag dd;
    const DoubleVec b_left = hn::LoadU(dd, b.left + at);
    const DoubleVec left = hn::Max(a.left, b_left);
    const DoubleVec right = hn::Min(a.right, hn::LoadU(dd, b.right + at));
    width = hn::Sub(right, left);
    common = hn::Gt(width, hn::Zero(dd));
    const DoubleVec b_height = hn::LoadU(dd, b.height + at);
    const DoubleVec b_slope = hn::LoadU(dd, b.slope + at);
    f0 = hn::Add(a.height, hn::Mul(a.slope, hn::Sub(left, a.left)));
    f1 = hn::Add(a.height, hn::Mul(a.slope, hn::Sub(right, a.left)));
    g0 = hn::Add(b_height, hn::Mul(b_slope, hn::Sub(left, b_left)));
    g1 = hn::Add(b_height, hn::Mul(b_slope, hn::Sub(right, b_left)));
  }

  DoubleVec width;
  hn::Mask<DoubleTag> common;
  DoubleVec f0;
  DoubleVec f1;
  DoubleVec g0;
  DoubleVec g1;
};

// How far apart the heights are at both ends, and the sum of both magnitudes.
struct Apart {
  HWY_INLINE explicit Apart(const Met& met)
      : d0(hn::Sub(met.f0, met.g0)), d1(hn::Sub(met.f1, met.g1)), s(hn::Add(hn::Abs(d0), hn::Abs(d1))) {}

  DoubleVec d0;
  DoubleVec d1;
  DoubleVec s;
};

// Calls body(j) for every eight pieces of b, from j on, of which one may meet the piece of a, in ascending order.
template <class Body>
HWY_INLINE void for_each_eight(const PieceOfA& piece, const OverlapPieces& b, const Body& body) {
  const DoubleTag dd;
  const std::int64_t eights = (b.count + 7) / 8;
  if (eights <= kFewEights) {
    for (std::int64_t j = 0; j < b.count; j += 8) body(j);
    return;
  }
  for (std::int64_t k = 0; k < eights; k += 8) {
    std::uint32_t near = 0;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t at = k + v * kDoubleLanes;
      near |= bits_of(hn::And(hn::Lt(piece.left, hn::LoadU(dd, b.last + at)),
                              hn::Lt(hn::LoadU(dd, b.first + at), piece.right)))
              << (v * kDoubleLanes);
    }
    for (; near != 0; near &= near - 1) body(8 * (k + std::countr_zero(near)));
  }
}

// Calls body(v, at, met) for each vector of the eight pieces of b from j on, its pieces those from `at` on, of which
// one meets the piece of a.
template <class Body>
HWY_INLINE void for_each_met(const PieceOfA& piece, const OverlapPieces& b, std::int64_t j, const Body& body) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t at = j + v * kDoubleLanes;
    const Met met(piece, b, at);
    if (!hn::AllFalse(DoubleTag(), met.common)) body(v, at, met);
  }
}

// Of one piece of a with a vector of pieces of b. With d the difference of heights at both ends of what both span, w
// wide, the integral of min(f, g) is that of (f + g) / 2 - |d| / 2; |d| is a trapezoid, or two triangles where d
// changes its sign.
inline OverlapSums overlap_areas(const OverlapPieces& a, const OverlapPieces& b) {
  const DoubleTag dd;
  const DoubleVec zero = hn::Zero(dd);
  DoubleVec area[kVectors];
  DoubleVec span[kVectors];
  for (int v = 0; v < kVectors; ++v) area[v] = span[v] = zero;
  for (std::int64_t i = 0; i < a.count; ++i) {
    const PieceOfA piece(a, i);
    const DoubleVec a_sign = hn::Set(dd, a.sign[i] / 4);  // exact
    for_each_eight(piece, b, [&](std::int64_t j) {
      for_each_met(
          piece, b, j, [&](int v, std::int64_t at, const Met& met) __attribute__((always_inline)) {
            const auto [d0, d1, s] = Apart(met);
            const auto crossed = hn::Lt(hn::Mul(d0, d1), zero);
            DoubleVec apart = s;  // twice the mean of |d|
            if (!hn::AllFalse(dd, hn::And(crossed, met.common))) {
              const DoubleVec squares = hn::Add(hn::Mul(d0, d0), hn::Mul(d1, d1));
              apart = hn::IfThenElse(crossed, hn::Div(squares, hn::IfThenElse(crossed, s, hn::Set(dd, 1.0))), s);
            }
            const DoubleVec sum = hn::Sub(hn::Add(hn::Add(met.f0, met.f1), hn::Add(met.g0, met.g1)), apart);
            const DoubleVec sign = hn::Mul(a_sign, hn::LoadU(dd, b.sign + at));
            const DoubleVec term = hn::Mul(hn::Mul(sum, met.width), sign);
            area[v] = hn::Add(area[v], hn::IfThenElseZero(met.common, term));
            span[v] = hn::Add(span[v], hn::IfThenElseZero(met.common, met.width));
          });
    });
  }
  double areas[8];
  double spans[8];
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(area[v], dd, areas + v * kDoubleLanes);
    hn::StoreU(span[v], dd, spans + v * kDoubleLanes);
  }
  return {combine<KeyOp::squares>(areas), combine<KeyOp::squares>(spans)};
}

// With d0 and d1 as above, the share of the width over which f is below g is (|d0| if d0 < 0, + |d1| if d1 < 0) / (|d0|
// + |d1|), and a half where they are the same.
inline double overlap_lengths(const OverlapPieces& a, const OverlapPieces& b) {
  const DoubleTag dd;
  const DoubleVec zero = hn::Zero(dd);
  const DoubleVec one = hn::Set(dd, 1.0);
  DoubleVec length[kVectors];
  for (int v = 0; v < kVectors; ++v) length[v] = zero;
  for (std::int64_t i = 0; i < a.count; ++i) {
    const PieceOfA piece(a, i);
    const DoubleVec a_sign = hn::Set(dd, a.sign[i]);
    const DoubleVec a_weight = hn::Set(dd, a.weight[i]);
    for_each_eight(piece, b, [&](std::int64_t j) {
      for_each_met(
          piece, b, j, [&](int v, std::int64_t at, const Met& met) __attribute__((always_inline)) {
            const auto [d0, d1, s] = Apart(met);
            const DoubleVec negative = hn::Add(hn::Max(hn::Neg(d0), zero), hn::Max(hn::Neg(d1), zero));
            const auto apart = hn::Gt(s, zero);
            const DoubleVec below =
                hn::IfThenElse(apart, hn::Div(negative, hn::IfThenElse(apart, s, one)), hn::Set(dd, 0.5));
            const DoubleVec of_a = hn::Mul(hn::Mul(a_weight, hn::LoadU(dd, b.sign + at)), below);
            const DoubleVec of_b = hn::Mul(hn::Mul(hn::LoadU(dd, b.weight + at), a_sign), hn::Sub(one, below));
            const DoubleVec term = hn::Mul(hn::Add(of_a, of_b), met.width);
            length[v] = hn::Add(length[v], hn::IfThenElseZero(met.common, term));
          });
    });
  }
  double lengths[8];
  for (int v = 0; v < kVectors; ++v) hn::StoreU(length[v], dd, lengths + v * kDoubleLanes);
  return combine<KeyOp::squares>(lengths);
}

constexpr OverlapKernels make_overlap_kernels() {
  return {overlap_areas, overlap_lengths};
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
