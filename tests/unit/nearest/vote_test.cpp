// vote: encoding, weights, ties, probabilities, every kind of graph, and everything it refuses.
#include "vicinal/vote.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "core/infinity.hpp"
#include "refusal.hpp"

namespace vicinal {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Labels labels_of(const std::vector<std::int64_t>& values) {
  return encode_labels(std::span(values));
}

/// One query whose neighbors are rows 0, 1, 2 ... at the given distances.
NeighborGraph one_query(const std::vector<double>& distances) {
  NeighborGraph graph;
  graph.rows = 1;
  graph.k = static_cast<std::int64_t>(distances.size());
  graph.table_rows = graph.k;
  graph.distances = distances;
  for (std::int64_t i = 0; i < graph.k; ++i) graph.ids.push_back(i);
  return graph;
}

Context one_thread() {
  return Context::cpu({.threads = 1});
}

TEST(EncodeLabels, SortsIntegersByValue) {
  const Labels labels = labels_of({10, -3, 10, 2, -3});
  EXPECT_EQ(std::get<0>(labels.classes), (std::vector<std::int64_t>{-3, 2, 10}));
  EXPECT_EQ(labels.codes, (std::vector<std::int32_t>{2, 0, 2, 1, 0}));
  EXPECT_EQ(labels.class_count(), 3);
  EXPECT_EQ(labels.name_of(0), "-3");
  EXPECT_FALSE(labels.is_text());
}

TEST(EncodeLabels, SortsTextByByte) {
  const std::vector<std::string> values = {"b", "", "\xc3\xa4", "B", "b"};
  const Labels labels = encode_labels(std::span(values));
  EXPECT_EQ(std::get<1>(labels.classes), (std::vector<std::string>{"", "B", "b", "\xc3\xa4"}));
  EXPECT_EQ(labels.codes, (std::vector<std::int32_t>{2, 0, 3, 1, 2}));
  EXPECT_EQ(labels.name_of(1), "B");
  EXPECT_TRUE(labels.is_text());
}

TEST(EncodeLabels, RefusesAnEmptyListAndCodesThatAreNotThere) {
  refusal(ErrorCode::bad_data, [] { labels_of({}); });
  const Labels labels = labels_of({1, 2});
  refusal(ErrorCode::invalid_argument, [&] { std::ignore = labels.name_of(2); });
  refusal(ErrorCode::invalid_argument, [&] { std::ignore = labels.name_of(-1); });
}

TEST(Vote, UniformTakesTheMostFrequentLabel) {
  const Vote won = vote(one_thread(), one_query({1, 2, 3, 4, 5}), labels_of({7, 3, 7, 3, 7}), {.probabilities = true});
  EXPECT_EQ(won.codes, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(won.class_count, 2);
  EXPECT_EQ(won.probabilities, (std::vector<double>{0.4, 0.6}));
}

TEST(Vote, TiesGoToTheSmallerLabelWhateverTheOrder) {
  EXPECT_EQ(vote(one_thread(), one_query({1, 2, 3, 4}), labels_of({9, 5, 5, 9})).codes[0], 0);
  EXPECT_EQ(vote(one_thread(), one_query({1, 2, 3, 4}), labels_of({5, 9, 9, 5})).codes[0], 0);
  EXPECT_EQ(vote(one_thread(), one_query({1, 2, 3}), labels_of({30, 20, 10})).codes[0], 0);
}

TEST(Vote, ByDistanceTheNearerWeighsMore) {
  const VoteOptions options = {.weights = Weighting::distance, .probabilities = true};
  const Vote won = vote(one_thread(), one_query({1, 4, 4}), labels_of({1, 0, 0}), options);
  EXPECT_EQ(won.codes[0], 1);
  EXPECT_EQ(won.probabilities, (std::vector<double>{0.5 / 1.5, 1 / 1.5}));
}

TEST(Vote, ByDistanceTheWeightsAreAddedInRankOrder) {
  const std::vector<double> distances = {0.1, 0.3, 0.7, 1.1, 1.3};
  double total = 0;
  for (const double d : distances) total += 1 / d;
  const VoteOptions options = {.weights = Weighting::distance, .probabilities = true};
  const Vote won = vote(one_thread(), one_query(distances), labels_of({0, 1, 0, 1, 0}), options);
  EXPECT_EQ(won.probabilities[0], (1 / 0.1 + 1 / 0.7 + 1 / 1.3) / total);
  EXPECT_EQ(won.probabilities[1], (1 / 0.3 + 1 / 1.1) / total);
}

TEST(Vote, ByDistanceNeighborsAtZeroTakeAllTheWeightEqually) {
  const VoteOptions options = {.weights = Weighting::distance, .probabilities = true};
  const Vote won = vote(one_thread(), one_query({0, 0, 0, 1e-9, 1e-9}), labels_of({2, 1, 2, 0, 0}), options);
  EXPECT_EQ(won.codes[0], 2);
  EXPECT_EQ(won.probabilities, (std::vector<double>{0, 1.0 / 3, 2.0 / 3}));
}

TEST(Vote, ByDistanceTheSmallestDistancesStayFinite) {
  const VoteOptions options = {.weights = Weighting::distance, .probabilities = true};
  for (const double tiny : {4.9e-324, 1e-310, 1e-300, 0x1p-960, 1e-200}) {
    const Vote won = vote(one_thread(), one_query({tiny, tiny, 1}), labels_of({1, 1, 0}), options);
    EXPECT_EQ(won.codes[0], 1);
    EXPECT_TRUE(won.probabilities[0] >= 0 && won.probabilities[0] < 1e-100);
    EXPECT_EQ(won.probabilities[1], 1);
  }
}

TEST(Vote, ByDistanceRefusesDistancesThatCannotBeInverted) {
  const VoteOptions options = {.weights = Weighting::distance};
  for (const double bad : {-1.0, kNan}) {
    const std::string what = refusal(ErrorCode::invalid_argument, [&] {
      vote(one_thread(), one_query({1, bad}), labels_of({0, 1}), options);
    });
    EXPECT_NE(what.find("row 0"), std::string::npos) << what;
  }
  NeighborGraph graph = one_query({-2, -1});
  graph.metric = Metric::inner_product;
  refusal(ErrorCode::invalid_argument, [&] { vote(one_thread(), graph, labels_of({0, 1}), options); });
  EXPECT_NO_THROW(vote(one_thread(), graph, labels_of({0, 1})));
}

TEST(Vote, CustomWeightsAreUsedAsGiven) {
  const WeightFn reversed = [](std::span<const double> distances, std::span<double> weights) {
    ASSERT_EQ(distances.size(), weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = distances[i] * distances[i];
  };
  const VoteOptions options = {.weights = Weighting::custom, .custom = reversed, .probabilities = true};
  const Vote won = vote(one_thread(), one_query({1, 2, 3}), labels_of({0, 0, 1}), options);
  EXPECT_EQ(won.codes[0], 1);
  EXPECT_EQ(won.probabilities, (std::vector<double>{5.0 / 14, 9.0 / 14}));
}

TEST(Vote, WithoutWeightTheSmallestLabelAmongTheNeighborsWinsWithoutProbability) {
  const WeightFn nothing = [](std::span<const double>, std::span<double> weights) {
    std::fill(weights.begin(), weights.end(), 0.0);
  };
  NeighborGraph graph = one_query({1, 2});
  graph.table_rows = 3;
  const VoteOptions options = {.weights = Weighting::custom, .custom = nothing, .probabilities = true};
  const Vote won = vote(one_thread(), graph, labels_of({6, 5, 4}), options);
  EXPECT_EQ(won.codes[0], 1);
  EXPECT_EQ(won.probabilities, (std::vector<double>{0, 0, 0}));
}

TEST(Vote, BadCustomWeightsAreRefusedByQueryRow) {
  NeighborGraph graph = one_query({1, 2});
  graph.rows = 3;
  graph.ids = {0, 1, 1, 0, 0, 1};
  graph.distances = {1, 2, 1, 2, 5, 6};
  for (const double bad : {-1.0, kNan, kInfinity, 1.7e308}) {
    const WeightFn custom = [bad](std::span<const double> distances, std::span<double> weights) {
      std::fill(weights.begin(), weights.end(), distances[0] == 5 ? bad : 1);
    };
    const VoteOptions options = {.weights = Weighting::custom, .custom = custom};
    const std::string what = refusal(ErrorCode::invalid_argument, [&] {
      vote(one_thread(), graph, labels_of({0, 1}), options);
    });
    EXPECT_NE(what.find("row 2"), std::string::npos) << what;
  }
  refusal(ErrorCode::invalid_argument, [&] {
    vote(one_thread(), graph, labels_of({0, 1}), {.weights = Weighting::custom});
  });
}

TEST(Vote, AnExceptionOfTheCustomFunctionArrives) {
  const VoteOptions options = {.weights = Weighting::custom, .custom = [](std::span<const double>, std::span<double>) {
                                 throw std::logic_error("x");
                               }};
  EXPECT_THROW(vote(one_thread(), one_query({1}), labels_of({0}), options), std::logic_error);
}

TEST(Vote, CsrRowsMayDifferInLengthAndBeEmpty) {
  NeighborGraph graph;
  graph.rows = 3;
  graph.table_rows = 4;
  graph.offsets = {0, 3, 3, 4};
  graph.ids = {0, 1, 2, 3};
  graph.distances = {1, 2, 3, 1};
  const Vote won = vote(one_thread(), graph, labels_of({5, 6, 6, 7}), {.probabilities = true});
  EXPECT_EQ(won.codes, (std::vector<std::int32_t>{1, -1, 2}));
  EXPECT_EQ(won.probabilities, (std::vector<double>{1.0 / 3, 2.0 / 3, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(Vote, SeveralOutputsAreVotedOnAtOnce) {
  const std::vector<std::string> texts = {"x", "y", "y"};
  const std::vector<Labels> outputs = {labels_of({1, 1, 2}), encode_labels(std::span(texts))};
  const std::vector<Vote> won = vote(one_thread(), one_query({1, 2, 3}), std::span<const Labels>(outputs));
  ASSERT_EQ(won.size(), 2U);
  EXPECT_EQ(won[0].codes[0], 0);
  EXPECT_EQ(won[1].codes[0], 1);
}

TEST(Vote, GraphsAndLabelsThatDoNotFitAreRefused) {
  const Context ctx = one_thread();
  const NeighborGraph good = one_query({1, 2, 3});
  const Labels labels = labels_of({0, 1, 2});
  const auto refused = [&](auto change, const Labels& with) {
    NeighborGraph graph = good;
    change(graph);
    refusal(ErrorCode::invalid_argument, [&] { vote(ctx, graph, with); });
  };
  refused([](NeighborGraph&) {}, labels_of({0, 1}));
  Labels wild = labels;
  wild.codes[1] = 3;
  refused([](NeighborGraph&) {}, wild);
  wild.codes[1] = -1;
  refused([](NeighborGraph&) {}, wild);
  refused([](NeighborGraph& graph) { graph.ids[1] = 3; }, labels);
  refused([](NeighborGraph& graph) { graph.ids[1] = -1; }, labels);
  refused([](NeighborGraph& graph) { graph.ids.pop_back(); }, labels);
  refused([](NeighborGraph& graph) { graph.k = 2; }, labels);
  refused([](NeighborGraph& graph) { graph.rows = -1; }, labels);
  refused([](NeighborGraph& graph) { graph.offsets = {0, 2}; }, labels);
  refused([](NeighborGraph& graph) { graph.offsets = {1, 3}; }, labels);
  refused([](NeighborGraph& graph) { graph.offsets = {0, 3, 3}; }, labels);
  refused(
      [](NeighborGraph& graph) {
        graph.rows = 2;
        graph.offsets = {0, 4, 3};
      },
      labels);
}

TEST(Vote, IsRefusedBeforeItStartsWhenTheResultIsTooLarge) {
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = 10});
  refusal(ErrorCode::over_memory, [&] { vote(ctx, one_query({1, 2}), labels_of({0, 1}), {.probabilities = true}); });
}

TEST(Vote, GivesTheSameBitsOnAnyNumberOfThreads) {
  constexpr std::int64_t kRows = 20011;
  constexpr std::int64_t kTable = 97;
  NeighborGraph graph;
  graph.rows = kRows;
  graph.k = 7;
  graph.table_rows = kTable;
  for (std::int64_t i = 0; i < kRows * graph.k; ++i) {
    graph.ids.push_back(i * 31 % kTable);
    graph.distances.push_back(0.1 + static_cast<double>(i % 1009) / 7);
  }
  std::vector<std::int64_t> values(kTable);
  for (std::int64_t i = 0; i < kTable; ++i) values[static_cast<std::size_t>(i)] = i * i % 11;
  const VoteOptions options = {.weights = Weighting::distance, .probabilities = true};
  const Vote one = vote(one_thread(), graph, labels_of(values), options);
  for (const int threads : {2, 3, 7}) {
    const Vote many = vote(Context::cpu({.threads = threads}), graph, labels_of(values), options);
    EXPECT_EQ(many.codes, one.codes);
    ASSERT_EQ(many.probabilities.size(), one.probabilities.size());
    EXPECT_EQ(std::memcmp(many.probabilities.data(), one.probabilities.data(), one.probabilities.size() * 8), 0);
  }
  for (std::int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (std::int64_t c = 0; c < one.class_count; ++c) {
      sum += one.probabilities[static_cast<std::size_t>(row * one.class_count + c)];
    }
    ASSERT_TRUE(std::abs(sum - 1) <= 1e-14);
  }
}

TEST(Vote, IsCancelled) {
  const CancelToken token;
  token.cancel();
  const Context ctx = Context::cpu({.threads = 1, .cancel = token});
  refusal(ErrorCode::cancelled, [&] { vote(ctx, one_query({1}), labels_of({0})); });
}

}  // namespace
}  // namespace vicinal
