// The overlap join against the reference (contract clause 18): areas, relations and widths of regions on a grid of
// whole numbers, where corners, edges and whole borders fall on each other, and of regions in general position; the
// same bits from every instruction set and thread count; what must be refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include "check.hpp"
#include "contexts.hpp"
#include "reference/polygons.hpp"
#include "vicinal/match.hpp"

namespace vicinal::contract {
namespace {

using Random = std::mt19937_64;

int whole(Random& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
}

void add_rectangle(Polygons& to, double x0, double y0, double x1, double y1) {
  const double xy[] = {x0, y0, x1, y0, x1, y1, x0, y1, x0, y0};
  to.add_ring(xy);
}

// A region whose corners are whole numbers of [0, 12]: a triangle, a rectangle, one with a hole, an L, two parts.
void add_on_grid(Polygons& to, Random& random) {
  const int kind = whole(random, 0, 4);
  const int x = whole(random, 0, 5);
  const int y = whole(random, 0, 5);
  const int w = whole(random, 3, 7);
  const int h = whole(random, 3, 7);
  if (kind == 0) {
    double xy[6];
    do {
      for (double& v : xy) v = whole(random, 0, 12);
    } while ((xy[2] - xy[0]) * (xy[5] - xy[1]) == (xy[4] - xy[0]) * (xy[3] - xy[1]));
    to.add_ring(xy);
  } else if (kind == 1) {
    add_rectangle(to, x, y, x + w, y + h);
  } else if (kind == 2) {
    add_rectangle(to, x, y, x + w, y + h);
    add_rectangle(to, x + 1, y + 1, x + w - 1, y + h - 1);
  } else if (kind == 3) {
    const double l[] = {x + 0., y + 0., x + w + 0., y + 0.,     x + w + 0., y + 1.,
                        x + 1., y + 1., x + 1.,     y + h + 0., x + 0.,     y + h + 0.};
    to.add_ring(l);
  } else {
    add_rectangle(to, x, y, x + 1, y + h);
    to.end_part();
    add_rectangle(to, x + 2, y, x + w, y + 1);
  }
  to.end_part();
  to.end_feature();
}

// A star of `corners` corners around a center.
void add_star(Polygons& to, Random& random, int corners, double x, double y, double radius) {
  std::uniform_real_distribution<double> share(0.3, 1);
  std::vector<double> xy;
  for (int k = 0; k < corners; ++k) {
    const double r = radius * share(random);
    const double angle = 2 * std::numbers::pi * k / corners;
    xy.push_back(x + r * std::cos(angle));
    xy.push_back(y + r * std::sin(angle));
  }
  to.add_ring(xy);
  to.end_part();
  to.end_feature();
}

const Overlap* find(const Overlaps& found, std::int64_t a, std::int64_t b) {
  for (const Overlap& pair : found.pairs) {
    if (pair.a == a && pair.b == b) return &pair;
  }
  return nullptr;
}

// Coordinates of `scale` are rounded by at most that times 2^-53, which moves an area by the perimeter times that.
void check_against_reference(const Polygons& a, const Polygons& b, const Overlaps& found, double tolerance) {
  for (std::int64_t i = 0; i < a.size(); ++i) {
    for (std::int64_t j = 0; j < b.size(); ++j) {
      SCOPED_TRACE("pair " + std::to_string(i) + ", " + std::to_string(j));
      const reference::Shared expected = reference::shared(a.view(), i, b.view(), j);
      const Overlap* const pair = find(found, i, j);
      ASSERT_EQ(name_of(pair == nullptr ? RegionRelation::disjoint : pair->relation), name_of(expected.relation));
      if (pair == nullptr) continue;
      const double smaller = std::min(expected.area_a, expected.area_b);
      if (!(std::fabs(pair->area - expected.area) <= tolerance * smaller)) {
        ADD_FAILURE() << "area " << pair->area << ", not " << expected.area;
      }
      if (pair->relation == RegionRelation::touches || expected.area < 1e-6 * smaller) continue;
      const double width = 2 * expected.area / expected.perimeter;
      if (!(std::fabs(pair->width - width) <= 1e-6 * width)) {
        ADD_FAILURE() << "width " << pair->width << ", not " << width;
      }
    }
  }
}

bool same(const Overlaps& x, const Overlaps& y) {
  return x.pairs.size() == y.pairs.size() && same_bits(x.areas_a, y.areas_a) && same_bits(x.areas_b, y.areas_b) &&
         std::equal(x.pairs.begin(), x.pairs.end(), y.pairs.begin(), [](const Overlap& p, const Overlap& q) {
           return p.a == q.a && p.b == q.b && p.relation == q.relation &&
                  same_bits({p.area, p.width}, {q.area, q.width});
         });
}

void check_bits(const Polygons& a, const Polygons& b, const Overlaps& expected, std::uint64_t turn) {
  for (const Context& ctx : contexts(turn)) {
    const Overlaps found = overlaps(ctx, a.view(), b.view());
    EXPECT_TRUE(same(found, expected)) << ctx.device() << ", " << name_of(ctx.isa()) << ", " << ctx.threads();
    EXPECT_EQ(found.candidates, expected.candidates) << ctx.device();
    const Overlaps narrow = overlaps(ctx, a.view(), b.view(), {.widths = false});
    ASSERT_EQ(narrow.pairs.size(), expected.pairs.size()) << ctx.device();
    for (std::size_t k = 0; k < narrow.pairs.size(); ++k) {
      EXPECT_TRUE(same_bits({narrow.pairs[k].area, narrow.pairs[k].width}, {expected.pairs[k].area, 0}));
    }
  }
}

Context one_context() {
  return Context::cpu({.threads = 2});
}

/// One thread of plain x86-64: what every other context must give the bits of.
Overlaps plainest(const Polygons& a, const Polygons& b) {
  return overlaps(Context::cpu({.threads = 1, .isa = Isa::baseline}), a.view(), b.view());
}

bool has_device() {
  return cuda_missing().empty();
}

TEST(Overlaps, EqualTheReferenceOnAGrid) {
  Random random(1);
  for (std::uint64_t round = 0; round < 12; ++round) {
    if (is_left_out(round)) continue;
    Polygons a;
    Polygons b;
    for (int i = 0; i < 14; ++i) add_on_grid(a, random);
    for (int j = 0; j < 15; ++j) add_on_grid(b, random);
    const Overlaps found = overlaps(one_context(), a.view(), b.view());
    SCOPED_TRACE("round " + std::to_string(round));
    check_against_reference(a, b, found, 1e-14);
    check_bits(a, b, found, round);
    if (HasFailure()) return;
  }
}

TEST(Overlaps, EqualTheReferenceInGeneralPosition) {
  Random random(2);
  std::uniform_real_distribution<double> place(0, 10);
  for (std::uint64_t round = 0; round < 6; ++round) {
    if (is_left_out(round)) continue;
    const double offset = round % 3 == 0 ? 0 : round % 3 == 1 ? 1e4 : -3e6;
    Polygons a;
    Polygons b;
    for (int i = 0; i < 7; ++i) {
      add_star(a, random, whole(random, 3, 19), offset + place(random), offset + place(random), 3);
      add_star(b, random, whole(random, 3, 19), offset + place(random), offset + place(random), i == 0 ? 1e-3 : 3);
    }
    const Overlaps found = overlaps(one_context(), a.view(), b.view());
    SCOPED_TRACE("round " + std::to_string(round));
    check_against_reference(a, b, found, 1e-12);
    check_bits(a, b, found, round);
    if (HasFailure()) return;
  }
}

// Thousands of corners: boxes are halved many times, and the sum is that of two rings cut into slices.
TEST(Overlaps, OfRegionsWithManyCorners) {
  Random random(3);
  const int corners = kSparse > 1 ? 500 : 5000;
  Polygons a;
  Polygons b;
  Polygons slices;
  add_star(a, random, corners, 0, 0, 1);
  add_star(b, random, corners, 0.01, 0.02, 1);
  for (int k = 0; k < 50; ++k) {  // of [-1.2, 1.3]
    const double left = -1.2 + 0.05 * k;
    add_rectangle(slices, left, -2, k == 49 ? 1.3 : -1.2 + 0.05 * (k + 1), 2);
    slices.end_part();
    slices.end_feature();
  }
  const Context ctx = one_context();
  const Overlaps whole_of_a = overlaps(ctx, a.view(), slices.view());
  double sum = 0;
  double heights = 0;
  for (const Overlap& pair : whole_of_a.pairs) sum += pair.area;
  if (!(std::fabs(sum - whole_of_a.areas_a[0]) <= 1e-12 * sum))
    ADD_FAILURE() << sum << ", not " << whole_of_a.areas_a[0];
  const Overlaps both = overlaps(ctx, a.view(), b.view());
  ASSERT_EQ(both.pairs.size(), 1U);
  check_bits(a, b, both, 1);
  // The same by cutting a into slices first is the sum over the slices of a polygon that is not at hand; by symmetry at
  // least, the two orders agree.
  const Overlaps turned = overlaps(ctx, b.view(), a.view());
  heights = turned.pairs[0].area;
  if (!(std::fabs(heights - both.pairs[0].area) <= 1e-12 * heights)) ADD_FAILURE() << heights;
  if (!(std::fabs(turned.pairs[0].width - both.pairs[0].width) <= 1e-9)) ADD_FAILURE() << turned.pairs[0].width;
  const Overlaps itself = overlaps(ctx, a.view(), a.view());
  EXPECT_EQ(itself.pairs[0].relation, RegionRelation::equals);
  EXPECT_EQ(itself.pairs[0].area, itself.areas_a[0]);
}

// Every size that a device has a class for, and the first beyond it; edges that stand upright, lie on the same line,
// are a few roundings long, or a whole map's width from the origin; the same polygon thrice; holes that fit.
TEST(Overlaps, TheSameBitsOfHostileShapes) {
  Random random(5);
  std::uniform_real_distribution<double> place(0, 40);
  for (const double offset : {0.0, 1e7, -1e12}) {
    Polygons a;
    Polygons b;
    for (const int corners : {3, 6, 7, 16, 17, 40, 41, 90}) {
      add_star(a, random, corners, offset + place(random), offset + place(random), 12);
      add_star(b, random, corners, offset + place(random), offset + place(random), 12);
    }
    for (int k = 0; k < 9; ++k) {
      const double x = offset + 4 * k;
      add_rectangle(a, x, offset, x + 4, offset + 40);  // side by side, all upright
      a.end_part();
      a.end_feature();
      add_rectangle(b, x, offset + k, x + 4, offset + 2 * k + 1);  // the same columns
      add_rectangle(b, x + 1, offset + k, x + 2, offset + 2 * k + 0.5);
      b.end_part();
      b.end_feature();
    }
    for (Polygons* side : {&a, &b}) {
      for (int k = 0; k < 3; ++k) {
        add_rectangle(*side, offset + 10, offset + 10, offset + 20, offset + 20);
        side->end_part();
        side->end_feature();
      }
      const double next = std::nextafter(offset + 15, 1e300);
      const double sliver[] = {offset + 15, offset + 5, next, offset + 25, offset + 15, offset + 26};
      side->add_ring(sliver);
      side->end_part();
      side->end_feature();
      side->end_feature();  // an empty one
    }
    SCOPED_TRACE(offset);
    check_bits(a, b, plainest(a, b), 0);
  }
}

// Coordinates at the ends of the range that clause 18 names.
TEST(Overlaps, TheSameBitsOfTheLargestAndTheSmallest) {
  for (const double scale : {1e140, 1e-120}) {
    Polygons a;
    Polygons b;
    const double l[] = {-scale, -scale, scale, -scale, scale, scale, 0, scale, 0, 0, -scale, 0};
    const double triangle[] = {-scale, scale, scale, scale, 0, -scale};
    a.add_ring(l);
    b.add_ring(triangle);
    for (Polygons* one : {&a, &b}) {
      one->end_part();
      one->end_feature();
    }
    SCOPED_TRACE(scale);
    check_bits(a, b, plainest(a, b), 0);
  }
}

// Six-sided buildings, which a device decides almost alone; beside them a feature that meets them all, and one far
// away.
TEST(Overlaps, TheSameBitsOfManyBuildings) {
  Random random(6);
  std::uniform_real_distribution<double> moved(-2, 2);
  const int side = kSparse > 1 ? 20 : 60;
  Polygons a;
  Polygons b;
  for (int k = 0; k < side * side; ++k) {
    const double x = 20.0 * (k % side);
    const double y = 20.0 * (k / side);
    add_star(a, random, 6, x, y, 9);
    add_star(b, random, 6, x + moved(random), y + moved(random), 9);
  }
  add_rectangle(a, -10, -10, 20 * side + 10.0, 20 * side + 10.0);
  a.end_part();
  a.end_feature();
  add_rectangle(b, 1e9, 1e9, 1e9 + 1, 1e9 + 1);
  b.end_part();
  b.end_feature();
  const Overlaps expected = plainest(a, b);
  check_bits(a, b, expected, 2);
  for (const Context& ctx : contexts(0)) {
    if (ctx.device() == "cpu") continue;
    const Overlaps found = overlaps(ctx, a.view(), b.view());
    EXPECT_LT(found.on_host, found.candidates / 2);
    EXPECT_GE(found.device_seconds, 0);
  }
}

void expect_pair(const Polygons& a, const Polygons& b, RegionRelation relation, double area) {
  for (const Context& ctx : contexts(0)) {
    SCOPED_TRACE(ctx.device());
    const Overlaps found = overlaps(ctx, a.view(), b.view());
    ASSERT_EQ(found.pairs.size(), 1U);
    EXPECT_EQ(name_of(found.pairs[0].relation), name_of(relation));
    EXPECT_EQ(found.pairs[0].area, area);
  }
}

Polygons feature(const std::vector<std::vector<std::vector<double>>>& parts) {
  Polygons one;
  for (const auto& part : parts) {
    for (const std::vector<double>& ring : part) one.add_ring(ring);
    one.end_part();
  }
  one.end_feature();
  return one;
}

// A corner on an edge of the same feature, where that edge runs along the other feature's.
TEST(Overlaps, OfFeaturesThatTouchThemselves) {
  const std::vector<double> square = {0, 0, 4, 0, 4, 4, 0, 4};
  const Polygons plain = feature({{square}});
  const Polygons with_hole = feature({{square, {2, 0, 3, 2, 1, 2}}});  // its tip on an edge
  expect_pair(with_hole, plain, RegionRelation::covered_by, 14);
  expect_pair(plain, with_hole, RegionRelation::covers, 14);
  expect_pair(with_hole, with_hole, RegionRelation::equals, 14);
  const Polygons notched = feature({{{0, 0, 1, 0, 2, 1, 3, 0, 4, 0, 4, 4, 0, 4}, {1.5, 1, 2.5, 1, 2, 2}}});
  expect_pair(notched, feature({{{1.5, 1, 2.5, 1, 2, 2}}}), RegionRelation::touches, 0);
  const Polygons two_parts = feature({{{0, 0, 4, 0, 4, 2, 0, 2}}, {{2, 2, 3, 4, 1, 4}}});  // a tip on an edge
  expect_pair(two_parts, feature({{{0, 0, 4, 0, 4, 2, 0, 2}}}), RegionRelation::covers, 8);
  expect_pair(feature({{{1, 1, 3, 1, 3, 2, 1, 2}}}), two_parts, RegionRelation::covered_by, 2);
}

// The border between two parts, or between a hole and another, is no border of the feature.
TEST(Overlaps, OfFeaturesWhosePartsShareEdges) {
  const Polygons halves = feature({{{0, 0, 2, 0, 2, 4, 0, 4}}, {{2, -1, 4, -1, 4, 3, 2, 3}}});
  const Polygons whole = feature({{{0, 0, 2, 0, 2, -1, 4, -1, 4, 3, 2, 3, 2, 4, 0, 4}}});
  expect_pair(halves, whole, RegionRelation::equals, 16);
  expect_pair(halves, feature({{{1, 1, 3, 1, 3, 2, 1, 2}}}), RegionRelation::contains, 2);
  expect_pair(feature({{{2, -1, 4, -1, 4, 3, 2, 3}}}), halves, RegionRelation::covered_by, 8);
  const Polygons frame = feature({{{0, 0, 6, 0, 6, 6, 0, 6}, {1, 1, 3, 1, 3, 5, 1, 5}, {3, 1, 5, 1, 5, 5, 3, 5}}});
  expect_pair(feature({{{0, 0, 6, 0, 6, 6, 0, 6}, {1, 1, 5, 1, 5, 5, 1, 5}}}), frame, RegionRelation::equals, 20);
}

// Their area is below the rounding of its float64 terms, so that its sign is not that of the rounded sum.
TEST(Overlaps, OfSliversBegunAtAnyCorner) {
  Random random(7);
  std::uniform_real_distribution<double> anywhere(0, 1);
  for (int repeat = 0; repeat < 300; ++repeat) {
    std::vector<double> xy = {anywhere(random), anywhere(random), anywhere(random), anywhere(random), 0, 0};
    const double at = anywhere(random);
    xy[4] = xy[0] + at * (xy[2] - xy[0]);
    xy[5] = xy[1] + at * (xy[3] - xy[1]);
    const Polygons first = feature({{xy}});
    for (int turn = 0; turn < 2; ++turn) {
      std::rotate(xy.begin(), xy.begin() + 2, xy.end());
      const Overlaps found = overlaps(Context::cpu({.threads = 1}), first.view(), feature({{xy}}).view());
      if (found.pairs.empty()) break;  // its three corners are on a line
      EXPECT_EQ(name_of(found.pairs[0].relation), name_of(RegionRelation::equals)) << repeat;
      EXPECT_EQ(found.pairs[0].area, found.areas_a[0]) << repeat;
      EXPECT_EQ(found.areas_a[0], found.areas_b[0]) << repeat;
      EXPECT_GT(found.areas_a[0], 0) << repeat;
    }
  }
}

// Edges whose slope is near the largest float, and squares whose area is near the smallest.
TEST(Overlaps, AtTheEndsOfTheRange) {
  const double low = 1e-120;
  const double high = 1e140;
  const double next = std::nextafter(low, 1.0);
  const Polygons steep = feature({{{low, -high, next, high, high, -high}}});
  const Polygons box = feature({{{0, low, high, low, high, high, 0, high}}});
  for (const Context& ctx : contexts(0)) {
    const Overlaps found = overlaps(ctx, steep.view(), box.view());
    ASSERT_EQ(found.pairs.size(), 1U);
    EXPECT_EQ(name_of(found.pairs[0].relation), name_of(RegionRelation::overlaps));
    EXPECT_TRUE(found.pairs[0].area > 0.2 * high * high && found.pairs[0].area < 0.3 * high * high);
    EXPECT_TRUE(std::isfinite(found.pairs[0].width));
  }
  const Polygons small = feature({{{0, 0, 2 * low, 0, 2 * low, 2 * low, 0, 2 * low}}});
  const Polygons moved = feature({{{low, low, 3 * low, low, 3 * low, 3 * low, low, 3 * low}}});
  const Overlaps found = overlaps(Context::cpu(), small.view(), moved.view());
  ASSERT_EQ(found.pairs.size(), 1U);
  EXPECT_EQ(name_of(found.pairs[0].relation), name_of(RegionRelation::overlaps));
  EXPECT_TRUE(std::fabs(found.pairs[0].area / (low * low) - 1) <= 1e-12);
}

// Where a device's memory is too small for both maps they go there in parts; for a feature's, it is refused.
TEST(Overlaps, GoToASmallDeviceInParts) {
  if (!has_device()) GTEST_SKIP() << cuda_missing();
  Random random(7);
  std::uniform_real_distribution<double> place(0, 300);
  Polygons a;
  Polygons b;
  for (int k = 0; k < 9000; ++k) add_star(a, random, 5, place(random), place(random), 9);
  for (int k = 0; k < 3000; ++k) add_star(b, random, 7, place(random), place(random), 9);
  const Overlaps expected = plainest(a, b);
  const Overlaps found =
      overlaps(Context::cuda({.device_memory_limit = std::uint64_t{6} << 20, .threads = 2}), a.view(), b.view());
  EXPECT_TRUE(same(found, expected));
  try {
    overlaps(Context::cuda({.device_memory_limit = 1000}), a.view(), b.view());
    ADD_FAILURE() << "maps in a kilobyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
  }
  CancelToken token;
  token.cancel();
  EXPECT_THROW(overlaps(Context::cuda({.cancel = token}), a.view(), b.view()), Error);
  EXPECT_TRUE(overlaps(cuda_context(), Polygons().view(), b.view()).pairs.empty());
  Polygons heap;
  for (int i = 0; i < 200; ++i) add_star(heap, random, 9, 0, 0, 1);
  try {
    overlaps(Context::cuda({.memory_limit = 1 << 20, .threads = 1}), heap.view(), heap.view());
    ADD_FAILURE() << "40 000 pairs in a megabyte of the host's";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
  }
  EXPECT_TRUE(overlaps(cuda_context(), a.view(), Polygons().view()).pairs.empty());
}

TEST(Overlaps, RingsMayBeClosedOrNotAndRunEitherWay) {
  Polygons a;
  Polygons b;
  const double open[] = {0, 0, 4, 0, 4, 4, 0, 4};
  const double closed[] = {0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 0};
  a.add_ring(open);
  b.add_ring(closed);
  for (Polygons* one : {&a, &b}) {
    one->end_part();
    one->end_feature();
  }
  const Overlaps found = overlaps(one_context(), a.view(), b.view());
  ASSERT_EQ(found.pairs.size(), 1U);
  EXPECT_EQ(found.pairs[0].relation, RegionRelation::equals);
  EXPECT_EQ(found.pairs[0].area, 16);
  EXPECT_EQ(found.pairs[0].width, 2);
}

TEST(Overlaps, OfEmptyFeaturesAndLayers) {
  Polygons a;
  a.end_feature();
  const double line[] = {0, 0, 1, 1, 0, 0};
  a.add_ring(line);
  a.end_part();
  a.end_feature();
  Polygons b;
  add_rectangle(b, -1, -1, 2, 2);
  b.end_part();
  b.end_feature();
  const Overlaps found = overlaps(one_context(), a.view(), b.view());
  EXPECT_TRUE(found.pairs.empty());
  EXPECT_EQ(found.areas_a, (std::vector<double>{0, 0}));
  EXPECT_TRUE(overlaps(one_context(), Polygons().view(), b.view()).pairs.empty());
  EXPECT_TRUE(overlaps(one_context(), b.view(), Polygons().view()).pairs.empty());
}

TEST(Overlaps, FindsWhatCoversItself) {
  Polygons a;
  add_rectangle(a, 0, 0, 4, 4);  // fine
  a.end_part();
  a.end_feature();
  const double bow_tie[] = {0, 0, 4, 4, 4, 0, 0, 4};
  a.add_ring(bow_tie);
  a.end_part();
  a.end_feature();
  add_rectangle(a, 0, 0, 4, 4);  // parts that overlap
  a.end_part();
  add_rectangle(a, 3, 3, 6, 6);
  a.end_part();
  a.end_feature();
  add_rectangle(a, 0, 0, 4, 4);  // parts side by side
  a.end_part();
  add_rectangle(a, 4, 0, 6, 6);
  a.end_part();
  a.end_feature();
  add_rectangle(a, 0, 0, 4, 4);  // a hole beyond its shell
  add_rectangle(a, 3, 3, 6, 6);
  a.end_part();
  a.end_feature();
  for (const Context& ctx : contexts(0)) {
    EXPECT_EQ(self_overlapping(ctx, a.view()), (std::vector<std::int64_t>{1, 2, 4}));
  }
}

void expect_refused_part(const Polygons& a, ErrorCode code, const std::string& part) {
  Polygons b;
  add_rectangle(b, 0, 0, 1, 1);
  b.end_part();
  b.end_feature();
  try {
    overlaps(one_context(), a.view(), b.view());
    ADD_FAILURE() << "no error about " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Overlaps, RefusesWhatIsNoLayer) {
  Polygons good;
  add_rectangle(good, 0, 0, 1, 1);
  good.end_part();
  good.end_feature();
  Polygons bad = good;
  bad.points[3] = std::numeric_limits<double>::quiet_NaN();
  expect_refused_part(bad, ErrorCode::bad_data, "a: feature 0, point 1 of ring 0");
  for (const double beyond : {1.1e140, -1e300, 0.9e-120, -5e-324, 1e-310}) {
    bad.points[3] = beyond;
    expect_refused_part(bad, ErrorCode::bad_data, "a coordinate must be 0 or of a magnitude from 1e-120 to 1e140");
  }
  Polygons point;  // a ring that encloses nothing is refused for its coordinates all the same
  const double xy[] = {1e-170, 1};
  point.add_ring(xy);
  point.end_part();
  point.end_feature();
  expect_refused_part(point, ErrorCode::bad_data, "point 0 of ring 0");
  bad = good;
  bad.points.push_back(1);
  expect_refused_part(bad, ErrorCode::invalid_argument, "odd number");
  bad = good;
  bad.rings.back() = 7;
  expect_refused_part(bad, ErrorCode::invalid_argument, "offsets of its rings end with 7, but there are 5");
  bad = good;
  bad.parts = {1, 1};
  expect_refused_part(bad, ErrorCode::invalid_argument, "offsets of its parts do not begin with 0");
  bad = good;
  bad.features = {0, 2, 1};
  expect_refused_part(bad, ErrorCode::invalid_argument, "offsets of its features go down at 2");
}

// One feature whose corners share each other's x: told apart by their y.
TEST(Overlaps, OfAHighAndNarrowFeatureWithManyCorners) {
  std::vector<double> comb;
  constexpr int kTeeth = 2000;
  for (int k = 0; k < kTeeth; ++k) comb.insert(comb.end(), {1, 2.0 * k, 0, 2.0 * k + 1});
  comb.insert(comb.end(), {2, 2.0 * kTeeth, 2, 0});
  const Polygons high = feature({{comb}});
  expect_pair(high, high, RegionRelation::equals, overlaps(Context::cpu(), high.view(), high.view()).areas_a[0]);
}

TEST(Overlaps, NeedsItsMemoryBeforeItStarts) {
  Random random(4);
  Polygons a;
  for (int i = 0; i < 200; ++i) add_star(a, random, 9, 0, 0, 1);  // all on each other
  try {
    overlaps(Context::cpu({.threads = 1, .memory_limit = 1 << 20}), a.view(), a.view());
    ADD_FAILURE() << "40 000 pairs in a megabyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
  }
  CancelToken token;
  token.cancel();
  EXPECT_THROW(overlaps(Context::cpu({.threads = 1, .cancel = token}), a.view(), a.view()), Error);
}

}  // namespace
}  // namespace vicinal::contract
