// The loop of donor_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too. The sums of
// four vectors of rows stay in registers over all columns.

#include "simd/donor_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

inline std::int64_t near_donors(const DonorQuery& query, const double* block, std::int32_t* near) {
  const hn::ScalableTag<double> lanes;
  constexpr auto kWide = static_cast<std::int64_t>(hn::MaxLanes(lanes));
  constexpr std::int64_t kParts = 4;
  static_assert(kDonorRows % (kParts * kWide) == 0);
  const auto limit = hn::Set(lanes, query.limit);
  std::int64_t found = 0;
  for (std::int64_t first = 0; first < kDonorRows; first += kParts * kWide) {
    hn::Vec<decltype(lanes)> sums[kParts];
#pragma GCC unroll 4
    for (std::int64_t p = 0; p < kParts; ++p) sums[p] = hn::Zero(lanes);
    for (std::int64_t c = 0; c < query.count; ++c) {
      const auto x = hn::Set(lanes, query.values[c]);
      const double* const column = block + query.columns[c] * kDonorRows + first;
#pragma GCC unroll 4
      for (std::int64_t p = 0; p < kParts; ++p) {
        const auto difference = hn::Sub(x, hn::LoadU(lanes, column + p * kWide));
        const auto counted = hn::IfThenElseZero(hn::Eq(difference, difference), difference);  // not where it is NaN
        sums[p] = hn::MulAdd(counted, counted, sums[p]);
      }
    }
#pragma GCC unroll 4
    for (std::int64_t p = 0; p < kParts; ++p) {
      const auto keep = hn::Le(sums[p], limit);
      if (HWY_LIKELY(hn::AllFalse(lanes, keep))) continue;
      std::uint8_t bytes[8] = {};
      hn::StoreMaskBits(lanes, keep, bytes);
      for (std::uint32_t bits = bytes[0]; bits != 0; bits &= bits - 1) {
        near[found++] = static_cast<std::int32_t>(first + p * kWide) + __builtin_ctz(bits);
      }
    }
  }
  return found;
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
