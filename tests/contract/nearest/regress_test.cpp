// regress, radius classification and the choice of k against the reference (contract clauses 14 and 15).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "reference/reference.hpp"
#include "reference/supervised.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

// Of very different sizes and both signs, so that the order of additions shows.
std::vector<double> targets_of(std::int64_t rows, std::int64_t outputs) {
  std::vector<double> targets;
  for (std::int64_t i = 0; i < rows * outputs; ++i) {
    const auto x = static_cast<double>((i * 2654435761LL) % 1009 - 500);
    targets.push_back(x * std::pow(10.0, static_cast<double>(i % 9) - 4));
  }
  return targets;
}

Labels labels_of(std::int64_t rows, std::int64_t classes) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < rows; ++i) values.push_back((i * 48271 + i / 7) % classes);
  return encode_labels(values);
}

std::string text_of_weights(Weighting weights, const Context& ctx) {
  return (weights == Weighting::uniform ? "uniform, " : "distance, ") + ctx.device() + ", threads " +
         std::to_string(ctx.threads());
}

NeighborGraph empty_lists() {
  NeighborGraph lists;
  lists.offsets = {0};
  return lists;
}

/// Lists that follow those there are.
void append(NeighborGraph& to, const NeighborGraph& lists) {
  const std::int64_t before = to.offsets.back();
  to.ids.insert(to.ids.end(), lists.ids.begin(), lists.ids.end());
  to.distances.insert(to.distances.end(), lists.distances.begin(), lists.distances.end());
  for (std::size_t i = 1; i < lists.offsets.size(); ++i) to.offsets.push_back(before + lists.offsets[i]);
}

class SupervisedOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(SupervisedOfFamily, RegressEqualsTheReference) {
  const Shape shape = {263, 5, 61};
  const Rows rows = make_rows(GetParam(), shape, 11);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const TableView queries(rows.queries.data(), shape.m, shape.d);
  const auto ranking = reference::rank(table, queries, {});
  const double middle = ranking[0][9].distance;  // some queries have nobody as near
  const auto within = reference::radius(ranking, middle);
  for (const std::int64_t outputs : {1, 3}) {
    const std::vector<double> targets = targets_of(shape.n, outputs);
    const TableView given(targets.data(), shape.n, outputs);
    for (const Weighting weights : {Weighting::uniform, Weighting::distance}) {
      const RegressOptions averaging{.weights = weights, .outlier = -7.5};
      const auto of_radius = reference::average(within, targets, outputs, weights, -7.5);
      for (const Context& ctx : contexts(static_cast<std::uint64_t>(outputs))) {
        for (const std::int64_t k : {1, 2, 9, 40}) {
          const Regression got = regress(ctx, table, queries, given, {.k = k}, averaging);
          const auto expected = reference::average(reference::knn(ranking, k), targets, outputs, weights, -7.5);
          EXPECT_TRUE(same_bits(got.values, expected)) << text_of_weights(weights, ctx) << ", k " << k;
          EXPECT_EQ(got.outliers, 0);
        }
        const Regression got = regress_radius(ctx, table, queries, given, {.radius = middle}, averaging);
        EXPECT_TRUE(same_bits(got.values, of_radius)) << text_of_weights(weights, ctx) << ", radius";
        const auto counts = reference::count(ranking, middle);
        EXPECT_EQ(got.outliers, std::count(counts.begin(), counts.end(), 0));
        const Index index(ctx, table);
        NeighborGraph watched = empty_lists();
        const Regression again = regress_radius(ctx, index, queries, given, {.radius = middle}, averaging,
                                                [&](std::int64_t first, const NeighborGraph& lists) {
                                                  EXPECT_EQ(first, std::ssize(watched.offsets) - 1);
                                                  append(watched, lists);
                                                });
        EXPECT_TRUE(same_bits(again.values, of_radius));
        EXPECT_EQ(watched.ids, within.ids);
        EXPECT_EQ(watched.offsets, within.offsets);
        EXPECT_TRUE(same_bits(watched.distances, within.distances));
      }
    }
  }
}

TEST_P(SupervisedOfFamily, ARadiusClassifiesAsItsVotes) {
  const Shape shape = {263, 5, 61};
  const Rows rows = make_rows(GetParam(), shape, 12);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const TableView queries(rows.queries.data(), shape.m, shape.d);
  const auto ranking = reference::rank(table, queries, {});
  const std::vector<Labels> outputs = {labels_of(shape.n, 3), labels_of(shape.n, 29)};
  for (const double radius : {0.0, ranking[0][9].distance}) {
    const NeighborGraph within = reference::radius(ranking, radius);
    for (const Weighting weights : {Weighting::uniform, Weighting::distance}) {
      for (const Context& ctx : contexts(1)) {
        const Classification got = classify_radius(ctx, table, queries, outputs, {.radius = radius},
                                                   {.weights = weights, .probabilities = true});
        for (std::size_t o = 0; o < outputs.size(); ++o) {
          const Vote expected = reference::vote(within, outputs[o], weights);
          EXPECT_EQ(got.votes[o].codes, expected.codes) << text_of_weights(weights, ctx);
          EXPECT_TRUE(same_bits(got.votes[o].probabilities, expected.probabilities)) << text_of_weights(weights, ctx);
        }
        NeighborGraph watched = empty_lists();
        const Classification again =
            classify_radius(ctx, Index(ctx, table), queries, outputs, {.radius = radius}, {.weights = weights},
                            [&](std::int64_t /*first*/, const NeighborGraph& lists) { append(watched, lists); });
        EXPECT_EQ(again.votes[1].codes, got.votes[1].codes);
        EXPECT_EQ(watched.ids, within.ids);
        EXPECT_EQ(watched.offsets, within.offsets);
      }
    }
  }
}

TEST_P(SupervisedOfFamily, TheChoiceOfKEqualsTheReference) {
  const Shape shape = {150, 4, 1};
  const Rows rows = make_rows(GetParam(), shape, 13);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const auto ranking = reference::rank(table, table, {.self = true});
  const Labels labels = labels_of(shape.n, 4);
  const std::vector<double> targets = targets_of(shape.n, 2);
  std::uint64_t seed = 0;
  for (const std::int64_t folds : {2, 5, 150}) {
    for (const Weighting weights : {Weighting::uniform, Weighting::distance}) {
      CrossValidateOptions options{.k = 1, .k_to = 23, .folds = folds, .seed = ++seed, .weights = weights};
      if (folds == 2) options.k_to = 75;  // every row outside: whoever falls short is topped up
      if (folds == 5) options.k = 4;
      const auto fold_of = reference::folds(labels.codes, folds, options.seed);
      const auto one_class = reference::folds(std::vector<std::int32_t>(labels.codes.size()), folds, options.seed);
      const auto by_class =
          reference::cross_validate(ranking, fold_of, {.labels = &labels, .weights = weights}, options.k, options.k_to);
      const auto by_error = reference::cross_validate(
          ranking, one_class, {.targets = targets, .outputs = 2, .weights = weights}, options.k, options.k_to);
      for (const Context& ctx : contexts(seed)) {
        const CrossValidation got = cross_validate(ctx, table, labels, options);
        EXPECT_EQ(got.fold_of, fold_of);
        EXPECT_EQ(got.k, by_class.k) << text_of_weights(weights, ctx);
        EXPECT_TRUE(same_bits(got.scores, by_class.scores)) << text_of_weights(weights, ctx);
        EXPECT_TRUE(same_bits(got.fold_scores, by_class.fold_scores)) << text_of_weights(weights, ctx);
        const CrossValidation means = cross_validate(ctx, table, TableView(targets.data(), shape.n, 2), options);
        EXPECT_EQ(means.fold_of, one_class);
        EXPECT_EQ(means.k, by_error.k) << text_of_weights(weights, ctx);
        EXPECT_TRUE(same_bits(means.scores, by_error.scores)) << text_of_weights(weights, ctx);
        EXPECT_TRUE(same_bits(means.fold_scores, by_error.fold_scores)) << text_of_weights(weights, ctx);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Regress, SupervisedOfFamily,
                         ::testing::Values(Family::gaussian, Family::duplicates, Family::integer_ties, Family::offset,
                                           Family::column_scales, Family::outliers),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST(CrossValidate, RowsThatFallShortAreSearchedAgain) {
  // All rows of a class lie together, and folds are spread over it: some row has most of its neighbors in its own fold
  // only by the luck of the draw, so that many seeds are tried.
  const Shape shape = {400, 2, 1};
  const Rows rows = make_rows(Family::gaussian, shape, 14);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const auto ranking = reference::rank(table, table, {.self = true});
  const Labels labels = labels_of(shape.n, 2);
  const Context& ctx = context_of(available_isas().back(), 2);
  std::int64_t topped_up = 0;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const CrossValidateOptions options{.k = 1, .k_to = 3, .folds = 2, .seed = seed};
    const CrossValidation got = cross_validate(ctx, table, labels, options);
    const auto fold_of = reference::folds(labels.codes, 2, seed);
    EXPECT_TRUE(same_bits(got.scores, reference::cross_validate(ranking, fold_of, {.labels = &labels}, 1, 3).scores));
    topped_up += got.topped_up;
  }
  EXPECT_GT(topped_up, 0);
}

TEST(CrossValidate, FoldsAreEvenWithinEachClass) {
  const std::int64_t n = 1003;
  const std::vector<double> line(static_cast<std::size_t>(n), 1.0);
  const Labels labels = labels_of(n, 7);
  const Context& ctx = context_of(available_isas().front(), 2);
  const CrossValidation found =
      cross_validate(ctx, TableView(line.data(), n, 1), labels, {.k_to = 1, .folds = 10, .seed = 3});
  for (std::int32_t c = 0; c < 7; ++c) {
    std::vector<int> counts(10);
    for (std::size_t i = 0; i < labels.codes.size(); ++i) {
      if (labels.codes[i] == c) ++counts[static_cast<std::size_t>(found.fold_of[i])];
    }
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    EXPECT_LE(*most - *least, 1) << "class " << c;
  }
  const auto [least, most] = std::minmax_element(found.fold_sizes.begin(), found.fold_sizes.end());
  EXPECT_LE(*most - *least, 1);
}

TEST(Regress, CustomWeightsAreTheCallers) {
  const std::vector<double> line = {0, 1, 2, 3, 4, 5};
  const std::vector<double> targets = {10, 20, 40, 80, 160, 320};
  const std::vector<double> query = {0.25};
  const Context& ctx = context_of(available_isas().front(), 2);
  const TableView table(line.data(), 6, 1);
  const TableView queries(query.data(), 1, 1);
  const TableView given(targets.data(), 6, 1);
  const auto only_last = [](std::span<const double>, std::span<double> weights) { weights.back() = 3; };
  const RegressOptions last{.weights = Weighting::custom, .custom = only_last};
  EXPECT_EQ(regress(ctx, table, queries, given, {.k = 3}, last).values, std::vector<double>{40});
  const auto nobody = [](std::span<const double>, std::span<double>) {};
  const RegressOptions none{.weights = Weighting::custom, .custom = nobody};
  EXPECT_TRUE(std::isnan(regress(ctx, table, queries, given, {.k = 3}, none).values[0]));
}

TEST(Regress, RefusesWhatItCannotAverage) {
  const std::vector<double> line = {0, 1, 2, 3, 4, 5};
  const std::vector<double> huge = {1e308, 1e308, 1e308, 1e308, 1e308, 1e308};
  const std::vector<double> broken = {1, 2, NAN, 4, 5, 6};
  const Context& ctx = context_of(available_isas().front(), 2);
  const TableView table(line.data(), 6, 1);
  const auto sentence = [&](const TableView& targets, const KnnOptions& options, const RegressOptions& averaging) {
    try {
      regress(ctx, table, table, targets, options, averaging);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(sentence(TableView(huge.data(), 6, 1), {.k = 9}, {}),
            sentence(TableView(line.data(), 6, 1), {.k = 9}, {}));  // k is refused first
  EXPECT_EQ(sentence(TableView(huge.data(), 6, 1), {.k = 2}, {}),
            "regress: query row 0: the weighted sum of its neighbors' targets in column 0 is beyond a float64");
  EXPECT_EQ(sentence(TableView(broken.data(), 6, 1), {.k = 2}, {}), "targets: row 2, column 0 is not finite");
  EXPECT_EQ(sentence(TableView(line.data(), 5, 1), {.k = 2}, {}),
            "targets: there are 5 rows of 1 numbers, but the table has 6 rows");
  EXPECT_EQ(sentence(TableView(line.data(), 6, 1), {.k = 2, .metric = Metric::inner_product},
                     {.weights = Weighting::distance}),
            "regress: weights by distance need distances that are not negative, which inner_product does not give");
}

TEST(CrossValidate, IsRefusedBeforeItStartsWhereMemoryIsShort) {
  const std::vector<double> line(4000, 1);
  const Labels labels = labels_of(4000, 2);
  const Context small = Context::cpu({.threads = 1, .memory_limit = 1 << 20});
  const TableView table(line.data(), 4000, 1);
  const auto refused = [](const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.code() == ErrorCode::over_memory;
    }
    return false;
  };
  EXPECT_TRUE(refused([&] { cross_validate(small, table, labels, {}); }));
  EXPECT_TRUE(refused([&] { cross_validate(small, table, table, {}); }));
  EXPECT_TRUE(refused([&] { regress(small, table, table, table, {.k = 100}); }));
  const Plan plan = plan_cross_validate(context_of(available_isas().front(), 2), table, {});
  EXPECT_GE(plan.memory, 4000U * (25 + 44) * 16);
}

TEST(CrossValidate, IsCancelled) {
  const std::vector<double> line(4000, 1);
  const CancelToken cancel;
  const Context ctx = Context::cpu({.threads = 2, .cancel = cancel});
  cancel.cancel();
  try {
    cross_validate(ctx, TableView(line.data(), 4000, 1), labels_of(4000, 2), {});
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
}

TEST(CrossValidate, RefusesOptionsOutsideTheirDomain) {
  const std::vector<double> line = {0, 1, 2, 3, 4, 5};
  const Labels labels = labels_of(6, 2);
  const Context& ctx = context_of(available_isas().front(), 1);
  const auto sentence = [&](const CrossValidateOptions& options) {
    try {
      cross_validate(ctx, TableView(line.data(), 6, 1), labels, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(sentence({.k_to = 2, .folds = 1}), "folds: 1 is not between 2 and the table's 6 rows");
  EXPECT_EQ(sentence({.k_to = 2, .folds = 7}), "folds: 7 is not between 2 and the table's 6 rows");
  EXPECT_EQ(sentence({.k = 0, .k_to = 2, .folds = 2}), "k: 0 is below 1");
  EXPECT_EQ(sentence({.k = 3, .k_to = 2, .folds = 2}), "k_to: 2 is below the 3 to begin with");
  EXPECT_EQ(sentence({.k_to = 4, .folds = 2}),
            "k_to: 4 neighbors are asked for, but only 3 rows lie outside the largest of 2 folds");
  EXPECT_EQ(sentence({.k_to = 3, .folds = 2}), "");
}

}  // namespace
}  // namespace vicinal::contract
