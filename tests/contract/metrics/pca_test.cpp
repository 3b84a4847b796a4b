// Samples of rows and principal components against the reference (contract clauses 22 and 23): rows drawn, orthogonal
// axes, shares of the variance, coordinates; the same bits on every context; and what is refused.
#include "vicinal/pca.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "reference/pca.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

double product(const double* a, const double* b, std::int64_t d) {
  return std::inner_product(a, a + d, b, 0.0);
}

/// What clause 23 says of axes, whatever the iteration reaches.
void check_axes(const Pca& found, const std::vector<double>& wanted, const std::string& what) {
  double sum = 0;
  double most = 0;
  for (std::int64_t a = 0; a < found.components; ++a) {
    const double* const axis = found.axes.data() + a * found.cols;
    const double ratio = found.explained_variance_ratio[static_cast<std::size_t>(a)];
    const double length = product(axis, axis, found.cols);
    EXPECT_TRUE(std::abs(length - 1) <= 1e-12 || (length == 0 && ratio <= 1e-12)) << what << ", axis " << a;
    for (std::int64_t b = 0; b < a; ++b) {
      EXPECT_TRUE(std::abs(product(axis, found.axes.data() + b * found.cols, found.cols)) <= 1e-12) << what;
    }
    double largest = 0;
    for (std::int64_t c = 0; c < found.cols; ++c) {
      if (std::abs(axis[c]) > std::abs(largest)) largest = axis[c];
    }
    EXPECT_GE(largest, 0) << what;
    EXPECT_TRUE(ratio >= 0 && ratio <= 1) << what;
    if (a > 0) {
      EXPECT_LE(ratio, found.explained_variance_ratio[static_cast<std::size_t>(a) - 1]) << what;
    }
    sum += ratio;
    most += wanted[static_cast<std::size_t>(a)];
    EXPECT_TRUE(sum <= most + 1e-12) << what << ", axis " << a;
  }
}

TEST(Pca, OfFewColumnsIsThatOfTheReference) {
  for (const Family family : {Family::gaussian, Family::integer_ties, Family::duplicates, Family::constant,
                              Family::offset, Family::column_scales, Family::on_a_line, Family::far_outlier,
                              Family::subnormal, Family::huge, Family::constant_column}) {
    for (const std::int64_t d : {1, 2, 5, 8}) {
      const std::vector<double> rows = make_rows(family, {200, d, 1}, 3).table;
      const std::string what = std::string(name_of(family)) + ", " + std::to_string(d) + " columns";
      const Pca found = pca(on(2), {rows.data(), 200, d}, {.components = d});
      const std::vector<double> wanted = reference::variance_ratios(rows, d);
      check_axes(found, wanted, what);
      EXPECT_TRUE(found.converged) << what;
      for (std::size_t a = 0; a < wanted.size(); ++a) {
        // Deviations from a rounded mean: as much of the offset as float64 cannot hold is lost.
        const double tolerance = family == Family::offset ? 1e-9 : 1e-12;
        EXPECT_TRUE(std::abs(found.explained_variance_ratio[a] - wanted[a]) <= tolerance)
            << what << ", axis " << a << ": " << found.explained_variance_ratio[a] << " " << wanted[a];
      }
    }
  }
}

TEST(Pca, OfManyColumnsFindsVariancesThatAreApart) {
  constexpr std::int64_t kCols = 40;
  std::vector<double> rows = make_rows(Family::gaussian, {500, kCols, 1}, 3).table;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= std::pow(0.8, static_cast<double>(i % kCols));
  const std::vector<double> wanted = reference::variance_ratios(rows, kCols);
  const Pca found = pca(on(3), {rows.data(), 500, kCols}, {.components = 3, .max_iterations = 500});
  check_axes(found, wanted, "40 columns");
  EXPECT_TRUE(found.converged);
  for (std::size_t a = 0; a < 3; ++a) {
    EXPECT_TRUE(std::abs(found.explained_variance_ratio[a] - wanted[a]) <= 1e-8) << a;
  }
  const Pca once = pca(on(3), {rows.data(), 500, kCols}, {.components = 3, .max_iterations = 1});
  EXPECT_FALSE(once.converged);
  EXPECT_EQ(once.iterations, 1);
  check_axes(once, wanted, "one iteration");
}

TEST(Pca, OfALineLeavesAxesWithoutVariance) {
  const std::vector<double> rows = make_rows(Family::on_a_line, {90, 20, 1}, 3).table;
  const Pca found = pca(on(2), {rows.data(), 90, 20}, {.components = 4});
  check_axes(found, reference::variance_ratios(rows, 20), "line");
  EXPECT_TRUE(std::abs(found.explained_variance_ratio[0] - 1) <= 1e-12);
}

TEST(Pca, OfOneColumnThatVariesLeavesAxesOfZeros) {
  std::vector<double> rows(768, 0.0);
  for (std::size_t i = 0; i < 64; ++i) rows[i * 12 + 4] = i % 2 == 0 ? 1 : -1;
  const Pca found = pca(on(2), {rows.data(), 64, 12}, {.components = 3});
  check_axes(found, reference::variance_ratios(rows, 12), "one column");
  EXPECT_EQ(found.explained_variance_ratio, (std::vector<double>{1, 0, 0}));
}

TEST(Pca, HasTheSameBitsOnEveryContext) {
  const std::vector<double> rows = make_rows(Family::images, {300, 30, 1}, 3).table;
  const Stored plain(rows, 30, DType::uint8);
  const Pca wanted = pca(on(1), plain.view());
  const std::vector<double> places = transform(on(1), wanted, plain.view());
  for (const Context& ctx : contexts(1)) {
    for (int layout = 0; layout < kLayouts; ++layout) {
      const Stored stored(rows, 30, DType::uint8, static_cast<Layout>(layout));
      const Pca found = pca(ctx, stored.view());
      EXPECT_TRUE(same_bits(found.axes, wanted.axes));
      EXPECT_TRUE(same_bits(found.mean, wanted.mean));
      EXPECT_TRUE(same_bits(found.explained_variance_ratio, wanted.explained_variance_ratio));
      EXPECT_EQ(found.scale, wanted.scale);
      EXPECT_TRUE(same_bits(transform(ctx, found, stored.view()), places));
    }
  }
}

TEST(Pca, TransformGivesProductsWithTheAxes) {
  const std::vector<double> rows = make_rows(Family::gaussian, {80, 12, 1}, 3).table;
  const Pca model = pca(on(2), {rows.data(), 80, 12});
  const std::vector<double> places = transform(on(2), model, {rows.data(), 80, 12});
  for (std::size_t i = 0; i < 80; ++i) {
    for (std::size_t a = 0; a < 2; ++a) {
      double wanted = 0;
      for (std::size_t c = 0; c < 12; ++c) wanted += (rows[i * 12 + c] - model.mean[c]) * model.axes[a * 12 + c];
      EXPECT_TRUE(std::abs(places[i * 2 + a] - wanted) <= 1e-13 * model.scale) << i;
    }
  }
  const std::vector<double> equal(10, 2.0);
  const Pca flat = pca(on(1), {equal.data(), 5, 2});
  EXPECT_EQ(flat.scale, 0);
  const std::vector<double> row = {2, 5};
  const std::vector<double> place = transform(on(1), flat, {row.data(), 1, 2});
  EXPECT_EQ(place[0], 3 * flat.axes[1]);
}

TEST(Pca, RefusesOptionsAndValues) {
  std::vector<double> rows = make_rows(Family::gaussian, {50, 4, 1}, 3).table;
  const TableView table(rows.data(), 50, 4);
  const auto bad = ErrorCode::invalid_argument;
  refused([&] { pca(on(1), table, {.components = 0}); }, bad, "components: is 0");
  refused([&] { pca(on(1), table, {.components = 5}); }, bad, "components: is 5, must be from 1 to 4");
  refused([&] { pca(on(1), table, {.max_iterations = 0}); }, bad, "max_iterations: is 0");
  refused([&] { pca(on(1), TableView{}); }, bad, "table");
  refused([&] { pca(Context::cpu({.threads = 1, .memory_limit = 1000}), table); }, ErrorCode::over_memory, "pca");
  const Pca model = pca(on(1), table);
  refused([&] { transform(on(1), model, {rows.data(), 100, 2}); }, bad, "table: 2 columns, but the model has 4");
  Pca broken = model;
  broken.axes.pop_back();
  refused([&] { transform(on(1), broken, table); }, bad, "model: its arrays");
  refused([&] { transform(Context::cpu({.threads = 1, .memory_limit = 1000}), model, table); }, ErrorCode::over_memory,
          "transform");
  const std::vector<double> far = {1.7e308, 1.7e308, 1.7e308, 1.7e308};
  Pca negative = model;
  negative.mean = {-1.7e308, -1.7e308, -1.7e308, -1.7e308};
  refused(
      [&] {
        transform(on(1), negative, {far.data(), 1, 4});
      },
      ErrorCode::bad_data, "coordinates of row 0 overflow");
  rows[30] = std::nan("");
  refused([&] { pca(on(1), table); }, ErrorCode::bad_data, "row 7, column 2");
  refused([&] { transform(on(1), model, table); }, ErrorCode::bad_data, "row 7, column 2");
  const std::vector<double> apart = {1.7e308, 1.7e308, -1.7e308};
  refused([&] { pca(on(1), {apart.data(), 3, 1}, {.components = 1}); }, ErrorCode::bad_data, "overflow float64");
}

TEST(Pca, StopsWhenItIsCancelled) {
  const std::vector<double> rows = make_rows(Family::gaussian, {500, 60, 1}, 3).table;
  const CancelToken token;
  CpuOptions options{.threads = 2, .cancel = token};
  options.progress = [&](std::string_view at, double) {
    if (at == "pca") token.cancel();
  };
  refused([&] { pca(Context::cpu(options), {rows.data(), 500, 60}); }, ErrorCode::cancelled, "");
}

TEST(SampleRows, AreThoseOfTheReference) {
  const std::vector<double> rows = make_rows(Family::images, {400, 3, 1}, 3).table;
  for (int layout = 0; layout < kLayouts; ++layout) {
    const Stored stored(rows, 3, DType::float32, static_cast<Layout>(layout));
    for (const std::int64_t count : {1, 7, 399, 400, 500}) {
      const TableSample found = sample_rows(on(2), stored.view(), count, 9);
      EXPECT_EQ(found.ids, reference::sampled_rows(400, count, 9)) << count;
      EXPECT_EQ(found.view().rows(), std::min<std::int64_t>(count, 400));
      ASSERT_EQ(found.cols, 3);
      for (std::size_t i = 0; i < found.ids.size(); ++i) {
        for (std::size_t c = 0; c < 3; ++c) {
          EXPECT_EQ(found.values[i * 3 + c], rows[static_cast<std::size_t>(found.ids[i]) * 3 + c]);
        }
      }
    }
  }
  EXPECT_NE(reference::sampled_rows(400, 7, 1), reference::sampled_rows(400, 7, 2));
}

TEST(SampleRows, RefuseCountsAndLimits) {
  const std::vector<double> rows(300, 1.0);
  const TableView table(rows.data(), 100, 3);
  refused([&] { sample_rows(on(1), table, 0); }, ErrorCode::invalid_argument, "count: is 0");
  refused([&] { sample_rows(on(1), TableView{}, 5); }, ErrorCode::invalid_argument, "table");
  refused([&] { sample_rows(Context::cpu({.threads = 1, .memory_limit = 900}), table, 10); }, ErrorCode::over_memory,
          "sample_rows");
}

}  // namespace
}  // namespace vicinal::contract
