// The int8 screen by VPDPBUSD on 256 bits (Alder Lake, Zen 5 and later).
#if defined(__x86_64__)
#include "simd/int8_inl.hpp"

namespace vicinal::cpu {
namespace {

struct Lanes256 {
  using Vec = __m256i;
  static constexpr int kLanes = 8;
  static Vec start(const ScreenTile& tile, int row) {
    const __m256 a = _mm256_set1_ps(tile.a[0]);
    const __m256 b = _mm256_set1_ps(tile.b[0]);
    __m256 more =
        _mm256_fmadd_ps(b, _mm256_loadu_ps(tile.kappa + row), _mm256_mul_ps(a, _mm256_loadu_ps(tile.rho + row)));
    more = _mm256_min_ps(more, _mm256_set1_ps(0x1p30F));
    const Vec base = load(reinterpret_cast<const std::byte*>(tile.base + row));
    return _mm256_add_epi32(_mm256_add_epi32(base, _mm256_cvttps_epi32(more)), _mm256_set1_epi32(1));
  }
  static Vec load(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const Vec*>(from)); }
  static Vec broadcast(const std::byte* from) {
    return _mm256_set1_epi32(*reinterpret_cast<const std::int32_t*>(from));
  }
  // Written out: around the intrinsic GCC 12 copies and spills the sums in every step.
  static void dot(Vec& sum, Vec query, Vec row) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(query), "x"(row));
  }
  static std::uint64_t smaller(Vec low, Vec high, std::int32_t least) {
    const Vec limit = _mm256_set1_epi32(least);
    const int drop_low = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(limit, low)));
    const int drop_high = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(limit, high)));
    return static_cast<std::uint32_t>(drop_low | drop_high << kLanes);
  }
  static void store(std::int32_t* to, Vec sum) { _mm256_store_si256(reinterpret_cast<Vec*>(to), sum); }
};

}  // namespace

void screen_int8_avxvnni(const ScreenTile& tile) {
  screen_int8_tile<Lanes256, 6>(tile);
}

}  // namespace vicinal::cpu
#endif
