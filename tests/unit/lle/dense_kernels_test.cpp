// Numbers in five bytes and products with panels of them, on every instruction set that runs here.
#include "simd/dense_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/philox.hpp"
#include "isas.hpp"

namespace vicinal::cpu {
namespace {

std::vector<double> uniform(std::uint64_t stream, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = core::philox_uniform(4, stream, i) - 0.5;
  return values;
}

struct Shortened {
  std::vector<float> high;
  std::vector<std::uint8_t> low;

  [[nodiscard]] FiveBytes view() const { return {high.data(), low.data()}; }
};

Shortened shortened(const DenseKernels& kernels, const std::vector<double>& values) {
  const std::size_t room = values.size() + static_cast<std::size_t>(kFiveBytesMore);
  // What is read behind the last number must not be seen in a product.
  Shortened made{std::vector<float>(room, std::numeric_limits<float>::quiet_NaN()),
                 std::vector<std::uint8_t>(room, 255)};
  kernels.shorten(values.data(), std::ssize(values), made.high.data(), made.low.data());
  return made;
}

class DenseKernelsOf : public ::testing::TestWithParam<Isa> {};

// A product of the panel [1, 1] with 1 is the number itself.
double read(const DenseKernels& kernels, const Shortened& from, std::int64_t i) {
  std::vector<double> x(8, 0.0);
  const std::vector<double> one(8, -1.0);
  kernels.up({1, 1, from.view().from(i), 1, 8}, one.data(), x.data());
  return x[0];
}

TEST_P(DenseKernelsOf, ShortensToFiveBytes) {
  const DenseKernels& kernels = dense_kernels(GetParam());
  for (const std::int64_t count : {1, 3, 8, 203}) {
    std::vector<double> values = uniform(1, count);
    for (std::int64_t i = 0; i < count; ++i) values[i] = std::ldexp(values[i], static_cast<int>(i % 200 - 100));
    const Shortened made = shortened(kernels, values);
    for (std::int64_t i = 0; i < count; ++i) {
      const double error = std::abs(read(kernels, made, i) - values[i]);
      ASSERT_FALSE(!(error <= 0x1p-32 * std::abs(values[i]))) << count << ", " << i << ": " << values[i];
    }
  }
}

TEST_P(DenseKernelsOf, KeepsWholeNumbersAndRoundsTheRest) {
  const DenseKernels& kernels = dense_kernels(GetParam());
  const std::vector<double> values = {0.0,
                                      1.0,
                                      -1.0,
                                      4294967295.0,
                                      -4294967295.0,
                                      0x1p126,
                                      -0x1p-126,
                                      1 + 0x1p-32,    // halfway: up
                                      1 + 0x1.fp-33,  // down
                                      2 - 0x1p-33,    // up to the next power
                                      -(2 - 0x1p-33),
                                      0x1.8p-150,  // beyond float32's range
                                      0x1p-1074};
  const Shortened made = shortened(kernels, values);
  for (std::int64_t i = 0; i < 7; ++i) EXPECT_EQ(read(kernels, made, i), values[i]) << i;
  EXPECT_EQ(read(kernels, made, 7), 1 + 0x1p-31);
  EXPECT_EQ(read(kernels, made, 8), 1.0);
  EXPECT_EQ(read(kernels, made, 9), 2.0);
  EXPECT_EQ(read(kernels, made, 10), -2.0);
  for (const std::int64_t i : {11, 12}) EXPECT_FALSE(!(std::abs(read(kernels, made, i)) < 0x1p-148)) << i;
}

// Entries are what was shortened, to 2^-32; products of them are as exact as ever.
TEST_P(DenseKernelsOf, MultiplyPanels) {
  const DenseKernels& kernels = dense_kernels(GetParam());
  for (const std::int64_t m : {0, 1, 5, 63, 64, 65, 200}) {
    for (const std::int64_t k : {1, 3, 4, 9}) {
      for (const std::int64_t width : {8, 16}) {
        const std::int64_t step = m + 3;
        const std::vector<double> l = uniform(1, step * k);
        const Shortened panel = shortened(kernels, l);
        const std::vector<double> x = uniform(2, k * width);
        const std::vector<double> y = uniform(3, m * width);
        std::vector<double> down = y;
        std::vector<double> up = x;
        kernels.down({m, k, panel.view(), step, width}, x.data(), down.data());
        kernels.up({m, k, panel.view(), step, width}, y.data(), up.data());
        const auto allowed = [](std::int64_t terms) { return static_cast<double>(terms) * 0x1p-34; };
        for (std::int64_t w = 0; w < width; ++w) {
          for (std::int64_t r = 0; r < m; ++r) {
            double sum = y[r * width + w];
            for (std::int64_t c = 0; c < k; ++c) sum -= l[c * step + r] * x[c * width + w];
            ASSERT_FALSE(!(std::abs(down[r * width + w] - sum) <= allowed(k))) << m << " " << k << ", row " << r;
          }
          for (std::int64_t c = 0; c < k; ++c) {
            double sum = x[c * width + w];
            for (std::int64_t r = 0; r < m; ++r) sum -= l[c * step + r] * y[r * width + w];
            ASSERT_FALSE(!(std::abs(up[c * width + w] - sum) <= allowed(m))) << m << " " << k << ", column " << c;
          }
        }
      }
    }
  }
}

// A panel with the rows of its columns on top, whose diagonal and what is above it are not read.
TEST_P(DenseKernelsOf, MultiplyPanelsWithTheirOwnRows) {
  const DenseKernels& kernels = dense_kernels(GetParam());
  for (const std::int64_t k : {1, 3, 4, 5, 8, 9, 17, 70}) {
    for (const std::int64_t m : {k, k + 1, k + 63, k + 130}) {
      for (const std::int64_t width : {8, 16}) {
        const std::int64_t step = m + 1;
        std::vector<double> l = uniform(1, step * k);
        for (double& value : l) value /= 8;  // so that what is taken from each other does not grow
        for (std::int64_t c = 0; c < k; ++c) {
          for (std::int64_t r = 0; r <= c; ++r) l[c * step + r] = 1e30;
        }
        const Shortened panel = shortened(kernels, l);
        const std::vector<double> x = uniform(2, m * width);
        std::vector<double> down = x;
        std::vector<double> up = x;
        kernels.down_own({m, k, panel.view(), step, width}, down.data());
        kernels.up_own({m, k, panel.view(), step, width}, up.data());
        const double allowed = static_cast<double>(m) * 0x1p-33;
        std::vector<double> column(static_cast<std::size_t>(m));
        for (std::int64_t w = 0; w < width; ++w) {
          for (std::int64_t r = 0; r < m; ++r) column[r] = x[r * width + w];
          for (std::int64_t c = 0; c < k; ++c) {
            for (std::int64_t r = c + 1; r < m; ++r) column[r] -= l[c * step + r] * column[c];
          }
          for (std::int64_t r = 0; r < m; ++r) {
            ASSERT_FALSE(!(std::abs(down[r * width + w] - column[r]) <= allowed)) << m << " " << k << ", row " << r;
          }
          for (std::int64_t r = 0; r < m; ++r) column[r] = x[r * width + w];
          for (std::int64_t c = k - 1; c >= 0; --c) {
            for (std::int64_t r = c + 1; r < m; ++r) column[c] -= l[c * step + r] * column[r];
          }
          for (std::int64_t r = 0; r < m; ++r) {
            ASSERT_FALSE(!(std::abs(up[r * width + w] - column[r]) <= allowed)) << m << " " << k << ", row " << r;
          }
        }
      }
    }
  }
}

// Each entry on and below the diagonal i + shift = j is right. Entries above it may be written, rows beyond m are not.
TEST_P(DenseKernelsOf, UpdateWhatIsOnAndBelowADiagonal) {
  const DenseKernels& kernels = dense_kernels(GetParam());
  std::vector<double> room(static_cast<std::size_t>(kDenseRoom));
  for (const std::int64_t m : {1, 7, 24, 25, 50, 192}) {
    for (const std::int64_t n : {1, 3, 8, 12, 40, 192}) {
      for (const std::int64_t k :
           {std::int64_t{1}, std::int64_t{32}, kDenseDepth, kDenseDepth + 1, 2 * kDenseDepth + 30}) {
        for (const std::int64_t shift : {0, 5, 192}) {
          const std::int64_t step = m + 2;
          const std::vector<double> a = uniform(1, step * k);
          const std::vector<double> b = uniform(2, (n + 1) * k);
          const std::vector<double> scale = uniform(3, k);
          const std::vector<double> c = uniform(4, step * n);
          std::vector<double> found = c;
          kernels.update({.m = m,
                          .n = n,
                          .k = k,
                          .a = a.data(),
                          .a_step = step,
                          .b = b.data(),
                          .b_step = n + 1,
                          .scale = scale.data(),
                          .c = found.data(),
                          .c_step = step,
                          .shift = shift,
                          .room = room.data()});
          for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = std::max<std::int64_t>(0, j - shift); i < m; ++i) {
              double sum = c[j * step + i];
              for (std::int64_t q = 0; q < k; ++q) sum -= a[q * step + i] * scale[q] * b[q * (n + 1) + j];
              ASSERT_FALSE(!(std::abs(found[j * step + i] - sum) <= static_cast<double>(k + 2) * 1e-16))
                  << m << " " << n << " " << k << " " << shift << ": " << i << ", " << j;
            }
            for (std::int64_t i = m; i < step; ++i) ASSERT_EQ(found[j * step + i], c[j * step + i]);
          }
        }
      }
    }
  }
}

TEST_P(DenseKernelsOf, AddRunsOfRowsFromARowOn) {
  const DenseKernels& kernels = dense_kernels(GetParam());
  const std::vector<DenseRun> runs = {{0, 1, 2}, {1, 10, 4}, {10, 27, 20}, {27, 30, 38}};
  const std::vector<double> from = uniform(1, 30);
  for (const std::int64_t row : {0, 1, 5, 10, 26, 29}) {
    const std::vector<double> before = uniform(2, 42);
    std::vector<double> expected = before;
    std::vector<double> found = before;
    const DenseRun* first = runs.data();
    while (first->end <= row) ++first;
    for (const DenseRun& run : runs) {
      for (std::int64_t i = std::max(row, run.begin); i < run.end; ++i) expected[run.at + i - run.begin] += from[i];
    }
    kernels.add(first, runs.data() + runs.size(), row, from.data(), found.data());
    EXPECT_EQ(found, expected) << row;
  }
}

double half_at_least(double pivot) {
  return std::max(pivot, 0.5);
}

// L D L' is the block again, and rows below it are those of L.
TEST_P(DenseKernelsOf, EliminateABlockAndSolveForRowsBelow) {
  const DenseKernels& kernels = dense_kernels(GetParam());
  for (const std::int64_t width : {1, 2, 7, 8, 9, 20, 31, 32}) {
    for (const std::int64_t m : {0, 1, 8, 23, 24, 26, 41, 100}) {
      const std::int64_t step = width + m + 1;
      std::vector<double> given = uniform(1, step * width);
      for (std::int64_t c = 0; c < width; ++c) given[c * step + c] += c == 0 ? 0 : 16;  // the first pivot is replaced
      std::vector<double> l = given;
      std::vector<double> d(static_cast<std::size_t>(width));
      kernels.eliminate({width, l.data(), step, d.data(), half_at_least});
      kernels.solve({m, width, l.data(), step, d.data(), l.data() + width, step});
      EXPECT_EQ(d[0], 0.5);
      for (std::int64_t c = 0; c < width; ++c) {
        EXPECT_EQ(l[c * step + c], 1.0);
        for (std::int64_t r = c; r < width + m; ++r) {
          if (r == 0) continue;
          double sum = 0;
          for (std::int64_t q = 0; q <= c; ++q) sum += l[q * step + r] * d[q] * l[q * step + c];
          ASSERT_FALSE(!(std::abs(sum - given[c * step + r]) <= 1e-13)) << width << " " << m << ": " << r << ", " << c;
        }
        ASSERT_EQ(l[c * step + width + m], given[c * step + width + m]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, DenseKernelsOf, ::testing::ValuesIn(isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

}  // namespace
}  // namespace vicinal::cpu
