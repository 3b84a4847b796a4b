// Communicator: what each operation gives on every rank, what it counts, and how a group ends (contract clause 4).
#include "vicinal/communicator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "ranks.hpp"
#include "refused.hpp"

namespace vicinal::contract {
namespace {

std::span<const std::byte> bytes_of(const std::vector<std::int64_t>& values) {
  return std::as_bytes(std::span(values));
}
std::span<std::byte> room_of(std::vector<std::int64_t>& values) {
  return std::as_writable_bytes(std::span(values));
}

TEST(Communicator, EveryOperationOnEveryRank) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const auto thrown = run_ranks(ranks, [&](Communicator& own) {
      const std::int64_t rank = own.rank();
      ASSERT_EQ(own.size(), ranks);
      std::uint64_t sent = 0;
      for (int turn = 0; turn < 40; ++turn) {
        const int root = turn % ranks;
        std::vector<std::int64_t> values = {rank, turn, -rank};
        own.broadcast(room_of(values), root);
        EXPECT_EQ(values, (std::vector<std::int64_t>{root, turn, -root}));
        sent += rank == root ? 24 : 0;

        // Parts of unequal sizes, one of them empty.
        std::vector<std::int64_t> part(static_cast<std::size_t>((rank + turn) % 3), 100 * rank + turn);
        std::vector<std::int64_t> sizes;
        std::vector<std::int64_t> expected;
        for (std::int64_t r = 0; r < ranks; ++r) {
          sizes.push_back((r + turn) % 3 * 8);
          expected.insert(expected.end(), static_cast<std::size_t>((r + turn) % 3), 100 * r + turn);
        }
        std::vector<std::int64_t> all(expected.size());
        own.all_gather(bytes_of(part), sizes, room_of(all));
        EXPECT_EQ(all, expected);
        sent += 8 * part.size();

        for (const std::size_t count : {0, 1, 5, 1000}) {
          std::vector<std::int64_t> sums(count);
          std::iota(sums.begin(), sums.end(), rank);
          std::vector<std::int64_t> most = sums;
          own.all_reduce_sum(sums);
          own.all_reduce_max(most);
          for (std::size_t i = 0; i < count; ++i) {
            EXPECT_EQ(sums[i], ranks * (ranks - 1) / 2 + ranks * static_cast<std::int64_t>(i));
            EXPECT_EQ(most[i], ranks - 1 + static_cast<std::int64_t>(i));
          }
          sent += 16 * count;
        }
        std::vector<std::int64_t> around = {rank, turn};
        std::vector<std::int64_t> arrived(2);
        own.send_receive(bytes_of(around), static_cast<int>((rank + 1) % ranks), room_of(arrived),
                         static_cast<int>((rank + ranks - 1) % ranks));
        EXPECT_EQ(arrived, (std::vector<std::int64_t>{(rank + ranks - 1) % ranks, turn}));
        sent += 16;
        own.barrier();
      }
      EXPECT_EQ(own.bytes_sent(), ranks == 1 ? 0 : sent);
    });
    expect_no_error(thrown, std::to_string(ranks));
  }
}

// Bits of numbers that only one rank has are summed with the zeros of the others.
TEST(Communicator, SumsAreModuloTwoToThe64) {
  expect_no_error(
      run_ranks(
          3,
          [](Communicator& own) {
            std::array<std::int64_t, 2> values = {std::numeric_limits<std::int64_t>::max(), own.rank() == 1 ? -5 : 0};
            own.all_reduce_sum(values);
            EXPECT_EQ(values[0], std::numeric_limits<std::int64_t>::max() - 2);
            EXPECT_EQ(values[1], -5);
          }),
      "sums");
}

TEST(Communicator, RanksThatLeaveAreNotWaitedFor) {
  for (int leaver = 0; leaver < 3; ++leaver) {
    const auto thrown = run_ranks(3, [&](Communicator& own) {
      own.barrier();
      if (own.rank() == leaver)
        throw Error(ErrorCode::io, "communicator: rank " + std::to_string(leaver) + " has left");
      own.barrier();
    });
    expect_same_error(thrown, ErrorCode::io, "communicator: rank " + std::to_string(leaver) + " has left");
  }
}

TEST(Communicator, ARankThatAbandonsEndsTheGroup) {
  const auto thrown = run_ranks(4, [&](Communicator& own) {
    if (own.rank() == 2) own.abandon("the disk is full");
    own.barrier();
  });
  expect_same_error(thrown, ErrorCode::io, "rank 2: the disk is full");
  Communicator alone;
  alone.abandon("of one");
  refused([&] { alone.barrier(); }, ErrorCode::io, "rank 0: of one");
}

TEST(Communicator, ARankThatDoesNotComeIsNamed) {
  std::mutex mutex;
  std::condition_variable changed;
  int failed = 0;
  const auto thrown = run_ranks(
      3,
      [&](Communicator& own) {
        own.barrier();
        if (own.rank() == 1) {  // comes when the others have given up
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return failed == 2; });
        }
        try {
          own.barrier();
        } catch (const Error&) {
          const std::lock_guard lock(mutex);
          ++failed;
          changed.notify_all();
          throw;
        }
      },
      std::chrono::milliseconds(50));
  expect_same_error(thrown, ErrorCode::io, "communicator: rank 1 did not come within 50 ms to a barrier");
}

TEST(Communicator, DifferentOperationsAreFound) {
  struct Wrong {
    std::function<void(Communicator&)> body;
    const char* words;
  };
  const Wrong wrongs[] = {
      {[](Communicator& own) {
         std::array<std::int64_t, 2> two = {};
         own.rank() == 1 ? own.barrier() : own.all_reduce_sum(two);
       },
       "rank 0 is in a sum of 16 bytes, but rank 1 in a barrier"},
      {[](Communicator& own) {
         std::array<std::int64_t, 2> two = {};
         own.all_reduce_max(std::span(two).first(own.rank() == 2 ? 1 : 2));
       },
       "rank 0 is in a maximum of 16 bytes, but rank 2 in a maximum of 8 bytes"},
      {[](Communicator& own) {
         std::array<std::int64_t, 1> one = {};
         own.broadcast(std::as_writable_bytes(std::span(one)), own.rank() == 2 ? 1 : 0);
       },
       "rank 0 is in a broadcast of rank 0 of 8 bytes, but rank 2 in a broadcast of rank 1 of 8 bytes"},
  };
  for (const Wrong& wrong : wrongs) expect_same_error(run_ranks(3, wrong.body), ErrorCode::io, wrong.words);
  // Sizes that do not fit are seen by one rank, and by the others in their next operation at the latest.
  const auto thrown = run_ranks(3, [](Communicator& own) {
    const std::vector<std::int64_t> sent(2);
    std::vector<std::int64_t> received(2);
    own.send_receive(bytes_of(sent).first(own.rank() == 1 ? 8 : 16), (own.rank() + 1) % 3, room_of(received),
                     (own.rank() + 2) % 3);
    own.barrier();
  });
  expect_same_error(thrown, ErrorCode::io, "rank 2 expects 16 bytes of rank 1, which sends 8 to rank 2");
}

TEST(Communicator, RefusesWhatItCannotDo) {
  const auto bad = ErrorCode::invalid_argument;
  refused([] { (void)Communicator::threads(0); }, bad, "size: is 0, must be from 1 to 4096");
  refused([] { (void)Communicator::threads(4097); }, bad, "size: is 4097");
  refused([] { (void)Communicator::threads(2, std::chrono::milliseconds(-1)); }, bad, "stall_limit: must be at least");
  Communicator own;
  std::array<std::int64_t, 2> two = {3, 4};
  const auto bytes = std::as_writable_bytes(std::span(two));
  refused([&] { own.broadcast(bytes, 1); }, bad, "root: is 1, must be a rank from 0 to 0");
  refused([&] { own.send_receive(bytes, -1, bytes, 0); }, bad, "to: is -1, must be a rank");
  refused([&] { own.send_receive(bytes, 0, bytes, 5); }, bad, "from: is 5, must be a rank");
  refused([&] { own.send_receive(bytes.first(8), 0, bytes.last(8).first(4), 0); }, bad, "received: has 4 bytes");
  refused([&] { own.send_receive(bytes, 0, bytes.last(8), 0); }, bad, "received: must share no memory with sent");
  refused([&] { own.send_receive(bytes.last(9), 0, bytes.first(8), 0); }, bad, "received: must share no memory");
  const std::array<std::int64_t, 1> whole = {16};
  refused([&] { own.all_gather(bytes, whole, bytes); }, bad, "all: must share no memory with part");
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{}, {8}, {16, 0}, {-16}}) {
    refused([&] { own.all_gather(bytes, sizes, bytes); }, bad, "sizes: must be the bytes of each rank's part");
  }
  const Communicator taken = std::move(own);
  EXPECT_EQ(taken.size(), 1);
  EXPECT_EQ(own.size(), 0);  // NOLINT(bugprone-use-after-move)
  refused([&] { own.barrier(); }, bad, "communicator: was moved from");
}

}  // namespace
}  // namespace vicinal::contract
