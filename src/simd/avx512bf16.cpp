// The bfloat16 screen by VDPBF16PS on 512 bits (Cooper Lake, Zen 4 and later).
#if defined(__x86_64__)
#include "simd/intrinsics.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {
namespace {

constexpr int kQueries = 12;
constexpr int kLanes = 16;
constexpr std::ptrdiff_t kVectorBytes = 64;

// Written out: around the intrinsic GCC 12 copies and spills the sums in every step.
void dot(__m512& sum, __m512i query, __m512i row) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(query), "v"(row));
}

}  // namespace

void screen_bfloat16_avx512(const ScreenTile& tile) {
  __m512 low[kQueries];
  __m512 high[kQueries];
  const __m512 start_low = _mm512_loadu_ps(tile.start);
  const __m512 start_high = _mm512_loadu_ps(tile.start + kLanes);
#pragma GCC unroll 12
  for (int q = 0; q < kQueries; ++q) {
    low[q] = start_low;
    high[q] = start_high;
  }
  const std::byte* rows = tile.rows;
  const auto* queries = reinterpret_cast<const std::int32_t*>(tile.queries);
  for (std::int64_t j = 0; j < tile.words; ++j) {
    const __m512i row_low = _mm512_loadu_si512(rows);
    const __m512i row_high = _mm512_loadu_si512(rows + kVectorBytes);
#pragma GCC unroll 12
    for (int q = 0; q < kQueries; ++q) {
      const __m512i query = _mm512_set1_epi32(queries[q]);
      dot(low[q], query, row_low);
      dot(high[q], query, row_high);
    }
    rows += 2 * kVectorBytes;
    queries += kQueries;
  }
  const __m512 rho_low = _mm512_loadu_ps(tile.rho);
  const __m512 rho_high = _mm512_loadu_ps(tile.rho + kLanes);
  const __m512 kappa_low = _mm512_loadu_ps(tile.kappa);
  const __m512 kappa_high = _mm512_loadu_ps(tile.kappa + kLanes);
  const std::uint64_t valid = (std::uint64_t{1} << tile.valid_rows) - std::uint64_t{1};
#pragma GCC unroll 12
  for (int q = 0; q < kQueries; ++q) {
    const __m512 a = _mm512_set1_ps(tile.a[q]);
    const __m512 b = _mm512_set1_ps(tile.b[q]);
    const __m512 threshold = _mm512_set1_ps(tile.threshold[q]);
    const __m512 score_low = _mm512_fmadd_ps(b, kappa_low, _mm512_fmadd_ps(a, rho_low, low[q]));
    const __m512 score_high = _mm512_fmadd_ps(b, kappa_high, _mm512_fmadd_ps(a, rho_high, high[q]));
    const std::uint64_t keep_low = _mm512_cmp_ps_mask(score_low, threshold, _CMP_NLT_UQ);
    const std::uint64_t keep_high = _mm512_cmp_ps_mask(score_high, threshold, _CMP_NLT_UQ);
    const std::uint64_t keep = (keep_low | keep_high << kLanes) & valid;
    if (__builtin_expect(keep == 0, 1)) continue;
    if (q >= tile.valid_queries) continue;
    alignas(64) float scores[2 * kLanes];
    _mm512_store_ps(scores, score_low);
    _mm512_store_ps(scores + kLanes, score_high);
    append_survivors(tile, q, keep, scores);
  }
}

}  // namespace vicinal::cpu
#endif
