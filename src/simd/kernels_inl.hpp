// The inner loops, written once in Highway and included by one translation unit an instruction set (contract clause 4).
// Nothing here may call an inline function of the standard library: the linker could keep the copy compiled for a newer
// instruction set and run it on an older machine.
//
// The screen tile keeps tile_queries x tile_rows float32 sums in registers over all columns, so each loaded row vector
// is used tile_queries times, and tests them against the thresholds before they leave the registers.
// The key kernels hold the eight accumulators of clause 1 in one or two vectors, four rows at a time to hide the
// latency.

#include <hwy/highway.h>

#include "simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Elsewhere (plain x86-64) MulAdd rounds twice: fine for the screen, whose bound allows for it, not for a key.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
inline constexpr bool kFusedMultiplyAdd = true;
#else
inline constexpr bool kFusedMultiplyAdd = false;
#endif

// AVX2 and AVX-512 multiply pairs of 16-bit numbers and add them in one step. With these int8 is about as fast as
// float32, so that its bytes, a quarter, decide while they are read for few queries (measured with AVX2: 1 query 3.6
// times as fast, 256 queries 1.1 times).
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
inline constexpr std::int64_t kKeptInt8Queries = 256;
#else
inline constexpr std::int64_t kKeptInt8Queries = 0;
#endif

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr int kFloatLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
inline constexpr int kTileQueries = kFloatLanes >= 16 ? 12 : 6;  // 24 (12) sums + 2 row vectors + 1 broadcast
inline constexpr int kTileRows = 2 * kFloatLanes;

// The last steps of a floating-point tile: the rows' error terms, the comparison, the survivors.
template <class Sums>
HWY_INLINE void keep_survivors(const ScreenTile& tile, const Sums& low, const Sums& high) {
  const FloatTag df;
  const FloatVec rho_low = hn::LoadU(df, tile.rho);
  const FloatVec rho_high = hn::LoadU(df, tile.rho + kFloatLanes);
  const FloatVec kappa_low = hn::LoadU(df, tile.kappa);
  const FloatVec kappa_high = hn::LoadU(df, tile.kappa + kFloatLanes);
  const std::uint64_t valid =
      tile.valid_rows >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << tile.valid_rows) - std::uint64_t{1};
#pragma GCC unroll 12
  for (int q = 0; q < kTileQueries; ++q) {
    const FloatVec a = hn::Set(df, tile.a[q]);
    const FloatVec b = hn::Set(df, tile.b[q]);
    const FloatVec threshold = hn::Set(df, tile.threshold[q]);
    const FloatVec score_low = hn::MulAdd(b, kappa_low, hn::MulAdd(a, rho_low, low[q]));
    const FloatVec score_high = hn::MulAdd(b, kappa_high, hn::MulAdd(a, rho_high, high[q]));
    const auto keep_low = hn::Not(hn::Lt(score_low, threshold));
    const auto keep_high = hn::Not(hn::Lt(score_high, threshold));
    if (HWY_LIKELY(hn::AllFalse(df, hn::Or(keep_low, keep_high)))) continue;
    if (q >= tile.valid_queries) continue;
    alignas(64) float scores[kTileRows];
    hn::StoreU(score_low, df, scores);
    hn::StoreU(score_high, df, scores + kFloatLanes);
    std::uint8_t mask_bytes[16] = {};
    hn::StoreMaskBits(df, keep_low, mask_bytes);
    hn::StoreMaskBits(df, keep_high, mask_bytes + 8);
    const std::uint64_t bits_low = mask_bytes[0] | static_cast<std::uint64_t>(mask_bytes[1]) << 8;
    const std::uint64_t bits_high = mask_bytes[8] | static_cast<std::uint64_t>(mask_bytes[9]) << 8;
    append_survivors(tile, q, (bits_low | bits_high << kFloatLanes) & valid, scores);
  }
}

void screen_float32(const ScreenTile& tile) {
  const FloatTag df;
  FloatVec low[kTileQueries];
  FloatVec high[kTileQueries];
  const FloatVec start_low = hn::LoadU(df, tile.start);
  const FloatVec start_high = hn::LoadU(df, tile.start + kFloatLanes);
#pragma GCC unroll 12
  for (int q = 0; q < kTileQueries; ++q) {
    low[q] = start_low;
    high[q] = start_high;
  }
  const float* HWY_RESTRICT rows = reinterpret_cast<const float*>(tile.rows);
  const float* HWY_RESTRICT queries = reinterpret_cast<const float*>(tile.queries);
  for (std::int64_t j = 0; j < tile.words; ++j) {
    const FloatVec row_low = hn::LoadU(df, rows);
    const FloatVec row_high = hn::LoadU(df, rows + kFloatLanes);
#pragma GCC unroll 12
    for (int q = 0; q < kTileQueries; ++q) {
      const FloatVec query = hn::Set(df, queries[q]);
      low[q] = hn::MulAdd(query, row_low, low[q]);
      high[q] = hn::MulAdd(query, row_high, high[q]);
    }
    rows += kTileRows;
    queries += kTileQueries;
  }
  keep_survivors(tile, low, high);
}

// bfloat16 where there is no instruction for it: both halves of a word are float32 numbers after a shift or a mask.
void screen_bfloat16(const ScreenTile& tile) {
  const FloatTag df;
  const hn::RebindToUnsigned<FloatTag> du;
  FloatVec low[kTileQueries];
  FloatVec high[kTileQueries];
  for (int q = 0; q < kTileQueries; ++q) {
    low[q] = hn::LoadU(df, tile.start);
    high[q] = hn::LoadU(df, tile.start + kFloatLanes);
  }
  const std::uint32_t* HWY_RESTRICT rows = reinterpret_cast<const std::uint32_t*>(tile.rows);
  const std::uint32_t* HWY_RESTRICT queries = reinterpret_cast<const std::uint32_t*>(tile.queries);
  const auto odd_mask = hn::Set(du, 0xFFFF0000U);
  for (std::int64_t j = 0; j < tile.words; ++j) {
    const auto word_low = hn::LoadU(du, rows);
    const auto word_high = hn::LoadU(du, rows + kFloatLanes);
    const FloatVec odd_low = hn::BitCast(df, hn::And(word_low, odd_mask));
    const FloatVec odd_high = hn::BitCast(df, hn::And(word_high, odd_mask));
    const FloatVec even_low = hn::BitCast(df, hn::ShiftLeft<16>(word_low));
    const FloatVec even_high = hn::BitCast(df, hn::ShiftLeft<16>(word_high));
#pragma GCC unroll 12
    for (int q = 0; q < kTileQueries; ++q) {
      const auto word = hn::Set(du, queries[q]);
      const FloatVec odd = hn::BitCast(df, hn::And(word, odd_mask));
      const FloatVec even = hn::BitCast(df, hn::ShiftLeft<16>(word));
      low[q] = hn::MulAdd(even, even_low, hn::MulAdd(odd, odd_low, low[q]));
      high[q] = hn::MulAdd(even, even_high, hn::MulAdd(odd, odd_high, high[q]));
    }
    rows += kTileRows;
    queries += kTileQueries;
  }
  keep_survivors(tile, low, high);
}

#if HWY_TARGET == HWY_SCALAR
void screen_int8(const ScreenTile& tile) {
  const auto* rows = reinterpret_cast<const signed char*>(tile.rows);
  const auto* queries = reinterpret_cast<const unsigned char*>(tile.queries);
  std::int32_t start[kTileRows];
  for (int r = 0; r < kTileRows; ++r) {
    float more = tile.a[0] * tile.rho[r] + tile.b[0] * tile.kappa[r];
    if (!(more < 0x1p30F)) more = 0x1p30F;
    start[r] = tile.base[r] + static_cast<std::int32_t>(more) + 1;
  }
  for (int q = 0; q < tile.valid_queries; ++q) {
    std::int32_t sums[kTileRows];
    for (int r = 0; r < kTileRows; ++r) sums[r] = start[r];
    for (std::int64_t j = 0; j < tile.words; ++j) {
      const unsigned char* x = queries + 4 * (j * kTileQueries + q);
      const signed char* y = rows + 4 * j * kTileRows;
      for (int r = 0; r < kTileRows; ++r) {
        const signed char* four = y + 4 * static_cast<std::int64_t>(r);
        const std::int32_t product = x[0] * four[0] + x[1] * four[1] + x[2] * four[2] + x[3] * four[3];
        sums[r] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[r]) + static_cast<std::uint32_t>(product));
      }
    }
    std::uint64_t bits = 0;
    for (int r = 0; r < tile.valid_rows; ++r) bits |= static_cast<std::uint64_t>(!(sums[r] < tile.least[q])) << r;
    append_survivors(tile, q, bits, sums);
  }
}
#else
using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using ShortTag = hn::Repartition<std::int16_t, IntTag>;
using ShortVec = hn::Vec<ShortTag>;
inline constexpr int kInt8Queries = 3;  // 6 sums + 4 row vectors + 2 of a query

// The int8 sums of rows before their products: base + [a rho + b kappa rounded up, at most 2^30].
HWY_INLINE IntVec int8_start(const ScreenTile& tile, int row) {
  const FloatTag df;
  const IntTag di;
  const FloatVec most = hn::Set(df, 0x1p30F);
  FloatVec more = hn::Mul(hn::Set(df, tile.a[0]), hn::LoadU(df, tile.rho + row));
  more = hn::MulAdd(hn::Set(df, tile.b[0]), hn::LoadU(df, tile.kappa + row), more);
  more = hn::IfThenElse(hn::Lt(more, most), more, most);  // NaN is the most, too
  return hn::Add(hn::Add(hn::LoadU(di, tile.base + row), hn::ConvertTo(di, more)), hn::Set(di, 1));
}

// int8 where there is no instruction for it, of `used` queries from `first` on. Bytes become 16-bit numbers, those at
// even and at odd places apart, since products of the bytes themselves, added in pairs, would saturate in 16 bits.
// Pairs of products of 16-bit numbers are added in 32 bits, which is exact.
template <int used>
HWY_INLINE void int8_tile(const ScreenTile& tile, int first) {
  const IntTag di;
  const ShortTag ds;
  const hn::RebindToUnsigned<ShortTag> dus;
  // On some instruction sets the products of a row fall into two sums, which the last step joins.
  IntVec low[used];
  IntVec high[used];
  IntVec low_more[used];
  IntVec high_more[used];
  for (int q = 0; q < used; ++q) {
    low[q] = high[q] = low_more[q] = high_more[q] = hn::Zero(di);
  }
  const auto* HWY_RESTRICT rows = reinterpret_cast<const std::int32_t*>(tile.rows);
  const auto* HWY_RESTRICT queries = reinterpret_cast<const std::int32_t*>(tile.queries) + first;
  const auto low_byte = hn::Set(ds, 0xFF);
  for (std::int64_t j = 0; j < tile.words; ++j) {
    const ShortVec row_low = hn::BitCast(ds, hn::LoadU(di, rows));
    const ShortVec row_high = hn::BitCast(ds, hn::LoadU(di, rows + kFloatLanes));
    const ShortVec even_low = hn::ShiftRight<8>(hn::ShiftLeft<8>(row_low));
    const ShortVec even_high = hn::ShiftRight<8>(hn::ShiftLeft<8>(row_high));
    const ShortVec odd_low = hn::ShiftRight<8>(row_low);
    const ShortVec odd_high = hn::ShiftRight<8>(row_high);
#pragma GCC unroll 3
    for (int q = 0; q < used; ++q) {
      const ShortVec query = hn::BitCast(ds, hn::Set(di, queries[q]));
      const ShortVec even = hn::And(query, low_byte);
      const ShortVec odd = hn::BitCast(ds, hn::ShiftRight<8>(hn::BitCast(dus, query)));
      low[q] = hn::ReorderWidenMulAccumulate(di, even, even_low, low[q], low_more[q]);
      low[q] = hn::ReorderWidenMulAccumulate(di, odd, odd_low, low[q], low_more[q]);
      high[q] = hn::ReorderWidenMulAccumulate(di, even, even_high, high[q], high_more[q]);
      high[q] = hn::ReorderWidenMulAccumulate(di, odd, odd_high, high[q], high_more[q]);
    }
    rows += kTileRows;
    queries += kTileQueries;
  }
  const IntVec start_low = int8_start(tile, 0);
  const IntVec start_high = int8_start(tile, kFloatLanes);
  const std::uint64_t valid = (std::uint64_t{1} << tile.valid_rows) - std::uint64_t{1};
#pragma GCC unroll 3
  for (int q = 0; q < used; ++q) {
    const IntVec least = hn::Set(di, tile.least[first + q]);
    const IntVec sum_low = hn::Add(start_low, hn::RearrangeToOddPlusEven(low[q], low_more[q]));
    const IntVec sum_high = hn::Add(start_high, hn::RearrangeToOddPlusEven(high[q], high_more[q]));
    const auto keep_low = hn::Not(hn::Lt(sum_low, least));
    const auto keep_high = hn::Not(hn::Lt(sum_high, least));
    if (HWY_LIKELY(hn::AllFalse(di, hn::Or(keep_low, keep_high)))) continue;
    if (first + q >= tile.valid_queries) continue;
    alignas(64) std::int32_t sums[kTileRows];
    hn::StoreU(sum_low, di, sums);
    hn::StoreU(sum_high, di, sums + kFloatLanes);
    std::uint8_t mask_bytes[16] = {};
    hn::StoreMaskBits(di, keep_low, mask_bytes);
    hn::StoreMaskBits(di, keep_high, mask_bytes + 8);
    const std::uint64_t bits_low = mask_bytes[0] | static_cast<std::uint64_t>(mask_bytes[1]) << 8;
    const std::uint64_t bits_high = mask_bytes[8] | static_cast<std::uint64_t>(mask_bytes[9]) << 8;
    append_survivors(tile, first + q, (bits_low | bits_high << kFloatLanes) & valid, sums);
  }
}

void screen_int8(const ScreenTile& tile) {
  static_assert(kTileQueries % kInt8Queries == 0);
  if (tile.valid_queries == 1) return int8_tile<1>(tile, 0);
  for (int q = 0; q < tile.valid_queries; q += kInt8Queries) int8_tile<kInt8Queries>(tile, q);
}
#endif

// Numbers of 16 bits, so that no sum of two products saturates.
void byte_products(const std::byte* query, const std::byte* const* rows, std::int64_t count, std::int64_t bytes,
                   std::int32_t* sums) {
  const auto* HWY_RESTRICT x = reinterpret_cast<const std::uint8_t*>(query);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto* HWY_RESTRICT y = reinterpret_cast<const std::int8_t*>(rows[i]);
#if HWY_TARGET == HWY_SCALAR
    std::uint32_t sum = 0;
    for (std::int64_t j = 0; j < bytes; ++j) sum += static_cast<std::uint32_t>(std::int32_t{x[j]} * std::int32_t{y[j]});
    sums[i] = static_cast<std::int32_t>(sum);
#else
    const IntTag di;
    const ShortTag ds;
    const hn::Rebind<std::uint8_t, ShortTag> of_query;
    const hn::Rebind<std::int8_t, ShortTag> of_row;
    constexpr auto kShorts = static_cast<std::int64_t>(hn::MaxLanes(ShortTag()));
    static_assert(64 % kShorts == 0);
    IntVec sum = hn::Zero(di);
    IntVec more = hn::Zero(di);
    for (std::int64_t j = 0; j < bytes; j += kShorts) {
      const ShortVec a = hn::PromoteTo(ds, hn::LoadU(of_query, x + j));
      const ShortVec b = hn::PromoteTo(ds, hn::LoadU(of_row, y + j));
      sum = hn::ReorderWidenMulAccumulate(di, a, b, sum, more);
    }
    sums[i] = hn::GetLane(hn::SumOfLanes(di, hn::Add(sum, more)));
#endif
  }
}

// One column of a key. `vector` and `scalar` are the same operation, so every instruction set gives the same bits.
template <KeyOp op, class V>
HWY_INLINE V accumulate(V x, V y, V sum) {
  if constexpr (op == KeyOp::squares) {
    const V t = hn::Sub(x, y);
    return hn::MulAdd(t, t, sum);
  } else if constexpr (op == KeyOp::products) {
    return hn::MulAdd(x, y, sum);
  } else if constexpr (op == KeyOp::absolutes) {
    return hn::Add(sum, hn::Abs(hn::Sub(x, y)));
  } else if constexpr (op == KeyOp::maximum) {
    return hn::Max(sum, hn::Abs(hn::Sub(x, y)));
  } else {
    const hn::DFromV<V> d;
    return hn::Add(sum, hn::IfThenElseZero(hn::Ne(x, y), hn::Set(d, 1.0)));
  }
}

template <KeyOp op>
HWY_INLINE double accumulate_scalar(double x, double y, double sum) {
  const double t = x - y;
  const double magnitude = __builtin_fabs(t);
  if constexpr (op == KeyOp::squares) {
    return __builtin_fma(t, t, sum);
  } else if constexpr (op == KeyOp::products) {
    return __builtin_fma(x, y, sum);
  } else if constexpr (op == KeyOp::absolutes) {
    return sum + magnitude;
  } else if constexpr (op == KeyOp::maximum) {
    return magnitude > sum ? magnitude : sum;
  } else {
    return x != y ? sum + 1.0 : sum;
  }
}

template <KeyOp op>
HWY_INLINE double combine(const double* a) {
  if constexpr (op == KeyOp::maximum) {
    double largest = a[0];
    for (int i = 1; i < 8; ++i) largest = a[i] > largest ? a[i] : largest;
    return largest;
  } else {
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
  }
}

// Two of the eight accumulators of clause 1, or several pairs at once.
template <KeyOp op, class V>
HWY_INLINE V join(V x, V y) {
  if constexpr (op == KeyOp::maximum) {
    return hn::Max(x, y);
  } else {
    return hn::Add(x, y);
  }
}

#if HWY_TARGET != HWY_SCALAR
template <KeyOp op, class V>
HWY_INLINE auto join_halves(V v) {
  const hn::Half<hn::DFromV<V>> half;
  return join<op>(hn::LowerHalf(half, v), hn::UpperHalf(half, v));
}
#endif

// As `combine`, of a vector of 8, 4 (the sums of 0 and 4, 1 and 5, ..) or 2.
template <KeyOp op, class V>
HWY_INLINE double combine_lanes(V v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) > 1) return combine_lanes<op>(join_halves<op>(v));
#endif
  return hn::GetLane(v);
}

// As `combine_lanes` of four rows, whose last steps share their vectors.
template <KeyOp op, class V>
HWY_INLINE void combine_four(V a, V b, V c, V d, double* sums) {
#if HWY_TARGET != HWY_SCALAR
  using D = hn::DFromV<V>;
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes == 8) {
    return combine_four<op>(join_halves<op>(a), join_halves<op>(b), join_halves<op>(c), join_halves<op>(d), sums);
  } else if constexpr (kLanes == 4) {
    const D four;
    const V ab = join<op>(hn::ConcatLowerLower(four, b, a), hn::ConcatUpperUpper(four, b, a));
    const V cd = join<op>(hn::ConcatLowerLower(four, d, c), hn::ConcatUpperUpper(four, d, c));
    hn::StoreU(join<op>(hn::ConcatEven(four, cd, ab), hn::ConcatOdd(four, cd, ab)), four, sums);
    return;
  }
#endif
  const V rows[] = {a, b, c, d};
  for (int r = 0; r < 4; ++r) sums[r] = combine_lanes<op>(rows[r]);
}

template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const double* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
}
template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const std::uint8_t* from) {
  const hn::Rebind<std::int32_t, D> di;
  return hn::PromoteTo(d, hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::uint8_t, D>(), from)));
}

// The first `count` lanes, and zeros, which adds nothing to a sum where the query is zero, too. Reads no more than
// that: a masked load may do so on some instruction sets.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_first(D d, const T* from, std::size_t count) {
  if constexpr (sizeof(T) == 1 || HWY_MEM_OPS_MIGHT_FAULT) {
    T values[8] = {};
    for (std::size_t i = 0; i < count; ++i) values[i] = from[i];
    return load_widened(d, values);
  } else if constexpr (sizeof(T) == sizeof(double)) {
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
  } else {
    const hn::Rebind<T, D> dt;
    return hn::PromoteTo(d, hn::MaskedLoad(hn::FirstN(dt, count), dt, from));
  }
}

using DoubleTag = hn::CappedTag<double, 8>;
using DoubleVec = hn::Vec<DoubleTag>;
inline constexpr std::int64_t kDoubleLanes = hn::MaxLanes(DoubleTag());
inline constexpr int kVectors =
    8 / static_cast<int>(kDoubleLanes);  // vectors that hold the eight accumulators of one row

template <KeyOp op, class T, int rows_at_once>
HWY_INLINE void key_sums(const double* HWY_RESTRICT x, const void* const* rows, std::int64_t d, double* sums) {
  const DoubleTag dd;
  DoubleVec acc[rows_at_once][kVectors];
  const T* from[rows_at_once];
  for (int r = 0; r < rows_at_once; ++r) {
    from[r] = static_cast<const T*>(rows[r]);
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(dd);
  }
  std::int64_t j = 0;
  for (; j + 8 <= d; j += 8) {
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t at = j + v * kDoubleLanes;
      const DoubleVec xv = hn::LoadU(dd, x + at);
      for (int r = 0; r < rows_at_once; ++r) {
        acc[r][v] = accumulate<op>(xv, load_widened(dd, from[r] + at), acc[r][v]);
      }
    }
  }
  for (int v = 0; v < kVectors && j < d; ++v, j += kDoubleLanes) {
    const auto left = static_cast<std::size_t>(d - j < kDoubleLanes ? d - j : kDoubleLanes);
    const DoubleVec xv = hn::LoadU(dd, x + j);  // zero beyond d
    for (int r = 0; r < rows_at_once; ++r) {
      acc[r][v] = accumulate<op>(xv, load_first(dd, from[r] + j, left), acc[r][v]);
    }
  }
  for (int r = 0; r < rows_at_once; ++r) {
    for (int vectors = kVectors / 2; vectors > 0; vectors /= 2) {
      for (int v = 0; v < vectors; ++v) acc[r][v] = join<op>(acc[r][v], acc[r][v + vectors]);
    }
    if constexpr (rows_at_once < 4) sums[r] = combine_lanes<op>(acc[r][0]);
  }
  if constexpr (rows_at_once == 4) combine_four<op>(acc[0][0], acc[1][0], acc[2][0], acc[3][0], sums);
}

template <KeyOp op, class T>
void keys(const double* x, const void* const* rows, std::int64_t count, std::int64_t d, double* sums) {
  std::int64_t i = 0;
  if constexpr (kFusedMultiplyAdd) {
    for (; i + 4 <= count; i += 4) key_sums<op, T, 4>(x, rows + i, d, sums + i);
    for (; i < count; ++i) key_sums<op, T, 1>(x, rows + i, d, sums + i);
  } else {
    for (; i < count; ++i) {
      const T* row = static_cast<const T*>(rows[i]);
      double a[8] = {};
      for (std::int64_t j = 0; j < d; ++j) {
        a[j & 7] = accumulate_scalar<op>(x[j], static_cast<double>(row[j]), a[j & 7]);
      }
      sums[i] = combine<op>(a);
    }
  }
}

template <KeyOp op>
constexpr void fill_keys(SimdKernels& table) {
  constexpr int row = static_cast<int>(op);
  table.keys[row][static_cast<int>(Element::uint8)] = keys<op, std::uint8_t>;
  table.keys[row][static_cast<int>(Element::float32)] = keys<op, float>;
  table.keys[row][static_cast<int>(Element::float64)] = keys<op, double>;
}

constexpr SimdKernels make_kernels(Isa isa) {
  SimdKernels table{};
  table.isa = isa;
  table.tile_queries = kTileQueries;
  table.tile_rows = kTileRows;
  table.screens[screen_index(ScreenType::float32)] = screen_float32;
  table.screens[screen_index(ScreenType::bfloat16)] = screen_bfloat16;
  table.screens[screen_index(ScreenType::int8)] = screen_int8;
  table.quick[screen_index(ScreenType::float32)] = true;
  table.kept_int8_queries = kKeptInt8Queries;
  fill_keys<KeyOp::squares>(table);
  fill_keys<KeyOp::products>(table);
  fill_keys<KeyOp::absolutes>(table);
  fill_keys<KeyOp::maximum>(table);
  fill_keys<KeyOp::differing>(table);
  table.byte_products = byte_products;
  return table;
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
