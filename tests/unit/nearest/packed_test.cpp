// What an index keeps of its packed rows: when, how much memory plans count for it, when it goes, its file, and what a
// cancelled search leaves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "check_sum.hpp"
#include "counted_polls.hpp"
#include "cpu/nearest/ladder.hpp"
#include "refusal.hpp"
#include "simd/kernels.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/radius_batches.hpp"

namespace vicinal {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTableRows = 6000;
constexpr std::int64_t kTableCols = 40;
constexpr std::int64_t kAsked = 30;

class KeptByAnIndex : public testing::Test {
 protected:
  void SetUp() override {
    rows_ = polled_rows(kTableRows, kTableCols);
    path_ = fs::path(testing::TempDir()) / ("vicinal_packed_" + std::to_string(getpid()) + "_" +
                                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".index");
  }
  void TearDown() override { fs::remove(path_); }
  [[nodiscard]] TableView table() const { return {rows_.data(), kTableRows, kTableCols}; }
  [[nodiscard]] TableView queries(std::int64_t count = kAsked) const { return table().slice(100, 100 + count); }
  static const kernels::PackedSlot& packed(const Index& index) { return kernels::prepared_of(index).packed; }
  /// Whether all rows of some screen are packed.
  static bool is_packed(const Index& index) {
    const auto tables = packed(index).all();
    return !tables.empty() && tables.front()->is_complete();
  }
  [[nodiscard]] std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::vector<float> rows_;
  fs::path path_;
  Context ctx_ = Context::cpu({.threads = 2});
};

TEST_F(KeptByAnIndex, AreKeptWhenTheOptionSaysSo) {
  const Index automatic(ctx_, table());
  EXPECT_EQ(packed(automatic).bytes(), 0U);
  EXPECT_EQ(knn(ctx_, automatic, queries(1), {.k = 3}).plan.method, Method::direct);
  EXPECT_EQ(packed(automatic).bytes(), 0U);
  EXPECT_EQ(knn(ctx_, automatic, queries(), {.k = 3, .method = Method::fused}).plan.method, Method::fused);
  EXPECT_TRUE(is_packed(automatic));
  const Index never(ctx_, table(), {.packed = Packing::never});
  knn(ctx_, never, queries(), {.k = 3, .method = Method::fused});
  EXPECT_EQ(packed(never).bytes(), 0U);
  const Index now(ctx_, table(), {.packed = Packing::now});
  EXPECT_TRUE(is_packed(now));
  refusal(ErrorCode::invalid_argument, [&] { Index(ctx_, table(), {.packed = static_cast<Packing>(3)}); });
}

TEST_F(KeptByAnIndex, BlockSourcesAreNotKept) {
  const TableView source =
      TableView::blocks(DType::float32, kTableRows, kTableCols, [&](std::int64_t begin, std::int64_t end, void* to) {
        std::memcpy(to, rows_.data() + begin * kTableCols, static_cast<std::size_t>((end - begin) * kTableCols) * 4);
      });
  const Index index(ctx_, source, {.packed = Packing::now});
  const NeighborGraph found = knn(ctx_, index, queries(), {.k = 3, .method = Method::fused});
  EXPECT_EQ(found.ids, knn(ctx_, table(), queries(), {.k = 3, .method = Method::direct}).ids);
  EXPECT_EQ(packed(index).bytes(), 0U);
}

// With the rows packed, few queries are screened; of so few rows that ranking them takes no time, none.
TEST_F(KeptByAnIndex, DecideTheMethodOfFewQueries) {
  const Index index(ctx_, table(), {.packed = Packing::now});
  EXPECT_EQ(knn(ctx_, index, queries(1), {.k = 3}).plan.method, Method::fused);
  EXPECT_EQ(knn(ctx_, index, queries(1), {.k = 3, .metric = Metric::cosine}).plan.method, Method::direct);
  const Index small(ctx_, table().slice(0, 100), {.packed = Packing::now});
  EXPECT_EQ(knn(ctx_, small, queries(1), {.k = 3}).plan.method, Method::direct);
}

// Many queries may have packed rows for another screen than few queries use: these are screened all the same.
TEST_F(KeptByAnIndex, ServeFewQueriesAfterMany) {
  const auto serves = [&](const Index& index) {
    const NeighborGraph found = knn(ctx_, index, queries(1), {.k = 3});
    EXPECT_EQ(found.plan.method, Method::fused) << found.plan.reason;
    EXPECT_EQ(found.ids, knn(ctx_, table(), queries(1), {.k = 3, .method = Method::direct}).ids);
  };
  const Index index(ctx_, table());
  knn(ctx_, index, queries(1000), {.k = 3, .method = Method::fused});
  index.save(ctx_, path_);
  serves(index);
  serves(Index::load(ctx_, path_));
}

// On a machine that has no instruction for int8, it is for few queries of rows that an index keeps.
TEST_F(KeptByAnIndex, DecideWhetherInt8Pays) {
  cpu::SimdKernels simd = cpu::simd_kernels(ctx_.isa());
  for (bool& quick : simd.quick) quick = false;
  simd.quick[cpu::screen_index(ScreenType::float32)] = true;
  simd.kept_int8_queries = 256;
  const Index index(ctx_, table());
  const Index never(ctx_, table(), {.packed = Packing::never});
  const auto types = [&](const Index& of, std::int64_t count, int kept) {
    kernels::NearestTask task;
    task.index = &kernels::prepared_of(of);
    task.queries = queries(count);
    task.method = Method::fused;
    task.kept_screens = kept;
    return cpu::screen_types(task, simd);
  };
  const std::vector<ScreenType> both = {ScreenType::int8, ScreenType::float32};
  const std::vector<ScreenType> one = {ScreenType::float32};
  EXPECT_EQ(types(index, 1, 1), both);
  EXPECT_EQ(types(index, 256, 2), both);
  EXPECT_EQ(types(index, 257, 1), one);
  EXPECT_EQ(types(index, 1, 0), one);
  EXPECT_EQ(types(never, 1, 1), one);
  simd.kept_int8_queries = 0;
  EXPECT_EQ(types(index, 1, 1), one);
}

// Searches of one, of many and of one query again, whatever the limit: none takes more than its plan has.
TEST_F(KeptByAnIndex, OfSeveralScreensStayWithinTheLimit) {
  const KnnOptions options = {.k = 3, .method = Method::fused};
  const Index never(ctx_, table(), {.packed = Packing::never});
  const std::uint64_t least = knn(ctx_, never, queries(1000), options).plan.memory;
  const std::uint64_t row_bytes = kTableCols + 12;
  for (const std::uint64_t more : {std::uint64_t{0}, kTableRows * row_bytes, 5 * kTableRows * row_bytes, least}) {
    const Context limited = ctx_.with_memory_limit(least + more);
    const Index index(ctx_, table());
    for (const std::int64_t count : {1, 1000, 1, 300, 30, 1000}) {
      const NeighborGraph found = knn(limited, index, queries(count), options);
      EXPECT_EQ(found.ids, knn(ctx_, table(), queries(count), {.k = 3, .method = Method::direct}).ids);
      EXPECT_LE(found.plan.memory, limited.memory_limit());
      EXPECT_LE(packed(index).bytes(), found.plan.memory) << more << " " << count;
    }
  }
}

// The plan counts what is kept, or what is kept is dropped, or not made.
TEST_F(KeptByAnIndex, TheMemoryLimitDecides) {
  const KnnOptions options = {.k = 3, .method = Method::fused};
  const Index never(ctx_, table(), {.packed = Packing::never});
  const Index index(ctx_, table(), {.packed = Packing::now});
  const NeighborGraph wanted = knn(ctx_, never, queries(), options);
  const NeighborGraph found = knn(ctx_, index, queries(), options);
  EXPECT_EQ(found.ids, wanted.ids);
  const std::uint64_t kept = packed(index).bytes();
  EXPECT_GE(kept, static_cast<std::uint64_t>(kTableRows * (kTableCols + 12)));
  EXPECT_GE(found.plan.memory, wanted.plan.memory + kept);
  // As much as a search without them takes: they go, and the search does not fail.
  const Context little = ctx_.with_memory_limit(wanted.plan.memory);
  const NeighborGraph without = knn(little, index, queries(), options);
  EXPECT_EQ(without.ids, wanted.ids);
  EXPECT_EQ(without.distances, wanted.distances);
  EXPECT_LE(without.plan.memory, little.memory_limit());
  EXPECT_EQ(packed(index).bytes(), 0U);
  refusal(ErrorCode::over_memory,
          [&] { knn(ctx_.with_memory_limit(wanted.plan.memory - 1), index, queries(), options); });
  // A search that is refused anyway leaves them.
  const Index other(ctx_, table(), {.packed = Packing::now});
  refusal(ErrorCode::over_memory,
          [&] { knn(ctx_.with_memory_limit(wanted.plan.memory - 1), other, queries(), options); });
  EXPECT_TRUE(is_packed(other));
  // A little more, and those of the first screen are kept.
  const Context more = ctx_.with_memory_limit(wanted.plan.memory + kept + (std::uint64_t{1} << 20));
  EXPECT_EQ(knn(more, index, queries(), options).ids, wanted.ids);
  EXPECT_TRUE(is_packed(index));
  // One query that was to be screened is ranked where there is no room.
  const std::uint64_t one = knn(ctx_, never, queries(1), {.k = 3}).plan.memory;
  EXPECT_EQ(knn(ctx_.with_memory_limit(one), index, queries(1), {.k = 3}).plan.method, Method::direct);
  EXPECT_EQ(packed(index).bytes(), 0U);
}

// Lists within a radius grow while they are found: packed rows make room for them.
// Rows whose keys wait are counted; those of inner products do not wait.
TEST_F(KeptByAnIndex, PlansCountRowsThatWait) {
  const Index distances(ctx_, table());
  const Index others(ctx_, table());
  const std::uint64_t with = knn(ctx_, distances, queries(), {.k = 200, .method = Method::fused}).plan.memory;
  const std::uint64_t without =
      knn(ctx_, others, queries(), {.k = 200, .metric = Metric::inner_product, .method = Method::fused}).plan.memory;
  constexpr std::uint64_t kParts = 8;
  EXPECT_GE(with, without + kParts * (6 * 200 * kAsked + 256) * 16 + 200 * kAsked * sizeof(float));
}

TEST_F(KeptByAnIndex, ListsWithinARadiusTakeTheirMemory) {
  const Index never(ctx_, table(), {.packed = Packing::never});
  const RadiusOptions options = {.radius = 100, .method = Method::fused};  // all rows
  const NeighborGraph wanted = radius(ctx_, never, queries(), options);
  // The least memory that is enough without packed rows.
  std::uint64_t enough = wanted.plan.memory;
  const auto works = [&](std::uint64_t bytes) {
    try {
      (void)radius(ctx_.with_memory_limit(bytes), never, queries(), options);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::over_memory);
      return false;
    }
  };
  while (!works(enough)) enough += enough / 4;
  const Index index(ctx_, table(), {.packed = Packing::now});
  const NeighborGraph found = radius(ctx_.with_memory_limit(enough), index, queries(), options);
  EXPECT_EQ(found.ids, wanted.ids);
  EXPECT_EQ(found.distances, wanted.distances);
  EXPECT_EQ(found.offsets, wanted.offsets);
}

// Also those that the search does not use.
TEST_F(KeptByAnIndex, ListsWithinARadiusTakeTheMemoryOfOthers) {
  const Context one = Context::cpu({.threads = 1});  // whose lists always grow in the same steps
  const Index never(one, table(), {.packed = Packing::never});
  const RadiusOptions options = {.radius = 100, .method = Method::direct};
  const NeighborGraph wanted = radius(one, never, queries(), options);
  const auto works = [&](std::uint64_t bytes) {
    try {
      (void)radius(one.with_memory_limit(bytes), never, queries(), options);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::over_memory);
      return false;
    }
  };
  const Index index(one, table(), {.packed = Packing::now});
  const std::uint64_t kept = packed(index).bytes();
  std::uint64_t few = wanted.plan.memory;
  std::uint64_t enough = few;
  while (!works(enough)) enough *= 2;
  while (enough - few > kept / 4) {
    const std::uint64_t middle = few + (enough - few) / 2;
    (works(middle) ? enough : few) = middle;
  }
  EXPECT_GE(enough - wanted.plan.memory, kept);  // so that the plan fits beside what is packed
  const NeighborGraph found = radius(one.with_memory_limit(enough), index, queries(), options);
  EXPECT_EQ(found.ids, wanted.ids);
  EXPECT_EQ(found.offsets, wanted.offsets);
  EXPECT_EQ(packed(index).bytes(), 0U);
}

// Batches with little room for lists use all of it.
TEST_F(KeptByAnIndex, BatchesWithLittleRoomDropThem) {
  const Index never(ctx_, table(), {.packed = Packing::never});
  const Index index(ctx_, table(), {.packed = Packing::now});
  const RadiusOptions options = {.radius = 100, .method = Method::fused};
  const auto ignore = [](std::int64_t /*first*/, const NeighborGraph& /*lists*/) {};
  const RadiusSummary wanted = radius_batches(ctx_, never, queries(), options, ignore);
  const Context little = ctx_.with_memory_limit(wanted.plan.memory - (std::uint64_t{8} << 20));
  const RadiusSummary found = radius_batches(little, index, queries(), options, ignore);
  EXPECT_EQ(found.neighbors, wanted.neighbors);
  EXPECT_EQ(packed(index).bytes(), 0U);
}

// An error of the caller's own is not taken for a want of memory: lists of a fixed length, and counts, do not start
// anew.
TEST_F(KeptByAnIndex, ErrorsOfASourceOfQueriesArePassedOn) {
  for (int failing = 1; failing <= 4; ++failing) {
    for (const bool lists : {true, false}) {
      const Index index(ctx_, table(), {.packed = Packing::now});
      int calls = 0;
      const TableView source =
          TableView::blocks(DType::float32, kAsked, kTableCols, [&](std::int64_t begin, std::int64_t end, void* to) {
            if (++calls == failing) throw Error(ErrorCode::over_memory, "the source has no memory");
            std::memcpy(to, rows_.data() + begin * kTableCols,
                        static_cast<std::size_t>((end - begin) * kTableCols) * 4);
          });
      bool failed = false;
      try {
        if (lists) {
          const NeighborGraph found = knn(ctx_, index, source, {.k = 3, .method = Method::fused});
          EXPECT_EQ(found.ids.size(), static_cast<std::size_t>(3 * kAsked));
        } else {
          (void)count(ctx_, index, source, {.radius = 1, .method = Method::fused});
        }
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.code(), ErrorCode::over_memory);
        EXPECT_NE(std::string(error.what()).find("the source has no memory"), std::string::npos) << error.what();
      }
      EXPECT_EQ(failed, calls >= failing) << failing;
    }
  }
}

// A search that is cancelled while it packs leaves what others can use.
TEST_F(KeptByAnIndex, ACancelledSearchLeavesAnIndexThatWorks) {
  const NeighborGraph wanted = knn(ctx_, table(), queries(), {.k = 3, .method = Method::direct});
  for (const int reports : {1, 2, 3, 5, 8}) {
    const Index index(ctx_, table());
    const CancelToken token;
    int seen = 0;
    const auto watch = [&](std::string_view /*stage*/, double /*done*/) {
      if (++seen >= reports) token.cancel();
    };
    const Context ctx = Context::cpu({.threads = 2, .progress = watch, .cancel = token});
    try {
      if (reports % 2 == 0) {
        (void)knn(ctx, index, queries(), {.k = 3, .method = Method::fused});
      } else {  // block by block
        (void)count(ctx, index, queries(), {.radius = 1, .method = Method::fused});
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
    EXPECT_EQ(knn(ctx_, index, queries(), {.k = 3, .method = Method::fused}).ids, wanted.ids);
    EXPECT_TRUE(is_packed(index));
  }
}

// Panels of rows are looked after one by one while they are packed.
TEST_F(KeptByAnIndex, PackingPollsTheToken) {
  const Context one = polled_context();
  const std::int64_t without = polls_of([&] { (void)Index(one, table(), {.packed = Packing::never}); });
  const std::int64_t with = polls_of([&] { (void)Index(one, table(), {.packed = Packing::now}); });
  EXPECT_GE(with - without, kTableRows / 32);
}

TEST_F(KeptByAnIndex, AFileSaysForWhatRowsWerePacked) {
  const Index index(ctx_, table(), {.packed = Packing::now});
  const NeighborGraph wanted = knn(ctx_, index, queries(), {.k = 3});
  index.save(ctx_, path_);
  const std::string good = read();
  EXPECT_NE(good.find("\"packed_for\""), std::string::npos);
  const Index loaded = Index::load(ctx_, path_);
  EXPECT_TRUE(is_packed(loaded));
  EXPECT_EQ(packed(loaded).bytes(), packed(index).bytes());
  EXPECT_EQ(knn(ctx_, loaded, queries(), {.k = 3}).ids, wanted.ids);
  EXPECT_EQ(knn(ctx_, loaded, queries(1), {.k = 3}).plan.method, Method::fused);
  // Where there is no room, the index is loaded without them.
  const Context mapped = Context::cpu({.threads = 2, .memory_limit = packed(index).bytes() - 1, .map_files = true});
  EXPECT_EQ(packed(Index::load(mapped, path_)).bytes(), 0U);

  // Kinds that there are not, and one kind twice.
  std::uint64_t length = 0;
  std::memcpy(&length, good.data(), 8);
  const std::size_t at = 8 + static_cast<std::size_t>(length) + (kTableCols + 1) * 8;
  std::int64_t kind[2];
  std::memcpy(kind, good.data() + at, sizeof kind);
  EXPECT_EQ(kind[0], static_cast<std::int64_t>(Metric::euclidean));
  for (const auto& [metric, screen] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {static_cast<std::int64_t>(Metric::manhattan), kind[1]}, {-1, kind[1]}, {kind[0], 0}, {kind[0], 4}}) {
    std::string bytes = good;
    const std::int64_t other[2] = {metric, screen};
    std::memcpy(bytes.data() + at, other, sizeof other);
    write(summed(bytes));
    EXPECT_NE(refusal(ErrorCode::bad_data, [&] { Index::load(ctx_, path_); }).find("packed"), std::string::npos);
  }
  for (std::size_t i = 8; i < 8 + length; ++i) {  // of the header: each is noticed, or was a blank
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    write(summed(bytes));
    try {
      EXPECT_EQ(knn(ctx_, Index::load(ctx_, path_), queries(), {.k = 3}).ids, wanted.ids);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data) << error.what();
    }
  }
  for (const std::size_t size : {at, at + 8, at + 16, good.size() - 1}) {
    write(good.substr(0, size));
    refusal(ErrorCode::bad_data, [&] { Index::load(ctx_, path_); });
  }
}

// Whatever the order in which rows were packed; and only the screens that are named are packed again.
TEST_F(KeptByAnIndex, AFileIsTheSameForTheSameKinds) {
  std::vector<std::string> files;
  for (const bool cosine_first : {true, false}) {
    const Index index(ctx_, table());
    for (const bool cosine : {cosine_first, !cosine_first}) {
      knn(ctx_, index, queries(),
          {.k = 3,
           .metric = cosine ? Metric::cosine : Metric::euclidean,
           .method = Method::fused,
           .screen = ScreenType::float32});
    }
    index.save(ctx_, path_);
    files.push_back(read());
    const Index loaded = Index::load(ctx_, path_);
    for (const auto& kept : packed(loaded).all()) EXPECT_EQ(kept->kind().screen, ScreenType::float32);
  }
  EXPECT_EQ(files[0], files[1]);
}

TEST_F(KeptByAnIndex, AFileWithoutThemIsRead) {
  Index(ctx_, table()).save(ctx_, path_);
  EXPECT_EQ(read().find("packed"), std::string::npos);
  const Index loaded = Index::load(ctx_, path_);
  EXPECT_EQ(packed(loaded).bytes(), 0U);
  knn(ctx_, loaded, queries(), {.k = 3, .method = Method::fused});
  EXPECT_TRUE(is_packed(loaded));
}

}  // namespace
}  // namespace vicinal
