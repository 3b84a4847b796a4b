// k-means against the reference, bit for bit (contract clause 12): every start, rule and dtype, weights, hard data.
// fake device: -*FullWidth
// fake device, together: KMeans.TablesOnADevice:KMeans.Shapes*

#include "vicinal/kmeans.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "device_memory.hpp"
#include "kmeans_check.hpp"
#include "reference/kmeans.hpp"
#include "reference/reference.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

bool may_overflow(const std::vector<double>& rows) {
  for (const double value : rows) {
    if (!(std::fabs(value) < 0x1p500)) return true;
  }
  return false;
}

bool has_zero_row(const std::vector<double>& rows, std::int64_t d) {
  for (auto row = rows.begin(); row != rows.end(); row += d) {
    if (std::all_of(row, row + d, [](double value) { return value == 0; })) return true;
  }
  return false;
}

class KMeansOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(KMeansOfFamily, EqualsTheReference) {
  const Shape shape = {331, 5, 1};
  const Rows rows = make_rows(GetParam(), shape, 3);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < shape.n; ++i)
    weights.push_back(std::ldexp(1.0 + 0.37 * static_cast<double>(i % 7), static_cast<int>(i % 5) - 2));
  std::vector<double> some_zero = weights;
  for (std::size_t i = 0; i < some_zero.size(); ++i) {
    if (i % 3 == 0 || (i > 100 && i < 160)) some_zero[i] = 0;
  }
  std::uint64_t turn = 0;
  for (const DType dtype : {DType::float64, DType::float32, DType::uint8, DType::float16, DType::bfloat16}) {
    const Stored stored(rows.table, shape.d, dtype, static_cast<Layout>(turn % kLayouts));
    if (may_overflow(reference::widen(stored.view()))) continue;
    for (const KMeansInit init :
         {KMeansInit::plus_plus, KMeansInit::parallel, KMeansInit::random, KMeansInit::first_k}) {
      ++turn;
      if (is_left_out(turn)) continue;
      KMeansOptions options;
      options.init = init;
      options.clusters = turn % 3 == 0 ? 13 : (turn % 3 == 1 ? 4 : 26);
      options.seed = turn;
      options.runs = turn % 4 == 1 ? 2 : 1;
      options.max_iterations = 12;
      options.tolerance = turn % 2 == 0 ? 0 : 1e-3;
      options.history = turn % 5 == 0;
      options.empty = turn % 7 == 0 ? EmptyClusters::keep : EmptyClusters::farthest;
      if (turn % 6 == 1) {
        options.rule = KMeansRule::classical;
        options.changed_share = 0.01;
      }
      if (turn % 3 == 2 && !has_zero_row(reference::widen(stored.view()), shape.d)) {
        options.metric = Metric::cosine;
        options.rule = KMeansRule::settled;
      }
      if (turn % 2 == 1) options.weights = turn % 8 == 3 ? some_zero : weights;
      check_kmeans(stored.view(), options,
                   std::string(name_of(GetParam())) + " " + std::string(name_of(dtype)) + " " + text(options), turn);
      if (HasFailure()) return;
    }
  }
}

std::vector<Family> families() {
  std::vector<Family> all;
  for (int i = 0; i < kFamilies; ++i) all.push_back(static_cast<Family>(i));
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, KMeansOfFamily, ::testing::ValuesIn(families()),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(KMeans, ShapesAndTileTails) {
  std::uint64_t turn = 0;
  for (const std::int64_t n : {1, 2, 31, 33, 1025, 2049}) {
    for (const std::int64_t d : {1, 3, 4, 8, 17, 64}) {
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{2}, std::int64_t{12}, std::int64_t{29}, n}) {
        ++turn;
        if (k > n || k > 64 || is_left_out(turn)) continue;
        const Rows rows = make_rows(turn % 2 == 0 ? Family::gaussian : Family::integer_ties, {n, d, 1}, turn);
        const Stored stored(rows.table, d, turn % 3 == 0 ? DType::float64 : DType::float32);
        KMeansOptions options{.clusters = k, .init = turn % 2 == 0 ? KMeansInit::random : KMeansInit::plus_plus};
        options.seed = turn;
        options.max_iterations = 5;
        check_kmeans(stored.view(), options, "n=" + std::to_string(n) + " d=" + std::to_string(d) + " " + text(options),
                     turn);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(KMeans, MoreClustersThanDistinctRows) {
  std::vector<double> rows;
  for (int i = 0; i < 60; ++i) rows.insert(rows.end(), {static_cast<double>(i % 3), 1.0});
  const TableView table(rows.data(), 60, 2);
  for (const KMeansInit init : {KMeansInit::plus_plus, KMeansInit::parallel, KMeansInit::random, KMeansInit::first_k}) {
    KMeansOptions options{.clusters = 7, .init = init};
    check_kmeans(table, options, text(options));
  }
  for (const KMeansInit init : {KMeansInit::plus_plus, KMeansInit::parallel}) {
    const KMeans got = kmeans(contexts(0).front(), table, {.clusters = 7, .init = init});
    EXPECT_EQ(got.inertia, 0);
    EXPECT_EQ(std::count(got.sizes.begin(), got.sizes.end(), 20), 3);
    EXPECT_EQ(std::count(got.sizes.begin(), got.sizes.end(), 0), 4);
  }
}

TEST(KMeans, OneRowAndEqualRows) {
  const std::vector<float> row = {3, -1, 0.5F};
  const std::vector<float> equal(60, 2.5F);
  for (const KMeansInit init : {KMeansInit::plus_plus, KMeansInit::parallel, KMeansInit::random, KMeansInit::first_k}) {
    const KMeans one = kmeans(contexts(0).front(), TableView(row.data(), 1, 3), {.clusters = 1, .init = init});
    EXPECT_EQ(one.centres, (std::vector<double>{3, -1, 0.5}));
    EXPECT_EQ(one.labels, std::vector<std::int32_t>{0});
    EXPECT_EQ(one.inertia, 0);
    EXPECT_EQ(one.iterations, 2);
    const KMeansOptions options{.clusters = 4, .init = init};
    check_kmeans(TableView(equal.data(), 20, 3), options, "equal rows, " + text(options));
    const KMeans got = kmeans(contexts(0).front(), TableView(equal.data(), 20, 3), options);
    EXPECT_EQ(got.sizes, (std::vector<std::int64_t>{20, 0, 0, 0}));
    EXPECT_EQ(got.iterations, 2);
    EXPECT_EQ(name_of(got.stopped), "labels");
  }
}

// Columns that say nothing change nothing but the mean variance, which the tolerance is held against.
TEST(KMeans, ConstantColumns) {
  const Rows rows = make_rows(Family::clusters_1e2, {300, 4, 1}, 6);
  std::vector<double> wider;
  for (std::size_t i = 0; i < rows.table.size(); ++i) {
    wider.push_back(rows.table[i]);
    if (i % 4 == 3) wider.insert(wider.end(), {0.0, 7.25, 1e20, -3e-9});
  }
  const KMeansOptions options{.clusters = 5, .seed = 2, .tolerance = 0};
  check_kmeans(TableView(wider.data(), 300, 8), options, "constant columns");
  const Context ctx = contexts(0).front();
  const KMeans plain = kmeans(ctx, TableView(rows.table.data(), 300, 4), {.clusters = 5, .init = KMeansInit::first_k});
  const KMeans more = kmeans(ctx, TableView(wider.data(), 300, 8), {.clusters = 5, .init = KMeansInit::first_k});
  EXPECT_EQ(more.labels, plain.labels);
}

TEST(KMeans, GivenCentresFarAwayAndEqual) {
  const Rows rows = make_rows(Family::gaussian, {400, 6, 1}, 9);
  const TableView table(rows.table.data(), 400, 6);
  std::vector<double> centres(5 * 6, 0.25);
  for (int j = 0; j < 6; ++j) centres[static_cast<std::size_t>(j)] = 1e30;
  centres[29] = 0.5;
  for (const EmptyClusters empty : {EmptyClusters::farthest, EmptyClusters::keep}) {
    KMeansOptions options{.clusters = 5, .init = KMeansInit::given, .centres = TableView(centres.data(), 5, 6)};
    options.empty = empty;
    check_kmeans(table, options, text(options));
  }
}

// Small rows beside large ones in one column: 64-bit fixed point would lose them.
TEST(KMeans, BadlyScaledColumnKeepsItsSmallValues) {
  std::vector<double> rows;
  for (int i = 0; i < 300; ++i)
    rows.push_back(i % 3 == 0 ? 1e30 + i * 1e25 : (i % 3 == 1 ? 1e-20 * i : -3.0 - 1e-13 * i));
  const TableView table(rows.data(), 300, 1);
  KMeansOptions options{.clusters = 3, .init = KMeansInit::first_k, .tolerance = 0};
  check_kmeans(table, options, text(options));
}

TEST(KMeans, ManyRowsSettle) {
  const Rows rows = make_rows(Family::clusters_1e2, {20000, 8, 1}, 5);
  const Stored stored(rows.table, 8, DType::float32);
  KMeansOptions options{.clusters = 16, .seed = 4, .tolerance = 0};
  check_kmeans(stored.view(), options, "20000 rows");
}

// As many centers and columns as a device's tensor cores are asked about, and data that their float16 finds easy and
// hard.
TEST(KMeans, ManyCentresAndColumns) {
  std::uint64_t turn = 0;
  for (const Family family : {Family::gaussian, Family::clusters_1e2, Family::positive_offset}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      ++turn;
      const Rows rows = make_rows(family, {1200, 40, 1}, turn);
      const Stored stored(rows.table, 40, dtype);
      KMeansOptions options{.clusters = 200, .init = KMeansInit::random, .seed = turn, .max_iterations = 4};
      check_kmeans(stored.view(), options, std::string(name_of(family)) + " " + text(options), turn);
      if (HasFailure()) return;
    }
  }
}

// So many columns that a device multiplies fewer centers at a time, or none.
TEST(KMeans, ManyColumns) {
  const std::int64_t shapes[][3] = {{150, 1100, 7}, {120, 2500, 30}, {90, 5000, 11}, {40, 7300, 3}};
  for (const auto& [n, d, k] : shapes) {
    const Rows rows = make_rows(Family::clusters_1e2, {n, d, 1}, static_cast<std::uint64_t>(d));
    const Stored stored(rows.table, d, DType::float32);
    check_kmeans(stored.view(), {.clusters = k, .init = KMeansInit::random, .seed = 1, .max_iterations = 4},
                 std::to_string(d) + " columns");
  }
}

TEST(KMeans, BoundsSkipRowsWhateverTheThreads) {
  const Rows rows = make_rows(Family::clusters_1e2, {20000, 8, 1}, 5);
  const Stored stored(rows.table, 8, DType::float32);
  KMeansOptions options{.clusters = 16, .seed = 4, .tolerance = 0};
  const KMeans first = kmeans(Context::cpu({.threads = 1}), stored.view(), options);
  EXPECT_GT(first.stats.skipped, 0);
  for (const int threads : {2, 3, 7}) {
    const KMeans again = kmeans(Context::cpu({.threads = threads}), stored.view(), options);
    expect_same(again, first, "threads");
    EXPECT_EQ(again.stats.assigned, first.stats.assigned);
    EXPECT_EQ(again.stats.skipped, first.stats.skipped);
    EXPECT_EQ(again.stats.rechecked, first.stats.rechecked);
  }
}

void check_predict_transform_score(const Context& ctx) {
  const Rows rows = make_rows(Family::gaussian, {500, 7, 200}, 2);
  const TableView table(rows.table.data(), 500, 7);
  const TableView queries(rows.queries.data(), 200, 7);
  const KMeans model = kmeans(ctx, table, {.clusters = 9, .seed = 1});
  EXPECT_EQ(predict(ctx, model, table), model.labels);
  EXPECT_EQ(score(ctx, model, table), -model.inertia);
  const auto labels = predict(ctx, model, queries);
  const auto distances = transform(ctx, model, queries);
  for (std::int64_t i = 0; i < 200; ++i) {
    const double* const row = distances.data() + i * 9;
    EXPECT_EQ(std::min_element(row, row + 9) - row, labels[static_cast<std::size_t>(i)]);
    const std::span<const double> x(rows.queries.data() + i * 7, 7);
    EXPECT_EQ(row[3], std::sqrt(reference::key(Metric::sqeuclidean, 2, x, std::span(model.centres).subspan(21, 7))));
  }
}

TEST(KMeans, CentreDistancesAreThoseOfTransform) {
  const Rows rows = make_rows(Family::gaussian, {300, 5, 100}, 2);
  const TableView table(rows.table.data(), 300, 5);
  for (const Context& ctx : contexts(1)) {
    for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
      const KMeans model = kmeans(ctx, table, {.clusters = 6, .metric = metric, .seed = 1});
      const std::vector<double> all = transform(ctx, model, table);
      std::vector<std::int32_t> labels = model.labels;
      labels[7] = (labels[7] + 1) % 6;  // any label will do
      const std::vector<double> found = centre_distances(ctx, model, table, labels);
      ASSERT_EQ(found.size(), 300U);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i], all[i * 6 + static_cast<std::size_t>(labels[i])]) << name_of(metric) << " " << i;
      }
    }
  }
}

TEST(KMeans, CentreDistancesRefuseLabelsAndValues) {
  std::vector<double> rows = {0, 1, 2, 10, 11, 12};
  const KMeans model = kmeans(Context::cpu({.threads = 1}), TableView(rows.data(), 3, 2), {.clusters = 2});
  const std::vector<std::int32_t> labels = {0, 1, 1};
  const std::vector<std::int32_t> beyond = {0, 2, 1};
  const std::vector<std::int32_t> negative = {0, 1, -1};
  const auto asking = [&](std::span<const std::int32_t> given, std::uint64_t limit = 0) {
    return [&rows, &model, given, limit] {
      const Context ctx = Context::cpu({.threads = 1, .memory_limit = limit});
      (void)centre_distances(ctx, model, TableView(rows.data(), 3, 2), given);
    };
  };
  const auto bad = ErrorCode::invalid_argument;
  refused(asking(std::span(labels).first(2)), bad, "labels: there are 2 for 3 rows");
  refused(asking(beyond), bad, "labels: row 1 has label 2, must be from 0 to 1");
  refused(asking(negative), bad, "labels: row 2 has label -1");
  refused(asking(labels, 10), ErrorCode::over_memory, "");
  rows[3] = std::nan("");
  refused(asking(labels), ErrorCode::bad_data, "table: row 1, column 1 is NaN");
  rows[3] = 1e200;
  refused(asking(labels), ErrorCode::bad_data, "table: row 1 is so far from its center");
}

TEST(KMeans, PredictTransformScore) {
  for (const Context& ctx : contexts(0)) check_predict_transform_score(ctx);
}

void expect_kmeans_refused(ErrorCode code, const std::string& word, const TableView& table,
                           const KMeansOptions& options) {
  for (const Context& ctx : contexts(0)) {
    try {
      kmeans(ctx, table, options);
      FAIL() << "not refused: " << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

TEST(KMeansRefusal, NamesWhatIsWrong) {
  std::vector<double> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  const TableView table(rows.data(), 4, 2);
  expect_kmeans_refused(ErrorCode::invalid_argument, "clusters", table, {.clusters = 5});
  expect_kmeans_refused(ErrorCode::invalid_argument, "clusters", table, {.clusters = 0});
  expect_kmeans_refused(ErrorCode::invalid_argument, "tolerance", table, {.clusters = 2, .tolerance = -1});
  expect_kmeans_refused(ErrorCode::invalid_argument, "max_iterations", table, {.clusters = 2, .max_iterations = 0});
  expect_kmeans_refused(ErrorCode::invalid_argument, "runs", table, {.clusters = 2, .runs = 0});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1.0, -5e-324, nan, HUGE_VAL}) {
    const std::vector<double> weights = {1, 1, bad, 1};
    expect_kmeans_refused(ErrorCode::invalid_argument, "row 2", table, {.clusters = 2, .weights = weights});
  }
  const std::vector<double> zeros = {0, 0, 0, 0};
  expect_kmeans_refused(ErrorCode::invalid_argument, "all are 0", table, {.clusters = 1, .weights = zeros});
  const std::vector<double> three = {1, 0, 2, 0.5};
  expect_kmeans_refused(ErrorCode::invalid_argument, "only 3 rows with a weight", table,
                        {.clusters = 4, .weights = three});
  std::vector<double> hidden = rows;
  hidden[3] = nan;  // in a row of weight 0
  expect_kmeans_refused(ErrorCode::bad_data, "row 1, column 1", TableView(hidden.data(), 4, 2),
                        {.clusters = 2, .weights = three});
  std::vector<double> with_zeros = rows;
  with_zeros[2] = with_zeros[3] = 0;
  expect_kmeans_refused(ErrorCode::bad_data, "row 1 is all zeros", TableView(with_zeros.data(), 4, 2),
                        {.clusters = 2, .metric = Metric::cosine, .weights = three});
  expect_kmeans_refused(ErrorCode::bad_data, "centres: row 1 is all zeros", table,
                        {.clusters = 2,
                         .init = KMeansInit::given,
                         .centres = TableView(with_zeros.data(), 2, 2),
                         .metric = Metric::cosine});
  expect_kmeans_refused(ErrorCode::invalid_argument, "manhattan", table, {.clusters = 2, .metric = Metric::manhattan});
  expect_kmeans_refused(ErrorCode::invalid_argument, "rule", table,
                        {.clusters = 2, .metric = Metric::cosine, .rule = KMeansRule::classical});
  expect_kmeans_refused(ErrorCode::invalid_argument, "batch_size", table, {.clusters = 2, .batch_size = -1});
  expect_kmeans_refused(ErrorCode::invalid_argument, "rule", table,
                        {.clusters = 2, .rule = KMeansRule::classical, .batch_size = 3});
  const std::vector<double> few = {1, 1};
  expect_kmeans_refused(ErrorCode::invalid_argument, "weights", table, {.clusters = 2, .weights = few});
  expect_kmeans_refused(ErrorCode::invalid_argument, "centres", table,
                        {.clusters = 2, .init = KMeansInit::given, .centres = TableView(rows.data(), 1, 2)});
  for (const double bad : {nan, HUGE_VAL, 1e200}) {
    std::vector<double> broken = rows;
    broken[5] = bad;
    expect_kmeans_refused(ErrorCode::bad_data, "row 2, column 1", TableView(broken.data(), 4, 2), {.clusters = 2});
  }
}

// As many rows, columns and centers as a device needs to order its changes before it adds them, and to look for
// candidates of the rows that its screen leaves open: too many for the reference, so that the CPU's bits stand for it.
TEST(KMeans, ADeviceAtItsFullWidth) {
  if (!cuda_missing().empty()) GTEST_SKIP() << "no CUDA: " << cuda_missing();
  struct Case {
    Family family;
    DType dtype;
    std::int64_t n, d, k;
    bool weighted;
  };
  const Case cases[] = {{Family::gaussian, DType::float32, 300000, 64, 600, false},
                        {Family::column_scales, DType::float64, 300000, 64, 600, true},
                        {Family::row_scales, DType::float64, 270000, 65, 550, true},
                        {Family::positive_offset, DType::float32, 270000, 65, 550, false},
                        {Family::clusters_1e6, DType::float32, 300000, 64, 600, false},
                        {Family::integer_ties, DType::float32, 300000, 64, 600, false},
                        {Family::gaussian, DType::float16, 1050000, 16, 2100, false}};
  for (const Case& one : cases) {
    const Rows rows = make_rows(one.family, {one.n, one.d, 1}, 31);
    const Stored stored(rows.table, one.d, one.dtype);
    std::vector<double> weights(one.weighted ? static_cast<std::size_t>(one.n) : 0);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.3 + static_cast<double>(i % 7);
    const KMeansOptions options{.clusters = one.k,
                                .init = KMeansInit::random,
                                .weights = weights,
                                .seed = 5,
                                .max_iterations = 4,
                                .tolerance = 0};
    const KMeans expected = kmeans(Context::cpu(), stored.view(), options);
    expect_same(kmeans(cuda_context(), stored.view(), options), expected,
                std::string(name_of(one.family)) + " " + std::to_string(one.k));
    if (HasFailure()) return;
  }
}

// Where the rows lie must not show: on the device, there with gaps and transposed, or made when they are asked for.
TEST(KMeans, TablesOnADevice) {
  if (!cuda_missing().empty()) GTEST_SKIP() << "no CUDA: " << cuda_missing();
  constexpr std::int64_t n = 700;
  constexpr std::int64_t d = 6;
  const Rows rows = make_rows(Family::clusters_1e2, {n, d, 1}, 8);
  const std::vector<float> values(rows.table.begin(), rows.table.end());
  std::vector<float> wide(static_cast<std::size_t>(n * (d + 3)), -7);
  std::vector<float> turned(values.size());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      wide[static_cast<std::size_t>(i * (d + 3) + j)] = values[static_cast<std::size_t>(i * d + j)];
      turned[static_cast<std::size_t>(j * n + i)] = values[static_cast<std::size_t>(i * d + j)];
    }
  }
  const DeviceArray<float> packed_there(values);
  const DeviceArray<float> wide_there(wide);
  const DeviceArray<float> turned_there(turned);
  const auto fill = [&](std::int64_t begin, std::int64_t end, void* to) {
    std::memcpy(to, values.data() + begin * d, static_cast<std::size_t>((end - begin) * d) * sizeof(float));
  };
  const KMeansOptions options{.clusters = 9, .seed = 3, .tolerance = 0};
  const KMeans expected = reference::kmeans(TableView(values.data(), n, d), options);
  std::vector<TableView> views = {
      TableView(packed_there.data(), DType::float32, n, d, d, 1, Memory::cuda),
      TableView(wide_there.data(), DType::float32, n, d, d + 3, 1, Memory::cuda),
      TableView(turned_there.data(), DType::float32, n, d, 1, n, Memory::cuda),
      TableView::blocks(DType::float32, n, d, fill),
  };
  if (cuda_context().device().find(',') != std::string::npos) {  // VICINAL_TEST_DEVICES names several
    const auto is_there = [](const TableView& view) { return view.memory() == Memory::cuda; };
    for (const TableView& view : views) {
      if (!is_there(view)) continue;
      refused([&] { kmeans(cuda_context(), view, options); }, ErrorCode::device_unavailable,
              "table: is in CUDA memory, which " + cuda_context().device() + " cannot divide");
    }
    std::erase_if(views, is_there);
  }
  for (const TableView& view : views) {
    const KMeans got = kmeans(cuda_context(), view, options);
    expect_same(got, expected, "view " + std::to_string(&view - views.data()));
    EXPECT_EQ(predict(cuda_context(), got, view), expected.labels);
    EXPECT_EQ(score(cuda_context(), got, view), -expected.inertia);
  }
  std::vector<double> weights(n, 1.5);
  for (std::size_t i = 0; i < weights.size(); i += 4) weights[i] = 0;
  KMeansOptions weighted = options;
  weighted.weights = weights;
  const KMeans partly = reference::kmeans(TableView(values.data(), n, d), weighted);
  for (const TableView& view : views) expect_same(kmeans(cuda_context(), view, weighted), partly, "weights of 0");
  weighted.metric = Metric::cosine;
  const KMeans by_angle = reference::kmeans(TableView(values.data(), n, d), weighted);
  for (const TableView& view : views) expect_same(kmeans(cuda_context(), view, weighted), by_angle, "cosine");
}

TEST(KMeansRefusal, ATableBeyondTheDeviceBeforeItStarts) {
  if (!cuda_missing().empty()) GTEST_SKIP() << "no CUDA: " << cuda_missing();
  // Not even the labels fit, or a part of the table.
  const Context ctx = Context::cuda({.device_memory_limit = 1000, .threads = 1});
  const std::vector<float> rows(300000, 1);
  try {
    kmeans(ctx, TableView(rows.data(), 100000, 3), {.clusters = 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
  }
}

TEST(KMeansRefusal, OverMemoryBeforeItStarts) {
  const Rows rows = make_rows(Family::gaussian, {5000, 4, 1}, 2);
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = 20000});
  try {
    kmeans(ctx, TableView(rows.table.data(), 5000, 4), {.clusters = 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory);
  }
}

}  // namespace
}  // namespace vicinal::contract
