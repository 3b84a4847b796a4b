// The loops of dense_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too.
//
// An update packs its b once a depth and its a strip by strip; then a register tile of kTileVectors vectors by
// kTileColumns columns runs over the depth.

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

// c[0 .. kTileRows, 0 .. kTileColumns] -= packed products; `rows`, `cols`: as much of it as there is.
HWY_INLINE void tile(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t step,
                     std::int64_t rows, std::int64_t cols) {
  const Lanes lanes;
  Vec sums[kTileVectors][kTileColumns];
#pragma GCC unroll 3
  for (int v = 0; v < kTileVectors; ++v) {
#pragma GCC unroll 8
    for (int j = 0; j < kTileColumns; ++j) sums[v][j] = hn::Zero(lanes);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Vec column[kTileVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kTileVectors; ++v) column[v] = hn::LoadU(lanes, a + k * kTileRows + v * kLanes);
#pragma GCC unroll 8
    for (int j = 0; j < kTileColumns; ++j) {
      const Vec value = hn::Set(lanes, b[k * kTileColumns + j]);
#pragma GCC unroll 3
      for (int v = 0; v < kTileVectors; ++v) sums[v][j] = hn::MulAdd(column[v], value, sums[v][j]);
    }
  }
  if (rows == kTileRows && cols == kTileColumns) {
#pragma GCC unroll 8
    for (int j = 0; j < kTileColumns; ++j) {
#pragma GCC unroll 3
      for (int v = 0; v < kTileVectors; ++v) {
        double* to = c + j * step + v * kLanes;
        hn::StoreU(hn::Sub(hn::LoadU(lanes, to), sums[v][j]), lanes, to);
      }
    }
    return;
  }
  alignas(64) double all[kTileRows * kTileColumns];
#pragma GCC unroll 8
  for (int j = 0; j < kTileColumns; ++j) {
#pragma GCC unroll 3
    for (int v = 0; v < kTileVectors; ++v) hn::StoreU(sums[v][j], lanes, all + j * kTileRows + v * kLanes);
  }
  for (std::int64_t j = 0; j < cols; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) c[j * step + i] -= all[j * kTileRows + i];
  }
}

inline void update(const DenseUpdate& task) {
  double* packed_a = task.room;
  double* packed_b = task.room + kTileRows * kDenseDepth;
  for (std::int64_t from = 0; from < task.k; from += kDenseDepth) {
    const std::int64_t depth = task.k - from < kDenseDepth ? task.k - from : kDenseDepth;
    for (std::int64_t j = 0; j < task.n; j += kTileColumns) {
      double* to = packed_b + j * depth;
      const std::int64_t cols = task.n - j < kTileColumns ? task.n - j : kTileColumns;
      for (std::int64_t k = 0; k < depth; ++k) {
        const double* b = task.b + (from + k) * task.b_step + j;
        for (std::int64_t c = 0; c < kTileColumns; ++c) {
          to[k * kTileColumns + c] = c < cols ? task.scale[from + k] * b[c] : 0;
        }
      }
    }
    for (std::int64_t i = 0; i < task.m; i += kTileRows) {
      const std::int64_t rows = task.m - i < kTileRows ? task.m - i : kTileRows;
      for (std::int64_t k = 0; k < depth; ++k) {
        const double* a = task.a + (from + k) * task.a_step + i;
        for (std::int64_t r = 0; r < rows; ++r) packed_a[k * kTileRows + r] = a[r];
        for (std::int64_t r = rows; r < kTileRows; ++r) packed_a[k * kTileRows + r] = 0;
      }
      for (std::int64_t j = 0; j < task.n && j <= i + kTileRows - 1 + task.shift; j += kTileColumns) {
        const std::int64_t cols = task.n - j < kTileColumns ? task.n - j : kTileColumns;
        tile(depth, packed_a, packed_b + j * depth, task.c + j * task.c_step + i, task.c_step, rows, cols);
      }
    }
  }
}

inline void solve(const DenseSolve& task) {
  const Lanes lanes;
  alignas(64) double done[kDenseWidth * kLanes];  // not yet divided by d
  alignas(64) double tail[kDenseWidth * kLanes];
  for (std::int64_t i = 0; i < task.m; i += kLanes) {
    const std::int64_t rows = task.m - i < kLanes ? task.m - i : kLanes;
    double* p = task.p + i;
    std::int64_t step = task.p_step;
    if (rows < kLanes) {
      for (std::int64_t c = 0; c < task.width; ++c) {
        for (std::int64_t r = 0; r < kLanes; ++r) tail[c * kLanes + r] = r < rows ? p[c * step + r] : 0;
      }
      p = tail;
      step = kLanes;
    }
    for (std::int64_t c = 0; c < task.width; ++c) {
      Vec even = hn::LoadU(lanes, p + c * step);
      Vec odd = hn::Zero(lanes);
      std::int64_t b = 0;
      for (; b + 2 <= c; b += 2) {
        even = hn::NegMulAdd(hn::Set(lanes, task.l[b * task.l_step + c]), hn::Load(lanes, done + b * kLanes), even);
        odd = hn::NegMulAdd(hn::Set(lanes, task.l[(b + 1) * task.l_step + c]), hn::Load(lanes, done + (b + 1) * kLanes),
                            odd);
      }
      for (; b < c; ++b) {
        even = hn::NegMulAdd(hn::Set(lanes, task.l[b * task.l_step + c]), hn::Load(lanes, done + b * kLanes), even);
      }
      const Vec found = hn::Add(even, odd);
      hn::Store(found, lanes, done + c * kLanes);
      hn::StoreU(hn::Div(found, hn::Set(lanes, task.d[c])), lanes, p + c * step);
    }
    if (rows < kLanes) {
      for (std::int64_t c = 0; c < task.width; ++c) {
        for (std::int64_t r = 0; r < rows; ++r) task.p[i + c * task.p_step + r] = tail[c * kLanes + r];
      }
    }
  }
}

// Four columns of x, or fewer and zeros.
HWY_INLINE void load_four(const double* x, std::int64_t width, std::int64_t cols, Vec (&to)[4]) {
  const Lanes lanes;
#pragma GCC unroll 4
  for (std::int64_t b = 0; b < 4; ++b) to[b] = b < cols ? hn::LoadU(lanes, x + b * width) : hn::Zero(lanes);
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

// Rows [r, r + rows) of the columns [c, c + cols) of a panel, as float64: column b from b * kWideRows on.
HWY_INLINE void widen(const PanelProduct& panel, std::int64_t c, std::int64_t cols, std::int64_t r, std::int64_t rows,
                      double* to) {
  const Lanes lanes;
  for (std::int64_t b = 0; b < cols; ++b, to += kWideRows) {
    const FiveBytes from = panel.l.from((c + b) * panel.l_step + r);
    std::int64_t i = 0;
    for (; i + kLanes <= rows; i += kLanes) hn::Store(widened_lanes(from.high + i, from.low + i), lanes, to + i);
    if (i == rows) continue;
    float high[kLanes] = {};
    std::uint8_t low[kLanes] = {};
    for (std::int64_t l = 0; i + l < rows; ++l) {
      high[l] = from.high[i + l];
      low[l] = from.low[i + l];
    }
    hn::Store(widened_lanes(high, low), lanes, to + i);
  }
}

// Four columns at a time: y is loaded and stored once for them.
inline void down(const PanelProduct& panel, const double* x, double* y) {
  const Lanes lanes;
  const std::int64_t width = panel.width;
  alignas(64) double l[4 * kWideRows];
  for (std::int64_t c = 0; c < panel.k; c += 4) {
    const std::int64_t cols = panel.k - c < 4 ? panel.k - c : 4;
    for (std::int64_t first = 0; first < panel.m; first += kWideRows) {
      const std::int64_t rows = panel.m - first < kWideRows ? panel.m - first : kWideRows;
      widen(panel, c, cols, first, rows, l);
      for (std::int64_t w = 0; w < width; w += kLanes) {
        Vec from[4];
        load_four(x + c * width + w, width, cols, from);
        for (std::int64_t r = 0; r < rows; ++r) {
          double* to = y + (first + r) * width + w;
          Vec sum = hn::LoadU(lanes, to);
          if (cols == 4) {
#pragma GCC unroll 4
            for (int b = 0; b < 4; ++b) sum = hn::NegMulAdd(hn::Set(lanes, l[b * kWideRows + r]), from[b], sum);
          } else {
            for (std::int64_t b = 0; b < cols; ++b) {
              sum = hn::NegMulAdd(hn::Set(lanes, l[b * kWideRows + r]), from[b], sum);
            }
          }
          hn::StoreU(sum, lanes, to);
        }
      }
    }
  }
}

inline void up(const PanelProduct& panel, const double* y, double* x) {
  const std::int64_t width = panel.width;
  const Lanes lanes;
  alignas(64) double l[4 * kWideRows];
  for (std::int64_t c = 0; c < panel.k; c += 4) {
    const std::int64_t cols = panel.k - c < 4 ? panel.k - c : 4;
    for (std::int64_t first = 0; first < panel.m; first += kWideRows) {
      const std::int64_t rows = panel.m - first < kWideRows ? panel.m - first : kWideRows;
      widen(panel, c, cols, first, rows, l);
      for (std::int64_t w = 0; w < width; w += kLanes) {
        Vec sums[4];
        load_four(x + c * width + w, width, cols, sums);
        if (cols == 4) {
          for (std::int64_t r = 0; r < rows; ++r) {
            const Vec from = hn::LoadU(lanes, y + (first + r) * width + w);
#pragma GCC unroll 4
            for (int b = 0; b < 4; ++b) {
              sums[b] = hn::NegMulAdd(hn::Set(lanes, l[b * kWideRows + r]), from, sums[b]);
            }
          }
        } else {
          for (std::int64_t r = 0; r < rows; ++r) {
            const Vec from = hn::LoadU(lanes, y + (first + r) * width + w);
            for (std::int64_t b = 0; b < cols; ++b) {
              sums[b] = hn::NegMulAdd(hn::Set(lanes, l[b * kWideRows + r]), from, sums[b]);
            }
          }
        }
        for (std::int64_t b = 0; b < cols; ++b) hn::StoreU(sums[b], lanes, x + (c + b) * width + w);
      }
    }
  }
}

}  // namespace dense

constexpr DenseKernels make_dense_kernels() {
  return {dense::update, dense::solve, dense::down, dense::up, dense::shorten};
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
