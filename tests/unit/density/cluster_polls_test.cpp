// Cancel polls of clusters that are read from a spanning tree or an order, counted on one thread. The expected numbers
// are those of the loops.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "counted_polls.hpp"
#include "ops/density/hierarchy.hpp"
#include "vicinal/hdbscan.hpp"
#include "vicinal/optics.hpp"
#include "vicinal/spanning_tree.hpp"

namespace vicinal {
namespace {

/// Every row but the first has an edge to that one.
SpanningTree polled_star(std::int64_t edges) {
  SpanningTree tree;
  tree.rows = edges + 1;
  tree.a.assign(static_cast<std::size_t>(edges), 0);
  tree.b.resize(static_cast<std::size_t>(edges));
  std::iota(tree.b.begin(), tree.b.end(), 1);
  tree.lengths.assign(static_cast<std::size_t>(edges), 1);
  return tree;
}

TEST(Polls, EdgesThatAreChecked) {
  const SpanningTree tree = polled_star(kManyRows);
  const Context ctx = polled_context();
  EXPECT_EQ(polls_of([&] { ops::check_tree(ctx, tree); }), 2);
}

// Edges join two parts each, which are then put into clusters; rows are sorted by cluster and what leaving them adds to
// its stability is summed.
TEST(Polls, ACondensedTree) {
  const SpanningTree tree = polled_star(kBetweenLooks);
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { (void)ops::condense(ctx, tree, 5); }), 1 + 2 + 1 + 1);
}

// Beside the condensed tree: when clusters end, labels, probabilities, and exemplars, counted, then listed.
TEST(Polls, ClustersOfATree) {
  const SpanningTree tree = polled_star(kBetweenLooks);
  const Context ctx = polled_context();
  const std::int64_t others = polls_of([&] {
    ops::check_tree(ctx, tree);
    (void)ops::condense(ctx, tree, 5);
  });
  EXPECT_GE(polls_of([&] { (void)hdbscan(ctx, tree, {.min_cluster_size = 5}); }), others + 1 + 1 + 1 + 2);
}

/// An order that places the rows by their numbers.
Optics polled_order(const std::vector<double>& reachability, std::int64_t min_samples) {
  Optics order;
  order.options.min_samples = min_samples;
  order.reachability = reachability;
  order.core_distances = reachability;
  order.ordering.resize(reachability.size());
  std::iota(order.ordering.begin(), order.ordering.end(), 0);
  order.predecessors.assign(reachability.size(), -1);
  return order;
}

std::int64_t polls_of_xi(const Optics& order, double xi) {
  const Context ctx = polled_context();
  return polls_of([&] { (void)optics_xi(ctx, order, {.xi = xi}); });
}

// The order is checked, the rows get their labels, and labels are counted.
TEST(Polls, ClustersOfOneDensity) {
  const Optics order = polled_order(std::vector<double>(static_cast<std::size_t>(kBetweenLooks), 1), 2);
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { (void)optics_dbscan(ctx, order, 1); }), 1 + 1 + 1);
}

// By turns a place is high and low: each goes into an area of one place, of which the next one is looked at, too, and
// each two places are a cluster.
TEST(Polls, AnOrderThatRisesAndFalls) {
  constexpr std::int64_t kPairs = kBetweenLooks + 64;
  std::vector<double> reachability;
  for (std::int64_t i = 0; i < kPairs; ++i) reachability.insert(reachability.end(), {2, 1});
  // Of places: they are checked, found by their rows, and get their predecessors; areas begin at them, and two places
  // are looked at for each; they get labels, which are counted. Of pairs: the descent before is forgotten; the ascent
  // keeps its own, and its height; then they are closed, their end is found within, and they are a cluster.
  constexpr std::int64_t kOfPlaces = 2 * (1 + 1 + 1 + 1 + 2 + 1 + 1);
  constexpr std::int64_t kOfPairs = 1 + 2 + 1 + 1 + 1;
  EXPECT_GE(polls_of_xi(polled_order(reachability, 2), 0.25), kOfPlaces + kOfPairs);
}

/// From high to low, each place steeply above the next one.
std::vector<double> long_descent() {
  std::vector<double> heights(static_cast<std::size_t>(kBetweenLooks + 1000));
  for (std::size_t i = 0; i < heights.size(); ++i)
    heights[i] = std::exp2(0.01 * static_cast<double>(heights.size() - i));
  return heights;
}

// Places are checked, found and get their predecessors, are of one area, and are counted. The cluster begins where the
// descent is as low as its end, most of the places later.
TEST(Polls, ALongDescentOfAnOrder) {
  std::vector<double> reachability = long_descent();
  reachability.insert(reachability.end(), {1, 4, 4, 4, 4, 4});
  EXPECT_GE(polls_of_xi(polled_order(reachability, 2), 0.001), 3 + 1 + 1 + 1);
}

// The same of an ascent, whose cluster ends where it is as low as its start.
TEST(Polls, ALongAscentOfAnOrder) {
  const std::vector<double> heights = long_descent();
  std::vector<double> reachability = {2, 1};
  reachability.insert(reachability.end(), heights.rbegin(), heights.rend());
  EXPECT_GE(polls_of_xi(polled_order(reachability, 2), 0.001), 3 + 1 + 1 + 1);
}

}  // namespace
}  // namespace vicinal
