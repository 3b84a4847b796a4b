// Imputer and complete_rows against the reference (contract clause 24): the same bits in every context.

#include "reference/impute.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contexts.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Rows of which a share of the values is missing; `grid` values make ties, 0 numbers of any size.
struct Holes {
  std::int64_t rows;
  std::int64_t cols;
  double missing;
  std::uint64_t grid;
  std::int64_t k;
};

std::vector<double> rows_with(const Holes& holes, std::uint64_t seed) {
  std::uint64_t state = seed;
  const auto next = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return state >> 33;
  };
  std::vector<double> values(static_cast<std::size_t>(holes.rows * holes.cols));
  for (double& value : values) {
    const std::uint64_t draw = next();
    value = holes.grid > 0 ? static_cast<double>(draw % holes.grid) : static_cast<double>(draw % 99'991) / 7 - 5000;
    if (holes.grid == 0 && draw % 11 == 0) value *= 1e150;
    if (holes.grid == 0 && draw % 13 == 0) value *= 1e-160;
    if (static_cast<double>(next() % 1000) < 1000 * holes.missing) value = kMissing;
  }
  for (std::int64_t j = 0; j < holes.cols; ++j) values[static_cast<std::size_t>(j)] = static_cast<double>(j);
  return values;
}

std::vector<double> numbers_of(const Table& table) {
  const auto* const data = static_cast<const double*>(table.view.data());
  return {data, data + table.view.rows() * table.view.cols()};
}

/// The bits, NaN included.
::testing::AssertionResult equal_bits(const std::vector<double>& found, const std::vector<double>& wanted) {
  if (found.size() != wanted.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::memcmp(&found[i], &wanted[i], sizeof(double)) == 0) continue;
    if (std::isnan(found[i]) && std::isnan(wanted[i])) continue;
    return ::testing::AssertionFailure() << "value " << i << " is " << found[i] << ", not " << wanted[i];
  }
  return ::testing::AssertionSuccess();
}

class ImputerOf : public ::testing::TestWithParam<Holes> {};

TEST_P(ImputerOf, FillsAsTheReferenceDoes) {
  const Holes& holes = GetParam();
  const auto cols = static_cast<std::size_t>(holes.cols);
  const std::vector<double> fitted = rows_with(holes, 1);
  std::vector<double> asked = rows_with(holes, 2);
  asked.resize(asked.size() / 2 / cols * cols);
  std::fill(asked.end() - holes.cols, asked.end(), kMissing);  // nothing in common with any row
  const TableView table(fitted.data(), holes.rows, holes.cols);
  const TableView queries(asked.data(), static_cast<std::int64_t>(asked.size() / cols), holes.cols);
  for (const Filling filling : {Filling::mean, Filling::median, Filling::knn}) {
    const std::string name(name_of(filling));
    const auto k = static_cast<std::size_t>(holes.k);
    const std::vector<double> of_itself = reference::impute(fitted, cols, fitted, name, k);
    const std::vector<double> of_others = reference::impute(fitted, cols, asked, name, k);
    for (const Context& ctx : contexts(static_cast<std::uint64_t>(holes.rows))) {
      const Imputer made = Imputer::fit(ctx, table, {.filling = filling, .k = holes.k});
      EXPECT_TRUE(equal_bits(numbers_of(made.apply(ctx, table)), of_itself)) << name;
      EXPECT_TRUE(equal_bits(numbers_of(made.apply(ctx, queries)), of_others)) << name;
      const TableView donors = made.donors();
      const auto* const first = static_cast<const double*>(donors.data());
      const Imputer again = Imputer::of({.filling = filling, .k = holes.k}, made.values(),
                                        {first, first + donors.rows() * donors.cols()});
      EXPECT_TRUE(equal_bits(numbers_of(again.apply(ctx, queries)), of_others)) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, ImputerOf,
                         ::testing::Values(Holes{260, 20, 0.05, 0, 5}, Holes{140, 20, 0.5, 0, 5},
                                           Holes{400, 6, 0.2, 3, 4}, Holes{129, 3, 0.4, 2, 200},
                                           Holes{128, 9, 0.9, 5, 2}, Holes{40, 70, 0.3, 0, 1},
                                           Holes{300, 1, 0.3, 7, 3}));

TEST(Imputer, FillsFromOneRowAndFromConstantColumns) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<double> one = {3, -0.0, 7};
  const std::vector<double> asked = {kMissing, kMissing, 1};
  for (const Filling filling : {Filling::mean, Filling::median, Filling::knn}) {
    const Imputer made = Imputer::fit(ctx, TableView(one.data(), 1, 3), {.filling = filling});
    EXPECT_TRUE(equal_bits(numbers_of(made.apply(ctx, TableView(asked.data(), 1, 3))), {3, 0, 1}));
  }
  const std::vector<double> constant = {2, 5, 2, kMissing, 2, 5};
  const TableView table(constant.data(), 3, 2);
  EXPECT_TRUE(equal_bits(numbers_of(Imputer::fit(ctx, table).apply(ctx, table)), {2, 5, 2, 5, 2, 5}));
}

TEST(Imputer, GivesBackATableThatLacksNothing) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<float> whole = {1, 2, 3, 4};
  const TableView table(whole.data(), 2, 2);
  EXPECT_EQ(Imputer::fit(ctx, table).apply(ctx, table).view.data(), whole.data());
  EXPECT_EQ(complete_rows(ctx, Imputer().apply(ctx, table)).table.view.data(), whole.data());
}

TEST(Imputer, OrdersInfiniteKeysById) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<double> fitted = {1e300, 8, -1e300, 4, 1e250, 2};
  const std::vector<double> asked = {-1e200, kMissing};
  const Imputer made = Imputer::fit(ctx, TableView(fitted.data(), 3, 2), {.k = 2});
  EXPECT_TRUE(equal_bits(numbers_of(made.apply(ctx, TableView(asked.data(), 1, 2))), {-1e200, 6}));
}

Table with_text(std::vector<double> values, std::int64_t rows) {
  Table table;
  const auto held = std::make_shared<std::vector<double>>(std::move(values));
  table.view = TableView(held->data(), rows, static_cast<std::int64_t>(held->size()) / rows);
  table.storage = held;
  table.categories = {{}, {"a", "b"}, {}};
  return table;
}

TEST(Imputer, LeavesColumnsOfTextAlone) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<double> values = {1, 0, 10, 2, 1, kMissing, 9, 1, 30};
  const Table table = with_text(values, 3);
  const Imputer made = Imputer::fit(ctx, table, {.k = 1});
  const Table filled = made.apply(ctx, table);
  EXPECT_TRUE(equal_bits(numbers_of(filled), reference::impute(values, 3, values, "knn", 1, {1})));
  EXPECT_EQ(numbers_of(filled)[5], 10);
  EXPECT_EQ(filled.categories, table.categories);
  const Table lacks = with_text({1, kMissing, 3}, 1);
  refused([&] { (void)made.apply(ctx, lacks, "x.csv"); }, ErrorCode::bad_data,
          "x.csv: row 0, column 1 is a missing text");
  EXPECT_EQ(complete_rows(ctx, with_text({1, kMissing, 3, 4, 1, 6}, 2)).rows, std::vector<std::int64_t>{1});
}

TEST(Imputer, RefusesWhatItCannotFill) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<double> empty = {1, kMissing, 2, kMissing};
  const TableView table(empty.data(), 2, 2);
  for (const Filling filling : {Filling::mean, Filling::median, Filling::knn}) {
    refused([&] { (void)Imputer::fit(ctx, table, {.filling = filling}); }, ErrorCode::bad_data,
            "table: column 1 has no value");
  }
  const std::vector<double> infinite = {1, kMissing, 2, -kInfinite};
  refused([&] { (void)Imputer::fit(ctx, TableView(infinite.data(), 2, 2)); }, ErrorCode::bad_data,
          "table: row 1, column 1 is infinite");
  const std::vector<double> large = {1e308, 1e308, 1e308, 1};
  refused([&] { (void)Imputer::fit(ctx, TableView(large.data(), 4, 1), {.filling = Filling::mean}); },
          ErrorCode::bad_data, "column 0 has a sum beyond float64");
  refused([&] { (void)Imputer::fit(ctx, table, {.k = 0}); }, ErrorCode::invalid_argument, "k is 0");
  refused([&] { (void)Imputer::fit(ctx, table, {.filling = static_cast<Filling>(9)}); }, ErrorCode::invalid_argument,
          "filling: unknown value");
  refused([&] { (void)Imputer::fit(ctx, TableView(empty.data(), 0, 2)); }, ErrorCode::invalid_argument, "no rows");
  refused([&] { (void)filling_from("mode"); }, ErrorCode::invalid_argument, "none, mean, median, knn");
  const Imputer made = Imputer::fit(ctx, TableView(empty.data(), 1, 1));
  refused([&] { (void)made.apply(ctx, table, "x.csv"); }, ErrorCode::invalid_argument, "x.csv has 2 columns");
  refused([&] { (void)made.apply(ctx, TableView(infinite.data() + 3, 1, 1), "x.csv"); }, ErrorCode::bad_data,
          "x.csv: row 0, column 0 is infinite");
  refused([&] { (void)Imputer::of({}, {1}, {}); }, ErrorCode::invalid_argument, "donors");
  refused([&] { (void)Imputer::of({.filling = Filling::mean}, {kInfinite}); }, ErrorCode::invalid_argument, "finite");
}

TEST(Imputer, StaysWithinItsMemoryAndStops) {
  const Holes holes{20'000, 4, 0.2, 0, 5};
  const std::vector<double> values = rows_with(holes, 3);
  const TableView table(values.data(), holes.rows, holes.cols);
  const Context ctx = Context::cpu({.threads = 2});
  const Imputer made = Imputer::fit(ctx, table);
  const Context small = Context::cpu({.threads = 2, .memory_limit = 700'000});
  refused([&] { (void)Imputer::fit(small, table); }, ErrorCode::over_memory, "fitting missing values");
  refused([&] { (void)made.apply(small, table, "x.csv"); }, ErrorCode::over_memory, "the missing values of x.csv");
  refused([&] { (void)count_missing(small.with_memory_limit(1), table); }, ErrorCode::over_memory, "counting");
  const CancelToken token;
  token.cancel();
  const Context stopped = Context::cpu({.threads = 2, .cancel = token});
  refused([&] { (void)Imputer::fit(stopped, table); }, ErrorCode::cancelled, "");
  refused([&] { (void)made.apply(stopped, table); }, ErrorCode::cancelled, "");
  refused([&] { (void)count_missing(stopped, table); }, ErrorCode::cancelled, "");
}

TEST(Imputer, PlansWhatItTakes) {
  const std::vector<double> values(1'000 * 8);
  const TableView table(values.data(), 1'000, 8);
  const std::uint64_t bytes = values.size() * sizeof(double);
  const Context ctx = Context::cpu({.threads = 2});
  const Plan by_knn = plan_impute(ctx, table, table);
  EXPECT_EQ(by_knn.device, "cpu");
  EXPECT_EQ(by_knn.threads, 2);
  EXPECT_EQ(by_knn.device_memory, 0U);
  EXPECT_GE(by_knn.memory, 3 * bytes);
  const Plan by_mean = plan_impute(ctx, table, table, {.filling = Filling::mean});
  EXPECT_EQ(by_mean.memory, 2 * bytes);
  EXPECT_NE(by_mean.reason.find("mean of their column"), std::string::npos);
  EXPECT_EQ(plan_impute(ctx, table, table, {.filling = Filling::none}).memory, 0U);
  refused([&] { (void)plan_impute(ctx, table, table, {.k = 0}); }, ErrorCode::invalid_argument, "k is 0");
  refused([&] { (void)plan_impute(ctx, table, TableView(values.data(), 10, 3)); }, ErrorCode::invalid_argument,
          "rows has 3 columns");
}

TEST(Imputer, IsKeptInModels) {
  const Context ctx = Context::cpu({.threads = 2});
  const Holes holes{80, 4, 0.2, 50, 3};
  const std::vector<double> fitted = rows_with(holes, 5);
  const std::vector<double> asked = rows_with(holes, 6);
  const TableView table(fitted.data(), holes.rows, holes.cols);
  const TableView queries(asked.data(), holes.rows, holes.cols);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("vicinal_impute_" + std::to_string(getpid()));
  std::vector<double> targets;
  for (std::int64_t i = 0; i < holes.rows; ++i) targets.push_back(static_cast<double>(i * i % 31));
  for (const Filling filling : {Filling::mean, Filling::median, Filling::knn}) {
    const std::string name(name_of(filling));
    const Preparation made =
        Preparation::fit(ctx, table, {.scaling = Scaling::standard, .missing = {.filling = filling, .k = holes.k}});
    const Table prepared = made.apply(ctx, table);
    const NeighborModel model{
        .index = Index(ctx, prepared.view), .targets = targets, .target_columns = 1, .k = 2, .preparation = made};
    model.save(ctx, path);
    refused([&] { (void)Index::load(ctx, path); }, ErrorCode::invalid_argument, "missing values by " + name);
    const NeighborModel loaded = NeighborModel::load(ctx, path);
    // The same by hand: filled by the reference, then scaled.
    const std::vector<double> whole = reference::impute(fitted, 4, fitted, name, 3);
    const std::vector<double> others = reference::impute(fitted, 4, asked, name, 3);
    const TableView filled(whole.data(), holes.rows, holes.cols);
    const Preparation scaling = Preparation::fit(ctx, filled, {.scaling = Scaling::standard});
    EXPECT_TRUE(equal_bits(numbers_of(prepared), numbers_of(scaling.apply(ctx, filled)))) << name;
    const NeighborModel by_hand{.index = Index(ctx, scaling.apply(ctx, filled).view, {.copy = true}),
                                .targets = targets,
                                .target_columns = 1,
                                .k = 2,
                                .preparation = scaling};
    const std::vector<double> wanted = regress(ctx, by_hand, TableView(others.data(), holes.rows, holes.cols)).values;
    EXPECT_EQ(regress(ctx, model, queries).values, wanted) << name;
    EXPECT_EQ(regress(ctx, loaded, queries).values, wanted) << name;
  }
  std::filesystem::remove(path);
  const Imputer three = Imputer::of({.filling = Filling::mean}, {1, 2, 3});
  refused([&] { (void)Preparation::of(std::vector<Preparation::Column>(2), Scaling::none, three); },
          ErrorCode::invalid_argument, "imputer: it fills 3 columns, not 2");
}

TEST(CompleteRows, KeepNumbersAndLabelsOfTheRowsThatAreWhole) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<float> values = {1, 2, kMissing, 4, 5, 6, 7, kMissing, 9, 10};
  Table table;
  table.view = TableView(values.data(), 5, 2);
  table.labels = encode_labels(std::vector<std::int64_t>{5, 6, 7, 8, 9});
  table.columns = {"a", "b"};
  EXPECT_EQ(count_missing(ctx, table.view), (std::vector<std::int64_t>{1, 1}));
  const CompleteRows kept = complete_rows(ctx, table);
  EXPECT_EQ(kept.rows, (std::vector<std::int64_t>{0, 2, 4}));
  EXPECT_EQ(kept.table.columns, table.columns);
  EXPECT_TRUE(equal_bits(numbers_of(kept.table), {1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(kept.table.labels->codes, (std::vector<std::int32_t>{0, 2, 4}));
  table.view = TableView(values.data() + 2, 1, 2);
  refused([&] { (void)complete_rows(ctx, table); }, ErrorCode::invalid_argument, "labels");
  table.labels.reset();
  refused([&] { (void)complete_rows(ctx, table, "x.csv"); }, ErrorCode::bad_data, "x.csv has a missing value in every");
}

}  // namespace
}  // namespace vicinal::contract
