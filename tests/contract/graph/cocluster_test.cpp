// cocluster against the reference (contract clause 16): labels, groups and the ones after each product, of the paper's
// example, random graphs, paths, stars and blocks, by every method and on every context.
#include "vicinal/cocluster.hpp"

#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "cocluster_check.hpp"
#include "contexts.hpp"

namespace vicinal::contract {
namespace {

/// By every method: the one named after `turn` on every context, the others on one.
void expect_as_reference(const std::vector<Context>& contexts, const Graph& graph, std::uint64_t turn,
                         bool products = true) {
  const Cocluster expected = reference::cocluster(graph.edges());
  const std::string what = "graph " + std::to_string(turn);
  for (const Context& ctx : contexts) {
    expect_same_groups(cocluster(ctx, graph.edges()), expected, what + " on " + ctx.device());
  }
  if (!products) return;
  std::vector<std::int64_t> ones;
  if (graph.n_a + graph.n_b > 0) ones = reference::closure_nonzeros(graph.edges());
  for (std::size_t i = 0; i < std::size(kProducts); ++i) {
    for (std::size_t c = 0; c < contexts.size(); ++c) {
      if (i != turn % std::size(kProducts) && c != turn % contexts.size()) continue;
      const std::string which = what + " by " + std::string(name_of(kProducts[i])) + " on " + contexts[c].device();
      const Cocluster got = cocluster(contexts[c], graph.edges(), {.method = kProducts[i]});
      expect_same_groups(got, expected, which);
      EXPECT_EQ(got.nonzeros, ones) << which;
    }
  }
}

// Zhang et al. 2013: A1-{B2, B3}, A2-B3, A3-B3; {B1} is matched by nothing.
TEST(Cocluster, PapersExample) {
  const Graph graph{3, 3, {0, 0, 1, 2}, {1, 2, 2, 2}, {}};
  for (const Context& ctx : contexts(0)) {
    for (const CoclusterMethod method : kProducts) {
      const Cocluster got = cocluster(ctx, graph.edges(), {.method = method});
      EXPECT_EQ(got.labels_a, (std::vector<std::int64_t>{0, 0, 0}));
      EXPECT_EQ(got.labels_b, (std::vector<std::int64_t>{3, 0, 0}));
      ASSERT_EQ(got.groups.size(), 2U);
      EXPECT_EQ(name_of(got.groups[0].relation()), "n:m");
      EXPECT_EQ(name_of(got.groups[1].relation()), "0:1");
      // 14 ones; then all within two edges, within four, and none more: the paper's three products.
      EXPECT_EQ(got.nonzeros, (std::vector<std::int64_t>{22, 26, 26}));
    }
  }
  expect_as_reference(contexts(0), graph, 0);
}

TEST(Cocluster, ThousandRandomGraphs) {
  const std::vector<Context> all = contexts(1);
  for (std::uint64_t seed = 0; seed < 1000; seed += kSparse) {
    expect_as_reference(all, random_graph(seed, seed % 10 == 0 ? 70 : 12), seed);
    if (HasFailure()) return;
  }
}

TEST(Cocluster, PathsStarsAndBlocks) {
  const std::vector<Context> all = contexts(2);
  std::uint64_t turn = 0;
  for (const std::int64_t members : {1, 2, 3, 63, 64, 65, 128, 257}) {
    if (kSparse > 1 && members > 128) continue;  // cubes of it, by three methods
    expect_as_reference(all, random_path(turn, members), turn);
    ++turn;
  }
  Graph star{1, 200, {}, {}, {}};
  Graph block{40, 70, {}, {}, {}};
  Graph pairs{90, 90, {}, {}, {}};
  for (std::int64_t j = 0; j < 200; ++j) star.add(0, 199 - j);
  for (std::int64_t e = 0; e < 40 * 70; ++e) block.add(e % 40, e / 40);
  for (std::int64_t i = 0; i < 90; ++i) pairs.add(i, 89 - i);
  for (const Graph* graph : {&star, &block, &pairs}) expect_as_reference(all, *graph, turn++);
}

// What threads do to each other's trees: everything is one component, or none is, and the tasks are many.
TEST(Cocluster, LargeGraphs) {
  const std::vector<Context> all = contexts(3);
  const std::int64_t members = 400000 / kSparse;
  expect_as_reference(all, random_path(5, members), 5, false);
  Graph graph{members, members / 2, {}, {}, {}};
  Draws draws(6);
  for (std::int64_t e = 0; e < members; ++e) graph.add(draws.below(graph.n_a), draws.below(graph.n_b));
  expect_as_reference(all, graph, 6, false);
  graph = {members, members, {}, {}, {}};
  for (std::int64_t i = 0; i < members; ++i) {
    for (const std::int64_t j : {i - draws.below(3), i}) graph.add(i, std::max<std::int64_t>(0, j));
  }
  expect_as_reference(all, graph, 7, false);
}

TEST(Cocluster, IdsOf32BitsWeightsAndMatricesAreTheSame) {
  Graph graph = random_graph(100, 70);
  const Cocluster expected = reference::cocluster(graph.edges());
  const std::vector<std::int32_t> a(graph.a.begin(), graph.a.end());
  const std::vector<std::int32_t> b(graph.b.begin(), graph.b.end());
  std::vector<float> relation(static_cast<std::size_t>(graph.n_a * graph.n_b));
  for (std::size_t e = 0; e < a.size(); ++e) relation[static_cast<std::size_t>(a[e] * graph.n_b + b[e])] = 0.5F;
  graph.weights.assign(a.size(), 0);
  for (const Context& ctx : contexts(4)) {
    expect_same_groups(cocluster(ctx, BipartiteEdges(graph.n_a, graph.n_b, a, b)), expected, "32 bits");
    expect_same_groups(cocluster(ctx, graph.edges()), expected, "weights of 0");
    expect_same_groups(cocluster(ctx, TableView(relation.data(), graph.n_a, graph.n_b)), expected, "matrix");
    for (const CoclusterMethod method : kProducts) {
      expect_same_groups(cocluster(ctx, BipartiteEdges(graph.n_a, graph.n_b, a, b), {.method = method}), expected,
                         "32 bits by products");
    }
  }
}

TEST(Cocluster, GroupsByLabel) {
  const Graph graph{3, 2, {1, 2}, {0, 0}, {}};
  const Cocluster found = cocluster(Context::cpu({.threads = 1}), graph.edges());
  EXPECT_EQ(found.group_of(0), 0);
  EXPECT_EQ(found.group_of(1), 1);
  EXPECT_EQ(found.group_of(4), 2);
  EXPECT_EQ(found.groups[1].relation(), Relation::many_to_one);
  EXPECT_EQ(found.groups[0].relation(), Relation::one_to_none);
  EXPECT_EQ((CoclusterGroup{0, 1, 1}).relation(), Relation::one_to_one);
  EXPECT_EQ((CoclusterGroup{0, 1, 2}).relation(), Relation::one_to_many);
  EXPECT_THROW((void)found.group_of(2), Error);
}

TEST(Cocluster, NothingAtAll) {
  for (const Context& ctx : contexts(5)) {
    const Cocluster none = cocluster(ctx, BipartiteEdges());
    EXPECT_TRUE(none.groups.empty());
    const Cocluster lonely = cocluster(ctx, Graph{0, 3, {}, {}, {}}.edges());
    EXPECT_EQ(lonely.labels_b, (std::vector<std::int64_t>{0, 1, 2}));
    EXPECT_EQ(lonely.groups.size(), 3U);
  }
}

TEST(CoclusterRefusal, IdsOutsideTheirSide) {
  const std::vector<CoclusterMethod> methods = {CoclusterMethod::components, CoclusterMethod::closure,
                                                CoclusterMethod::product_serial, CoclusterMethod::product_global,
                                                CoclusterMethod::product_tiled};
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  for (const Context& ctx : contexts(6)) {
    for (const CoclusterMethod method : methods) {
      const auto ask = [&](const Graph& graph) { (void)cocluster(ctx, graph.edges(), {.method = method}); };
      expect_refused(ErrorCode::bad_data, {"a: edge 1", "member 3", "0 to 2"}, [&] {
        ask({3, 3, {0, 3, 9}, {0, 0, 0}, {}});
      });
      expect_refused(ErrorCode::bad_data, {"b: edge 2", "member -1"}, [&] { ask({3, 3, {0, 2, 1}, {0, 0, -1}, {}}); });
      expect_refused(ErrorCode::bad_data, {"a: edge 0", std::to_string(kFar)}, [&] { ask({3, 3, {kFar}, {0}, {}}); });
      expect_refused(ErrorCode::bad_data, {"b: edge 0"}, [&] { ask({3, 3, {0}, {-kFar - 1}, {}}); });
      expect_refused(ErrorCode::bad_data, {"b: edge 0", "there are none"}, [&] { ask({3, 0, {0}, {0}, {}}); });
      expect_refused(ErrorCode::bad_data, {"a: edge 0", "there are none"}, [&] { ask({0, 0, {0}, {0}, {}}); });
    }
    // The first of several, whichever thread finds one first.
    Graph graph{300000, 300000, std::vector<std::int64_t>(300000, 1), std::vector<std::int64_t>(300000, 2), {}};
    for (const std::size_t e : {std::size_t{299999}, std::size_t{150000}, std::size_t{70001}}) graph.b[e] = -7;
    expect_refused(ErrorCode::bad_data, {"b: edge 70001 ", "-7"}, [&] { (void)cocluster(ctx, graph.edges()); });
    const std::vector<std::int32_t> narrow = {0, -5};
    expect_refused(ErrorCode::bad_data, {"a: edge 1", "-5"},
                   [&] { (void)cocluster(ctx, BipartiteEdges(3, 3, narrow, narrow)); });
  }
}

TEST(CoclusterRefusal, WeightsAndLengths) {
  const Context ctx = Context::cpu({.threads = 2});
  const auto ask = [&](const Graph& graph) { (void)cocluster(ctx, graph.edges()); };
  for (const double weight :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    expect_refused(ErrorCode::bad_data, {"weights: edge 1"}, [&] { ask({3, 3, {0, 1}, {0, 1}, {1, weight}}); });
    const std::vector<double> relation = {1, 0, 0, 0, weight, 0};
    expect_refused(ErrorCode::bad_data, {"relation: row 1, column 1"},
                   [&] { (void)cocluster(ctx, TableView(relation.data(), 2, 3)); });
  }
  expect_refused(ErrorCode::invalid_argument, {"weights", "1", "2"}, [&] { ask({3, 3, {0, 1}, {0, 1}, {1}}); });
  expect_refused(ErrorCode::invalid_argument, {"b: has 1"}, [&] { ask({3, 3, {0, 1}, {0}, {}}); });
  expect_refused(ErrorCode::invalid_argument, {"n_a: is -1"}, [&] { ask({-1, 3, {}, {}, {}}); });
  expect_refused(ErrorCode::invalid_argument, {"n_b"}, [&] {
    ask({3, std::numeric_limits<std::int64_t>::max(), {}, {}, {}});
  });
  expect_refused(ErrorCode::invalid_argument, {"relation", "no rows"}, [&] { (void)cocluster(ctx, TableView()); });
  expect_refused(ErrorCode::invalid_argument, {"magic", "components", "product_tiled"},
                 [] { (void)cocluster_method_from("magic"); });
  for (const CoclusterMethod method : kProducts) EXPECT_EQ(cocluster_method_from(name_of(method)), method);
}

TEST(CoclusterRefusal, OverMemoryBeforeItStarts) {
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{64} << 20});
  const Graph graph{50000, 50000, {0}, {0}, {}};
  EXPECT_NO_THROW((void)cocluster(ctx, graph.edges()));
  // Two matrices of 100,000 rows of 12,544 bytes, nine bytes more for each row, and labels.
  expect_refused(ErrorCode::over_memory, {"closure", "2510500000"},
                 [&] { (void)cocluster(ctx, graph.edges(), {.method = CoclusterMethod::closure}); });
  expect_refused(ErrorCode::over_memory, {"product_tiled", "80000800000"},
                 [&] { (void)cocluster(ctx, graph.edges(), {.method = CoclusterMethod::product_tiled}); });
  const Graph huge{std::int64_t{1} << 40, 5, {0}, {0}, {}};
  for (const CoclusterMethod method :
       {CoclusterMethod::components, CoclusterMethod::closure, CoclusterMethod::product_global}) {
    expect_refused(ErrorCode::over_memory, {"cocluster"},
                   [&] { (void)cocluster(ctx, huge.edges(), {.method = method}); });
  }
}

TEST(CoclusterCancel, Stops) {
  for (const CoclusterMethod method :
       {CoclusterMethod::components, CoclusterMethod::closure, CoclusterMethod::product_serial}) {
    const CancelToken token;
    token.cancel();
    const Context ctx = Context::cpu({.threads = 2, .cancel = token});
    const Graph graph = random_path(1, 200);
    expect_refused(ErrorCode::cancelled, {"cancelled"},
                   [&] { (void)cocluster(ctx, graph.edges(), {.method = method}); });
  }
}

}  // namespace
}  // namespace vicinal::contract
