// The loops of dense_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too.
//
// An update packs its a and b by strips of as many rows as a register tile has; then tiles of kTileVectors vectors by
// kTileColumns columns, or of fewer vectors at an edge, run over the depth. A strip of a stays in the nearest cache
// while those of b pass.

#include <type_traits>

#include "simd/dense_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

namespace dense {

using Lanes = hn::ScalableTag<double>;
using Vec = hn::Vec<Lanes>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(Lanes()));
// As many accumulators as the registers hold beside a column of a and one value of b.
constexpr int kTileVectors = 3;
constexpr int kTileColumns = kLanes >= 8 ? 8 : 4;
constexpr std::int64_t kTileRows = kTileVectors * kLanes;
static_assert(kDenseTile % kTileRows == 0 && kDenseTile % kTileColumns == 0 && kDenseWidth % kTileColumns == 0);

HWY_INLINE std::int64_t lesser(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// Columns of a tile, and of each a number of vectors.
template <int kVectors>
using Tile = Vec[kTileColumns][kVectors];

// Calls body with the number of vectors, as a constant, that hold `rows` rows, of which there are at most kTileRows.
template <class Body>
HWY_INLINE void with_vectors_of(std::int64_t rows, const Body& body) {
  if (rows > 2 * kLanes) return body(std::integral_constant<int, 3>());
  if (rows > kLanes) return body(std::integral_constant<int, 2>());
  body(std::integral_constant<int, 1>());
}

// Vector v of a column of which there are `rows` rows; beyond them are zeros, which are not stored. A vector of one
// lane has no part; a masked load of it would still read.
HWY_INLINE Vec load_part(const double* column, int v, std::int64_t rows) {
  const std::int64_t left = rows - v * kLanes;
  if (left >= kLanes) return hn::LoadU(Lanes(), column + v * kLanes);
  if constexpr (kLanes == 1) return hn::Zero(Lanes());
  return load_first(Lanes(), column + v * kLanes, static_cast<std::size_t>(left < 0 ? 0 : left));
}
HWY_INLINE void store_part(Vec values, double* column, int v, std::int64_t rows) {
  const std::int64_t left = rows - v * kLanes;
  if (left >= kLanes) return hn::StoreU(values, Lanes(), column + v * kLanes);
  if constexpr (kLanes < 4) {  // where no store is masked, a blended one would write what is beyond, too
    alignas(64) double all[kLanes];
    hn::Store(values, Lanes(), all);
    for (std::int64_t i = 0; i < left; ++i) column[v * kLanes + i] = all[i];
    return;
  }
  hn::BlendedStore(values, hn::FirstN(Lanes(), static_cast<std::size_t>(left < 0 ? 0 : left)), Lanes(),
                   column + v * kLanes);
}

// sums += or, if not kAdd, sums -= the products of `depth` columns of a strip of a, a_step apart, and rows of b.
template <int kVectors, bool kAdd>
HWY_INLINE void add_products(std::int64_t depth, const double* a, std::int64_t a_step, const double* b,
                             Tile<kVectors>& sums) {
  const Lanes lanes;
  for (std::int64_t k = 0; k < depth; ++k, a += a_step, b += kTileColumns) {
    Vec column[kVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) column[v] = hn::LoadU(lanes, a + v * kLanes);
#pragma GCC unroll 8
    for (int j = 0; j < kTileColumns; ++j) {
      const Vec value = hn::Set(lanes, b[j]);
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
        sums[j][v] = kAdd ? hn::MulAdd(column[v], value, sums[j][v]) : hn::NegMulAdd(column[v], value, sums[j][v]);
      }
    }
  }
}

// c[0 .. rows, 0 .. cols] -= packed products.
template <int kVectors>
HWY_INLINE void tile(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t step,
                     std::int64_t rows, std::int64_t cols) {
  const Lanes lanes;
  Tile<kVectors> sums;
#pragma GCC unroll 8
  for (int j = 0; j < kTileColumns; ++j) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      sums[j][v] = hn::Zero(lanes);
      if (j < cols) __builtin_prefetch(c + j * step + v * kLanes, 1);
    }
  }
  add_products<kVectors, true>(depth, a, kTileRows, b, sums);
#pragma GCC unroll 8
  for (int j = 0; j < kTileColumns; ++j) {
    if (j >= cols) break;
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      store_part(hn::Sub(load_part(c + j * step, v, rows), sums[j][v]), c + j * step, v, rows);
    }
  }
}

// `depth` columns of m rows as strips of kRows rows, column by column, multiplied by their factors if there are any.
// The last strip is filled up with zeros.
template <std::int64_t kRows>
HWY_INLINE void pack(const double* from, std::int64_t step, std::int64_t m, std::int64_t depth, const double* factors,
                     double* to) {
  constexpr int kVectors = kRows / kLanes;
  constexpr std::int64_t kAhead = 3;  // columns, which are far from each other
  const Lanes lanes;
  for (std::int64_t k = 0; k < depth; ++k, from += step, to += kRows) {
    const Vec factor = hn::Set(lanes, factors != nullptr ? factors[k] : 1);
    double* at = to;
    for (std::int64_t i = 0; i < m; i += kRows, at += depth * kRows) {
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
        if (k + kAhead < depth) __builtin_prefetch(from + kAhead * step + i + v * kLanes);
        hn::StoreU(hn::Mul(load_part(from + i, v, m - i), factor), lanes, at + v * kLanes);
      }
    }
  }
}

inline void update(const DenseUpdate& task) {
  double* const packed_a = task.room;
  double* const packed_b = task.room + kDenseTile * kDenseDepth;
  for (std::int64_t from = 0; from < task.k; from += kDenseDepth) {
    const std::int64_t depth = lesser(kDenseDepth, task.k - from);
    pack<kTileRows>(task.a + from * task.a_step, task.a_step, task.m, depth, nullptr, packed_a);
    pack<kTileColumns>(task.b + from * task.b_step, task.b_step, task.n, depth, task.scale + from, packed_b);
    for (std::int64_t i = 0; i < task.m; i += kTileRows) {
      const std::int64_t rows = lesser(kTileRows, task.m - i);
      for (std::int64_t j = 0; j < task.n && j <= i + rows - 1 + task.shift; j += kTileColumns) {
        // Vectors of which all is above the diagonal are passed over.
        const std::int64_t above = j > i + task.shift ? (j - i - task.shift) / kLanes * kLanes : 0;
        with_vectors_of(rows - above, [&](auto vectors) {
          tile<decltype(vectors)::value>(depth, packed_a + i * depth + above, packed_b + j * depth,
                                         task.c + j * task.c_step + i + above, task.c_step, rows - above,
                                         lesser(kTileColumns, task.n - j));
        });
      }
    }
  }
}

inline void eliminate(const DenseBlock& task) {
  const Lanes lanes;
  const std::int64_t width = task.width;
  const std::int64_t vectors = (width + kLanes - 1) / kLanes;
  alignas(64) double all[kDenseWidth * kDenseWidth];
  alignas(64) double divided[kDenseWidth];
  for (std::int64_t c = 0; c < width; ++c) {
    for (std::int64_t v = c / kLanes; v < vectors; ++v) {
      hn::Store(load_part(task.block + c * task.step, static_cast<int>(v), width), lanes,
                all + c * kDenseWidth + v * kLanes);
    }
  }
  for (std::int64_t j = 0; j < width; ++j) {
    const double* const column = all + j * kDenseWidth;
    const double pivot = task.kept(column[j]);
    task.d[j] = pivot;
    for (std::int64_t v = j / kLanes; v < vectors; ++v) {
      const Vec quotients = hn::Div(hn::Load(lanes, column + v * kLanes), hn::Set(lanes, pivot));
      hn::Store(quotients, lanes, divided + v * kLanes);
    }
    for (std::int64_t c = j + 1; c < width; ++c) {
      const Vec factor = hn::Set(lanes, divided[c]);
      double* const other = all + c * kDenseWidth;
      for (std::int64_t v = c / kLanes; v < vectors; ++v) {
        const Vec left =
            hn::NegMulAdd(factor, hn::Load(lanes, column + v * kLanes), hn::Load(lanes, other + v * kLanes));
        hn::Store(left, lanes, other + v * kLanes);
      }
    }
    divided[j] = 1;
    for (std::int64_t v = j / kLanes; v < vectors; ++v) {
      store_part(hn::Load(lanes, divided + v * kLanes), task.block + j * task.step, static_cast<int>(v), width);
    }
  }
}

// Rows of a solve, kTileColumns columns at a time: what the columns before take from them, then what they take from
// each other. l: packed, of each such block all columns up to its last one. `done` keeps the columns undivided, for
// those that follow.
template <int kVectors>
HWY_INLINE void solve_rows(const DenseSolve& task, const double* l, const double* inverse, double* p,
                           std::int64_t rows) {
  const Lanes lanes;
  alignas(64) double done[kDenseWidth * kVectors * kLanes];
  for (std::int64_t c = 0; c < task.width; c += kTileColumns) {
    const std::int64_t cols = lesser(kTileColumns, task.width - c);
    double* const to = p + c * task.p_step;
    Tile<kVectors> sums;
#pragma GCC unroll 8
    for (int j = 0; j < kTileColumns; ++j) {
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) sums[j][v] = load_part(to + (j < cols ? j * task.p_step : 0), v, rows);
    }
    add_products<kVectors, false>(c, done, kVectors * kLanes, l, sums);
    l += c * kTileColumns;
#pragma GCC unroll 8
    for (int k = 0; k < kTileColumns; ++k, l += kTileColumns) {
#pragma GCC unroll 8
      for (int j = 1; j < kTileColumns; ++j) {
        if (j <= k) continue;
        const Vec value = hn::Set(lanes, l[j]);
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) sums[j][v] = hn::NegMulAdd(sums[k][v], value, sums[j][v]);
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < kTileColumns; ++j) {
      if (j >= cols) break;
      const Vec factor = hn::Set(lanes, inverse[c + j]);
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
        hn::Store(sums[j][v], lanes, done + ((c + j) * kVectors + v) * kLanes);
        store_part(hn::Mul(sums[j][v], factor), to + j * task.p_step, v, rows);
      }
    }
  }
}

inline void solve(const DenseSolve& task) {
  alignas(64) double packed[kDenseWidth * (kDenseWidth + kTileColumns) / 2] = {};
  alignas(64) double inverse[kDenseWidth];
  double* to = packed;
  for (std::int64_t c = 0; c < task.width; c += kTileColumns) {
    const std::int64_t cols = lesser(kTileColumns, task.width - c);
    pack<kTileColumns>(task.l + c, task.l_step, cols, lesser(c + kTileColumns, task.width), nullptr, to);
    to += (c + kTileColumns) * kTileColumns;
  }
  for (std::int64_t c = 0; c < task.width; ++c) inverse[c] = 1 / task.d[c];
  for (std::int64_t i = 0; i < task.m; i += kTileRows) {
    const std::int64_t rows = lesser(kTileRows, task.m - i);
    with_vectors_of(
        rows, [&](auto vectors) { solve_rows<decltype(vectors)::value>(task, packed, inverse, task.p + i, rows); });
  }
}

inline void add(const DenseRun* runs, const DenseRun* last, std::int64_t row, const double* from, double* to) {
  for (; runs != last; ++runs) {
    const std::int64_t top = row > runs->begin ? row : runs->begin;
    const double* const added = from + top;
    double* const rows = to + runs->at + top - runs->begin;
    const std::int64_t count = runs->end - top;
    for (std::int64_t i = 0; i < count; i += kLanes) {
      store_part(hn::Add(load_part(rows + i, 0, count - i), load_part(added + i, 0, count - i)), rows + i, 0,
                 count - i);
    }
  }
}

using Bits = hn::Vec<hn::RebindToUnsigned<Lanes>>;
constexpr int kDropped = 21;  // bits of a float64 beyond the 32 that are kept
constexpr std::uint64_t kHalf = std::uint64_t{1} << (kDropped - 1);
constexpr std::uint64_t kUpper = ~std::uint64_t{0} << (kDropped + 8);

HWY_INLINE void shorten_lanes(const double* from, float* high, std::uint8_t* low) {
  const Lanes lanes;
  const hn::RebindToUnsigned<Lanes> words;
  const Bits bits = hn::Add(hn::BitCast(words, hn::LoadU(lanes, from)), hn::Set(words, kHalf));
  const hn::Rebind<float, Lanes> floats;
  hn::StoreU(hn::DemoteTo(floats, hn::BitCast(lanes, hn::And(bits, hn::Set(words, kUpper)))), floats, high);
  const hn::Rebind<std::uint8_t, Lanes> bytes;
  hn::StoreU(hn::TruncateTo(bytes, hn::ShiftRight<kDropped>(bits)), bytes, low);
}

HWY_INLINE Vec widened_lanes(const float* high, const std::uint8_t* low) {
  const Lanes lanes;
  const hn::RebindToUnsigned<Lanes> words;
  const Bits upper = hn::BitCast(words, hn::PromoteTo(lanes, hn::LoadU(hn::Rebind<float, Lanes>(), high)));
  const auto bytes = hn::LoadU(hn::Rebind<std::uint8_t, Lanes>(), low);
  const Bits lower = hn::PromoteTo(words, hn::PromoteTo(hn::Rebind<std::uint32_t, Lanes>(), bytes));
  return hn::BitCast(lanes, hn::Or(upper, hn::ShiftLeft<kDropped>(lower)));
}

inline void shorten(const double* from, std::int64_t count, float* high, std::uint8_t* low) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) shorten_lanes(from + i, high + i, low + i);
  if (i == count) return;
  double rest[kLanes] = {};
  float rest_high[kLanes];
  std::uint8_t rest_low[kLanes];
  for (std::int64_t l = 0; i + l < count; ++l) rest[l] = from[i + l];
  shorten_lanes(rest, rest_high, rest_low);
  for (std::int64_t l = 0; i + l < count; ++l) {
    high[i + l] = rest_high[l];
    low[i + l] = rest_low[l];
  }
}

constexpr std::int64_t kWideRows = 64;
constexpr int kGroup = 8;  // columns of a panel at a time: each row of vectors is loaded once for them

// Rows [r, r + rows) of the columns [c, c + cols) of a panel, as float64: column b from b * kWideRows on.
HWY_INLINE void widen(const PanelProduct& panel, std::int64_t c, std::int64_t cols, std::int64_t r, std::int64_t rows,
                      double* to) {
  static_assert(kLanes <= kFiveBytesMore);
  for (std::int64_t b = 0; b < cols; ++b, to += kWideRows) {
    const FiveBytes from = panel.l.from((c + b) * panel.l_step + r);
    for (std::int64_t i = 0; i < rows; i += kLanes) {
      hn::Store(widened_lanes(from.high + i, from.low + i), Lanes(), to + i);
    }
  }
}

// Asks for what `widen` will read next: the columns are far from each other, so that nothing else would.
HWY_INLINE void prefetch(const PanelProduct& panel, std::int64_t c, std::int64_t r) {
  constexpr std::int64_t kFloats = 16;  // of a cache line
  const std::int64_t cols = lesser(kGroup, panel.k - c);
  const std::int64_t rows = lesser(kWideRows, panel.m - r);
  for (std::int64_t b = 0; b < cols; ++b) {
    const FiveBytes from = panel.l.from((c + b) * panel.l_step + r);
    for (std::int64_t i = 0; i < rows; i += kFloats) __builtin_prefetch(from.high + i);
    __builtin_prefetch(from.low);
    __builtin_prefetch(from.low + rows);
  }
}

// A vector of each of kCount columns of x, which are zeros from `cols` on.
template <int kCount>
HWY_INLINE void load_columns(const double* x, std::int64_t width, std::int64_t cols, Vec (&to)[kCount]) {
#pragma GCC unroll 8
  for (int b = 0; b < kCount; ++b) to[b] = b < cols ? hn::LoadU(Lanes(), x + b * width) : hn::Zero(Lanes());
}
template <int kCount>
HWY_INLINE void store_columns(const Vec (&from)[kCount], std::int64_t width, std::int64_t cols, double* x) {
#pragma GCC unroll 8
  for (int b = 0; b < kCount; ++b) {
    if (b < cols) hn::StoreU(from[b], Lanes(), x + b * width);
  }
}

// What the columns [c, c + cols), at most kCount, take from the rows below. kOwn: from each other's rows first.
template <bool kOwn, int kCount>
HWY_INLINE void down_columns(const PanelProduct& panel, std::int64_t c, std::int64_t cols, const double* x, double* y) {
  const Lanes lanes;
  const std::int64_t width = panel.width;
  alignas(64) double l[kCount * kWideRows];
  for (std::int64_t i = cols * kWideRows; i < kCount * kWideRows; ++i) l[i] = 0;
  for (std::int64_t first = kOwn ? c : 0; first < panel.m; first += kWideRows) {
    const std::int64_t rows = lesser(kWideRows, panel.m - first);
    widen(panel, c, cols, first, rows, l);
    if (first + kWideRows < panel.m) {
      prefetch(panel, c, first + kWideRows);
    } else if (c + cols < panel.k) {
      prefetch(panel, c + cols, kOwn ? c + cols : 0);
    }
    for (std::int64_t w = 0; w < width; w += kLanes) {
      Vec from[kCount];
      load_columns(x + c * width + w, width, cols, from);
      std::int64_t r = 0;
      if (kOwn && first == c) {
#pragma GCC unroll 8
        for (int i = 1; i < kCount; ++i) {
          if (i >= cols) break;
#pragma GCC unroll 8
          for (int b = 0; b < i; ++b) from[i] = hn::NegMulAdd(hn::Set(lanes, l[b * kWideRows + i]), from[b], from[i]);
        }
        store_columns(from, width, cols, y + c * width + w);
        r = cols;
      }
      for (; r < rows; ++r) {
        double* to = y + (first + r) * width + w;
        Vec sum = hn::LoadU(lanes, to);
#pragma GCC unroll 8
        for (int b = 0; b < kCount; ++b) sum = hn::NegMulAdd(hn::Set(lanes, l[b * kWideRows + r]), from[b], sum);
        hn::StoreU(sum, lanes, to);
      }
    }
  }
}

template <bool kOwn>
HWY_INLINE void go_down(const PanelProduct& panel, const double* x, double* y) {
  for (std::int64_t c = 0; c < panel.k; c += kGroup) {
    const std::int64_t cols = lesser(kGroup, panel.k - c);
    if (cols > kGroup / 2) {
      down_columns<kOwn, kGroup>(panel, c, cols, x, y);
    } else {
      down_columns<kOwn, kGroup / 2>(panel, c, cols, x, y);
    }
  }
}

inline void down(const PanelProduct& panel, const double* x, double* y) {
  go_down<false>(panel, x, y);
}
inline void down_own(const PanelProduct& panel, double* x) {
  go_down<true>(panel, x, x);
}

// What the rows below take from the columns [c, c + cols), at most kCount. kOwn: then the columns from each other.
template <bool kOwn, int kCount>
HWY_INLINE void up_columns(const PanelProduct& panel, std::int64_t c, std::int64_t cols, const double* y, double* x) {
  const Lanes lanes;
  const std::int64_t width = panel.width;
  alignas(64) double l[kCount * kWideRows];
  for (std::int64_t i = cols * kWideRows; i < kCount * kWideRows; ++i) l[i] = 0;
  const std::int64_t top = kOwn ? c : 0;
  for (std::int64_t first = top + (panel.m - top - 1) / kWideRows * kWideRows; first >= top; first -= kWideRows) {
    const std::int64_t rows = lesser(kWideRows, panel.m - first);
    widen(panel, c, cols, first, rows, l);
    if (first > top) {
      prefetch(panel, c, first - kWideRows);
    } else if (c > 0) {
      const std::int64_t next_top = kOwn ? c - kGroup : 0;
      prefetch(panel, c - kGroup, next_top + (panel.m - next_top - 1) / kWideRows * kWideRows);
    }
    for (std::int64_t w = 0; w < width; w += kLanes) {
      Vec sums[kCount];
      load_columns(x + c * width + w, width, cols, sums);
      for (std::int64_t r = kOwn && first == c ? cols : 0; r < rows; ++r) {
        const Vec from = hn::LoadU(lanes, y + (first + r) * width + w);
#pragma GCC unroll 8
        for (int b = 0; b < kCount; ++b) {
          sums[b] = hn::NegMulAdd(hn::Set(lanes, l[b * kWideRows + r]), from, sums[b]);
        }
      }
      if (kOwn && first == c) {
#pragma GCC unroll 8
        for (int i = kCount - 1; i > 0; --i) {
          if (i >= cols) continue;
#pragma GCC unroll 8
          for (int b = 0; b < i; ++b) sums[b] = hn::NegMulAdd(hn::Set(lanes, l[b * kWideRows + i]), sums[i], sums[b]);
        }
      }
      store_columns(sums, width, cols, x + c * width + w);
    }
  }
}

template <bool kOwn>
HWY_INLINE void go_up(const PanelProduct& panel, const double* y, double* x) {
  for (std::int64_t c = (panel.k - 1) / kGroup * kGroup; c >= 0; c -= kGroup) {
    const std::int64_t cols = lesser(kGroup, panel.k - c);
    if (cols > kGroup / 2) {
      up_columns<kOwn, kGroup>(panel, c, cols, y, x);
    } else {
      up_columns<kOwn, kGroup / 2>(panel, c, cols, y, x);
    }
  }
}

inline void up(const PanelProduct& panel, const double* y, double* x) {
  go_up<false>(panel, y, x);
}
inline void up_own(const PanelProduct& panel, double* x) {
  go_up<true>(panel, x, x);
}

}  // namespace dense

constexpr DenseKernels make_dense_kernels() {
  return {dense::update,   dense::eliminate, dense::solve,  dense::add,    dense::down,
          dense::down_own, dense::up,        dense::up_own, dense::shorten};
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
