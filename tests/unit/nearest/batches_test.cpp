// radius_batches: how batches are cut where memory is short, what is refused, and how a search ends between two
// batches. Which neighbors there are is tested against the reference (tests/contract/check.cpp).
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "cpu/nearest/batch_steps.hpp"
#include "refusal.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal {
namespace {

TEST(BatchSteps, FillTheRoomAndHalveWhereItIsTooSmall) {
  const kernels::Handover handover{1000, {}};
  cpu::BatchSteps steps(4096, &handover);
  EXPECT_EQ(steps.next(), 4096);
  steps.failed(4096);
  EXPECT_EQ(steps.next(), 2048);
  steps.fitted(100, 500);
  EXPECT_EQ(steps.next(), 170);  // 0.85 of the room
  steps.fitted(100, 10);
  EXPECT_EQ(steps.next(), 400);  // at most four times as many
  steps.fitted(4000, 0);
  EXPECT_EQ(steps.next(), 4096);
  steps.fitted(3, 1000);
  steps.fitted(1, 1000);
  EXPECT_EQ(steps.next(), 1);
  EXPECT_THROW(steps.failed(1), kernels::NoRoom);
}

TEST(BatchSteps, StayAsTheyAreWhereAllListsAreKept) {
  cpu::BatchSteps steps(4096, nullptr);
  steps.fitted(4096, std::uint64_t{1} << 40);
  EXPECT_EQ(steps.next(), 4096);
}

class RadiusBatches : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 2500;
  static constexpr std::int64_t kQueries = 300;
  static constexpr std::int64_t kCols = 4;

  RadiusBatches() : values_(static_cast<std::size_t>(kRows * kCols)) {
    std::mt19937 random(11);
    std::uniform_real_distribution<float> uniform;
    for (float& value : values_) value = uniform(random);
  }

  [[nodiscard]] TableView table() const { return {values_.data(), kRows, kCols}; }
  [[nodiscard]] TableView queries() const { return table().slice(100, 100 + kQueries); }
  [[nodiscard]] static Context context(std::uint64_t limit, CancelToken cancel = {}) {
    return Context::cpu({.threads = 2, .memory_limit = limit, .cancel = cancel});
  }
  /// The least limit with which such a search begins.
  [[nodiscard]] std::uint64_t least_limit(const RadiusOptions& options) const {
    const Context ctx = context(std::uint64_t{1} << 40);
    const TableView asked = queries();
    std::uint64_t low = 1;
    std::uint64_t high = plan_radius_batches(ctx, table(), &asked, options).memory;
    while (low < high) {
      const std::uint64_t middle = (low + high) / 2;
      const bool begins = plan_radius_batches(ctx.with_memory_limit(middle), table(), &asked, options).memory <= middle;
      (begins ? high : low) = begins ? middle : middle + 1;
    }
    return high;
  }

  /// The limit with which a search in an index leaves so much room for lists.
  [[nodiscard]] std::uint64_t limit_with_room(const Index& index, const RadiusOptions& options,
                                              std::uint64_t room) const {
    const auto nothing = [](std::int64_t, const NeighborGraph&) {};
    const Context ctx = context(std::uint64_t{1} << 40);
    const TableView asked = queries();
    radius_batches(ctx, index, asked, options, nothing);  // makes the tree
    return radius_batches(ctx, index, asked, options, nothing).plan.memory + room +
           plan_radius(ctx, table(), &asked, options).memory -
           plan_radius_batches(ctx, table(), &asked, options).memory;
  }

  std::vector<float> values_;
};

constexpr Method kMethodsWithin[] = {Method::fused, Method::direct, Method::kdtree};

TEST_F(RadiusBatches, AreCutWhereMemoryIsShortAndChangeNoBit) {
  for (const Method method : kMethodsWithin) {
    for (const double radius : {0.0, 0.2, 9.0}) {
      const RadiusOptions options = {.radius = radius, .method = method};
      const Index index(context(0), table());
      const NeighborGraph expected = vicinal::radius(context(0), index, queries(), options);
      constexpr std::uint64_t kRoom = 64 * kRows + (64 << 10);  // for one list of every row
      const std::uint64_t limit = limit_with_room(index, options, kRoom);
      NeighborGraph joined;
      joined.offsets = {0};
      std::int64_t batches = 0;
      const RadiusSummary found = radius_batches(
          context(limit), index, queries(), options, [&](std::int64_t first, const NeighborGraph& lists) {
            EXPECT_EQ(first, joined.rows);
            EXPECT_EQ(lists.table_rows, kRows);
            EXPECT_LE(lists.ids.size() * 32, kRoom) << "more than there is room for";
            joined.rows += lists.rows;
            joined.ids.insert(joined.ids.end(), lists.ids.begin(), lists.ids.end());
            joined.distances.insert(joined.distances.end(), lists.distances.begin(), lists.distances.end());
            for (std::int64_t i = 0; i < lists.rows; ++i) {
              joined.offsets.push_back(joined.offsets.back() + static_cast<std::int64_t>(lists.ids_of(i).size()));
            }
            ++batches;
          });
      EXPECT_EQ(joined.ids, expected.ids);
      EXPECT_EQ(joined.distances, expected.distances);
      EXPECT_EQ(joined.offsets, expected.offsets);
      EXPECT_EQ(found.rows, kQueries);
      EXPECT_EQ(found.neighbors, static_cast<std::int64_t>(expected.ids.size()));
      EXPECT_LE(found.plan.memory, limit);
      if (radius == 9) {
        EXPECT_GE(batches, kQueries / 4) << name_of(method);
      }
      if (radius == 0) {
        EXPECT_LE(batches, 2) << name_of(method);
      }
    }
  }
}

// A table searched for few queries is divided among workers, whose parts of a list are joined.
TEST_F(RadiusBatches, OfFewQueries) {
  const TableView few = table().slice(5, 9);
  const RadiusOptions options = {.radius = 9, .method = Method::direct};
  const NeighborGraph expected = vicinal::radius(context(0), table(), few, options);
  std::vector<std::int64_t> ids;
  const std::uint64_t limit = plan_radius_batches(context(0).with_memory_limit(1), table(), &few, options).memory;
  const RadiusSummary found =
      radius_batches(context(limit), table(), few, options, [&](std::int64_t /*first*/, const NeighborGraph& lists) {
        ids.insert(ids.end(), lists.ids.begin(), lists.ids.end());
      });
  EXPECT_EQ(ids, expected.ids);
  EXPECT_EQ(found.stats.survivors, expected.stats.survivors);
}

TEST_F(RadiusBatches, OneNumberIsTold) {
  for (const Method method : kMethodsWithin) {
    const RadiusOptions options = {.radius = 9, .method = method};
    const auto nothing = [](std::int64_t, const NeighborGraph&) {};
    const TableView asked = queries();
    const std::uint64_t told = plan_radius_batches(context(0).with_memory_limit(1), table(), &asked, options).memory;
    EXPECT_EQ(plan_radius_batches(context(std::uint64_t{1} << 40), table(), &asked, options).memory, told);
    EXPECT_NO_THROW(radius_batches(context(told), table(), asked, options, nothing));
    // Where one list is found not to fit, the number is that of the search in the index, which is there by now.
    const Index index(context(0), table(), {.packed = Packing::never});
    const std::uint64_t least = limit_with_room(index, options, 64 << 10);
    const std::string sentence =
        refusal(ErrorCode::over_memory, [&] { radius_batches(context(least), index, asked, options, nothing); });
    ASSERT_NE(sentence.find('('), std::string::npos) << sentence;
    const std::uint64_t again = std::stoull(sentence.substr(sentence.find('(') + 1));
    EXPECT_LE(again, told);
    EXPECT_NO_THROW(radius_batches(context(again), index, asked, options, nothing));
  }
}

TEST_F(RadiusBatches, EndBetweenTwoOfThem) {
  const CancelToken cancel;
  const RadiusOptions options = {.radius = 9, .method = Method::direct};
  const std::uint64_t limit = least_limit(options) + 64 * kRows;
  int taken = 0;
  const auto code = [&](const TakeLists& take) {
    try {
      radius_batches(context(limit, cancel), table(), queries(), options, take);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code([&](std::int64_t, const NeighborGraph&) {
              ++taken;
              throw Error(ErrorCode::io, "no more");
            }),
            ErrorCode::io);
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(code([&](std::int64_t, const NeighborGraph&) {
              ++taken;
              cancel.cancel();
            }),
            ErrorCode::cancelled);
  EXPECT_EQ(taken, 2);
}

// Votes and means come from batches, too, and their sentences name rows of the queries.
TEST_F(RadiusBatches, VoteAndAverage) {
  const RadiusOptions options = {.radius = 9, .method = Method::direct};
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < kRows; ++i) classes.push_back(i % 7);
  const Labels labels = encode_labels(classes);
  const std::vector<double> targets(static_cast<std::size_t>(kRows), 2.5);
  const TableView means_of(targets.data(), kRows, 1);
  const std::uint64_t limit = least_limit(options) + 64 * kRows + (1 << 20);
  const NeighborGraph all = vicinal::radius(context(0), table(), queries(), options);
  const VoteOptions voting = {.weights = Weighting::distance, .probabilities = true};
  const Classification voted = classify_radius(context(limit), table(), queries(), {&labels, 1}, options, voting);
  const Vote expected = vote(context(0), all, labels, voting);
  EXPECT_EQ(voted.votes[0].codes, expected.codes);
  EXPECT_EQ(voted.votes[0].probabilities, expected.probabilities);
  EXPECT_EQ(regress_radius(context(limit), table(), queries(), means_of, options).values,
            std::vector<double>(static_cast<std::size_t>(kQueries), 2.5));

  RegressOptions averaging = {.weights = Weighting::custom};
  const double last = all.distances_of(kQueries - 1)[7];
  averaging.custom = [last](std::span<const double> distances, std::span<double> weights) {
    std::fill(weights.begin(), weights.end(), distances[7] == last ? -1.0 : 1.0);
  };
  const std::string sentence = refusal(ErrorCode::invalid_argument, [&] {
    (void)regress_radius(context(limit), table(), queries(), means_of, options, averaging);
  });
  EXPECT_NE(sentence.find("query row " + std::to_string(kQueries - 1)), std::string::npos) << sentence;
}

TEST_F(RadiusBatches, NeedAFunction) {
  const std::string sentence =
      refusal(ErrorCode::invalid_argument, [&] { radius_batches(context(0), table(), {.radius = 1}, {}); });
  EXPECT_NE(sentence.find("take"), std::string::npos);
}

}  // namespace
}  // namespace vicinal
