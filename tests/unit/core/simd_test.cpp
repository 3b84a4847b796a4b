// The inner loops of every instruction set: keys equal core/distance.hpp bit for bit at every width (tails included),
// and the screen never drops a row that its own key admits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/aligned.hpp"
#include "core/distance.hpp"
#include "core/isa.hpp"
#include "cpu/nearest/screen.hpp"
#include "isas.hpp"
#include "simd/all_kernels.hpp"

namespace vicinal::cpu {
namespace {

template <class T>
void expect_same_keys(const SimdKernels& simd, Element element, std::int64_t d, std::mt19937_64& random) {
  constexpr std::int64_t kRows = 7;  // a group of four and a tail of three
  std::vector<double> x(static_cast<std::size_t>((d + 7) / 8 * 8), 0.0);
  std::vector<T> rows(static_cast<std::size_t>(kRows * d));
  std::normal_distribution<double> normal(100, 50);
  const auto draw = [&] {
    const double value = normal(random);
    return std::is_same_v<T, std::uint8_t> ? static_cast<T>(std::fmod(std::fabs(value), 255.0)) : static_cast<T>(value);
  };
  for (std::int64_t j = 0; j < d; ++j) x[j] = static_cast<double>(draw());
  for (T& value : rows) value = draw();
  std::vector<double> wide(rows.begin(), rows.end());
  std::vector<const void*> pointers;
  for (std::int64_t r = 0; r < kRows; ++r) pointers.push_back(rows.data() + r * d);
  double sums[kRows];
  const auto check = [&](KeyOp op, auto expected) {
    simd.keys[static_cast<int>(op)][static_cast<int>(element)](x.data(), pointers.data(), kRows, d, sums);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const double want = expected(wide.data() + r * d);
      EXPECT_EQ(std::memcmp(&want, &sums[r], sizeof want), 0)
          << name_of(simd.isa) << " op " << static_cast<int>(op) << " element " << static_cast<int>(element) << " d "
          << d << " row " << r << ": " << sums[r] << " instead of " << want;
    }
  };
  check(KeyOp::squares, [&](const double* y) { return core::euclidean_key(x.data(), y, d); });
  check(KeyOp::products, [&](const double* y) { return 0.0 - core::inner_product_key(x.data(), y, d); });
  check(KeyOp::absolutes, [&](const double* y) { return core::manhattan_key(x.data(), y, d); });
  check(KeyOp::maximum, [&](const double* y) { return core::chebyshev_key(x.data(), y, d); });
  check(KeyOp::differing, [&](const double* y) {
    double differing = 0;
    for (std::int64_t j = 0; j < d; ++j) differing += x[j] != y[j] ? 1 : 0;
    return differing;
  });
}

TEST(Simd, KeysEqualTheScalarOnesAtEveryWidth) {
  std::mt19937_64 random(7);
  for (const Isa isa : isas()) {
    for (const std::int64_t d : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 41, 64, 127, 128, 129, 784}) {
      expect_same_keys<std::uint8_t>(simd_kernels(isa), Element::uint8, d, random);
      expect_same_keys<float>(simd_kernels(isa), Element::float32, d, random);
      expect_same_keys<double>(simd_kernels(isa), Element::float64, d, random);
    }
  }
}

struct Family {
  const char* name;
  std::int64_t d;
  ScreenKind kind;
  // Fills one row; `query` is true for the query.
  void (*fill)(std::mt19937_64& random, std::int64_t d, bool query, double* row);
};

double normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}

const Family kFamilies[] = {
    {"gaussian", 41, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = normal(r);
     }},
    {"one column", 1, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t, bool, double* row) { row[0] = normal(r); }},
    {"tight cluster", 33, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = 1 + 1e-6 * normal(r);
     }},
    {"adversarial: one large early column, many small ones of one sign", 512, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       row[0] = 1;
       for (std::int64_t j = 1; j < d; ++j) row[j] = 0x1p-13 * (1 + 0x1p-12 * std::fabs(normal(r)));
     }},
    {"adversarial: the large column late", 512, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       row[d - 1] = 1;
       for (std::int64_t j = 0; j < d - 1; ++j) row[j] = 0x1p-13 * (1 + 0x1p-12 * std::fabs(normal(r)));
     }},
    {"far query", 17, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t d, bool query, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = (query ? 1e6 : 1) * normal(r);
     }},
    {"column scales 1e-6 to 1e6", 24, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = std::pow(10.0, -6 + 12.0 * static_cast<double>(j) / d) * normal(r);
     }},
    {"tiny values", 16, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = 1e-160 * normal(r);
     }},
    {"subnormal values", 16, ScreenKind::distance,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = 1e-310 * normal(r);
     }},
    {"product, gaussian", 41, ScreenKind::product,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = normal(r);
     }},
    {"product, positive with offset", 64, ScreenKind::product,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = 1e3 + normal(r);
     }},
    {"product, tiny values", 9, ScreenKind::product,
     [](std::mt19937_64& r, std::int64_t d, bool, double* row) {
       for (std::int64_t j = 0; j < d; ++j) row[j] = 1e-170 * normal(r);
     }},
};

constexpr ScreenType kScreenTypes[] = {ScreenType::float32, ScreenType::bfloat16, ScreenType::int8};

// The tables of kernels on this machine: with the dot products it has, and with every one of them emulated.
std::vector<const SimdKernels*> kernel_tables() {
  std::vector<const SimdKernels*> tables;
  for (const Isa isa : isas()) tables.push_back(&simd_kernels(isa));
#if defined(__x86_64__)
  for (const SimdKernels* table : {&avx2_kernels().search, &avx512_kernels().search}) {
    if (core::has_isa(table->isa)) tables.push_back(table);
  }
#endif
  return tables;
}

// The scale a search would choose: a power of two that brings all below one, or for int8 what spans `range` of 127.
double scale_for(ScreenType type, double largest, double range) {
  if (type != ScreenType::int8) return std::ldexp(1.0, -std::clamp(std::ilogb(largest) + 1, -1000, 1000));
  const double scale = range * 127 / largest;
  return std::isfinite(scale) ? scale : 1;
}

// One tile: rows around a center, and one query.
struct TileOfOneQuery {
  TileOfOneQuery(const SimdKernels& kernels, const Screen& screen, const std::vector<double>& x,
                 const std::vector<double>& y)
      : simd(kernels), rounding(screen), width(kernels.tile_rows) {
    const auto d = static_cast<std::int64_t>(x.size());
    words = Screen::row_bytes(screen.type(), d) / 4;
    rows.reserve(4 * words * width);
    queries.reserve(4 * words * simd.tile_queries);
    for (std::int32_t q = 0; q < simd.tile_queries; ++q) screen.pack_nothing(queries.data(), q, simd.tile_queries);
    double norms = 0;
    for (std::int64_t r = 0; r < width; ++r) {
      const RoundedRow rounded = screen.pack(y.data() + r * d, Screen::Side::row, rows.data(), r, width);
      const RowTerms terms = screen.row_terms(rounded);
      start.push_back(terms.start);
      base.push_back(terms.base);
      rho.push_back(terms.rho);
      kappa.push_back(terms.kappa);
      norms += rounded.rounded_sq;
    }
    query = screen.query_terms(screen.pack(x.data(), Screen::Side::query, queries.data(), 0, simd.tile_queries));
  }

  // Whether row r survives the threshold. `spare`: how much larger the tile's a and b are than the query's own.
  std::vector<bool> survivors(const Threshold& threshold, double spare) {
    float a[kMaxTileQueries] = {};
    float b[kMaxTileQueries] = {};
    float t[kMaxTileQueries] = {};
    std::int32_t least[kMaxTileQueries] = {};
    a[0] = static_cast<float>(threshold.a);
    b[0] = static_cast<float>(threshold.b);
    t[0] = static_cast<float>(threshold.t);
    if (rounding.type() == ScreenType::int8) {
      const double tile_a = threshold.a * (1 + spare);
      const double tile_b = threshold.b * (1 + spare);
      least[0] = integer_threshold(threshold, tile_a, tile_b, *std::min_element(rho.begin(), rho.end()),
                                   *std::min_element(kappa.begin(), kappa.end()));
      a[0] = round_up(tile_a * (1 + 0x1p-20));
      b[0] = round_up(tile_b * (1 + 0x1p-20));
    }
    std::vector<Survivor> found(static_cast<std::size_t>(simd.tile_queries * width));
    std::vector<std::int32_t> counts(simd.tile_queries, 0);
    ScreenTile tile{};
    tile.queries = queries.data();
    tile.rows = rows.data();
    tile.start = start.data();
    tile.base = base.data();
    tile.rho = rho.data();
    tile.kappa = kappa.data();
    tile.a = a;
    tile.b = b;
    tile.threshold = t;
    tile.least = least;
    tile.words = words;
    tile.valid_queries = 1;
    tile.valid_rows = static_cast<std::int32_t>(width);
    tile.survivors = found.data();
    tile.capacity = width;
    tile.counts = counts.data();
    simd.screens[screen_index(rounding.type())](tile);
    std::vector<bool> kept(static_cast<std::size_t>(width), false);
    for (std::int32_t s = 0; s < counts[0]; ++s) kept[found[s].row] = true;
    return kept;
  }

  const SimdKernels& simd;
  const Screen& rounding;
  std::int64_t width;
  std::int64_t words = 0;
  core::AlignedArray<std::byte> rows;
  core::AlignedArray<std::byte> queries;
  std::vector<float> start, rho, kappa;
  std::vector<std::int32_t> base;
  QueryTerms query{};
};

double screen_key_of(ScreenKind kind, const double* x, const double* y, std::int64_t d) {
  return kind == ScreenKind::distance ? core::euclidean_key(x, y, d) : core::inner_product_key(x, y, d);
}

// For every pair, with the pair's own key as the limit, the pair must survive: it is the tightest threshold under which
// the row may still be an answer. Returns how many of the other rows were dropped, to see that the screen drops.
std::int64_t expect_nothing_lost(const SimdKernels& simd, ScreenType type, const Family& family, int trials) {
  std::mt19937_64 random(11);
  const std::int64_t d = family.d;
  const std::int64_t width = simd.tile_rows;
  std::vector<double> centre(static_cast<std::size_t>(d), 0.0);
  std::int64_t dropped = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> x(static_cast<std::size_t>(d));
    std::vector<double> y(static_cast<std::size_t>(width * d));
    family.fill(random, d, true, x.data());
    for (std::int64_t r = 0; r < width; ++r) family.fill(random, d, false, y.data() + r * d);
    if (family.kind == ScreenKind::distance && trial % 2 == 1) centre.assign(y.begin(), y.begin() + d);
    double largest = 0;
    for (std::int64_t i = 0; i < width * d; ++i) largest = std::max(largest, std::fabs(y[i] - centre[i % d]));
    const double range = trial % 3 == 2 ? 4 : 1;  // also with elements that are clamped
    const Screen screen(type, family.kind, d, scale_for(type, largest, range), centre);
    TileOfOneQuery tile(simd, screen, x, y);
    for (std::int64_t r = 0; r < width; ++r) {
      const double key = screen_key_of(family.kind, x.data(), y.data() + r * d, d);
      for (const double typical : {0.0, 1e300}) {  // form F, form T
        const Threshold threshold = screen.threshold(tile.query, key, typical);
        const std::vector<bool> kept = tile.survivors(threshold, trial % 2 == 0 ? 0 : 0.5);
        EXPECT_TRUE(kept[r]) << family.name << ", " << name_of(type) << ", " << name_of(simd.isa) << ", trial " << trial
                             << ", row " << r << ", key " << key << ", form " << (typical > 0 ? "T" : "F");
        dropped += std::count(kept.begin(), kept.end(), false);
      }
    }
  }
  return dropped;
}

TEST(Screen, NeverDropsARowThatItsKeyAdmits) {
  for (const SimdKernels* simd : kernel_tables()) {
    for (const ScreenType type : kScreenTypes) {
      for (const Family& family : kFamilies) expect_nothing_lost(*simd, type, family, simd->tile_rows > 8 ? 24 : 60);
    }
  }
}

TEST(Screen, DropsWhatIsClearlyFarther) {
  for (const SimdKernels* simd : kernel_tables()) {
    for (const ScreenType type : kScreenTypes) {
      const std::int64_t dropped = expect_nothing_lost(*simd, type, kFamilies[0], 12);
      const std::int64_t pairs = 12 * 2 * simd->tile_rows * simd->tile_rows;
      EXPECT_GT(dropped, pairs / 16) << name_of(type) << " on " << name_of(simd->isa);
    }
  }
}

// Bytes are exact integers: with rows of whole numbers nothing but the rows that tie or win survives.
TEST(Screen, OfInt8IsExactOnBytes) {
  std::mt19937_64 random(5);
  constexpr std::int64_t kColumns = 50;
  for (const SimdKernels* simd : kernel_tables()) {
    const std::int64_t width = simd->tile_rows;
    std::vector<double> x(kColumns);
    std::vector<double> y(static_cast<std::size_t>(width * kColumns));
    for (int trial = 0; trial < 50; ++trial) {
      for (double& value : x) value = static_cast<double>(random() % 256);
      for (double& value : y) value = static_cast<double>(random() % 256);
      const Screen screen(ScreenType::int8, ScreenKind::distance, kColumns, 1, std::vector<double>(kColumns, 128.0));
      TileOfOneQuery tile(*simd, screen, x, y);
      const double limit = screen_key_of(ScreenKind::distance, x.data(), y.data(), kColumns);
      const std::vector<bool> kept = tile.survivors(screen.threshold(tile.query, limit, 0), 0);
      for (std::int64_t r = 0; r < width; ++r) {
        const double key = screen_key_of(ScreenKind::distance, x.data(), y.data() + r * kColumns, kColumns);
        EXPECT_TRUE(kept[r] || key > limit);
        EXPECT_FALSE(kept[r] && key > limit + 8) << key << " is beyond " << limit;  // 2 x (halves and rounding up)
      }
    }
  }
}

// Rows and queries at the ends of the integer range, as many columns as the bound covers: 32 bits must hold the sum.
TEST(Screen, OfInt8DoesNotOverflowAtItsWidest) {
  const std::int64_t d = Screen::largest_columns(ScreenType::int8);
  for (const SimdKernels* simd : kernel_tables()) {
    for (const double sign : {1.0, -1.0}) {
      for (const double away : {1.0, 1e6}) {
        std::vector<double> x(static_cast<std::size_t>(d), sign * 128 * away);
        std::vector<double> y(static_cast<std::size_t>(simd->tile_rows * d));
        for (std::int64_t i = 0; i < simd->tile_rows * d; ++i) y[i] = (i / d) % 2 == 0 ? -128.0 * away : 127.0 * away;
        const Screen screen(ScreenType::int8, ScreenKind::distance, d, 1, {});
        TileOfOneQuery tile(*simd, screen, x, y);
        for (std::int64_t r = 0; r < 2; ++r) {
          const double key = screen_key_of(ScreenKind::distance, x.data(), y.data() + r * d, d);
          for (const double typical : {0.0, 1e300}) {
            EXPECT_TRUE(tile.survivors(screen.threshold(tile.query, key, typical), 0)[r]) << sign << " " << away;
          }
        }
      }
    }
  }
}

TEST(Screen, UnknownLimitAndHugeQueryLetEverythingThrough) {
  alignas(4) std::byte out[16];
  const double ordinary[] = {1, 2};
  const double huge[] = {1e60, 0};
  for (const ScreenType type : kScreenTypes) {
    const Screen screen(type, ScreenKind::distance, 2, 1, {});
    const QueryTerms a = screen.query_terms(screen.pack(ordinary, Screen::Side::query, out, 0, 1));
    const QueryTerms b = screen.query_terms(screen.pack(huge, Screen::Side::query, out, 0, 1));
    EXPECT_TRUE(screen.threshold(a, std::numeric_limits<double>::infinity(), 1).open());
    if (type == ScreenType::int8) continue;  // clamped: what that costs is in rho
    EXPECT_FALSE(b.usable);
    EXPECT_TRUE(screen.threshold(b, 1, 1).open());
  }
}

}  // namespace
}  // namespace vicinal::cpu
