// RepeatedKnn: the bits of knn, for queries of other types too; no memory and no thread after it is made; what it
// refuses. Memory and threads are counted where the program gets them: malloc and its kin are the test's own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "counted_polls.hpp"
#include "refusal.hpp"
#include "vicinal/knn.hpp"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VICINAL_COUNTS_MEMORY 1

namespace {
std::atomic<std::int64_t> memory_taken{0};
std::atomic<std::int64_t> threads_started{0};
}  // namespace

// NOLINTBEGIN: the names are glibc's.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* from, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  memory_taken.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  memory_taken.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* from, std::size_t size) {
  memory_taken.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(from, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  memory_taken.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  threads_started.fetch_add(1, std::memory_order_relaxed);
  return create(thread, attributes, body, argument);
}
}
// NOLINTEND
#endif

namespace vicinal {
namespace {

struct Lists {
  explicit Lists(std::int64_t size) : ids(static_cast<std::size_t>(size)), distances(ids.size()) {}
  [[nodiscard]] KnnOutput to() { return {ids.data(), distances.data()}; }
  std::vector<std::int64_t> ids;
  std::vector<double> distances;
};

struct RepeatedCase {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t queries;
  std::int64_t k;
  Metric metric;
  Method method;
  bool is_whole = false;  // whole numbers, whose keys wait
};

// Tables that are divided among threads and not, screened block by block and in parts; rows that are read where they
// lie, and that are made.
constexpr RepeatedCase kRepeated[] = {
    {1000, 10, 1, 10, Metric::euclidean, Method::automatic},    {1000, 10, 24, 5, Metric::euclidean, Method::direct},
    {20000, 32, 1, 10, Metric::euclidean, Method::direct},      {20000, 32, 1, 10, Metric::euclidean, Method::fused},
    {20000, 32, 64, 10, Metric::euclidean, Method::fused},      {20000, 32, 300, 200, Metric::euclidean, Method::fused},
    {20000, 32, 3, 10, Metric::cosine, Method::fused},          {20000, 32, 3, 10, Metric::cosine, Method::direct},
    {20000, 32, 30, 10, Metric::inner_product, Method::fused},  {5000, 12, 40, 3, Metric::manhattan, Method::automatic},
    {20000, 32, 5, 20, Metric::euclidean, Method::fused, true},
};

TEST(RepeatedKnn, FindsWhatKnnFindsWithoutTakingMemory) {
  for (const RepeatedCase& of : kRepeated) {
    std::vector<float> rows = polled_rows(of.rows, of.cols);
    for (float& value : rows) {
      if (of.is_whole) value = std::round(100 * value);
    }
    const TableView table(rows.data(), of.rows, of.cols);
    const KnnOptions options = {.k = of.k, .metric = of.metric, .method = of.method};
    for (const int threads : {1, 2, 3}) {
      const std::string what = std::to_string(of.rows) + " x " + std::to_string(of.cols) + ", " +
                               std::to_string(of.queries) + " queries, " + std::string(name_of(of.metric)) + ", " +
                               std::string(name_of(of.method)) + ", threads " + std::to_string(threads);
      const Context ctx = Context::cpu({.threads = threads});
      const Index index(ctx, table);
      RepeatedKnn repeated(ctx, index, table.slice(0, of.queries), options);
      Lists lists(of.queries * of.k);
      for (const std::int64_t first : {7, 300, 7, 550}) {
        const TableView queries = table.slice(first, first + of.queries);
        const NeighborGraph wanted = knn(ctx, index, queries, options);
#if defined(VICINAL_COUNTS_MEMORY)
        const std::int64_t taken_before = memory_taken.load();
        const std::int64_t started_before = threads_started.load();
#endif
        const SearchStats stats = repeated.find(queries, lists.to());
#if defined(VICINAL_COUNTS_MEMORY)
        EXPECT_EQ(memory_taken.load() - taken_before, 0) << what << ", by " << name_of(repeated.plan().method);
        EXPECT_EQ(threads_started.load() - started_before, 0) << what << ", by " << name_of(repeated.plan().method);
#endif
        EXPECT_EQ(lists.ids, wanted.ids) << what;
        EXPECT_EQ(lists.distances, wanted.distances) << what;
        EXPECT_EQ(stats.survivors, wanted.stats.survivors) << what;
      }
    }
  }
}

// Rows of which some are so near to each other that an 8-bit screen does not tell them apart: queries among those climb
// to a finer one. The others do not.
struct ClimbingRows {
  static constexpr std::int64_t kRows = 20000;
  static constexpr std::int64_t kCols = 32;
  static constexpr std::int64_t kAsked = 16;
  ClimbingRows() : values(polled_rows(kRows, kCols)) {
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kCols && is_near(i); ++j) {
        auto& value = values[static_cast<std::size_t>(i * kCols + j)];
        value = 3 + value * 0.03F;
      }
    }
    for (std::int64_t i = 0; i < kRows; ++i) {
      std::vector<float>& to = is_near(i) ? hard : easy;
      if (std::ssize(to) == kAsked * kCols) continue;
      to.insert(to.end(), values.begin() + i * kCols, values.begin() + (i + 1) * kCols);
    }
  }
  static bool is_near(std::int64_t row) { return row % 4 == 3; }
  [[nodiscard]] TableView table() const { return {values.data(), kRows, kCols}; }
  std::vector<float> values, easy, hard;
};

TEST(RepeatedKnn, TakesNoMemoryWhenQueriesClimb) {
  const ClimbingRows rows;
  const TableView easy(rows.easy.data(), ClimbingRows::kAsked, ClimbingRows::kCols);
  const TableView hard(rows.hard.data(), ClimbingRows::kAsked, ClimbingRows::kCols);
  const KnnOptions options = {.k = 1, .method = Method::fused};
  std::int64_t escalated = 0;
  bool has_ladder = false;
  for (const int threads : {1, 2}) {
    const Context ctx = Context::cpu({.threads = threads});
    const Index truth(ctx, rows.table(), {.packed = Packing::never});
    const NeighborGraph wanted = knn(ctx, truth, hard, {.k = 1, .method = Method::direct});
    for (const Packing packing : {Packing::automatic, Packing::never}) {
      const Index index(ctx, rows.table(), {.packed = packing});
      RepeatedKnn repeated(ctx, index, easy, options);
      Lists lists(ClimbingRows::kAsked);
#if defined(VICINAL_COUNTS_MEMORY)
      const std::int64_t taken_before = memory_taken.load();
#endif
      const SearchStats stats = repeated.find(hard, lists.to());
#if defined(VICINAL_COUNTS_MEMORY)
      EXPECT_EQ(memory_taken.load() - taken_before, 0) << threads << " " << name_of(packing);
#endif
      EXPECT_EQ(lists.ids, wanted.ids);
      EXPECT_EQ(repeated.find(easy, lists.to()).escalated, 0);
      escalated += stats.escalated;
      has_ladder = has_ladder || repeated.plan().screens.find(',') != std::string::npos;
    }
  }
  EXPECT_TRUE(escalated > 0 || !has_ladder);
}

// What a search that is cancelled has begun to pack, others pack.
TEST(RepeatedKnn, ACancelledSearchLeavesPackingToOthers) {
  const ClimbingRows rows;
  const TableView easy(rows.easy.data(), ClimbingRows::kAsked, ClimbingRows::kCols);
  const TableView hard(rows.hard.data(), ClimbingRows::kAsked, ClimbingRows::kCols);
  const KnnOptions options = {.k = 1, .method = Method::fused};
  const Context ctx = Context::cpu({.threads = 2});
  for (const int reports : {1, 2, 4, 8}) {
    const Index index(ctx, rows.table());
    const CancelToken token;
    int left = std::numeric_limits<int>::max();
    const auto watch = [&](std::string_view /*stage*/, double /*done*/) {
      if (--left <= 0) token.cancel();
    };
    RepeatedKnn repeated(Context::cpu({.threads = 2, .progress = watch, .cancel = token}), index, easy, options);
    left = reports;
    Lists lists(ClimbingRows::kAsked);
    try {
      repeated.find(hard, lists.to());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
    // The object lives on; another search packs every block that it meets.
    const std::vector<std::shared_ptr<kernels::PackedTable>> tables = kernels::prepared_of(index).packed.all();
    for (const auto& kept : tables) {
      KnnOptions again = options;
      again.screen = kept->kind().screen;
      knn(ctx, index, easy, again);
      EXPECT_TRUE(kept->is_complete()) << name_of(again.screen) << ", reports " << reports;
    }
  }
}

// The lists of the example are counted beside those of the search.
TEST(RepeatedKnn, ThePlanCountsTheExample) {
  const std::vector<float> rows = polled_rows(5000, 12);
  const TableView table(rows.data(), 5000, 12);
  const Context ctx = Context::cpu({.threads = 1});
  const Index index(ctx, table, {.packed = Packing::never});
  const KnnOptions options = {.k = 7, .method = Method::direct};
  Lists lists(40 * 7);
  const std::uint64_t once = knn_into(ctx, index, table.slice(0, 40), options, lists.to()).plan.memory;
  const RepeatedKnn repeated(ctx, index, table.slice(0, 40), options);
  EXPECT_EQ(repeated.plan().memory, once + 40 * 7 * 16);
  refusal(ErrorCode::over_memory,
          [&] { RepeatedKnn(ctx.with_memory_limit(once), index, table.slice(0, 40), options); });
}

#if defined(VICINAL_COUNTS_MEMORY)
TEST(RepeatedKnn, TheCountersCount) {
  const std::vector<float> rows = polled_rows(20000, 4);
  const TableView table(rows.data(), 20000, 4);
  const Context ctx = Context::cpu({.threads = 2});
  const std::int64_t taken_before = memory_taken.load();
  const std::int64_t started_before = threads_started.load();
  knn(ctx, table, table.slice(0, 50), {.k = 3, .method = Method::direct});
  EXPECT_GT(memory_taken.load(), taken_before);
  EXPECT_EQ(threads_started.load() - started_before, 1);
}
#endif

TEST(RepeatedKnn, ServesOtherMethodsAndTypes) {
  const std::vector<float> rows = polled_rows(9000, 3);
  const std::vector<double> doubles(rows.begin(), rows.end());
  const TableView table(rows.data(), 9000, 3);
  const Context ctx = Context::cpu({.threads = 2});
  const Index index(ctx, table);
  for (const Method method : {Method::kdtree, Method::direct, Method::fused, Method::automatic}) {
    const KnnOptions options = {.k = 4, .method = method};
    RepeatedKnn repeated(ctx, index, table.slice(0, 50), options);
    EXPECT_NE(repeated.plan().method, Method::automatic);
    const NeighborGraph wanted = knn(ctx, index, table.slice(60, 110), options);
    Lists lists(200);
    repeated.find(TableView(doubles.data() + 180, 50, 3), lists.to());
    EXPECT_EQ(lists.ids, wanted.ids);
    EXPECT_EQ(lists.distances, wanted.distances);
    RepeatedKnn moved = std::move(repeated);
    lists = Lists(200);
    moved.find(table.slice(60, 110), lists.to());
    EXPECT_EQ(lists.ids, wanted.ids);
  }
}

TEST(RepeatedKnn, RefusesOtherShapesAndNumbersThatAreNotFinite) {
  const std::vector<float> rows = polled_rows(20000, 8);
  const TableView table(rows.data(), 20000, 8);
  const Context ctx = Context::cpu({.threads = 2});
  const Index index(ctx, table);
  RepeatedKnn repeated(ctx, index, table.slice(0, 30), {.k = 3, .method = Method::fused});
  Lists lists(90);
  refusal(ErrorCode::invalid_argument, [&] { repeated.find(table.slice(0, 29), lists.to()); });
  refusal(ErrorCode::invalid_argument, [&] { repeated.find(TableView(rows.data(), 30, 7), lists.to()); });
  refusal(ErrorCode::invalid_argument, [&] { repeated.find(table.slice(0, 30), {}); });
  std::vector<float> wrong(rows.begin(), rows.begin() + 240);
  wrong[8 * 20 + 3] = std::numeric_limits<float>::quiet_NaN();
  wrong[8 * 25] = std::numeric_limits<float>::infinity();
  const std::string what =
      refusal(ErrorCode::bad_data, [&] { repeated.find(TableView(wrong.data(), 30, 8), lists.to()); });
  EXPECT_NE(what.find("row 20, column 3"), std::string::npos) << what;
  repeated.find(table.slice(40, 70), lists.to());
  EXPECT_EQ(lists.ids, knn(ctx, index, table.slice(40, 70), {.k = 3}).ids);
  refusal(ErrorCode::invalid_argument, [&] { RepeatedKnn(ctx, index, table.slice(0, 2), {.k = 20001}); });
  refusal(ErrorCode::invalid_argument, [&] { RepeatedKnn(ctx, index, table.slice(0, 2), {.k = 2, .max_radius = 1}); });
  const CancelToken token;
  RepeatedKnn cancelled(Context::cpu({.threads = 2, .cancel = token}), index, table.slice(0, 30), {.k = 3});
  token.cancel();
  refusal(ErrorCode::cancelled, [&] { cancelled.find(table.slice(40, 70), lists.to()); });
}

}  // namespace
}  // namespace vicinal
