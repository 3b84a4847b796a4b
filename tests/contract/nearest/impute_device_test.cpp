// Missing values filled on a device, compared with the CPU, which impute_test.cpp compares with the reference: shapes
// that need several batches, parts and launches, and what a device refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "device_check.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

class ImputerOnDevice : public DeviceTest {};

struct GapShape {
  std::int64_t rows;
  std::int64_t cols;
  double missing;
  std::int64_t k;
};

/// Values by value(draw, row, column), of which a share is missing; the first row lacks none.
template <class Value>
std::vector<double> table_with_gaps(const GapShape& shape, const Value& value) {
  std::uint64_t state = 7;
  const auto next = [&state] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 40) * 0x1p-24;
  };
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (std::int64_t j = 0; j < shape.cols; ++j) {
      const double draw = next();
      const bool lacks = next() < shape.missing && i > 0;
      values.push_back(lacks ? std::numeric_limits<double>::quiet_NaN() : value(draw, i, j));
    }
  }
  return values;
}

std::vector<double> any_values(const GapShape& shape) {
  return table_with_gaps(shape, [](double draw, std::int64_t, std::int64_t j) {
    return (draw - 0.5) * static_cast<double>(1 + j % 7) * (draw < 0.01 ? 1e200 : 1.0);
  });
}

void expect_bits_of(const Context& device, const Context& host, const std::vector<double>& values,
                    const GapShape& shape) {
  const TableView view(values.data(), shape.rows, shape.cols);
  const Imputer made = Imputer::fit(host, view, {.k = shape.k});
  const Table wanted = made.apply(host, view);
  const Table found = made.apply(device, view);
  const auto* const a = static_cast<const double*>(found.view.data());
  const auto* const b = static_cast<const double*>(wanted.view.data());
  std::int64_t others = 0;
  for (std::int64_t at = 0; at < shape.rows * shape.cols; ++at) {
    if (std::memcmp(a + at, b + at, sizeof(double)) == 0) continue;
    if (others++ == 0) {
      ADD_FAILURE() << shape.rows << " x " << shape.cols << ", k = " << shape.k << ": row " << at / shape.cols
                    << ", column " << at % shape.cols << " is " << a[at] << ", not " << b[at];
    }
  }
  EXPECT_EQ(others, 0);
}

TEST_F(ImputerOnDevice, HasTheBitsOfTheProcessor) {
  for (const GapShape shape : {GapShape{700, 20, 0.1, 5}, GapShape{513, 3, 0.5, 4}, GapShape{300, 65, 0.5, 1},
                               GapShape{600, 8, 0.3, 600}, GapShape{400, 1, 0.4, 3}, GapShape{90, 200, 0.9, 7}}) {
    expect_bits_of(cuda(), cpu(), any_values(shape), shape);
  }
}

TEST_F(ImputerOnDevice, HasTheBitsOfTheProcessorForLargeTables) {
  if (is_fake()) GTEST_SKIP() << "the fake device sorts all keys";
  for (const GapShape shape : {GapShape{30'000, 20, 0.1, 5}, GapShape{12'000, 9, 0.4, 300},
                               GapShape{3'000, 300, 0.5, 5}, GapShape{200'000, 3, 0.001, 9}}) {
    expect_bits_of(cuda(), cpu(), any_values(shape), shape);
  }
}

TEST_F(ImputerOnDevice, BreaksTiesByIdAndKeepsDonorsThatComeNearer) {
  const std::int64_t rows = is_fake() ? 800 : 9'000;
  for (const std::int64_t k : {1, 5, 64}) {
    const GapShape shape{rows, 6, 0.2, k};
    expect_bits_of(cuda(), cpu(),
                   table_with_gaps(shape, [](double draw, std::int64_t, std::int64_t) { return std::floor(draw * 3); }),
                   shape);
    // Each row is nearer to the last ones than those before it: every donor enters the lists.
    expect_bits_of(
        cuda(), cpu(),
        table_with_gaps(shape, [rows](double draw, std::int64_t i,
                                      std::int64_t) { return static_cast<double>((rows - i) * (rows - i)) + draw; }),
        shape);
  }
}

TEST_F(ImputerOnDevice, LeavesOutTextsAndFillsRowsWithNothingInCommon) {
  const GapShape shape{500, 5, 0.3, 3};
  auto values = std::make_shared<std::vector<double>>(any_values(shape));
  for (std::int64_t i = 0; i < shape.rows; ++i) (*values)[static_cast<std::size_t>(i * shape.cols + 2)] = i % 2;
  Table table;
  table.view = TableView(values->data(), shape.rows, shape.cols);
  table.storage = values;
  table.categories.assign(5, {});
  table.categories[2] = {"a", "b"};
  std::vector<double> nothing(5, std::numeric_limits<double>::quiet_NaN());
  nothing[2] = 1;
  Table one = table;
  one.view = TableView(nothing.data(), 1, 5);
  const Imputer made = Imputer::fit(cpu(), table, {.k = shape.k});
  for (const Table& asked : {table, one}) {
    const Table wanted = made.apply(cpu(), asked);
    const Table found = made.apply(cuda(), asked);
    const auto bytes = static_cast<std::size_t>(asked.view.rows() * shape.cols) * sizeof(double);
    EXPECT_EQ(std::memcmp(found.view.data(), wanted.view.data(), bytes), 0);
  }
}

TEST_F(ImputerOnDevice, StaysWithinItsMemory) {
  const GapShape shape{20'000, 20, 0.1, 5};
  if (!is_fake()) expect_bits_of(small(2), cpu(), any_values(shape), shape);  // donors in parts
  const GapShape wide{2'000, 300, 0.3, 3};
  if (!is_fake()) expect_bits_of(small(4), cpu(), any_values(wide), wide);
  const std::vector<double> values = any_values(shape);
  const TableView view(values.data(), shape.rows, shape.cols);
  const Imputer made = Imputer::fit(cpu(), view);
  const Context tiny = Context::cuda({.device_memory_limit = 20'000});
  refused([&] { (void)made.apply(tiny, view); }, ErrorCode::over_memory, "20000");
  refused([&] { (void)plan_impute(tiny, view, view); }, ErrorCode::over_memory, "20000");
  const Plan plan = plan_impute(small(64), view, view);
  EXPECT_EQ(plan.device, "cuda:0");
  EXPECT_GT(plan.device_memory, 0U);
  EXPECT_LE(plan.device_memory, 64 * kMegabyte);
  EXPECT_GE(plan.memory, 2 * sizeof(double) * static_cast<std::uint64_t>(shape.rows * shape.cols));
  EXPECT_EQ(plan_impute(cuda(), view, view, {.filling = Filling::mean}).device, "cpu");
}

TEST_F(ImputerOnDevice, StopsAndReports) {
  const GapShape shape{3'000, 4, 0.2, 5};
  const std::vector<double> values = any_values(shape);
  const TableView view(values.data(), shape.rows, shape.cols);
  const Imputer made = Imputer::fit(cpu(), view);
  const CancelToken stopped;
  stopped.cancel();
  refused([&] { (void)made.apply(small(64, stopped), view); }, ErrorCode::cancelled, "");
  const CancelToken token;
  double last = 0;
  const Context ctx = small(64, token, [&](std::string_view stage, double fraction) {
    EXPECT_EQ(stage, "impute");
    EXPECT_GE(fraction, last);
    EXPECT_LE(fraction, 1);
    last = fraction;
    token.cancel();
  });
  refused([&] { (void)made.apply(ctx, view); }, ErrorCode::cancelled, "");
  EXPECT_GT(last, 0);
}

}  // namespace
}  // namespace vicinal::contract
