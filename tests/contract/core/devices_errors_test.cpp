// What several devices refuse, plan and survive: the sentences of one device, which begin with a device's name where it
// is the device that fails (contract clause 4), and plans that say what runs (clause 7).
// fake device, threads: *
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/devices_check.hpp"
#include "device_check.hpp"
#include "ranks.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract::several {
namespace {

class DevicesErrors : public Devices {
 protected:
  static constexpr std::int64_t kRows = 301;
  static constexpr std::int64_t kQueries = 40;

  /// Rows of 24 columns of which no product overflows: 40 queries for few neighbors are divided by rows.
  static constexpr std::int64_t kWide = 24;
  std::vector<double> rows = std::vector<double>(kRows * kWide, 0.5);
  std::vector<double> asked = std::vector<double>(kQueries * kWide, 0.5);
  TableView table{rows.data(), kRows, kWide};
  TableView queries{asked.data(), kQueries, kWide};

  /// Makes the products of these alone overflow; each pair is told apart by a column of its own.
  void overflow(std::int64_t column, std::int64_t query, std::int64_t row) {
    asked[static_cast<std::size_t>(query * kWide + column)] = 1e200;
    rows[static_cast<std::size_t>(row * kWide + column)] = 1e200;
  }

  using Job = std::function<void(const Context& ctx)>;
  std::map<std::string, Job> jobs() {
    const auto within = [this](const Context& ctx) {
      radius(ctx, Index(ctx, table), queries, {.radius = 1, .metric = Metric::inner_product});
    };
    const auto batches = [this](const Context& ctx) {
      radius_batches(ctx, Index(ctx, table), queries, {.radius = 1, .metric = Metric::inner_product},
                     [](std::int64_t, const NeighborGraph&) {});
    };
    const auto counted = [this](const Context& ctx) {
      count(ctx, Index(ctx, table), queries, {.radius = 1, .metric = Metric::inner_product});
    };
    const auto find = [this](std::int64_t k) {
      return [this, k](const Context& ctx) { knn(ctx, table, queries, {.k = k, .metric = Metric::inner_product}); };
    };
    return {{"by rows", find(1)},
            {"by rows, all of a shard", find(290)},
            {"by queries", find(60)},
            {"radius", within},
            {"radius in batches", batches},
            {"count", counted},
            {"two queries", [this](const Context& ctx) {
               knn(ctx, table, queries.slice(0, 2), {.k = 1, .metric = Metric::inner_product});
             }}};
  }

  /// Each job is refused by the sentence of one device, which names these.
  void expect_one_sentence(const std::string& names) {
    const Watchdog watchdog(std::chrono::seconds(120));
    for (const auto& [name, job] : jobs()) {
      if (name == "two queries") continue;
      const std::string expected = sentence_of([&] { job(devices(1)); });
      EXPECT_NE(expected.find(names), std::string::npos) << name << ": " << expected;
      for_each_count([&](const Context& ctx, const std::string& on) {
        EXPECT_EQ(sentence_of([&] { job(ctx); }), expected) << name << ", " << on;
      });
    }
  }
};

// Faults: the pair of the lowest device that meets one, of the first one to fail, or of the last chunk of queries.
TEST_F(DevicesErrors, OfSeveralPairsThatOverflowOneDevicesIsNamed) {
  overflow(0, 5, 10);
  overflow(1, 3, 299);
  overflow(2, 3, 290);
  overflow(3, 39, 0);
  expect_one_sentence("query row 3 and table row 290");
  for_each_count([&](const Context& ctx, const std::string& on) {
    EXPECT_EQ(sentence_of([&] { jobs().at("two queries")(ctx); }), "") << on;
  });
}

// Faults: as above, and a pair before a query that is not finite.
TEST_F(DevicesErrors, QueriesAreLookedAtBeforePairs) {
  overflow(0, 2, 10);
  asked[17 * kWide + 4] = std::numeric_limits<double>::quiet_NaN();
  asked[5 * kWide + 7] = std::numeric_limits<double>::infinity();
  expect_one_sentence("queries: row 5, column 7");
}

// Fault: the owner waits for a device whose thread waits for the callback.
TEST_F(DevicesErrors, ACallbackLetsGoOfAnIndex) {
  const Watchdog watchdog(std::chrono::seconds(60));
  const std::vector<double> values = rows_of(300, 5, 7);
  const TableView whole(values.data(), 300, 5);
  for_each_count([&](const Context& ctx, const std::string& on) {
    const Index index(ctx, whole);
    const NeighborGraph expected = radius(ctx, index, {.radius = 4});
    auto other = std::make_unique<Index>(ctx, whole);
    static_cast<void>(knn(ctx, *other, {.k = 3, .method = Method::kdtree}));
    std::int64_t taken = 0;
    radius_batches(ctx, index, {.radius = 4}, [&](std::int64_t, const NeighborGraph& batch) {
      other.reset();
      taken += std::ssize(batch.ids);
    });
    EXPECT_EQ(taken, std::ssize(expected.ids)) << on;
  });
}

// Fault: it waits for ever.
TEST_F(DevicesErrors, ACallbackMayNotAskTheSameDevices) {
  const Watchdog watchdog(std::chrono::seconds(60));
  const std::vector<double> values = rows_of(300, 5, 7);
  const TableView whole(values.data(), 300, 5);
  const Index index(devices(2), whole);
  refused(
      [&] {
        radius_batches(devices(2), index, {.radius = 4},
                       [&](std::int64_t, const NeighborGraph&) { knn(devices(2), index, {.k = 3}); });
      },
      ErrorCode::invalid_argument, "cuda:0,1 waits for the callback");
  EXPECT_EQ(sentence_of([&] { knn(devices(2), index, {.k = 3}); }), "");
}

// Fault: the first device, which waits for a block, was waited for.
TEST_F(DevicesErrors, ABlockSourceMayNotAskADeviceThatWaitsForIt) {
  const Watchdog watchdog(std::chrono::seconds(60));
  const std::vector<double> values = rows_of(300, 5, 7);
  const TableView whole(values.data(), 300, 5);
  const NeighborGraph graph = knn(cpu(), whole, {.k = 5});
  const Context two = devices(2);
  std::vector<std::string> sentences;
  const TableView source =
      TableView::blocks(DType::float64, 300, 5, [&](std::int64_t begin, std::int64_t end, void* to) {
        sentences.push_back(sentence_of([&] { lof(two, graph, {.k = 5}); }));
        std::copy(values.begin() + begin * 5, values.begin() + end * 5, static_cast<double*>(to));
      });
  EXPECT_EQ(knn(two, source, {.k = 5}).ids, graph.ids);
  // Where a block is read for the other device, the first one may have nothing to do yet.
  EXPECT_TRUE(std::any_of(
      sentences.begin(), sentences.end(),
      [](const std::string& sentence) { return sentence.find("cuda:0 waits for the callback") != std::string::npos; }))
      << sentences.size() << " calls";
}

// Fault: it was called again, for the other device, and what it threw was preceded by a device's name.
TEST_F(DevicesErrors, WhatABlockSourceThrowsIsThrownAsItIs) {
  const Watchdog watchdog(std::chrono::seconds(60));
  int calls = 0;
  const TableView source = TableView::blocks(DType::float64, 300, 5, [&](std::int64_t, std::int64_t, void*) {
    throw Error(ErrorCode::over_memory, "block " + std::to_string(++calls));
  });
  refused([&] { knn(devices(2), source, {.k = 5}); }, ErrorCode::over_memory, "block 1");
  EXPECT_EQ(calls, 1);
  refused([&] { kmeans(devices(2), source, {.clusters = 3}); }, ErrorCode::over_memory, "block 2");
  EXPECT_EQ(sentence_of([&] { knn(devices(2), source, {.k = 5}); }).find("cuda:"), std::string::npos);
}

// Fault: a pair that overflows in the first round of queries is named before a value of a later round.
TEST_F(DevicesErrors, AValueOfALaterRoundComesBeforeAPair) {
  if (!is_fake()) GTEST_SKIP() << "a fake device's room is known";
  constexpr std::int64_t n = 17'000;
  constexpr std::int64_t m = 1100;  // lists of so many rows are found for 1,024 queries at a time
  std::vector<double> values(n, 1);
  std::vector<double> given(m, 1);
  values[5] = 1e200;
  given[3] = -1e200;
  given[m - 10] = std::numeric_limits<double>::quiet_NaN();
  const TableView whole(values.data(), n, 1);
  const TableView many(given.data(), m, 1);
  const KnnOptions options{.k = 16'900};
  // The whole table does not fit a device.
  const Context two = Context::cuda({.devices = {0, 1}, .device_memory_limit = 200'000, .threads = 2});
  const std::string expected = sentence_of([&] { knn(cpu(), whole, many, options); });
  EXPECT_NE(expected.find("queries: row 1090"), std::string::npos) << expected;
  EXPECT_EQ(sentence_of([&] { knn(two, whole, many, options); }), expected);
}

// Fault: what was let go of while the device was busy stays there.
TEST_F(DevicesErrors, WhatACallbackLetGoOfIsGone) {
  if (!is_fake()) GTEST_SKIP() << "a fake device's room is known";
  const std::vector<double> values = rows_of(1000, 5, 7);
  const TableView whole(values.data(), 1000, 5);
  // Half of the limit is for tables: for two, and not for three.
  const Context ctx = Context::cuda({.devices = {0, 1}, .device_memory_limit = 200'000, .threads = 2});
  const Index index(ctx, whole.slice(0, 200));
  auto other = std::make_unique<Index>(ctx, whole);
  static_cast<void>(knn(ctx, *other, {.k = 3, .method = Method::kdtree}));
  radius_batches(ctx, index, {.radius = 4}, [&](std::int64_t, const NeighborGraph&) { other.reset(); });
  EXPECT_EQ(sentence_of([&] { knn(ctx, whole, {.k = 3, .method = Method::kdtree}); }), "");
}

// Faults: no name, or the name of the whole context, where a plan finds no room on a device; a name twice.
TEST_F(DevicesErrors, APlanNamesTheDeviceThatHasNoRoom) {
  if (!is_fake()) GTEST_SKIP() << "a fake device's room is known";
  const std::vector<double> values = rows_of(2000, 5, 7);
  const TableView whole(values.data(), 2000, 5);
  const Context one = Context::cuda({.devices = {1}, .device_memory_limit = 20'000});
  const Context two = Context::cuda({.devices = {1, 0}, .device_memory_limit = 20'000});
  const NeighborGraph lists = knn(cpu(), whole, {.k = 6});
  const std::vector<std::int32_t> ends(30'000, 1);
  const std::map<std::string, Job> failing = {
      {"knn", [&](const Context& ctx) { static_cast<void>(plan_knn(ctx, whole, nullptr, {.k = 6})); }},
      {"knn itself", [&](const Context& ctx) { knn(ctx, whole, {.k = 6}); }},
      {"lof", [&](const Context& ctx) { static_cast<void>(plan_lof(ctx, whole, {.k = 6})); }},
      {"lof of a graph", [&](const Context& ctx) { lof(ctx, lists, {.k = 6}); }},
      {"kmeans",
       [&](const Context& ctx) {
         static_cast<void>(plan_kmeans(ctx, TableView(values.data(), 4, 2500), {.clusters = 2}));
       }},
      {"lle", [&](const Context& ctx) { lle(ctx, whole, {.k = 6, .solver = LleSolver::direct}); }},
      {"cocluster", [&](const Context& ctx) { cocluster(ctx, BipartiteEdges(2, 2, ends, ends)); }},
  };
  for (const auto& [name, job] : failing) {
    const std::string own = sentence_of([&] { job(one); });
    ASSERT_EQ(own.substr(0, 3), std::to_string(static_cast<int>(ErrorCode::over_memory)) + ": ") << name << ": " << own;
    EXPECT_EQ(own.find("cuda:"), std::string::npos) << name << ": " << own;
    const std::string got = sentence_of([&] { job(two); });
    EXPECT_EQ(got.substr(0, 11), own.substr(0, 3) + "cuda:1: ") << name << ": " << got;
    EXPECT_EQ(got.find("cuda:", 8), std::string::npos) << name << ": " << got;
  }
}

// Fault: a plan of lists that are divided by rows where they are found by queries, and the reverse.
TEST_F(DevicesErrors, OutlierScoresArePlannedAsTheyAreFound) {
  if (!is_fake()) GTEST_SKIP() << "a fake device's room is known";
  const std::int64_t n = 400;
  const std::int64_t d = 60;  // more bytes than four lists of a neighbor or two
  const std::vector<double> values = rows_of(n, d, 7);
  const TableView whole(values.data(), n, d);
  const auto bytes = static_cast<std::uint64_t>(n * d * 8);
  for (int i = 0; i <= static_cast<int>(OutlierScore::cof_pyod); ++i) {
    const auto score = static_cast<OutlierScore>(i);
    const bool by_rows = score == OutlierScore::cof || score == OutlierScore::cof_pyod || score == OutlierScore::inflo;
    const LofOptions options{.k = 2, .score = score};
    const Plan plan = plan_lof(devices(2), whole, options);
    // A fake device takes as much beside a table that stays as that.
    const std::uint64_t of_search = by_rows ? bytes / 2 : bytes;
    EXPECT_GE(plan.device_memory, of_search) << name_of(score);
    EXPECT_EQ(lof(devices(2), whole, options).plan.device_memory, plan.device_memory) << name_of(score);
  }
}

// Fault: a method that the first device serves is taken on one that does not.
TEST_F(DevicesErrors, AScreenIsTakenOnlyIfAllDevicesHaveIt) {
  if (!is_fake()) GTEST_SKIP() << "fake devices are alike otherwise";
  const std::vector<double> values = rows_of(300, 5, 7);
  const TableView whole(values.data(), 300, 5);
  const NeighborGraph expected = knn(cpu(), whole, {.k = 3});
  without_screen(1);
  for (const TableView& asks : {whole, whole.slice(0, 2)}) {
    refused([&] { knn(devices(2), whole, asks, {.k = 1, .method = Method::fused}); }, ErrorCode::invalid_argument,
            "method: fused does not serve");
    EXPECT_EQ(plan_knn(devices(2), whole, &asks, {.k = 1}).method, Method::direct);
  }
  expect_same(knn(devices(2), whole, {.k = 3}), expected, "automatic");
  without_screen(-1);
  EXPECT_EQ(plan_knn(devices(2), whole, nullptr, {.k = 3}).method, Method::fused);
}

// Faults: memory of the host's where devices show their sums; a plan that hides that the host draws first centers.
TEST_F(DevicesErrors, APlanOfKMeansCountsSumsAndSaysWhoDraws) {
  const std::int64_t n = 2000;
  const std::int64_t d = 5;
  const std::vector<double> values = rows_of(n, d, 7);
  const TableView whole(values.data(), n, d);
  const auto memory = [&](int count, std::int64_t k) {
    return plan_kmeans(devices(count), whole, {.clusters = k, .init = KMeansInit::first_k}).memory;
  };
  const std::uint64_t one = memory(1, 1100) - memory(1, 100);
  // Of 1000 clusters on two devices, sums of two limbs at least, and sizes.
  EXPECT_GE(memory(2, 1100) - memory(2, 100), one + std::uint64_t{2} * 1000 * (2 * d + 1) * 8);
  if (!is_fake()) return;
  // Twice the table has room, without the draws.
  const Context small =
      Context::cuda({.devices = {0, 1}, .device_memory_limit = static_cast<std::uint64_t>(n * d * 16 + 100)});
  const Plan plan = plan_kmeans(small, whole, {.clusters = 3});
  EXPECT_NE(plan.reason.find("the host draws"), std::string::npos) << plan.reason;
  EXPECT_EQ(kmeans(small, whole, {.clusters = 3, .seed = 1}).labels,
            kmeans(cpu(), whole, {.clusters = 3, .seed = 1}).labels);
}

// Fault: sums of values far apart take what nobody has planned.
TEST_F(DevicesErrors, SumsOfValuesFarApartAreHeldAgainstTheLimit) {
  std::vector<double> values = rows_of(300, 5, 7);
  for (std::size_t i = 0; i < values.size(); i += 7) values[i] *= 0x1p-400;
  const TableView whole(values.data(), 300, 5);
  const KMeansOptions options{.clusters = 200, .init = KMeansInit::first_k};
  const std::uint64_t planned = plan_kmeans(devices(2), whole, options).memory;
  const Context tight = Context::cuda({.devices = {0, 1}, .memory_limit = planned, .threads = 3});
  refused([&] { kmeans(tight, whole, options); }, ErrorCode::over_memory, "values so far apart");
  const KMeans found = kmeans(devices(2), whole, options);
  EXPECT_GT(found.plan.memory, planned);
  EXPECT_EQ(found.labels, kmeans(cpu(), whole, options).labels);
}

// Fault: a call that fails leaves its cancel to one that works between two phases.
TEST_F(DevicesErrors, ACallThatFailsDoesNotCancelAnother) {
  const Watchdog watchdog(std::chrono::seconds(120));
  const std::vector<double> values = rows_of(300, 5, 7);
  const TableView whole(values.data(), 300, 5);
  std::vector<double> wrong = values;
  wrong.front() = std::numeric_limits<double>::quiet_NaN();
  // All rows join one cluster, and the other 249 take a row each.
  const std::int64_t clusters = 250;
  std::vector<double> far(static_cast<std::size_t>(clusters * 5), 0);
  for (std::int64_t c = 1; c < clusters; ++c) far[static_cast<std::size_t>(c * 5)] = 1e6 + static_cast<double>(c);
  const KMeansOptions options{.clusters = clusters,
                              .init = KMeansInit::given,
                              .centres = TableView(far.data(), clusters, 5),
                              .max_iterations = 2};
  const std::vector<std::int32_t> expected = kmeans(cpu(), whole, options).labels;
  const Context& ctx = devices(2);
  std::atomic<bool> done = false;
  std::thread fails([&] {
    while (!done) EXPECT_NE(sentence_of([&] { knn(ctx, TableView(wrong.data(), 300, 5), {.k = 2}); }), "");
  });
  std::string sentence;
  for (int turn = 0; turn < 10 && sentence.empty(); ++turn) {
    sentence = sentence_of([&] { EXPECT_EQ(kmeans(ctx, whole, options).labels, expected); });
  }
  done = true;
  fails.join();
  EXPECT_EQ(sentence, "");
}

}  // namespace
}  // namespace vicinal::contract::several
