// Cancel polls of searches in shards and their merge, counted on one thread. The expected numbers are those of the
// loops.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/in_steps.hpp"
#include "counted_polls.hpp"
#include "ops/nearest/part_fit.hpp"
#include "ops/nearest/part_lists.hpp"
#include "vicinal/communicator.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/radius_batches.hpp"
#include "vicinal/shards.hpp"

namespace vicinal {
namespace {

/// Queries of a table of two rows.
struct PolledShard {
  explicit PolledShard(std::int64_t queries) : rows(polled_rows(queries, 1)) {}
  [[nodiscard]] TableView table() const { return {rows.data(), 2, 1}; }
  [[nodiscard]] TableView queries() const { return {rows.data(), std::ssize(rows), 1}; }

  Context ctx = polled_context();
  std::vector<float> rows;
};

TEST(Polls, ExcludedRowsOfAShard) {
  const PolledShard shard(kBetweenLooks);
  const std::vector<std::int64_t> none(static_cast<std::size_t>(kBetweenLooks), -1);
  const auto polls = [&](std::span<const std::int64_t> exclude) {
    const KnnOptions options = {.k = 1, .method = Method::direct, .exclude = exclude};
    return polls_of([&] { (void)knn_part(shard.ctx, shard.table(), shard.queries(), options, {}); });
  };
  EXPECT_GE(polls(none), polls({}) + 1);
}

// Each plan and the search look at them as that of a part does, and one more look finds the most that are left out.
TEST(Polls, ExcludedRowsOfARank) {
  const PolledShard shard(kBetweenLooks);
  const std::vector<std::int64_t> none(static_cast<std::size_t>(kBetweenLooks), -1);
  const auto polls = [&](std::span<const std::int64_t> exclude) {
    const KnnOptions options = {.k = 1, .method = Method::direct, .exclude = exclude};
    Communicator self;
    return polls_of([&] { (void)knn(shard.ctx, self, shard.table(), 0, shard.queries(), options); });
  };
  EXPECT_EQ(polls(none), polls({}) + 3 + 1);
}

// A k that is too large is refused with the number of rows that a query may choose from.
TEST(Polls, ExcludedRowsThatAFilterAdmits) {
  const PolledShard shard(kBetweenLooks);
  const std::vector<std::int64_t> none(static_cast<std::size_t>(kBetweenLooks), -1);
  const std::vector<std::uint64_t> filter = {1};
  const auto polls = [&](std::span<const std::int64_t> exclude) {
    const KnnOptions options = {.k = 2, .method = Method::direct, .filter = filter, .exclude = exclude};
    Communicator self;
    return polls_of(
        [&] { EXPECT_THROW((void)knn(shard.ctx, self, shard.table(), 0, shard.queries(), options), Error); });
  };
  // Two of the excluded rows before, and one for the filter.
  EXPECT_EQ(polls(none), polls({}) + 2 + 1 + 1);
}

// Two queries of rank 1 or of rank 0, and lists of so many entries in the shard of rank 0. Only those of rank 1 travel:
// ids and keys are packed, there is room for them, and they become a part.
TEST(Polls, ListsThatTravel) {
  constexpr std::int64_t kCols = 4;
  const std::vector<float> rows = polled_rows(kBetweenLooks / 2 + 2, kCols);
  const auto polls = [&](int asking) {
    return polls_of([&] {
      std::vector<Communicator> ranks = Communicator::threads(2);
      std::vector<std::thread> threads;
      for (int rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
          const std::int64_t first = rank == 0 ? 0 : kBetweenLooks / 2;
          const TableView shard(rows.data() + first * kCols, rank == 0 ? kBetweenLooks / 2 : 2, kCols);
          const TableView asked(rows.data(), rank == asking ? 2 : 0, kCols);
          const RadiusOptions options = {.radius = 100, .method = Method::direct};
          const NeighborGraph found =
              radius(polled_context(), ranks[static_cast<std::size_t>(rank)], shard, first, asked, options);
          EXPECT_NE(found.plan.reason.find("all queries are sent"), std::string::npos) << found.plan.reason;
          EXPECT_EQ(std::ssize(found.ids), rank == asking ? kBetweenLooks + 4 : 0);
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
  };
  const auto of_room = [](std::int64_t entries) {
    return (2 * entries + core::kElementsPerStep - 1) / core::kElementsPerStep;
  };
  EXPECT_EQ(polls(1), polls(0) + 2 + 1 + of_room(kBetweenLooks) - of_room(4));
}

// With k above the number of rows all of them are found, as within an infinite radius, and listed.
TEST(Polls, AShardThatIsListedWhole) {
  const PolledShard shard(kBetweenLooks / 2);
  const RadiusOptions everything = {.radius = std::numeric_limits<double>::infinity(), .method = Method::direct};
  const auto forget = [](std::int64_t, const NeighborGraph&) {};
  const std::int64_t others =
      polls_of([&] { (void)radius_batches(shard.ctx, shard.table(), shard.queries(), everything, forget); });
  const KnnOptions options = {.k = 3, .method = Method::direct};
  EXPECT_GE(polls_of([&] { (void)knn_part(shard.ctx, shard.table(), shard.queries(), options, {}); }), others + 1);
}

/// What shard `number` of some, each of so many rows, has of these queries; lists and counts come later.
NeighborPart polled_part(PartKind kind, std::int64_t number, std::int64_t rows, std::int64_t queries) {
  NeighborPart part;
  part.info.kind = kind;
  part.info.place.first_id = number * rows;
  part.info.rows = rows;
  part.info.queries = queries;
  part.info.cols = 1;
  part.info.radius = 1;
  if (kind == PartKind::count) {
    part.counts.assign(static_cast<std::size_t>(queries), 0);
  } else {
    part.offsets.assign(static_cast<std::size_t>(queries) + 1, 0);
  }
  return part;
}

TEST(Polls, PartsThatAreChecked) {
  const Context ctx = polled_context();
  for (const PartKind kind : {PartKind::count, PartKind::radius}) {
    const NeighborPart part = polled_part(kind, 0, 1, kBetweenLooks);
    EXPECT_GE(polls_of([&] { ops::check_part(ctx, part, "x"); }), 1);
  }
}

TEST(Polls, PartsThatAreRead) {
  constexpr std::int64_t kParts = 16;
  const Context ctx = polled_context();
  const auto polls = [&](std::int64_t parts) {
    std::vector<NeighborPart> shards;
    for (std::int64_t i = 0; i < parts; ++i) shards.push_back(polled_part(PartKind::count, i, 1, 1));
    std::vector<PartSource> sources;
    for (const NeighborPart& shard : shards) sources.push_back(source_of(ctx, shard));
    return polls_of([&] { (void)merge_counts(ctx, sources); });
  };
  EXPECT_GE(polls(kParts), polls(1) + kParts - 1);
}

/// The same queries of all shards.
struct PolledLists : ops::PartLists {
  explicit PolledLists(const std::vector<NeighborPart>& parts) {
    queries = parts.front().info.queries;
    for (const NeighborPart& part : parts) {
      shards.push_back(&part);
      names.push_back(&name);
    }
  }
  std::string name = "x";
};

// Lists of one query are checked; the first one comes before the other, so that both are looked at until it ends, and
// then the other is copied. The result grows in one step.
TEST(Polls, ALongListOfTwoShards) {
  std::vector<NeighborPart> parts;
  for (std::int64_t number = 0; number < 2; ++number) {
    NeighborPart& part = parts.emplace_back(polled_part(PartKind::radius, number, kBetweenLooks, 1));
    for (std::int64_t i = 0; i < kBetweenLooks; ++i) part.ids.push_back(part.info.place.first_id + i);
    part.keys.assign(part.ids.size(), static_cast<double>(number));
    part.offsets.back() = kBetweenLooks;
  }
  const Context ctx = polled_context();
  NeighborGraph graph;
  graph.offsets.assign(1, 0);
  EXPECT_GE(polls_of([&] { ops::merge_radius_lists(ctx, PolledLists(parts), graph); }),
            2 + of_tasks(ctx, 1) + (1 + 1) + 1 + 1);
  EXPECT_EQ(std::ssize(graph.ids), 2 * kBetweenLooks);
}

// Where lists begin is added up, and empty ones are merged, by 16,384.
TEST(Polls, ManyListsOfTwoShards) {
  constexpr std::int64_t kQueries = kBetweenLooks / 2;
  const std::vector<NeighborPart> parts = {polled_part(PartKind::radius, 0, 1, kQueries),
                                           polled_part(PartKind::radius, 1, 1, kQueries)};
  const Context ctx = polled_context();
  NeighborGraph graph;
  graph.offsets.assign(1, 0);
  EXPECT_GE(polls_of([&] { ops::merge_radius_lists(ctx, PolledLists(parts), graph); }), 1 + of_tasks(ctx, 2));
}

TEST(Polls, CountsOfTwoShards) {
  constexpr std::int64_t kQueries = kBetweenLooks / 2;
  const std::vector<NeighborPart> parts = {polled_part(PartKind::count, 0, 1, kQueries),
                                           polled_part(PartKind::count, 1, 1, kQueries)};
  const Context ctx = polled_context();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(kQueries));
  EXPECT_GE(polls_of([&] { ops::add_counts(ctx, PolledLists(parts), counts.data()); }), 1);
}

// A file is written and read in pieces of 4 MiB. It is read once for its check sum, which is read alone, and after its
// first bytes; its header has two kinds of numbers.
TEST(Polls, PartsInFiles) {
  constexpr std::int64_t kPiece = (std::int64_t{4} << 20) / 8;
  const Context ctx = polled_context();
  const std::string path = ::testing::TempDir() + "vicinal_polls.part";
  const auto polls = [&](std::int64_t queries) {
    const NeighborPart part = polled_part(PartKind::count, 0, 1, queries);
    const std::int64_t writing = polls_of([&] { write_part(ctx, path, part); });
    return std::pair(writing, polls_of([&] { (void)open_part(ctx, path); }));
  };
  const auto [writing, reading] = polls(kPiece);
  const auto [writing_more, reading_more] = polls(kPiece + 1);
  std::filesystem::remove(path);
  EXPECT_GE(writing_more, writing + 1);
  EXPECT_GE(reading, 1 + 2 + 1 + 2);
  EXPECT_GE(reading_more, reading);
}

}  // namespace
}  // namespace vicinal
