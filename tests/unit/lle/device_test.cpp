// A factor on a device, of M's of every shape of tree, against the definition and the host's own (contract clause 17).
// Runs where VICINAL_TEST_DEVICE is cuda.
// fake device: *
// fake device, sanitized: -*OfOneDenseFront
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/lle.hpp"
#include "formulas/lle/start.hpp"
#include "solver/factor.hpp"
#include "solver/ordering.hpp"
#include "solver/small_parts.hpp"
#include "solver/smallest.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::solver {
namespace {

// By which numbers of L are rounded: the fake device takes the host's factor, which keeps five bytes of each.
double unit() {
  return cuda_status().architectures == "fake" ? 0x1p-32 : 0x1p-53;
}

struct Sample {
  std::string name;
  std::vector<double> rows;
  std::int64_t d = 3;
  std::int64_t k = 12;
  LleVariant variant = LleVariant::standard;
  [[nodiscard]] std::int64_t n() const { return static_cast<std::int64_t>(rows.size()) / d; }
};

Sample rolled(std::int64_t n, std::int64_t k, LleVariant variant = LleVariant::standard) {
  Generated made = generate(Context::cpu(), {.shape = Shape::swiss_roll, .rows = n, .noise = 0.01, .seed = 5});
  return {std::to_string(n) + " rows of a roll, " + std::to_string(k) + " neighbors", std::move(made.points), made.cols,
          k, variant};
}

// A cube, whose separators are surfaces: wide fronts.
Sample cube(std::int64_t n) {
  Sample made{std::to_string(n) + " rows of a cube", {}, 3, 10, LleVariant::standard};
  std::uint64_t state = 9;
  for (std::int64_t i = 0; i < n * 3; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    made.rows.push_back(static_cast<double>(state >> 11) * 0x1p-53);
  }
  return made;
}

// A tree as deep as its points allow.
Sample line(std::int64_t n) {
  Sample made{std::to_string(n) + " rows of a line", {}, 1, 2, LleVariant::standard};
  for (std::int64_t i = 0; i < n; ++i) made.rows.push_back(static_cast<double>(i));
  return made;
}

// All have the first few as neighbors, without which none has any: a node of many children.
Sample equal_rows(std::int64_t n) {
  return {std::to_string(n) + " equal rows", std::vector<double>(static_cast<std::size_t>(n * 3), 1.0), 3, 4,
          LleVariant::standard};
}

// Clusters along a line, far from each other, with a point here and there between them: cells that come apart.
Sample beads(std::int64_t count, std::int64_t size) {
  Sample made = cube(count * size);
  made.name = std::to_string(count) + " clusters of " + std::to_string(size);
  for (std::int64_t i = 0; i < made.n(); ++i) {
    if (i % size != 0) made.rows[i * 3] += static_cast<double>(i / size) * 3;
    if (i % size == 0) made.rows[i * 3] = static_cast<double>(i / size) * 3 + made.rows[i * 3] * 3;
  }
  return made;
}

std::unique_ptr<kernels::DeviceLle> embedding(const Context& host, const Context& device, const Sample& sample) {
  const TableView table(sample.rows.data(), sample.n(), sample.d);
  const NeighborGraph graph = knn(host, table, {.k = sample.k});
  kernels::LleTask task;
  task.table = table;
  task.ids.assign(graph.ids.begin(), graph.ids.end());
  task.k = sample.k;
  task.options.k = sample.k;
  task.options.dim = 2;
  task.options.variant = sample.variant;
  return kernels::backend_of(device).lle().begin(device, task);
}

/// A piece on host and device, in the order of elimination.
struct Problem {
  Problem(const Context& host, const Context& device, const Sample& sample) {
    lle = embedding(host, device, sample);
    std::vector<Point> all(static_cast<std::size_t>(sample.n()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Point>(i);
    static_cast<void>(lle->take(all));
    const LocalRows given = lle->blocks();
    const Cells cells = kd_cells(host, {sample.rows.begin(), sample.rows.end()}, sample.d);
    const LocalRows near = renumbered(host, given, cells.order);
    const Pattern pattern = pattern_of(host, near, incidence_of(host, near));
    const Dissection dissection = dissect(host, pattern, cells.first);
    symbolic = analyse(host, pattern, dissection);
    std::vector<Point> rows;
    for (const Point point : dissection.order) rows.push_back(cells.order[point]);
    norm = lle->take(rows);
    a = lle->blocks();
    in = incidence_of(host, a);
  }

  std::unique_ptr<kernels::DeviceLle> lle;
  Symbolic symbolic;
  LocalRows a;
  Incidence in;
  double norm = 0;
};

Vectors first_vectors(const Context& ctx, std::int64_t n, std::int64_t width) {
  Vectors b(n, width);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < width; ++c) b.row(i)[c] = first_entry(i, c);
  }
  remove_means(ctx, b);
  return b;
}

double length(const Vectors& x, std::int64_t c) {
  double square = 0;
  for (std::int64_t i = 0; i < x.rows; ++i) square += x.row(i)[c] * x.row(i)[c];
  return std::sqrt(square);
}

// |(M - shift I) x - b| is at most what rounding makes of a factor without pivoting (Higham 2002, theorem 10.3 and
// below): 3 n u of a matrix |L| |D| |L'|, whose norm is at most n times M's where M is not indefinite. L rounded by u
// once more adds 2 u of that matrix. As much again is left for the products here.
void expect_solved(const Context& host, const Problem& p, const Vectors& x, double shift, const std::string& name) {
  const auto n = static_cast<double>(p.a.points);
  const Vectors b = first_vectors(host, p.a.points, x.width);
  Vectors rows(p.a.rows(), x.width);
  Vectors left(p.a.points, x.width);
  apply(host, p.a, x, rows);
  apply_transposed(host, p.a, p.in, rows, left);
  for (std::int64_t i = 0; i < left.rows; ++i) {
    for (std::int64_t c = 0; c < x.width; ++c) left.row(i)[c] -= shift * x.row(i)[c] + b.row(i)[c];
  }
  for (std::int64_t c = 0; c < x.width; ++c) {
    const double allowed = 6 * n * n * unit() * (p.norm + std::abs(shift) + 1) * length(x, c);
    EXPECT_TRUE(length(left, c) <= allowed) << name << ", column " << c << ": " << length(left, c) << " > " << allowed;
  }
}

class LleFactorOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    const char* const device = std::getenv("VICINAL_TEST_DEVICE");
    if (device == nullptr || std::string(device) != "cuda") GTEST_SKIP() << "no device was asked for";
  }

  static void check(const Sample& sample, std::int64_t width) {
    const Context host = Context::cpu({.threads = 2});
    const Context device = Context::cuda();
    Problem p(host, device, sample);
    EXPECT_GT(p.lle->factor(p.symbolic), 0U);
    Space& space = p.lle->space();
    space.start(width);
    space.solve(Set::best);
    const Vectors once = space.fetch(width);
    expect_solved(host, p, once, 0, sample.name);
    // Less than nothing off the diagonal makes M well conditioned, so that the bound is a sharp one.
    EXPECT_EQ(p.lle->count(-1), 0) << sample.name;
    space.start(width);
    space.solve(Set::best);
    expect_solved(host, p, space.fetch(width), -1, sample.name + ", shifted");
    for (const double shift : {1e-9, 1e-4, 0.03, 0.7}) {
      const Factor factor(host, p.a, p.in, p.symbolic, {shift, 0});
      EXPECT_EQ(p.lle->count(shift), factor.negative()) << sample.name << " below " << shift;
    }
    Problem again(host, device, sample);
    static_cast<void>(again.lle->factor(again.symbolic));
    again.lle->space().start(width);
    again.lle->space().solve(Set::best);
    const Vectors twice = again.lle->space().fetch(width);
    EXPECT_EQ(std::memcmp(once.values.data(), twice.values.data(),
                          static_cast<std::size_t>(once.rows * once.width) * sizeof(double)),
              0)
        << sample.name;
  }
};

TEST_F(LleFactorOnDevice, OfAFewPoints) {
  for (const std::int64_t n : {5, 13, 63, 64, 65, 66, 151}) check(rolled(n, std::min<std::int64_t>(n - 1, 10)), 6);
}
TEST_F(LleFactorOnDevice, OfOneDenseFront) {
  check(rolled(200, 199), 3);
  check(rolled(321, 320), 8);
}
TEST_F(LleFactorOnDevice, OfASurface) {
  check(rolled(2500, 12), 6);
  check(rolled(1111, 9, LleVariant::hessian), 1);
}
TEST_F(LleFactorOnDevice, OfALine) {
  check(line(5000), 6);
}
TEST_F(LleFactorOnDevice, OfAStar) {
  check(equal_rows(5000), 6);
}
TEST_F(LleFactorOnDevice, OfACube) {
  check(cube(1500), 9);
}
TEST_F(LleFactorOnDevice, OfManyRightSides) {
  check(rolled(400, 8), 32);
  check(rolled(300, 8), 17);
}

// Parts of every kind, dissected on the device: the host's order and tree.
class LleOrderOnDevice : public LleFactorOnDevice {
 protected:
  static void check(const Sample& sample) {
    const Context host = Context::cpu({.threads = 2});
    const Context device = Context::cuda();
    const std::unique_ptr<kernels::DeviceLle> lle = embedding(host, device, sample);
    const Cells cells = kd_cells(host, {sample.rows.begin(), sample.rows.end()}, sample.d);
    static_cast<void>(lle->take(cells.order));
    const LocalRows a = lle->blocks();
    const Pattern pattern = pattern_of(host, a, blocks_of(host, a));
    const Dissection expected = dissect(host, pattern, cells.first);
    expect_a_dissection(pattern, expected, sample.name + ", by the host");
    std::size_t taken = 0;
    const Dissection found =
        dissect(host, pattern, cells.first, [&](const SmallParts& parts, Point* order, Splits& splits) {
          lle->dissect(parts, order, splits);
          taken += splits.done.size() - static_cast<std::size_t>(std::count(splits.done.begin(), splits.done.end(), 0));
        });
    EXPECT_GT(taken, 0U) << sample.name;
    expect_a_dissection(pattern, found, sample.name);
    EXPECT_EQ(found.order, expected.order) << sample.name;
    ASSERT_EQ(found.nodes.size(), expected.nodes.size()) << sample.name;
    for (std::size_t t = 0; t < found.nodes.size(); ++t) {
      EXPECT_EQ(found.nodes[t].begin, expected.nodes[t].begin) << sample.name << ", node " << t;
      EXPECT_EQ(found.nodes[t].end, expected.nodes[t].end) << sample.name << ", node " << t;
      EXPECT_EQ(found.nodes[t].parent, expected.nodes[t].parent) << sample.name << ", node " << t;
    }
  }

 private:
  // Every point once, in a node that follows its children's; what a block joins is in nodes of which one is above the
  // other.
  static void expect_a_dissection(const Pattern& pattern, const Dissection& found, const std::string& name) {
    std::vector<std::int32_t> node_of(found.order.size(), -1);
    for (std::size_t t = 0; t < found.nodes.size(); ++t) {
      const Dissection::Node& node = found.nodes[t];
      EXPECT_TRUE(node.parent < 0 || node.parent > static_cast<std::int32_t>(t)) << name;
      for (Point i = node.begin; i < node.end; ++i) {
        EXPECT_EQ(node_of[found.order[i]], -1) << name;
        node_of[found.order[i]] = static_cast<std::int32_t>(t);
      }
    }
    EXPECT_EQ(std::count(node_of.begin(), node_of.end(), -1), 0) << name;
    const auto below = [&](std::int32_t low, std::int32_t high) {
      while (low >= 0 && low < high) low = found.nodes[low].parent;
      return low == high;
    };
    for (Point i = 0; i < pattern.a.points; ++i) {
      for (std::int64_t c = 1; c < pattern.a.width; ++c) {
        const std::int32_t s = node_of[pattern.a.cols[i * pattern.a.width]];
        const std::int32_t t = node_of[pattern.a.cols[i * pattern.a.width + c]];
        EXPECT_TRUE(below(std::min(s, t), std::max(s, t))) << name << ", block " << i;
      }
    }
  }
};

TEST_F(LleOrderOnDevice, OfASurface) {
  check(rolled(20000, 12));
}
TEST_F(LleOrderOnDevice, OfBlocksWithoutTheirOwnPoints) {
  check(rolled(40000, 4, LleVariant::ltsa));  // of which many points are nobody's neighbors
  check(rolled(9001, 7, LleVariant::ltsa));
  check(rolled(40000, 12, LleVariant::hessian));
}
TEST_F(LleOrderOnDevice, OfACube) {
  check(cube(12000));
}
TEST_F(LleOrderOnDevice, OfALine) {
  check(line(30000));
}
TEST_F(LleOrderOnDevice, OfAStar) {
  check(equal_rows(9000));
}
TEST_F(LleOrderOnDevice, OfOnePart) {
  for (const std::int64_t n : {63, 65, 200, 1999}) check(rolled(n, 12));
  check(rolled(200, 199));
}
TEST_F(LleOrderOnDevice, OfClustersJoinedByAThread) {
  check(beads(40, 500));
}

}  // namespace
}  // namespace vicinal::solver
