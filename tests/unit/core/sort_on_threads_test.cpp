// sort_on_threads: the order of std::sort whatever the number of threads, also where most values are equal; a cancel is
// noticed while values are parted.
#include "core/sort_on_threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/philox.hpp"
#include "counted_polls.hpp"
#include "vicinal/context.hpp"

namespace vicinal {
namespace {

using Pair = std::pair<double, std::int64_t>;

std::vector<Pair> pairs(std::int64_t size, std::int64_t keys) {
  std::vector<Pair> made;
  made.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    const double key = core::philox_uniform(1, 0, static_cast<std::uint64_t>(i)) * static_cast<double>(keys);
    made.emplace_back(std::floor(key), size - i);
  }
  return made;
}

TEST(SortOnThreads, IsTheOrderOfASort) {
  for (const std::int64_t size : {0, 1, 2, 1000, 16384, 16385, 200000}) {
    for (const std::int64_t keys : {1, 3, 1000000}) {
      std::vector<Pair> expected = pairs(size, keys);
      std::sort(expected.begin(), expected.end());
      for (const int threads : {1, 2, 3, 7}) {
        std::vector<Pair> found = pairs(size, keys);
        core::sort_on_threads(Context::cpu({.threads = threads}), found, std::less<>());
        EXPECT_EQ(found, expected) << size << " values, " << keys << " keys, " << threads << " threads";
      }
    }
  }
}

// Equal values are all in one piece, which is parted three times; then it is sorted.
TEST(Polls, PartsOfASort) {
  const Context ctx = Context::cpu({.threads = 2});
  std::vector<std::int64_t> values(static_cast<std::size_t>(kManyRows), 1);
  const std::int64_t sorting = steps_of_sort(values, std::less<>());
  const std::int64_t tasks = of_tasks(ctx, 1 + 2 + 4 + 8);
  EXPECT_GE(polls_of([&] { core::sort_on_threads(ctx, values, std::less<>()); }),
            tasks + 3 * (kManyRows / kBetweenLooks) + sorting / kBetweenLooks);
}

}  // namespace
}  // namespace vicinal
