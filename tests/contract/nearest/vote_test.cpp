// vote against the reference: weights, probabilities, several outputs, ties, text labels, empty neighborhoods.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "reference/reference.hpp"
#include "reference/supervised.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

Labels voting_labels(std::int64_t rows, std::int64_t classes, std::uint64_t seed) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < rows; ++i) {
    values.push_back(static_cast<std::int64_t>((static_cast<std::uint64_t>(i) + seed) * 2654435761U %
                                               static_cast<std::uint64_t>(classes)) *
                         10 -
                     5);
  }
  return encode_labels(values);
}

void expect_same_vote(const Vote& got, const Vote& expected, const std::string& what) {
  EXPECT_EQ(got.class_count, expected.class_count) << what;
  EXPECT_EQ(got.codes, expected.codes) << what;
  ASSERT_EQ(got.probabilities.size(), expected.probabilities.size()) << what;
  EXPECT_EQ(
      std::memcmp(got.probabilities.data(), expected.probabilities.data(), got.probabilities.size() * sizeof(double)),
      0)
      << what;
}

class VoteOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(VoteOfFamily, EqualsTheReference) {
  const Shape shape = {701, 6, 53};
  const Rows rows = make_rows(GetParam(), shape, 4);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const TableView queries(rows.queries.data(), shape.m, shape.d);
  const auto ranking = reference::rank(table, queries, {});
  const std::vector<Labels> outputs = {voting_labels(shape.n, 2, 1), voting_labels(shape.n, 10, 2),
                                       voting_labels(shape.n, 200, 3)};
  const double middle = ranking[0][20].distance;
  for (const int threads : {1, 2, 3, 7}) {
    const Context& context = context_of(available_isas().back(), threads);
    for (const Weighting weights : {Weighting::uniform, Weighting::distance}) {
      for (const std::int64_t k : {1, 2, 5, 20}) {
        const auto votes =
            vote(context, knn(context, table, queries, {.k = k}), outputs, {.weights = weights, .probabilities = true});
        ASSERT_EQ(votes.size(), outputs.size());
        const Classification at_once =
            classify(context, table, queries, outputs, {.k = k}, {.weights = weights, .probabilities = true});
        const NeighborGraph graph = reference::knn(ranking, k);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          const Vote expected = reference::vote(graph, outputs[i], weights);
          expect_same_vote(votes[i], expected, "k=" + std::to_string(k));
          expect_same_vote(at_once.votes[i], expected, "classify k=" + std::to_string(k));
        }
      }
      const NeighborGraph within = radius(context, table, queries, {.radius = middle});
      expect_same_vote(vote(context, within, outputs[1], {.weights = weights, .probabilities = true}),
                       reference::vote(reference::radius(ranking, middle), outputs[1], weights), "radius");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vote, VoteOfFamily,
                         ::testing::Values(Family::gaussian, Family::duplicates, Family::integer_ties,
                                           Family::clusters_1e3),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

// Distances below 2^-960 weigh as 0 does, so that no sum of reciprocals overflows (contract clause 14).
TEST(Vote, TinyDistancesCountAsZero) {
  NeighborGraph graph;
  graph.rows = 4;
  graph.k = 3;
  graph.table_rows = 3;
  graph.ids = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  graph.distances = {0, 0x1p-961, 1, 0x1p-1074, 0x1p-961, 0x1p-960, 0x1p-960, 0x1p-959, 1, 0, 0x1p-960, 1};
  const Labels labels = encode_labels(std::vector<std::int64_t>{8, 7, 7});
  const Vote got = vote(context_of(available_isas().back(), 1), graph, labels,
                        {.weights = Weighting::distance, .probabilities = true});
  expect_same_vote(got, reference::vote(graph, labels, Weighting::distance), "tiny distances");
  EXPECT_EQ(got.codes, (std::vector<std::int32_t>{0, 0, 1, 1}));
  EXPECT_EQ(got.probabilities, (std::vector<double>{0.5, 0.5, 0.5, 0.5, 1.0 / 3, 2.0 / 3, 0, 1}));
}

TEST(Vote, CustomWeightsAreTheCallers) {
  const Shape shape = {97, 3, 11};
  const Rows rows = make_rows(Family::gaussian, shape, 5);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const Context& context = context_of(available_isas().back(), 3);
  const NeighborGraph graph = knn(context, table, TableView(rows.queries.data(), shape.m, shape.d), {.k = 7});
  const Labels labels = voting_labels(shape.n, 4, 1);
  const auto ones = [](std::span<const double>, std::span<double> weights) {
    std::fill(weights.begin(), weights.end(), 1.0);
  };
  const Vote custom =
      vote(context, graph, labels, {.weights = Weighting::custom, .custom = ones, .probabilities = true});
  expect_same_vote(custom, vote(context, graph, labels, {.probabilities = true}), "custom");
  for (const double wrong : {-1.0, -0x1p-1074, std::nan(""), HUGE_VAL}) {
    const auto one_wrong = [&](std::span<const double>, std::span<double> weights) {
      std::fill(weights.begin(), weights.end(), 1.0);
      weights.back() = wrong;
    };
    try {
      (void)vote(context, graph, labels, {.weights = Weighting::custom, .custom = one_wrong});
      ADD_FAILURE() << wrong << " passed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("rank 6: weights must be finite and not negative"), std::string::npos);
    }
  }
  // All weight on the last neighbor: its class wins.
  const auto last = [](std::span<const double>, std::span<double> weights) {
    std::fill(weights.begin(), weights.end(), 0.0);
    weights.back() = 1;
  };
  const Vote farthest = vote(context, graph, labels, {.weights = Weighting::custom, .custom = last});
  for (std::int64_t i = 0; i < graph.rows; ++i) {
    EXPECT_EQ(farthest.codes[static_cast<std::size_t>(i)],
              labels.codes[static_cast<std::size_t>(graph.ids_of(i).back())]);
  }
}

// Weights that the caller has made, of lists of one length and of several.
TEST(Vote, GivenWeightsAreTheCallers) {
  const Shape shape = {211, 3, 37};
  const Rows rows = make_rows(Family::gaussian, shape, 5);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const TableView queries(rows.queries.data(), shape.m, shape.d);
  const std::vector<Labels> outputs = {voting_labels(shape.n, 4, 1), voting_labels(shape.n, 30, 2)};
  const std::vector<double> targets(rows.table.begin(), rows.table.begin() + shape.n);
  const TableView target_table(targets.data(), shape.n, 1);
  for (const Way& way : some_ways(2)) {
    if (is_of_a_paper(way.method)) continue;
    const Context& context = context_of(way);
    for (const NeighborGraph& graph :
         {knn(context, table, queries, {.k = 7}), radius(context, table, queries, {.radius = 1.5})}) {
      std::vector<double> given;
      for (std::size_t i = 0; i < graph.ids.size(); ++i) {
        given.push_back(i % 5 == 3 ? 0 : 0.1 * static_cast<double>(i * 2654435761U % 97));
      }
      for (std::int64_t i = 0; i < graph.rows; ++i) {  // some weight in each list
        if (!graph.ids_of(i).empty()) given[static_cast<std::size_t>(graph.ids_of(i).data() - graph.ids.data())] = 0.3;
      }
      VoteOptions voting{.weights = Weighting::given, .probabilities = true};
      voting.given = given;
      const auto votes = vote(context, graph, outputs, voting);
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const Vote expected = reference::vote(graph, outputs[o], Weighting::given, given);
        EXPECT_EQ(votes[o].codes, expected.codes) << describe(way);
        for (std::size_t i = 0; i < expected.probabilities.size(); ++i) {
          ASSERT_EQ(votes[o].probabilities[i], expected.probabilities[i]) << describe(way) << i;
        }
      }
      RegressOptions averaging{.weights = Weighting::given, .outlier = -7};
      averaging.given = given;
      const auto means = average(context, graph, target_table, averaging);
      EXPECT_EQ(means, reference::average(graph, targets, 1, Weighting::given, -7, given)) << describe(way);
    }
  }
}

TEST(Vote, GivenWeightsThatAreRefused) {
  const std::vector<double> line = {0, 1, 2, 3, 4, 5};
  const TableView table(line.data(), 6, 1);
  const Context& context = context_of(available_isas().front(), 1);
  const NeighborGraph graph = knn(context, table, {.k = 2});
  const Labels labels = voting_labels(6, 2, 1);
  std::vector<double> given(12, 1);
  const auto voted = [&] {
    VoteOptions voting{.weights = Weighting::given};
    voting.given = given;
    (void)vote(context, graph, labels, voting);
  };
  const auto averaged = [&] {
    RegressOptions averaging{.weights = Weighting::given};
    averaging.given = given;
    (void)average(context, graph, table, averaging);
  };
  const auto bad = ErrorCode::invalid_argument;
  for (const double wrong : {-1.0, -0x1p-1074, std::nan(""), HUGE_VAL}) {
    given[7] = wrong;
    refused(voted, bad, "vote: query row 3 got the given weight ");
    refused(voted, bad, " for its neighbor of rank 1: weights must be finite and not negative");
    refused(averaged, bad, "average: query row 3 got the given weight ");
  }
  given[6] = given[7] = std::numeric_limits<double>::max();
  refused(voted, bad, "query row 3 got weights whose sum is beyond a float64");
  given.pop_back();
  refused(voted, bad, "vote: weights: there are 11 for 12 neighbors");
  refused(averaged, bad, "average: weights: there are 11 for 12 neighbors");
  // A search and its vote in one call have no lists that they could belong to.
  const auto none = "weights are given, which only vote and average take";
  refused(
      [&] {
        (void)classify(context, table, table, std::vector<Labels>{labels}, {.k = 2}, {.weights = Weighting::given});
      },
      bad, none);
  refused([&] { (void)regress(context, table, table, table, {.k = 2}, {.weights = Weighting::given}); }, bad, none);
  refused(
      [&] {
        (void)cross_validate(context, table, labels, {.k = 1, .k_to = 2, .folds = 2, .weights = Weighting::given});
      },
      bad, none);
  // All weights 0: the smallest label among the neighbors, and no share.
  given.assign(12, 0);
  VoteOptions voting{.weights = Weighting::given, .probabilities = true};
  voting.given = given;
  const Vote nothing = vote(context, graph, labels, voting);
  EXPECT_EQ(nothing.codes, vote(context, graph, labels,
                                {.weights = Weighting::custom,
                                 .custom = [](auto, auto weights) { std::fill(weights.begin(), weights.end(), 0.0); }})
                               .codes);
  EXPECT_EQ(nothing.probabilities, std::vector<double>(12, 0));
}

TEST(Vote, TextLabelsSortByByteAndTiesGoToTheSmaller) {
  const std::vector<std::string> texts = {"b", "a", "B", "b", "a", "aa"};
  const Labels labels = encode_labels(texts);
  EXPECT_EQ(std::get<std::vector<std::string>>(labels.classes), (std::vector<std::string>{"B", "a", "aa", "b"}));
  const std::vector<double> line = {0, 1, 2, 3, 4, 5};
  const std::vector<double> query = {0.5};
  const Context& context = context_of(available_isas().front(), 1);
  const NeighborGraph graph = knn(context, TableView(line.data(), 6, 1), TableView(query.data(), 1, 1), {.k = 2});
  EXPECT_EQ(labels.name_of(vote(context, graph, labels).codes[0]), "a");
}

}  // namespace
}  // namespace vicinal::contract
