// k-means with so many centers that an int8 screen labels rows, against the reference, bit for bit (contract clause
// 12): every family, weights, ties, equal centers, empty clusters, cosine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "kmeans_check.hpp"
#include "reference/kmeans_steps.hpp"
#include "reference/reference.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/kmeans_steps.hpp"

namespace vicinal::contract {
namespace {

constexpr std::int64_t kCentres = 260;
constexpr int kSteps = 6;

bool may_be_clustered(const std::vector<double>& rows, std::int64_t d, bool cosine) {
  double most = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!(std::fabs(rows[i]) < 0x1p500)) return false;
    most = std::max(most, std::fabs(rows[i]));
    if ((i + 1) % static_cast<std::size_t>(d) != 0) continue;
    if (cosine && most == 0) return false;
    most = 0;
  }
  return true;
}

TEST(KMeansManyCentres, EqualTheReferenceOnEveryFamily) {
  const Shape shape = {700, 18, 1};
  std::vector<double> weights;
  for (std::int64_t i = 0; i < shape.n; ++i) weights.push_back(i % 11 == 4 ? 0 : 0.3 * static_cast<double>(1 + i % 4));
  for (int i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    const auto turn = static_cast<std::uint64_t>(i);
    if (is_left_out(turn)) continue;
    const DType dtype = i % 3 == 0 ? DType::float64 : DType::float32;
    const Stored stored(make_rows(family, shape, 5).table, shape.d, dtype, Layout::contiguous);
    KMeansOptions options;
    options.clusters = kCentres;
    options.init = i % 2 == 0 ? KMeansInit::random : KMeansInit::first_k;
    options.seed = turn;
    options.max_iterations = 5;
    options.tolerance = 0;
    options.empty = i % 5 == 0 ? EmptyClusters::keep : EmptyClusters::farthest;
    if (i % 4 == 1) options.weights = weights;
    if (i % 4 == 2) options.metric = Metric::cosine;
    if (!may_be_clustered(reference::widen(stored.view()), shape.d, options.metric == Metric::cosine)) continue;
    check_kmeans(stored.view(), options, std::string(name_of(family)) + " " + text(options), turn);
    if (HasFailure()) return;
  }
}

// Enough iterations for pauses of the int8 screen, which most of these rows leave with too many centers; clusters of a
// few rows make scales of their own. Whether there was a pause no result tells.
TEST(KMeansManyCentres, EqualTheReferenceOverPausesOfTheScreen) {
  std::uint64_t turn = 3;
  for (const Family family : {Family::gaussian, Family::outliers, Family::clusters_1e2}) {
    const Shape shape = {900, 40, 1};
    const Stored stored(make_rows(family, shape, 6).table, shape.d, DType::float32, Layout::contiguous);
    KMeansOptions options;
    options.clusters = 256;
    options.init = KMeansInit::first_k;
    options.max_iterations = 14;
    options.tolerance = 0;
    check_kmeans(stored.view(), options, std::string(name_of(family)), turn++);
    if (HasFailure()) return;
  }
}

// On both sides of the limits of the screen: its fewest columns and its fewest centers.
TEST(KMeansManyCentres, EqualTheReferenceWhereTheScreenBegins) {
  std::uint64_t turn = 0;
  for (const std::int64_t d : {15, 16}) {
    for (const std::int64_t clusters : {255, 256, 257}) {
      const Shape shape = {600, d, 1};
      const Stored stored(make_rows(Family::gaussian, shape, 7).table, d, DType::float32, Layout::contiguous);
      KMeansOptions options;
      options.clusters = clusters;
      options.init = KMeansInit::random;
      options.seed = turn;
      options.max_iterations = 4;
      options.tolerance = 0;
      check_kmeans(stored.view(), options, text(options) + " of " + std::to_string(d) + " columns", turn++);
      if (HasFailure()) return;
    }
  }
}

// So many centers that a device asks, once few labels change, only whether each row keeps its own.
TEST(KMeansManyCentres, RowsThatKeepTheirLabels) {
  std::uint64_t turn = 0;
  for (const Family family : {Family::gaussian, Family::integer_ties, Family::clusters_1e6}) {
    ++turn;
    if (is_left_out(turn)) continue;
    const Stored stored(make_rows(family, {5300, 9, 1}, turn).table, 9, DType::float32, Layout::contiguous);
    KMeansOptions options;
    options.clusters = 4100;
    options.init = KMeansInit::random;
    options.seed = turn;
    options.max_iterations = 5;
    options.tolerance = 0;
    options.empty = EmptyClusters::keep;
    check_kmeans(stored.view(), options, std::string(name_of(family)) + " " + text(options), turn);
    if (HasFailure()) return;
  }
}

// Rows beside the middle of two centers, some of which are also another center: ties, which the smaller id takes, also
// after a step has given rows to the larger.
void check_ties(std::int64_t n, std::int64_t distinct, std::int64_t d) {
  std::vector<double> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      rows.push_back(j == i % d ? static_cast<double>(i % 160) : static_cast<double>(i / 160 * 3 + j % 2));
    }
  }
  const TableView table(rows.data(), n, d);
  const std::int64_t k = distinct + 20;
  std::vector<double> centres;
  for (std::int64_t c = 0; c < k; ++c) {
    const std::int64_t of = 2 * (c < distinct ? c : c - distinct);
    centres.insert(centres.end(), rows.begin() + of * d, rows.begin() + (of + 1) * d);
  }
  const KMeansStepsOptions options{.clusters = k};
  // Rows to a center that is equal to their own, and other rows to any.
  const auto after = [&](auto& steps, int step) {
    for (std::int32_t c = 0; c < 20; ++c) {
      const std::int64_t row = c % 2 == 0 ? std::int64_t{2} * c : std::int64_t{30} * c + step;
      steps.move_row(row, static_cast<std::int32_t>(distinct) + c);
    }
    if (step >= 3) steps.means();
  };
  reference::Steps expected(table, options);
  expected.start(TableView(centres.data(), k, d));
  std::vector<std::vector<std::int32_t>> labels;
  for (int step = 0; step < kSteps; ++step) {
    expected.assign();
    labels.emplace_back(expected.labels().begin(), expected.labels().end());
    after(expected, step);
  }
  for (const Context& ctx : contexts(1)) {
    KMeansSteps got(ctx, table, options);
    got.start(TableView(centres.data(), k, d));
    for (int step = 0; step < kSteps; ++step) {
      got.assign();
      const auto now = got.labels();
      ASSERT_EQ(std::vector<std::int32_t>(now.begin(), now.end()), labels[static_cast<std::size_t>(step)])
          << ctx.device() << ", step " << step << ", rows " << n;
      after(got, step);
    }
    EXPECT_TRUE(same_bits(got.centres(), expected.centres()));
  }
}

TEST(KMeansManyCentres, TiesGoToTheSmallestOfEqualCenters) {
  check_ties(640, 280, 16);
}

// The same with so many centers that a device asks whether rows keep their labels.
TEST(KMeansManyCentres, TiesOfRowsThatKeepTheirLabels) {
  check_ties(8300, 4100, 9);
}

// The int8 screen is memory for speed: a job that fits without it is not refused.
TEST(KMeansManyCentres, AreNotScreenedWhereMemoryIsScarce) {
  const Shape shape = {1500, 40, 1};
  const Stored stored(make_rows(Family::gaussian, shape, 2).table, shape.d, DType::float32, Layout::contiguous);
  const KMeansOptions options{.clusters = kCentres, .init = KMeansInit::first_k, .max_iterations = 3};
  const Context wide = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{1} << 30});
  const std::uint64_t with = plan_kmeans(wide, stored.view(), options).memory;
  const Context narrow = Context::cpu({.threads = 2, .memory_limit = with - 1});
  KMeansOptions fewer = options;
  fewer.clusters = 255;
  if (with - plan_kmeans(wide, stored.view(), fewer).memory < 1500U * 56) {
    GTEST_SKIP() << "this processor has no int8 screen";
  }
  EXPECT_LE(plan_kmeans(narrow, stored.view(), options).memory, with - 1500U * 56);
  EXPECT_EQ(plan_kmeans(wide, stored.view(), options).screens, "int8, float32");
  EXPECT_EQ(plan_kmeans(narrow, stored.view(), options).screens, "float32");
  EXPECT_EQ(plan_kmeans(wide, stored.view(), fewer).screens, "float32");
  expect_same(kmeans(narrow, stored.view(), options), kmeans(wide, stored.view(), options), "scarce memory");
}

}  // namespace
}  // namespace vicinal::contract
