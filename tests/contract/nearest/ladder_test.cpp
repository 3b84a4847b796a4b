// The fused screen of a device where it is hard pressed: a radius instead of k, rows by the thousand that are equal,
// clusters that float16 cannot see into, filters that leave next to nothing. Compared with the CPU, which the other
// tests compare with the reference; and no query may be left to float64 where a rung of the ladder serves it.
// fake device: -*

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

class Ladder : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && is_fake()) GTEST_SKIP() << "the fake device has no screen";
  }
};

NeighborGraph found_within(const Index& index, const TableView* queries, const RadiusOptions& options,
                           const std::string& what) {
  try {
    return queries != nullptr ? radius(cuda_context(), index, *queries, options)
                              : radius(cuda_context(), index, options);
  } catch (const Error& error) {
    ADD_FAILURE() << what << ": " << error.what();
    return {};
  }
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
/// Of those within the table itself `far` may be left to float64.
void check_lists(const Context& cpu, const TableView& table, const TableView& queries, std::int64_t k,
                 const std::string& what, std::int64_t far = 0) {
  const Index there(cuda_context(), table);
  const Index here(cpu, table);
  KnnOptions options = {.k = k, .method = Method::fused};
  KnnOptions plain = {.k = k};
  const NeighborGraph got = knn(cuda_context(), there, queries, options);
  expect_same(got, knn(cpu, here, queries, plain), what);
  EXPECT_EQ(got.stats.uncertified, 0) << what;
  const NeighborGraph itself = knn(cuda_context(), there, options);
  expect_same(itself, knn(cpu, here, plain), what + ", within itself");
  EXPECT_LE(itself.stats.uncertified, far) << what << ", within itself";
  const auto filter = filter_of(table.rows(), 3);
  const auto exclude = exclude_of(queries.rows(), table.rows());
  options.filter = plain.filter = filter;
  options.exclude = plain.exclude = exclude;
  expect_same(knn(cuda_context(), there, queries, options), knn(cpu, here, queries, plain), what + ", filtered");
}

TEST_F(Ladder, FindsAllRowsWithinARadius) {
  const contract::Shape shape = {20011, 24, 307};
  const auto filter = filter_of(shape.n, 5);
  const auto exclude = exclude_of(shape.m, shape.n);
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
        SCOPED_TRACE(what);
        const NeighborGraph wanted = radius(cpu(), here, queries, options);
        const auto counts = count(cpu(), here, queries, options).counts;
        options.method = Method::fused;
        ASSERT_EQ(count(cuda_context(), there, queries, options).counts, counts) << what;
        expect_same(found_within(there, &queries, options, what), wanted, what);
        options.filter = filter;
        options.exclude = exclude;
        const NeighborGraph fewer = found_within(there, &queries, options, what + ", filtered");
        options.method = Method::automatic;
        expect_same(fewer, radius(cpu(), here, queries, options), what + ", filtered");
      }
    }
    RadiusOptions itself = {.radius = knn(cpu(), here, {.k = 20}).distances[19]};
    const NeighborGraph wanted = radius(cpu(), here, itself);
    itself.method = Method::fused;
    const std::string what = std::string(name_of(family)) + " within itself";
    expect_same(found_within(there, nullptr, itself, what), wanted, what);
  }
}

TEST_F(Ladder, TakesEqualRowsTogether) {
  const contract::Shape shape = {50021, 19, 301};
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

TEST_F(Ladder, SeesIntoClusters) {
  const contract::Shape shape = {60013, 32, 203};
  for (const Family family : {Family::clusters_1e3, Family::clusters_1e6}) {
    const Rows rows = make_rows(family, shape, 6);
    const TableView table(rows.table.data(), shape.n, shape.d);
    const TableView queries(rows.queries.data(), shape.m, shape.d);
    check_lists(cpu(), table, queries, 17, std::string(name_of(family)));
  }
}

// A scale for the farthest row would leave nothing of the others.
TEST_F(Ladder, SeesPastRowsFarOut) {
  const contract::Shape shape = {60013, 32, 203};
  for (const Family family : {Family::gaussian, Family::clusters_1e2, Family::mostly_duplicates}) {
    Rows rows = make_rows(family, shape, 8);
    // One in a hundred, each farther than the last; two queries of their kind are another method's.
    for (std::int64_t i = 50; i < shape.n; i += 100) {
      for (std::int64_t j = 0; j < shape.d; j += 3) {
        rows.table[static_cast<std::size_t>(i * shape.d + j)] *=
            std::pow(10, 4 + 6.0 * static_cast<double>(i) / static_cast<double>(shape.n));
      }
    }
    const TableView table(rows.table.data(), shape.n, shape.d);
    const TableView queries(rows.queries.data(), shape.m, shape.d);
    check_lists(cpu(), table, queries, 17, std::string(name_of(family)), shape.n / 100 + 1);
    RadiusOptions within = {.radius = knn(cpu(), table, queries, {.k = 30}).distances[29]};
    const NeighborGraph wanted = radius(cpu(), Index(cpu(), table), queries, within);
    within.method = Method::fused;
    expect_same(found_within(Index(cuda_context(), table), &queries, within, "within"), wanted, "within");
  }
}

TEST_F(Ladder, PacksOnlyWhatAFilterAdmits) {
  const contract::Shape shape = {90017, 40, 150};
  const Rows rows = make_rows(Family::gaussian, shape, 7);
  const auto table_values = singles(rows.table);
  const auto query_values = singles(rows.queries);
  const TableView table(table_values.data(), shape.n, shape.d);
  const TableView queries(query_values.data(), shape.m, shape.d);
  const Index there(cuda_context(), table);
  for (const std::int64_t every : {2, 1000, 9001}) {
    KnnOptions options = {.k = 10, .method = Method::fused};
    const auto filter = filter_of(shape.n, every);
    options.filter = filter;
    const NeighborGraph got = knn(cuda_context(), there, queries, options);
    options.method = Method::automatic;
    expect_same(got, knn(cpu(), table, queries, options), "every " + std::to_string(every));
    EXPECT_EQ(got.stats.uncertified, 0) << every;
  }
}

// Two columns, a million rows, squared distances below 1e-3: float16 alone cannot order them.
TEST_F(Ladder, OrdersAMillionRowsOfTwoColumns) {
  for (const double noise : {0.0, 0.05}) {
    const Generated moons = generate(cpu(), {.shape = vicinal::Shape::moons, .rows = 1000000, .noise = noise});
    const auto values = singles(moons.points);
    const TableView table(values.data(), moons.rows, 2);
    std::vector<float> asked;
    for (std::int64_t q = 0; q < 2000; ++q) {
      const std::size_t row = static_cast<std::size_t>(q) * 499;
      asked.push_back(values[2 * row]);
      asked.push_back(values[2 * row + 1]);
    }
    const TableView queries(asked.data(), 2000, 2);
    const NeighborGraph wanted = knn(cpu(), table, queries, {.k = 20});
    EXPECT_LT(wanted.distances[19] * wanted.distances[19], 1e-3);
    expect_same(knn(cuda_context(), table, queries, {.k = 20, .method = Method::fused}), wanted, "fused");
    expect_same(knn(cuda_context(), table, queries, {.k = 20, .method = Method::direct}), wanted, "direct");
    expect_same(knn(cuda_context(), table, queries, {.k = 20}), wanted, "automatic");
  }
}

}  // namespace
}  // namespace vicinal::contract
