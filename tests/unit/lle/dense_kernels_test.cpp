// Numbers in five bytes and products with panels of them, on every instruction set that runs here.
#include "simd/dense_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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
  Shortened made{std::vector<float>(values.size()), std::vector<std::uint8_t>(values.size())};
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

INSTANTIATE_TEST_SUITE_P(Everywhere, DenseKernelsOf, ::testing::ValuesIn(isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

}  // namespace
}  // namespace vicinal::cpu
