// The inner loops of every instruction set: keys equal core/distance.hpp bit for bit at every width (tails included),
// and the screen never drops a row that its own key admits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/distance.hpp"
#include "cpu/screen.hpp"
#include "cpu/simd/kernels.hpp"

namespace vicinal::cpu {
namespace {

std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      CpuOptions options;
      options.isa = isa;
      options.threads = 1;
      static_cast<void>(Context::cpu(options));
      found.push_back(isa);
    } catch (const Error&) {
      std::printf("1 instruction set skipped: this machine lacks %s\n", std::string(name_of(isa)).c_str());
    }
  }
  return found;
}

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

TEST(Simd, keys_equal_the_scalar_ones_at_every_width) {
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

// For every pair, with the pair's own key as the limit, the pair must survive: it is the tightest threshold under which
// the row may still be an answer. Returns how often the row that was farther than twice the reach was dropped, to see
// that the screen does drop something.
void expect_nothing_lost(const SimdKernels& simd, const Family& family) {
  std::mt19937_64 random(11);
  const std::int64_t d = family.d;
  const std::int64_t width = simd.tile_rows;
  std::vector<double> centre(static_cast<std::size_t>(d), 0.0);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<double> x(static_cast<std::size_t>(d));
    std::vector<double> y(static_cast<std::size_t>(width * d));
    family.fill(random, d, true, x.data());
    for (std::int64_t r = 0; r < width; ++r) family.fill(random, d, false, y.data() + r * d);
    if (family.kind == ScreenKind::distance && trial % 2 == 1) centre.assign(y.begin(), y.begin() + d);
    double largest = 0;
    for (std::int64_t i = 0; i < width * d; ++i) largest = std::max(largest, std::fabs(y[i] - centre[i % d]));
    const Screen screen(family.kind, d, std::ldexp(1.0, -std::clamp(std::ilogb(largest) + 1, -1000, 1000)));

    std::vector<float> packed(static_cast<std::size_t>(width * d));
    std::vector<float> start(width), rho(width), kappa(width);
    for (std::int64_t r = 0; r < width; ++r) {
      const RowTerms terms =
          screen.row_terms(round_row(y.data() + r * d, centre.data(), screen.scale(), d, packed.data() + r, width));
      start[r] = terms.start;
      rho[r] = terms.rho;
      kappa[r] = terms.kappa;
    }
    std::vector<float> queries(static_cast<std::size_t>(simd.tile_queries * d), 0.0F);
    const QueryTerms query =
        screen.query_terms(round_row(x.data(), centre.data(), screen.scale(), d, queries.data(), simd.tile_queries));
    for (std::int64_t r = 0; r < width; ++r) {
      const double key = family.kind == ScreenKind::distance ? core::euclidean_key(x.data(), y.data() + r * d, d)
                                                             : core::inner_product_key(x.data(), y.data() + r * d, d);
      for (const double typical : {0.0, 1e300}) {  // form F, form T
        const Threshold threshold = screen.threshold(query, key, typical);
        std::vector<float> a(simd.tile_queries, threshold.a), b(simd.tile_queries, threshold.b),
            t(simd.tile_queries, threshold.t);
        std::vector<Survivor> survivors(static_cast<std::size_t>(simd.tile_queries * width));
        std::vector<std::int32_t> counts(simd.tile_queries, 0);
        ScreenTile tile{};
        tile.queries = queries.data();
        tile.rows = packed.data();
        tile.start = start.data();
        tile.rho = rho.data();
        tile.kappa = kappa.data();
        tile.a = a.data();
        tile.b = b.data();
        tile.threshold = t.data();
        tile.d = d;
        tile.valid_queries = 1;
        tile.valid_rows = static_cast<std::int32_t>(width);
        tile.survivors = survivors.data();
        tile.capacity = width;
        tile.counts = counts.data();
        simd.screen_tile(tile);
        bool kept = false;
        for (std::int32_t s = 0; s < counts[0]; ++s) kept = kept || survivors[s].row == r;
        EXPECT_TRUE(kept) << family.name << ", " << name_of(simd.isa) << ", trial " << trial << ", row " << r
                          << ", key " << key << ", form " << (typical > 0 ? "T" : "F");
      }
    }
  }
}

TEST(Screen, never_drops_a_row_that_its_key_admits) {
  for (const Isa isa : isas()) {
    for (const Family& family : kFamilies) expect_nothing_lost(simd_kernels(isa), family);
  }
}

TEST(Screen, drops_what_is_clearly_farther) {
  // Gaussian rows, the limit half the key: the screen is there to drop these.
  std::mt19937_64 random(3);
  constexpr std::int64_t kColumns = 64;
  const Screen screen(ScreenKind::distance, kColumns, 0.125);
  std::vector<double> x(kColumns), y(kColumns);
  std::vector<float> xf(kColumns), yf(kColumns);
  for (int trial = 0; trial < 100; ++trial) {
    for (double& value : x) value = normal(random);
    for (double& value : y) value = normal(random);
    const QueryTerms query = screen.query_terms(round_row(x.data(), nullptr, 0.125, kColumns, xf.data(), 1));
    const RowTerms row = screen.row_terms(round_row(y.data(), nullptr, 0.125, kColumns, yf.data(), 1));
    const Threshold threshold = screen.threshold(query, core::euclidean_key(x.data(), y.data(), kColumns) / 2, 1);
    double score = row.start;
    for (std::int64_t j = 0; j < kColumns; ++j) score += static_cast<double>(xf[j]) * static_cast<double>(yf[j]);
    score += static_cast<double>(threshold.a) * row.rho + static_cast<double>(threshold.b) * row.kappa;
    EXPECT_LT(score, threshold.t);
  }
}

TEST(Screen, unknown_limit_and_huge_query_let_everything_through) {
  const Screen screen(ScreenKind::distance, 2, 1);
  float out[2];
  const double ordinary[] = {1, 2};
  const double huge[] = {1e60, 0};
  const QueryTerms a = screen.query_terms(round_row(ordinary, nullptr, 1, 2, out, 1));
  const QueryTerms b = screen.query_terms(round_row(huge, nullptr, 1, 2, out, 1));
  EXPECT_EQ(screen.threshold(a, std::numeric_limits<double>::infinity(), 1).t, -std::numeric_limits<float>::infinity());
  EXPECT_FALSE(b.usable);
  EXPECT_EQ(screen.threshold(b, 1, 1).t, -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace vicinal::cpu
