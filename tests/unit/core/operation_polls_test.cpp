// Cancel polls of operations on one thread, counted: each loop over all rows or values looks at the token as often as
// core::Poll says, once in 65,536 steps. The expected numbers are those of the loops; a sort's steps are those that
// std::sort takes with the same data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/lle_ranks.hpp"
#include "core/philox.hpp"
#include "counted_polls.hpp"
#include "cpu/kmeans/lloyd.hpp"
#include "cpu/kmeans/row_masses.hpp"
#include "cpu/kmeans/row_reader.hpp"
#include "ops/graph/leading_vectors.hpp"
#include "ops/graph/potts.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/lle/pieces.hpp"
#include "ops/lof/places.hpp"
#include "ops/nearest/folds.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/cross_validate.hpp"
#include "vicinal/impute.hpp"
#include "vicinal/lle_quality.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/preprocess.hpp"
#include "vicinal/sample.hpp"
#include "vicinal/shards.hpp"
#include "vicinal/symmetrize.hpp"

namespace vicinal {
namespace {

std::vector<std::int32_t> polled_codes(std::int64_t count, std::int32_t codes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int32_t> uniform(0, codes - 1);
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::int32_t& value : values) value = uniform(random);
  return values;
}

TEST(Polls, FittingMissingValues) {
  const Context ctx = polled_context();
  std::vector<double> values = polled_values(kManyRows, 1);
  const TableView table(values.data(), kManyRows, 1);
  // Widening in parallel, looking for missing values, a task for the column, and its values.
  const std::int64_t others = of_tasks(ctx, kManyRows / kBetweenLooks) + 2 + of_tasks(ctx, 1);
  EXPECT_GE(polls_of([&] { (void)Imputer::fit(ctx, table, {.filling = Filling::mean}); }), others + 2);
  // The median counts its comparisons, too: to part n values takes at least n of them.
  EXPECT_GE(polls_of([&] { (void)Imputer::fit(ctx, table, {.filling = Filling::median}); }), others + 2 + 2);
}

TEST(Polls, FillingMissingValues) {
  const Context ctx = polled_context();
  std::vector<double> values = polled_values(kManyRows, 1);
  // Every row has a missing value.
  std::vector<double> gaps(static_cast<std::size_t>(2 * kManyRows), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t i = 0; i < kManyRows; ++i)
    gaps[static_cast<std::size_t>(2 * i)] = values[static_cast<std::size_t>(i)];
  const TableView table(gaps.data(), kManyRows, 2);
  const std::int64_t widening = of_tasks(ctx, 2 * kManyRows / kBetweenLooks);
  const Imputer by_mean = Imputer::of({.filling = Filling::mean}, {1, 2});
  // Missing values are looked for among 2 kManyRows, and as many are filled.
  EXPECT_GE(polls_of([&] { (void)by_mean.apply(ctx, table); }), widening + 4 + 4);
  // With neighbors they are counted, too. The search prepares one block of donors, and visits it once in each task of
  // 32 rows.
  const Imputer near = Imputer::of({.filling = Filling::knn, .k = 1}, {1, 2}, {3, 4});
  const std::int64_t search = of_tasks(ctx, 1) + of_tasks(ctx, kManyRows / 32) + kManyRows / 32;
  EXPECT_GE(polls_of([&] { (void)near.apply(ctx, table); }), widening + 4 + 4 + search + 4);
  EXPECT_GE(polls_of([&] { (void)count_missing(ctx, table); }), widening + 4);
  Table rows;
  gaps[1] = 0;  // one row is complete
  rows.view = TableView(gaps.data(), kManyRows, 2);
  EXPECT_GE(polls_of([&] { (void)complete_rows(ctx, rows); }), widening + 4);
}

TEST(Polls, KeptIdsOfCompleteRows) {
  const Context ctx = polled_context();
  std::vector<double> values = polled_values(kManyRows + 1, 1);
  values[7] = std::numeric_limits<double>::quiet_NaN();
  Table table;
  table.view = TableView(values.data(), kManyRows + 1, 1);
  table.ids.emplace();
  for (std::int64_t i = 0; i <= kManyRows; ++i) table.ids->add("a");
  const std::int64_t widening = of_tasks(ctx, kManyRows / kBetweenLooks + 1);
  EXPECT_GE(polls_of([&] { (void)complete_rows(ctx, table); }), widening + 2 + 2);
}

/// A table of one column, whose values its owner is asked for.
TableView polled_source(const std::vector<double>& values) {
  return TableView::blocks(DType::float64, std::ssize(values), 1,
                           [&values](std::int64_t begin, std::int64_t end, void* to) {
                             std::memcpy(to, values.data() + begin, static_cast<std::size_t>(end - begin) * 8);
                           });
}

// Blocks are widened, and missing values looked for in each.
TEST(Polls, MissingValuesOfASource) {
  const Context ctx = polled_context();
  const std::vector<double> values = polled_values(kManyRows, 1);
  EXPECT_GE(polls_of([&] { (void)count_missing(ctx, polled_source(values)); }), 2 + 2);
}

TEST(Polls, ASourceThatIsScaled) {
  const Context ctx = polled_context();
  const std::vector<double> values = polled_values(kManyRows, 1);
  Preparation::Column column;
  column.shift = 1;
  const Preparation preparation = Preparation::of({column}, Scaling::standard);
  EXPECT_GE(polls_of([&] { (void)preparation.apply(ctx, polled_source(values)); }), 2);
}

// Texts are looked up, each 4,096 in a step, and the row is a block.
TEST(Polls, TextsThatGetCodes) {
  const Context ctx = polled_context();
  const double value = 0;
  Table table;
  table.view = TableView(&value, 1, 1);
  table.categories.assign(1, std::vector<std::string>(2 * 4096, "a"));
  Preparation::Column column;
  column.categories = {"a"};
  const Preparation preparation = Preparation::of({column}, Scaling::none);
  EXPECT_GE(polls_of([&] { (void)preparation.apply(ctx, table); }), 2 + of_tasks(ctx, 1));
}

TEST(Polls, ScoresOfClasses) {
  const Context ctx = polled_context();
  const std::vector<std::int32_t> truth = polled_codes(kManyRows, static_cast<std::int32_t>(kManyRows), 1);
  const std::vector<std::int32_t> predicted = polled_codes(kManyRows, static_cast<std::int32_t>(kManyRows), 2);
  // Codes are checked, then counted, then the classes are scored.
  EXPECT_GE(polls_of([&] { (void)classification_scores(ctx, truth, predicted, kManyRows); }), 2 + 2 + 2);
  const std::vector<std::int32_t> few(truth.size());
  EXPECT_GE(polls_of([&] { (void)confusion_matrix(ctx, few, few, 2); }), 2 + 2);
}

TEST(Polls, ScoresOfClusters) {
  const Context ctx = polled_context();
  const std::vector<std::int32_t> classes = polled_codes(kManyRows, static_cast<std::int32_t>(kManyRows), 1);
  const std::vector<std::int32_t> clusters = polled_codes(kManyRows, static_cast<std::int32_t>(kManyRows), 2);
  std::vector<std::uint64_t> cells(classes.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = static_cast<std::uint64_t>(classes[i]) << 32 | static_cast<std::uint64_t>(clusters[i]);
  }
  const std::int64_t sorting = steps_of_sort(cells, [](std::uint64_t a, std::uint64_t b) { return a < b; });
  // Two labelings are checked and their sizes counted, entropies are of as many labels; cells are made and counted.
  const std::int64_t steps = kManyRows * (2 + 2 + 2 + 1 + 1) + sorting;
  EXPECT_GE(polls_of([&] {
              (void)clustering_scores(ctx, {classes, kManyRows}, {clusters, kManyRows});
            }),
            steps / kBetweenLooks);
}

TEST(Polls, ScoresOfARanking) {
  const Context ctx = polled_context();
  const std::vector<std::int32_t> truth = polled_codes(kManyRows, 2, 1);
  const std::vector<double> scores = polled_values(kManyRows, 2);
  const std::int64_t sorting = steps_of_sort(scores, [](double a, double b) { return a > b; });
  EXPECT_GE(polls_of([&] { (void)roc_auc_score(ctx, truth, scores); }),
            (kManyRows + sorting + kManyRows) / kBetweenLooks);
}

TEST(Polls, ScoresOfNumbers) {
  const Context ctx = polled_context();
  const std::vector<double> truth = polled_values(kManyRows, 1);
  const std::vector<double> predicted = polled_values(kManyRows, 2);
  // Both are checked; then one loop for the mean and one for the errors.
  EXPECT_GE(polls_of([&] { (void)regression_scores(ctx, truth, predicted); }), 2 + 2 + 2 + 2);
}

TEST(Polls, FoldsOfRows) {
  const Context ctx = polled_context();
  // As ops/nearest/folds.cpp draws.
  std::vector<double> draws(static_cast<std::size_t>(kManyRows));
  for (std::size_t i = 0; i < draws.size(); ++i) draws[i] = core::philox_uniform(1, 0x63760000, i);
  const std::int64_t sorting = steps_of_sort(draws, [](double a, double b) { return a < b; });
  EXPECT_GE(polls_of([&] { (void)ops::make_folds(ctx, kManyRows, {}, 5, 1); }),
            (kManyRows + sorting + kManyRows) / kBetweenLooks);
}

/// Each row lists the next.
NeighborGraph polled_ring() {
  NeighborGraph graph;
  graph.rows = graph.table_rows = kManyRows;
  graph.k = 1;
  for (std::int64_t i = 0; i < kManyRows; ++i) graph.ids.push_back((i + 1) % kManyRows);
  graph.distances.assign(static_cast<std::size_t>(kManyRows), 1);
  return graph;
}

TEST(Polls, GraphsMadeSymmetric) {
  const Context ctx = polled_context();
  const NeighborGraph graph = polled_ring();
  // The lists are turned in two loops, and merged twice, in tasks of rows.
  EXPECT_GE(polls_of([&] { (void)symmetrize(ctx, graph, Symmetry::either); }),
            2 + 2 + 2 * of_tasks(ctx, kManyRows / 16384));
  EXPECT_GE(polls_of([&] { (void)with_self(ctx, graph); }), 2);
}

TEST(Polls, RowsOfASample) {
  const Context ctx = polled_context();
  const std::vector<double> values = polled_values(2 * kManyRows, 1);
  const TableView table(values.data(), 2 * kManyRows, 1);
  // Draws of rows until there are kManyRows, and the rows, by 256.
  EXPECT_GE(polls_of([&] { (void)sample_rows(ctx, table, kManyRows, 1); }), 2 + kManyRows / 256);
}

TEST(Polls, ScoresOfShards) {
  const Context ctx = polled_context();
  NeighborGraph graph;
  graph.rows = graph.table_rows = kManyRows;
  graph.k = 1;
  graph.ids.assign(static_cast<std::size_t>(kManyRows), 0);
  graph.ids.front() = 1;
  graph.distances = polled_values(kManyRows, 1);
  Communicator self;
  const auto looks = [&](double contamination, bool novelty) {
    LofOptions options{.k = 1, .score = OutlierScore::knn};
    options.contamination = contamination;
    options.novelty = novelty;
    return polls_of([&] { (void)lof(ctx, self, graph, 0, options); });
  };
  const std::int64_t others = looks(0, false);
  // Of each row its k-distance is kept.
  EXPECT_GE(looks(0, true), others + 2);
  // Scores are negated; their eight bytes are counted in a pass each, which looks before it begins, too; the next score
  // is looked for.
  EXPECT_GE(looks(0.1, false), others + 2 + 8 * (1 + 2) + 2);
}

TEST(Polls, RowsOfADrawnCenter) {
  const Context ctx = polled_context();
  constexpr std::int64_t kGroup = 32;  // rows whose changes are looked at in one step
  const std::vector<float> values(static_cast<std::size_t>(kGroup * kManyRows), 1);
  const kernels::ClusterTask task = {TableView(values.data(), kGroup * kManyRows, 1), {}, 1, false};
  const auto lloyd = cpu::make_lloyd(ctx, task);
  cpu::RowMasses masses(ctx, task, *lloyd, 1, 0);
  masses.attempt(std::vector<double>{1});
  EXPECT_GE(polls_of([&] { masses.take(0); }), 2);
}

// Pairs of nodes: one pass moves them, the next finds none to move; then a graph of half as many is made.
TEST(Polls, Communities) {
  constexpr std::int64_t kNodes = 8 * 1024;
  ops::WeightedGraph graph;
  graph.offsets.push_back(0);
  for (std::int64_t v = 0; v < kNodes; ++v) {
    graph.neighbors.push_back(v ^ 1);
    graph.offsets.push_back(v + 1);
  }
  graph.weights.assign(static_cast<std::size_t>(kNodes), 1);
  graph.sizes.assign(static_cast<std::size_t>(kNodes), 1);
  const Context ctx = polled_context();
  EXPECT_EQ(polls_of([&] { (void)ops::potts_communities(ctx, graph, 0.5); }), 2 * 8 + 8 + 8 + 4);
}

TEST(Polls, LabelsThatAreMerged) {
  constexpr std::int64_t kVertices = 16384;
  const std::vector<std::int64_t> labels(static_cast<std::size_t>(4 * kVertices));
  const Context ctx = polled_context();
  Communicator self;
  // Counted, then collected; a task for as many is joined, and another is labeled.
  EXPECT_GE(polls_of([&] { (void)merge_labels(ctx, self, labels); }), 2 * 4 + 4 * of_tasks(ctx, 1) + 4);
}

// Inner products of vectors of the span, in each round, and the rows that are turned.
TEST(Polls, LeadingVectors) {
  constexpr std::int64_t kTableRows = 2048;
  constexpr std::int64_t kTasks = 2;
  constexpr std::int64_t kWidth = 2 + 8;
  ops::SparseRows matrix;
  matrix.offsets.push_back(0);
  for (std::int64_t i = 0; i < kTableRows; ++i) {
    matrix.columns.push_back(i);
    matrix.values.push_back(i < 16 ? 1 - 0.04 * static_cast<double>(i) : 0.3);
    matrix.offsets.push_back(i + 1);
  }
  std::vector<double> first(static_cast<std::size_t>(kTableRows), 0.0);
  first[0] = 1;
  const Context ctx = polled_context();
  std::int64_t rounds = 0;
  const std::int64_t polls =
      polls_of([&] { rounds = 1 + ops::leading_vectors(ctx, matrix, matrix, first, 2, 1).rounds; });
  // Vectors are made orthogonal, each twice to those before it, and its length is taken; the span is turned.
  constexpr std::int64_t kProducts = kWidth * (kWidth - 1) + 3 * kWidth + kWidth * (kWidth + 1) / 2;
  constexpr std::int64_t kApplied = 2 * kTasks;
  EXPECT_GE(polls, rounds * (kProducts + 2 * kTasks + kApplied) + (rounds - 1) * 7 * kApplied);
}

TEST(Polls, ARelation) {
  constexpr std::int64_t kTableRows = 2048;
  constexpr std::int64_t kTableColumns = 1024;  // half of the rows are widened at a time
  const std::vector<std::uint8_t> relation(static_cast<std::size_t>(kTableRows * kTableColumns));
  const Context ctx = polled_context();
  const BipartiteEdges none(kTableRows, kTableColumns, std::span<const std::int64_t>(),
                            std::span<const std::int64_t>());
  const std::int64_t without = polls_of([&] { (void)cocluster(ctx, none); });
  EXPECT_GE(polls_of([&] { (void)cocluster(ctx, TableView(relation.data(), kTableRows, kTableColumns)); }),
            without + 2 * 2);
}

// Every row of a product, or every tile of one.
TEST(Polls, AClosureByProducts) {
  const Context ctx = polled_context();
  const auto polls = [&](CoclusterMethod method, std::int64_t side) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(side));
    std::iota(ids.begin(), ids.end(), 0);
    const BipartiteEdges edges(side, side, std::span<const std::int64_t>(ids), std::span<const std::int64_t>(ids));
    return polls_of([&] { (void)cocluster(ctx, edges, {.method = method}); });
  };
  // Rows of the matrix are made, then multiplied: by a program's loops in stretches of 64 columns.
  EXPECT_GE(polls(CoclusterMethod::product_serial, 64), 128 + 2 * 128);
  EXPECT_GE(polls(CoclusterMethod::product_tiled, 256), 512 + 8 + 8 * 8);
}

// Of two members and very many edges.
TEST(Polls, EdgesOfAClosure) {
  constexpr std::int64_t kEdges = (std::int64_t{1} << 20) + 1;
  const Context ctx = polled_context();
  const std::vector<std::int32_t> zeros(static_cast<std::size_t>(kEdges));
  const auto more_polls = [&](CoclusterMethod method) {
    const auto polls = [&](std::size_t count) {
      const auto ids = std::span(zeros).first(count);
      return polls_of([&] { (void)cocluster(ctx, BipartiteEdges(1, 1, ids, ids), {.method = method}); });
    };
    return polls(zeros.size()) - polls(1);
  };
  EXPECT_GE(more_polls(CoclusterMethod::product_serial), 1);
  EXPECT_GE(more_polls(CoclusterMethod::closure), (std::int64_t{1} << 20) / (1 << 15));
}

// Means, products and rests of each piece.
TEST(Polls, ParametersOfAnEmbedding) {
  Lle fitted;
  fitted.options.dim = 1;
  fitted.piece.assign(static_cast<std::size_t>(kManyRows), 0);
  fitted.embedding.assign(static_cast<std::size_t>(kManyRows), 0);
  const std::vector<double> ones(static_cast<std::size_t>(kManyRows), 1);
  const TableView parameters(ones.data(), kManyRows, 1);
  const Context ctx = polled_context();
  const std::int64_t checking = polls_of([&] { (void)Index(ctx, parameters); });
  EXPECT_GE(polls_of([&] { (void)compare_parameters(ctx, fitted, parameters); }), checking + 2 + 2 + 2);
}

// A chain of rows that leads to two closed classes: each round places one row.
TEST(Polls, RoundsOfPlacedRows) {
  constexpr solver::Point kChain = 256;
  solver::LocalRows graph;
  graph.points = 6 + kChain;
  graph.width = 3;
  for (solver::Point i = 0; i < graph.points; ++i) {
    const solver::Point class_of = i < 3 ? 0 : 3;
    const solver::Point before = i == 6 ? 3 : i - 1;
    const solver::Point after = i == 6 ? 0 : std::min(i + 1, graph.points - 1);
    graph.cols.push_back(i);
    graph.cols.push_back(i < 6 ? class_of + (i + 1) % 3 : before);
    graph.cols.push_back(i < 6 ? class_of + (i + 2) % 3 : after);
  }
  const Context ctx = polled_context();
  std::vector<std::int64_t> piece;
  std::size_t rounds = 0;
  EXPECT_GE(polls_of([&] { rounds = ops::pieces_of(ctx, graph, LleVariant::standard, piece).rounds.size(); }), kChain);
  EXPECT_EQ(rounds, static_cast<std::size_t>(kChain));
}

TEST(Polls, RanksOfNeighbors) {
  std::vector<std::int64_t> piece(static_cast<std::size_t>(kManyRows));
  std::iota(piece.begin(), piece.end(), 0);
  const std::vector<double> values = polled_values(kManyRows, 1);
  const TableView table(values.data(), kManyRows, 1);
  const std::vector<std::int64_t> near = {1};
  const std::vector<kernels::RankTask> tasks = {{piece, std::span(piece).first(1), near, 1}};
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { (void)kernels::rank_penalties(ctx, {table, Metric::euclidean, 2}, tasks); }), 2);
}

// Lists are shortened for each number of neighbors but the most.
TEST(Polls, CrossValidation) {
  constexpr std::int64_t kTableRows = 8 * 1024;
  const std::vector<double> values = polled_values(kTableRows, 1);
  const TableView table(values.data(), kTableRows, 1);
  const Context ctx = polled_context();
  const Index index(ctx, table, {.tree = true});
  const auto polls = [&](std::int64_t k) {
    return polls_of(
        [&] { (void)cross_validate(ctx, index, table, {.k = k, .k_to = 2, .folds = 2, .method = Method::kdtree}); });
  };
  // The lists, squared errors, and a task that predicts.
  EXPECT_GE(polls(1) - polls(2), 7 + 8 + 1);
}

TEST(Polls, PlacesOfRows) {
  constexpr std::int64_t kChunk = 4096;
  const std::vector<double> values = polled_values(4 * kChunk, 1);
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { (void)ops::places_of(ctx, TableView(values.data(), 4 * kChunk, 1)); }),
            of_tasks(ctx, 4) + 4);
}

// Rows with and without a weight, by turns: each is copied alone.
TEST(Polls, RowsWithoutWeight) {
  constexpr std::int64_t kTableRows = 1024;
  const std::vector<double> values = polled_values(kTableRows, 1);
  std::vector<double> weights(values.size(), 1);
  for (std::size_t i = 0; i < weights.size(); i += 2) weights[i] = 0;
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] {
              (void)ops::ClusteredRows(ctx, TableView(values.data(), kTableRows, 1), weights, Metric::euclidean);
            }),
            kTableRows);
}

// A source is asked for 32 MiB at a time.
TEST(Polls, PartsOfABlockSource) {
  constexpr std::int64_t kPart = std::int64_t{32} << 20;
  const TableView table =
      TableView::blocks(DType::uint8, 2 * kPart, 1, [](std::int64_t begin, std::int64_t end, void* to) {
        std::memset(to, 1, static_cast<std::size_t>(end - begin));
      });
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { cpu::for_each_part(ctx, table, [](const TableView&, std::int64_t) {}); }), 2);
}

}  // namespace
}  // namespace vicinal
