// What the planner expects of a search within a radius: a row that the screens leave to a query is ranked, which takes
// many times as long as to drop it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kRankedRows = 3000;
constexpr std::int64_t kRankedColumns = 40;

std::vector<double> gaussian_rows() {
  std::mt19937_64 random(12);
  std::normal_distribution<double> normal;
  std::vector<double> rows(static_cast<std::size_t>(kRankedRows * kRankedColumns));
  for (double& value : rows) value = normal(random);
  return rows;
}

double expected(const TableView& table, RadiusOptions options, double radius) {
  options.radius = radius;
  return plan_radius(Context::cpu({.threads = 2}), table, nullptr, options).expected_seconds;
}

TEST(RadiusPlan, RowsWithinTheRadiusAreRanked) {
  const std::vector<double> rows = gaussian_rows();
  const TableView table(rows.data(), kRankedRows, kRankedColumns);
  const RadiusOptions options{.method = Method::fused};
  const double none = expected(table, options, 0.01);
  const double all = expected(table, options, 1000);
  EXPECT_GT(all, 4 * none);
  // Squared distances are twice a sum of 40 squares: half of them are below 78.7.
  const double half = (expected(table, options, std::sqrt(78.7)) - none) / (all - none);
  EXPECT_TRUE(half > 0.35 && half < 0.75) << half;
  // A row that a filter leaves out is not ranked.
  const std::vector<std::uint64_t> every_fourth((kRankedRows + 63) / 64, 0x1111111111111111);
  RadiusOptions filtered = options;
  filtered.filter = every_fourth;
  EXPECT_NEAR((expected(table, filtered, 1000) - none) / (all - none), 0.25, 0.1);
}

TEST(RadiusPlan, BadRowsAreNamedByTheSearch) {
  std::vector<double> rows = gaussian_rows();
  std::fill_n(rows.begin() + 2990 * kRankedColumns, kRankedColumns, std::numeric_limits<double>::quiet_NaN());
  const TableView table(rows.data(), kRankedRows, kRankedColumns);
  try {
    static_cast<void>(radius(Context::cpu({.threads = 2}), table, {.radius = 1, .method = Method::fused}));
    FAIL() << "NaN was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("2990"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace vicinal
