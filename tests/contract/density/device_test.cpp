// Density clustering on a CUDA device beside the CPU: plans, memory, tables that lie there, cancels, and what is
// refused. Edges and their bits are those of spanning_tree_test.cpp.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data.hpp"
#include "density_check.hpp"
#include "device_check.hpp"
#include "device_memory.hpp"
#include "fake_count.hpp"
#include "refused.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/hdbscan.hpp"
#include "vicinal/optics.hpp"
#include "vicinal/spanning_tree.hpp"

namespace vicinal::contract {
namespace {

class DensityOnDevice : public DeviceTest {
 protected:
  static std::vector<float> some_rows(std::int64_t n, std::int64_t d) {
    return singles(make_rows(Family::gaussian, {n, d, 1}, 4).table);
  }
  static void expect_same_tree(const SpanningTree& got, const SpanningTree& wanted) {
    EXPECT_EQ(got.a, wanted.a);
    EXPECT_EQ(got.b, wanted.b);
    EXPECT_EQ(got.lengths, wanted.lengths);
    EXPECT_EQ(got.core_distances, wanted.core_distances);
  }
};

TEST_F(DensityOnDevice, TakesTablesOfTheDevice) {
  const std::vector<float> rows = some_rows(700, 5);
  const DeviceArray<float> there(rows);
  const TableView on_host(rows.data(), DType::float32, 700, 5, 5);
  const TableView on_device(there.data(), DType::float32, 700, 5, 5, 1, Memory::cuda);
  for (const Method method : {Method::automatic, Method::direct, Method::kdtree}) {
    const SpanningTreeOptions options = {.min_samples = 4, .method = method};
    const SpanningTree wanted = minimum_spanning_tree(cpu(), on_host, options);
    const SpanningTree got = minimum_spanning_tree(cuda(), on_device, options);
    expect_same_tree(got, wanted);
    EXPECT_EQ(got.plan.device, "cuda:0");
    EXPECT_GT(got.plan.device_memory, 0U);
    EXPECT_GE(got.tree_seconds, 0);
    EXPECT_EQ(got.stats.distinct_rows, 700);
    const Index index(cuda(), on_device);
    expect_same_tree(minimum_spanning_tree(cuda(), index, options), wanted);
    expect_same_tree(minimum_spanning_tree(cuda(), index, options), wanted);
  }
  const HdbscanOptions options = {.min_cluster_size = 8};
  const Hdbscan wanted = hdbscan(cpu(), on_host, options);
  const Hdbscan got = hdbscan(cuda(), on_device, options);
  EXPECT_EQ(got.labels, wanted.labels);
  EXPECT_EQ(got.probabilities, wanted.probabilities);
  EXPECT_EQ(got.outlier_scores, wanted.outlier_scores);
}

// Groups far from each other: the lists know no edge between them. A device makes a tree of its own for so many rows,
// whatever the method; a fake device meets every pair, and gets few.
TEST_F(DensityOnDevice, OfGroupsFarFromEachOther) {
  const std::int64_t n = is_fake() ? 1500 : 150000;
  for (const std::int64_t d : {3, 10}) {
    Generated made = generate(cpu(), {.shape = vicinal::Shape::blobs, .rows = n, .cols = d, .centers = 8, .seed = 3});
    for (double& x : made.points) x = static_cast<float>(x);  // equal rows and equal distances, too
    for (std::int64_t i = 0; i < n; i += 2) made.points[static_cast<std::size_t>(i * d)] += 1000;
    for (std::int64_t i = 0; i < n / 10 * d; ++i) made.points[static_cast<std::size_t>(i)] = made.points[0];
    const TableView table(made.points.data(), n, d);
    for (const SpanningTreeOptions& reach : {SpanningTreeOptions{}, SpanningTreeOptions{.min_samples = 6}}) {
      const SpanningTree wanted = minimum_spanning_tree(cpu(), table, reach);
      for (const Method method : {Method::fused, Method::direct, Method::kdtree}) {
        SpanningTreeOptions options = reach;
        options.method = method;
        if (!runs(cuda(), [&](const Context& on) { return plan_spanning_tree(on, table, options); })) continue;
        expect_same_tree(minimum_spanning_tree(cuda(), table, options), wanted);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(DensityOnDevice, PlansItsMemory) {
  const std::vector<float> rows = some_rows(3000, 4);
  const TableView table(rows.data(), DType::float32, 3000, 4, 4);
  const SpanningTreeOptions options = {.min_samples = 5};
  const Plan plan = plan_spanning_tree(cuda(), table, options);
  EXPECT_EQ(plan.device, "cuda:0");
  EXPECT_GE(plan.device_memory, std::uint64_t{3000 * 10 * 16});  // its lists
  EXPECT_GE(plan_hdbscan(cuda(), table).memory, plan.memory);
  // The lists of the CPU are not planned for.
  EXPECT_LT(plan.memory, plan_spanning_tree(cpu(), table, options).memory);
  const Context tiny = Context::cuda({.device_memory_limit = 60000});
  refused([&] { minimum_spanning_tree(tiny, table, options); }, ErrorCode::over_memory, "bytes");
  refused([&] { plan_spanning_tree(tiny, table, options); }, ErrorCode::over_memory, "bytes");
  refused([&] { hdbscan(tiny, table); }, ErrorCode::over_memory, "bytes");
  // Room for the table, and not for the lists.
  const Context small = Context::cuda({.device_memory_limit = 400000});
  refused([&] { minimum_spanning_tree(small, table, options); }, ErrorCode::over_memory, "bytes");
}

// Lists stay while they are found and while the tree grows; the search, the growth and the order of the edges take
// memory one after the other. What is planned is enough, and no more is refused than does not run.
TEST_F(DensityOnDevice, PlansWhatItHoldsAtATime) {
  const std::int64_t n = is_fake() ? 250 : 20000;
  const std::vector<float> rows = some_rows(n, 60);
  const TableView table(rows.data(), DType::float32, n, 60, 60);
  const auto fits = [](const auto& call) {
    try {
      call();
      return true;
    } catch (const Error& error) {
      // For the screen a device may have no room, but says so of the method.
      if (is_fake()) {
        EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
      }
      return false;
    }
  };
  for (const Method method : {Method::automatic, Method::fused, Method::direct, Method::kdtree}) {
    const SpanningTreeOptions options = {.min_samples = 5, .method = method};
    const HdbscanOptions clusters = {.min_cluster_size = 8, .method = method};
    const std::uint64_t table_bytes = rows.size() * sizeof(float);
    const std::uint64_t ample = 4 * (plan_spanning_tree(cuda(), table, options).device_memory + table_bytes);
    std::int64_t planned = 0;
    std::int64_t not_planned = 0;
    for (std::uint64_t limit = ample; limit > table_bytes; limit -= limit / 16) {
      const Context ctx = Context::cuda({.device_memory_limit = limit});
      const std::string what = std::string(name_of(method)) + ", limit " + std::to_string(limit);
      Plan plan;
      const bool is_planned = fits([&] { plan = plan_spanning_tree(ctx, table, options); });
      static_cast<void>(fake_count("vicinal_fake_most_taken"));
      EXPECT_EQ(fits([&] { minimum_spanning_tree(ctx, table, options); }), is_planned) << what;
      const std::int64_t taken = fake_count("vicinal_fake_most_taken");
      EXPECT_EQ(fits([&] { static_cast<void>(plan_hdbscan(ctx, table, clusters)); }),
                fits([&] { hdbscan(ctx, table, clusters); }))
          << what;
      ++(is_planned ? planned : not_planned);
      if (!is_planned) continue;
      EXPECT_LE(plan.device_memory, limit) << what;
      if (is_fake()) {
        EXPECT_EQ(static_cast<std::uint64_t>(taken), plan.device_memory) << what;
      }
    }
    EXPECT_GT(planned, 0) << name_of(method);
    EXPECT_GT(not_planned, 0) << name_of(method);
  }
}

TEST_F(DensityOnDevice, StopsWhenItIsCancelled) {
  const std::vector<float> rows = some_rows(3000, 3);
  const TableView table(rows.data(), DType::float32, 3000, 3, 3);
  for (const std::string stage : {"search", "tree"}) {
    for (const Method method : {Method::direct, Method::kdtree}) {
      CancelToken token;
      const Context ctx = Context::cuda({.progress =
                                             [&](std::string_view now, double) {
                                               if (now == stage) token.cancel();
                                             },
                                         .cancel = token});
      refused([&] { minimum_spanning_tree(ctx, table, {.min_samples = 5, .method = method}); }, ErrorCode::cancelled,
              "");
    }
  }
}

TEST_F(DensityOnDevice, RefusesWhatItDoesNotServe) {
  const std::vector<float> rows = some_rows(60, 3);
  const TableView table(rows.data(), DType::float32, 60, 3, 3);
  refused([&] { optics(cuda(), table); }, ErrorCode::device_unavailable,
          "optics: runs on the CPU only so far, not on cuda:0; use a context of the CPU");
  if (cuda_status().devices.size() < 2) return;
  const Context both = Context::cuda({.devices = {0, 1}});
  refused([&] { minimum_spanning_tree(both, table); }, ErrorCode::device_unavailable,
          "spanning tree: does not run on several devices as one, such as cuda:0,1; use a context of one device");
}

TEST_F(DensityOnDevice, RefusesValuesThatHaveNoDistance) {
  std::vector<double> rows = make_rows(Family::gaussian, {40, 3, 1}, 1).table;
  const TableView table(rows.data(), 40, 3);
  const auto expect = [&](double value, double alpha, const std::string& sentence) {
    rows[7 * 3 + 1] = value;
    for (const Method method : {Method::direct, Method::kdtree}) {
      refused([&] { minimum_spanning_tree(cuda(), table, {.min_samples = 2, .alpha = alpha, .method = method}); },
              ErrorCode::bad_data, sentence);
    }
  };
  expect(1e200, 1, "overflows float64");
  expect(1e150, 1e-10, "divided by alpha, overflows float64");
}

}  // namespace
}  // namespace vicinal::contract
