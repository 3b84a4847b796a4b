// TableView: what it refuses, and slices of every kind of table.
#include "vicinal/table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

namespace vicinal {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

template <class Call>
void expect_invalid(const Call& call) {
  try {
    call();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
  }
}

TEST(TableView, KnowsItsShapeAndType) {
  const std::vector<float> data(6);
  const TableView view(data.data(), 2, 3);
  EXPECT_EQ(view.rows(), 2);
  EXPECT_EQ(view.cols(), 3);
  EXPECT_EQ(view.row_stride(), 3);
  EXPECT_EQ(view.col_stride(), 1);
  EXPECT_EQ(view.dtype(), DType::float32);
  EXPECT_EQ(view.memory(), Memory::host);
  EXPECT_FALSE(view.is_block_source());
}

TEST(TableView, RefusesNegativeSizesNullPointersAndOverflow) {
  const double x = 0;
  const double* null = nullptr;
  expect_invalid([&] { TableView(&x, -1, 1); });
  expect_invalid([&] { TableView(&x, 1, -1); });
  expect_invalid([&] { TableView(null, 1, 1); });
  expect_invalid([&] { TableView(&x, kMost, 2); });
  expect_invalid([&] { TableView(&x, kMost / 8 + 1, 1); });
  expect_invalid([&] { TableView::blocks(DType::uint8, -1, 1, [](std::int64_t, std::int64_t, void*) {}); });
  expect_invalid([&] { TableView::blocks(DType::uint8, 1, 1, BlockSource()); });
}

TEST(TableView, AnEmptyOneNeedsNoData) {
  const double* null = nullptr;
  EXPECT_NO_THROW(TableView(null, 0, 5));
  EXPECT_NO_THROW(TableView(null, 5, 0));
}

TEST(TableView, SlicesKeepStridesAndMayBeNegative) {
  const std::vector<float> data = {0, 1, 2, 3, 4, 5};
  const TableView backwards(data.data() + 4, DType::float32, 3, 2, -2);
  const TableView last = backwards.slice(2, 3);
  EXPECT_EQ(last.rows(), 1);
  EXPECT_EQ(static_cast<const float*>(last.data())[0], 0);
  EXPECT_EQ(static_cast<const float*>(backwards.slice(1, 3).data())[0], 2);
  EXPECT_EQ(backwards.slice(3, 3).rows(), 0);
}

TEST(TableView, SlicesOutsideTheRowsAreRefused) {
  const std::vector<float> data(6);
  const TableView view(data.data(), 3, 2);
  expect_invalid([&] { std::ignore = view.slice(-1, 2); });
  expect_invalid([&] { std::ignore = view.slice(0, 4); });
  expect_invalid([&] { std::ignore = view.slice(2, 1); });
  expect_invalid([&] { std::ignore = view.slice(kMost, kMost); });
}

TEST(TableView, SlicesOfBlockSourcesAskForTheRightRows) {
  std::vector<std::pair<std::int64_t, std::int64_t>> calls;
  const TableView view = TableView::blocks(
      DType::float64, 100, 2, [&](std::int64_t begin, std::int64_t end, void*) { calls.emplace_back(begin, end); });
  const TableView part = view.slice(10, 50).slice(5, 20);
  EXPECT_TRUE(part.is_block_source());
  EXPECT_EQ(part.rows(), 15);
  part.source()(1, 3, nullptr);
  view.slice(0, 7).source()(2, 7, nullptr);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0], std::make_pair(std::int64_t{16}, std::int64_t{18}));
  EXPECT_EQ(calls[1], std::make_pair(std::int64_t{2}, std::int64_t{7}));
}

}  // namespace
}  // namespace vicinal
