// See growth_systems.hpp. Each job holds its data, and the last answer for its check.
#include "command/growth_systems.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include "command/data.hpp"
#include "core/philox.hpp"
#include "reference/density.hpp"
#include "reference/kmeans.hpp"
#include "reference/lle.hpp"
#include "reference/lof.hpp"
#include "reference/polygons.hpp"
#include "vicinal/classify.hpp"
#include "vicinal/dbscan.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/hdbscan.hpp"
#include "vicinal/match.hpp"
#include "vicinal/optics.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kSample = 32;  // queries, or features, that are checked
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kIterations = 5;
constexpr std::int64_t kLeastCluster = 25;
// As in papers_check.cpp: a row of a variant's matrix comes from a local system of condition k / reg at most.
constexpr double kStepsOfVariants = 64;
// The area of an intersection is a sum of at most some hundred terms, each of at most the square of the coordinates of
// a feature from its own corner, with a few roundings.
constexpr double kAreaTolerance = 1e-12;
constexpr double kFeatureSpacing = 20;  // between features of a map

Verdict verdict_of(bool right) {
  return {1, right ? 0 : 1};
}

std::string how_of(const Plan& plan) {
  return std::string(name_of(plan.method)) + (plan.screens.empty() ? "" : ", " + plan.screens);
}

/// Counters of a search that are not 0.
std::map<std::string, double> counts_of(const SearchStats& stats) {
  std::map<std::string, double> counts = {{"pairs ranked", static_cast<double>(stats.survivors)}};
  if (stats.escalated > 0) counts["finer screens"] = static_cast<double>(stats.escalated);
  return counts;
}

std::map<std::string, double> parts_of(const SearchStats& stats) {
  return {{"preparation", stats.prepare_seconds}, {"search", stats.search_seconds}};
}

struct GrowthRows {
  std::vector<double> table;
  std::vector<double> queries;
  GrowthSizes sizes;

  [[nodiscard]] TableView view() const { return {table.data(), sizes.n, sizes.d}; }
  [[nodiscard]] TableView asked() const { return {queries.data(), sizes.m, sizes.d}; }
};

std::shared_ptr<GrowthRows> rows_of(const Context& ctx, const std::string& kind, const GrowthSizes& sizes) {
  auto made = std::make_shared<GrowthRows>();
  const BenchData data{.kind = kind, .rows = sizes.n, .queries = sizes.m, .cols = sizes.d, .seed = 1};
  made->table = make_bench_table(ctx, data);
  if (sizes.m > 0) made->queries = make_bench_queries(ctx, data);
  made->sizes = sizes;
  return made;
}

// ---- neighbors
// -------------------------------------------------------------------------------------------------------

GrowthJob classification(const Context& ctx, const GrowthSizes& sizes, const std::string& kind, Method method) {
  const auto rows = rows_of(ctx, kind, sizes);
  std::vector<std::int64_t> classes;
  classes.reserve(static_cast<std::size_t>(sizes.n));
  for (std::int64_t i = 0; i < sizes.n; ++i) classes.push_back(i % kClasses);
  const auto labels = std::make_shared<const Labels>(encode_labels(classes));
  const auto answer = std::make_shared<Classification>();
  return {[=] {
            *answer = classify(ctx, rows->view(), rows->asked(), std::span(labels.get(), 1),
                               {.k = sizes.k, .method = method});
            return GrowthCall{counts_of(answer->stats), parts_of(answer->stats), how_of(answer->plan), {}};
          },
          [=] {
            const TableView queries = rows->asked();
            return ListCheck(rows->view(), &queries, kSample).of_votes(sizes.k, *labels, answer->votes[0].codes);
          },
          [=] { answer->votes[0].codes[0] ^= 1; }};
}

GrowthJob make_fused(const Context& ctx, const GrowthSizes& sizes) {
  return classification(ctx, sizes, "gaussian", Method::fused);
}

GrowthJob make_kdtree(const Context& ctx, const GrowthSizes& sizes) {
  return classification(ctx, sizes, "uniform", Method::kdtree);
}

/// A quarter of the mean distance of two rows of a unit cube, for large d.
double radius_of(std::int64_t cols) {
  return std::sqrt(static_cast<double>(cols) / 6) / 4;
}

GrowthJob make_radius(const Context& ctx, const GrowthSizes& sizes) {
  const auto rows = rows_of(ctx, "uniform", sizes);
  const auto answer = std::make_shared<NeighborCounts>();
  const double radius = radius_of(sizes.d);
  return {[=] {
            const Index index(ctx, rows->view());
            *answer = count(ctx, index, rows->asked(), {.radius = radius});
            GrowthCall call{counts_of(answer->stats), parts_of(answer->stats), how_of(answer->plan), {}};
            for (const std::int64_t one : answer->counts) call.counts["neighbors counted"] += static_cast<double>(one);
            return call;
          },
          [=] {
            const TableView queries = rows->asked().slice(0, std::min(kSample, sizes.m));
            const auto wanted = reference::count(reference::rank(rows->view(), queries, {}), radius);
            return verdict_of(std::equal(wanted.begin(), wanted.end(), answer->counts.begin()));
          },
          [=] { ++answer->counts[0]; }};
}

GrowthJob make_lof(const Context& ctx, const GrowthSizes& sizes) {
  const auto rows = rows_of(ctx, "blobs", sizes);
  const auto answer = std::make_shared<Lof>();
  const LofOptions options{.k = sizes.k};
  return {[=] {
            *answer = lof(ctx, rows->view(), options);
            GrowthCall call{counts_of(answer->stats), parts_of(answer->stats), how_of(answer->plan), {}};
            call.parts["scores"] = answer->score_seconds;
            return call;
          },
          [=] {
            const auto within = reference::rank(rows->view(), rows->view(), {.self = true});
            return verdict_of(reference::lof(rows->view(), within, options).scores == answer->scores);
          },
          [=] { answer->scores[0] += 1; }};
}

// ---- embeddings
// ------------------------------------------------------------------------------------------------------

/// A Swiss roll; further columns are sums of its three, with weights of at most 1.
std::shared_ptr<GrowthRows> roll_of(const Context& ctx, const GrowthSizes& sizes) {
  auto made = std::make_shared<GrowthRows>();
  made->sizes = sizes;
  const std::vector<double> points = generate(ctx, {.shape = Shape::swiss_roll, .rows = sizes.n, .seed = 1}).points;
  made->table.resize(static_cast<std::size_t>(sizes.n * sizes.d));
  for (std::int64_t i = 0; i < sizes.n; ++i) {
    const double* const point = &points[static_cast<std::size_t>(i * 3)];
    double* const row = &made->table[static_cast<std::size_t>(i * sizes.d)];
    for (std::int64_t j = 0; j < sizes.d; ++j) {
      const auto angle = static_cast<double>(j);
      row[j] =
          j < 3 ? point[j] : std::cos(angle) * point[0] + std::cos(2 * angle) * point[1] + std::sin(angle) * point[2];
    }
  }
  return made;
}

/// Every column of the embedding as an eigenvector of the reference's matrix.
Verdict check_lle(const Context& ctx, const GrowthRows& rows, const Lle& found) {
  const auto n = static_cast<std::size_t>(rows.sizes.n);
  const std::vector<std::int64_t> ids = knn(ctx, rows.view(), {.k = rows.sizes.k, .method = Method::direct}).ids;
  const auto matrix = reference::lle_matrix(rows.table, rows.sizes.d, ids, found.options);
  if (found.pieces.size() != 1 || !found.placed.empty()) return verdict_of(false);
  const LlePiece& piece = found.pieces[0];
  const double tolerance =
      kStepsOfVariants * static_cast<double>(rows.sizes.k) / found.options.reg * 0x1p-52 * piece.norm;
  Verdict verdict;
  for (std::size_t c = 0; c < static_cast<std::size_t>(found.options.dim); ++c) {
    const auto v = [&](std::size_t i) { return found.embedding[i * static_cast<std::size_t>(found.options.dim) + c]; };
    const reference::Real sigma = piece.singular_values[c];
    reference::Real square = 0;
    for (std::size_t i = 0; i < n; ++i) {
      reference::Real rest = -sigma * sigma * v(i);
      for (std::size_t j = 0; j < n; ++j) rest += matrix[i * n + j] * v(j);
      square += rest * rest;
    }
    verdict += verdict_of(std::sqrt(static_cast<double>(square)) <= tolerance);
  }
  return verdict;
}

template <LleVariant variant>
GrowthJob make_lle(const Context& ctx, const GrowthSizes& sizes) {
  const auto rows = roll_of(ctx, sizes);
  const auto answer = std::make_shared<Lle>();
  return {[=] {
            *answer = lle(ctx, rows->view(), {.k = sizes.k, .variant = variant});
            GrowthCall call{counts_of(answer->stats), parts_of(answer->stats), how_of(answer->plan), {}};
            call.parts["weights"] = answer->weight_seconds;
            call.parts["order"] = answer->order_seconds;
            call.parts["factor"] = answer->factor_seconds;
            call.parts["solution"] = answer->solve_seconds;
            const auto largest = std::max_element(answer->pieces.begin(), answer->pieces.end(),
                                                  [](const auto& a, const auto& b) { return a.rows < b.rows; });
            call.how += fmt::format("; {}", name_of(largest->solver));
            for (const LlePiece& piece : answer->pieces) {
              call.counts["factor entries"] += static_cast<double>(piece.fill);
              call.counts["factor operations"] += piece.flops;
              call.counts["iterations"] += static_cast<double>(piece.iterations);
            }
            return call;
          },
          [=] { return check_lle(ctx, *rows, *answer); }, [=] { answer->embedding[0] += 1; }};
}

// ---- k-means
// ---------------------------------------------------------------------------------------------------------

GrowthJob clustering(const Context& ctx, const GrowthSizes& sizes, KMeansInit init) {
  const auto rows = rows_of(ctx, "gaussian", sizes);
  const auto answer = std::make_shared<KMeans>();
  const bool seeds = init != KMeansInit::first_k;
  const KMeansOptions options{
      .clusters = sizes.k, .init = init, .seed = 1, .max_iterations = seeds ? 1 : kIterations, .tolerance = 0};
  return {[=] {
            *answer = kmeans(ctx, rows->view(), options);
            const KMeansStats& stats = answer->stats;
            GrowthCall call;
            call.how = how_of(answer->plan);
            if (seeds) {
              call.seconds = stats.seed_seconds;
              return call;
            }
            const auto iterations = static_cast<double>(std::max<std::int64_t>(answer->iterations, 1));
            call.seconds = stats.iterate_seconds / iterations;
            call.counts["rows compared"] = static_cast<double>(stats.assigned - stats.skipped) / iterations;
            call.counts["rows rechecked"] = static_cast<double>(stats.rechecked) / iterations;
            return call;
          },
          [=] {
            const KMeans wanted = reference::kmeans(rows->view(), options);
            return verdict_of(wanted.labels == answer->labels && wanted.centres == answer->centres &&
                              wanted.iterations == answer->iterations);
          },
          [=] { answer->labels[0] ^= 1; }};
}

template <KMeansInit init>
GrowthJob make_kmeans(const Context& ctx, const GrowthSizes& sizes) {
  return clustering(ctx, sizes, init);
}

// ---- graphs and maps
// -------------------------------------------------------------------------------------------------

struct Members {
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
  BipartiteEdges edges;
};

GrowthJob make_cocluster(const Context& ctx, const GrowthSizes& sizes) {
  const auto members = std::make_shared<Members>();
  const auto draw = [&sizes](std::uint64_t stream, std::int64_t e) {
    return static_cast<std::int64_t>(core::philox_uniform(1, stream, static_cast<std::uint64_t>(e)) *
                                     static_cast<double>(sizes.n));
  };
  members->a.reserve(static_cast<std::size_t>(sizes.n * sizes.k));
  members->b.reserve(static_cast<std::size_t>(sizes.n * sizes.k));
  for (std::int64_t e = 0; e < sizes.n * sizes.k; ++e) {
    members->a.push_back(draw(0, e));
    members->b.push_back(draw(1, e));
  }
  members->edges = BipartiteEdges(sizes.n, sizes.n, std::span<const std::int64_t>(members->a),
                                  std::span<const std::int64_t>(members->b));
  const auto answer = std::make_shared<Cocluster>();
  return {[=] {
            *answer = cocluster(ctx, members->edges);
            GrowthCall call;
            call.how = name_of(answer->plan.method);
            call.counts["edges"] = static_cast<double>(members->edges.size());
            call.counts["groups"] = static_cast<double>(answer->groups.size());
            call.parts["labels"] = answer->label_seconds;
            return call;
          },
          [=] { return check_groups(members->edges, *answer); }, [=] { ++answer->labels_a[0]; }};
}

/// Round features of d edges on a grid, each a little other than round; corners on a grid of 2^-20.
Polygons map_of(const GrowthSizes& sizes, std::uint64_t seed) {
  Polygons made;
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(sizes.n))));
  const auto snap = [](double x) { return std::nearbyint(x * 0x1p20) * 0x1p-20; };
  std::vector<double> ring(static_cast<std::size_t>(2 * sizes.d));
  for (std::int64_t i = 0; i < sizes.n; ++i) {
    const auto draw = [&](int which) {
      return core::philox_uniform(seed, 7, static_cast<std::uint64_t>(i * 4 + which));
    };
    const std::int64_t line = i / side;
    const double x = kFeatureSpacing * static_cast<double>(i % side) + 4 * draw(0);
    const double y = kFeatureSpacing * static_cast<double>(line) + 4 * draw(1);
    const double phase = 2 * std::numbers::pi * draw(2);
    for (std::int64_t e = 0; e < sizes.d; ++e) {
      const double angle = 2 * std::numbers::pi * (static_cast<double>(e) + draw(3)) / static_cast<double>(sizes.d);
      const double radius = 8 + std::sin(3 * angle + phase);
      ring[static_cast<std::size_t>(2 * e)] = snap(x + radius * std::cos(angle));
      ring[static_cast<std::size_t>(2 * e + 1)] = snap(y + radius * std::sin(angle));
    }
    made.add_ring(ring);
    made.end_part();
    made.end_feature();
  }
  return made;
}

/// Pairs of a feature with its own number and with the next one, against the reference.
Verdict check_match(const Polygons& a, const Polygons& b, const Match& found) {
  Verdict verdict;
  for (std::int64_t i = 0; i < std::min(kSample, a.size() - 1); ++i) {
    for (const std::int64_t j : {i, i + 1}) {
      const auto pair = std::find_if(found.pairs.begin(), found.pairs.end(),
                                     [&](const MatchPair& p) { return p.overlap.a == i && p.overlap.b == j; });
      const reference::Shared wanted = reference::shared(a.view(), i, b.view(), j);
      const bool none = pair == found.pairs.end();
      verdict += verdict_of(none ? wanted.relation == RegionRelation::disjoint
                                 : wanted.relation == pair->overlap.relation &&
                                       std::abs(wanted.area - pair->overlap.area) <=
                                           kAreaTolerance * std::min(wanted.area_a, wanted.area_b));
    }
  }
  return verdict;
}

GrowthJob make_match(const Context& ctx, const GrowthSizes& sizes) {
  const auto a = std::make_shared<const Polygons>(map_of(sizes, 1));
  const auto b = std::make_shared<const Polygons>(map_of(sizes, 2));
  const auto answer = std::make_shared<Match>();
  return {[=] {
            *answer = match(ctx, a->view(), b->view());
            GrowthCall call;
            call.how = "overlap join";
            call.counts["candidate pairs"] = static_cast<double>(answer->candidates);
            call.counts["pairs found"] = static_cast<double>(answer->pairs.size());
            return call;
          },
          [=] { return check_match(*a, *b, *answer); }, [=] { answer->pairs[0].overlap.area *= 1 + 0x1p-20; }};
}

// ---- density
// ---------------------------------------------------------------------------------------------------------

GrowthJob make_spanning_tree(const Context& ctx, const GrowthSizes& sizes) {
  const auto rows = rows_of(ctx, "blobs", sizes);
  const auto answer = std::make_shared<SpanningTree>();
  const SpanningTreeOptions options{.min_samples = sizes.k};
  return {[=] {
            *answer = minimum_spanning_tree(ctx, rows->view(), options);
            GrowthCall call{counts_of(answer->stats), parts_of(answer->stats), how_of(answer->plan), {}};
            call.parts["tree"] = answer->tree_seconds;
            return call;
          },
          [=] {
            const auto keys = reference::pair_keys(rows->view(), options.metric, options.p);
            const SpanningTree wanted = reference::minimum_spanning_tree(keys, options);
            return verdict_of(wanted.a == answer->a && wanted.b == answer->b && wanted.lengths == answer->lengths);
          },
          [=] { answer->lengths[0] *= 2; }};
}

GrowthJob make_hdbscan(const Context& ctx, const GrowthSizes& sizes) {
  const auto rows = rows_of(ctx, "blobs", sizes);
  const auto answer = std::make_shared<Hdbscan>();
  const HdbscanOptions options{.min_cluster_size = kLeastCluster, .min_samples = sizes.k};
  return {[=] {
            *answer = hdbscan(ctx, rows->view(), options);
            GrowthCall call{counts_of(answer->stats), parts_of(answer->stats), how_of(answer->plan), {}};
            call.parts["tree"] = answer->tree_seconds;
            call.parts["clusters"] = answer->cluster_seconds;
            return call;
          },
          [=] {
            const auto keys = reference::pair_keys(rows->view(), options.metric, options.p);
            const SpanningTree tree = reference::minimum_spanning_tree(keys, {.min_samples = options.min_samples});
            return verdict_of(reference::hdbscan(tree, options).labels == answer->labels);
          },
          [=] { ++answer->labels[0]; }};
}

/// A tenth of the mean distance of two rows of a blob, for large d.
double eps_of(std::int64_t cols) {
  return std::sqrt(2 * static_cast<double>(cols)) / 10;
}

GrowthJob make_dbscan(const Context& ctx, const GrowthSizes& sizes) {
  const auto rows = rows_of(ctx, "blobs", sizes);
  const auto answer = std::make_shared<Dbscan>();
  const DbscanOptions options{.eps = eps_of(sizes.d), .min_samples = sizes.k};
  return {[=] {
            *answer = dbscan(ctx, rows->view(), options);
            GrowthCall call;
            call.how = how_of(answer->plan);
            call.counts["core rows"] = static_cast<double>(answer->core_rows);
            call.counts["clusters"] = static_cast<double>(answer->clusters);
            call.parts["preparation"] = answer->prepare_seconds;
            call.parts["clusters"] = answer->cluster_seconds;
            return call;
          },
          [=] {
            const auto keys = reference::pair_keys(rows->view(), options.metric, options.p);
            return verdict_of(reference::dbscan(keys, options).labels == answer->labels);
          },
          [=] { ++answer->labels[0]; }};
}

GrowthJob make_optics(const Context& ctx, const GrowthSizes& sizes) {
  const auto rows = rows_of(ctx, "blobs", sizes);
  const auto answer = std::make_shared<Optics>();
  const OpticsOptions options{.min_samples = sizes.k};
  return {[=] {
            *answer = optics(ctx, rows->view(), options);
            GrowthCall call{counts_of(answer->stats), parts_of(answer->stats), how_of(answer->plan), {}};
            call.parts["order"] = answer->order_seconds;
            return call;
          },
          [=] {
            const auto keys = reference::pair_keys(rows->view(), options.metric, options.p);
            const Optics wanted = reference::optics(keys, options);
            return verdict_of(wanted.ordering == answer->ordering && wanted.reachability == answer->reachability);
          },
          [=] { std::swap(answer->ordering[0], answer->ordering[1]); }};
}

// ---- the list
// --------------------------------------------------------------------------------------------------------

using Sizes = std::vector<std::int64_t>;

/// Three decades from `first`, by half decades.
Sizes decades(std::int64_t first) {
  Sizes sizes;
  sizes.reserve(7);
  for (const std::int64_t step : {10, 32, 100, 320, 1'000, 3'200, 10'000}) sizes.push_back(first * step / 10);
  return sizes;
}

/// `first` times 1, 2, 4 .. 1,024.
Sizes doublings(std::int64_t first) {
  Sizes sizes;
  for (std::int64_t size = first; size <= first * 1024; size *= 2) sizes.push_back(size);
  return sizes;
}

std::vector<GrowthSystem> list() {
  using enum GrowthAxis;
  const Sizes rows = decades(1'000);
  const Sizes cols = doublings(2);
  const Sizes neighbors = {1, 3, 10, 32, 100, 320, 1'000};
  const std::map<GrowthAxis, std::string> searches = {{n, "rows"}, {d, "columns"}, {k, "neighbors"}, {m, "queries"}};
  const std::map<GrowthAxis, std::string> lists = {{n, "rows"}, {d, "columns"}, {k, "neighbors"}};
  const std::map<GrowthAxis, std::string> samples = {{n, "rows"}, {d, "columns"}, {k, "min_samples"}};
  const std::map<GrowthAxis, std::string> clusters = {{n, "rows"}, {d, "columns"}, {k, "clusters"}};
  const std::vector<GrowthSweep> of_clusters = {
      {n, {0, 16, 64, 0}, rows}, {d, {10'000, 0, 64, 0}, cols}, {k, {20'000, 16, 0, 0}, cols}};
  const std::vector<GrowthSweep> of_roll = {{n, {0, 3, 12, 0}, decades(320)}};
  const auto of_density = [&](std::int64_t k_base, Sizes ks) {
    return std::vector<GrowthSweep>{
        {n, {0, 3, k_base, 0}, rows}, {d, {5'000, 0, k_base, 0}, cols}, {k, {10'000, 3, 0, 0}, std::move(ks)}};
  };
  return {
      {"knn-fused",
       "classification by k neighbors, method fused, normal columns",
       searches,
       make_fused,
       {{n, {0, 32, 10, 1'000}, rows},
        {d, {10'000, 0, 10, 1'000}, cols},
        {k, {20'000, 32, 0, 1'000}, neighbors},
        {m, {10'000, 32, 10, 0}, decades(100)}}},
      {"knn-kdtree",
       "classification by k neighbors, method kdtree, uniform columns",
       searches,
       make_kdtree,
       {{n, {0, 3, 10, 10'000}, rows},
        {d, {2'000, 0, 10, 1'000}, cols},
        {k, {100'000, 3, 0, 10'000}, neighbors},
        {m, {100'000, 3, 10, 0}, rows}}},
      {"radius",
       "numbers of rows within a radius, uniform columns",
       {{n, "rows"}, {d, "columns"}, {m, "queries"}},
       make_radius,
       {{n, {0, 3, 0, 10'000}, rows}, {d, {2'000, 0, 0, 1'000}, cols}, {m, {100'000, 3, 0, 0}, decades(100)}}},
      {"lof",
       "local outlier factors of 16 blobs",
       lists,
       make_lof,
       {{n, {0, 3, 20, 0}, rows}, {d, {5'000, 0, 20, 0}, cols}, {k, {10'000, 3, 0, 0}, neighbors}}},
      {"lle",
       "locally linear embedding of a Swiss roll",
       lists,
       make_lle<LleVariant::standard>,
       {{n, {0, 3, 12, 0}, decades(320)},
        {d, {3'000, 0, 12, 0}, doublings(3)},
        {k, {2'000, 3, 0, 0}, {3, 10, 32, 100, 320, 1'000}}}},
      {"lle-modified", "the same, variant modified", lists, make_lle<LleVariant::modified>, of_roll},
      {"lle-hessian", "the same, variant hessian", lists, make_lle<LleVariant::hessian>, of_roll},
      {"lle-ltsa", "the same, variant ltsa", lists, make_lle<LleVariant::ltsa>, of_roll},
      {"kmeans", "one of the first five iterations of k-means, normal columns", clusters,
       make_kmeans<KMeansInit::first_k>, of_clusters},
      {"kmeans-seeds", "first centers by greedy k-means++, normal columns", clusters,
       make_kmeans<KMeansInit::plus_plus>, of_clusters},
      {"kmeans-parallel-seeds", "first centers by k-means||, normal columns", clusters,
       make_kmeans<KMeansInit::parallel>, of_clusters},
      {"cocluster",
       "groups of two sets of n members and random edges",
       {{n, "members"}, {k, "edges of a member"}},
       make_cocluster,
       {{n, {0, 0, 2, 0}, rows}, {k, {10'000, 0, 0, 0}, neighbors}}},
      {"match",
       "overlaps and groups of two maps",
       {{n, "features"}, {d, "edges of a feature"}},
       make_match,
       {{n, {0, 6, 0, 0}, rows}, {d, {300, 0, 0, 0}, doublings(4)}}},
      {"spanning-tree", "minimum spanning tree of 16 blobs, by mutual reachability if min_samples is above 1", samples,
       make_spanning_tree, of_density(1, neighbors)},
      {"hdbscan", "HDBSCAN of 16 blobs", samples, make_hdbscan, of_density(10, neighbors)},
      {"dbscan", "DBSCAN of 16 blobs", samples, make_dbscan, of_density(10, neighbors)},
      {"optics", "the order of OPTICS of 16 blobs", samples, make_optics,
       of_density(10, {2, 6, 20, 64, 200, 640, 2'000})},
  };
}

}  // namespace

std::string letter_of(GrowthAxis axis) {
  return std::string(1, "ndkm"[static_cast<std::size_t>(axis)]);
}

std::int64_t GrowthSizes::of(GrowthAxis axis) const {
  const std::int64_t sizes[] = {n, d, k, m};
  return sizes[static_cast<std::size_t>(axis)];
}

GrowthSizes GrowthSizes::with(GrowthAxis axis, std::int64_t size) const {
  GrowthSizes other = *this;
  std::int64_t* const sizes[] = {&other.n, &other.d, &other.k, &other.m};
  *sizes[static_cast<std::size_t>(axis)] = size;
  return other;
}

const std::vector<GrowthSystem>& growth_systems() {
  static const std::vector<GrowthSystem> systems = list();
  return systems;
}

}  // namespace vicinal::cli
