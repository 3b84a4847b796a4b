// split_groups (contract clause 16): parts are connected, within the limits and the same for every thread count; the
// edges listed are those that join different parts; planted groups are found; what is small stays as it is.
#include <cmath>
#include <string>
#include <vector>

#include "check.hpp"
#include "cocluster_check.hpp"
#include "contexts.hpp"

namespace vicinal::contract {
namespace {

/// Steps between all members, by every member in between; a large number where none leads there.
std::int64_t longest_way(const Graph& graph, const Cocluster& groups) {
  const std::int64_t n = graph.n_a + graph.n_b;
  constexpr std::int64_t kFar = 1 << 20;
  std::vector<std::int64_t> steps(static_cast<std::size_t>(n * n), kFar);
  for (std::int64_t v = 0; v < n; ++v) steps[static_cast<std::size_t>(v * n + v)] = 0;
  for (std::size_t e = 0; e < graph.a.size(); ++e) {
    const std::int64_t b = graph.n_a + graph.b[e];
    steps[static_cast<std::size_t>(graph.a[e] * n + b)] = steps[static_cast<std::size_t>(b * n + graph.a[e])] = 1;
  }
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        std::int64_t& way = steps[static_cast<std::size_t>(i * n + j)];
        way = std::min(way, steps[static_cast<std::size_t>(i * n + k)] + steps[static_cast<std::size_t>(k * n + j)]);
      }
    }
  }
  std::vector<std::int64_t> labels = groups.labels_a;
  labels.insert(labels.end(), groups.labels_b.begin(), groups.labels_b.end());
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (labels[static_cast<std::size_t>(i)] != labels[static_cast<std::size_t>(j)]) continue;
      longest = std::max(longest, steps[static_cast<std::size_t>(i * n + j)]);
    }
  }
  return longest;
}

Graph without(const Graph& graph, const std::vector<std::int64_t>& cut) {
  Graph rest{graph.n_a, graph.n_b, {}, {}, {}};
  for (std::int64_t e = 0; e < std::ssize(graph.a); ++e) {
    if (std::binary_search(cut.begin(), cut.end(), e)) continue;
    rest.add(graph.a[static_cast<std::size_t>(e)], graph.b[static_cast<std::size_t>(e)]);
  }
  return rest;
}

void expect_sound(const Graph& graph, const Cocluster& whole, const CoclusterSplit& split, const SplitOptions& options,
                  const std::string& what) {
  // Parts are what is joined without the edges that were cut, and those join different ones: no more can be said.
  const Graph rest = without(graph, split.cut_edges);
  expect_same_groups(split.parts, reference::cocluster(rest.edges()), what);
  const BipartiteEdges edges = graph.edges();
  for (const std::int64_t e : split.cut_edges) {
    EXPECT_NE(split.parts.labels_a[static_cast<std::size_t>(edges.a(e))],
              split.parts.labels_b[static_cast<std::size_t>(edges.b(e))])
        << what << ", edge " << e;
  }
  std::int64_t more = 0;
  for (const CoclusterGroup& group : whole.groups) {
    const std::int64_t size = group.count_a + group.count_b;
    std::int64_t kept = 0;
    for (const CoclusterGroup& part : split.parts.groups) {
      if (part.label == group.label && part.count_a == group.count_a && part.count_b == group.count_b) kept = 1;
    }
    more += 1 - kept;
    if (options.max_steps == 0 && size <= options.max_members) {
      EXPECT_EQ(kept, 1) << what;
    }
  }
  EXPECT_EQ(split.split_groups, more) << what;
  for (const CoclusterGroup& part : split.parts.groups) {
    if (options.max_members > 0) {
      EXPECT_LE(part.count_a + part.count_b, options.max_members) << what;
    }
  }
  if (options.max_steps > 0) {
    EXPECT_LE(longest_way(rest, split.parts), options.max_steps) << what;
  }
}

void expect_same_split(const CoclusterSplit& got, const CoclusterSplit& expected, const std::string& what) {
  expect_same_groups(got.parts, expected.parts, what);
  EXPECT_EQ(got.cut_edges, expected.cut_edges) << what;
  EXPECT_EQ(got.split_groups, expected.split_groups) << what;
}

TEST(CoclusterSplit, RandomGraphs) {
  const std::vector<Context> all = contexts(1);
  for (std::uint64_t seed = 0; seed < 120; seed += kSparse) {
    Graph graph = random_graph(seed + 5000, 24);
    Draws draws(seed);
    if (seed % 3 != 0) {
      for (std::size_t e = 0; e < graph.a.size(); ++e) {
        graph.weights.push_back(static_cast<double>(seed % 3 == 1 ? draws.below(4) : draws.below(1000)) / 8);
      }
    }
    const Cocluster whole = reference::cocluster(graph.edges());
    for (const SplitOptions& options :
         {SplitOptions{5, 0}, SplitOptions{1, 0}, SplitOptions{0, 2}, SplitOptions{12, 3}}) {
      const std::string what = "graph " + std::to_string(seed) + ", at most " + std::to_string(options.max_members) +
                               " members and " + std::to_string(options.max_steps) + " steps";
      const CoclusterSplit first = split_groups(all[0], graph.edges(), whole, options);
      expect_sound(graph, whole, first, options, what);
      for (std::size_t c = 1; c < all.size(); ++c) {
        expect_same_split(split_groups(all[c], graph.edges(), whole, options), first, what);
      }
    }
    if (HasFailure()) return;
  }
}

// Blocks whose members all overlap by much, in a chain of slivers: the slivers are what is cut.
TEST(CoclusterSplit, SliversBetweenBlocks) {
  constexpr std::int64_t kBlocks = 12;
  constexpr std::int64_t kSide = 4;
  Graph graph{kBlocks * kSide, kBlocks * kSide, {}, {}, {}};
  std::vector<std::int64_t> slivers;
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    for (std::int64_t i = 0; i < kSide * kSide; ++i) {
      graph.add(block * kSide + i % kSide, block * kSide + i / kSide);
      graph.weights.push_back(1);
    }
    if (block == 0) continue;
    slivers.push_back(std::ssize(graph.a));
    graph.add(block * kSide, block * kSide - 1);
    graph.weights.push_back(0.001);
  }
  const Cocluster whole = reference::cocluster(graph.edges());
  ASSERT_EQ(whole.groups.size(), 1U);
  for (const Context& ctx : contexts(2)) {
    for (const SplitOptions& options : {SplitOptions{2 * kSide, 0}, SplitOptions{0, 2}}) {
      const CoclusterSplit split = split_groups(ctx, graph.edges(), whole, options);
      EXPECT_EQ(split.cut_edges, slivers);
      EXPECT_EQ(split.parts.groups.size(), std::size_t{kBlocks});
      EXPECT_EQ(split.split_groups, 1);
    }
    const CoclusterSplit kept = split_groups(ctx, graph.edges(), whole, {});
    EXPECT_TRUE(kept.cut_edges.empty());
    expect_same_groups(kept.parts, whole, "no limits");
  }
}

// Weights are looked at relative to the largest, so that their unit does not show and no sum overflows.
TEST(CoclusterSplit, TheUnitOfWeightsDoesNotShow) {
  Graph graph = random_path(77, 60);
  Draws draws(8);
  for (std::size_t e = 0; e < graph.a.size(); ++e)
    graph.weights.push_back(static_cast<double>(draws.below(1 << 20)) + 1);
  const Cocluster whole = reference::cocluster(graph.edges());
  const Context ctx = Context::cpu({.threads = 2});
  const SplitOptions options{6, 0};
  const CoclusterSplit expected = split_groups(ctx, graph.edges(), whole, options);
  EXPECT_GT(expected.cut_edges.size(), 0U);
  for (const int exponent : {1003, -1040}) {
    Graph scaled = graph;
    for (double& weight : scaled.weights) weight = std::ldexp(weight, exponent);
    expect_same_split(split_groups(ctx, scaled.edges(), whole, options), expected, std::to_string(exponent));
  }
}

TEST(CoclusterSplitRefusal, LimitsAndLabelsOfOthers) {
  const Context ctx = Context::cpu({.threads = 1});
  const Graph graph{2, 2, {0, 1}, {0, 1}, {}};
  const Graph other{2, 2, {0, 1}, {1, 1}, {}};
  const Cocluster whole = cocluster(ctx, graph.edges());
  const auto ask = [&](const Graph& asked, const Cocluster& found, const SplitOptions& options) {
    (void)split_groups(ctx, asked.edges(), found, options);
  };
  expect_refused(ErrorCode::invalid_argument, {"max_members: is -1"}, [&] { ask(graph, whole, {-1, 0}); });
  expect_refused(ErrorCode::invalid_argument, {"max_steps: is -2"}, [&] { ask(graph, whole, {0, -2}); });
  expect_refused(ErrorCode::invalid_argument, {"edge 0 joins two groups"}, [&] { ask(other, whole, {1, 0}); });
  expect_refused(ErrorCode::invalid_argument, {"found: has labels of 0"}, [&] { ask(graph, {}, {1, 0}); });
  expect_refused(ErrorCode::bad_data, {"a: edge 0"}, [&] { ask({2, 2, {7}, {0}, {}}, whole, {1, 0}); });
  expect_refused(ErrorCode::bad_data, {"weights: edge 0"}, [&] { ask({2, 2, {0}, {0}, {-1}}, whole, {1, 0}); });
  const CancelToken token;
  const Context stopped = Context::cpu({.threads = 1, .cancel = token});
  token.cancel();
  const Graph path = random_path(1, 100);
  const Cocluster one = reference::cocluster(path.edges());
  expect_refused(ErrorCode::cancelled, {"cancelled"}, [&] { (void)split_groups(stopped, path.edges(), one, {3, 0}); });
}

}  // namespace
}  // namespace vicinal::contract
