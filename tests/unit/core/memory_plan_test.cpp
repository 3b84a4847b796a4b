// Plans of memory, entry by entry: how much more a plan names for more rows, neighbors or clusters is at least what the
// job then holds at once. (That a run stays within its plan is tested through the command.)
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "cpu/kmeans/seeding_screen.hpp"
#include "refusal.hpp"
#include "simd/kernels.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/kmeans_steps.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lof.hpp"
#include "vicinal/radius_batches.hpp"
#include "vicinal/shards.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kRows = 100000;

struct Tables {
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(4 * kRows), 1);
  TableView small = TableView(values.data(), kRows, 2);
  TableView large = TableView(values.data(), 2 * kRows, 2);
  Context ctx = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{1} << 40});
};

// Bytes a row that the plan of the larger table names above that of the smaller.
template <class PlanOf>
double bytes_per_row(const Tables& tables, const PlanOf& plan_of) {
  return (static_cast<double>(plan_of(tables.large).memory) - static_cast<double>(plan_of(tables.small).memory)) /
         static_cast<double>(kRows);
}

TEST(MemoryPlan, ListsOfNeighbors) {
  const Tables tables;
  const auto plan = [&](std::int64_t k) {
    return static_cast<double>(plan_knn(tables.ctx, tables.small, nullptr, {.k = k, .method = Method::direct}).memory);
  };
  // An id and a distance a neighbor.
  EXPECT_GE(plan(30) - plan(10), 20.0 * kRows * 16);
  // A column of offsets or counts.
  const auto within = [&](const TableView& queries) {
    return static_cast<double>(
        plan_radius(tables.ctx, tables.small, &queries, {.radius = 1, .method = Method::direct}).memory);
  };
  EXPECT_GE(within(tables.large) - within(tables.small), 8.0 * kRows);
  // And one of radii as keys.
  const std::vector<double> radii(static_cast<std::size_t>(kRows), 1);
  const auto of_each = [&](const RadiusOptions& options) {
    return static_cast<double>(plan_radius(tables.ctx, tables.small, &tables.small, options).memory);
  };
  EXPECT_GE(of_each({.method = Method::direct, .radii = radii}) - of_each({.radius = 1, .method = Method::direct}),
            8.0 * kRows);
}

TEST(MemoryPlan, ListsInBatches) {
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{1} << 40});
  constexpr double kOne = 0;
  // Of shapes: room for a list of all rows, and for many short ones, but not for more than there are.
  const auto room = [&](std::int64_t n, std::int64_t m) {
    const TableView table(&kOne, DType::float64, n, 2, 0, 0);
    const TableView queries(&kOne, DType::float64, m, 2, 0, 0);
    const RadiusOptions options = {.radius = 1, .method = Method::direct};
    return static_cast<std::int64_t>(plan_radius_batches(ctx, table, &queries, options).memory -
                                     plan_radius(ctx, table, &queries, options).memory);
  };
  EXPECT_GE(room(4'000'000, 100), 4'000'000 * 64);
  EXPECT_GE(room(10'000, 100'000), std::int64_t{64} << 20);
  EXPECT_LE(room(10'000, 100'000), std::int64_t{64} << 20);
  EXPECT_GE(room(10'000, 3), 3 * 10'000 * 64);
  EXPECT_LE(room(10'000, 3), 3 * (10'000 * 64 + 65'536));
}

TEST(MemoryPlan, ScoresOfOutliers) {
  const Tables tables;
  const auto more_than_search = [&](bool novelty, std::int64_t k_to) {
    return bytes_per_row(tables, [&](const TableView& table) {
      Plan plan = plan_lof(tables.ctx, table, {.k = 10, .k_to = k_to, .novelty = novelty, .method = Method::direct});
      plan.memory -= plan_knn(tables.ctx, table, nullptr, {.k = k_to > 0 ? k_to : 10, .method = Method::direct}).memory;
      return plan;
    });
  };
  // The score; k-distance and local density of each k; both again where they are kept.
  EXPECT_GE(more_than_search(false, 0), 8 + 16);
  EXPECT_GE(more_than_search(false, 14), 8 + 16 * 5);
  EXPECT_GE(more_than_search(true, 0), 8 + 16 + 16);
}

TEST(MemoryPlan, RowsOfClusters) {
  const Tables tables;
  const auto bytes = [&](KMeansInit init, std::int64_t clusters) {
    return bytes_per_row(tables, [&](const TableView& table) {
      return plan_kmeans(tables.ctx, table, {.clusters = clusters, .init = init});
    });
  };
  // Labels and two bounds while it iterates; labels of two runs and of the last iteration; keys, labels and ids where
  // empty clusters are filled.
  constexpr double kIterations = 4 + 4 + 4;
  constexpr double kLabels = 3 * 4;
  constexpr double kFilling = 8 + 4 + 8;
  EXPECT_GE(bytes(KMeansInit::first_k, 8), kIterations + kLabels + kFilling);
  // Drawing: least keys and winners, and of each of 2 + ln k trials keys, a bit a row, and a sum for 32.
  // Where draws are screened, a byte for each column, four at a time, and four numbers.
  const bool is_screened = cpu::SeedingScreen::serves(cpu::simd_kernels(tables.ctx.isa()), tables.small);
  const double screen = is_screened ? static_cast<double>((tables.small.cols() + 3) / 4 * 4) + 16 : 0;
  EXPECT_GE(bytes(KMeansInit::plus_plus, 8), kIterations + kLabels + kFilling + 8 + 4 + 4 * (8 + 12.0 / 32) + screen);
  const auto of_clusters = [&](std::int64_t clusters) {
    return static_cast<double>(
        plan_kmeans(tables.ctx, tables.small, {.clusters = clusters, .init = KMeansInit::first_k}).memory);
  };
  const auto of_backend = [&](std::int64_t clusters) {
    return static_cast<double>(kernels::backend_of(tables.ctx)
                                   .kmeans()
                                   .plan(tables.ctx, {tables.small, {}, clusters}, kernels::kNoSeeding)
                                   .bytes.host);
  };
  // Centers: six times by the job, four times, padded to eight columns, by the backend; and two slices of sums, twice.
  const double by_backend = of_backend(2000) - of_backend(1000);
  EXPECT_GE(by_backend, 1000.0 * (4 * 8 * 8 + 2 * 2 * 8 * 8));
  EXPECT_GE(of_clusters(2000) - of_clusters(1000), by_backend + 1000.0 * (6 * 2 * 8));
}

TEST(MemoryPlan, StepsOfClusters) {
  const Tables tables;
  std::vector<double> weights(static_cast<std::size_t>(2 * kRows), 2);
  const auto bytes = [&](bool weighted) {
    return bytes_per_row(tables, [&](const TableView& table) {
      KMeansStepsOptions options{.clusters = 8};
      if (weighted) options.weights = std::span(weights).first(static_cast<std::size_t>(table.rows()));
      return KMeansSteps(tables.ctx, table, options).plan();
    });
  };
  // Labels and two bounds; labels and keys that are returned; weights.
  EXPECT_GE(bytes(false), 4 + 4 + 4 + 12);
  EXPECT_GE(bytes(true), 4 + 4 + 4 + 12 + 8);
  // Copies of rows with a weight and without one, 8 bytes each, their numbers and weights.
  weights[0] = 0;
  EXPECT_GE(bytes(true), 4 + 4 + 4 + 12 + 8 + 8 + 16);
  const auto of_clusters = [&](std::int64_t clusters) {
    return static_cast<double>(KMeansSteps(tables.ctx, tables.small, {.clusters = clusters}).plan().memory -
                               kernels::backend_of(tables.ctx)
                                   .kmeans()
                                   .plan(tables.ctx, {tables.small, {}, clusters}, kernels::kNoSeeding)
                                   .bytes.host);
  };
  // Four times the centers, and sizes.
  EXPECT_GE(of_clusters(2000) - of_clusters(1000), 1000.0 * (4 * 2 * 8 + 8));
}

// Beyond what one process holds: centers, and the sums of all ranks, with their weights.
TEST(MemoryPlan, ClustersOfShards) {
  const Tables tables;
  const TableView table = tables.small.slice(0, 500);
  const std::vector<double> weights(500, 2);
  Communicator self;
  for (const bool weighted : {false, true}) {
    const auto more = [&](std::int64_t clusters) {
      KMeansOptions options{.clusters = clusters, .init = KMeansInit::first_k, .max_iterations = 1};
      if (weighted) options.weights = weights;
      return static_cast<double>(kmeans(tables.ctx, self, table, 0, options).plan.memory -
                                 plan_kmeans(tables.ctx, table, options).memory);
    };
    EXPECT_GE(more(200) - more(100), 100.0 * 8 * (2 + 1 + 3 * 2 + (weighted ? 5 : 0)));
  }
}

// Only the values tell how many slices their sums take: the 882 bits of a column are 30 of 30 bits, four of which
// are planned before. The job and its thread have them, and a rank those of all.
TEST(MemoryPlan, SumsOfValuesFarApart) {
  constexpr std::int64_t n = 300;
  constexpr std::int64_t d = 8;
  constexpr std::int64_t k = 100;
  constexpr std::uint64_t kMore = (30 - 4) * k * d * 8;
  std::vector<double> values;
  for (std::int64_t i = 0; i < n * d; ++i) {
    values.push_back(std::ldexp(1.0, static_cast<int>(i / d * 881 / (n - 1)) - 441));
  }
  const TableView table(values.data(), n, d);
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{1} << 40});
  const KMeansOptions options{.clusters = k, .init = KMeansInit::first_k, .max_iterations = 1};
  // The plan that is reported is what suffices, and a byte less is refused.
  const auto bytes = [&](const auto& run) {
    const std::uint64_t needed = run(ctx).memory;
    EXPECT_EQ(run(ctx.with_memory_limit(needed)).memory, needed);
    const std::string sentence = refusal(ErrorCode::over_memory, [&] { run(ctx.with_memory_limit(needed - 1)); });
    EXPECT_NE(sentence.find("(" + std::to_string(needed) + " bytes)"), std::string::npos) << sentence;
    return needed;
  };
  const std::uint64_t planned = plan_kmeans(ctx, table, options).memory;
  EXPECT_GE(bytes([&](const Context& own) { return kmeans(own, table, options).plan; }), planned + 2 * kMore);
  Communicator self;
  EXPECT_GE(bytes([&](const Context& own) { return kmeans(own, self, table, 0, options).plan; }), planned + 3 * kMore);
  const std::vector<double> alike(values.size(), 1);
  const KMeansStepsOptions steps{.clusters = k};
  EXPECT_GE(bytes([&](const Context& own) { return KMeansSteps(own, table, steps).plan(); }),
            KMeansSteps(ctx, TableView(alike.data(), n, d), steps).plan().memory + 2 * kMore);
}

// What a rank knows of the rows of all: k-distances and densities, and its own.
TEST(MemoryPlan, ScoresOfShards) {
  const Tables tables;
  const auto plan = [&](std::int64_t rows) {
    NeighborGraph graph;
    graph.rows = graph.table_rows = rows;
    graph.k = 1;
    for (std::int64_t i = 0; i < rows; ++i) graph.ids.push_back(i == 0 ? 1 : 0);
    graph.distances.assign(graph.ids.size(), 1);
    Communicator self;
    return static_cast<double>(lof(tables.ctx, self, graph, 0, {.k = 1}).plan.memory);
  };
  EXPECT_GE(plan(2000) - plan(1000), 1000.0 * (8 + 16 + 16));
}

}  // namespace
}  // namespace vicinal
