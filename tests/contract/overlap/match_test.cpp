// match against what its definition says of the reference's overlaps (contract clause 18): which pairs each rule keeps,
// groups, words, best partners, measures; the same on every thread count; what must be refused.
#include "vicinal/match.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "overlap/box.hpp"
#include "reference/polygons.hpp"

namespace vicinal::contract {
namespace {

Context two_threads() {
  return Context::cpu({.threads = 2});
}

// One feature each of: unchanged, modified, split, merged, removed, created, and two that share parts.
struct Town {
  Polygons a;
  Polygons b;
  Town() {
    add_box(a, 0, 0, 4, 4);  // 0: unchanged
    add_box(b, 0, 0, 4, 4);
    add_box(a, 10, 0, 14, 4);  // 1: modified
    add_box(b, 10, 0, 14, 3);
    add_box(a, 20, 0, 24, 4);  // 2: split
    add_box(b, 20, 0, 22, 4);
    add_box(b, 22, 0, 24, 4);
    add_box(a, 30, 0, 31, 4);  // 3, 4: merged
    add_box(a, 31, 0, 34, 4);
    add_box(b, 30, 0, 34, 4);
    add_box(a, 40, 0, 44, 4);  // 5: removed
    add_box(b, 50, 0, 54, 4);  // created
    add_box(a, 60, 0, 64, 4);  // 6, 7: complex
    add_box(a, 64, 0, 68, 4);
    add_box(b, 60, 0, 66, 4);
    add_box(b, 66, 0, 68, 4);
    add_box(b, 64, 0, 66, 2);  // overlaps the one before last
  }
};

TEST(Match, SaysWhatBecameOfEachFeature) {
  const Town town;
  const Match found = match(two_threads(), town.a.view(), town.b.view());
  std::vector<std::string> words;
  for (const MatchGroup& group : found.groups) {
    words.push_back(std::string(name_of(group.change)) + " " + std::string(name_of(group.type)));
  }
  EXPECT_EQ(words, (std::vector<std::string>{"unchanged 1:1", "modified 1:1", "split 1:n", "merged n:1", "removed 1:0",
                                             "complex n:m", "created 0:1"}));
  EXPECT_EQ(found.groups[1].iou, 0.75);
  EXPECT_EQ(found.groups[2].coherence, 1);
  EXPECT_EQ(found.groups[2].shared, 16);
  EXPECT_EQ(found.groups[3].area_a, 16);
  EXPECT_FALSE(found.groups[3].overlaps_itself);
  EXPECT_TRUE(found.groups[5].overlaps_itself);
  EXPECT_EQ(found.groups[5].coherence, 0.5);  // box 64..68 joins the others by half of itself
  EXPECT_EQ(found.a[2].best, 2);              // of two equal halves the smaller number
  EXPECT_EQ(found.a[5].best, -1);
  EXPECT_EQ(found.b[4].best, 4);
}

TEST(Match, TouchingChainsNeighborsAndAreaDoesNot) {
  Polygons a;
  Polygons b;
  for (int i = 0; i < 5; ++i) {
    add_box(a, i, 0, i + 1, 1);
    add_box(b, i, 0, i + 1, 1);
  }
  const Context ctx = two_threads();
  EXPECT_EQ(match(ctx, a.view(), b.view(), {.rule = EdgeRule::touch}).groups.size(), 1U);
  const Match by_area = match(ctx, a.view(), b.view(), {.rule = EdgeRule::area});
  EXPECT_EQ(by_area.groups.size(), 5U);
  EXPECT_EQ(by_area.pairs.size(), 13U);
  const Match hubs = match(ctx, a.view(), b.view(), {.rule = EdgeRule::touch, .max_partners = 2});
  EXPECT_TRUE(hubs.a[1].hub);
  EXPECT_FALSE(hubs.a[0].hub);
  EXPECT_EQ(hubs.groups.size(), 8U);  // of the ends only, each with its copy
}

// A chain: each field of b takes a tenth of the next one of a, so that area joins all.
TEST(Match, DividesGroupsAboveALimitWhereSharesAreSmall) {
  Polygons a;
  Polygons b;
  for (int i = 0; i < 40; ++i) {
    add_box(a, i, 0, i + 1, 1);
    add_box(b, i + 0.125, 0, i + 1.125, 1);
  }
  const Match whole = match(two_threads(), a.view(), b.view(), {.rule = EdgeRule::area});
  EXPECT_EQ(whole.groups.size(), 1U);
  EXPECT_EQ(whole.split_groups, 0);
  const SplitOptions limits[] = {{.max_members = 2}, {.max_steps = 1}, {.max_members = 7}, {.max_steps = 5}};
  for (const SplitOptions& limit : limits) {
    std::vector<bool> cut_before;
    for (const int threads : {1, 2, 3, 7}) {
      const Match found =
          match(Context::cpu({.threads = threads}), a.view(), b.view(), {.rule = EdgeRule::area, .split = limit});
      EXPECT_EQ(found.split_groups, 1);
      std::vector<bool> cut;
      for (std::size_t k = 0; k < found.pairs.size(); ++k) {
        const MatchPair& pair = found.pairs[k];
        cut.push_back(pair.cut);
        const std::int64_t group_a = found.a[static_cast<std::size_t>(pair.overlap.a)].group;
        const std::int64_t group_b = found.b[static_cast<std::size_t>(pair.overlap.b)].group;
        EXPECT_EQ(pair.kept, whole.pairs[k].kept && !pair.cut);
        EXPECT_EQ(pair.group, pair.kept ? group_a : -1);
        if (whole.pairs[k].kept) {
          EXPECT_EQ(pair.cut, group_a != group_b);
        } else {
          EXPECT_FALSE(pair.cut);
        }
      }
      for (const MatchGroup& group : found.groups) {
        const std::int64_t members = group.count_a + group.count_b;
        EXPECT_TRUE(limit.max_members == 0 || members <= limit.max_members);
        EXPECT_TRUE(limit.max_steps == 0 || members <= limit.max_steps + 1);  // of a chain
      }
      if (limit.max_members == 2) {
        EXPECT_EQ(found.groups.size(), 40U);
        EXPECT_EQ(found.groups[0].coherence, 0.875);
      }
      EXPECT_TRUE(cut_before.empty() || cut == cut_before);
      cut_before = cut;
    }
  }
}

struct Kept {
  MatchOptions options;
  bool (*keeps)(const reference::Shared& shared, double width);
};

double share_of_smaller(const reference::Shared& shared) {
  return shared.area / std::min(shared.area_a, shared.area_b);
}

const Kept kRules[] = {
    {{.rule = EdgeRule::touch}, [](const reference::Shared&, double) { return true; }},
    {{.rule = EdgeRule::area}, [](const reference::Shared& s, double) { return s.area > 1e-20; }},
    {{.rule = EdgeRule::share, .threshold = 0.3},
     [](const reference::Shared& s, double) { return share_of_smaller(s) >= 0.3; }},
    {{.rule = EdgeRule::share_a, .threshold = 0.3},
     [](const reference::Shared& s, double) { return s.area / s.area_a >= 0.3; }},
    {{.rule = EdgeRule::share_b, .threshold = 0.3},
     [](const reference::Shared& s, double) { return s.area / s.area_b >= 0.3; }},
    {{.rule = EdgeRule::iou, .threshold = 0.2},
     [](const reference::Shared& s, double) { return s.area / (s.area_a + s.area_b - s.area) >= 0.2; }},
    {{.rule = EdgeRule::width, .min_width = 0.7}, [](const reference::Shared&, double w) { return w >= 0.7; }},
    {{.rule = EdgeRule::standard, .threshold = 0.2, .min_width = 0.7},
     [](const reference::Shared& s, double w) {
       return share_of_smaller(s) >= 0.5 || (share_of_smaller(s) >= 0.2 && w >= 0.7);
     }},
};

// Boxes with corners at multiples of 1/7, so that no share is a threshold to the last bit.
TEST(Match, KeepsWhatTheRuleSays) {
  std::mt19937_64 random(5);
  const auto place = [&random](int most) {
    return static_cast<double>(random() % static_cast<unsigned>(most)) / 7 + 0.01;
  };
  Polygons a;
  Polygons b;
  for (int i = 0; i < 24; ++i) {
    for (Polygons* layer : {&a, &b}) {
      const double x = place(60);
      const double y = place(60);
      add_box(*layer, x, y, x + 0.2 + place(15), y + 0.3 + place(15));
    }
  }
  std::vector<reference::Shared> expected;
  for (std::int64_t i = 0; i < 24; ++i) {
    for (std::int64_t j = 0; j < 24; ++j) expected.push_back(reference::shared(a.view(), i, b.view(), j));
  }
  for (std::size_t r = 0; r < std::size(kRules); ++r) {
    const Match found = match(two_threads(), a.view(), b.view(), kRules[r].options);
    SCOPED_TRACE(std::string(name_of(kRules[r].options.rule)));
    std::size_t at = 0;
    for (std::int64_t i = 0; i < 24; ++i) {
      for (std::int64_t j = 0; j < 24; ++j) {
        const reference::Shared& shared = expected[static_cast<std::size_t>(24 * i + j)];
        if (shared.relation == RegionRelation::disjoint) continue;
        ASSERT_LT(at, found.pairs.size());
        const MatchPair& pair = found.pairs[at++];
        ASSERT_TRUE(pair.overlap.a == i && pair.overlap.b == j);
        const double width = shared.perimeter > 0 ? 2 * shared.area / shared.perimeter : 0;
        EXPECT_EQ(pair.kept, kRules[r].keeps(shared, shared.area > 1e-20 ? width : 0)) << i << ", " << j;
        EXPECT_EQ(pair.group >= 0, pair.kept);
        if (!pair.kept) continue;
        EXPECT_EQ(found.a[static_cast<std::size_t>(i)].group, pair.group);
        EXPECT_EQ(found.b[static_cast<std::size_t>(j)].group, pair.group);
      }
    }
    EXPECT_EQ(at, found.pairs.size());
    std::int64_t members = 0;
    for (const MatchGroup& group : found.groups) members += group.count_a + group.count_b;
    EXPECT_EQ(members, 48);
    for (const Context& ctx : contexts(r)) {
      const Match again = match(ctx, a.view(), b.view(), kRules[r].options);
      ASSERT_EQ(again.groups.size(), found.groups.size());
      for (std::size_t g = 0; g < found.groups.size(); ++g) {
        EXPECT_TRUE(same_bits({again.groups[g].shared, again.groups[g].iou, again.groups[g].coherence},
                              {found.groups[g].shared, found.groups[g].iou, found.groups[g].coherence}));
      }
    }
  }
}

TEST(Match, KeepsAQuarterOfTheSmallerByDefault) {
  Polygons a;
  Polygons b;
  const double shares[] = {0.1, 0.249, 0.251, 0.9};
  for (int i = 0; i < 4; ++i) {
    add_box(a, 10 * i, 0, 10 * i + 1, 1);
    add_box(b, 10 * i + 1 - shares[i], 0, 10 * i + 5, 1);
  }
  const Match found = match(two_threads(), a.view(), b.view());
  EXPECT_EQ(found.options.threshold, 0.25);
  ASSERT_EQ(found.pairs.size(), 4U);
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(found.pairs[k].kept, k >= 2) << k;
}

TEST(Match, CodesMayBeRequiredOrEnough) {
  Polygons a;
  Polygons b;
  add_box(a, 0, 0, 100, 1);
  add_box(a, 0, 1, 100, 2);
  add_box(b, 0, 0, 100, 1.04);  // a little of the second one
  const std::vector<std::int64_t> codes_a = {7, 8};
  const std::vector<std::int64_t> codes_b = {8};
  const auto kept = [&](Agreement agreement) {
    const Match found =
        match(two_threads(), a.view(), b.view(), {.agreement = agreement, .codes_a = codes_a, .codes_b = codes_b});
    std::vector<std::int64_t> ids;
    for (const MatchPair& pair : found.pairs) {
      if (pair.kept) ids.push_back(pair.overlap.a);
    }
    return ids;
  };
  EXPECT_EQ(kept(Agreement::ignored), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(kept(Agreement::required), (std::vector<std::int64_t>{}));
  EXPECT_EQ(kept(Agreement::enough), (std::vector<std::int64_t>{0, 1}));
}

TEST(Match, ListsWhatIsNearTheThreshold) {
  Polygons a;
  Polygons b;
  for (int i = 0; i < 4; ++i) {
    add_box(a, 10 * i, 0, 10 * i + 1, 1);
    add_box(b, 10 * i + 1 - (i == 0 ? 0.04 : i == 1 ? 0.06 : i == 2 ? 0.19 : 0.21), 0, 10 * i + 2, 1);
  }
  const Match found = match(two_threads(), a.view(), b.view(), {.rule = EdgeRule::share_a, .threshold = 0.1});
  ASSERT_EQ(found.pairs.size(), 4U);
  EXPECT_FALSE(found.pairs[0].doubtful);
  EXPECT_TRUE(found.pairs[1].doubtful && !found.pairs[1].kept);
  EXPECT_TRUE(found.pairs[2].doubtful && found.pairs[2].kept);
  EXPECT_FALSE(found.pairs[3].doubtful);
}

TEST(Match, RefusesOptionsOutOfRange) {
  const Town town;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<MatchOptions, std::string>> wrong = {
      {{.threshold = 1.5}, "threshold = 1.5"},     {{.threshold = nan}, "threshold = nan"},
      {{.min_width = -1}, "min_width = -1"},       {{.rule = EdgeRule::width}, "min_width = 0"},
      {{.unchanged_iou = 2}, "unchanged_iou = 2"}, {{.max_partners = -1}, "max_partners = -1"},
      {{.max_area = nan}, "max_area = nan"},       {{.agreement = Agreement::required}, "codes_a = 0 codes"},
  };
  for (const auto& [options, part] : wrong) {
    try {
      match(two_threads(), town.a.view(), town.b.view(), options);
      ADD_FAILURE() << "no error about " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(edge_rule_from("closest"), Error);
  EXPECT_EQ(edge_rule_from("share_a"), EdgeRule::share_a);
}

}  // namespace
}  // namespace vicinal::contract
