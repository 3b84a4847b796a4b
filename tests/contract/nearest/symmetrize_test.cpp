// Symmetric graphs, and rows among their own neighbors, against the reference (contract clause 25): order, ties, which
// distance is kept; the same bits on every context; memory; and what is refused.
#include "vicinal/symmetrize.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "reference/symmetrize.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr std::int64_t kSymmetricRows = 400;
constexpr auto kBad = ErrorCode::invalid_argument;

Context one_thread(std::uint64_t memory_limit = 0) {
  return Context::cpu({.threads = 1, .memory_limit = memory_limit});
}

/// Lists of different lengths by rules that are far from symmetric: ids repeat, rows list themselves, the two rows of a
/// pair say different distances, and one row is in every list.
NeighborGraph scrambled() {
  NeighborGraph graph;
  graph.rows = graph.table_rows = kSymmetricRows;
  graph.offsets = {0};
  for (std::int64_t i = 0; i < kSymmetricRows; ++i) {
    for (std::int64_t at = 0; at < i * i % 13; ++at) {
      graph.ids.push_back((i * 7 + at * at * 31) % kSymmetricRows);
      graph.distances.push_back(static_cast<double>((i + at * 5) % 4));
    }
    if (i % 3 > 0) {
      graph.ids.push_back(17);
      graph.distances.push_back(0.5);
    }
    graph.offsets.push_back(static_cast<std::int64_t>(graph.ids.size()));
  }
  return graph;
}

void expect_symmetrized(const NeighborGraph& graph, const std::string& what) {
  for (const Symmetry symmetry : {Symmetry::either, Symmetry::mutual}) {
    const NeighborGraph wanted = reference::symmetrize(graph, symmetry);
    for (const Context& ctx : contexts(0)) {
      const NeighborGraph found = symmetrize(ctx, graph, symmetry);
      const std::string here = what + ", " + std::string(name_of(symmetry)) + ", " + ctx.device();
      EXPECT_EQ(found.rows, graph.rows) << here;
      EXPECT_EQ(found.table_rows, graph.rows) << here;
      EXPECT_EQ(found.k, 0) << here;
      EXPECT_EQ(found.metric, graph.metric) << here;
      EXPECT_EQ(found.offsets, wanted.offsets) << here;
      EXPECT_EQ(found.ids, wanted.ids) << here;
      EXPECT_TRUE(same_bits(found.distances, wanted.distances)) << here;
    }
  }
}

TEST(Symmetrize, EqualsTheReferenceForListsOfKAndOfARadius) {
  for (const Family family : {Family::gaussian, Family::integer_ties, Family::duplicates, Family::far_outlier}) {
    const std::vector<double> rows = make_rows(family, {kSymmetricRows, 3, 1}, 3).table;
    const TableView table(rows.data(), kSymmetricRows, 3);
    const std::string name(name_of(family));
    expect_symmetrized(knn(one_thread(), table, {.k = 5}), name);
    expect_symmetrized(radius(one_thread(), table, {.radius = 0.7, .metric = Metric::manhattan}), name + ", radius");
  }
}

TEST(Symmetrize, EqualsTheReferenceForListsThatAreNone) {
  expect_symmetrized(scrambled(), "scrambled");
  NeighborGraph empty;
  empty.rows = empty.table_rows = 3;
  empty.offsets = {0, 0, 0, 0};
  expect_symmetrized(empty, "no neighbors");
}

TEST(Symmetrize, MutualIsWithinUnionAndBothAreSymmetric) {
  const std::vector<double> rows = make_rows(Family::gaussian, {kSymmetricRows, 4, 1}, 5).table;
  const NeighborGraph graph = knn(one_thread(), {rows.data(), kSymmetricRows, 4}, {.k = 6});
  const NeighborGraph all = symmetrize(one_thread(), graph, Symmetry::either);
  const NeighborGraph both = symmetrize(one_thread(), graph, Symmetry::mutual);
  EXPECT_EQ(all.ids.size() + both.ids.size(), 2 * graph.ids.size());
  EXPECT_EQ(symmetrize(one_thread(), all, Symmetry::mutual).ids, all.ids);
  EXPECT_EQ(symmetrize(one_thread(), both, Symmetry::either).ids, both.ids);
}

TEST(Symmetrize, RefusesWhatIsNoGraphOfATableWithinItself) {
  NeighborGraph graph = scrambled();
  const auto asking = [&] { return [&graph] { (void)symmetrize(one_thread(), graph, Symmetry::either); }; };
  graph.table_rows = kSymmetricRows + 1;
  refused(asking(), kBad, "symmetrize: the graph has 400 rows among 401");
  graph = scrambled();
  graph.ids[3] = kSymmetricRows;
  refused(asking(), kBad, "lists 400, which is none of its 400 rows");
  graph.ids[3] = -1;
  refused(asking(), kBad, "lists -1");
  graph = scrambled();
  graph.distances[5] = std::nan("");
  refused(asking(), ErrorCode::bad_data, "has a distance that is NaN");
  graph = scrambled();
  graph.distances.pop_back();
  refused(asking(), kBad, "symmetrize: the graph has");
  refused([] { (void)symmetry_from("both"); }, kBad, "union, mutual");
  EXPECT_EQ(symmetry_from("union"), Symmetry::either);
}

TEST(Symmetrize, TakesNoMoreThanItSays) {
  const NeighborGraph graph = scrambled();
  const auto size = static_cast<std::int64_t>(graph.ids.size());
  for (const Symmetry symmetry : {Symmetry::either, Symmetry::mutual}) {
    const std::uint64_t bytes = symmetrize_bytes(one_thread(), kSymmetricRows, size, symmetry);
    EXPECT_FALSE(symmetrize(one_thread(bytes), graph, symmetry).ids.empty());
    refused([&] { (void)symmetrize(one_thread(bytes - 1), graph, symmetry); }, ErrorCode::over_memory, "symmetrize");
  }
  refused([&] { (void)symmetrize_bytes(one_thread(), -1, 3, Symmetry::either); }, kBad, "are -1 and 3");
  constexpr std::int64_t kMany = std::int64_t{1} << 62;
  EXPECT_EQ(symmetrize_bytes(one_thread(), kMany, kMany, Symmetry::either), UINT64_MAX);
}

TEST(Symmetrize, StopsWhenItIsCancelled) {
  const CancelToken token;
  token.cancel();
  const Context ctx = Context::cpu({.threads = 2, .cancel = token});
  const NeighborGraph graph = scrambled();
  refused([&] { (void)symmetrize(ctx, graph, Symmetry::either); }, ErrorCode::cancelled, "");
}

TEST(WithSelf, EachRowIsFirstAtDistance0) {
  const std::vector<double> rows = make_rows(Family::duplicates, {kSymmetricRows, 3, 1}, 3).table;
  const TableView table(rows.data(), kSymmetricRows, 3);
  for (const NeighborGraph& graph :
       {knn(one_thread(), table, {.k = 4}), radius(one_thread(), table, {.radius = 0.5})}) {
    const NeighborGraph found = with_self(one_thread(), graph);
    EXPECT_EQ(found.k, graph.is_csr() ? 0 : 5);
    ASSERT_EQ(found.ids.size(), graph.ids.size() + kSymmetricRows);
    for (std::int64_t i = 0; i < kSymmetricRows; ++i) {
      const auto ids = found.ids_of(i);
      const auto distances = found.distances_of(i);
      ASSERT_EQ(ids.size(), graph.ids_of(i).size() + 1);
      EXPECT_EQ(ids[0], i);
      EXPECT_EQ(distances[0], 0);
      EXPECT_TRUE(std::equal(ids.begin() + 1, ids.end(), graph.ids_of(i).begin()));
      EXPECT_TRUE(std::equal(distances.begin() + 1, distances.end(), graph.distances_of(i).begin()));
    }
    const NeighborGraph symmetric = with_self(one_thread(), symmetrize(one_thread(), graph, Symmetry::either));
    EXPECT_EQ(symmetric.ids_of(7)[0], 7);
  }
}

TEST(WithSelf, RefusesRowsThatListThemselves) {
  NeighborGraph graph = knn(one_thread(), TableView(std::vector<double>{0, 1, 5}.data(), 3, 1), {.k = 1});
  const auto asking = [&](std::uint64_t limit = 0) {
    return [&graph, limit] { (void)with_self(one_thread(limit), graph); };
  };
  refused(asking(1), ErrorCode::over_memory, "with_self");
  graph.ids[1] = 1;
  refused(asking(), kBad, "with_self: row 1 of the graph lists itself already");
  graph.metric = Metric::inner_product;
  refused(asking(), kBad, "inner_product");
  graph.table_rows = 4;
  refused(asking(), kBad, "with_self: the graph has 3 rows among 4");
}

}  // namespace
}  // namespace vicinal::contract
