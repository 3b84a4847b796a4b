// What the library must refuse, with which code, and what the sentence must name (contract clauses 1, 5, 6, 9, 10, 11).

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "extremes.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

// Runs `call`; it must throw Error{code} with every word in its sentence.
void expect_refusal(ErrorCode code, const std::vector<std::string>& words, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one naming '" << (words.empty() ? "" : words[0]) << "'";
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << sentence;
    for (const std::string& word : words)
      EXPECT_NE(sentence.find(word), std::string::npos) << "no '" << word << "' in: " << sentence;
  }
}

// Where the fused method runs on a device is up to that device.
Method method_of(const Way& way) {
  return way.cuda && way.method == Method::fused ? Method::automatic : way.method;
}

class Refusal : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 57;
  static constexpr std::int64_t kCols = 5;
  static constexpr std::int64_t kQueries = 31;

  [[nodiscard]] TableView table() const { return {table_.data(), kRows, kCols}; }
  [[nodiscard]] TableView queries() const { return {queries_.data(), kQueries, kCols}; }

  Rows rows_ = make_rows(Family::gaussian, {kRows, kCols, kQueries}, 1);
  std::vector<double> table_ = rows_.table;
  std::vector<double> queries_ = rows_.queries;
  const Context& context_ = context_of(available_isas().back(), 2);
};

TEST_F(Refusal, KOutsideItsDomain) {
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{-3}}) {
    expect_refusal(ErrorCode::invalid_argument, {"k", std::to_string(k)},
                   [&] { (void)knn(context_, table(), queries(), {.k = k}); });
  }
  expect_refusal(ErrorCode::invalid_argument, {"58", "57"},
                 [&] { (void)knn(context_, table(), queries(), {.k = 58}); });
  expect_refusal(ErrorCode::invalid_argument, {"57", "56"}, [&] { (void)knn(context_, table(), {.k = 57}); });
  expect_refusal(ErrorCode::invalid_argument, {"9223372036854775807", "57"},
                 [&] { (void)knn(context_, table(), queries(), {.k = std::numeric_limits<std::int64_t>::max()}); });
  EXPECT_NO_THROW((void)knn(context_, table(), queries(), {.k = 57}));
  EXPECT_NO_THROW((void)knn(context_, table(), {.k = 56}));
}

TEST_F(Refusal, KBeyondFilterAndExclusion) {
  const std::uint64_t three = 0b10101;
  const Bitmap filter(&three, 1);
  expect_refusal(ErrorCode::invalid_argument, {"4", "3"},
                 [&] { (void)knn(context_, table(), queries(), {.k = 4, .filter = filter}); });
  EXPECT_NO_THROW((void)knn(context_, table(), queries(), {.k = 3, .filter = filter}));
  // Rows 0, 2 and 4 pass: for them two are left in self mode, for the others three.
  expect_refusal(ErrorCode::invalid_argument, {"3", "2"},
                 [&] { (void)knn(context_, table(), {.k = 3, .filter = filter}); });
  std::vector<std::int64_t> exclude(kQueries, -1);
  EXPECT_NO_THROW((void)knn(context_, table(), queries(), {.k = 57, .exclude = exclude}));
  exclude[7] = 3;
  expect_refusal(ErrorCode::invalid_argument, {"57", "56"},
                 [&] { (void)knn(context_, table(), queries(), {.k = 57, .exclude = exclude}); });
  // An id that the filter keeps out already does not count twice.
  EXPECT_NO_THROW((void)knn(context_, table(), queries(), {.k = 3, .filter = filter, .exclude = exclude}));
}

TEST_F(Refusal, FilterAndExclusionOfAnotherSize) {
  const std::vector<std::uint64_t> words(2, ~std::uint64_t{0});
  expect_refusal(ErrorCode::invalid_argument, {"filter"},
                 [&] { (void)knn(context_, table(), queries(), {.filter = words}); });
  const std::vector<std::int64_t> few(3, -1);
  expect_refusal(ErrorCode::invalid_argument, {"exclude", "3", "31"},
                 [&] { (void)knn(context_, table(), queries(), {.exclude = few}); });
  std::vector<std::int64_t> outside(kQueries, -1);
  outside[4] = kRows;
  expect_refusal(ErrorCode::invalid_argument, {"exclude", "57"},
                 [&] { (void)knn(context_, table(), queries(), {.exclude = outside}); });
  outside[4] = -2;
  expect_refusal(ErrorCode::invalid_argument, {"exclude", "-2"},
                 [&] { (void)knn(context_, table(), queries(), {.exclude = outside}); });
}

TEST_F(Refusal, AnEmptyFilterSetOfRows) {
  const std::uint64_t none = 0;
  expect_refusal(ErrorCode::invalid_argument, {"1", "0"},
                 [&] { (void)knn(context_, table(), queries(), {.k = 1, .filter = Bitmap(&none, 1)}); });
  const NeighborGraph graph = radius(context_, table(), queries(), {.radius = 100, .filter = Bitmap(&none, 1)});
  EXPECT_EQ(graph.ids.size(), 0U);
  EXPECT_EQ(graph.offsets, std::vector<std::int64_t>(kQueries + 1, 0));
}

TEST_F(Refusal, ValuesThatAreNotFinite) {
  for (const double value : {kNaN, kInfinity, -kInfinity}) {
    table_[23 * kCols + 4] = value;
    expect_refusal(ErrorCode::bad_data, {"table", "row 23", "column 4"}, [&] { (void)Index(context_, table()); });
    expect_refusal(ErrorCode::bad_data, {"row 23", "column 4"}, [&] { (void)knn(context_, table(), {.k = 1}); });
    table_[23 * kCols + 4] = 0;
    queries_[30 * kCols] = value;
    expect_refusal(ErrorCode::bad_data, {"queries", "row 30", "column 0"},
                   [&] { (void)knn(context_, table(), queries(), {.k = 1}); });
    expect_refusal(ErrorCode::bad_data, {"queries", "row 30", "column 0"},
                   [&] { (void)radius(context_, table(), queries(), {.radius = 1}); });
    expect_refusal(ErrorCode::bad_data, {"queries", "row 30", "column 0"}, [&] {
      (void)radius_batches(context_, table(), queries(), {.radius = 1}, [](std::int64_t, const NeighborGraph&) {});
    });
    queries_[30 * kCols] = 0;
  }
}

TEST_F(Refusal, TheFirstValueThatIsNotFiniteIsNamedInEveryDtypeAndLayout) {
  rows_.table[11 * kCols + 2] = kNaN;
  rows_.table[11 * kCols + 3] = kInfinity;
  rows_.table[40 * kCols + 1] = kNaN;
  const std::vector<float> singles(rows_.table.begin(), rows_.table.end());
  expect_refusal(ErrorCode::bad_data, {"row 11", "column 2"},
                 [&] { (void)Index(context_, TableView(singles.data(), kRows, kCols)); });
  std::vector<std::uint16_t> halves(kRows * kCols, 0x3c00);
  halves[11 * kCols + 2] = 0xfc00;  // -infinity
  expect_refusal(ErrorCode::bad_data, {"row 11", "column 2"},
                 [&] { (void)Index(context_, TableView(halves.data(), DType::float16, kRows, kCols, kCols)); });
  halves[11 * kCols + 2] = 0x7fc0;  // NaN
  expect_refusal(ErrorCode::bad_data, {"row 11", "column 2"},
                 [&] { (void)Index(context_, TableView(halves.data(), DType::bfloat16, kRows, kCols, kCols)); });
  const TableView reversed(rows_.table.data() + (kRows - 1) * kCols, DType::float64, kRows, kCols, -kCols);
  expect_refusal(ErrorCode::bad_data, {"row 16", "column 1"}, [&] { (void)Index(context_, reversed); });
}

TEST_F(Refusal, RadiiAndExponentsOutsideTheirDomain) {
  for (const double r : {-1.0, kNaN}) {
    expect_refusal(ErrorCode::invalid_argument, {"radius"},
                   [&] { (void)radius(context_, table(), queries(), {.radius = r}); });
    expect_refusal(ErrorCode::invalid_argument, {"radius"}, [&] {
      (void)radius_batches(context_, table(), queries(), {.radius = r}, [](std::int64_t, const NeighborGraph&) {});
    });
  }
  EXPECT_NO_THROW((void)radius(context_, table(), queries(), {.radius = -1, .metric = Metric::inner_product}));
  std::vector<double> radii(kQueries, 1);
  const Index index(context_, table());
  for (const double r : {-1.0, kNaN}) {
    radii[5] = r;
    expect_refusal(ErrorCode::invalid_argument, {"radii", "query 5"},
                   [&] { (void)radius(context_, table(), queries(), {.radii = radii}); });
    expect_refusal(ErrorCode::invalid_argument, {"radii", "query 5"},
                   [&] { (void)count(context_, index, queries(), {.radii = radii}); });
  }
  radii[5] = -1;
  EXPECT_NO_THROW((void)radius(context_, table(), queries(), {.metric = Metric::inner_product, .radii = radii}));
  radii.pop_back();
  expect_refusal(ErrorCode::invalid_argument, {"radii: ", std::to_string(kQueries - 1), std::to_string(kQueries)},
                 [&] { (void)radius(context_, table(), queries(), {.radii = radii}); });
  expect_refusal(ErrorCode::invalid_argument, {"radii: ", std::to_string(kRows)},
                 [&] { (void)count(context_, index, {.radii = radii}); });
  EXPECT_EQ(radius_order_from("id"), RadiusOrder::id);
  expect_refusal(ErrorCode::invalid_argument, {"order", "distance", "key", "id"},
                 [&] { (void)radius_order_from("distance"); });
  for (const double p : {0.5, kNaN, kInfinity, -2.0}) {
    expect_refusal(ErrorCode::invalid_argument, {"p"},
                   [&] { (void)knn(context_, table(), queries(), {.k = 1, .metric = Metric::minkowski, .p = p}); });
  }
}

TEST_F(Refusal, TablesThatDoNotFit) {
  const TableView narrow(queries_.data(), kQueries, kCols - 1);
  expect_refusal(ErrorCode::invalid_argument, {"queries", "4", "5"},
                 [&] { (void)knn(context_, table(), narrow, {.k = 1}); });
  expect_refusal(ErrorCode::invalid_argument, {"empty"},
                 [&] { (void)Index(context_, TableView(table_.data(), 0, kCols)); });
  expect_refusal(ErrorCode::invalid_argument, {"empty"},
                 [&] { (void)Index(context_, TableView(table_.data(), kRows, 0)); });
  expect_refusal(ErrorCode::invalid_argument, {"queries"},
                 [&] { (void)knn(context_, table(), TableView(queries_.data(), 0, kCols), {.k = 1}); });
  const TableView on_device(table_.data(), DType::float64, kRows, kCols, kCols, 1, Memory::cuda);
  expect_refusal(ErrorCode::device_unavailable, {"table"}, [&] { (void)Index(Context::cpu(), on_device); });
  const double one = 1;
  expect_refusal(ErrorCode::invalid_argument, {"k", "1", "0"},
                 [&] { (void)knn(context_, TableView(&one, 1, 1), {.k = 1}); });
}

TEST_F(Refusal, JobsBeyondTheMemoryLimit) {
  const Context small = Context::cpu({.threads = 1, .memory_limit = 1000});
  expect_refusal(ErrorCode::over_memory, {}, [&] { (void)knn(small, table(), queries(), {.k = 5}); });
}

struct Overflow {
  Metric metric;
  double p;
  double table_value;
  double query_value;
};

class KeyOverflow : public Refusal, public ::testing::WithParamInterface<Overflow> {};

// Query 17 and row 42 alone are so large that their key overflows, whether row 42 could ever be a neighbor or not.
TEST_P(KeyOverflow, NamesQueryAndRow) {
  const Overflow& o = GetParam();
  table_[42 * kCols + 1] = o.table_value;
  queries_[17 * kCols + 1] = o.query_value;
  for (const Way& way : some_ways(3)) {
    if (!serves(way.method, o.metric)) continue;
    const Context& context = context_of(way);
    expect_refusal(ErrorCode::bad_data, {"17", "42"}, [&] {
      (void)knn(context, table(), queries(), {.k = 1, .metric = o.metric, .p = o.p, .method = method_of(way)});
    });
    if (is_of_a_paper(way.method)) continue;
    expect_refusal(ErrorCode::bad_data, {"17", "42"}, [&] {
      (void)radius(context, table(), queries(), {.radius = 1, .metric = o.metric, .p = o.p, .method = method_of(way)});
    });
    expect_refusal(ErrorCode::bad_data, {"17", "42"}, [&] {
      (void)count(context, Index(context, table()), queries(),
                  {.radius = 1, .metric = o.metric, .p = o.p, .method = method_of(way)});
    });
  }
}

// A row that the filter keeps out, and an excluded one, are never asked for their key.
TEST_P(KeyOverflow, OfARowThatMayNotBeANeighborIsNoError) {
  const Overflow& o = GetParam();
  table_[42 * kCols + 1] = o.table_value;
  queries_[17 * kCols + 1] = o.query_value;
  const std::uint64_t all_but_one = ~(std::uint64_t{1} << 42);
  std::vector<std::int64_t> exclude(kQueries, -1);
  exclude[17] = 42;
  EXPECT_NO_THROW((void)knn(context_, table(), queries(),
                            {.k = 1, .metric = o.metric, .p = o.p, .filter = Bitmap(&all_but_one, 1)}));
  EXPECT_NO_THROW((void)knn(context_, table(), queries(), {.k = 1, .metric = o.metric, .p = o.p, .exclude = exclude}));
}

INSTANTIATE_TEST_SUITE_P(
    Metrics, KeyOverflow,
    ::testing::Values(Overflow{Metric::euclidean, 2, 1e154, -1e154}, Overflow{Metric::sqeuclidean, 2, 1e154, -1e154},
                      Overflow{Metric::inner_product, 2, 1e200, 1e200},
                      Overflow{Metric::inner_product, 2, 1e200, -1e200},
                      Overflow{Metric::manhattan, 2, 1.5e308, -1.5e308},
                      Overflow{Metric::chebyshev, 2, 1.5e308, -1.5e308}, Overflow{Metric::minkowski, 3, 5e102, -5e102},
                      Overflow{Metric::minkowski, 2.5, 1.2e123, -1.2e123}),
    [](const auto& tested) { return std::string(name_of(tested.param.metric)) + "_" + std::to_string(tested.index); });

// A query alone can be too far from every row: the screen must not lose sight of it.
TEST_F(Refusal, AQueryBeyondEveryKey) {
  for (double* at : {&queries_[3 * kCols], &queries_[29 * kCols + 4]}) {
    *at = 1e300;
    const std::string query = std::to_string((at - queries_.data()) / kCols);
    for (const Way& way : some_ways(1)) {
      expect_refusal(ErrorCode::bad_data, {query},
                     [&] { (void)knn(context_of(way), table(), queries(), {.k = 3, .method = method_of(way)}); });
    }
    *at = 0;
  }
}

// Products of opposite signs that overflow one by one make NaN in some accumulator: refused like infinity.
TEST_F(Refusal, ProductsThatCancelAfterOverflowing) {
  for (std::int64_t j = 0; j < kCols; ++j) {
    table_[static_cast<std::size_t>(42 * kCols + j)] = 1e200;
    queries_[static_cast<std::size_t>(17 * kCols + j)] = j % 2 == 0 ? 1e200 : -1e200;
  }
  for (const Way& way : some_ways(2)) {
    if (!serves(way.method, Metric::inner_product)) continue;
    expect_refusal(ErrorCode::bad_data, {"17", "42"}, [&] {
      (void)knn(context_of(way), table(), queries(),
                {.k = 2, .metric = Metric::inner_product, .method = method_of(way)});
    });
  }
}

TEST_F(Refusal, RadiiOfMethodsThatFindKListsAlone) {
  for (const Way& way : all_ways()) {
    if (!is_of_a_paper(way.method)) continue;
    const std::string name(name_of(way.method));
    expect_refusal(ErrorCode::invalid_argument, {name, "radius"},
                   [&] { (void)radius(context_, table(), queries(), {.radius = 1, .method = way.method}); });
    expect_refusal(ErrorCode::invalid_argument, {name, "radius"},
                   [&] { (void)count(context_, Index(context_, table()), {.radius = 1, .method = way.method}); });
    expect_refusal(ErrorCode::invalid_argument, {name, "float32"}, [&] {
      (void)knn(context_, table(), {.k = 1, .method = way.method, .screen = ScreenType::float32});
    });
  }
}

TEST(Cancel, BeforeAndDuringASearch) {
  const CancelToken token;
  std::atomic<bool> has_started = false;
  const Context context =
      Context::cpu({.threads = 2, .progress = [&](std::string_view, double) { has_started = true; }, .cancel = token});
  const Rows rows = make_rows(Family::gaussian, {30000, 64, 1}, 1);
  const TableView table(rows.table.data(), 30000, 64);
  const Index index(context, table);
  // 30,000 x 30,000 keys take seconds: the search cannot have ended by itself.
  std::thread canceller([&] {
    for (int i = 0; i < 2000 && !has_started; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    token.cancel();
  });
  expect_refusal(ErrorCode::cancelled, {}, [&] { (void)knn(context, index, {.k = 5, .method = Method::direct}); });
  canceller.join();
  expect_refusal(ErrorCode::cancelled, {}, [&] { (void)knn(context, index, {.k = 5}); });
  expect_refusal(ErrorCode::cancelled, {}, [&] { (void)radius(context, index, {.radius = 1}); });
}

TEST(Context, RefusesWhatIsNotThere) {
  expect_refusal(ErrorCode::invalid_argument, {"threads", "-1"}, [] { (void)Context::cpu({.threads = -1}); });
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      EXPECT_EQ(Context::cpu({.threads = 1, .isa = isa}).isa(), isa);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
      EXPECT_NE(std::string(error.what()).find(name_of(isa)), std::string::npos) << error.what();
    }
  }
  EXPECT_NE(Context::cpu().isa(), Isa::automatic);
}

}  // namespace
}  // namespace vicinal::contract
