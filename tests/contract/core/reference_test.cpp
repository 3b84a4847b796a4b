// The reference itself on examples worked out by hand, so that the oracle of every other test is not taken on trust.
// fake device: -*

#include "reference/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/kmeans_problem.hpp"

namespace vicinal {
namespace {

using reference::key;

const std::vector<double> kX = {1, 2, 3};
const std::vector<double> kY = {4, 2, 1};

TEST(Reference, KeysByHand) {
  EXPECT_EQ(key(Metric::euclidean, 2, kX, kY), 13);
  EXPECT_EQ(key(Metric::sqeuclidean, 2, kX, kY), 13);
  EXPECT_EQ(key(Metric::manhattan, 2, kX, kY), 5);
  EXPECT_EQ(key(Metric::chebyshev, 2, kX, kY), 3);
  EXPECT_EQ(key(Metric::minkowski, 3, kX, kY), 35);
  EXPECT_EQ(key(Metric::inner_product, 2, kX, kY), -11);
  EXPECT_EQ(key(Metric::hamming, 2, kX, kY), 2.0 / 3);
}

TEST(Reference, CosineByHand) {
  const std::vector<double> along = {3, 0, 4};
  const std::vector<double> twice = {6, 0, 8};
  const std::vector<double> across = {0, 1, 0};
  const std::vector<double> against = {-3, 0, -4};
  const std::vector<double> zero = {0, -0.0, 0};
  EXPECT_EQ(key(Metric::cosine, 2, along, twice), 0);
  EXPECT_EQ(key(Metric::cosine, 2, along, across), (0.6 * 0.6 + 0.8 * 0.8 + 1) / 2);
  EXPECT_EQ(key(Metric::cosine, 2, along, against), 2);
  EXPECT_EQ(key(Metric::cosine, 2, zero, along), 1);
  EXPECT_EQ(key(Metric::cosine, 2, zero, zero), 1);
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(key(Metric::cosine, 2, std::vector<double>{3 * tiny, 0, 4 * tiny}, along), 0);
  EXPECT_EQ(key(Metric::cosine, 2, std::vector<double>{0x1.8p1022, 0, 0x1p1023}, along), 0);
}

TEST(Reference, AccumulatorsMeetInTheContractsTree) {
  // Accumulators 0 and 4 meet first: 2^53 + 1 loses the 1. Accumulators 1 and 5 meet first: 1 + 1 is kept.
  const std::vector<double> zero(8, 0.0);
  EXPECT_EQ(key(Metric::manhattan, 2, std::vector<double>{0x1p53, 1, 0, 0, 1, 0, 0, 0}, zero), 0x1p53);
  EXPECT_EQ(key(Metric::manhattan, 2, std::vector<double>{0x1p53, 1, 0, 0, 0, 1, 0, 0}, zero), 0x1p53 + 2);
  EXPECT_EQ(key(Metric::manhattan, 2, std::vector<double>{0x1p53, 0, 1, 0, 0, 0, 1, 0}, zero), 0x1p53 + 2);
  EXPECT_EQ(key(Metric::manhattan, 2, std::vector<double>{1, 0x1p53, 0, 0, 1, 0, 0, 0}, zero), 0x1p53 + 2);
  // Column 8 goes to accumulator 0 again, after column 0.
  EXPECT_EQ(key(Metric::manhattan, 2, std::vector<double>{0x1p53, 0, 0, 0, 0, 0, 0, 0, 1}, std::vector<double>(9, 0.0)),
            0x1p53);
}

TEST(Reference, EveryStepOfASumIsFused) {
  const std::vector<double> x = {1 + 0x1p-30, 0, 0, 0, 0, 0, 0, 0, 0x1p-31};
  // Unfused, (1 + 2^-30)^2 would lose 2^-60 first; fused from 0 it is rounded as well, then 2^-62 is lost.
  EXPECT_EQ(key(Metric::euclidean, 2, x, std::vector<double>(9, 0.0)), 1 + 0x1p-29);
  const std::vector<double> y = {0x1p-31, 0, 0, 0, 0, 0, 0, 0, 1 + 0x1p-27};
  EXPECT_EQ(key(Metric::euclidean, 2, y, std::vector<double>(9, 0.0)), std::fma(1 + 0x1p-27, 1 + 0x1p-27, 0x1p-62));
  EXPECT_FALSE(std::signbit(key(Metric::inner_product, 2, std::vector<double>{0, 1}, std::vector<double>{1, 0})));
}

TEST(Reference, ReportedDistances) {
  EXPECT_EQ(reference::distance_of(Metric::euclidean, 2, 2), std::sqrt(2.0));
  EXPECT_EQ(reference::distance_of(Metric::sqeuclidean, 2, 2), 2);
  EXPECT_EQ(reference::distance_of(Metric::minkowski, 4, 16), 2);
  EXPECT_EQ(reference::distance_of(Metric::minkowski, 1, 7), 7);
  EXPECT_EQ(reference::distance_of(Metric::inner_product, 2, -3), -3);
}

TEST(Reference, WidensEveryDtype) {
  const std::vector<std::uint8_t> bytes = {0, 255};
  EXPECT_EQ(reference::widen(TableView(bytes.data(), 1, 2)), (std::vector<double>{0, 255}));
  const std::vector<float16> halves = {{0x3c00}, {0xc000}, {0x0001}, {0x7bff}, {0x03ff}, {0x0400}};
  EXPECT_EQ(reference::widen(TableView(halves.data(), 1, 6)),
            (std::vector<double>{1, -2, 0x1p-24, 65504, 1023 * 0x1p-24, 0x1p-14}));
  const std::vector<bfloat16> brains = {{0x3f80}, {0xc000}, {0x0001}, {0x7f7f}};
  EXPECT_EQ(reference::widen(TableView(brains.data(), 1, 4)), (std::vector<double>{1, -2, 0x1p-133, 0x1.fep127}));
  const std::vector<float> floats = {1.5F, -0x1p-149F};
  EXPECT_EQ(reference::widen(TableView(floats.data(), 1, 2)), (std::vector<double>{1.5, -0x1p-149}));
}

TEST(Reference, WidensStrides) {
  const std::vector<double> values = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(reference::widen(TableView(values.data(), DType::float64, 3, 2, 1, 3)),
            (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(reference::widen(TableView(values.data() + 5, DType::float64, 2, 3, -3, -1)),
            (std::vector<double>{5, 4, 3, 2, 1, 0}));
}

// Six rows on a line: 0 1 1 3 -1 9; the query is 0.
class ReferenceLine : public ::testing::Test {
 protected:
  std::vector<double> line_ = {0, 1, 1, 3, -1, 9};
  std::vector<double> query_ = {0};
  TableView table_{line_.data(), 6, 1};
  TableView queries_{query_.data(), 1, 1};
};

// The words of clause 8: of the counter low and high, of the stream low and high; the key is the seed, low and high.
// The answer is the third that Random123 publishes for Philox4x32-10: d16cfe09 94fdcceb 5001e420 24126ea1.
TEST(Reference, DrawsAreThePublishedNumbers) {
  reference::Draws draws{0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88};
  EXPECT_EQ(draws.next(), static_cast<double>(0xd16cfe0994fdccebULL >> 11) * 0x1p-53);
  EXPECT_EQ(draws.counter, 0x85a308d3243f6a89);
  reference::Draws zeros{0, 0};
  EXPECT_EQ(zeros.next(), static_cast<double>(0x6627e8d5e169c58dULL >> 11) * 0x1p-53);
}

TEST_F(ReferenceLine, TiesGoToTheSmallerId) {
  const auto ranking = reference::rank(table_, queries_, {});
  EXPECT_EQ(reference::knn(ranking, 6).ids, (std::vector<std::int64_t>{0, 1, 2, 4, 3, 5}));
  EXPECT_EQ(reference::knn(ranking, 2).distances, (std::vector<double>{0, 1}));
}

TEST_F(ReferenceLine, RadiusIsInclusive) {
  const auto ranking = reference::rank(table_, queries_, {});
  const NeighborGraph graph = reference::radius(ranking, 1);
  EXPECT_EQ(graph.ids, (std::vector<std::int64_t>{0, 1, 2, 4}));
  EXPECT_EQ(graph.offsets, (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(reference::count(ranking, std::nextafter(1.0, 0.0)), (std::vector<std::int64_t>{1}));
}

TEST_F(ReferenceLine, SelfFilterAndExcludeRemoveRows) {
  reference::Question question;
  question.self = true;
  EXPECT_EQ(reference::rank(table_, table_, question)[1][0].id, 2);  // its duplicate, not itself
  const std::uint64_t bits = 0b101110;
  question = {};
  question.filter = Bitmap(&bits, 1);
  EXPECT_EQ(reference::knn(reference::rank(table_, queries_, question), 4).ids,
            (std::vector<std::int64_t>{1, 2, 3, 5}));
  const std::int64_t excluded = 1;
  question = {};
  question.exclude = std::span(&excluded, 1);
  EXPECT_EQ(reference::knn(reference::rank(table_, queries_, question), 3).ids, (std::vector<std::int64_t>{0, 2, 4}));
}

TEST_F(ReferenceLine, OverflowingKeysAreListed) {
  line_[5] = 1e200;
  std::vector<std::pair<std::int64_t, std::int64_t>> overflow;
  (void)reference::rank(table_, queries_, {}, &overflow);
  ASSERT_EQ(overflow.size(), 1U);
  EXPECT_EQ(overflow[0], std::make_pair(std::int64_t{0}, std::int64_t{5}));
}

TEST_F(ReferenceLine, Votes) {
  const Labels labels = {std::vector<std::int64_t>{5, 7}, {1, 0, 0, 1, 1, 1}};
  query_[0] = 0.5;  // distances 0.5 0.5 0.5 1.5 2.5 8.5 of ids 0 1 2 4 3 5
  const auto ranking = reference::rank(table_, queries_, {});
  EXPECT_EQ(reference::vote(reference::knn(ranking, 4), labels, Weighting::uniform).codes[0],
            0);  // 2 : 2, smaller label
  EXPECT_EQ(reference::vote(reference::knn(ranking, 5), labels, Weighting::uniform).codes[0], 1);  // 2 : 3
  const Vote weighted = reference::vote(reference::knn(ranking, 6), labels, Weighting::distance);
  EXPECT_EQ(weighted.codes[0], 0);  // 4 : 2 + 2/3 + 2/5 + 2/17
  EXPECT_EQ(reference::vote(reference::knn(ranking, 5), labels, Weighting::uniform).probabilities,
            (std::vector<double>{2.0 / 5, 3.0 / 5}));
  EXPECT_EQ(reference::vote(reference::radius(ranking, 0.1), labels, Weighting::uniform).codes[0], -1);
}

}  // namespace
}  // namespace vicinal
