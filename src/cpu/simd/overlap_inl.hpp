// The loop of overlap_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too. Nothing is
// fused, because plain x86-64 cannot.

#include "cpu/simd/overlap_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

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
    const DoubleVec a_left = hn::Set(dd, a.left[i]);
    const DoubleVec a_right = hn::Set(dd, a.right[i]);
    const DoubleVec a_height = hn::Set(dd, a.height[i]);
    const DoubleVec a_slope = hn::Set(dd, a.slope[i]);
    const DoubleVec a_sign = hn::Set(dd, a.sign[i] / 4);  // exact
    for (std::int64_t j = 0; j < b.count; j += 8) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t at = j + v * kDoubleLanes;
        const DoubleVec b_left = hn::LoadU(dd, b.left + at);
        const DoubleVec left = hn::Max(a_left, b_left);
        const DoubleVec right = hn::Min(a_right, hn::LoadU(dd, b.right + at));
        const DoubleVec width = hn::Sub(right, left);
        const auto common = hn::Gt(width, zero);
        if (hn::AllFalse(dd, common)) continue;
        const DoubleVec b_height = hn::LoadU(dd, b.height + at);
        const DoubleVec b_slope = hn::LoadU(dd, b.slope + at);
        const DoubleVec f0 = hn::Add(a_height, hn::Mul(a_slope, hn::Sub(left, a_left)));
        const DoubleVec f1 = hn::Add(a_height, hn::Mul(a_slope, hn::Sub(right, a_left)));
        const DoubleVec g0 = hn::Add(b_height, hn::Mul(b_slope, hn::Sub(left, b_left)));
        const DoubleVec g1 = hn::Add(b_height, hn::Mul(b_slope, hn::Sub(right, b_left)));
        const DoubleVec d0 = hn::Sub(f0, g0);
        const DoubleVec d1 = hn::Sub(f1, g1);
        const DoubleVec s = hn::Add(hn::Abs(d0), hn::Abs(d1));
        const auto crossed = hn::Lt(hn::Mul(d0, d1), zero);
        DoubleVec apart = s;  // twice the mean of |d|
        if (!hn::AllFalse(dd, hn::And(crossed, common))) {
          const DoubleVec squares = hn::Add(hn::Mul(d0, d0), hn::Mul(d1, d1));
          apart = hn::IfThenElse(crossed, hn::Div(squares, hn::IfThenElse(crossed, s, hn::Set(dd, 1.0))), s);
        }
        const DoubleVec sum = hn::Sub(hn::Add(hn::Add(f0, f1), hn::Add(g0, g1)), apart);
        const DoubleVec sign = hn::Mul(a_sign, hn::LoadU(dd, b.sign + at));
        const DoubleVec term = hn::Mul(hn::Mul(sum, width), sign);
        area[v] = hn::Add(area[v], hn::IfThenElseZero(common, term));
        span[v] = hn::Add(span[v], hn::IfThenElseZero(common, width));
      }
    }
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
    const DoubleVec a_left = hn::Set(dd, a.left[i]);
    const DoubleVec a_right = hn::Set(dd, a.right[i]);
    const DoubleVec a_height = hn::Set(dd, a.height[i]);
    const DoubleVec a_slope = hn::Set(dd, a.slope[i]);
    const DoubleVec a_sign = hn::Set(dd, a.sign[i]);
    const DoubleVec a_weight = hn::Set(dd, a.weight[i]);
    for (std::int64_t j = 0; j < b.count; j += 8) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t at = j + v * kDoubleLanes;
        const DoubleVec b_left = hn::LoadU(dd, b.left + at);
        const DoubleVec left = hn::Max(a_left, b_left);
        const DoubleVec right = hn::Min(a_right, hn::LoadU(dd, b.right + at));
        const DoubleVec width = hn::Sub(right, left);
        const auto common = hn::Gt(width, zero);
        if (hn::AllFalse(dd, common)) continue;
        const DoubleVec b_height = hn::LoadU(dd, b.height + at);
        const DoubleVec b_slope = hn::LoadU(dd, b.slope + at);
        const DoubleVec d0 = hn::Sub(hn::Add(a_height, hn::Mul(a_slope, hn::Sub(left, a_left))),
                                     hn::Add(b_height, hn::Mul(b_slope, hn::Sub(left, b_left))));
        const DoubleVec d1 = hn::Sub(hn::Add(a_height, hn::Mul(a_slope, hn::Sub(right, a_left))),
                                     hn::Add(b_height, hn::Mul(b_slope, hn::Sub(right, b_left))));
        const DoubleVec s = hn::Add(hn::Abs(d0), hn::Abs(d1));
        const DoubleVec negative = hn::Add(hn::Max(hn::Neg(d0), zero), hn::Max(hn::Neg(d1), zero));
        const auto apart = hn::Gt(s, zero);
        const DoubleVec below =
            hn::IfThenElse(apart, hn::Div(negative, hn::IfThenElse(apart, s, one)), hn::Set(dd, 0.5));
        const DoubleVec of_a = hn::Mul(hn::Mul(a_weight, hn::LoadU(dd, b.sign + at)), below);
        const DoubleVec of_b = hn::Mul(hn::Mul(hn::LoadU(dd, b.weight + at), a_sign), hn::Sub(one, below));
        const DoubleVec term = hn::Mul(hn::Add(of_a, of_b), width);
        length[v] = hn::Add(length[v], hn::IfThenElseZero(common, term));
      }
    }
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
