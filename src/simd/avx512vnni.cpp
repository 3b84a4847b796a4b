// The int8 screen by VPDPBUSD on 512 bits (Cascade Lake, Zen 4 and later).
#if defined(__x86_64__)
#include "simd/int8_inl.hpp"

namespace vicinal::cpu {
namespace {

struct Lanes512 {
  using Vec = __m512i;
  static constexpr int kLanes = 16;
  static Vec start(const ScreenTile& tile, int row) {
    const __m512 a = _mm512_set1_ps(tile.a[0]);
    __m512 more = _mm512_mul_ps(a, _mm512_loadu_ps(tile.rho + row));
    if (tile.b[0] != 0) {  // else kappa is not read: few queries wait for memory
      more = _mm512_fmadd_ps(_mm512_set1_ps(tile.b[0]), _mm512_loadu_ps(tile.kappa + row), more);
    }
    more = _mm512_min_ps(more, _mm512_set1_ps(0x1p30F));
    const Vec base = _mm512_loadu_si512(tile.base + row);
    return _mm512_add_epi32(_mm512_add_epi32(base, _mm512_cvttps_epi32(more)), _mm512_set1_epi32(1));
  }
  static Vec load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static Vec broadcast(const std::byte* from) {
    return _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(from));
  }
  // Written out: around the intrinsic GCC 12 copies and spills the sums in every step.
  static void dot(Vec& sum, Vec query, Vec row) { asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(query), "v"(row)); }
  static std::uint64_t smaller(Vec low, Vec high, std::int32_t least) {
    const Vec limit = _mm512_set1_epi32(least);
    return _mm512_kunpackw(_mm512_cmplt_epi32_mask(high, limit), _mm512_cmplt_epi32_mask(low, limit));
  }
  static void store(std::int32_t* to, Vec sum) { _mm512_store_si512(to, sum); }
};

}  // namespace

void screen_int8_avx512vnni(const ScreenTile& tile) {
  if (tile.valid_queries <= 4) return screen_int8_tile<Lanes512, 12, 4>(tile);
  if (tile.valid_queries <= 8) return screen_int8_tile<Lanes512, 12, 8>(tile);
  screen_int8_tile<Lanes512, 12>(tile);
}

}  // namespace vicinal::cpu
#endif
