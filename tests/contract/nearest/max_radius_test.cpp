// knn with max_radius (contract clause 2): the first k of each list within the radius, for every method and on the
// device, where lists end before, at and after k.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "contexts.hpp"
#include "data.hpp"
#include "reference/reference.hpp"
#include "refused.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::contract {
namespace {

constexpr Metric kCutMetrics[] = {Metric::euclidean, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                                  Metric::manhattan, Metric::chebyshev,   Metric::minkowski,     Metric::hamming};

NeighborGraph first_of_each(const NeighborGraph& lists, std::int64_t k) {
  NeighborGraph cut;
  cut.offsets = {0};
  for (std::int64_t row = 0; row < lists.rows; ++row) {
    const std::int64_t end =
        std::min(lists.offsets[static_cast<std::size_t>(row) + 1], lists.offsets[static_cast<std::size_t>(row)] + k);
    for (auto at = static_cast<std::size_t>(lists.offsets[static_cast<std::size_t>(row)]);
         at < static_cast<std::size_t>(end); ++at) {
      cut.ids.push_back(lists.ids[at]);
      cut.distances.push_back(lists.distances[at]);
    }
    cut.offsets.push_back(std::ssize(cut.ids));
  }
  return cut;
}

// Radii at which lists end in different places: reported distances, and just below them.
std::vector<double> telling_radii(const reference::Ranking& ranking, Metric metric) {
  std::vector<double> distances;
  for (const auto& list : ranking) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{2}, std::size_t{5}, list.size() - 1}) {
      distances.push_back(list[std::min(at, list.size() - 1)].distance);
    }
  }
  std::sort(distances.begin(), distances.end());
  std::vector<double> radii = {std::numeric_limits<double>::max()};
  for (const double share : {0.0, 0.2, 0.45, 0.8}) {
    const double distance = distances[static_cast<std::size_t>(share * static_cast<double>(distances.size() - 1))];
    for (const double radius : {distance, std::nextafter(distance, -std::numeric_limits<double>::max())}) {
      if (radius >= 0 || metric == Metric::inner_product) radii.push_back(radius);
    }
  }
  return radii;
}

class MaxRadiusOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(MaxRadiusOfFamily, CutsTheListsOfRadius) {
  std::uint64_t turn = static_cast<std::uint64_t>(GetParam());
  for (const Metric metric : kCutMetrics) {
    const Shape shape = {metric == Metric::minkowski ? 60 : 400, turn % 2 == 0 ? 3 : 11, 20};
    const Rows rows = make_rows(GetParam(), shape, ++turn);
    const TableView table(rows.table.data(), shape.n, shape.d);
    const TableView queries(rows.queries.data(), shape.m, shape.d);
    const bool self = turn % 2 == 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> overflow;
    const reference::Ranking ranking =
        reference::rank(table, self ? table : queries, {.metric = metric, .p = 3, .self = self}, &overflow);
    if (!overflow.empty()) continue;
    for (const double radius : telling_radii(ranking, metric)) {
      for (const std::int64_t k : {1, 6, 40}) {
        if (is_left_out(++turn)) continue;
        const NeighborGraph expected = first_of_each(reference::radius(ranking, radius), k);
        for (const Way& way : two_ways(turn)) {
          if (!serves(way.method, metric) || is_of_a_paper(way.method)) continue;
          const KnnOptions options{
              .k = k, .metric = metric, .p = 3, .method = way.method, .screen = way.screen, .max_radius = radius};
          const Context& ctx = context_of(way);
          const NeighborGraph got = self ? knn(ctx, table, options) : knn(ctx, table, queries, options);
          const std::string what = std::string(name_of(GetParam())) + " " + std::string(name_of(metric)) +
                                   " radius=" + std::to_string(radius) + " k=" + std::to_string(k) + " " +
                                   describe(way);
          EXPECT_TRUE(got.is_csr()) << what;
          EXPECT_EQ(got.k, 0) << what;
          EXPECT_EQ(got.offsets, expected.offsets) << what;
          EXPECT_EQ(got.ids, expected.ids) << what;
          EXPECT_TRUE(same_bits(got.distances, expected.distances)) << what;
          if (HasFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MaxRadiusOfFamily,
                         ::testing::Values(Family::gaussian, Family::integer_ties, Family::duplicates,
                                           Family::constant),
                         [](const auto& of) { return std::string(name_of(of.param)); });

// Methods that find k in any case, and rows that cannot be neighbors.
TEST(MaxRadius, OfPapersFiltersAndExclusions) {
  const std::vector<double> rows = {0, 1, 2, 3, 10, 20, 20.5, 40};
  const TableView table(rows.data(), 8, 1);
  const std::vector<std::uint64_t> filter = {0b11110111};
  for (const Method method : {Method::direct, Method::kdtree, Method::insertion, Method::block_heap}) {
    const NeighborGraph all = knn(on(2), table, {.k = 2, .method = method, .max_radius = 1});
    EXPECT_EQ(all.ids, (std::vector<std::int64_t>{1, 0, 2, 1, 3, 2, 6, 5})) << name_of(method);
    EXPECT_EQ(all.offsets, (std::vector<std::int64_t>{0, 1, 3, 5, 6, 6, 7, 8, 8})) << name_of(method);
    const std::vector<std::int64_t> exclude = {-1, 0, -1, -1, -1, -1, -1, -1};
    const NeighborGraph some =
        knn(on(2), table, table, {.k = 2, .method = method, .filter = filter, .exclude = exclude, .max_radius = 1});
    EXPECT_EQ(some.ids, (std::vector<std::int64_t>{0, 1, 1, 2, 2, 1, 2, 4, 5, 6, 6, 5, 7})) << name_of(method);
  }
}

TEST(MaxRadius, Refuses) {
  const std::vector<double> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  const TableView table(rows.data(), 4, 2);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto expect = [&](const KnnOptions& options, const std::string& sentence) {
    refused([&] { knn(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
    refused([&] { plan_knn(on(1), table, nullptr, options); }, ErrorCode::invalid_argument, sentence);
  };
  expect({.k = 2, .max_radius = kNan}, "max_radius: is not a number");
  expect({.k = 2, .max_radius = -1}, "max_radius: is negative");
  expect({.k = 4, .max_radius = 1}, "k: is 4, but at most 3");
  std::vector<std::int64_t> ids(8);
  std::vector<double> distances(8);
  refused(
      [&] {
        knn_into(on(1), table, {.k = 2, .max_radius = 1}, {ids.data(), distances.data()});
      },
      ErrorCode::invalid_argument, "max_radius: leaves lists shorter than k, which only knn returns");
}

// As without it: an overflow is an error, however far away the row is (clause 1).
TEST(MaxRadius, OfPairsThatOverflow) {
  std::vector<double> rows = make_rows(Family::gaussian, {300, 3, 1}, 1).table;
  rows[20] = 1e200;
  const TableView table(rows.data(), 300, 3);
  for (const Method method : {Method::automatic, Method::fused, Method::direct, Method::kdtree}) {
    refused([&] { knn(on(2), table, {.k = 2, .method = method, .max_radius = 1}); }, ErrorCode::bad_data,
            "overflows float64");
  }
}

}  // namespace
}  // namespace vicinal::contract
