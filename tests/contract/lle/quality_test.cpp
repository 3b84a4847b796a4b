// How far an embedding can be trusted, against the reference (contract clause 17): ranks with ties, pieces and every
// metric; what is left of parameters; the same bits on every thread count; and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "reference/lle_quality.hpp"
#include "refused.hpp"
#include "vicinal/lle_quality.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

struct Judged {
  std::vector<double> rows;
  std::int64_t d = 0;
  LleOptions options;
  std::string name;
  [[nodiscard]] std::int64_t n() const { return static_cast<std::int64_t>(rows.size()) / d; }
  [[nodiscard]] TableView view() const { return {rows.data(), n(), d}; }
};

Judged judged(Family which, std::int64_t n, std::int64_t d, const LleOptions& options) {
  return {make_rows(which, {n, d, 1}, 5).table, d, options, std::string(name_of(which))};
}

/// Ranks are whole numbers, and so are sums of penalties; two quotients and the sums over pieces are rounded.
void check_quality(const Judged& given, const LleQualityOptions& asked) {
  const Lle fitted = lle(on(2), given.view(), given.options);
  const LleQuality found = lle_quality(on(3), given.view(), fitted, asked);
  const reference::EmbeddingQuality truth =
      reference::embedding_quality(given.rows, given.d, fitted, found.k, asked.rows);
  EXPECT_EQ(found.rows, truth.rows) << given.name;
  const double tolerance = 8 * 0x1p-52 * static_cast<double>(fitted.pieces.size() + 2);
  EXPECT_TRUE(std::abs(found.trustworthiness - truth.trustworthiness) <= tolerance)
      << given.name << ": " << found.trustworthiness << " " << truth.trustworthiness;
  EXPECT_TRUE(std::abs(found.continuity - truth.continuity) <= tolerance)
      << given.name << ": " << found.continuity << " " << truth.continuity;
  ASSERT_EQ(found.conditions.size(), truth.conditions.size());
  for (std::size_t i = 0; i < truth.conditions.size(); ++i) {
    // Eigenvalues are off by some roundings of the largest: of the least by that times the condition.
    const double wanted = truth.conditions[i];
    EXPECT_TRUE(std::abs(found.conditions[i] - wanted) <= 1e-13 * wanted * wanted)
        << given.name << ", row " << found.rows[i] << ": " << found.conditions[i] << " " << wanted;
  }
  for (const int threads : {1, 2, 7}) {
    const LleQuality again = lle_quality(on(threads), given.view(), fitted, asked);
    EXPECT_EQ(again.trustworthiness, found.trustworthiness) << given.name;
    EXPECT_EQ(again.continuity, found.continuity) << given.name;
    EXPECT_EQ(again.conditions, found.conditions) << given.name;
  }
}

TEST(LleQuality, EqualsTheReferenceForEveryFamily) {
  for (const Family which :
       {Family::gaussian, Family::integer_ties, Family::duplicates, Family::offset, Family::column_scales,
        Family::constant, Family::grid, Family::on_a_line, Family::far_outlier, Family::swiss_roll}) {
    check_quality(judged(which, 163, 3, {.k = 9}), {.rows = 0});
    check_quality(judged(which, 97, 5, {.k = 7, .dim = 3}), {.k = 4, .rows = 31});
  }
}

TEST(LleQuality, EqualsTheReferenceForEveryMetric) {
  for (const Metric metric : {Metric::sqeuclidean, Metric::cosine, Metric::manhattan, Metric::chebyshev,
                              Metric::minkowski, Metric::hamming}) {
    check_quality(judged(Family::gaussian, 90, 6, {.k = 8, .metric = metric, .p = 3}), {.rows = 40});
  }
}

TEST(LleQuality, JudgesPiecesByThemselves) {
  Judged given = judged(Family::gaussian, 140, 3, {.k = 6});
  for (std::int64_t i = 0; i < 140; ++i) given.rows[i * 3] += i % 10 == 0 ? 1000 : 0;
  given.name = "two pieces, one of 14 rows";
  check_quality(given, {.rows = 0});
  check_quality(given, {.rows = 37});
  check_quality(given, {.k = 30, .rows = 0});  // more than the small piece can compare
}

TEST(LleQuality, OfAnyElementTypeIsThatOfFloat64) {
  const Generated roll = generate(on(2), {.shape = vicinal::Shape::swiss_roll, .rows = 300, .seed = 3});
  const std::vector<float> narrow(roll.points.begin(), roll.points.end());
  const std::vector<double> wide(narrow.begin(), narrow.end());
  const TableView small(narrow.data(), 300, 3);
  const Lle fitted = lle(on(2), small, {});
  const LleQuality found = lle_quality(on(2), small, fitted);
  const LleQuality same = lle_quality(on(2), {wide.data(), 300, 3}, fitted);
  EXPECT_EQ(found.trustworthiness, same.trustworthiness);
  EXPECT_EQ(found.continuity, same.continuity);
  EXPECT_EQ(found.conditions, same.conditions);
  EXPECT_GT(found.trustworthiness, 0.8);
}

TEST(LleQuality, WhatIsLeftOfParametersEqualsTheReference) {
  for (const std::int64_t columns : {1, 2, 5}) {
    Judged given = judged(Family::gaussian, 150, 3, {.k = 8, .dim = 2});
    for (std::int64_t i = 90; i < 150; ++i) given.rows[i * 3] += 500;  // two pieces
    const Lle fitted = lle(on(2), given.view(), given.options);
    ASSERT_EQ(fitted.pieces.size(), 2U);
    std::vector<double> known = make_rows(Family::gaussian, {150, columns, 1}, 6).table;
    for (std::int64_t i = 0; i < 150; ++i) known[i * columns] += 40 * given.rows[i * 3];
    const LleParameterFit found = compare_parameters(on(2), fitted, {known.data(), 150, columns});
    const LleParameterFit truth = reference::parameter_fit(known, columns, fitted);
    EXPECT_TRUE(std::abs(found.affine - truth.affine) <= 1e-12) << found.affine << " " << truth.affine;
    EXPECT_TRUE(std::abs(found.procrustes - truth.procrustes) <= 1e-12) << found.procrustes << " " << truth.procrustes;
    ASSERT_EQ(found.columns.size(), truth.columns.size());
    for (std::size_t j = 0; j < truth.columns.size(); ++j) {
      EXPECT_TRUE(std::abs(found.columns[j] - truth.columns[j]) <= 1e-12) << j;
    }
  }
}

TEST(LleQuality, ConstantParametersLeaveNothing) {
  const Judged given = judged(Family::gaussian, 60, 3, {.k = 8});
  const Lle fitted = lle(on(2), given.view(), given.options);
  const std::vector<double> known(60, 4.0);
  const LleParameterFit found = compare_parameters(on(2), fitted, {known.data(), 60, 1});
  EXPECT_EQ(found.affine, 0);
  EXPECT_EQ(found.procrustes, 0);
}

TEST(LleQualityRefusal, OfOptionsTablesAndParameters) {
  const Judged given = judged(Family::gaussian, 60, 3, {.k = 8});
  const Lle fitted = lle(on(2), given.view(), given.options);
  const auto bad = ErrorCode::invalid_argument;
  const auto asking = [&](const LleQualityOptions& options) {
    return [&, options] { lle_quality(on(2), given.view(), fitted, options); };
  };
  refused(asking({.k = 60}), bad, "k: is 60");
  refused(asking({.k = -1}), bad, "k: is -1");
  refused(asking({.rows = -1}), bad, "rows: is -1");
  const TableView fewer(given.rows.data(), 50, 3);
  refused([&] { lle_quality(on(2), fewer, fitted); }, bad, "fitted: is an embedding of 60 rows");
  refused([&] { compare_parameters(on(2), fitted, fewer); }, bad, "parameters: are of 50 rows");
  Lle broken = fitted;
  broken.piece[3] = -2;
  refused([&] { lle_quality(on(2), given.view(), broken); }, bad, "fitted: has a piece number");
  std::vector<double> known = given.rows;
  known[31] = std::nan("");
  refused([&] { compare_parameters(on(2), fitted, {known.data(), 60, 3}); }, ErrorCode::bad_data, "row 10");
  refused([&] { lle_quality(Context::cpu({.memory_limit = 500}), given.view(), fitted); }, ErrorCode::over_memory, "");
}

TEST(LleQualityRefusal, StopsWhenItIsCancelled) {
  const Judged given = judged(Family::gaussian, 3000, 3, {.k = 8});
  const Lle fitted = lle(on(2), given.view(), given.options);
  const CancelToken token;
  CpuOptions options{.threads = 2, .cancel = token};
  options.progress = [&](std::string_view at, double) {
    if (at == "judge") token.cancel();
  };
  EXPECT_THROW(lle_quality(Context::cpu(options), given.view(), fitted), Error);
}

}  // namespace
}  // namespace vicinal::contract
