// knn, radius and count of every metric x dtype: on every data family, over sizes around every tile edge, in every
// layout, with filters, exclusions and within themselves. Contract clauses 1 to 5; see check.hpp for what is compared.
// fake device: Search/PerMetric.*:Search/Large.WithinItself/*
// fake device, sanitized: Search/PerMetric.*:Search/Large.WithinItself/duplicates
// fake device, together: Search/PerMetric.InEveryLayout/euclidean

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "check.hpp"

namespace vicinal::contract {
namespace {

constexpr Metric kMetrics[] = {Metric::euclidean, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                               Metric::manhattan, Metric::chebyshev,   Metric::minkowski,     Metric::hamming};
constexpr DType kDTypes[] = {DType::uint8, DType::float16, DType::bfloat16, DType::float32, DType::float64};
constexpr double kExponents[] = {3, 1, 1.5, 2, 2.7};

template <class T, std::size_t N>
T pick(const T (&values)[N], std::uint64_t turn) {
  return values[turn % N];
}

// A case of a metric; powers in 113 bits are slow, so minkowski gets fewer columns and rows.
Case case_of(Metric metric, Family family, Shape shape, std::uint64_t seed) {
  Case c;
  c.family = family;
  c.metric = metric;
  c.seed = seed;
  c.p = metric == Metric::minkowski ? pick(kExponents, seed) : 2;
  if (metric == Metric::minkowski) {
    shape = {std::min<std::int64_t>(shape.n, 150), std::min<std::int64_t>(shape.d, 17),
             std::min<std::int64_t>(shape.m, 13)};
  }
  c.shape = shape;
  return c;
}

class PerMetricAndDType : public ::testing::TestWithParam<std::tuple<Metric, DType>> {
 protected:
  [[nodiscard]] Metric metric() const { return std::get<0>(GetParam()); }
  [[nodiscard]] DType dtype() const { return std::get<1>(GetParam()); }
};

TEST_P(PerMetricAndDType, OnEveryFamily) {
  constexpr std::int64_t kCols[] = {3, 8, 33, 17, 41};
  constexpr std::int64_t kQueries[] = {13, 47, 12, 49, 11};
  // Every second family, and under a sanitizer two: other ones for the next metric and the next dtype, so that each
  // family meets every metric and every dtype, and under a sanitizer two of them at least.
  const int kStep = sanitized(2, kFamilies / 2);
  const int first =
      (static_cast<int>(std::size(kDTypes)) * static_cast<int>(metric()) + static_cast<int>(dtype())) % kStep;
  for (int f = first; f < kFamilies; f += kStep) {
    const auto turn = static_cast<std::uint64_t>(f / 2) + static_cast<std::uint64_t>(metric()) * 3 +
                      static_cast<std::uint64_t>(dtype()) * 2;
    Case c = case_of(metric(), static_cast<Family>(f), {523, pick(kCols, turn), pick(kQueries, turn / 2)}, turn);
    c.dtype = dtype();
    c.query_dtype = turn % 4 == 0 ? pick(kDTypes, turn / 4) : dtype();
    check(c, {.ks = {1, 2, 5, 20}, .all_rows = turn % 3 == 0}, some_ways(turn));
  }
}

// A metric meets every number of threads with every method in one dtype, and every method in all; under a sanitizer
// each metric and dtype one family, and every method with every instruction set.
TEST_P(PerMetricAndDType, InEveryWay) {
  std::vector<Way> ways = kSparse > 1 ? some_ways(5) : all_ways();
  const bool in_all_numbers =
      kSparse == 1 && static_cast<int>(metric()) % static_cast<int>(std::size(kDTypes)) == static_cast<int>(dtype());
  if (kSparse == 1 && !in_all_numbers) {
    std::erase_if(ways, [](const Way& way) { return !way.cuda && way.threads != 2; });
  }
  int turn = static_cast<int>(metric()) + static_cast<int>(dtype());
  for (const Family family : {Family::gaussian, Family::integer_ties, Family::clusters_1e3}) {
    // Two of them, with all numbers of threads all, and under a sanitizer one: other ones for the next metric and the
    // next dtype.
    ++turn;
    if (kSparse > 1 ? turn % 3 != 2 : turn % 3 == 0 && !in_all_numbers) continue;
    Case c = case_of(metric(), family, {1057, 41, 49}, 5);
    c.dtype = dtype();
    c.query_dtype = dtype();
    check(c, {.ks = {5}, .radii = family == Family::integer_ties}, ways);
  }
}

TEST_P(PerMetricAndDType, WithinItselfFilteredAndExcluding) {
  std::uint64_t turn = static_cast<std::uint64_t>(dtype());
  // A key of the reference's takes a power in 113 bits for each column.
  const bool slow = metric() == Metric::minkowski;
  const std::int64_t n = slow ? 131 : 400;
  for (const Family family : {Family::gaussian, Family::duplicates, Family::integer_ties, Family::zero_rows}) {
    for (const bool self : {false, true}) {
      for (const Filter filter : {Filter::none, Filter::few, Filter::many}) {
        if (is_left_out(++turn)) continue;
        Case c = case_of(metric(), family, {self ? (slow ? 70 : 130) : n, 17, 47}, turn);
        c.dtype = dtype();
        c.query_dtype = dtype();
        c.self = self;
        c.filter = filter;
        c.exclude = turn % 2 == 0;
        check(c, {.ks = {1, 2, 20}, .all_rows = true}, two_ways(turn));
      }
    }
  }
}

std::string name_of_param(const ::testing::TestParamInfo<std::tuple<Metric, DType>>& info) {
  return std::string(name_of(std::get<0>(info.param))) + "_" + std::string(name_of(std::get<1>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(Search, PerMetricAndDType,
                         ::testing::Combine(::testing::ValuesIn(kMetrics), ::testing::ValuesIn(kDTypes)),
                         name_of_param);

class PerMetric : public ::testing::TestWithParam<Metric> {};

TEST_P(PerMetric, AtEverySize) {
  constexpr std::int64_t kQueries[] = {1, 11, 12, 13, 47, 49};
  constexpr Family kSizeFamilies[] = {Family::gaussian, Family::integer_ties, Family::duplicates};
  std::uint64_t turn = static_cast<std::uint64_t>(GetParam());
  for (const std::int64_t n : {1, 2, 3, 31, 32, 33, 100, 1000}) {
    for (const std::int64_t d : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 41, 64, 128, 512}) {
      if (is_left_out(++turn)) continue;
      Case c =
          case_of(GetParam(), pick(kSizeFamilies, turn / 3), {n, d, n * d > 100000 ? 13 : pick(kQueries, turn)}, turn);
      c.dtype = pick(kDTypes, turn / 2);
      c.query_dtype = c.dtype;
      check(c, {.ks = {1, 2, 5, 20, n - 1}, .all_rows = true, .radii = turn % 4 == 0}, two_ways(turn));
    }
  }
}

TEST_P(PerMetric, InEveryLayout) {
  std::uint64_t turn = 0;
  for (int layout = 0; layout < kLayouts; ++layout) {
    for (const DType dtype : kDTypes) {
      ++turn;
      if (is_left_out(turn + static_cast<std::uint64_t>(layout) + static_cast<std::uint64_t>(GetParam()))) continue;
      Case c = case_of(GetParam(), Family::gaussian, {211, 9, 13}, turn);
      c.dtype = dtype;
      c.query_dtype = pick(kDTypes, turn / 2);
      c.layout = static_cast<Layout>(layout);
      c.query_layout = static_cast<Layout>(turn * 3 % kLayouts);
      c.self = turn % 5 == 0;
      check(c, {.ks = {2, 5}}, two_ways(turn));
    }
  }
}

TEST_P(PerMetric, WithManyColumns) {
  std::uint64_t turn = static_cast<std::uint64_t>(GetParam());
  for (const Family family :
       {Family::one_large_many_small, Family::gaussian, Family::permutations, Family::column_scales}) {
    if (is_left_out(++turn)) continue;
    Case c = case_of(GetParam(), family, {331, 512, 25}, 3);
    check(c, {.ks = {1, 20}, .radii = false}, some_ways(static_cast<std::uint64_t>(family)));
  }
}

INSTANTIATE_TEST_SUITE_P(Search, PerMetric, ::testing::ValuesIn(kMetrics),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

// Tables large enough for several blocks and threads; the reference's keys, one for each row and query, are the cost.
class Large : public ::testing::TestWithParam<Family> {};

TEST_P(Large, OfTwentyThousandRows) {
  std::uint64_t turn = static_cast<std::uint64_t>(GetParam());
  const Shape shape = kSparse > 1 ? Shape{5003, 41, 25} : Shape{20011, 41, 49};
  Case c = case_of(Metric::euclidean, GetParam(), shape, 9);
  c.dtype = GetParam() == Family::images ? DType::uint8 : (turn % 2 == 0 ? DType::float64 : DType::float32);
  c.query_dtype = c.dtype;
  check(c, {.ks = {20}}, some_ways(turn));
  c.metric = turn % 2 == 0 ? Metric::inner_product : Metric::cosine;
  check(c, {.ks = {7}, .radii = false}, two_ways(turn));
}

TEST_P(Large, WithinItself) {
  Case c = case_of(Metric::euclidean, GetParam(), {1801, 16, 1}, 10);
  c.self = true;
  check(c, {.ks = {5}, .radii = false}, some_ways(static_cast<std::uint64_t>(GetParam())));
}

const std::vector<Family> kLargeFamilies = sanitized<std::vector<Family>>(
    {Family::gaussian, Family::duplicates, Family::clusters_1e3, Family::clusters_1e6, Family::near_first,
     Family::far_first, Family::large_column, Family::outliers, Family::images, Family::far_queries},
    {Family::gaussian, Family::duplicates, Family::images});
INSTANTIATE_TEST_SUITE_P(Search, Large, ::testing::ValuesIn(kLargeFamilies),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

// Batch after batch: the account of memory must come out even (it once fell below zero after the first).
TEST(Radius, InManyBatches) {
  const Shape shape = {sanitized(20011, 6007), 24, 1};
  const Rows rows = make_rows(Family::gaussian, shape, 3);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const Index index(Context::cpu(), table);
  const RadiusOptions options = {.radius = 4.0};
  const NeighborGraph graph = radius(Context::cpu(), index, options);
  const auto counts = count(Context::cpu(), index, options).counts;
  ASSERT_EQ(graph.offsets.size(), counts.size() + 1);
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(graph.offsets[i + 1] - graph.offsets[i], counts[i]);
}

// More queries than a batch has: each has its own radius, wherever its batch begins, on a device too. Where batches
// begin, the instruction set does not decide. Under a sanitizer each way is asked in one order, and two of the radii.
TEST(Radius, OfEachQueryInManyBatches) {
  const Shape shape = {sanitized(6007, 4507), 6, 1};  // a batch has 4096
  const Rows rows = make_rows(Family::gaussian, shape, 5);
  const TableView table(rows.table.data(), shape.n, shape.d);
  std::vector<double> radii;
  for (std::int64_t i = 0; i < shape.n; ++i) radii.push_back(0.75 + 0.125 * static_cast<double>(i % 5));
  const auto joined_of = [&](const Context& ctx, const Index& index, const RadiusOptions& options) {
    std::vector<std::int64_t> ids;
    radius_batches(ctx, index, options, [&](std::int64_t, const NeighborGraph& lists) {
      ids.insert(ids.end(), lists.ids.begin(), lists.ids.end());
    });
    return ids;
  };
  std::uint64_t turn = 0;
  for (const Way& way : some_ways(1)) {
    if (is_of_a_paper(way.method) || !serves(way.method, Metric::euclidean)) continue;
    if (!way.cuda && way.isa != available_isas().back()) continue;
    const Context& ctx = context_of(way);
    const Index index(ctx, table);
    for (const RadiusOrder order : {RadiusOrder::key, RadiusOrder::id}) {
      if (turn++ % 4 % sanitized(1, 3) != 0) continue;
      const Method method = way.cuda ? Method::automatic : way.method;
      const RadiusOptions each = {.method = method, .order = order, .radii = radii};
      const NeighborGraph got = radius(ctx, index, each);
      const auto counts = count(ctx, index, each).counts;
      EXPECT_EQ(joined_of(ctx, index, each), got.ids);
      for (int part = 0; part < 5; part += sanitized(1, 4)) {
        const NeighborGraph same =
            radius(ctx, index, {.radius = 0.75 + 0.125 * part, .method = method, .order = order});
        for (std::int64_t i = part; i < shape.n; i += 5) {
          const auto ids = got.ids_of(i);
          const auto expected = same.ids_of(i);
          ASSERT_TRUE(std::equal(ids.begin(), ids.end(), expected.begin(), expected.end())) << describe(way) << i;
          ASSERT_EQ(counts[static_cast<std::size_t>(i)], static_cast<std::int64_t>(ids.size()));
          const bool ascends = std::is_sorted(ids.begin(), ids.end());
          ASSERT_TRUE(ascends || order == RadiusOrder::key) << describe(way) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace vicinal::contract
