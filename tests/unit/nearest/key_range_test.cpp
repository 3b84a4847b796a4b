// Sums of the int8 screen bound keys from both sides (cpu/nearest/screen.hpp), whatever rounding does to rows and sums.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/infinity.hpp"
#include "core/philox.hpp"
#include "cpu/nearest/screen.hpp"

namespace vicinal::cpu {
namespace {

double drawn_within_one(std::uint64_t stream, std::int64_t at) {
  return 2 * core::philox_uniform(5, stream, static_cast<std::uint64_t>(at)) - 1;
}

/// What a tile adds to the sum of a row: at least a rho + b |y~|.
struct Added {
  double a = 0;
  double b = 0;
};

struct Ranged {
  KeyRange range;
  double key = 0;
};

Ranged range_of(const Screen& screen, const std::vector<double>& x, const std::vector<double>& y, Added added) {
  const auto columns = static_cast<std::size_t>(screen.columns());
  std::vector<std::byte> row_bytes(columns + 3);
  std::vector<std::byte> query_bytes(columns + 3);
  const RowTerms terms = screen.row_terms(screen.pack(y.data(), Screen::Side::row, row_bytes.data(), 0, 1));
  const QueryTerms query = screen.query_terms(screen.pack(x.data(), Screen::Side::query, query_bytes.data(), 0, 1));
  std::int64_t sum = terms.base;
  Ranged found;
  for (std::size_t j = 0; j < columns; ++j) {
    sum += std::to_integer<int>(query_bytes[j]) * static_cast<std::int8_t>(std::to_integer<int>(row_bytes[j]));
    found.key += (x[j] - y[j]) * (x[j] - y[j]);
  }
  if (added.a != 0 || added.b != 0) {  // as a kernel does it
    const float more = round_up(added.a * (1 + 0x1p-20)) * terms.rho + round_up(added.b * (1 + 0x1p-20)) * terms.kappa;
    sum += static_cast<std::int64_t>(more) + 1;
  }
  const double least_added = added.a * static_cast<double>(terms.rho) + added.b * static_cast<double>(terms.kappa);
  found.range = screen.key_range(query, static_cast<float>(sum), terms.rho, least_added);
  return found;
}

void expect_in_range(const Ranged& found, std::int64_t pair) {
  EXPECT_LE(found.range.least, found.key) << pair;
  EXPECT_GE(found.range.most, found.key) << pair;
}

TEST(KeyRange, HoldsTheKeysOfRoundedAndOfClampedRows) {
  for (const std::int64_t columns : {1, 2, 8, 64}) {
    for (const double scale : {1.0, 0.37, 8.0}) {
      const Screen screen(ScreenType::int8, ScreenKind::distance, columns, scale, {});
      for (std::int64_t pair = 0; pair < 600; ++pair) {
        const double wide = pair % 3 == 0 ? 200 : pair % 3 == 1 ? 3 : 100;
        std::vector<double> x;
        std::vector<double> y;
        for (std::int64_t j = 0; j < columns; ++j) {
          x.push_back(wide / scale * drawn_within_one(1, pair * columns + j));
          y.push_back(pair % 2 == 0 ? x.back() + drawn_within_one(2, pair * columns + j) / scale
                                    : wide / scale * drawn_within_one(3, pair * columns + j));
        }
        for (const Added added : {Added{}, Added{60, 0}, Added{3, 5}}) {
          expect_in_range(range_of(screen, x, y, added), pair);
          expect_in_range(range_of(screen, y, x, added), pair);
        }
      }
    }
  }
  const Screen screen(ScreenType::int8, ScreenKind::distance, 1, 1, {});
  expect_in_range(range_of(screen, {0}, {200}, {}), 0);  // as far as two roundings allow
  expect_in_range(range_of(screen, {200}, {0}, {}), 0);
}

TEST(KeyRange, IsCloseForWholeNumbers) {
  constexpr std::int64_t kColumns = 8192;  // float32 rounds their sums
  const Screen screen(ScreenType::int8, ScreenKind::distance, kColumns, 1, {});
  for (std::int64_t pair = 0; pair < 200; ++pair) {
    std::vector<double> x;
    std::vector<double> y;
    for (std::int64_t j = 0; j < kColumns; ++j) {
      x.push_back(pair % 2 == 0 ? 127 : std::floor(127 * drawn_within_one(4, pair * kColumns + j)));
      y.push_back(x.back() - (j < 3 * pair ? 1 : 0));
    }
    for (const Added added : {Added{}, Added{60, 0}}) {
      const Ranged found = range_of(screen, x, y, added);
      expect_in_range(found, pair);
      EXPECT_LE(found.range.most, found.key + 200);
      EXPECT_GE(found.range.least, found.key - 200);
    }
  }
}

TEST(KeyRange, SaysNothingOfRowsThatAlwaysSurvive) {
  const Screen screen(ScreenType::int8, ScreenKind::distance, 4, 1, {});
  QueryTerms query{100, 100, 0.5, 1, true};
  const auto is_open = [&](float score, float rho) {
    const KeyRange range = screen.key_range(query, score, rho, 0);
    return range.least == 0 && range.most == kInfinity;
  };
  EXPECT_FALSE(is_open(-50, 1));
  EXPECT_TRUE(is_open(-50, 0));
  EXPECT_TRUE(is_open(0x1p29F, 1)) << "what is added may have been more";
  query.usable = false;
  EXPECT_TRUE(is_open(-50, 1));
}

TEST(KeyRange, IsToldByScreensOfAllColumns) {
  EXPECT_TRUE(Screen(ScreenType::int8, ScreenKind::distance, 4, 1, {}).tells_keys());
  EXPECT_FALSE(Screen(ScreenType::int8, ScreenKind::product, 4, 1, {}).tells_keys());
  EXPECT_FALSE(Screen(ScreenType::float32, ScreenKind::distance, 4, 1, {}).tells_keys());
}

}  // namespace
}  // namespace vicinal::cpu
