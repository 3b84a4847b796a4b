// The fused screen of a device where it is hard pressed: a radius instead of k, rows by the thousand that are equal,
// clusters that float16 cannot see into, filters that leave next to nothing. Compared with the CPU, which the other
// tests compare with the reference; and no query may be left to float64 where a rung of the ladder serves it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

class Ladder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_missing().empty()) GTEST_SKIP() << "no CUDA: " << cuda_missing();
    if (cuda_status().architectures == "pretended") GTEST_SKIP() << "the pretended device has no screen";
  }
  static const Context& cpu() {
    static const Context kContext = Context::cpu();
    return kContext;
  }
};

std::vector<float> singles(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

void expect_same(const NeighborGraph& got, const NeighborGraph& wanted, const std::string& what) {
  ASSERT_EQ(got.offsets, wanted.offsets) << what;
  ASSERT_EQ(got.ids, wanted.ids) << what;
  ASSERT_EQ(got.distances.size(), wanted.distances.size()) << what;
  EXPECT_EQ(std::memcmp(got.distances.data(), wanted.distances.data(), wanted.distances.size() * sizeof(double)), 0)
      << what;
}

/// One bit in `every`.
std::vector<std::uint64_t> filter_of(std::int64_t n, std::int64_t every) {
  std::vector<std::uint64_t> filter(static_cast<std::size_t>((n + 63) / 64), 0);
  for (std::int64_t i = 0; i < n; i += every) filter[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64);
  return filter;
}
std::vector<std::int64_t> exclude_of(std::int64_t m, std::int64_t n) {
  std::vector<std::int64_t> exclude;
  for (std::int64_t q = 0; q < m; ++q) exclude.push_back(q % 3 == 0 ? -1 : q * 7919 % n);
  return exclude;
}

/// Lists with and without a filter and excluded rows, and within the table itself.
void check_lists(const Context& cpu, const TableView& table, const TableView& queries, std::int64_t k,
                 const std::string& what) {
  const Index there(cuda_context(), table);
  const Index here(cpu, table);
  KnnOptions options = {.k = k, .method = Method::fused};
  KnnOptions plain = {.k = k};
  const NeighborGraph got = knn(cuda_context(), there, queries, options);
  expect_same(got, knn(cpu, here, queries, plain), what);
  EXPECT_EQ(got.stats.uncertified, 0) << what;
  const NeighborGraph itself = knn(cuda_context(), there, options);
  expect_same(itself, knn(cpu, here, plain), what + ", within itself");
  EXPECT_EQ(itself.stats.uncertified, 0) << what << ", within itself";
  options.filter = plain.filter = filter_of(table.rows(), 3);
  options.exclude = plain.exclude = exclude_of(queries.rows(), table.rows());
  expect_same(knn(cuda_context(), there, queries, options), knn(cpu, here, queries, plain), what + ", filtered");
}

TEST_F(Ladder, finds_all_rows_within_a_radius) {
  const Shape shape = {20011, 24, 307};
  for (const Family family : {Family::gaussian, Family::clusters_1e3, Family::mostly_duplicates, Family::offset,
                              Family::positive_offset, Family::far_queries, Family::zero_rows}) {
    const Rows rows = make_rows(family, shape, 3);
    const TableView table(rows.table.data(), shape.n, shape.d);
    const TableView queries(rows.queries.data(), shape.m, shape.d);
    const Index there(cuda_context(), table);
    const Index here(cpu(), table);
    for (const Metric metric : {Metric::euclidean, Metric::sqeuclidean, Metric::cosine, Metric::inner_product}) {
      const NeighborGraph lists = knn(cpu(), here, queries, {.k = 900, .metric = metric});
      for (const std::size_t place : {0U, 29U, 899U}) {  // some have none, some thousands
        const std::string what = std::string(name_of(family)) + " " + std::string(name_of(metric)) + " to the " +
                                 std::to_string(place) + "th neighbor";
        RadiusOptions options = {.radius = lists.distances[5 * 900 + place], .metric = metric};
        if (metric != Metric::inner_product && !(options.radius >= 0)) continue;
        const NeighborGraph wanted = radius(cpu(), here, queries, options);
        const auto counts = count(cpu(), here, queries, options).counts;
        options.method = Method::fused;
        expect_same(radius(cuda_context(), there, queries, options), wanted, what);
        EXPECT_EQ(count(cuda_context(), there, queries, options).counts, counts) << what;
        options.filter = filter_of(shape.n, 5);
        options.exclude = exclude_of(shape.m, shape.n);
        const NeighborGraph fewer = radius(cuda_context(), there, queries, options);
        options.method = Method::automatic;
        expect_same(fewer, radius(cpu(), here, queries, options), what + ", filtered");
      }
    }
    RadiusOptions itself = {.radius = knn(cpu(), here, {.k = 20}).distances[19]};
    const NeighborGraph wanted = radius(cpu(), here, itself);
    itself.method = Method::fused;
    expect_same(radius(cuda_context(), there, itself), wanted, std::string(name_of(family)) + " within itself");
  }
}

TEST_F(Ladder, takes_equal_rows_together) {
  const Shape shape = {50021, 19, 301};
  for (const Family family : {Family::mostly_duplicates, Family::duplicates, Family::integer_ties, Family::constant}) {
    const Rows rows = make_rows(family, shape, 5);
    const auto table_values = singles(rows.table);
    const auto query_values = singles(rows.queries);
    const TableView table(table_values.data(), shape.n, shape.d);
    const TableView queries(query_values.data(), shape.m, shape.d);
    for (const std::int64_t k : {1, 20, 500}) {  // of few distinct rows more than there are
      check_lists(cpu(), table, queries, k, std::string(name_of(family)) + ", k = " + std::to_string(k));
    }
  }
}

TEST_F(Ladder, sees_into_clusters) {
  const Shape shape = {60013, 32, 203};
  for (const Family family : {Family::clusters_1e3, Family::clusters_1e6}) {
    const Rows rows = make_rows(family, shape, 6);
    const TableView table(rows.table.data(), shape.n, shape.d);
    const TableView queries(rows.queries.data(), shape.m, shape.d);
    check_lists(cpu(), table, queries, 17, std::string(name_of(family)));
  }
}

TEST_F(Ladder, packs_only_what_a_filter_admits) {
  const Shape shape = {90017, 40, 150};
  const Rows rows = make_rows(Family::gaussian, shape, 7);
  const auto table_values = singles(rows.table);
  const auto query_values = singles(rows.queries);
  const TableView table(table_values.data(), shape.n, shape.d);
  const TableView queries(query_values.data(), shape.m, shape.d);
  const Index there(cuda_context(), table);
  for (const std::int64_t every : {2, 1000, 9001}) {
    KnnOptions options = {.k = 10, .method = Method::fused};
    options.filter = filter_of(shape.n, every);
    const NeighborGraph got = knn(cuda_context(), there, queries, options);
    options.method = Method::automatic;
    expect_same(got, knn(cpu(), table, queries, options), "every " + std::to_string(every));
    EXPECT_EQ(got.stats.uncertified, 0) << every;
  }
}

}  // namespace
}  // namespace vicinal::contract
