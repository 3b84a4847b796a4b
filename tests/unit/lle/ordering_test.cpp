// The ordering: a separator is a cut, and no smaller one exists; a dissection tears no block, whatever its cells, and
// is the same on every thread count; cells, their graphs, incidence and pieces are what a plain loop finds; long steps
// can be cancelled.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "solver/cell_graph.hpp"
#include "solver/halving.hpp"
#include "solver/pieces.hpp"
#include "solver/separator.hpp"
#include "solver_data.hpp"

namespace vicinal::solver {
namespace {

// Hubs of two to five vertices, and some that no other vertex has; a vertex may be twice next to another.
Band random_band(std::uint64_t seed, Point n, double share) {
  Band band;
  band.first_vertex = {0};
  std::vector<std::vector<Point>> hubs(static_cast<std::size_t>(n));
  std::uint64_t counter = 0;
  for (Point i = 0; i < n; ++i) {
    for (Point j = i + 1; j < n; ++j) {
      if (draw(seed, counter++) > share) continue;
      std::vector<Point> members = {i, j};
      for (Point other = 0; other < n && members.size() < 5; ++other) {
        if (other != i && other != j && draw(seed, counter++) < 0.08) members.push_back(other);
      }
      for (const Point v : members) hubs[v].push_back(static_cast<Point>(band.first_vertex.size() - 1));
      band.vertices.insert(band.vertices.end(), members.begin(), members.end());
      band.first_vertex.push_back(static_cast<Point>(band.vertices.size()));
    }
  }
  band.first_hub = {0};
  for (Point i = 0; i < n; ++i) {
    band.hubs.insert(band.hubs.end(), hubs[i].begin(), hubs[i].end());
    band.first_hub.push_back(static_cast<Point>(band.hubs.size()));
    band.at_left.push_back(draw(seed, counter++) < 0.3 ? 1 : 0);
    band.at_right.push_back(draw(seed, counter++) < 0.3 ? 1 : 0);
  }
  return band;
}

template <class Body>
void for_each_neighbor(const Band& band, Point v, const Body& body) {
  for (Point e = band.first_hub[v]; e < band.first_hub[v + 1]; ++e) {
    const Point hub = band.hubs[e];
    for (Point m = band.first_vertex[hub]; m < band.first_vertex[hub + 1]; ++m) body(band.vertices[m]);
  }
}

// Whether taking out the vertices whose bits are set leaves no path from left to right.
bool cuts(const Band& band, std::uint32_t out) {
  std::uint32_t seen = out;
  std::vector<Point> queue;
  for (std::size_t v = 0; v < band.at_left.size(); ++v) {
    if (band.at_left[v] != 0 && (seen >> v & 1U) == 0) {
      seen |= 1U << v;
      queue.push_back(static_cast<Point>(v));
    }
  }
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const Point v = queue[at];
    if (band.at_right[v] != 0) return false;
    for_each_neighbor(band, v, [&](Point w) {
      if ((seen >> w & 1U) != 0) return;
      seen |= 1U << w;
      queue.push_back(w);
    });
  }
  return true;
}

TEST(Separator, IsACutOfTheFewestVertices) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto n = static_cast<Point>(1 + seed % 11);
    const Band band = random_band(seed, n, 0.1 + 0.02 * static_cast<double>(seed % 17));
    const std::vector<Side> sides = separate(threads(1), band);
    std::uint32_t chosen = 0;
    for (Point v = 0; v < n; ++v) chosen |= sides[v] == Side::separator ? 1U << v : 0U;
    EXPECT_TRUE(cuts(band, chosen)) << seed;
    for (Point v = 0; v < n; ++v) {
      if (sides[v] != Side::left) continue;
      EXPECT_EQ(band.at_right[v], 0) << seed;
      for_each_neighbor(band, v, [&](Point w) { EXPECT_NE(sides[w], Side::right) << seed; });
    }
    for (Point v = 0; v < n; ++v) EXPECT_FALSE(sides[v] == Side::right && band.at_left[v] != 0) << seed;
    for (std::uint32_t other = 0; other < 1U << n; ++other) {
      if (std::popcount(other) < std::popcount(chosen)) {
        EXPECT_FALSE(cuts(band, other)) << seed;
      }
    }
  }
}

TEST(Dissection, IsAPermutationTheSameOnEveryThreadCount) {
  const Ordered once = ordered(threads(1), grid(61), 61);
  std::vector<Point> sorted = once.dissection.order;
  std::sort(sorted.begin(), sorted.end());
  for (Point i = 0; i < once.a.points; ++i) ASSERT_EQ(sorted[i], i);
  EXPECT_GT(once.dissection.nodes.size(), 20U);
  for (const int count : {2, 3, 7}) {
    const Ordered again = ordered(threads(count), grid(61), 61);
    EXPECT_EQ(once.dissection.order, again.dissection.order);
    EXPECT_EQ(once.symbolic.panel, again.symbolic.panel);
    EXPECT_EQ(once.symbolic.rows, again.symbolic.rows);
  }
}

// Blocks of `width` points drawn near each other on a line, by numbers without any order to them.
LocalRows scattered(Point n, Point width, Point reach) {
  std::vector<Point> name(static_cast<std::size_t>(n));
  std::iota(name.begin(), name.end(), 0);
  for (Point i = n - 1; i > 0; --i) {
    std::swap(name[i], name[static_cast<Point>(draw(5, static_cast<std::uint64_t>(i)) * (i + 1))]);
  }
  LocalRows a;
  a.points = n;
  a.width = width;
  a.cols.resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(width));
  a.first.resize(static_cast<std::size_t>(n) + 1);
  std::iota(a.first.begin(), a.first.end(), 0);
  for (Point i = 0; i < n; ++i) {
    std::vector<Point> cols = {i};
    for (std::uint64_t c = 0; cols.size() < static_cast<std::size_t>(width); ++c) {
      const auto step = static_cast<Point>(draw(6 + static_cast<std::uint64_t>(i), c) * reach);
      const Point other = (i + 1 + step) % n;
      if (std::find(cols.begin(), cols.end(), other) == cols.end()) cols.push_back(other);
    }
    for (Point c = 0; c < width; ++c) a.cols[name[i] * width + c] = name[cols[c]];
  }
  return a;
}

TEST(Incidence, ListsBlocksOfEachPointInOrder) {
  for (const Point n : {1, 2, 5000, 9001}) {
    const LocalRows a = scattered(n, std::min<Point>(n, 6), n);
    std::vector<std::vector<std::pair<Point, Point>>> lists(static_cast<std::size_t>(n));
    for (Point i = 0; i < n; ++i) {
      for (Point c = 0; c < a.width; ++c) lists[a.cols[i * a.width + c]].emplace_back(i, c);
    }
    for (const int count : {1, 2, 3, 7}) {
      const Incidence in = incidence_of(threads(count), a);
      for (Point j = 0; j < n; ++j) {
        ASSERT_EQ(in.first[j + 1] - in.first[j], static_cast<std::int64_t>(lists[j].size()));
        for (std::int64_t e = in.first[j]; e < in.first[j + 1]; ++e) {
          ASSERT_EQ(in.blocks[e], lists[j][e - in.first[j]].first);
          ASSERT_EQ(in.at[e], lists[j][e - in.first[j]].second);
        }
      }
    }
  }
}

TEST(KdCells, HoldEveryPointOnceWhateverRepeats) {
  for (const Point n : {1, 17, 16384, 30001}) {
    for (const int kind : {0, 1, 2}) {
      core::RawVector<float> places;
      for (Point i = 0; i < n; ++i) {
        const auto x = static_cast<float>(draw(21, static_cast<std::uint64_t>(i)));
        places.push_back(kind == 0 ? x : kind == 1 ? std::floor(3 * x) : 0.0F);  // random, three places, one place
        places.push_back(kind == 0 ? static_cast<float>(draw(22, static_cast<std::uint64_t>(i))) : 7.0F);
      }
      const Cells once = kd_cells(threads(1), places, 2);
      std::vector<Point> sorted = once.order;
      std::sort(sorted.begin(), sorted.end());
      for (Point i = 0; i < n; ++i) ASSERT_EQ(sorted[i], i);
      ASSERT_EQ(once.first.front(), 0);
      ASSERT_EQ(once.first.back(), n);
      for (std::size_t cell = 0; cell + 1 < once.first.size(); ++cell) {
        ASSERT_LT(once.first[cell], once.first[cell + 1]);
        ASSERT_LE(once.first[cell + 1] - once.first[cell], 16);
      }
      for (const int count : {2, 3, 7}) {
        const Cells again = kd_cells(threads(count), places, 2);
        EXPECT_EQ(once.order, again.order);
        EXPECT_EQ(once.first, again.first);
      }
    }
  }
}

// What a dissection promises: points of a block are of one node, its ancestors and its descendants, so that the nodes
// of a block's points are a chain.
void expect_no_block_torn(const LocalRows& a, const Dissection& found) {
  std::vector<std::int32_t> node(found.order.size(), -1);
  for (std::size_t t = 0; t < found.nodes.size(); ++t) {
    const Dissection::Node& of = found.nodes[t];
    ASSERT_EQ(of.begin, t == 0 ? 0 : found.nodes[t - 1].end);
    ASSERT_LT(of.begin, of.end);
    ASSERT_TRUE(of.parent == -1 || of.parent > static_cast<std::int32_t>(t));
    for (Point i = of.begin; i < of.end; ++i) node[found.order[i]] = static_cast<std::int32_t>(t);
  }
  for (const std::int32_t of : node) ASSERT_GE(of, 0);
  for (Point i = 0; i < a.points; ++i) {
    std::vector<std::int32_t> chain;
    chain.reserve(static_cast<std::size_t>(a.width));
    for (Point c = 0; c < a.width; ++c) chain.push_back(node[a.cols[i * a.width + c]]);
    std::sort(chain.begin(), chain.end());
    chain.erase(std::unique(chain.begin(), chain.end()), chain.end());
    for (std::size_t c = 0; c + 1 < chain.size(); ++c) {
      std::int32_t above = chain[c];
      while (above >= 0 && above < chain[c + 1]) above = found.nodes[above].parent;
      ASSERT_EQ(above, chain[c + 1]) << "block " << i;
    }
  }
}

TEST(Dissection, TearsNoBlockWhateverTheCells) {
  // A ring, near and far reaching; cells that know nothing of it, of one point, of all; a complete graph.
  for (const Point reach : {8, 60, 6000}) {
    const LocalRows a = scattered(6000, 6, reach);
    const Incidence in = incidence_of(threads(2), a);
    for (const Point step : {1, 16, 6000}) {
      std::vector<Point> near;
      for (Point i = 0; i <= 6000; i += step) near.push_back(i);
      const Dissection once = dissect(threads(1), Pattern{a, in}, near);
      expect_no_block_torn(a, once);
      const Dissection again = dissect(threads(7), Pattern{a, in}, near);
      EXPECT_EQ(once.order, again.order);
      EXPECT_EQ(once.nodes.size(), again.nodes.size());
    }
  }
  const LocalRows whole = scattered(100, 100, 100);
  const Incidence in = incidence_of(threads(1), whole);
  EXPECT_EQ(dissect(threads(1), Pattern{whole, in}, {0, 50, 100}).nodes.size(), 1U);
}

// Blocks of `width` points near each other on a surface or in a space of `shape`, numbered row by row.
LocalRows lattice(std::array<Point, 3> shape, Point width) {
  LocalRows a;
  a.points = shape[0] * shape[1] * shape[2];
  a.width = width;
  a.first.resize(static_cast<std::size_t>(a.points) + 1);
  std::iota(a.first.begin(), a.first.end(), 0);
  for (Point i = 0; i < a.points; ++i) {
    const std::array<Point, 3> at = {i % shape[0], i / shape[0] % shape[1], i / shape[0] / shape[1]};
    std::vector<Point> cols = {i};
    for (Point reach = 1; std::ssize(cols) < width; ++reach) {
      for (int axis = 0; axis < 6 && std::ssize(cols) < width; ++axis) {
        std::array<Point, 3> to = at;
        to[axis / 2] += axis % 2 == 0 ? reach : -reach;
        if (to[axis / 2] < 0 || to[axis / 2] >= shape[axis / 2]) continue;
        cols.push_back((to[2] * shape[1] + to[1]) * shape[0] + to[0]);
      }
    }
    a.cols.insert(a.cols.end(), cols.begin(), cols.end());
  }
  return a;
}

// Sheets that know nothing of each other and lie in the same cells, as those of a folded surface; a point of each is
// joined with the next one at a corner.
LocalRows folded(Point side, Point sheets) {
  LocalRows a = lattice({side, side, 1}, 5);
  LocalRows all = a;
  all.points = a.points * sheets;
  all.cols.clear();
  for (Point i = 0; i < all.points; ++i) {
    const Point sheet = i % sheets;
    for (Point c = 0; c < a.width; ++c) all.cols.push_back(a.cols[i / sheets * a.width + c] * sheets + sheet);
    if (i < sheets) all.cols.back() = (sheet + 1) % sheets;
  }
  all.first.resize(static_cast<std::size_t>(all.points) + 1);
  std::iota(all.first.begin(), all.first.end(), 0);
  return all;
}

// Blocks that all have the first point, and one beside their own.
LocalRows star(Point n) {
  LocalRows a;
  a.points = n;
  a.width = 3;
  a.first.resize(static_cast<std::size_t>(n) + 1);
  std::iota(a.first.begin(), a.first.end(), 0);
  for (Point i = 0; i < n; ++i)
    a.cols.insert(a.cols.end(), {i, i == 0 ? n - 1 : 0, i + 1 < n && i > 0 ? i + 1 : n / 2});
  return a;
}

std::vector<Point> cells_of(Point n, Point size) {
  std::vector<Point> near;
  for (Point i = 0; i < n; i += size) near.push_back(i);
  near.push_back(n);
  return near;
}

#if defined(__SANITIZE_THREAD__)
constexpr std::array<int, 1> kThreadCounts = {7};  // one more would find no other race
#else
constexpr std::array<int, 2> kThreadCounts = {2, 7};
#endif

// With a cell a point there are more cells than a part is halved on at once.
TEST(Dissection, LargePartsAreHalvedOnCoarserCells) {
  const LocalRows graphs[] = {
      lattice({20001, 1, 1}, 3), lattice({150, 150, 1}, 9), lattice({28, 28, 28}, 7), folded(100, 3), star(12000),
      scattered(15000, 5, 40)};
  for (const LocalRows& a : graphs) {
    const Incidence in = incidence_of(threads(2), a);
    const std::vector<Point> near = cells_of(a.points, 1);
    const Dissection once = dissect(threads(1), Pattern{a, in}, near);
    expect_no_block_torn(a, once);
    for (const int count : kThreadCounts) {
      const Dissection again = dissect(threads(count), Pattern{a, in}, near);
      EXPECT_EQ(once.order, again.order);
      ASSERT_EQ(once.nodes.size(), again.nodes.size());
      for (std::size_t t = 0; t < once.nodes.size(); ++t) EXPECT_EQ(once.nodes[t].parent, again.nodes[t].parent);
    }
  }
  // A line needs a point or two, a square a line across, four points wide as two blocks reach, or twice that: its cells
  // are rows here, of which no good graph is made.
  const auto root_of = [&](const LocalRows& a) {
    const Dissection found = dissect(threads(2), Pattern{a, incidence_of(threads(2), a)}, cells_of(a.points, 1));
    return found.nodes.back().end - found.nodes.back().begin;
  };
  EXPECT_LE(root_of(graphs[0]), 2);
  EXPECT_LE(root_of(graphs[1]), 2 * 4 * 96);
}

// On every level: each point has a cell, and what a block joins lies in the cell of its own point and its neighbors;
// cells reach each other within what they are part of.
TEST(CellGraphs, JoinWhatBlocksJoinOnEveryLevel) {
  const LocalRows graphs[] = {lattice({96, 96, 1}, 9), folded(56, 3), star(9000), scattered(9000, 5, 9000)};
  for (const LocalRows& a : graphs) {
    for (const Point size : {1, 16}) {
      const Pattern pattern{a, incidence_of(threads(2), a)};
      const std::vector<Point> near = cells_of(a.points, size);
      const CellGraphs once = cell_graphs_of(threads(1), pattern, near);
      std::vector<Point> cell(once.cell_of.begin(), once.cell_of.end());
      for (const CellGraph& graph : once.levels) {
        std::vector<std::vector<Point>> joined(static_cast<std::size_t>(graph.cells()));
        for (Point i = 0; i < a.points; ++i) {
          for (Point c = 0; c < a.width; ++c) {
            const Point other = cell[a.cols[i * a.width + c]];
            if (other == cell[i]) continue;
            joined[cell[i]].push_back(other);
            joined[other].push_back(cell[i]);
          }
        }
        for (Point c = 0; c < graph.cells(); ++c) {
          std::sort(joined[c].begin(), joined[c].end());
          joined[c].erase(std::unique(joined[c].begin(), joined[c].end()), joined[c].end());
          ASSERT_TRUE(std::equal(joined[c].begin(), joined[c].end(), graph.neighbors.begin(c), graph.neighbors.end(c)));
        }
        if (graph.above.empty()) break;
        for (Point& of : cell) of = graph.above[of];
      }
      const CellGraphs again = cell_graphs_of(threads(7), pattern, near);
      EXPECT_EQ(once.cell_of, again.cell_of);
      ASSERT_EQ(once.levels.size(), again.levels.size());
      for (std::size_t l = 0; l < once.levels.size(); ++l) {
        EXPECT_EQ(once.levels[l].above, again.levels[l].above);
        EXPECT_EQ(once.levels[l].neighbors.items, again.levels[l].neighbors.items);
      }
    }
  }
}

// Once the hub is cut off, every point is a piece of its own: keys as many times as far from each other as there are
// cells.
TEST(Dissection, PointsThatComeApartAreSharedOut) {
  constexpr Point kPoints = 40000;
  const Context ctx = threads(2);
  LocalRows a;
  a.points = kPoints;
  a.width = 2;
  a.first.resize(kPoints + 1);
  std::iota(a.first.begin(), a.first.end(), 0);
  for (Point i = 0; i < kPoints; ++i) a.cols.insert(a.cols.end(), {i, i == 0 ? 1 : 0});
  const std::vector<Point> near = cells_of(kPoints, 10);
  const Pattern pattern{a, incidence_of(ctx, a)};
  const Dissection found = dissect(ctx, pattern, near);
  expect_no_block_torn(a, found);
  for (const Dissection::Node& node : found.nodes) EXPECT_LE(node.end - node.begin, 64);
  const CellGraphs graphs = cell_graphs_of(ctx, pattern, near);
  std::vector<Point> leaves(kPoints - 1);
  std::iota(leaves.begin(), leaves.end(), 1);
  Halving halving(ctx, graphs);
  halving.halve(leaves.data(), leaves.data() + leaves.size());
  std::int64_t left = 0;
  for (const Point i : leaves) left += halving.side(graphs.cell_of[i]) == Side::left ? 1 : 0;
  EXPECT_LE(std::abs(2 * left - kPoints), 64);
}

// 10 million rows are ordered in some 7 GB; a worker more costs it the notes of its own, not those of all.
TEST(Dissection, ItsMemoryHardlyGrowsWithWorkers) {
  const std::uint64_t one = ordering_bytes(threads(1), 10'000'000, 13);
  const std::uint64_t many = ordering_bytes(threads(64), 10'000'000, 13);
  EXPECT_GE(one, std::uint64_t{2} << 30);
  EXPECT_LE(many, std::uint64_t{8} << 30);
}

TEST(Dissection, PiecesOfAGraphArePartedForNothing) {
  // Two grids that know nothing of each other: their points are of different subtrees, and no separator lies between.
  const LocalRows a = grid(60, true);
  core::RawVector<float> places;
  for (Point i = 0; i < a.points; ++i) {
    const Point line = i / 60;
    places.insert(places.end(), {static_cast<float>(i % 60), static_cast<float>(line)});
  }
  const Context ctx = threads(2);
  const Cells cells = kd_cells(ctx, places, 2);
  const LocalRows near = renumbered(ctx, a, cells.order);
  const Incidence in = incidence_of(ctx, near);
  const Dissection found = dissect(ctx, Pattern{near, in}, cells.first);
  expect_no_block_torn(near, found);
  EXPECT_EQ(std::count_if(found.nodes.begin(), found.nodes.end(), [](const auto& node) { return node.parent < 0; }), 2);
}

// Where a step of the ordering may take longer than cancelling may, it looks at the token itself: each is called with
// one that is set already, outside of what polls before a task.
TEST(Dissection, ItsLongStepsCanBeCancelled) {
  const Context free = threads(1);
  CpuOptions options{.threads = 1};
  options.cancel.cancel();
  const Context cancelled = Context::cpu(options);
  const LocalRows a = scattered(60000, 6, 40);
  const Incidence in = incidence_of(free, a);
  std::vector<Point> near;
  for (Point i = 0; i <= 60000; i += 10) near.push_back(i);
  const CellGraphs graphs = cell_graphs_of(free, Pattern{a, in}, near);
  std::vector<Point> points(60000);
  std::iota(points.begin(), points.end(), 0);
  EXPECT_THROW(Halving(cancelled, graphs).halve(points.data(), points.data() + points.size()), Error);
  // A band of a long chain of vertices: more steps than lie between two looks.
  Band band;
  band.first_hub = {0};
  band.first_vertex = {0};
  for (Point v = 0; v < 60000; ++v) {
    if (v > 0) band.hubs.push_back(v - 1);
    if (v < 59999) {
      band.hubs.push_back(v);
      band.vertices.insert(band.vertices.end(), {v, v + 1});
      band.first_vertex.push_back(static_cast<Point>(band.vertices.size()));
    }
    band.first_hub.push_back(static_cast<Point>(band.hubs.size()));
    band.at_left.push_back(v == 0 ? 1 : 0);
    band.at_right.push_back(v == 59999 ? 1 : 0);
  }
  EXPECT_EQ(separate(free, band)[0], Side::separator);
  EXPECT_THROW(separate(cancelled, band), Error);
  EXPECT_THROW(dissect(cancelled, Pattern{a, in}, near), Error);
}

TEST(Pieces, AreNumberedByTheirSmallestPoints) {
  // Piece p has the points p, p + pieces, ..
  for (const Point pieces : {1, 2, 7, 500}) {
    LocalRows a;
    a.points = 9000;
    a.width = 2;
    for (Point i = 0; i < a.points; ++i) {
      // Each to some point before it of its piece.
      const Point before = i / pieces;
      const auto back = static_cast<Point>(draw(31, static_cast<std::uint64_t>(i)) * before) + (before > 0 ? 1 : 0);
      a.cols.insert(a.cols.end(), {i, i - back * pieces});
    }
    for (const int count : {1, 2, 3, 7}) {
      const std::vector<std::int64_t> found = pieces_of(threads(count), a);
      for (Point i = 0; i < a.points; ++i) ASSERT_EQ(found[i], i % pieces) << i;
    }
  }
}

}  // namespace
}  // namespace vicinal::solver
