// The loops of lloyd_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too.
//
// A lane is a point, so that the best center of a point is found without shuffles: two vectors of points meet a panel
// of centers, whose sums stay in registers over all columns. Each loaded vector is used once for each center of the
// panel, each center's element is one broadcast for both vectors.

#include "simd/lloyd_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

inline constexpr std::int64_t kTilePoints = std::int64_t{2} * kFloatLanes;
inline constexpr int kCentreTile = kFloatLanes >= 16 ? 12 : 6;
inline constexpr int kCentreStep = kCentreTile / 3;
using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;

#if HWY_TARGET != HWY_SCALAR
// Four columns of rows q, q + 4, q + 8, ... as blocks of 128 bits.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D df, const float* const* rows, std::int64_t j) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(df, rows[0] + j);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kRows = hn::MaxLanes(D()) / 2;
    return hn::Combine(df, load_blocks(half, rows + kRows, j), load_blocks(half, rows, j));
  }
}
#endif

// Rows to lanes: blocks of four rows and four columns, which two rounds of interleaving transpose, as many at once as a
// vector holds; one by one what is left. The scale is a power of two, so that the product is exact and only the
// difference is rounded.
void stage_rows(const float* const* rows, std::int64_t d, float scale, const float* shift, float* points) {
  std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  const FloatTag df;
  const hn::RepartitionToWide<FloatTag> dw;
  const FloatVec by = hn::Set(df, scale);
  for (; j < d && d >= 4; j += 4) {
    j = j + 4 <= d ? j : d - 4;  // the last block again covers what the one before it did, with the same numbers
    const FloatVec from = hn::LoadDup128(df, shift + j);
    for (std::int64_t i = 0; i < kTilePoints; i += kFloatLanes) {
      const FloatVec a = hn::MulSub(load_blocks(df, rows + i, j), by, from);
      const FloatVec b = hn::MulSub(load_blocks(df, rows + i + 1, j), by, from);
      const FloatVec c = hn::MulSub(load_blocks(df, rows + i + 2, j), by, from);
      const FloatVec e = hn::MulSub(load_blocks(df, rows + i + 3, j), by, from);
      const auto ab_low = hn::BitCast(dw, hn::InterleaveLower(df, a, b));
      const auto ab_high = hn::BitCast(dw, hn::InterleaveUpper(df, a, b));
      const auto ce_low = hn::BitCast(dw, hn::InterleaveLower(df, c, e));
      const auto ce_high = hn::BitCast(dw, hn::InterleaveUpper(df, c, e));
      float* to = points + j * kTilePoints + i;
      hn::StoreU(hn::BitCast(df, hn::InterleaveLower(dw, ab_low, ce_low)), df, to);
      hn::StoreU(hn::BitCast(df, hn::InterleaveUpper(dw, ab_low, ce_low)), df, to + kTilePoints);
      hn::StoreU(hn::BitCast(df, hn::InterleaveLower(dw, ab_high, ce_high)), df, to + 2 * kTilePoints);
      hn::StoreU(hn::BitCast(df, hn::InterleaveUpper(dw, ab_high, ce_high)), df, to + 3 * kTilePoints);
    }
  }
#endif
  for (; j < d; ++j) {
    for (std::int64_t i = 0; i < kTilePoints; ++i) points[j * kTilePoints + i] = rows[i][j] * scale - shift[j];
  }
}

// The best and second best upper bound of a vector of points so far, and the best one's index.
struct Best {
  FloatVec best;
  FloatVec second;
  IntVec index;

  HWY_INLINE void take(FloatVec score, IntVec k) {
    const IntTag di;
    const auto larger = hn::Gt(score, best);
    second = hn::Max(second, hn::Min(best, score));
    best = hn::IfThenElse(larger, score, best);
    index = hn::IfThenElse(hn::RebindMask(di, larger), k, index);
  }
};

// Spreads the fetching of lines evenly over the steps of a tile: all at once they would fill the buffers that every
// miss needs, and the processor would wait.
class Fetcher {
 public:
  HWY_INLINE Fetcher(const LloydTile& tile, std::int64_t steps)
      : next_(tile.lines), a_step_(tile.line_count), steps_(steps) {}
  HWY_INLINE void step() {
    for (due_ += a_step_; due_ >= steps_; due_ -= steps_) __builtin_prefetch(*next_++, 0, 2);
  }

 private:
  const void* const* next_;
  std::int64_t a_step_;  // in parts of a line, of which it has `steps_`
  std::int64_t steps_;
  std::int64_t due_ = 0;
};

// One panel of `height` centers, the first of which is center `first`.
template <int height>
HWY_INLINE void meet_panel(const LloydTile& tile, const float* HWY_RESTRICT panel, std::int64_t first, Fetcher& fetcher,
                           Best& low_best, Best& high_best) {
  const FloatTag df;
  const IntTag di;
  FloatVec low[height];
  FloatVec high[height];
#pragma GCC unroll 12
  for (int c = 0; c < height; ++c) low[c] = high[c] = hn::Set(df, panel[c]);
  const float* HWY_RESTRICT points = tile.points;
  for (std::int64_t j = 0; j <= tile.d; ++j) {
    fetcher.step();
    panel += height;
    const FloatVec point_low = hn::LoadU(df, points);
    const FloatVec point_high = hn::LoadU(df, points + kFloatLanes);
#pragma GCC unroll 12
    for (int c = 0; c < height; ++c) {
      const FloatVec centre = hn::Set(df, panel[c]);
      low[c] = hn::MulAdd(centre, point_low, low[c]);
      high[c] = hn::MulAdd(centre, point_high, high[c]);
    }
    points += kTilePoints;
  }
  if (tile.scores != nullptr) {
    float* to = tile.scores + first * kTilePoints;
#pragma GCC unroll 12
    for (int c = 0; c < height; ++c) {
      hn::StoreU(low[c], df, to + c * kTilePoints);
      hn::StoreU(high[c], df, to + c * kTilePoints + kFloatLanes);
    }
  }
#pragma GCC unroll 12
  for (int c = 0; c < height; ++c) {
    const IntVec k = hn::Set(di, static_cast<std::int32_t>(first) + c);
    low_best.take(low[c], k);
    high_best.take(high[c], k);
  }
}

// |x~|^2, and row d of the tile: g, what the lengths of the centers are multiplied with.
HWY_INLINE FloatVec bound_points(const LloydTile& tile, int at) {
  const FloatTag df;
  FloatVec sum = hn::Zero(df);
  FloatVec other = hn::Zero(df);
  const float* from = tile.points + at;
  std::int64_t j = 0;
  for (; j + 2 <= tile.d; j += 2) {
    const FloatVec x = hn::LoadU(df, from + j * kTilePoints);
    const FloatVec y = hn::LoadU(df, from + (j + 1) * kTilePoints);
    sum = hn::MulAdd(x, x, sum);
    other = hn::MulAdd(y, y, other);
  }
  if (j < tile.d) {
    const FloatVec x = hn::LoadU(df, from + j * kTilePoints);
    sum = hn::MulAdd(x, x, sum);
  }
  return hn::Add(sum, other);
}

// Vectors as the numbers of formulas/kmeans/float_bound.hpp.
struct Floats {
  HWY_INLINE Floats(FloatVec vector) : v(vector) {}  // NOLINT(google-explicit-constructor)
  HWY_INLINE explicit Floats(float value) : v(hn::Set(FloatTag(), value)) {}
  HWY_INLINE friend Floats operator+(Floats a, Floats b) { return hn::Add(a.v, b.v); }
  HWY_INLINE friend Floats operator-(Floats a, Floats b) { return hn::Sub(a.v, b.v); }
  HWY_INLINE friend Floats operator*(Floats a, Floats b) { return hn::Mul(a.v, b.v); }

  FloatVec v;
};
struct FloatsArithmetic {
  using Value = Floats;
  HWY_INLINE static Floats fma(Floats a, Floats b, Floats c) { return hn::MulAdd(a.v, b.v, c.v); }
  HWY_INLINE static Floats sqrt(Floats a) { return hn::Sqrt(a.v); }
  HWY_INLINE static Floats abs(Floats a) { return hn::Abs(a.v); }
  HWY_INLINE static Floats max(Floats a, Floats b) { return hn::Max(a.v, b.v); }
  HWY_INLINE static Floats at_most(Floats a, Floats b, Floats value, Floats otherwise) {
    return hn::IfThenElse(hn::Le(a.v, b.v), value.v, otherwise.v);
  }
};

HWY_INLINE void decide(LloydTile& tile, int at, FloatVec norm, FloatVec g, const Best& best) {
  const FloatTag df;
  const IntTag di;
  alignas(64) float e_of_best[kFloatLanes];
  alignas(64) float f_of_best[kFloatLanes];
  alignas(64) std::int32_t indices[kFloatLanes];
  hn::Store(best.index, di, indices);
  for (int i = 0; i < kFloatLanes; ++i) {
    e_of_best[i] = tile.lengths[indices[i]];
    f_of_best[i] = tile.allowances[indices[i]];
  }
  const core::LloydRow<Floats> row{norm, g, best.best, hn::Load(df, e_of_best), hn::Load(df, f_of_best)};
  const auto decision = core::lloyd_decision<FloatsArithmetic>(tile.bound, row);
  const Floats lower =
      core::lloyd_lower<FloatsArithmetic>(tile.bound, Floats(norm), decision.rho_point, Floats(best.second));
  hn::StoreU(decision.threshold.v, df, tile.threshold + at);
  hn::StoreU(decision.upper.v, df, tile.upper + at);
  hn::StoreU(lower.v, df, tile.lower + at);
  hn::StoreU(norm, df, tile.norms + at);
  hn::StoreU(best.best, df, tile.best + at);
  hn::StoreU(best.second, df, tile.second + at);
  hn::StoreU(best.index, di, tile.index + at);
}

void screen_tile(LloydTile& tile) {
  const FloatTag df;
  const IntTag di;
  const FloatVec norm_low = bound_points(tile, 0);
  const FloatVec norm_high = bound_points(tile, kFloatLanes);
  const FloatVec g_low = core::lloyd_factor<FloatsArithmetic>(tile.bound, Floats(norm_low)).v;
  const FloatVec g_high = core::lloyd_factor<FloatsArithmetic>(tile.bound, Floats(norm_high)).v;
  hn::StoreU(g_low, df, tile.points + tile.d * kTilePoints);
  hn::StoreU(g_high, df, tile.points + tile.d * kTilePoints + kFloatLanes);
  const FloatVec none = hn::Set(df, -__builtin_inff());
  Best low = {none, none, hn::Zero(di)};
  Best high = low;
  const float* panel = tile.panels;
  std::int64_t first = 0;
  Fetcher fetcher(tile, (tile.full_panels + (tile.last_height > 0 ? 1 : 0)) * (tile.d + 1));
  for (std::int64_t p = 0; p < tile.full_panels; ++p) {
    meet_panel<kCentreTile>(tile, panel, first, fetcher, low, high);
    panel += (tile.d + 2) * kCentreTile;
    first += kCentreTile;
  }
  if (tile.last_height == kCentreStep) {
    meet_panel<kCentreStep>(tile, panel, first, fetcher, low, high);
  } else if (tile.last_height == 2 * kCentreStep) {
    meet_panel<2 * kCentreStep>(tile, panel, first, fetcher, low, high);
  }
  decide(tile, 0, norm_low, g_low, low);
  decide(tile, kFloatLanes, norm_high, g_high, high);
}

// Cuts one vector of terms into slices: (r + m) - m is r rounded to a multiple of the slice's grid, and what is left is
// exact (cpu/kmeans/sums.hpp).
template <class D>
HWY_INLINE void add_slices(D dd, hn::Vec<D> r, std::int64_t slices, std::int64_t stride, const double* magic,
                           double* sums) {
  for (std::int64_t s = 1; s <= slices; ++s) {
    const auto m = hn::LoadU(dd, magic + s * stride);
    const auto part = hn::Sub(hn::Add(r, m), m);
    hn::StoreU(hn::Add(hn::LoadU(dd, sums + s * stride), part), dd, sums + s * stride);
    r = hn::Sub(r, part);
    if (s >= 2 && s < slices && hn::AllTrue(dd, hn::Eq(r, hn::Zero(dd)))) return;
  }
}

template <class T>
void add_row(const void* row, double factor, std::int64_t d, std::int64_t slices, std::int64_t stride,
             const double* magic, double* sums) {
  const DoubleTag dd;
  const auto by = hn::Set(dd, factor);
  const T* from = static_cast<const T*>(row);
  std::int64_t j = 0;
  for (; j + kDoubleLanes <= d; j += kDoubleLanes) {
    add_slices(dd, hn::Mul(load_widened(dd, from + j), by), slices, stride, magic + j, sums + j);
  }
  if (j == d) return;
  // `magic` and `sums` are padded.
  const auto tail = load_first(dd, from + j, static_cast<std::size_t>(d - j));
  add_slices(dd, hn::Mul(tail, by), slices, stride, magic + j, sums + j);
}

// Without a branch a row, which nothing could predict. The factors cover the roundings of the two additions.
std::int64_t move_bounds(const std::int32_t* labels, std::int64_t count, const Shifts& shifts, float* upper,
                         float* lower, std::int32_t* active) {
  std::int64_t found = 0;
  const auto move = [&](auto df, std::int64_t i) {
    const hn::RebindToSigned<decltype(df)> di;
    const auto label = hn::LoadU(di, labels + i);
    const auto of_mover = hn::RebindMask(df, hn::Eq(label, hn::Set(di, shifts.mover)));
    const auto of_others = hn::IfThenElse(of_mover, hn::Set(df, shifts.next), hn::Set(df, shifts.most));
    const auto up =
        hn::Mul(hn::Add(hn::LoadU(df, upper + i), hn::GatherIndex(df, shifts.of, label)), hn::Set(df, 1 + 0x1p-22F));
    const auto low = hn::Mul(hn::Sub(hn::LoadU(df, lower + i), of_others), hn::Set(df, 1 - 0x1p-22F));
    hn::StoreU(up, df, upper + i);
    hn::StoreU(low, df, lower + i);
    const auto open = hn::RebindMask(di, hn::Not(hn::Lt(hn::Mul(up, hn::Set(df, 1 + 0x1p-20F)), low)));
    hn::StoreU(hn::Compress(hn::Iota(di, static_cast<std::int32_t>(i)), open), di, active + found);
    found += static_cast<std::int64_t>(hn::CountTrue(di, open));
  };
  std::int64_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes) move(FloatTag(), i);
  for (; i < count; ++i) move(hn::CappedTag<float, 1>(), i);
  return found;
}

constexpr LloydKernels make_lloyd_kernels() {
  return {kTilePoints, kCentreTile, stage_rows, screen_tile, add_row<float>, add_row<double>, move_bounds};
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
