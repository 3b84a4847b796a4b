// Scores of classes, values, outliers and clusters against the reference (contract clause 21): counts, exact sums,
// ties, what is undefined; the same bits on every context; and what is refused.
#include "vicinal/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "extremes.hpp"
#include "reference/metrics.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

/// Codes from `least` on; `step` makes other ones.
std::vector<std::int32_t> codes(std::int64_t rows, std::int32_t classes, std::int32_t least, std::int64_t step) {
  std::vector<std::int32_t> made;
  for (std::int64_t i = 0; i < rows; ++i) {
    made.push_back(static_cast<std::int32_t>((i * 48271 + i * i * step) % 1009 % (classes - least)) + least);
  }
  return made;
}

void expect_same_points(const PrecisionRecall& a, const PrecisionRecall& b, const std::string& what) {
  EXPECT_EQ(a.precision, b.precision) << what;
  EXPECT_EQ(a.recall, b.recall) << what;
  EXPECT_EQ(a.f1, b.f1) << what;
}

TEST(ClassificationScores, EqualTheReference) {
  for (const std::int64_t rows : {1, 7, 500}) {
    for (const std::int32_t classes : {1, 2, 3, 40}) {
      const std::string what = std::to_string(rows) + " rows, " + std::to_string(classes) + " classes";
      const auto truth = codes(rows, classes, 0, 3);
      const auto predicted = codes(rows, classes, -1, 5);
      const ClassificationScores found = classification_scores(on(1), truth, predicted, classes);
      const ClassificationScores wanted = reference::classification_scores(truth, predicted, classes);
      EXPECT_EQ(found.rows, rows) << what;
      EXPECT_EQ(found.correct, wanted.correct) << what;
      EXPECT_EQ(found.accuracy, wanted.accuracy) << what;
      expect_same_points(found.macro, wanted.macro, what + ", macro");
      expect_same_points(found.weighted, wanted.weighted, what + ", weighted");
      EXPECT_EQ(found.kappa, wanted.kappa) << what;
      EXPECT_EQ(found.matthews, wanted.matthews) << what;
      ASSERT_EQ(found.classes.size(), wanted.classes.size()) << what;
      for (std::size_t c = 0; c < found.classes.size(); ++c) {
        EXPECT_EQ(found.classes[c].support, wanted.classes[c].support) << what;
        EXPECT_EQ(found.classes[c].predicted, wanted.classes[c].predicted) << what;
        EXPECT_EQ(found.classes[c].correct, wanted.classes[c].correct) << what;
        expect_same_points(found.classes[c], wanted.classes[c], what);
      }
      EXPECT_EQ(confusion_matrix(on(1), truth, predicted, classes),
                reference::confusion_matrix(truth, predicted, classes))
          << what;
    }
  }
}

TEST(ClassificationScores, ClassesThatDoNotOccurHaveZerosAndNoWeight) {
  const std::vector<std::int32_t> truth = {0, 0, 2, 2};
  const std::vector<std::int32_t> predicted = {0, 1, 2, -1};
  const ClassificationScores found = classification_scores(on(1), truth, predicted, 4);
  EXPECT_EQ(found.accuracy, 0.5);
  EXPECT_EQ(found.classes[1].precision, 0);
  EXPECT_EQ(found.classes[1].recall, 0);
  EXPECT_EQ(found.classes[3].f1, 0);
  EXPECT_EQ(found.macro.precision, 1);
  EXPECT_EQ(found.macro.recall, 0.5);
  EXPECT_EQ(found.weighted.precision, 1);
}

TEST(ClassificationScores, OfOneClassHaveNoKappa) {
  const std::vector<std::int32_t> same(5, 1);
  EXPECT_FALSE(classification_scores(on(1), same, same, 2).kappa.has_value());
  EXPECT_EQ(classification_scores(on(1), same, same, 2).matthews, 0);
  const std::vector<std::int32_t> truth = {0, 1, 1, 0};
  EXPECT_EQ(classification_scores(on(1), truth, truth, 2).kappa, 1);
  EXPECT_EQ(classification_scores(on(1), truth, truth, 2).matthews, 1);
  const std::vector<std::int32_t> turned = {1, 0, 0, 1};
  EXPECT_EQ(classification_scores(on(1), truth, turned, 2).kappa, -1);
  EXPECT_EQ(classification_scores(on(1), truth, turned, 2).matthews, -1);
}

TEST(ClassificationScores, RefuseWhatIsNoCode) {
  const auto bad = ErrorCode::invalid_argument;
  const std::vector<std::int32_t> some = {0, 1, 1};
  const std::vector<std::int32_t> fewer = {0, 1};
  const std::vector<std::int32_t> none;
  const std::vector<std::int32_t> beyond = {0, 2, 1};
  const std::vector<std::int32_t> negative = {0, -1, 1};
  const std::vector<std::int32_t> more_negative = {0, -2, 1};
  const auto asking = [](const auto& truth, const auto& predicted, std::int64_t classes) {
    return [&, classes] { classification_scores(on(1), truth, predicted, classes); };
  };
  refused(asking(some, some, 0), bad, "class_count: is 0");
  refused(asking(some, some, std::int64_t{1} << 31), bad, "class_count: is 2147483648");
  refused(asking(none, none, 2), bad, "truth: has no rows");
  refused(asking(some, fewer, 2), bad, "predicted: has 2 rows, but truth has 3");
  refused(asking(beyond, some, 2), bad, "truth: row 1 has code 2");
  refused(asking(negative, some, 2), bad, "truth: row 1 has code -1");
  refused(asking(some, beyond, 2), bad, "predicted: row 1 has code 2");
  refused(asking(some, more_negative, 2), bad, "predicted: row 1 has code -2");
  refused([&] { confusion_matrix(on(1), beyond, some, 2); }, bad, "truth: row 1 has code 2");
  const Context small = Context::cpu({.threads = 1, .memory_limit = 1000});
  refused([&] { classification_scores(small, some, some, 100); }, ErrorCode::over_memory, "classification_scores");
  refused([&] { confusion_matrix(small, some, some, 12); }, ErrorCode::over_memory, "confusion_matrix");
  refused([&] { confusion_matrix(on(1), some, some, (std::int64_t{1} << 31) - 1); }, ErrorCode::over_memory, "");
}

/// Rows of which every fifth is positive, or none or all are; scores of few to many values, infinite ones and both
/// zeros among them.
struct Ranked {
  std::vector<std::int32_t> truth;
  std::vector<double> scores;

  Ranked(std::int64_t rows, int values) {
    for (std::int64_t i = 0; i < rows; ++i) {
      truth.push_back(i % 5 == 1 ? 1 : 0);
      const auto x = static_cast<double>(i * 48271 % 1009 % values);
      scores.push_back(i % 11 == 3 ? kInfinity : i % 13 == 4 ? -kInfinity : i % 17 == 5 ? -0.0 : x / 7);
    }
  }
};

TEST(RankingScores, EqualTheReference) {
  for (const std::int64_t rows : {2, 3, 9, 300}) {
    for (const int values : {1, 3, 1000}) {  // distinct scores: mass ties, some, hardly any
      const auto [truth, scores] = Ranked(rows, values);
      const std::string what = std::to_string(rows) + " rows, " + std::to_string(values) + " values";
      EXPECT_EQ(roc_auc_score(on(1), truth, scores), reference::roc_auc_score(truth, scores)) << what;
      EXPECT_EQ(average_precision_score(on(1), truth, scores), reference::average_precision_score(truth, scores))
          << what;
      for (std::int64_t n = 0; n <= rows; n += 1 + rows / 9) {
        EXPECT_EQ(precision_at_n_score(on(1), truth, scores, n), reference::precision_at_n_score(truth, scores, n))
            << what << ", n " << n;
      }
      for (const bool drop : {false, true}) {
        const RocCurve found = roc_curve(on(1), truth, scores, drop);
        const RocCurve wanted = reference::roc_curve(truth, scores, drop);
        EXPECT_TRUE(same_bits(found.false_positive_rates, wanted.false_positive_rates)) << what;
        EXPECT_TRUE(same_bits(found.true_positive_rates, wanted.true_positive_rates)) << what;
        EXPECT_TRUE(same_bits(found.thresholds, wanted.thresholds)) << what;
      }
    }
  }
}

TEST(RankingScores, OfFourRows) {
  const std::vector<std::int32_t> truth = {0, 1, 0, 1};
  const std::vector<double> scores = {1, 2, 3, 4};
  EXPECT_EQ(roc_auc_score(on(1), truth, scores), 0.75);
  EXPECT_EQ(average_precision_score(on(1), truth, scores), (1 + 2.0 / 3) / 2);
  EXPECT_EQ(precision_at_n_score(on(1), truth, scores), 0.5);
  EXPECT_EQ(precision_at_n_score(on(1), truth, scores, 1), 1);
  const RocCurve curve = roc_curve(on(1), truth, scores);
  EXPECT_EQ(curve.false_positive_rates, (std::vector<double>{0, 0, 0.5, 0.5, 1}));
  EXPECT_EQ(curve.true_positive_rates, (std::vector<double>{0, 0.5, 0.5, 1, 1}));
  EXPECT_EQ(curve.thresholds, (std::vector<double>{kInfinity, 4, 3, 2, 1}));
}

TEST(RankingScores, OfOneScoreAreThoseOfARandomOrder) {
  const std::vector<std::int32_t> truth = {0, 1, 0, 1, 0};
  const std::vector<double> same(5, 3);
  EXPECT_EQ(roc_auc_score(on(1), truth, same), 0.5);
  EXPECT_EQ(average_precision_score(on(1), truth, same), 0.4);
  EXPECT_EQ(precision_at_n_score(on(1), truth, same), 0.4);
  EXPECT_EQ(precision_at_n_score(on(1), truth, same, 3), 0.4);
  EXPECT_EQ(roc_curve(on(1), truth, same).true_positive_rates, (std::vector<double>{0, 1}));
}

TEST(RankingScores, AreRefusedWhereThereIsNothingToRank) {
  const std::vector<double> scores = {1, 2, 3};
  const std::vector<std::int32_t> truth = {0, 1, 0};
  const std::vector<std::int32_t> normal = {0, 0, 0};
  const std::vector<std::int32_t> outliers = {1, 1, 1};
  const std::vector<std::int32_t> twos = {0, 2, 0};
  const std::vector<double> nan = {1, 2, std::nan("")};
  const std::vector<double> fewer = {1, 2};
  using Truth = std::span<const std::int32_t>;
  using Scores = std::span<const double>;
  struct Score {
    const char* name;
    std::function<void(const Context&, Truth, Scores)> call;
    bool of_pairs;
  };
  for (const Score& one : std::vector<Score>{
           {"roc_auc_score", [](const auto&... given) { (void)roc_auc_score(given...); }, true},
           {"roc_curve", [](const auto&... given) { (void)roc_curve(given...); }, true},
           {"average_precision_score", [](const auto&... given) { (void)average_precision_score(given...); }, false},
           {"precision_at_n_score", [](const auto&... given) { (void)precision_at_n_score(given...); }, false}}) {
    const auto asking = [&one](Truth t, Scores s, std::uint64_t limit = 0) {
      return [&one, t, s, limit] { one.call(Context::cpu({.threads = 1, .memory_limit = limit}), t, s); };
    };
    refused(asking(normal, scores), ErrorCode::bad_data, "truth: has no positive row");
    refused(asking({}, {}), ErrorCode::bad_data, "truth: has no positive row");
    refused(asking(truth, nan), ErrorCode::bad_data, "scores: row 2 is NaN");
    refused(asking(truth, fewer), ErrorCode::invalid_argument, "scores: has 2 rows");
    refused(asking(twos, scores), ErrorCode::invalid_argument, "truth: row 1 is 2");
    refused(asking(truth, scores, 40), ErrorCode::over_memory, one.name);
    if (one.of_pairs) {
      refused(asking(outliers, scores), ErrorCode::bad_data, "truth: has no negative row");
    } else {
      asking(outliers, scores)();
    }
  }
  refused([&] { precision_at_n_score(on(1), truth, scores, 4); }, ErrorCode::invalid_argument, "n: is 4");
  refused([&] { precision_at_n_score(on(1), truth, scores, -1); }, ErrorCode::invalid_argument, "n: is -1");
}

void check_scores(const ClusteringScores& found, const ClusteringScores& wanted, const std::string& what) {
  EXPECT_EQ(found.adjusted_rand, wanted.adjusted_rand) << what;
  EXPECT_EQ(found.normalized_mutual_info, wanted.normalized_mutual_info) << what;
  EXPECT_EQ(found.homogeneity, wanted.homogeneity) << what;
  EXPECT_EQ(found.completeness, wanted.completeness) << what;
  EXPECT_EQ(found.v_measure, wanted.v_measure) << what;
}

TEST(ClusteringScores, EqualTheReference) {
  for (const std::int64_t rows : {1, 2, 7, 500}) {
    for (const std::int32_t classes : {1, 2, 3, 40}) {
      for (const std::int32_t clusters : {1, 2, 5, 300}) {
        const auto truth = codes(rows, classes, 0, 3);
        const auto predicted = codes(rows, clusters, 0, 5);
        const std::string what = std::to_string(rows) + " rows, " + std::to_string(classes) + " classes, " +
                                 std::to_string(clusters) + " clusters";
        const Labeling a{truth, classes + 1};  // there may be labels without rows
        const Labeling b{predicted, clusters + 3};
        const ClusteringScores found = clustering_scores(on(1), a, b);
        check_scores(found, reference::clustering_scores(a, b), what);
        const ClusteringScores turned = clustering_scores(on(1), b, a);
        EXPECT_EQ(turned.adjusted_rand, found.adjusted_rand) << what;
        EXPECT_EQ(turned.homogeneity, found.completeness) << what;
        EXPECT_EQ(turned.completeness, found.homogeneity) << what;
        EXPECT_EQ(turned.v_measure, found.v_measure) << what;
        for (const double one : {found.homogeneity, found.completeness, found.v_measure}) {
          EXPECT_TRUE(one >= 0 && one <= 1) << what << ": " << one;
        }
        EXPECT_TRUE(found.adjusted_rand >= -0.5 && found.adjusted_rand <= 1) << what << ": " << found.adjusted_rand;
      }
    }
  }
}

TEST(ClusteringScores, OfTheSameClustersAreOne) {
  const auto truth = codes(500, 7, 0, 3);
  std::vector<std::int32_t> renamed;
  for (const std::int32_t one : truth) renamed.push_back(6 - one);
  check_scores(clustering_scores(on(1), {truth, 7}, {renamed, 7}), {1, 1, 1, 1, 1}, "renamed");
  std::vector<std::int32_t> own;
  for (std::int32_t i = 0; i < 500; ++i) own.push_back(i);
  const std::vector<std::int32_t> all(500, 0);
  check_scores(clustering_scores(on(1), {own, 500}, {own, 500}), {1, 1, 1, 1, 1}, "each alone");
  check_scores(clustering_scores(on(1), {all, 1}, {all, 1}), {1, 1, 1, 1, 1}, "all together");
  check_scores(clustering_scores(on(1), {all, 1}, {own, 500}), {0, 0, 1, 0, 0}, "one class, each alone");
  EXPECT_EQ(clustering_scores(on(1), {truth, 7}, {own, 500}).homogeneity, 1);
}

TEST(ClusteringScores, RefuseWhatIsNoLabel) {
  const auto bad = ErrorCode::invalid_argument;
  const std::vector<std::int32_t> some = {0, 1, 1};
  const std::vector<std::int32_t> fewer = {0, 1};
  const std::vector<std::int32_t> negative = {0, -1, 1};
  const auto asking = [](const Labeling& truth, const Labeling& predicted, std::uint64_t limit = 0) {
    return [truth, predicted, limit] {
      (void)clustering_scores(Context::cpu({.threads = 1, .memory_limit = limit}), truth, predicted);
    };
  };
  refused(asking({}, {}), bad, "truth: has no rows");
  refused(asking({some, 2}, {fewer, 2}), bad, "predicted: has 2 rows, but truth has 3");
  refused(asking({some, 1}, {some, 2}), bad, "truth: row 1 has label 1, must be from 0 to 0");
  refused(asking({some, 2}, {negative, 2}), bad, "predicted: row 1 has label -1");
  refused(asking({some, 0}, {some, 2}), bad, "truth: has 0 clusters");
  refused(asking({some, 2}, {some, std::int64_t{1} << 31}), bad, "predicted: has 2147483648 clusters");
  refused(asking({some, 2}, {some, 100}, 800), ErrorCode::over_memory, "clustering_scores");
}

TEST(RegressionScores, EqualTheReferenceForValuesOfVeryDifferentSizes) {
  for (const std::int64_t outputs : {1, 3}) {
    for (const std::int64_t rows : {1, 2, 400}) {
      std::vector<double> truth;
      std::vector<double> predicted;
      for (std::int64_t i = 0; i < rows * outputs; ++i) {
        const double size = std::pow(10.0, static_cast<double>(i % 19) - 9);
        truth.push_back(static_cast<double>(i * 48271 % 1009 - 500) * size);
        predicted.push_back(truth.back() + static_cast<double>(i * 7919 % 101 - 50) * size / 64);
      }
      const auto found = regression_scores(on(1), truth, predicted, outputs);
      ASSERT_EQ(found.size(), static_cast<std::size_t>(outputs));
      for (std::int64_t o = 0; o < outputs; ++o) {
        std::vector<double> t;
        std::vector<double> p;
        for (std::int64_t i = o; i < rows * outputs; i += outputs) {
          t.push_back(truth[static_cast<std::size_t>(i)]);
          p.push_back(predicted[static_cast<std::size_t>(i)]);
        }
        const RegressionScore wanted = reference::regression_score(t, p);
        const RegressionScore& one = found[static_cast<std::size_t>(o)];
        EXPECT_EQ(one.root_mean_squared_error, wanted.root_mean_squared_error);
        EXPECT_EQ(one.mean_absolute_error, wanted.mean_absolute_error);
        EXPECT_EQ(one.max_error, wanted.max_error);
        EXPECT_EQ(one.r2, wanted.r2);
        EXPECT_EQ(one.r2.has_value(), rows > 1);
      }
    }
  }
}

TEST(RegressionScores, RefuseWhatIsNotFiniteOrOverflows) {
  const std::vector<double> truth = {1, 2, 3, 4, 5, 6};
  std::vector<double> predicted = truth;
  const auto bad = ErrorCode::invalid_argument;
  refused([&] { regression_scores(on(1), truth, predicted, 0); }, bad, "outputs: is 0");
  refused([&] { regression_scores(on(1), truth, predicted, 4); }, bad, "no multiple of 4 outputs");
  refused([&] { regression_scores(on(1), {}, {}); }, bad, "truth: has no rows");
  refused([&] { regression_scores(on(1), truth, std::span(predicted).first(5)); }, bad, "predicted: has 5 values");
  predicted[3] = kInfinity;
  refused([&] { regression_scores(on(1), truth, predicted, 2); }, ErrorCode::bad_data, "predicted: row 1, output 1 is");
  refused([&] { regression_scores(on(1), predicted, truth, 2); }, ErrorCode::bad_data, "truth: row 1, output 1 is");
  predicted[3] = 1e200;
  refused([&] { regression_scores(on(1), truth, predicted, 2); }, ErrorCode::bad_data, "sums of output 1 overflow");
  const std::vector<double> huge = {1.5e308, 1.5e308};
  refused([&] { regression_scores(on(1), huge, huge); }, ErrorCode::bad_data, "sums of output 0 overflow");
  const std::vector<double> near = {1e-150, -1e-150};
  const std::vector<double> far = {1e150, 1e150};
  EXPECT_EQ(regression_scores(on(1), near, far)[0].r2, -kInfinity);
}

struct Clustering {
  std::vector<double> rows;
  std::int64_t d = 0;
  std::vector<std::int32_t> labels;
  std::int64_t clusters = 0;
  [[nodiscard]] TableView view() const { return {rows.data(), static_cast<std::int64_t>(labels.size()), d}; }
  [[nodiscard]] Labeling labeling() const { return {labels, clusters}; }
};

/// The last cluster has no rows, the one before a single one.
Clustering clustering_of(Family family, std::int64_t n, std::int64_t d, std::int32_t clusters) {
  Clustering made{make_rows(family, {n, d, 1}, 5).table, d, codes(n, clusters, 0, 7), clusters + 2};
  made.labels[static_cast<std::size_t>(n / 2)] = clusters;
  return made;
}

void check_silhouette(const SilhouetteScores& found, const SilhouetteScores& wanted, const std::string& what) {
  EXPECT_TRUE(same_bits(found.samples, wanted.samples)) << what;
  EXPECT_TRUE(same_bits(found.clusters, wanted.clusters)) << what;
  EXPECT_EQ(found.sizes, wanted.sizes) << what;
  EXPECT_EQ(found.mean, wanted.mean) << what;
  for (const double one : found.samples) EXPECT_TRUE(one >= -1 && one <= 1) << what << ": " << one;
}

TEST(SilhouetteScores, EqualTheReferenceForEveryFamily) {
  for (const Family family :
       {Family::gaussian, Family::integer_ties, Family::duplicates, Family::constant, Family::huge, Family::subnormal,
        Family::column_scales, Family::zero_rows, Family::mostly_duplicates}) {
    const Clustering given = clustering_of(family, 307, 5, 4);
    const SilhouetteScores wanted = reference::silhouette_scores(given.view(), given.labeling(), {});
    for (const Context& ctx : contexts(1)) {
      check_silhouette(
          silhouette_scores(ctx, given.view(), given.labeling()), wanted,
          std::string(name_of(family)) + ", " + ctx.device() + ", threads " + std::to_string(ctx.threads()));
    }
  }
}

TEST(SilhouetteScores, EqualTheReferenceForEveryMetric) {
  const Clustering given = clustering_of(Family::zero_rows, 150, 3, 3);
  for (const Metric metric : {Metric::sqeuclidean, Metric::cosine, Metric::manhattan, Metric::chebyshev,
                              Metric::minkowski, Metric::hamming}) {
    const SilhouetteOptions options{.metric = metric, .p = 3};
    const SilhouetteScores wanted = reference::silhouette_scores(given.view(), given.labeling(), options);
    for (const Context& ctx : contexts(2)) {
      check_silhouette(silhouette_scores(ctx, given.view(), given.labeling(), options), wanted,
                       std::string(name_of(metric)));
    }
  }
}

TEST(SilhouetteScores, OfEveryLayoutAndType) {
  const Clustering given = clustering_of(Family::images, 120, 7, 3);
  for (const DType dtype : {DType::uint8, DType::float16, DType::float32, DType::float64}) {
    const Stored plain(given.rows, given.d, dtype);
    const SilhouetteScores wanted = reference::silhouette_scores(plain.view(), given.labeling(), {});
    for (int layout = 0; layout < kLayouts; ++layout) {
      const Stored stored(given.rows, given.d, dtype, static_cast<Layout>(layout));
      check_silhouette(silhouette_scores(on(2), stored.view(), given.labeling()), wanted,
                       std::string(name_of(static_cast<Layout>(layout))));
    }
  }
}

TEST(SilhouetteScores, OfSeveralLabelingsAreThoseOfEach) {
  const Clustering given = clustering_of(Family::gaussian, 530, 4, 3);  // more than one block
  const std::vector<std::int32_t> others = codes(530, 9, 0, 11);
  const std::vector<Labeling> labelings = {given.labeling(), {others, 9}};
  const auto found = silhouette_scores(on(3), given.view(), labelings);
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    check_silhouette(found[i], reference::silhouette_scores(given.view(), labelings[i], {}), std::to_string(i));
  }
}

TEST(SilhouetteScores, OfOneClusterHaveNoMean) {
  Clustering given = clustering_of(Family::gaussian, 20, 2, 1);
  given.labels.assign(20, 2);
  const SilhouetteScores found = silhouette_scores(on(2), given.view(), given.labeling());
  EXPECT_FALSE(found.mean.has_value());
  EXPECT_EQ(found.samples, std::vector<double>(20, 0.0));
  EXPECT_EQ(found.clusters, std::vector<double>(3, 0.0));
  EXPECT_EQ(found.sizes, (std::vector<std::int64_t>{0, 0, 20}));
  const std::vector<std::int32_t> one = {0};
  EXPECT_FALSE(silhouette_scores(on(1), given.view().slice(0, 1), {one, 1}).mean.has_value());
}

TEST(SilhouetteScores, RefuseLabelsMetricsAndValues) {
  Clustering given = clustering_of(Family::gaussian, 60, 3, 3);
  const auto bad = ErrorCode::invalid_argument;
  const auto asking = [&](const Labeling& labeling, const SilhouetteOptions& options = {}) {
    return [&given, labeling, options] { silhouette_scores(on(2), given.view(), labeling, options); };
  };
  refused(asking(given.labeling(), {.metric = Metric::inner_product}), bad, "metric: inner_product");
  refused(asking(given.labeling(), {.metric = Metric::minkowski, .p = 0.5}), bad, "p: ");
  refused(asking({given.labels, 3}), bad, "labelings: number 0 has label 3 at row 30");
  refused(asking({given.labels, 0}), bad, "has 0 clusters");
  refused(asking({std::span(given.labels).first(59), 5}), bad, "has 59 labels, but the table has 60 rows");
  refused([&] { silhouette_scores(on(2), given.view(), std::vector<Labeling>{}); }, bad, "labelings: there are none");
  refused([&] { silhouette_scores(on(2), TableView{}, given.labeling()); }, bad, "table");
  refused(
      [&] { silhouette_scores(Context::cpu({.threads = 2, .memory_limit = 3000}), given.view(), given.labeling()); },
      ErrorCode::over_memory, "silhouette_scores");
  refused([&] { silhouette_bytes(on(2), given.view(), 0, 3); }, bad, "labelings: is 0");
  refused([&] { silhouette_bytes(on(2), given.view(), 1, 0); }, bad, "clusters: is 0");
  constexpr std::int64_t kMany = std::int64_t{1} << 31;
  refused([&] { silhouette_bytes(on(2), given.view(), 1, kMany); }, bad, "clusters: is 2147483648");
  refused(asking({given.labels, kMany}), bad, "has 2147483648 clusters");
  EXPECT_EQ(silhouette_bytes(on(2), given.view(), kMany - 1, kMany - 1), std::numeric_limits<std::uint64_t>::max());
  given.rows[31] = std::nan("");
  refused(asking(given.labeling()), ErrorCode::bad_data, "row 10, column 1");
  given.rows[31] = 1e200;
  refused(asking(given.labeling()), ErrorCode::bad_data, "overflows float64");
  given.rows.assign(given.rows.size(), 0);
  for (std::size_t i = 0; i < 30; ++i) given.rows[3 * i] = 1.7e308;
  refused(asking(given.labeling(), {.metric = Metric::manhattan}), ErrorCode::bad_data, "sum of the distances of row");
}

TEST(SilhouetteScores, TakeNoMoreThanTheySay) {
  const Clustering given = clustering_of(Family::gaussian, 600, 3, 3);
  const std::uint64_t bytes = silhouette_bytes(on(2), given.view(), 1, given.clusters);
  const Context enough = Context::cpu({.threads = 2, .memory_limit = bytes});
  EXPECT_TRUE(silhouette_scores(enough, given.view(), given.labeling()).mean.has_value());
  const Context short_by_one = Context::cpu({.threads = 2, .memory_limit = bytes - 1});
  refused([&] { silhouette_scores(short_by_one, given.view(), given.labeling()); }, ErrorCode::over_memory, "");
}

TEST(SilhouetteScores, StopWhenTheyAreCancelled) {
  const Clustering given = clustering_of(Family::gaussian, 3000, 3, 3);
  const CancelToken token;
  CpuOptions options{.threads = 2, .cancel = token};
  options.progress = [&](std::string_view at, double) {
    if (at == "silhouettes") token.cancel();
  };
  refused([&] { silhouette_scores(Context::cpu(options), given.view(), given.labeling()); }, ErrorCode::cancelled, "");
}

}  // namespace
}  // namespace vicinal::contract
