// The kd-tree: no box's key is above the key of a point in it, on values made to show it; keys of points are those of
// core/distance.hpp; the tree is the same whatever the threads; its shape goes to a file and back, and no file can make
// it answer wrongly; the planner takes it where it pays.
#include "cpu/nearest/tree/tree.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <thread>

#include "backend/index_access.hpp"
#include "core/distance.hpp"
#include "core/infinity.hpp"
#include "core/philox.hpp"
#include "cpu/nearest/tree/search.hpp"
#include "isas.hpp"
#include "ops/nearest/index_file.hpp"
#include "plugin/cuda/tree.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

std::vector<double> random_rows(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  std::vector<double> rows(static_cast<std::size_t>(n * d));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = core::philox_uniform(seed, 0, i);
  return rows;
}

// Values that are hard for a bound: tiny, large, equal, neighbors of each other, zeros of both signs.
double hard_value(std::mt19937_64& random) {
  const double sign = random() % 2 == 0 ? 1 : -1;
  const double ordinary = std::ldexp(static_cast<double>(random() >> 11), -52);
  switch (random() % 10) {
    case 0:
      return sign * 0.0;
    case 1:
      return sign * 5e-324 * static_cast<double>(random() % 4);
    case 2:
      return sign * 1e-160 * ordinary;
    case 3:
      return sign * 1e150 * ordinary;
    case 4:
      return std::nextafter(1.0, sign * kInfinity);
    case 5:
      return 1e16 + static_cast<double>(random() % 8) * 2;
    case 6:
      return sign * static_cast<double>(random() % 3);
    default:
      return sign * ordinary;
  }
}

double key_of(cpu::KeyOp op, const double* x, const double* y, std::int64_t d) {
  if (op == cpu::KeyOp::squares) return core::euclidean_key(x, y, d);
  return op == cpu::KeyOp::absolutes ? core::manhattan_key(x, y, d) : core::chebyshev_key(x, y, d);
}

/// The key of the corner of a box that is the farthest from x in every column.
double farthest_key(cpu::KeyOp op, const std::vector<double>& x, const std::vector<double>& low,
                    const std::vector<double>& high) {
  std::vector<double> corner = low;
  for (std::size_t j = 0; j < low.size(); ++j) {
    if (high[j] - x[j] > x[j] - low[j]) corner[j] = high[j];
  }
  return key_of(op, x.data(), corner.data(), std::ssize(low));
}

/// At the farthest key of a box it lies inside, as do all of its points; just below it does not.
template <class T>
void expect_points_in_boxes_inside(const cpu::TreeKernels& kernels, cpu::KeyOp op, cpu::Element element,
                                   const std::vector<double>& x, const std::vector<T>& boxes,
                                   const std::vector<double>& largest) {
  const std::int64_t d = std::ssize(boxes) / 16;
  const auto ranges = kernels.ranges[static_cast<int>(op)][static_cast<int>(element)];
  std::vector<double> farthest;
  for (std::int64_t box = 0; box < 8; ++box) {
    std::vector<double> low;
    std::vector<double> high;
    for (std::int64_t j = 0; j < d; ++j) {
      low.push_back(static_cast<double>(boxes[j * 16 + box]));
      high.push_back(static_cast<double>(boxes[j * 16 + 8 + box]));
    }
    farthest.push_back(farthest_key(op, x, low, high));
    EXPECT_GE(farthest.back(), largest[static_cast<std::size_t>(box)]) << "d " << d << " op " << static_cast<int>(op);
  }
  for (const double at : farthest) {
    for (const double limit : {at, std::nextafter(at, -kInfinity)}) {
      double keys[8];
      double plain[8];
      std::uint32_t inside = 0;
      const auto near = ranges(x.data(), boxes.data(), d, limit, keys, &inside);
      const auto boxes_of = kernels.boxes[static_cast<int>(op)][static_cast<int>(element)];
      EXPECT_EQ(near, boxes_of(x.data(), x.data(), boxes.data(), d, limit, plain));
      EXPECT_EQ(std::memcmp(keys, plain, sizeof keys), 0);
      for (int box = 0; box < 8; ++box) {
        EXPECT_EQ(inside >> box & 1, farthest[static_cast<std::size_t>(box)] <= limit ? 1U : 0U)
            << "d " << d << " op " << static_cast<int>(op);
      }
    }
  }
}

/// Boxes are not farther from a box than from the point x in it; at the key of one they are near, just below it not.
template <class T>
void expect_boxes_of_box_below(const cpu::TreeKernels& kernels, cpu::KeyOp op, cpu::Element element,
                               const std::vector<double>& x, const std::vector<T>& boxes, const double* keys_of_x,
                               std::mt19937_64& random) {
  const std::int64_t d = std::ssize(boxes) / 16;
  std::vector<double> low = x;
  std::vector<double> high = x;
  for (std::int64_t j = 0; j < d; ++j) {
    const double other = random() % 2 == 0 ? static_cast<double>(boxes[random() % boxes.size()]) : hard_value(random);
    low[j] = std::min(x[j], other);
    high[j] = std::max(x[j], other);
  }
  const auto boxes_of = kernels.boxes[static_cast<int>(op)][static_cast<int>(element)];
  double keys[8];
  EXPECT_EQ(boxes_of(low.data(), high.data(), boxes.data(), d, kInfinity, keys), 0xFFU);
  for (int box = 0; box < 8; ++box) {
    EXPECT_LE(keys[box], keys_of_x[box]) << "d " << d << " op " << static_cast<int>(op);
    double again[8];
    const double below = std::nextafter(keys[box], -kInfinity);
    EXPECT_EQ(boxes_of(low.data(), high.data(), boxes.data(), d, keys[box], again) >> box & 1, 1U);
    EXPECT_EQ(boxes_of(low.data(), high.data(), boxes.data(), d, below, again) >> box & 1, 0U);
  }
}

template <class T>
void expect_boxes_below_points(Isa isa, cpu::Element element, std::int64_t d, std::mt19937_64& random) {
  const cpu::TreeKernels& kernels = cpu::tree_kernels(isa);
  constexpr std::int64_t kPoints = 8;  // a box
  std::vector<double> x(static_cast<std::size_t>((d + 7) / 8 * 8), 0.0);
  std::vector<T> points(static_cast<std::size_t>(8 * kPoints * d));  // [box][d][point]
  std::vector<T> boxes(static_cast<std::size_t>(16 * d));
  const auto draw = [&] {
    if constexpr (std::is_same_v<T, std::uint8_t>) return static_cast<std::uint8_t>(random() % 256);
    return static_cast<T>(std::clamp(hard_value(random), -1e30, 1e30));
  };
  for (T& value : points) value = std::is_same_v<T, double> ? static_cast<T>(hard_value(random)) : draw();
  for (std::int64_t j = 0; j < d; ++j) {
    // Often exactly a value of a point, so that gaps of zero and edges are met.
    x[j] = random() % 2 == 0 ? static_cast<double>(points[random() % points.size()]) : hard_value(random);
    for (std::int64_t box = 0; box < 8; ++box) {
      const auto first = points.begin() + (box * d + j) * kPoints;
      boxes[j * 16 + box] = *std::min_element(first, first + kPoints);
      boxes[j * 16 + 8 + box] = *std::max_element(first, first + kPoints);
    }
  }
  for (const cpu::KeyOp op : {cpu::KeyOp::squares, cpu::KeyOp::absolutes, cpu::KeyOp::maximum}) {
    double box_keys[8];
    const auto all = kernels.boxes[static_cast<int>(op)][static_cast<int>(element)](x.data(), x.data(), boxes.data(), d,
                                                                                    kInfinity, box_keys);
    EXPECT_EQ(all, 0xFFU);
    std::vector<double> largest;
    for (std::int64_t box = 0; box < 8; ++box) {
      const T* panel = points.data() + box * d * kPoints;
      double keys[kPoints];
      std::int32_t at[kPoints];
      const auto points_of = kernels.points[static_cast<int>(op)][static_cast<int>(element)];
      ASSERT_EQ(points_of(x.data(), panel, kPoints, d, kInfinity, keys, at), kPoints);
      for (std::int64_t i = 0; i < kPoints; ++i) {
        std::vector<double> y(static_cast<std::size_t>(d));
        for (std::int64_t j = 0; j < d; ++j) y[j] = static_cast<double>(panel[j * kPoints + i]);
        const double want = key_of(op, x.data(), y.data(), d);
        EXPECT_EQ(std::memcmp(&want, &keys[i], sizeof want), 0) << name_of(isa) << " d " << d << " " << keys[i];
        EXPECT_LE(box_keys[box], keys[i]) << name_of(isa) << " d " << d << " op " << static_cast<int>(op);
      }
      largest.push_back(*std::max_element(keys, keys + kPoints));
      // At a limit that is some point's key, exactly the points not above it come back, also from a shorter panel.
      const double limit = keys[random() % kPoints];
      const std::vector<double> every(keys, keys + kPoints);
      for (std::int64_t count = 1; count <= kPoints; ++count) {
        std::vector<std::int32_t> expected;
        for (std::int64_t i = 0; i < count; ++i) {
          if (every[i] <= limit) expected.push_back(static_cast<std::int32_t>(i));
        }
        const std::int64_t found = points_of(x.data(), panel, count, d, limit, keys, at);
        EXPECT_EQ(std::vector<std::int32_t>(at, at + found), expected);
      }
    }
    expect_points_in_boxes_inside(kernels, op, element, x, boxes, largest);
    expect_boxes_of_box_below(kernels, op, element, x, boxes, box_keys, random);
    const double limit = box_keys[random() % 8];
    double again[8];
    const auto near = kernels.boxes[static_cast<int>(op)][static_cast<int>(element)](x.data(), x.data(), boxes.data(),
                                                                                     d, limit, again);
    for (int box = 0; box < 8; ++box) EXPECT_EQ(near >> box & 1, box_keys[box] <= limit ? 1U : 0U);
  }
}

TEST(TreeBound, NoBoxIsFartherThanAPointInIt) {
  std::mt19937_64 random(5);
  for (const Isa isa : isas()) {
    for (const std::int64_t d : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 41}) {
      for (int trial = 0; trial < 20; ++trial) {
        expect_boxes_below_points<double>(isa, cpu::Element::float64, d, random);
        expect_boxes_below_points<float>(isa, cpu::Element::float32, d, random);
        expect_boxes_below_points<std::uint8_t>(isa, cpu::Element::uint8, d, random);
      }
    }
  }
}

// Few keys and ids, so that many are equal.
TEST(ListEntry, GoesWhereASortWouldPutIt) {
  constexpr std::int64_t kBefore = 8;
  std::mt19937_64 random(7);
  for (const Isa isa : isas()) {
    for (std::int64_t size = 1; size <= 32; ++size) {
      std::vector<std::pair<double, std::int64_t>> sorted(static_cast<std::size_t>(size),
                                                          {kInfinity, std::numeric_limits<std::int64_t>::max()});
      std::vector<double> keys(static_cast<std::size_t>(kBefore + 40), kInfinity);
      std::vector<std::int64_t> ids(keys.size(), std::numeric_limits<std::int64_t>::max());
      keys[kBefore - 1] = -kInfinity;
      for (int entry = 0; entry < 100; ++entry) {
        const std::pair<double, std::int64_t> one = {static_cast<double>(random() % 8), random() % 16};
        cpu::tree_kernels(isa).insert(one.first, one.second, &keys[kBefore], &ids[kBefore], size);
        sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), one), one);
        sorted.pop_back();
        for (std::int64_t i = 0; i < size; ++i) {
          ASSERT_EQ(keys[kBefore + i], sorted[i].first) << name_of(isa) << " " << size;
          ASSERT_EQ(ids[kBefore + i], sorted[i].second) << name_of(isa) << " " << size;
        }
      }
    }
  }
}

TEST(TreeBound, PowersAreMonotone) {
  std::mt19937_64 random(6);
  for (int trial = 0; trial < 20000; ++trial) {
    const double p = 1 + static_cast<double>(random() % 64) / 16;
    const double t = std::fabs(hard_value(random));
    EXPECT_LE(core::power(t, p), core::power(std::nextafter(t, kInfinity), p)) << t << " " << p;
  }
}

kernels::Prepared prepared(const Context& ctx, const TableView& table) {
  kernels::Prepared index;
  index.table = table;
  kernels::backend_of(ctx).nearest().prepare(ctx, index);
  return index;
}

TEST(Tree, IsTheSameWhateverTheThreads) {
  constexpr std::int64_t kRows = 100000;
  const std::vector<double> rows = random_rows(kRows, 3, 1);
  const TableView table(rows.data(), kRows, 3);
  const Context one = Context::cpu({.threads = 1});
  const auto tree = cpu::Tree::build(one, prepared(one, table));
  for (const int threads : {2, 7}) {
    const Context ctx = Context::cpu({.threads = threads});
    const auto other = cpu::Tree::build(ctx, prepared(ctx, table));
    EXPECT_EQ(other->shape().order, tree->shape().order);
    EXPECT_EQ(other->shape().leaf_sizes, tree->shape().leaf_sizes);
    EXPECT_EQ(other->shape().nodes, tree->shape().nodes);
  }
}

// One hot column a row: every split takes off a few rows, and no box but the root's says much.
TEST(Tree, OfOneHotRowsStaysWithinItsMemory) {
  constexpr std::int64_t kRows = 1500;
  std::vector<std::uint8_t> rows(kRows * 300, 0);
  for (std::int64_t i = 0; i < kRows; ++i) rows[i * 300 + i % 300] = static_cast<std::uint8_t>(1 + i / 300);
  const Context ctx = Context::cpu({.threads = 2});
  const TableView table(rows.data(), kRows, 300);
  const auto tree = cpu::Tree::build(ctx, prepared(ctx, table));
  EXPECT_LT(tree->shape().leaf_sizes.size(), kRows / 8);
  EXPECT_EQ(knn(ctx, table, {.k = 7, .method = Method::kdtree}).ids,
            knn(ctx, table, {.k = 7, .method = Method::direct}).ids);
}

TEST(Tree, EqualRowsAreOneLeafOfAnySize) {
  const std::vector<float> rows(30000, 2.5F);
  const Context ctx = Context::cpu({.threads = 2});
  kernels::Prepared index;  // not grouped
  index.table = TableView(rows.data(), 10000, 3);
  const auto tree = cpu::Tree::build(ctx, index);
  EXPECT_EQ(tree->shape().leaf_sizes, std::vector<std::int64_t>{10000});
}

TEST(Tree, IsBuiltOnceBySearchesAtTheSameTime) {
  const std::vector<double> rows = random_rows(20000, 3, 2);
  const Context ctx = Context::cpu({.threads = 2});
  const Index index(ctx, TableView(rows.data(), 20000, 3));
  EXPECT_EQ(kernels::prepared_of(index).tree.get(), nullptr);
  const NeighborGraph wanted = knn(ctx, index, {.k = 3, .method = Method::fused});
  std::vector<NeighborGraph> graphs(4);
  std::vector<std::thread> threads;
  for (NeighborGraph& graph : graphs) {
    threads.emplace_back([&] { graph = knn(ctx, index, {.k = 3, .method = Method::kdtree}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const NeighborGraph& graph : graphs) {
    EXPECT_EQ(graph.ids, wanted.ids);
    EXPECT_EQ(graph.distances, wanted.distances);
    EXPECT_EQ(graph.stats.survivors, graphs[0].stats.survivors);
  }
  EXPECT_NE(kernels::prepared_of(index).tree.get(), nullptr);
}

TEST(Tree, StatisticsDoNotDependOnThreadsOrInstructionSets) {
  const std::vector<double> rows = random_rows(20000, 4, 3);
  std::set<std::int64_t> survivors;
  for (const Isa isa : isas()) {
    for (const int threads : {1, 3}) {
      const Context ctx = Context::cpu({.threads = threads, .isa = isa});
      survivors.insert(knn(ctx, TableView(rows.data(), 20000, 4), {.k = 5, .method = Method::kdtree}).stats.survivors);
    }
  }
  EXPECT_EQ(survivors.size(), 1U);
}

TEST(Tree, OfABlockSourceIsRefusedUnlessItIsCopied) {
  const TableView source =
      TableView::blocks(DType::float64, 1000, 3, [](std::int64_t begin, std::int64_t end, void* to) {
        for (std::int64_t i = begin * 3; i < end * 3; ++i) static_cast<double*>(to)[i - begin * 3] = std::sin(i);
      });
  const Context ctx = Context::cpu({.threads = 1});
  EXPECT_THROW(Index(ctx, source, {.tree = true}), Error);
  EXPECT_NE(kernels::prepared_of(Index(ctx, source, {.copy = true, .tree = true})).tree.get(), nullptr);
}

TEST(Tree, BeyondTheMemoryLimitIsRefused) {
  const std::vector<double> rows = random_rows(20000, 8, 4);
  const TableView table(rows.data(), 20000, 8);
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = 7000000});
  const Index index(ctx, table);
  try {
    static_cast<void>(knn(ctx, index, {.k = 1, .method = Method::kdtree}));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
  }
  EXPECT_EQ(knn(ctx, index, {.k = 1}).plan.method, Method::fused);
}

TEST(Tree, BuildingIsCancelled) {
  const std::vector<double> rows = random_rows(100000, 3, 5);
  const CancelToken token;
  const Context ctx = Context::cpu({.threads = 2, .cancel = token});
  const kernels::Prepared index = prepared(ctx, TableView(rows.data(), 100000, 3));
  token.cancel();
  EXPECT_THROW(cpu::Tree::build(ctx, index), Error);
}

/// Points of a grid of `side` in each column, in a random order: most distances are equal, and boxes touch the limits.
std::vector<double> shuffled_grid(std::int64_t side, std::int64_t d, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(d == 1 ? side : side * side));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<double> rows;
  for (const std::int64_t at : order) {
    rows.push_back(static_cast<double>(at % side));
    if (d == 2) rows.push_back(static_cast<double>(at / side));
  }
  return rows;
}

TEST(TreeOfAGrid, ListsWithinItselfAreThoseOfAllPairs) {
  const Context ctx = Context::cpu({.threads = 2});
  for (const std::int64_t d : {1, 2}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const std::vector<double> rows = shuffled_grid(d == 1 ? 1500 : 40, d, seed);
      const TableView table(rows.data(), std::ssize(rows) / d, d);
      for (const Metric metric : {Metric::euclidean, Metric::manhattan, Metric::chebyshev}) {
        for (const std::int64_t k : {1, 2, 3, 4, 7, 12, 32}) {
          const NeighborGraph found = knn(ctx, table, {.k = k, .metric = metric, .method = Method::kdtree});
          const NeighborGraph wanted = knn(ctx, table, {.k = k, .metric = metric, .method = Method::direct});
          EXPECT_EQ(found.ids, wanted.ids) << d << " columns, k " << k << ", " << name_of(metric);
          EXPECT_EQ(found.distances, wanted.distances);
        }
      }
    }
  }
}

class TreeFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) / ("vicinal_tree_" + std::to_string(getpid()) + "_" +
                                                         testing::UnitTest::GetInstance()->current_test_info()->name());
    rows_ = random_rows(2000, 3, 6);
    for (std::size_t i = 0; i < 900; ++i) rows_[i] = rows_[i + 900];  // some rows twice
  }
  void TearDown() override { std::filesystem::remove(path_); }

  [[nodiscard]] TableView table() const { return {rows_.data(), 2000, 3}; }

  Context ctx_ = Context::cpu({.threads = 2});
  std::filesystem::path path_;
  std::vector<double> rows_;
};

TEST_F(TreeFile, ThereAndBack) {
  const Index index(ctx_, table(), {.tree = true});
  index.save(ctx_, path_);
  const Index loaded = Index::load(ctx_, path_);
  const auto tree = kernels::prepared_of(loaded).tree.get();
  ASSERT_NE(tree, nullptr);
  const auto shape_of = [&](const Index& made) {
    return kernels::prepared_of(made).tree.get()->shape_of(ctx_, kernels::prepared_of(made))->order;
  };
  EXPECT_EQ(shape_of(loaded), shape_of(index));
  const NeighborGraph wanted = knn(ctx_, table(), {.k = 9, .method = Method::direct});
  const NeighborGraph got = knn(ctx_, loaded, {.k = 9, .method = Method::kdtree});
  EXPECT_EQ(got.ids, wanted.ids);
  EXPECT_EQ(got.distances, wanted.distances);
  Index(ctx_, table()).save(ctx_, path_);
  EXPECT_EQ(kernels::prepared_of(Index::load(ctx_, path_)).tree.get(), nullptr);
}

TEST_F(TreeFile, AShapeThatIsNoTreeIsRefusedAndAnyOtherAnswersRightly) {
  const kernels::Prepared index = prepared(ctx_, table());
  const auto tree = cpu::Tree::build(ctx_, index);
  const kernels::TreeShape good = tree->shape();
  const auto restored = [&](const auto& change) {
    kernels::TreeShape shape = good;
    change(shape);
    return cpu::Tree::restore(ctx_, index, std::move(shape));
  };
  const auto refused = [&](const auto& change) {
    try {
      restored(change);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data) << error.what();
    }
  };
  using Shape = kernels::TreeShape;
  refused([](Shape& s) { s.order[0] = s.order[1]; });
  refused([](Shape& s) { s.order[5] = -1; });
  refused([](Shape& s) { s.order[5] = static_cast<std::int64_t>(s.order.size()); });
  refused([](Shape& s) { s.order.pop_back(); });
  refused([](Shape& s) { s.leaf_sizes[3] += 1; });
  refused([](Shape& s) { s.leaf_sizes[3] = 0; });
  refused([](Shape& s) { s.leaf_sizes[3] = -1; });
  refused([](Shape& s) { s.leaf_sizes[3] = std::numeric_limits<std::int64_t>::max(); });
  refused([](Shape& s) { s.leaf_sizes.pop_back(); });
  refused([](Shape& s) { s.leaf_sizes.push_back(1); });
  refused([](Shape& s) { s.nodes[0] = 9; });
  refused([](Shape& s) { s.nodes[0] = -1; });
  refused([](Shape& s) { s.nodes.pop_back(); });
  refused([](Shape& s) { s.nodes.push_back(0); });
  refused([](Shape& s) { s.nodes.clear(); });
  refused([](Shape& s) { s.nodes.insert(s.nodes.begin(), 1000, 1); });
  // Leaves of other rows and other sizes are a bad tree, but a tree.
  const NeighborGraph wanted = knn(ctx_, table(), {.k = 9, .method = Method::direct});
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 3; ++trial) {
    const Index other(ctx_, table());
    kernels::prepared_of(other).tree.get_or_make(ctx_, [&] {
      return restored([&](Shape& s) {
        std::shuffle(s.order.begin(), s.order.end(), random);
        if (trial > 0) std::swap(s.leaf_sizes.front(), s.leaf_sizes.back());
        if (trial > 1) s = {s.order, {static_cast<std::int64_t>(s.order.size())}, {0}};
      });
    });
    const NeighborGraph got = knn(ctx_, other, {.k = 9, .method = Method::kdtree});
    EXPECT_EQ(got.ids, wanted.ids);
    EXPECT_EQ(got.distances, wanted.distances);
  }
}

// What a device hands over is an order of all rows; the index may group equal ones.
TEST_F(TreeFile, AnyOrderOfTheRowsIsATree) {
  const kernels::Prepared index = prepared(ctx_, table());
  ASSERT_TRUE(index.grouped());
  std::vector<std::int64_t> rows(2000);
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), std::mt19937_64(2));
  const std::vector<std::int64_t> order = plugin::distinct_in_order(index, rows);
  EXPECT_EQ(static_cast<std::int64_t>(order.size()), index.distinct_rows());
  const Index other(ctx_, table());
  kernels::prepared_of(other).tree.get_or_make(
      ctx_, [&] { return cpu::Tree::restore(ctx_, index, plugin::shape_in_order(order)); });
  const NeighborGraph wanted = knn(ctx_, table(), {.k = 9, .method = Method::direct});
  const NeighborGraph got = knn(ctx_, other, {.k = 9, .method = Method::kdtree});
  EXPECT_EQ(got.ids, wanted.ids);
  EXPECT_EQ(got.distances, wanted.distances);
  for (const std::int64_t n : {1, 2, 31, 32, 33, 255, 256, 257, 288, 511, 513, 1999}) {
    kernels::Prepared part;
    part.table = table().slice(0, n);
    std::vector<std::int64_t> backwards(rows.begin(), rows.begin() + n);
    std::iota(backwards.rbegin(), backwards.rend(), 0);
    const kernels::TreeShape shape = plugin::shape_in_order(plugin::distinct_in_order(part, backwards));
    EXPECT_EQ(shape.order, backwards);
    EXPECT_EQ(static_cast<std::int64_t>(shape.leaf_sizes.size()), (n + 31) / 32);
    EXPECT_EQ(cpu::Tree::restore(ctx_, part, shape)->shape().nodes, shape.nodes) << n;
  }
}

TEST(TreeSlot, KeepsOneTreeADeviceAndCopiesNone) {
  const std::vector<double> rows = random_rows(100, 2, 12);
  const Context ctx = Context::cpu({.threads = 1});
  const kernels::Prepared index = prepared(ctx, TableView(rows.data(), 100, 2));
  const auto here = cpu::Tree::build(ctx, index);
  const auto there = cpu::Tree::build(ctx, index);
  const kernels::TreeSlot slot;
  EXPECT_EQ(slot.any(), nullptr);
  EXPECT_EQ(slot.get_or_make(
                ctx, [&] { return there; }, 0),
            there);
  EXPECT_EQ(slot.get(), nullptr);
  EXPECT_EQ(slot.any(), there);
  EXPECT_EQ(slot.get_or_make(ctx, [&] { return here; }), here);
  EXPECT_EQ(slot.get_or_make(ctx, [&] { return there; }), here);
  EXPECT_EQ(slot.get(0), there);
  EXPECT_EQ(slot.any(), here);
  EXPECT_EQ(kernels::TreeSlot(slot).any(), nullptr);
}

// Rows on a curved surface of four dimensions in 41 columns.
std::vector<float> embedded_rows(std::int64_t n, std::uint64_t seed) {
  std::vector<float> rows(static_cast<std::size_t>(n * 41));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < 41; ++j) {
      double value = 0;
      for (std::int64_t c = 0; c < 4; ++c) {
        const double u = core::philox_uniform(seed, 1, static_cast<std::uint64_t>(i * 4 + c));
        value += u * std::sin(static_cast<double>(j * 4 + c));
      }
      rows[static_cast<std::size_t>(i * 41 + j)] = static_cast<float>(value);
    }
  }
  return rows;
}

TEST(Planner, TakesATreeByIntrinsicDimension) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<float> flat = embedded_rows(200000, 1);
  const Plan tree = plan_knn(ctx, TableView(flat.data(), 200000, 41), nullptr, {.k = 10});
  EXPECT_EQ(tree.method, Method::kdtree) << tree.reason;
  EXPECT_NE(tree.reason.find("of 200,000 rows"), std::string::npos) << tree.reason;
  std::vector<float> full(200000 * 16);
  std::mt19937_64 random(1);
  for (float& value : full) value = std::normal_distribution<float>()(random);
  const Plan brute = plan_knn(ctx, TableView(full.data(), 200000, 16), nullptr, {.k = 10});
  EXPECT_EQ(brute.method, Method::fused) << brute.reason;
}

TEST(Planner, PlansWhatTheSearchDoes) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<double> rows = random_rows(50000, 3, 7);
  const TableView table(rows.data(), 50000, 3);
  const Plan plan = plan_knn(ctx, table, nullptr, {.k = 5});
  const NeighborGraph graph = knn(ctx, table, {.k = 5});
  EXPECT_EQ(plan.method, graph.plan.method);
  EXPECT_EQ(plan.reason, graph.plan.reason);
  EXPECT_EQ(plan.method, Method::kdtree) << plan.reason;
}

TEST(Planner, AsksTheTreeOfASmallTable) {
  const std::vector<double> rows = random_rows(3000, 3, 7);
  const TableView table(rows.data(), 3000, 3);
  for (const int threads : {1, 3}) {
    const Context ctx = Context::cpu({.threads = threads});
    const Index index(ctx, table);
    // Ranking every row takes less than a question.
    EXPECT_EQ(knn(ctx, index, table.slice(0, 1), {.k = 5}).plan.method, Method::direct);
    EXPECT_EQ(kernels::prepared_of(index).tree.get(), nullptr);
    const NeighborGraph graph = knn(ctx, index, {.k = 5});
    EXPECT_EQ(graph.plan.method, Method::kdtree) << graph.plan.reason;
    EXPECT_NE(graph.plan.reason.find("of 3,000 rows"), std::string::npos) << graph.plan.reason;
    EXPECT_EQ(plan_knn(ctx, table, nullptr, {.k = 5}).reason, graph.plan.reason);
    EXPECT_NE(kernels::prepared_of(index).tree.get(), nullptr);
  }
  std::vector<float> full(std::size_t{3000} * 64);
  std::mt19937_64 random(1);
  for (float& value : full) value = std::normal_distribution<float>()(random);
  const Plan brute = plan_knn(Context::cpu({.threads = 2}), TableView(full.data(), 3000, 64), nullptr, {.k = 10});
  EXPECT_EQ(brute.method, Method::fused) << brute.reason;
}

// Lists so long that a sample of the table does not hold them: its own tree is asked.
TEST(Planner, AsksTheTreeForLongLists) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<double> rows = random_rows(10000, 3, 7);
  const TableView table(rows.data(), 10000, 3);
  for (const std::int64_t k : {100, 325, 1000}) {
    const Plan plan = plan_knn(ctx, table, nullptr, {.k = k});
    EXPECT_EQ(plan.method, Method::kdtree) << k << ": " << plan.reason;
    EXPECT_NE(plan.reason.find("of 10,000 rows"), std::string::npos) << plan.reason;
    EXPECT_EQ(knn(ctx, table, {.k = k}).plan.reason, plan.reason);
  }
  const std::vector<double> wide = random_rows(10000, 40, 7);
  const Plan plan = plan_knn(ctx, TableView(wide.data(), 10000, 40), nullptr, {.k = 325});
  EXPECT_EQ(plan.method, Method::fused) << plan.reason;
}

TEST(Planner, PlansWhatASearchWithinARadiusDoes) {
  const Context ctx = Context::cpu({.threads = 2});
  const std::vector<double> rows = random_rows(50000, 3, 9);
  const TableView table(rows.data(), 50000, 3);
  EXPECT_NE(plan_radius(ctx, table, nullptr, {.radius = 2}).method, Method::fused);  // it would rank every row
  const Plan plan = plan_radius(ctx, table, nullptr, {.radius = 0.01});
  EXPECT_EQ(plan.method, Method::kdtree) << plan.reason;
  EXPECT_EQ(count(ctx, Index(ctx, table), {.radius = 0.01}).plan.reason, plan.reason);
}

// Everything is near. A tree takes it as a whole, but neither with rows to exclude nor with a filter for so few
// queries: then it touches every row, and the plan says so.
TEST(Planner, TakesBoxesAsTheCountDoes) {
  const Context ctx = Context::cpu({.threads = 2});
  constexpr std::int64_t kRows = 50000;
  const std::vector<double> rows = random_rows(kRows, 3, 9);
  const TableView table(rows.data(), kRows, 3);
  const Index index(ctx, table, {.tree = true});
  const auto plan_of = [&](std::int64_t queries, const RadiusOptions& options) {
    return count(ctx, index, table.slice(0, queries), options).plan;
  };
  const std::vector<std::int64_t> exclude(2000, 0);
  const std::vector<std::uint64_t> all((kRows + 63) / 64, ~std::uint64_t{0});
  const auto touches_all = [](const Plan& plan) {
    return plan.reason.find("would touch about 50,000 of 50,000") != std::string::npos;
  };
  for (const std::int64_t queries : {100, 2000}) {
    const Plan whole = plan_of(queries, {.radius = 2});
    EXPECT_EQ(whole.method, Method::kdtree) << whole.reason;
    EXPECT_FALSE(touches_all(whole)) << whole.reason;
    const auto excluded = std::span(exclude).first(static_cast<std::size_t>(queries));
    const Plan excludes = plan_of(queries, {.radius = 2, .exclude = excluded});
    EXPECT_TRUE(touches_all(excludes)) << excludes.reason;
    const Plan filtered = plan_of(queries, {.radius = 2, .filter = all});
    EXPECT_EQ(touches_all(filtered), queries < kRows / 64) << filtered.reason;
  }
}

// What the fused search needs depends on the machine's screens; it hardly grows with the table, as a tree does.
TEST(Planner, TakesNoTreeThatDoesNotFit) {
  const std::vector<double> rows = random_rows(200000, 3, 10);
  const TableView table(rows.data(), 200000, 3);
  const TableView queries = table.slice(0, 2000);
  const Context ample = Context::cpu({.threads = 2});
  ASSERT_EQ(plan_knn(ample, table, &queries, {.k = 5}).method, Method::kdtree);
  const std::uint64_t fused = plan_knn(ample, table, &queries, {.k = 5, .method = Method::fused}).memory;
  const Context ctx = Context::cpu({.threads = 2, .memory_limit = fused});
  const NeighborGraph graph = knn(ctx, table, queries, {.k = 5});
  EXPECT_EQ(graph.plan.method, Method::fused) << graph.plan.reason;
}

// The tree of a small table is built to be asked, and stays with the index where brute force wins.
TEST(Planner, CountsATreeThatLoses) {
  std::vector<float> rows(std::size_t{6000} * 64);
  std::mt19937_64 random(1);
  for (float& value : rows) value = std::normal_distribution<float>()(random);
  const TableView table(rows.data(), 6000, 64);
  const auto stands = [](const Index& index) { return kernels::prepared_of(index).tree.get() != nullptr; };
  const Context ample = Context::cpu({.threads = 2});
  const IndexOptions options = {.packed = Packing::never};
  const Index index(ample, table, options);
  const std::uint64_t brute = knn(ample, index, {.k = 10, .method = Method::fused}).plan.memory;
  const Plan plan = knn(ample, index, {.k = 10}).plan;
  ASSERT_EQ(plan.method, Method::fused) << plan.reason;
  ASSERT_TRUE(stands(index)) << plan.reason;
  EXPECT_EQ(plan.memory, brute + cpu::Tree::bytes(kernels::prepared_of(index)));
  EXPECT_GE(plan_knn(ample, table, nullptr, {.k = 10}).memory, plan.memory);
  for (const bool has_room : {true, false}) {
    const Context ctx = Context::cpu({.threads = 2, .memory_limit = plan.memory - (has_room ? 0 : 1)});
    const Index other(ctx, table, options);
    EXPECT_EQ(knn(ctx, other, {.k = 10}).plan.memory, has_room ? plan.memory : brute);
    EXPECT_EQ(stands(other), has_room);
    EXPECT_LE(plan_knn(ctx, table, nullptr, {.k = 10}).memory, ctx.memory_limit());
  }
}

TEST(Planner, UsesATreeThatStands) {
  const std::vector<double> rows = random_rows(50000, 3, 11);
  const TableView table(rows.data(), 50000, 3);
  const Context ctx = Context::cpu({.threads = 2});
  const Index index(ctx, table, {.tree = true});
  EXPECT_EQ(knn(ctx, index, table.slice(0, 100), {.k = 5}).plan.method, Method::kdtree);
  // So few that a tree does not pay with any instruction set.
  EXPECT_NE(knn(ctx, Index(ctx, table), table.slice(0, 10), {.k = 5}).plan.method, Method::kdtree);
  const NeighborGraph cosine = knn(ctx, index, table.slice(0, 100), {.k = 5, .metric = Metric::cosine});
  EXPECT_NE(cosine.plan.method, Method::kdtree);
}

TEST(Planner, LeavesAnOverflowToTheSearch) {
  std::vector<double> rows = random_rows(50000, 3, 8);
  rows[3 * 40000] = 1e200;
  const Context ctx = Context::cpu({.threads = 2});
  try {
    static_cast<void>(knn(ctx, TableView(rows.data(), 50000, 3), TableView(rows.data(), 2000, 3), {.k = 5}));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("40000"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace vicinal
