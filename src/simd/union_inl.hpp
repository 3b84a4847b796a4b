// The loop of union_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too. Eight words
// stay in registers over all rows.

#include "simd/union_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

inline std::int64_t unite_rows(const std::uint64_t* rows, std::int64_t stride, const std::int64_t* names,
                               std::int64_t count, std::uint64_t* to) {
  const hn::CappedTag<std::uint64_t, kUnionWords> words;
  constexpr std::int64_t kWide = static_cast<std::int64_t>(hn::MaxLanes(words));
  constexpr std::int64_t kParts = kUnionWords / kWide;
  hn::Vec<decltype(words)> sums[kParts];
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kParts; ++i) sums[i] = hn::Zero(words);
  for (std::int64_t n = 0; n < count; ++n) {
    const std::uint64_t* const row = rows + names[n] * stride;
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kParts; ++i) sums[i] = hn::Or(sums[i], hn::LoadU(words, row + i * kWide));
  }
  auto ones = hn::Zero(words);
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kParts; ++i) {
    hn::StoreU(sums[i], words, to + i * kWide);
    ones = hn::Add(ones, hn::PopulationCount(sums[i]));
  }
  return static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(words, ones)));
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
