// The int8 screen of byte tables: for every pair and every limit a row within it is kept, and but for the odd one of
// two neighboring keys that share a sum, and for what float32 cannot tell apart, no other is.
#include "formulas/nearest/byte_screen.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "core/infinity.hpp"

namespace vicinal::core {
namespace {

ByteSums sums_of(const std::vector<std::uint8_t>& row) {
  ByteSums sums;
  for (const std::uint8_t v : row) {
    sums.sum += v - 128;
    sums.squares += (v - 128) * (v - 128);
  }
  return sums;
}

double byte_key_of(bool product, const std::vector<std::uint8_t>& x, const std::vector<std::uint8_t>& y) {
  double key = 0;
  for (std::size_t j = 0; j < x.size(); ++j) key += product ? -(x[j] * y[j]) : (x[j] - y[j]) * (x[j] - y[j]);
  return key;
}

std::int32_t byte_sum_of(bool product, const std::vector<std::uint8_t>& x, const std::vector<std::uint8_t>& y) {
  std::int32_t sum = byte_start(product, sums_of(y));
  for (std::size_t j = 0; j < x.size(); ++j) sum += (x[j] - 128) * (y[j] - 128);
  return sum;
}

std::vector<std::uint8_t> row(std::mt19937& random, std::size_t d, int kind) {
  std::vector<std::uint8_t> values(d);
  for (std::uint8_t& v : values) {
    v = static_cast<std::uint8_t>(kind == 0 ? 0 : kind == 1 ? 255 : kind == 2 ? 100 + random() % 4 : random() % 256);
  }
  return values;
}

TEST(ByteScreen, KeepsEveryRowWithinTheLimit) {
  std::mt19937 random(1);
  for (const bool product : {false, true}) {
    for (const std::size_t d : {1, 12, 31, 33, 784, 8187}) {
      const auto columns = static_cast<std::int64_t>(d);
      for (int pair = 0; pair < 64; ++pair) {
        const auto x = row(random, d, pair % 4);
        const auto y = row(random, d, pair / 4 % 4);
        const double key = byte_key_of(product, x, y);
        const double own = byte_own(product, sums_of(x), columns);
        const auto sum = static_cast<double>(byte_sum_of(product, x, y));
        EXPECT_EQ(sum, product ? own - key : std::floor((own - key) / 2));
        for (const double limit : {key, key + 0.75, key + 1, key + 1000, key + std::fabs(key) + 7, kInfinity}) {
          EXPECT_FALSE(sum < byte_threshold(product, own, limit)) << key << " " << limit;
        }
        // float32 has 24 bits.
        const double coarse = std::max(1.0, std::fabs(sum) * 0x1p-23);
        EXPECT_TRUE(sum < byte_threshold(product, own, key - 2 - 4 * coarse)) << key;
        EXPECT_GT(sum, static_cast<double>(kNoByteRow));
      }
    }
  }
}

TEST(ByteScreen, ServesBytesAlone) {
  const auto serves = [](DType table, DType queries, Metric metric, std::int64_t d, int capability) {
    return byte_screen_serves(table, queries, metric, d, capability);
  };
  EXPECT_TRUE(serves(DType::uint8, DType::uint8, Metric::euclidean, 128, 90));
  EXPECT_TRUE(serves(DType::uint8, DType::uint8, Metric::inner_product, 784, 80));
  EXPECT_FALSE(serves(DType::uint8, DType::float32, Metric::euclidean, 128, 90));
  EXPECT_FALSE(serves(DType::float32, DType::uint8, Metric::euclidean, 128, 90));
  EXPECT_FALSE(serves(DType::uint8, DType::uint8, Metric::cosine, 128, 90));
  EXPECT_FALSE(serves(DType::uint8, DType::uint8, Metric::euclidean, 11, 90));
  EXPECT_FALSE(serves(DType::uint8, DType::uint8, Metric::euclidean, 128, 75));
}

}  // namespace
}  // namespace vicinal::core
