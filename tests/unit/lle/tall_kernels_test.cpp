// The inner loops of tall matrices, on every instruction set that runs here, against plain sums.
#include "simd/tall_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/philox.hpp"
#include "isas.hpp"

namespace vicinal::cpu {
namespace {

std::vector<double> drawn(std::uint64_t stream, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = core::philox_uniform(1, stream, i) - 0.5;
  return values;
}

// Sums of `terms` products, each at most 1 in magnitude, rounded once or twice a term.
double allowed(std::int64_t terms) {
  return 4 * static_cast<double>(terms + 2) * static_cast<double>(terms + 2) * 0x1p-53;
}

class TallKernelsOf : public ::testing::TestWithParam<Isa> {};

TEST_P(TallKernelsOf, SumsOverRows) {
  const TallKernels& kernels = tall_kernels(GetParam());
  for (const std::int64_t n : {0, 1, 255, 256, 700}) {
    for (const std::int64_t wide_a : {1, 3, 8, 17}) {
      for (const std::int64_t wide_b : {1, 7, 8, 12}) {
        const std::vector<double> a = drawn(1, n * wide_a);
        const std::vector<double> b = drawn(2, n * wide_b);
        std::vector<double> sums(static_cast<std::size_t>(wide_a * wide_b), 0.25);
        kernels.inner(n, a.data(), wide_a, b.data(), wide_b, sums.data());
        for (std::int64_t r = 0; r < wide_a; ++r) {
          for (std::int64_t c = 0; c < wide_b; ++c) {
            long double sum = 0.25L;
            for (std::int64_t i = 0; i < n; ++i) sum += static_cast<long double>(a[i * wide_a + r]) * b[i * wide_b + c];
            const double error = std::abs(sums[r * wide_b + c] - static_cast<double>(sum));
            ASSERT_FALSE(!(error <= allowed(n)))
                << n << " rows, " << wide_a << " by " << wide_b << ", " << r << " " << c;
          }
        }
      }
    }
  }
}

TEST_P(TallKernelsOf, MultipliesAndSubtracts) {
  const TallKernels& kernels = tall_kernels(GetParam());
  for (const std::int64_t n : {0, 1, 2, 5, 64}) {
    for (const std::int64_t wide_x : {1, 6, 8, 16}) {
      for (const std::int64_t wide_y : {1, 4, 8, 13}) {
        const std::vector<double> x = drawn(1, n * wide_x);
        const std::vector<double> c = drawn(2, wide_x * wide_y);
        const std::vector<double> before = drawn(3, n * wide_y);
        std::vector<double> product(static_cast<std::size_t>(n * wide_y), NAN);
        std::vector<double> rest = before;
        kernels.product(n, x.data(), wide_x, c.data(), product.data(), wide_y);
        kernels.subtract(n, x.data(), wide_x, c.data(), rest.data(), wide_y);
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t j = 0; j < wide_y; ++j) {
            long double sum = 0;
            for (std::int64_t r = 0; r < wide_x; ++r) {
              sum += static_cast<long double>(x[i * wide_x + r]) * c[r * wide_y + j];
            }
            const auto at = static_cast<std::size_t>(i * wide_y + j);
            ASSERT_FALSE(!(std::abs(product[at] - static_cast<double>(sum)) <= allowed(wide_x))) << i << " " << j;
            const double left = static_cast<double>(before[at] - sum);
            ASSERT_FALSE(!(std::abs(rest[at] - left) <= allowed(wide_x))) << i << " " << j;
          }
        }
      }
    }
  }
}

TEST_P(TallKernelsOf, CombinesRows) {
  const TallKernels& kernels = tall_kernels(GetParam());
  for (const std::int64_t wide : {1, 5, 8, 19}) {
    const std::vector<double> x = drawn(1, 40 * wide);
    for (const std::int64_t count : {0, 1, 13}) {
      const std::vector<double> values = drawn(2, count);
      std::vector<const double*> rows;
      for (std::int64_t j = 0; j < count; ++j) rows.push_back(x.data() + (j * 7 % 40) * wide);
      std::vector<double> out(static_cast<std::size_t>(wide), NAN);
      kernels.combine(count, values.data(), rows.data(), wide, out.data());
      for (std::int64_t c = 0; c < wide; ++c) {
        long double sum = 0;
        for (std::int64_t j = 0; j < count; ++j) sum += static_cast<long double>(values[j]) * rows[j][c];
        ASSERT_FALSE(!(std::abs(out[c] - static_cast<double>(sum)) <= allowed(count))) << wide << " " << count;
      }
    }
  }
}

// A reflection keeps R'R + S'S, of a triangle R and a strip S; in the end S is gone. Strips of zeros and columns far
// apart in size are reflected, too.
TEST_P(TallKernelsOf, ReflectsAStripIntoATriangle) {
  const TallKernels& kernels = tall_kernels(GetParam());
  for (const std::int64_t q : {1, 2, 8, 13}) {
    for (const double size : {0.0, 1.0, 0x1p-300, 0x1p300}) {
      std::vector<double> strip = drawn(4, q * kFoldedRows);
      std::vector<double> r(static_cast<std::size_t>(q * q), 0);
      for (std::int64_t i = 0; i < q; ++i) {
        for (std::int64_t j = i; j < q; ++j)
          r[i * q + j] = core::philox_uniform(2, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)) - 0.5;
      }
      std::vector<double> sizes(static_cast<std::size_t>(q), size);
      for (std::int64_t j = 0; j < q; j += 2) sizes[j] = size == 0 ? 0 : 1;
      for (std::int64_t j = 0; j < q; ++j) {
        for (std::int64_t i = 0; i < kFoldedRows; ++i) strip[j * kFoldedRows + i] *= sizes[j];
      }
      const auto gram = [&](const std::vector<double>& columns, std::int64_t a, std::int64_t b) {
        long double sum = 0;
        for (std::int64_t i = 0; i <= std::min(a, b); ++i) sum += static_cast<long double>(r[i * q + a]) * r[i * q + b];
        for (std::int64_t i = 0; i < kFoldedRows && !columns.empty(); ++i) {
          sum += static_cast<long double>(columns[a * kFoldedRows + i]) * columns[b * kFoldedRows + i];
        }
        return sum;
      };
      std::vector<long double> expected;
      for (std::int64_t a = 0; a < q; ++a) {
        for (std::int64_t b = 0; b < q; ++b) expected.push_back(gram(strip, a, b));
      }
      for (std::int64_t j = 0; j < q; ++j) kernels.reflect(r.data(), strip.data(), q, j);
      for (std::int64_t a = 0; a < q; ++a) {
        for (std::int64_t b = 0; b < q; ++b) {
          const long double scale = std::sqrt(expected[a * q + a]) * std::sqrt(expected[b * q + b]);
          const long double error = std::abs(gram({}, a, b) - expected[a * q + b]);
          // Each of q reflections of 65 entries.
          ASSERT_FALSE(!(error <= static_cast<long double>(q) * 65 * 16 * 0x1p-53L * scale))
              << q << " " << size << " " << a << " " << b;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, TallKernelsOf, ::testing::ValuesIn(isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

}  // namespace
}  // namespace vicinal::cpu
