// carry and list_changes against their definitions (contract clause 18), the same on every thread count; what must be
// refused.
#include "vicinal/carry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "overlap/box.hpp"
#include "reference/carry.hpp"

namespace vicinal::contract {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Context one_thread_or_two() {
  return Context::cpu({.threads = kFewestThreads});
}

/// Two maps of many boxes that lie on each other and on themselves; some features of either meet nothing.
struct ManyBoxes {
  Polygons a;
  Polygons b;
  ManyBoxes() {
    std::mt19937_64 random(11);
    const auto place = [&random](int most) { return static_cast<double>(random() % static_cast<unsigned>(most)) / 7; };
    for (int i = 0; i < 60; ++i) {
      for (Polygons* const layer : {&a, &b}) {
        const double x = place(90);
        const double y = place(90);
        add_box(*layer, x, y, x + 0.2 + place(15), y + 0.3 + place(15));
      }
    }
    add_box(a, 100, 0, 101, 1);
    add_box(b, 200, 0, 201, 1);
  }
};

TEST(Carry, DividesAmountsAveragesRatesAndTakesTheLargestCode) {
  Polygons a;
  Polygons b;
  add_box(a, 0, 0, 4, 1);
  add_box(a, 4, 0, 8, 1);
  add_box(a, 20, 0, 21, 1);  // retired
  add_box(b, 0, 0, 1, 1);
  add_box(b, 1, 0, 8, 1);
  add_box(b, 30, 0, 31, 1);  // new
  const Context ctx = one_thread_or_two();
  const Match found = match(ctx, a.view(), b.view());
  const CarriedNumbers people = carry(ctx, found, std::vector<double>{100, 60, 7}, CarryRule::sum);
  EXPECT_EQ(people.values[0], 25);
  EXPECT_EQ(people.values[1], 135);
  EXPECT_TRUE(std::isnan(people.values[2]));
  EXPECT_EQ(people.left, 7);
  EXPECT_EQ(people.shares, (std::vector<double>{1, 1, 0}));
  const CarriedNumbers price = carry(ctx, found, std::vector<double>{10, kNone, 3}, CarryRule::mean);
  EXPECT_EQ(price.values[1], 10);
  EXPECT_EQ(price.shares[1], 3.0 / 7);
  EXPECT_EQ(price.left, 0);
  const CarriedCodes codes = carry_codes(ctx, found, std::vector<std::int64_t>{5, 2, 1});
  EXPECT_EQ(codes.codes, (std::vector<std::int64_t>{5, 2, -1}));
  EXPECT_EQ(codes.shares[1], 4.0 / 7);
}

TEST(Carry, SharesOfOneCodeAddUpAndTiesGoToTheSmaller) {
  Polygons a;
  Polygons b;
  for (int i = 0; i < 4; ++i) add_box(a, i, 0, i + 1, 1);
  add_box(b, 0, 0, 4, 1);
  const Context ctx = one_thread_or_two();
  const Match found = match(ctx, a.view(), b.view());
  EXPECT_EQ(carry_codes(ctx, found, std::vector<std::int64_t>{9, 3, 9, 3}).codes[0], 3);
  EXPECT_EQ(carry_codes(ctx, found, std::vector<std::int64_t>{9, 3, 9, 4}).codes[0], 9);
  EXPECT_EQ(carry_codes(ctx, found, std::vector<std::int64_t>{-1, -1, -1, 0}).shares[0], 0.25);
}

TEST(Carry, ASharesRoundingIsNotReportedButWhatLiesTwiceIs) {
  // Half of b each, and a strip of the given width twice: a share of 1 + width / 2, whose last bits depend on width.
  const Context ctx = one_thread_or_two();
  const std::vector<std::int64_t> codes = {4, 4};
  for (const double width : {0.0, 6e-11, 1.9e-9, 2.1e-9, 0.5}) {
    Polygons a;
    Polygons b;
    add_box(a, 0, 0, 1, 1);
    add_box(a, 1 - width, 0, 2, 1);
    add_box(b, 0, 0, 2, 1);
    const Match found = match(ctx, a.view(), b.view());
    const CarriedNumbers mean = carry(ctx, found, std::vector<double>{1, 3}, CarryRule::mean);
    const double share = carry_codes(ctx, found, codes).shares[0];
    EXPECT_EQ(mean.shares[0], share) << width;
    if (width < 2e-9) {
      EXPECT_EQ(share, 1) << width;
    } else {
      EXPECT_NEAR(share, 1 + width / 2, 1e-15) << width;
    }
    EXPECT_NEAR(mean.values[0], (1 + 3 * (1 + width)) / (2 + width), 4e-15) << width;
    const CarriedNumbers expected = reference::carry(found, std::vector<double>{1, 3}, CarryRule::mean);
    EXPECT_TRUE(same_bits(mean.values, expected.values) && same_bits(mean.shares, expected.shares)) << width;
    EXPECT_EQ(reference::carry_codes(found, codes).shares[0], share) << width;
  }
}

TEST(Carry, IsTheReferencesToTheLastBit) {
  const ManyBoxes maps;
  std::mt19937_64 random(3);
  std::vector<double> values;
  std::vector<std::int64_t> codes;
  for (std::int64_t i = 0; i < maps.a.size(); ++i) {
    const double value = std::ldexp(static_cast<double>(random() % 1000003) - 500000, static_cast<int>(random() % 40));
    values.push_back(i % 7 == 3 ? kNone : value);
    codes.push_back(static_cast<std::int64_t>(random() % 6) - 1);
  }
  std::uint64_t turn = 0;
  const Match found = match(one_thread_or_two(), maps.a.view(), maps.b.view());
  for (const Context& ctx : contexts(turn++)) {
    for (const CarryRule rule : {CarryRule::sum, CarryRule::mean}) {
      const CarriedNumbers expected = reference::carry(found, values, rule);
      const CarriedNumbers given = carry(ctx, found, values, rule);
      EXPECT_TRUE(same_bits(given.values, expected.values));
      EXPECT_TRUE(same_bits(given.shares, expected.shares));
      EXPECT_EQ(given.left, expected.left);
    }
    const CarriedCodes expected = reference::carry_codes(found, codes);
    const CarriedCodes given = carry_codes(ctx, found, codes);
    EXPECT_EQ(given.codes, expected.codes);
    EXPECT_TRUE(same_bits(given.shares, expected.shares));
  }
}

TEST(Carry, DoesNotDependOnTheOrderOfFeatures) {
  const ManyBoxes maps;
  Polygons turned;
  std::vector<double> values;
  const auto n = maps.a.size();
  for (std::int64_t i = n - 1; i >= 0; --i) {
    const auto first = static_cast<std::size_t>(2 * maps.a.rings[static_cast<std::size_t>(i)]);
    turned.add_ring(std::span(maps.a.points).subspan(first, 8));
    turned.end_part();
    turned.end_feature();
    values.push_back(1e15 / static_cast<double>(i + 1));
  }
  const Context ctx = one_thread_or_two();
  const Match backwards = match(ctx, turned.view(), maps.b.view());
  const Match forwards = match(ctx, maps.a.view(), maps.b.view());
  const std::vector<double> reversed(values.rbegin(), values.rend());
  for (const CarryRule rule : {CarryRule::sum, CarryRule::mean}) {
    EXPECT_TRUE(same_bits(carry(ctx, backwards, values, rule).values, carry(ctx, forwards, reversed, rule).values));
  }
}

TEST(Carry, AMeanOfOneValueIsThatValue) {
  const ManyBoxes maps;
  const Context ctx = one_thread_or_two();
  const Match found = match(ctx, maps.a.view(), maps.b.view());
  const std::vector<double> values(maps.a.features.size() - 1, 0.3);
  for (const double mean : carry(ctx, found, values, CarryRule::mean).values) {
    EXPECT_TRUE(std::isnan(mean) || mean == 0.3) << mean;
  }
}

TEST(Carry, RefusesValuesThatDoNotFit) {
  Polygons a;
  add_box(a, 0, 0, 1, 1);
  add_box(a, 0, 0, 1, 1);
  Polygons b;
  add_box(b, 0, 0, 1, 1);
  const Context ctx = one_thread_or_two();
  const Match found = match(ctx, a.view(), b.view());
  const auto refused = [](ErrorCode code, const std::string& part, const auto& call) {
    try {
      call();
      ADD_FAILURE() << "no error about " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const std::vector<double> one = {1};
  const std::vector<double> infinite = {1, HUGE_VAL};
  const std::vector<double> huge = {1.7e308, 1.7e308};
  const std::vector<std::int64_t> codes = {0, -2};
  refused(ErrorCode::invalid_argument, "1 values", [&] { carry(ctx, found, one, CarryRule::sum); });
  refused(ErrorCode::invalid_argument, "value 1 is infinite", [&] { carry(ctx, found, infinite, CarryRule::mean); });
  refused(ErrorCode::bad_data, "feature 0 of b", [&] { carry(ctx, found, huge, CarryRule::sum); });
  refused(ErrorCode::invalid_argument, "code 1 is -2", [&] { carry_codes(ctx, found, codes); });
  refused(ErrorCode::invalid_argument, "1 codes", [&] { carry_codes(ctx, found, std::span(codes).first(1)); });
  CancelToken stop;
  stop.cancel();
  const Context stopped = Context::cpu({.threads = kFewestThreads, .cancel = stop});
  refused(ErrorCode::cancelled, "", [&] { carry_codes(stopped, found, std::vector<std::int64_t>{0, 1}); });
  refused(ErrorCode::cancelled, "", [&] { list_changes(stopped, found); });
  refused(ErrorCode::cancelled, "", [&] { overlaps_within(stopped, a.view()); });
  const Context small = Context::cpu({.threads = kFewestThreads, .memory_limit = 20});
  refused(ErrorCode::over_memory, "carry", [&] { carry(small, found, huge, CarryRule::mean); });
  refused(ErrorCode::over_memory, "carry", [&] { carry_codes(small, found, std::vector<std::int64_t>{0, 1}); });
  refused(ErrorCode::over_memory, "list_changes", [&] { list_changes(small, found); });
  refused(ErrorCode::over_memory, "overlaps_within", [&] { overlaps_within(small, a.view()); });
}

// Each kept pair in one line, each feature in at least one, by group.
TEST(ListChanges, ListsWhatBecameOfEveryFeature) {
  const ManyBoxes maps;
  const Context ctx = one_thread_or_two();
  for (const double threshold : {0.05, 0.25, 0.9}) {
    const Match found = match(ctx, maps.a.view(), maps.b.view(), {.rule = EdgeRule::share, .threshold = threshold});
    const std::vector<ListedChange> lines = list_changes(ctx, found);
    std::vector<ListedChange> expected;
    for (std::size_t g = 0; g < found.groups.size(); ++g) {
      const auto group = static_cast<std::int64_t>(g);
      bool paired = false;
      for (const MatchPair& pair : found.pairs) {
        if (!pair.kept || pair.group != group) continue;
        paired = true;
        expected.push_back({found.groups[g].change, group, pair.overlap.a, pair.overlap.b, pair.overlap.area,
                            pair.share_a, pair.share_b});
      }
      if (paired) continue;
      for (std::size_t i = 0; i < found.a.size(); ++i) {
        if (found.a[i].group == group) expected.push_back({Change::removed, group, static_cast<std::int64_t>(i)});
      }
      for (std::size_t j = 0; j < found.b.size(); ++j) {
        if (found.b[j].group == group) expected.push_back({Change::created, group, -1, static_cast<std::int64_t>(j)});
      }
    }
    ASSERT_EQ(lines.size(), expected.size());
    for (std::size_t k = 0; k < lines.size(); ++k) {
      EXPECT_EQ(lines[k].change, expected[k].change);
      EXPECT_EQ(lines[k].group, expected[k].group);
      EXPECT_EQ(lines[k].a, expected[k].a);
      EXPECT_EQ(lines[k].b, expected[k].b);
      EXPECT_TRUE(same_bits({lines[k].area, lines[k].share_a, lines[k].share_b},
                            {expected[k].area, expected[k].share_a, expected[k].share_b}));
    }
  }
}

// Thin fields, each moved by most of its width: an overlap with the next one is two thirds of both fields' widths.
TEST(Match, SliversJoinNothing) {
  Polygons a;
  Polygons b;
  for (int i = 0; i < 6; ++i) {
    add_box(a, 10 * i, 0, 10 * i + 10, 100);          // wide fields
    add_box(b, 10 * i + 0.5, 0, 10 * i + 10.5, 100);  // moved a little
  }
  add_box(a, 60, 0, 60.75, 100);  // a path that is narrower than the shift is large
  const Context ctx = one_thread_or_two();
  const Match joined = match(ctx, a.view(), b.view(), {.rule = EdgeRule::area});
  EXPECT_EQ(joined.groups.size(), 1U);
  EXPECT_EQ(joined.groups[0].change, Change::complex);
  const Match apart = match(ctx, a.view(), b.view(), {.rule = EdgeRule::area, .sliver_width = 1});
  EXPECT_EQ(apart.groups.size(), 7U);
  for (const MatchPair& pair : apart.pairs) {
    const bool half_of_both = std::min(pair.share_a, pair.share_b) >= 0.5;
    EXPECT_EQ(pair.sliver, pair.overlap.width < 1 && !half_of_both);
    EXPECT_EQ(pair.kept, !pair.sliver && pair.overlap.area > 0);
    EXPECT_FALSE(pair.sliver && pair.doubtful);
  }
  // The default keeps what has half of the smaller one, whatever its width; a sliver is none.
  const auto kept_by = [&](double width) {
    const Match found = match(ctx, a.view(), b.view(), {.sliver_width = width});
    return std::count_if(found.pairs.begin(), found.pairs.end(), [](const MatchPair& pair) { return pair.kept; });
  };
  EXPECT_EQ(kept_by(0), 7);
  EXPECT_EQ(kept_by(1), 6);
  EXPECT_THROW(match(ctx, a.view(), b.view(), {.sliver_width = -1}), Error);
}

// The claim of the contract: what has no room for a circle of diameter W is narrower than W, also if it is bent.
TEST(Match, WhatHasNoRoomForACircleIsASliver) {
  std::mt19937_64 random(4);
  const Context ctx = one_thread_or_two();
  for (int turn = 0; turn < 20; ++turn) {
    // A staircase of strips 0.8 wide: no circle of diameter 1 fits in, nor in its corners (0.94).
    Polygons strip;
    std::vector<double> there;
    std::vector<double> back;
    double x = 0;
    double y = 0;
    for (int step = 0; step < 8; ++step) {
      const double right = 3 + static_cast<double>(random() % 7);
      const double up = 2 + static_cast<double>(random() % 5);
      there.insert(there.end(), {x, y, x + right, y});
      back.insert(back.begin(), {x - 0.8, y + 0.8, x + right - 0.8, y + 0.8});
      x += right;
      y += up;
    }
    // Corners of the way back, in its order.
    std::vector<double> ring = there;
    std::vector<double> reversed;
    for (std::size_t k = 0; k < back.size(); k += 4) {
      reversed.insert(reversed.end(), {back[k + 2], back[k + 3], back[k], back[k + 1]});
    }
    ring.insert(ring.end(), reversed.begin(), reversed.end());
    strip.add_ring(ring);
    strip.end_part();
    strip.end_feature();
    Polygons whole;
    add_box(whole, -100, -100, 200, 200);
    const Match found = match(ctx, strip.view(), whole.view(), {.sliver_width = 1});
    ASSERT_EQ(found.pairs.size(), 1U);
    EXPECT_TRUE(found.pairs[0].sliver) << found.pairs[0].overlap.width;
  }
}

TEST(OverlapsWithin, FindsLevelsOfAHierarchy) {
  Polygons levels;
  add_box(levels, 0, 0, 4, 4);
  for (int i = 0; i < 4; ++i) add_box(levels, i, 0, i + 1, 4);
  add_box(levels, 10, 0, 11, 1);
  const LayerOverlap found = overlaps_within(one_thread_or_two(), levels.view());
  EXPECT_EQ(found.pairs, 4);
  EXPECT_EQ(found.features, 5);
  EXPECT_EQ(found.area, 33);
  EXPECT_EQ(found.covered, 32);
  EXPECT_EQ(found.first, 0);
  EXPECT_EQ(found.second, 1);
  EXPECT_EQ(found.largest, 4);
}

TEST(OverlapsWithin, IsWhatTheJoinOfALayerWithItselfSays) {
  const ManyBoxes maps;
  for (const Context& ctx : contexts(1)) {
    const Overlaps all = overlaps(ctx, maps.a.view(), maps.a.view());
    LayerOverlap expected;
    std::vector<double> shared(all.areas_a.size(), 0);
    std::set<std::int64_t> members;
    for (const Overlap& pair : all.pairs) {
      if (pair.a == pair.b || !(pair.area > 0)) continue;
      shared[static_cast<std::size_t>(pair.a)] += pair.area;
      members.insert(pair.a);
      if (pair.a < pair.b) ++expected.pairs;
      if (pair.a < pair.b) expected.largest = std::max(expected.largest, pair.area);
    }
    for (std::size_t i = 0; i < shared.size(); ++i) expected.covered += std::min(shared[i], all.areas_a[i]);
    const LayerOverlap found = overlaps_within(ctx, maps.a.view());
    EXPECT_EQ(found.pairs, expected.pairs);
    EXPECT_EQ(found.features, static_cast<std::int64_t>(members.size()));
    EXPECT_TRUE(std::abs(found.largest - expected.largest) <= 1e-12 * expected.largest);
    EXPECT_TRUE(std::abs(found.covered - expected.covered) <= 1e-12 * expected.covered);
    EXPECT_GT(found.covered, 0);
    EXPECT_LT(found.covered, found.area);
  }
}

// Their number is known only as they are found.
TEST(OverlapsWithin, RefusesPairsThatAreTooMany) {
  Polygons pile;
  for (int i = 0; i < 300; ++i) add_box(pile, 0, 0, 1, 1);
  EXPECT_EQ(overlaps_within(one_thread_or_two(), pile.view()).pairs, 300 * 299 / 2);
  const Context small = Context::cpu({.threads = kFewestThreads, .memory_limit = 1'000'000});
  try {
    overlaps_within(small, pile.view());
    ADD_FAILURE() << "2 MB of pairs fit in 1 MB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory);
  }
}

TEST(OverlapsWithin, NeighborsThatTouchAreNone) {
  Polygons grid;
  for (int i = 0; i < 30; ++i) add_box(grid, i % 6 / 3.0, i / 6 / 3.0, (i % 6 + 1) / 3.0, (i / 6 + 1) / 3.0);
  const LayerOverlap found = overlaps_within(one_thread_or_two(), grid.view());
  EXPECT_EQ(found.pairs, 0);
  EXPECT_EQ(found.covered, 0);
  EXPECT_EQ(found.first, -1);
}

}  // namespace
}  // namespace vicinal::contract
