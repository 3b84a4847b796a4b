// Cancel polls of maps that are matched, counted on one thread: loops of all threads end early once they are cancelled,
// and say nothing, so that a look must follow each.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "counted_polls.hpp"
#include "geo/box_tree.hpp"
#include "geo/join.hpp"
#include "geo/layer.hpp"
#include "vicinal/carry.hpp"
#include "vicinal/match.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal {
namespace {

/// A layer of one square.
struct PolledLayer {
  geo::Layer make() { return geo::make_layer(ctx, {points, rings, one, one}, "x"); }
  /// Looks while its boxes are put into a tree.
  [[nodiscard]] std::int64_t polls_of_boxes(const geo::Layer& layer) const {
    return polls_of([&] { const geo::BoxTree tree(ctx, layer.boxes); });
  }

  Context ctx = polled_context();
  std::vector<double> points = {0, 0, 1, 0, 1, 1, 0, 1, 0, 0};
  std::vector<std::int64_t> rings = {0, 5};
  std::vector<std::int64_t> one = {0, 1};
};

// Its features are measured, then filled.
TEST(Polls, ALayer) {
  PolledLayer square;
  const std::int64_t task = of_tasks(square.ctx, 1);
  EXPECT_GE(polls_of([&] { (void)square.make(); }), 2 * (task + 1));
}

// Boxes are asked, then pairs.
TEST(Polls, OverlapsOfLayers) {
  PolledLayer square;
  const geo::Layer layer = square.make();
  const std::int64_t task = of_tasks(square.ctx, 1);
  const std::int64_t boxes = square.polls_of_boxes(layer);
  const Context& ctx = square.ctx;
  EXPECT_GE(polls_of([&] { (void)geo::join(ctx, layer, layer, {}); }), boxes + 2 * task + 1);
  std::vector<Overlap> pairs(1, {0, 0, RegionRelation::disjoint, 0, 0});
  EXPECT_GE(polls_of([&] { (void)geo::decide(ctx, layer, layer, pairs, RegionRelation::disjoint, {}); }), task + 1);
  EXPECT_GE(polls_of([&] { (void)geo::groups_that_overlap(ctx, layer, {0}, 1); }), boxes + task + 1);
  EXPECT_GE(polls_of([&] { (void)geo::overlaps_within(ctx, layer); }), boxes + task + 1);
  EXPECT_GE(polls_of([&] { (void)geo::self_overlapping(ctx, layer); }), task + 1);
}

// Pairs are counted, then sorted; then each feature gets its value.
TEST(Polls, ValuesThatAreCarried) {
  Match match;
  match.a.resize(1);
  match.b.resize(1);
  const Context ctx = polled_context();
  const std::vector<double> values = {1};
  EXPECT_GE(polls_of([&] { (void)carry(ctx, match, values, CarryRule::sum); }), 1 + of_tasks(ctx, 1) + 1);
}

// Lines are counted; those of pairs are filled, then those of features.
TEST(Polls, ChangesThatAreListed) {
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { (void)list_changes(ctx, {}); }), 2);
}

}  // namespace
}  // namespace vicinal
