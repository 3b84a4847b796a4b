// The steps of k-means against the reference after every call, bit for bit (contract clause 12, steps), and iterations
// made of them against `kmeans`.
// fake device, together: KMeansSteps.EqualTheReferenceAfterEveryCall
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "data.hpp"
#include "device_check.hpp"
#include "kmeans_check.hpp"
#include "reference/kmeans_steps.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

/// Small numbers, the same for one seed.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 2654435761U + 1) {}
  std::int64_t below(std::int64_t end) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(end));
  }

 private:
  std::uint64_t state_;
};

struct Stepped {
  TableView table;
  KMeansStepsOptions options;
  std::string what;
};

void expect_state(const KMeansSteps& got, const reference::Steps& expected, const std::string& what) {
  EXPECT_EQ(got.labels(), expected.labels()) << what;
  EXPECT_EQ(got.sizes(), expected.sizes()) << what;
  EXPECT_TRUE(same_bits(got.centres(), expected.centres())) << what << ": centres";
  EXPECT_TRUE(same_bits(got.keys(), expected.keys())) << what << ": keys";
  EXPECT_TRUE(same_bits({got.inertia()}, {expected.inertia()})) << what << ": " << got.inertia();
}

/// Rows of the table, each times a factor, as centers.
std::vector<double> some_centres(const TableView& table, std::int64_t k, Numbers& numbers) {
  const std::vector<double> rows = reference::widen(table);
  const std::int64_t d = table.cols();
  std::vector<double> centres;
  for (std::int64_t c = 0; c < k; ++c) {
    const auto row = rows.begin() + numbers.below(table.rows()) * d;
    const double factor = 0.5 + 0.25 * static_cast<double>(numbers.below(4));
    std::transform(row, row + d, std::back_inserter(centres), [&](double value) { return value * factor; });
  }
  return centres;
}

/// Calls in an order that the seed decides, each compared.
void check_calls(const Stepped& of, std::uint64_t seed) {
  const std::int64_t n = of.table.rows();
  const std::int64_t d = of.table.cols();
  const std::int64_t k = of.options.clusters;
  for (const Context& ctx : contexts(seed)) {
    Numbers numbers(seed);
    KMeansSteps got(ctx, of.table, of.options);
    reference::Steps expected(of.table, of.options);
    const std::string what = of.what + ", " + ctx.device() + ", threads " + std::to_string(ctx.threads());
    for (int round = 0; round < 3; ++round) {
      std::vector<double> centres = some_centres(of.table, k, numbers);
      got.start(TableView(centres.data(), k, d));
      expected.start(TableView(centres.data(), k, d));
      for (int step = 0; step < 6; ++step) {
        const std::string at = what + ", step " + std::to_string(6 * round + step);
        const KMeansAssigned done = got.assign();
        const KMeansAssigned wanted = expected.assign();
        EXPECT_EQ(done.changed, wanted.changed) << at;
        EXPECT_EQ(done.empty, wanted.empty) << at;
        expect_state(got, expected, at);
        for (std::int64_t moves = numbers.below(4); moves > 0; --moves) {
          const std::int64_t row = numbers.below(n);
          const auto to = static_cast<std::int32_t>(numbers.below(k));
          if (!of.options.weights.empty() && of.options.weights[static_cast<std::size_t>(row)] == 0) continue;
          got.move_row(row, to);
          expected.move_row(row, to);
          expect_state(got, expected, at + ", moved");
        }
        const double shift = got.means();
        const double wanted_shift = expected.means();
        EXPECT_TRUE(same_bits({shift}, {wanted_shift})) << at << ": " << shift << " " << wanted_shift;
        expect_state(got, expected, at + ", means");
        if (numbers.below(3) == 0) {
          centres = some_centres(of.table, k, numbers);
          got.set_centres(TableView(centres.data(), k, d));
          expected.set_centres(TableView(centres.data(), k, d));
          expect_state(got, expected, at + ", set");
        }
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(KMeansSteps, EqualTheReferenceAfterEveryCall) {
  const std::int64_t n = 230;
  const std::int64_t d = 5;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < n; ++i) weights.push_back(0.3 * static_cast<double>(1 + i % 4));
  std::vector<double> some_zero = weights;
  for (std::size_t i = 0; i < some_zero.size(); ++i) {
    if (i % 5 == 0 || (i > 60 && i < 90)) some_zero[i] = 0;
  }
  std::uint64_t turn = 0;
  for (const Family family :
       {Family::gaussian, Family::duplicates, Family::clusters_1e6, Family::integer_ties, Family::column_scales}) {
    const Rows rows = make_rows(family, {n, d, 1}, 8);
    const bool zeros = family == Family::integer_ties;  // rows that have no direction
    for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
      for (const auto& weights_of : {std::vector<double>(), weights, some_zero}) {
        ++turn;
        if (is_left_out(turn) || (zeros && metric == Metric::cosine)) continue;
        const DType dtype = turn % 3 == 0 ? DType::float64 : DType::float32;
        const Stored stored(rows.table, d, dtype, static_cast<Layout>(turn % kLayouts));
        const KMeansStepsOptions options{.clusters = turn % 2 == 0 ? 7 : 31, .metric = metric, .weights = weights_of};
        check_calls({stored.view(), options,
                     std::string(name_of(family)) + " " + std::string(name_of(metric)) + " " + std::to_string(turn)},
                    turn);
        if (HasFailure()) return;
      }
    }
  }
}

// Clusters that are more than the rows, and a single row.
TEST(KMeansSteps, MayHaveMoreClustersThanRows) {
  const std::vector<float> rows = {1, 2, 4, 8, 16, 32};
  check_calls({TableView(rows.data(), 3, 2), {.clusters = 9}, "more clusters"}, 5);
  check_calls({TableView(rows.data(), 1, 2), {.clusters = 1}, "one row"}, 6);
  const std::vector<double> weights = {0, 1, 0};
  check_calls({TableView(rows.data(), 3, 2), {.clusters = 4, .weights = weights}, "one weighted row"}, 7);
}

/// The loop of `kmeans`, rule settled, made of steps.
KMeans by_steps(const Context& ctx, const TableView& table, const KMeansOptions& options) {
  KMeansSteps steps(ctx, table, {.clusters = options.clusters, .metric = options.metric, .weights = options.weights});
  KMeans result;
  result.stopped = KMeansStop::max_iterations;
  steps.start(options.centres);
  while (result.iterations < options.max_iterations) {
    ++result.iterations;
    const KMeansAssigned done = steps.assign();
    result.history.push_back(steps.inertia());
    bool moved = false;
    if (options.empty == EmptyClusters::farthest && done.empty > 0) {
      const std::vector<double> keys = steps.keys();
      const std::vector<std::int32_t> labels = steps.labels();
      std::vector<std::int64_t> sizes = steps.sizes();
      std::vector<std::int64_t> order(keys.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
      });
      auto next = order.begin();
      const std::vector<std::int64_t> before = sizes;
      for (std::size_t c = 0; c < before.size(); ++c) {
        if (before[c] > 0) continue;
        const auto counts = [&](std::int64_t row) {
          const auto at = static_cast<std::size_t>(row);
          return keys[at] > 0 && sizes[static_cast<std::size_t>(labels[at])] > 1 &&
                 (options.weights.empty() || options.weights[at] > 0);
        };
        next = std::find_if(next, order.end(), counts);
        if (next == order.end()) break;
        --sizes[static_cast<std::size_t>(labels[static_cast<std::size_t>(*next)])];
        steps.move_row(*next++, static_cast<std::int32_t>(c));
        moved = true;
      }
    }
    steps.means();
    if (done.changed == 0 && !moved) {
      result.stopped = KMeansStop::labels;
      break;
    }
  }
  if (result.stopped != KMeansStop::labels) steps.assign();
  result.labels = steps.labels();
  result.centres = steps.centres();
  result.inertia = steps.inertia();
  result.sizes = steps.sizes();
  return result;
}

TEST(KMeansSteps, ByTheRuleOfKMeansAreKMeans) {
  const std::int64_t n = 400;
  const Rows rows = make_rows(Family::clusters_1e2, {n, 4, 1}, 17);
  const TableView table(rows.table.data(), n, 4);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < n; ++i) weights.push_back(i % 6 == 5 ? 0 : 1 + 0.37 * static_cast<double>(i % 4));
  // Twenty rows, and centers so far away that their clusters are empty.
  std::vector<double> centres(rows.table.begin(), rows.table.begin() + 20 * 4);
  for (std::size_t i = 0; i < 6 * 4; ++i) centres[i] = 1e3 + static_cast<double>(i);
  std::uint64_t turn = 0;
  for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
    for (const EmptyClusters empty : {EmptyClusters::farthest, EmptyClusters::keep}) {
      for (const bool weighted : {false, true}) {
        for (const std::int64_t iterations : {3, 300}) {
          KMeansOptions options{.clusters = 20, .init = KMeansInit::given, .centres = TableView(centres.data(), 20, 4)};
          options.metric = metric;
          options.empty = empty;
          options.max_iterations = iterations;
          options.tolerance = 0;
          options.history = true;
          if (weighted) options.weights = weights;
          for (const Context& ctx : contexts(++turn)) {
            KMeans expected = kmeans(ctx, table, options);
            // There rows of weight 0 are counted in the end.
            for (std::size_t i = 0; weighted && i < expected.labels.size(); ++i) {
              if (weights[i] == 0) --expected.sizes[static_cast<std::size_t>(expected.labels[i])];
            }
            expect_same(by_steps(ctx, table, options), expected, text(options));
          }
          if (HasFailure()) return;
        }
      }
    }
  }
}

class KMeansStepsInParts : public DeviceTest {};

// A table that a device has no room for, in memory and from a source.
TEST_F(KMeansStepsInParts, TheSameBits) {
  constexpr std::int64_t n = 40000;
  constexpr std::int64_t d = 16;
  const Rows rows = make_rows(Family::clusters_1e2, {n, d, 1}, 3);
  const TableView table(rows.table.data(), n, d);
  const Stored source(rows.table, d, DType::float64, Layout::blocks);
  Numbers numbers(4);
  const std::vector<double> centres = some_centres(table, 30, numbers);
  const std::vector<double> others = some_centres(table, 30, numbers);
  for (const TableView& view : {table, source.view()}) {
    KMeansSteps got(small(2), view, {.clusters = 30});
    KMeansSteps expected(cpu(), table, {.clusters = 30});
    EXPECT_LE(got.plan().device_memory, 2 * kMegabyte);
    for (KMeansSteps* steps : {&got, &expected}) steps->start(TableView(centres.data(), 30, d));
    for (int step = 0; step < 4; ++step) {
      EXPECT_EQ(got.assign().changed, expected.assign().changed);
      for (KMeansSteps* steps : {&got, &expected}) steps->move_row(39999 - step, step);
      EXPECT_EQ(got.means(), expected.means());
      if (step == 2) {
        for (KMeansSteps* steps : {&got, &expected}) steps->set_centres(TableView(others.data(), 30, d));
      }
      EXPECT_EQ(got.labels(), expected.labels());
      EXPECT_EQ(got.sizes(), expected.sizes());
      EXPECT_TRUE(same_bits(got.keys(), expected.keys()));
      EXPECT_TRUE(same_bits(got.centres(), expected.centres()));
      EXPECT_EQ(got.inertia(), expected.inertia());
    }
  }
}

TEST(KMeansSteps, RefuseWhatTheyCannotDo) {
  const Rows rows = make_rows(Family::gaussian, {20, 3, 1}, 2);
  const TableView table(rows.table.data(), 20, 3);
  const TableView two(rows.table.data(), 2, 3);
  std::vector<double> weights(20, 1);
  weights[4] = 0;
  const auto bad = ErrorCode::invalid_argument;
  for (const Context& ctx : contexts(1)) {
    const auto make = [&](const KMeansStepsOptions& options) {
      return [&, options] { KMeansSteps(ctx, table, options); };
    };
    refused(make({.clusters = 0}), bad, "clusters: is 0, must be at least 1");
    refused(make({.clusters = std::int64_t{1} << 24}), bad, "clusters: is 16777216, must be below 16777216");
    refused(make({.metric = Metric::manhattan}), bad, "metric: k-means has no manhattan");
    refused(make({.weights = std::span(weights).first(19)}), bad, "weights: there are 19 for 20 rows");
    const std::vector<double> zero(20, 0);
    refused(make({.weights = zero}), bad, "weights: all are 0");

    KMeansSteps steps(ctx, table, {.clusters = 2, .weights = weights});
    refused([&] { steps.assign(); }, bad, "assign: there are no centers yet; call start before");
    refused([&] { steps.set_centres(two); }, bad, "set_centres: there are no centers yet");
    refused([&] { (void)steps.centres(); }, bad, "centres: there are no centers yet");
    refused([&] { steps.start(table); }, bad, "centres: are 20 x 3, but must be 2 x 3");
    const std::vector<double> infinite(6, std::numeric_limits<double>::infinity());
    refused([&] { steps.start(TableView(infinite.data(), 2, 3)); }, ErrorCode::bad_data, "centres: row 0, column 0");
    steps.start(two);
    refused([&] { steps.means(); }, bad, "means: there are no labels yet; call assign before");
    refused([&] { (void)steps.labels(); }, bad, "labels: there are no labels yet");
    refused([&] { (void)steps.sizes(); }, bad, "sizes: there are no labels yet");
    refused([&] { (void)steps.keys(); }, bad, "keys: there are no labels yet");
    refused([&] { (void)steps.inertia(); }, bad, "inertia: there are no labels yet");
    refused([&] { steps.move_row(0, 0); }, bad, "move_row: there are no labels yet");
    steps.assign();
    refused([&] { steps.move_row(20, 0); }, bad, "row: is 20, must be from 0 to 19");
    refused([&] { steps.move_row(-1, 0); }, bad, "row: is -1, must be from 0 to 19");
    refused([&] { steps.move_row(0, 2); }, bad, "cluster: is 2, must be from 0 to 1");
    refused([&] { steps.move_row(0, -1); }, bad, "cluster: is -1, must be from 0 to 1");
    refused([&] { steps.move_row(4, 0); }, bad, "row: is 4, whose weight is 0");
    // What is refused leaves everything as it was.
    EXPECT_EQ(steps.labels().size(), 20U);
    steps.start(two);
    refused([&] { (void)steps.labels(); }, bad, "labels: there are no labels yet");

    std::vector<double> broken = rows.table;
    broken[3 * 7 + 1] = std::numeric_limits<double>::quiet_NaN();
    if (ctx.device() == "cpu" || cuda_status().architectures != "fake") {
      refused([&] { KMeansSteps(ctx, TableView(broken.data(), 20, 3)); }, ErrorCode::bad_data, "row 7, column 1");
    }
    std::fill_n(broken.begin() + 3 * 7, 3, 0.0);
    refused([&] { KMeansSteps(ctx, TableView(broken.data(), 20, 3), {.metric = Metric::cosine}); }, ErrorCode::bad_data,
            "table: row 7 is all zeros");
    refused([&] { KMeansSteps(ctx.with_memory_limit(1000), table); }, ErrorCode::over_memory, "KMeansSteps");
  }
}

// A step that fails leaves no labels, since sums may have rows that are counted twice.
TEST(KMeansSteps, BeginAnewAfterAFailure) {
  const Rows rows = make_rows(Family::gaussian, {9000, 4, 1}, 2);
  const TableView two(rows.table.data(), 2, 4);
  for (const int threads : {1, 3}) {
    bool fails = false;
    const TableView table =
        TableView::blocks(DType::float64, 9000, 4, [&](std::int64_t begin, std::int64_t end, void* to) {
          if (fails && end > 5000) throw std::runtime_error("the source has run dry");
          std::copy(rows.table.begin() + begin * 4, rows.table.begin() + end * 4, static_cast<double*>(to));
        });
    KMeansSteps steps(on(threads), table, {.clusters = 2});
    steps.start(two);
    steps.assign();
    steps.means();
    fails = true;
    EXPECT_THROW(steps.assign(), std::runtime_error);
    refused([&] { steps.means(); }, ErrorCode::invalid_argument, "means: there are no centers yet");
    refused([&] { steps.assign(); }, ErrorCode::invalid_argument, "assign: there are no centers yet");
    fails = false;
    reference::Steps expected(TableView(rows.table.data(), 9000, 4), {.clusters = 2});
    steps.start(two);
    expected.start(two);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(steps.assign().changed, expected.assign().changed);
      EXPECT_EQ(steps.means(), expected.means());
    }
    EXPECT_TRUE(same_bits(steps.centres(), expected.centres()));
  }
}

TEST(KMeansSteps, StopWhenTheyAreCancelled) {
  const Rows rows = make_rows(Family::gaussian, {5000, 4, 1}, 2);
  const TableView table(rows.table.data(), 5000, 4);
  const CancelToken token;
  KMeansSteps steps(Context::cpu({.threads = 2, .cancel = token}), table, {.clusters = 3});
  steps.start(table.slice(0, 3));
  steps.assign();
  token.cancel();
  refused([&] { (void)steps.keys(); }, ErrorCode::cancelled, "");
  refused([&] { steps.means(); }, ErrorCode::cancelled, "");
  steps.start(table.slice(0, 3));
  refused([&] { steps.assign(); }, ErrorCode::cancelled, "");
}

}  // namespace
}  // namespace vicinal::contract
