// spectral_cocluster (contract clause 16): singular values against the reference's, planted clusters found, the same
// labels for every thread count and device, and what is refused.
#include "reference/spectral.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "cocluster_check.hpp"
#include "contexts.hpp"
#include "vicinal/spectral_cocluster.hpp"

namespace vicinal::contract {
namespace {

/// Members of cluster i % clusters on both sides; weights of about 1 within a cluster, and little across.
Graph planted(std::uint64_t seed, std::int64_t n_a, std::int64_t n_b, std::int64_t clusters, double across) {
  Draws draws(seed);
  Graph graph{n_a, n_b, {}, {}, {}};
  for (std::int64_t i = 0; i < n_a; ++i) {
    for (std::int64_t j = 0; j < n_b; ++j) {
      const double weight = static_cast<double>(1 + draws.below(1000)) / 1000;
      const bool same = i % clusters == j % clusters;
      if (!same && across == 0) continue;
      graph.add(i, j);
      graph.weights.push_back(same ? 0.5 + weight : across * weight);
    }
  }
  return graph;
}

/// That members have one label where they were planted together, and different ones where not.
void expect_planted(const SpectralCocluster& found, std::int64_t clusters, const std::string& what) {
  std::vector<std::int32_t> label(found.labels_a.begin(), found.labels_a.begin() + clusters);
  std::vector<std::int32_t> different = label;
  std::sort(different.begin(), different.end());
  EXPECT_EQ(std::unique(different.begin(), different.end()), different.end()) << what;
  for (const auto* const side : {&found.labels_a, &found.labels_b}) {
    for (std::size_t i = 0; i < side->size(); ++i) {
      EXPECT_EQ((*side)[i], label[i % static_cast<std::size_t>(clusters)]) << what << ", member " << i;
    }
  }
}

TEST(SpectralCocluster, PlantedClusters) {
  const std::vector<Context> all = contexts(1);
  std::uint64_t seed = 0;
  for (const std::int64_t clusters : {2, 3, 4, 5, 7}) {
    for (const auto& [n_a, n_b] : {std::pair(35, 50), std::pair(60, 21)}) {
      const Graph graph = planted(++seed, n_a, n_b, clusters, 0.1);
      const std::string what = std::to_string(clusters) + " clusters of " + std::to_string(n_a);
      const SpectralCocluster first = spectral_cocluster(all[0], graph.edges(), {.clusters = clusters, .seed = seed});
      expect_planted(first, clusters, what);
      const std::vector<double> exact = reference::singular_values(graph.edges());
      ASSERT_EQ(first.singular_values.size(), static_cast<std::size_t>(1 + std::ceil(std::log2(clusters)))) << what;
      for (std::size_t i = 0; i < first.singular_values.size(); ++i) {
        // The squares are off by no more than the residual (Weyl), here 1e-10; the roots, far from 0, by about as much.
        EXPECT_TRUE(!(std::fabs(first.singular_values[i] - exact[i]) > 1e-8)) << what << ", value " << i;
      }
      EXPECT_LE(first.residual, 1e-10);
      for (std::size_t c = 1; c < all.size(); ++c) {
        const SpectralCocluster other = spectral_cocluster(all[c], graph.edges(), {.clusters = clusters, .seed = seed});
        EXPECT_EQ(other.labels_a, first.labels_a) << what;
        EXPECT_EQ(other.labels_b, first.labels_b) << what;
        EXPECT_TRUE(same_bits(other.singular_values, first.singular_values)) << what;
      }
    }
  }
}

// Nothing joins the clusters: the singular value 1 comes once for each, and any basis of its vectors will do.
TEST(SpectralCocluster, ClustersApart) {
  for (const std::int64_t clusters : {2, 4}) {
    const Graph graph = planted(9, 40, 44, clusters, 0);
    const SpectralCocluster found =
        spectral_cocluster(Context::cpu({.threads = 2}), graph.edges(), {.clusters = clusters, .seed = 3});
    expect_planted(found, clusters, std::to_string(clusters));
    for (const double value : found.singular_values) EXPECT_TRUE(!(std::fabs(value - 1) > 1e-9));
  }
}

TEST(SpectralCocluster, MembersWithoutWeightAndSmallSides) {
  const Context ctx = Context::cpu({.threads = 2});
  Graph graph = planted(4, 20, 20, 2, 0.05);
  graph.n_a = 23;
  graph.n_b = 21;
  const SpectralCocluster found = spectral_cocluster(ctx, graph.edges(), {.clusters = 2});
  EXPECT_EQ(found.labels_a.size(), 23U);
  EXPECT_EQ(found.labels_b.size(), 21U);
  EXPECT_EQ(found.labels_a[20], found.labels_a[22]);
  const SpectralCocluster least =
      spectral_cocluster(ctx, Graph{2, 2, {0, 1, 0}, {0, 1, 1}, {}}.edges(), {.clusters = 2});
  EXPECT_EQ(least.singular_values.size(), 2U);
}

TEST(SpectralCoclusterRefusal, OptionsIdsAndWeights) {
  const Context ctx = Context::cpu({.threads = 1});
  const auto ask = [&](const Graph& graph, const SpectralOptions& options) {
    (void)spectral_cocluster(ctx, graph.edges(), options);
  };
  constexpr double kLargest = std::numeric_limits<double>::max();
  expect_refused(ErrorCode::invalid_argument, {"clusters: is 1"}, [&] { ask({3, 3, {0}, {0}, {}}, {.clusters = 1}); });
  expect_refused(ErrorCode::invalid_argument, {"and 2"}, [&] { ask({2, 3, {0}, {0}, {}}, {.clusters = 3}); });
  expect_refused(ErrorCode::invalid_argument, {"runs"}, [&] { ask({3, 3, {0}, {0}, {}}, {.clusters = 2, .runs = 0}); });
  expect_refused(ErrorCode::bad_data, {"a: edge 0"}, [&] { ask({3, 3, {5}, {0}, {}}, {.clusters = 2}); });
  expect_refused(ErrorCode::bad_data, {"weights: edge 0"}, [&] { ask({3, 3, {0}, {0}, {-1}}, {.clusters = 2}); });
  expect_refused(ErrorCode::bad_data, {"add up to 0"}, [&] { ask({3, 3, {0}, {0}, {0}}, {.clusters = 2}); });
  expect_refused(ErrorCode::bad_data, {"add up to 0"}, [&] { ask({3, 3, {}, {}, {}}, {.clusters = 2}); });
  expect_refused(ErrorCode::bad_data, {"overflow"}, [&] {
    ask({3, 3, {0, 0}, {0, 1}, {kLargest, kLargest}}, {.clusters = 2});
  });
}

}  // namespace
}  // namespace vicinal::contract
