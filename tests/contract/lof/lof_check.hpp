// What the tests of the outlier scores have in common: data ranked once for any number of options, and results held
// against the reference, bit by bit but for the erf of loop.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "reference/lof.hpp"
#include "reference/reference.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::contract {

/// A table and queries as the library and the reference get them.
struct Ranked {
  Stored table;
  Stored queries;
  Metric metric;
  double p;
  std::vector<std::pair<std::int64_t, std::int64_t>> overflow;  ///< pairs without a finite key
  reference::Ranking within;
  reference::Ranking across;
  std::int64_t places;  ///< rows of the table that differ as numbers

  Ranked(const Rows& rows, std::int64_t d, Metric by = Metric::euclidean, double exponent = 2,
         DType dtype = DType::float64, Layout layout = Layout::contiguous)
      : table(rows.table, d, dtype, layout),
        queries(rows.queries, d, dtype),
        metric(by),
        p(exponent),
        within(reference::rank(table.view(), table.view(), {.metric = by, .p = exponent, .self = true}, &overflow)),
        across(reference::rank(table.view(), queries.view(), {.metric = by, .p = exponent}, &overflow)) {
    const std::vector<double> values = reference::widen(table.view());
    std::set<std::vector<double>> different;
    for (auto row = values.begin(); row != values.end(); row += d) {
      std::vector<double> numbers(row, row + d);
      for (double& x : numbers) x += 0.0;  // -0 becomes 0
      different.insert(numbers);
    }
    places = std::ssize(different);
  }
};

/// erf is within 2^-48 of the exact value, and the reference's, which had 64 bits before it was rounded to 53, within
/// 2^-53 (and the 2^-62 that erfl is off): relative to the smaller of the two a little more.
inline void expect_same_scores(const std::vector<double>& got, const std::vector<double>& expected, OutlierScore score,
                               const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double tolerance = score == OutlierScore::loop ? (0x1p-48 + 0x1p-52) * expected[i] : 0;
    const bool same = got[i] == expected[i] && std::signbit(got[i]) == std::signbit(expected[i]);
    if (same || std::fabs(got[i] - expected[i]) <= tolerance) continue;
    ADD_FAILURE() << what << ": row " << i << ": " << got[i] << " instead of " << expected[i] << ", off by "
                  << got[i] - expected[i];
    return;
  }
}

inline std::string text(const LofOptions& options) {
  return std::string(name_of(options.score)) + " " + std::string(name_of(options.duplicates)) + " ties " +
         std::string(name_of(options.ties)) + " k=" + std::to_string(options.k) + ".." + std::to_string(options.k_to) +
         " " + std::string(name_of(options.across)) + " " + std::string(name_of(options.metric)) +
         " contamination=" + std::to_string(options.contamination) + (options.novelty ? " novelty" : "");
}

inline void expect_same(const Lof& got, const Lof& expected, const std::string& what) {
  const LofOptions& options = expected.options;
  expect_same_scores(got.scores, expected.scores, options.score, what);
  // Of loop the threshold is a score, too, and not the same bits; what it must be follows from the scores there are.
  const double threshold =
      options.contamination > 0 ? reference::threshold_of(got.scores, options.contamination) : expected.threshold;
  EXPECT_EQ(got.threshold, threshold) << what;
  std::int64_t outliers = 0;
  for (const double score : got.scores) outliers += score > threshold ? 1 : 0;
  EXPECT_EQ(got.outliers, outliers) << what;
  EXPECT_EQ(got.copied, expected.copied) << what;
  if (!options.novelty) return;
  EXPECT_EQ(got.k_distances, expected.k_distances) << what;
  EXPECT_EQ(got.densities, expected.densities) << what;
  EXPECT_EQ(got.caps, expected.caps) << what;
  EXPECT_EQ(got.spread, expected.spread) << what;
}

/// The first score that is no number, -1 where there is none.
inline std::int64_t first_nan(const std::vector<double>& scores) {
  const auto found = std::find_if(scores.begin(), scores.end(), [](double score) { return std::isnan(score); });
  return found == scores.end() ? -1 : found - scores.begin();
}

inline void expect_refused(ErrorCode code, const std::string& word, const std::string& what,
                           const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << what << ": not refused, though " << word;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << what << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

/// Asks for the table's scores, and with `novelty` for the queries', in each of `made`.
inline void check_lof(const Ranked& data, LofOptions options, const std::string& name,
                      const std::vector<Context>& made) {
  options.metric = data.metric;
  options.p = data.p;
  if (options.duplicates == Duplicates::distinct && options.k > data.places - 1) {
    for (const Context& ctx : made) {
      expect_refused(ErrorCode::invalid_argument, "at most " + std::to_string(data.places - 1) + " places",
                     name + " " + text(options), [&] { (void)lof(ctx, data.table.view(), options); });
    }
    return;
  }
  const Lof expected = reference::lof(data.table.view(), data.within, options);
  std::vector<double> others;
  if (options.novelty) others = reference::novelty(data.table.view(), expected, data.queries.view(), data.across);
  std::vector<double> first;
  for (const Context& ctx : made) {
    const std::string what = name + " " + text(options) + ", " + ctx.device() + " " + std::string(name_of(ctx.isa())) +
                             ", threads " + std::to_string(ctx.threads());
    if (const std::int64_t row = first_nan(expected.scores); row >= 0) {
      expect_refused(ErrorCode::bad_data, "row " + std::to_string(row) + " has no score", what,
                     [&] { (void)lof(ctx, data.table.view(), options); });
      continue;
    }
    std::vector<double> scores;
    if (options.novelty) {
      const Index index(ctx, data.table.view());
      const Lof model = lof(ctx, index, options);
      expect_same(model, expected, what);
      if (const std::int64_t row = first_nan(others); row >= 0) {
        expect_refused(ErrorCode::bad_data, "row " + std::to_string(row) + " has no score", what + ", queries",
                       [&] { (void)novelty(ctx, index, model, data.queries.view()); });
        continue;
      }
      const std::vector<double> got = novelty(ctx, index, model, data.queries.view());
      expect_same_scores(got, others, options.score, what + ", queries");
      scores = model.scores;
      scores.insert(scores.end(), got.begin(), got.end());
    } else {
      const Lof got = lof(ctx, data.table.view(), options);
      expect_same(got, expected, what);
      scores = got.scores;
    }
    if (first.empty()) first = scores;
    EXPECT_TRUE(same_bits(scores, first)) << what << ": not the bits of the first context";
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace vicinal::contract
