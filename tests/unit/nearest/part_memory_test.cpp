// What is held beside a search within a radius is counted with the lists that it finds.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "ops/nearest/search.hpp"
#include "vicinal/context.hpp"
#include "vicinal/error.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/table.hpp"

namespace vicinal {
namespace {

TEST(PartWithin, CountsWhatIsHeldBeside) {
  constexpr std::int64_t n = 600;
  const std::vector<float> rows(n, 1);
  const TableView table(rows.data(), n, 1);
  for (const Method method : {Method::direct, Method::kdtree}) {
    const auto fits = [&](std::uint64_t limit, std::uint64_t beside) {
      const Context ctx = Context::cpu({.threads = 1, .memory_limit = limit});
      try {
        const RadiusOptions options{.radius = 1, .method = method};
        const NeighborPart part = ops::part_within(ctx, table, table, options, {}, PartKind::radius, beside);
        EXPECT_EQ(std::ssize(part.ids), n * n);
        return true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
        return false;
      }
    };
    // All rows are neighbors of each other: their lists take most of the memory.
    std::uint64_t low = 1;
    std::uint64_t high = std::uint64_t{1} << 28;
    while (low + 1 < high) {
      const std::uint64_t middle = (low + high) / 2;
      (fits(middle, 0) ? high : low) = middle;
    }
    EXPECT_GT(high, static_cast<std::uint64_t>(n * n * 16)) << name_of(method);
    constexpr std::uint64_t kBeside = 100'000;
    EXPECT_FALSE(fits(high, kBeside)) << name_of(method);
    EXPECT_FALSE(fits(high + kBeside - 1, kBeside)) << name_of(method);
    EXPECT_TRUE(fits(high + kBeside, kBeside)) << name_of(method);
  }
}

}  // namespace
}  // namespace vicinal
