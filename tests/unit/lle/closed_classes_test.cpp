// Closed classes of directed graphs are those that a search from every point finds.
#include "solver/closed_classes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/parallel.hpp"
#include "counted_polls.hpp"
#include "solver_data.hpp"

namespace vicinal::solver {
namespace {

// Each point and width - 1 others; they are near it in the order, and have it, too, by the share `mutual`.
LocalRows random_arrows(std::uint64_t seed, Point n, std::int64_t width, Point reach, double mutual) {
  LocalRows a;
  a.points = n;
  a.width = width;
  std::uint64_t counter = 0;
  std::vector<std::vector<Point>> wanted(static_cast<std::size_t>(n));
  for (Point i = 0; i < n; ++i) {
    std::vector<Point> cols = {i};
    const auto add = [&](Point to) {
      if (std::ssize(cols) < width && std::find(cols.begin(), cols.end(), to) == cols.end()) cols.push_back(to);
    };
    for (const Point back : wanted[i]) add(back);
    while (std::ssize(cols) < width) {
      const auto step = static_cast<Point>(draw(seed, counter++) * (2 * reach + 1)) - reach;
      const Point to = (i + step + n) % n;
      add(to);
      if (draw(seed, counter++) < mutual) wanted[to].push_back(i);
    }
    a.cols.insert(a.cols.end(), cols.begin(), cols.end());
  }
  return a;
}

std::vector<bool> reached_from(const LocalRows& a, Point from) {
  std::vector<bool> seen(static_cast<std::size_t>(a.points));
  std::vector<Point> open = {from};
  seen[from] = true;
  while (!open.empty()) {
    const Point i = open.back();
    open.pop_back();
    for (std::int64_t c = 0; c < a.width; ++c) {
      const Point to = a.cols[i * a.width + c];
      if (!seen[to]) open.push_back(to);
      seen[to] = true;
    }
  }
  return seen;
}

// A point is of a closed class where whatever it reaches reaches it.
void expect_closed_classes(const ClosedClasses& found, const LocalRows& a) {
  std::vector<std::vector<bool>> reaches;
  for (Point i = 0; i < a.points; ++i) reaches.push_back(reached_from(a, i));
  std::vector<Point> closed;  // the smallest point of each class
  std::vector<std::vector<Point>> of(static_cast<std::size_t>(a.points));
  for (Point i = 0; i < a.points; ++i) {
    bool is_closed = true;
    bool is_smallest = true;
    for (Point j = 0; j < a.points; ++j) {
      if (!reaches[i][j]) continue;
      is_closed = is_closed && reaches[j][i];
      is_smallest = is_smallest && j >= i;
    }
    if (is_closed && is_smallest) closed.push_back(i);
  }
  ASSERT_EQ(found.count, std::ssize(closed));
  ASSERT_EQ(std::ssize(found.reached), a.points);
  std::vector<Point> numbers;
  for (const Point smallest : closed) numbers.push_back(found.reached[smallest]);
  for (Point i = 0; i < a.points; ++i) {
    std::vector<Point> classes;
    for (std::size_t c = 0; c < closed.size(); ++c) {
      if (reaches[i][closed[c]]) classes.push_back(numbers[c]);
    }
    ASSERT_FALSE(classes.empty());
    EXPECT_EQ(found.reached[i], classes.size() == 1 ? classes[0] : ClosedClasses::kSeveral) << i;
  }
  std::sort(numbers.begin(), numbers.end());
  for (Point c = 0; c < found.count; ++c) EXPECT_EQ(numbers[c], c);
}

TEST(ClosedClasses, AreThoseThatSearchesFromEveryPointFind) {
  Point most = 0;
  std::uint64_t seed = 0;
  for (const std::int64_t width : {1, 2, 3, 5}) {
    for (const Point reach : {3, 40}) {
      for (const double mutual : {0.0, 0.5, 1.0}) {
        const LocalRows a = random_arrows(++seed, 120, width, reach, mutual);
        for (const int count : {1, 3}) {
          const ClosedClasses found = closed_classes_of(threads(count), a);
          expect_closed_classes(found, a);
          most = std::max(most, found.count);
        }
      }
    }
  }
  EXPECT_EQ(most, 120);  // a point alone is a class
}

TEST(ClosedClasses, AreTheSameOnEveryThreadCount) {
  const LocalRows a = random_arrows(71, 30000, 3, 5, 0.8);
  const ClosedClasses one = closed_classes_of(threads(1), a);
  EXPECT_GT(one.count, 1);
  for (const int count : {2, 5}) {
    const ClosedClasses found = closed_classes_of(threads(count), a);
    EXPECT_EQ(found.count, one.count);
    EXPECT_EQ(found.reached, one.reached);
  }
}

TEST(ClosedClasses, LongStepsCanBeCancelled) {
  constexpr Point kPoints = 200000;
  const Context ctx = threads(1);
  LocalRows ring;
  LocalRows path;
  ring.points = path.points = kPoints;
  ring.width = 3;
  path.width = 2;
  for (Point i = 0; i < kPoints; ++i) {
    ring.cols.insert(ring.cols.end(), {i, (i + 1) % kPoints, (i + kPoints - 1) % kPoints});
    path.cols.insert(path.cols.end(), {i, std::min(i + 1, kPoints - 1)});
  }
  const auto nothing = [](std::int64_t /*task*/, int /*worker*/) {};
  const std::int64_t a_loop =
      polls_of([&] { core::parallel_for(ctx, (kPoints + kTaskPoints - 1) / kTaskPoints, nothing); });
  // Of the ring nothing is left to search: five loops of all threads, three of one.
  const std::int64_t of_ring = polls_of([&] { EXPECT_EQ(closed_classes_of(ctx, ring).count, 1); });
  EXPECT_GE(of_ring, 5 * a_loop + 3 * 3);
  // The path is one search of three steps a point.
  const std::int64_t of_path = polls_of([&] { EXPECT_EQ(closed_classes_of(ctx, path).count, 1); });
  EXPECT_GE(of_path, of_ring + 9);
}

}  // namespace
}  // namespace vicinal::solver
