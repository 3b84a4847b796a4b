// Options of k-means that change what it works on, against the reference, bit for bit (contract clause 12): weights of
// 0, k-means||, cosine, mini-batches, and a table larger than the memory limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kmeans_check.hpp"
#include "reference/reference.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

// Rows of weight 0 are rows that are not there, but for their labels.
TEST(KMeans, WeightsOfZero) {
  const Rows rows = make_rows(Family::gaussian, {200, 3, 1}, 21);
  std::vector<double> weights;
  std::vector<double> kept;
  std::vector<double> kept_weights;
  for (std::size_t i = 0; i < 200; ++i) {
    weights.push_back(i < 20 || i % 5 == 2 ? (i % 2 == 0 ? 0.0 : -0.0) : 1 + static_cast<double>(i % 3));
    if (weights.back() == 0) continue;
    kept.insert(kept.end(), rows.table.begin() + static_cast<std::ptrdiff_t>(i * 3),
                rows.table.begin() + static_cast<std::ptrdiff_t>(i * 3 + 3));
    kept_weights.push_back(weights.back());
  }
  const TableView table(rows.table.data(), 200, 3);
  for (const KMeansRule rule : {KMeansRule::settled, KMeansRule::classical}) {
    KMeansOptions options{.clusters = 6, .init = KMeansInit::first_k, .weights = weights, .max_iterations = 4};
    options.rule = rule;
    check_kmeans(table, options, "weights of 0, " + text(options));
    KMeansOptions without = options;
    without.weights = kept_weights;
    for (const Context& ctx : contexts(1)) {
      const KMeans got = kmeans(ctx, table, options);
      const KMeans left =
          kmeans(ctx, TableView(kept.data(), static_cast<std::int64_t>(kept_weights.size()), 3), without);
      EXPECT_TRUE(same_bits(got.centres, left.centres));
      EXPECT_TRUE(same_bits({got.inertia}, {left.inertia}));
      EXPECT_EQ(got.iterations, left.iterations);
      EXPECT_EQ(std::accumulate(got.sizes.begin(), got.sizes.end(), std::int64_t{0}), 200);
      if (rule == KMeansRule::settled) {
        EXPECT_EQ(got.labels, predict(ctx, got, table));
        EXPECT_EQ(score(ctx, got, table, weights), -got.inertia);
      }
    }
  }
  // The plan counts the copy of the rows that are left.
  const Context ctx = contexts(0).front();
  const TableView left(kept.data(), static_cast<std::int64_t>(kept_weights.size()), 3);
  EXPECT_GE(plan_kmeans(ctx, table, {.clusters = 6, .weights = weights}).memory,
            plan_kmeans(ctx, left, {.clusters = 6, .weights = kept_weights}).memory + kept.size() * sizeof(double));
}

// Rows that `farthest` moves in an iteration are not among those that it changed: two of six are in the second one
// here, and the share asked for ends it. With the moved row there would be three, and one iteration more.
TEST(KMeans, MovedRowsAreNoChangedLabels) {
  const std::vector<double> rows = {3, 2, 6, 5, 6, 5, 2, 0, 6, 5, 5, 4};
  const std::vector<double> centres = {9, 1, 3, 0, 9, 2, 6, 1};
  const TableView table(rows.data(), 6, 2);
  KMeansOptions options{.clusters = 4, .init = KMeansInit::given, .centres = TableView(centres.data(), 4, 2)};
  options.changed_share = 2.0 / 6;
  check_kmeans(table, options, "moved rows");
  for (const Context& ctx : contexts(0)) {
    const KMeans got = kmeans(ctx, table, options);
    EXPECT_EQ(got.iterations, 2);
    EXPECT_EQ(name_of(got.stopped), name_of(KMeansStop::changed_share));
  }
}

// The mean of two equal rows of this weight is another float64 than their value. At first no row can fill the empty
// cluster, since its key is 0; in the second iteration one does, and that no label changed ends nothing.
TEST(KMeans, ARowMovedToAnEmptyClusterGoesOn) {
  const std::vector<double> rows = {0.1, 0.1};
  const std::vector<double> weights = {0.1, 0.1};
  const std::vector<double> centres = {0.1, 5};
  const TableView table(rows.data(), 2, 1);
  const KMeansOptions options{
      .clusters = 2, .init = KMeansInit::given, .centres = TableView(centres.data(), 2, 1), .weights = weights};
  check_kmeans(table, options, "filled late");
  for (const Context& ctx : contexts(0)) {
    const KMeans got = kmeans(ctx, table, options);
    EXPECT_GT(got.iterations, 2);
  }
}

// Centers move by 0.25 each, and V is 1: a shift of what the tolerance allows ends it.
TEST(KMeans, AShiftAtTheToleranceEndsIt) {
  const std::vector<double> rows = {-1, -1, 1, 1};
  const std::vector<double> centres = {-1.5, 1.5};
  const TableView table(rows.data(), 4, 1);
  KMeansOptions options{.clusters = 2, .init = KMeansInit::given, .centres = TableView(centres.data(), 2, 1)};
  for (const double tolerance : {0.5, 0.499}) {
    options.tolerance = tolerance;
    check_kmeans(table, options, "shift at the tolerance");
    for (const Context& ctx : contexts(0)) {
      EXPECT_EQ(name_of(kmeans(ctx, table, options).stopped),
                name_of(tolerance == 0.5 ? KMeansStop::shift : KMeansStop::labels));
    }
  }
}

// Rows as far from candidates of two rounds belong to those of the first.
TEST(KMeans, ParallelSeedingOfTies) {
  for (int seed = 0; seed < 40; ++seed) {
    std::vector<double> rows;
    for (int i = 0; i < 60; ++i) rows.push_back((i * 7 + seed) % 13);
    const KMeansOptions options{
        .clusters = 4, .init = KMeansInit::parallel, .seed = static_cast<std::uint64_t>(seed), .max_iterations = 1};
    check_kmeans(TableView(rows.data(), 60, 1), options, "ties");
  }
}

// The centers are the means at once, so that they shift by 0; where the allowed shift is 0, too, labels must settle.
TEST(KMeans, AnAllowedShiftOfZeroEndsNothing) {
  const std::vector<double> rows = {0.03125, 0.0625, 0.125, 0.15625};
  const std::vector<double> centres = {0.046875, 0.140625};
  const TableView table(rows.data(), 4, 1);
  KMeansOptions options{.clusters = 2, .init = KMeansInit::given, .centres = TableView(centres.data(), 2, 1)};
  for (const double tolerance : {0.0, 0x1p-1074, 0x1p-1060}) {  // times V = 0.0024: 0, rounded to 0, above 0
    options.tolerance = tolerance;
    check_kmeans(table, options, "allowed shift of zero");
    const bool above = tolerance == 0x1p-1060;
    for (const Context& ctx : contexts(0)) {
      const KMeans got = kmeans(ctx, table, options);
      EXPECT_EQ(got.iterations, above ? 1 : 2);
      EXPECT_EQ(name_of(got.stopped), name_of(above ? KMeansStop::shift : KMeansStop::labels));
    }
  }
}

// Each round draws next to nothing but the farthest row: there are more rounds until there are enough candidates.
TEST(KMeans, ParallelSeedingOfLeftRows) {
  std::vector<double> rows;
  for (int i = 0; i < 40; ++i) rows.push_back(std::ldexp(1.0, 12 * i));
  const KMeansOptions options{.clusters = 25, .init = KMeansInit::parallel, .max_iterations = 1};
  check_kmeans(TableView(rows.data(), 40, 1), options, "far rows");
}

// Batches smaller and larger than the table, with weights and without, by both metrics, filling clusters or not.
TEST(KMeansMiniBatch, EqualsTheReference) {
  const std::int64_t n = 500;
  const Rows rows = make_rows(Family::clusters_1e2, {n, 4, 1}, 14);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < n; ++i) weights.push_back(i % 6 == 5 ? 0 : 0.3 * static_cast<double>(1 + i % 4));
  std::uint64_t turn = 0;
  for (const std::int64_t batch : {1, 7, 64, 300, 1100}) {
    for (const KMeansInit init : {KMeansInit::random, KMeansInit::first_k, KMeansInit::parallel}) {
      ++turn;
      const Stored stored(rows.table, 4, turn % 3 == 0 ? DType::float64 : DType::float32);
      KMeansOptions options{.clusters = turn % 2 == 0 ? 3 : 21, .init = init, .seed = turn, .max_iterations = 40};
      options.batch_size = batch;
      options.runs = turn % 5 == 0 ? 3 : 1;
      options.history = turn % 3 == 0;
      if (turn % 2 == 0) options.metric = Metric::cosine;
      if (turn % 4 < 2) options.weights = weights;
      if (turn % 3 == 1) options.empty = EmptyClusters::keep;
      check_kmeans(stored.view(), options, "batch of " + std::to_string(batch) + ", " + text(options), turn);
      if (HasFailure()) return;
    }
  }
}

// A given center that no row is near takes the farthest row of the first batch, once.
TEST(KMeansMiniBatch, ClustersWithoutRows) {
  const Rows rows = make_rows(Family::gaussian, {300, 2, 1}, 31);
  const TableView table(rows.table.data(), 300, 2);
  const std::vector<double> centres = {0, 0, 1e6, 1e6, -1e6, 1e6};
  for (const EmptyClusters empty : {EmptyClusters::farthest, EmptyClusters::keep}) {
    KMeansOptions options{.clusters = 3, .init = KMeansInit::given, .centres = TableView(centres.data(), 3, 2)};
    options.empty = empty;
    options.batch_size = 50;
    options.history = true;
    check_kmeans(table, options, text(options));
    const KMeans got = kmeans(contexts(0).front(), table, options);
    EXPECT_EQ(std::count(got.sizes.begin(), got.sizes.end(), 0), empty == EmptyClusters::keep ? 2 : 0);
    EXPECT_EQ(static_cast<std::int64_t>(got.history.size()), got.iterations);
    EXPECT_EQ(predict(contexts(0).front(), got, table), got.labels);
  }
}

TEST(KMeansMiniBatch, EndsWithoutImprovement) {
  const Rows rows = make_rows(Family::clusters_1e2, {5000, 6, 1}, 7);
  const KMeansOptions options{.clusters = 8, .max_iterations = 5000, .batch_size = 256};
  const KMeans got = kmeans(contexts(0).front(), TableView(rows.table.data(), 5000, 6), options);
  EXPECT_EQ(name_of(got.stopped), "no_improvement");
  EXPECT_LT(got.iterations, 5000);
}

// Opposite rows have no mean direction; given centers are brought to length one; far centers have no rows.
TEST(KMeansCosine, EqualsTheReferenceWhereMeansVanish) {
  const std::vector<double> rows = {1, 0, -2, 0, 0, 3, 0, -5, 1e-300, 0, 4, 4, -4e140, 4e140, 0.5, 0.5};
  const std::vector<double> centres = {0, 7, 1e-9, 1e-9, -3, -3.5};
  for (const EmptyClusters empty : {EmptyClusters::farthest, EmptyClusters::keep}) {
    for (const std::int64_t clusters : {1, 2, 3}) {
      KMeansOptions options{.clusters = clusters,
                            .init = KMeansInit::given,
                            .centres = TableView(centres.data(), clusters, 2),
                            .metric = Metric::cosine};
      options.empty = empty;
      options.history = true;
      check_kmeans(TableView(rows.data(), 8, 2), options, text(options));
    }
  }
  const std::vector<double> opposite = {1, 2, -1, -2};
  const std::vector<double> start = {1, 0};
  const KMeans kept = kmeans(
      contexts(0).front(), TableView(opposite.data(), 2, 2),
      {.clusters = 1, .init = KMeansInit::given, .centres = TableView(start.data(), 1, 2), .metric = Metric::cosine});
  EXPECT_EQ(kept.centres, start);
}

TEST(KMeansCosine, DoesNotSeeLengths) {
  const Rows rows = make_rows(Family::gaussian, {300, 5, 1}, 12);
  std::vector<double> scaled = rows.table;
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] = std::ldexp(scaled[i], static_cast<int>(i / 5 % 9) - 4);
  const KMeansOptions options{.clusters = 7, .metric = Metric::cosine, .seed = 3};
  for (const Context& ctx : contexts(2)) {
    const KMeans one = kmeans(ctx, TableView(rows.table.data(), 300, 5), options);
    expect_same(kmeans(ctx, TableView(scaled.data(), 300, 5), options), one, "scaled");
    for (std::int64_t c = 0; c < 7; ++c) {
      double squares = 0;
      for (std::size_t j = 0; j < 5; ++j) {
        const double value = one.centres[static_cast<std::size_t>(c) * 5 + j];
        squares += value * value;
      }
      // A length of five squares: each of some ten roundings moves it by at most half a unit.
      EXPECT_FALSE(!(std::fabs(squares - 1) <= 20 * 0x1p-53));
    }
  }
}

TEST(KMeansCosine, PredictTransformScore) {
  const Rows rows = make_rows(Family::gaussian, {400, 7, 90}, 4);
  const TableView table(rows.table.data(), 400, 7);
  const TableView queries(rows.queries.data(), 90, 7);
  for (const Context& ctx : contexts(3)) {
    const KMeans model = kmeans(ctx, table, {.clusters = 6, .metric = Metric::cosine, .seed = 1});
    EXPECT_EQ(predict(ctx, model, table), model.labels);
    EXPECT_EQ(score(ctx, model, table), -model.inertia);
    const auto labels = predict(ctx, model, queries);
    const auto distances = transform(ctx, model, queries);
    for (std::int64_t i = 0; i < 90; ++i) {
      const double* const row = distances.data() + i * 6;
      EXPECT_EQ(std::min_element(row, row + 6) - row, labels[static_cast<std::size_t>(i)]);
      const auto unit = reference::unit_row({rows.queries.data() + i * 7, 7});
      EXPECT_EQ(row[3], reference::cosine_of_units(unit, std::span(model.centres).subspan(21, 7)));
    }
  }
}

// 84 MB of rows that are made when they are asked for, within 64 MB.
TEST(KMeans, ATableLargerThanTheMemoryLimit) {
  constexpr std::int64_t n = 82000;
  constexpr std::int64_t d = 256;
  constexpr std::uint64_t limit = 64 << 20;
  std::int64_t read = 0;
  std::int64_t most = 0;
  const TableView rows = TableView::blocks(DType::float32, n, d, [&](std::int64_t begin, std::int64_t end, void* to) {
    auto* value = static_cast<float*>(to);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto about = static_cast<float>(i % 3 * 5 + 1);
      for (int j = 0; j < d; ++j) *value++ = about + static_cast<float>((static_cast<int>(i) * j) & 7);
    }
    read += end - begin;
    most = std::max(most, end - begin);
  });
  static_assert(n * d * sizeof(float) > limit);
  std::vector<float> in_memory(static_cast<std::size_t>(n * d));
  rows.source()(0, n, in_memory.data());
  const TableView all(in_memory.data(), n, d);
  const Context wide = Context::cpu({.threads = 2});
  const Context narrow = Context::cpu({.threads = 2, .memory_limit = limit});
  KMeansOptions options{.clusters = 3, .init = KMeansInit::random, .max_iterations = 3};
  for (const std::int64_t batch : {0, 500}) {
    options.batch_size = batch;
    read = most = 0;
    const KMeans got = kmeans(narrow, rows, options);
    EXPECT_GE(read, n);
    EXPECT_LE(static_cast<std::uint64_t>(most * d) * sizeof(float), std::uint64_t{32} << 20);
    EXPECT_LE(got.plan.memory, limit);
    expect_same(got, kmeans(wide, all, options), "within the limit");
    EXPECT_EQ(predict(narrow, got, rows), got.labels);
  }
  // What needs a copy of the rows says so before it reads any.
  read = 0;
  options.metric = Metric::cosine;
  try {
    kmeans(narrow, rows, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
  }
  EXPECT_EQ(read, 0);
}

}  // namespace
}  // namespace vicinal::contract
