// Widening and copying rows: exact for every value, every type, every layout.
#include "core/table_access.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace vicinal::core {
namespace {

/// The value of binary16 bits by its definition.
double half_by_definition(std::uint16_t bits) {
  const double sign = bits >> 15 != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

void expect_value(double got, double wanted, int bits) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << bits;
  } else {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(wanted)) << bits;
  }
}

TEST(Widen, EveryFloat16IsExact) {
  std::vector<float16> all(65536);
  for (int i = 0; i < 65536; ++i) all[static_cast<std::size_t>(i)].bits = static_cast<std::uint16_t>(i);
  std::vector<double> wide(65536);
  widen_rows(TableView(all.data(), 256, 256), 0, 256, wide.data());
  for (int i = 0; i < 65536; ++i) {
    const double wanted = half_by_definition(static_cast<std::uint16_t>(i));
    expect_value(widen(all[static_cast<std::size_t>(i)]), wanted, i);
    expect_value(wide[static_cast<std::size_t>(i)], wanted, i);
  }
}

TEST(Widen, EveryBfloat16IsTheUpperHalfOfAFloat) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    expect_value(widen(bfloat16{static_cast<std::uint16_t>(i)}), std::bit_cast<float>(i << 16), static_cast<int>(i));
  }
}

/// Element (i, j) of the tables below: small integers, which every type holds.
double value_at(std::int64_t i, std::int64_t j) {
  return static_cast<double>((i * 31 + j * 7) % 200);
}

std::uint16_t half_bits_of(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return static_cast<std::uint16_t>((exponent + 14) << 10 | (static_cast<int>(mantissa * 2048) & 1023));
}

void store(DType dtype, double value, std::byte* at) {
  const auto put = [at](auto x) { std::memcpy(at, &x, sizeof x); };
  switch (dtype) {
    case DType::uint8:
      return put(static_cast<std::uint8_t>(value));
    case DType::float16:
      return put(half_bits_of(value));
    case DType::bfloat16:
      return put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16));
    case DType::float32:
      return put(static_cast<float>(value));
    case DType::float64:
      return put(value);
  }
}

struct Layout {
  std::int64_t row_stride;
  std::int64_t col_stride;
};

class TableAccess : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, TableAccess,
                         testing::Values(DType::uint8, DType::float16, DType::bfloat16, DType::float32,
                                         DType::float64));

constexpr std::int64_t kAccessedRows = 37;
constexpr std::int64_t kCols = 41;

void expect_rows(const TableView& view, std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<std::size_t>((end - begin) * kCols);
  std::vector<double> wide(count + 1, -1);
  widen_rows(view, begin, end, wide.data());
  const std::int64_t size = size_of(view.dtype());
  std::vector<std::byte> copy(count * static_cast<std::size_t>(size));
  copy_rows(view, begin, end, copy.data());
  std::byte wanted[8];
  for (std::size_t e = 0; e < count; ++e) {
    const std::int64_t i = begin + static_cast<std::int64_t>(e) / kCols;
    const std::int64_t j = static_cast<std::int64_t>(e) % kCols;
    ASSERT_EQ(wide[e], value_at(i, j)) << i << ' ' << j;
    store(view.dtype(), value_at(i, j), wanted);
    ASSERT_EQ(std::memcmp(copy.data() + static_cast<std::int64_t>(e) * size, wanted, static_cast<std::size_t>(size)),
              0);
  }
  EXPECT_EQ(wide[count], -1) << "written beyond the end";
}

TEST_P(TableAccess, ReadsEveryLayoutAtAnyAlignment) {
  const std::int64_t size = size_of(GetParam());
  // Contiguous, padded rows, column-major, both reversed, every second column.
  for (const Layout layout : {Layout{kCols, 1}, {kCols + 3, 1}, {1, kAccessedRows}, {-kCols, -1}, {2 * kCols, 2}}) {
    const std::int64_t span = (kAccessedRows + 1) * (kCols + 3) * 2;
    std::vector<std::byte> memory(static_cast<std::size_t>(span * size + 1));
    const bool reversed = layout.row_stride < 0;
    for (const std::int64_t shift : {0, 1}) {  // 1: nothing is aligned
      std::byte* base = memory.data() + shift + (reversed ? (kAccessedRows * kCols - 1) * size : 0);
      for (std::int64_t i = 0; i < kAccessedRows; ++i) {
        for (std::int64_t j = 0; j < kCols; ++j) {
          store(GetParam(), value_at(i, j), base + (i * layout.row_stride + j * layout.col_stride) * size);
        }
      }
      const TableView view(base, GetParam(), kAccessedRows, kCols, layout.row_stride, layout.col_stride);
      expect_rows(view, 0, kAccessedRows);
      expect_rows(view, 5, 6);
      expect_rows(view, 7, 7);
      expect_rows(view, 30, kAccessedRows);
    }
  }
}

TEST_P(TableAccess, ReadsABlockSourceWithOneCall) {
  int calls = 0;
  const std::int64_t size = size_of(GetParam());
  const TableView view =
      TableView::blocks(GetParam(), kAccessedRows, kCols, [&](std::int64_t begin, std::int64_t end, void* rows) {
        ++calls;
        for (std::int64_t i = begin; i < end; ++i) {
          for (std::int64_t j = 0; j < kCols; ++j) {
            store(GetParam(), value_at(i, j), static_cast<std::byte*>(rows) + ((i - begin) * kCols + j) * size);
          }
        }
      });
  expect_rows(view, 0, kAccessedRows);  // widened once, copied once
  EXPECT_EQ(calls, 2);
  expect_rows(view, 3, 4);
  EXPECT_FALSE(is_row_contiguous(view));
}

TEST(TableAccessDoor, ABroadcastRowIsReadAgainAndAgain) {
  const std::vector<float> row = {1, 2, 3};
  std::vector<double> wide(12);
  widen_rows(TableView(row.data(), DType::float32, 4, 3, 0), 0, 4, wide.data());
  EXPECT_EQ(wide, (std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST(TableAccessDoor, CudaMemoryIsRefused) {
  const float x = 0;
  const TableView view(&x, DType::float32, 1, 1, 1, 1, Memory::cuda);
  double out = 0;
  try {
    widen_rows(view, 0, 1, &out);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
  }
  EXPECT_FALSE(is_row_contiguous(view));
}

TEST(TableAccessDoor, KnowsWhichRowsAreContiguous) {
  const std::vector<float> data(12);
  const auto contiguous = [&](std::int64_t n, std::int64_t row_stride, std::int64_t col_stride) {
    return is_row_contiguous(TableView(data.data(), DType::float32, n, 3, row_stride, col_stride));
  };
  EXPECT_TRUE(contiguous(4, 3, 1));
  EXPECT_TRUE(contiguous(2, 6, 1));
  EXPECT_TRUE(contiguous(1, 0, 1));
  EXPECT_FALSE(contiguous(2, 0, 1));
  EXPECT_FALSE(contiguous(2, 1, 2));
}

}  // namespace
}  // namespace vicinal::core
