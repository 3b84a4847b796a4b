// The outlier scores against the reference (contract clause 13): every score, policy and metric, hard data.
// fake device, sanitized: All/LofOfFamily.*/duplicates
// fake device, together: Lof.TablesOnADevice:Lof.RowsThatComeInBlocks

#include "vicinal/lof.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "device_memory.hpp"
#include "lof_check.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

bool looks_at_places(const LofOptions& options) {
  return options.duplicates == Duplicates::distinct || options.ties == Ties::all;
}

// Every score with every policy that it knows, and lof over a range.
std::vector<LofOptions> every_score(std::int64_t k) {
  std::vector<LofOptions> all;
  for (const Duplicates duplicates :
       {Duplicates::sklearn, Duplicates::infinite, Duplicates::one, Duplicates::distinct, Duplicates::cap}) {
    for (const Ties ties : {Ties::cut, Ties::all}) {
      for (const OutlierScore score : {OutlierScore::lof, OutlierScore::simplified_lof}) {
        all.push_back({.k = k, .score = score, .duplicates = duplicates, .ties = ties});
      }
    }
    if (duplicates == Duplicates::distinct) continue;
    all.push_back({.k = k, .score = OutlierScore::inflo, .duplicates = duplicates});
    for (const AcrossK across : {AcrossK::max, AcrossK::mean, AcrossK::min}) {
      all.push_back({.k = std::max<std::int64_t>(1, k / 3), .k_to = k + 1, .across = across, .duplicates = duplicates});
    }
  }
  for (const OutlierScore score : {OutlierScore::knn, OutlierScore::knn_weighted, OutlierScore::loop}) {
    for (const Duplicates duplicates : {Duplicates::sklearn, Duplicates::distinct}) {
      for (const Ties ties : {Ties::cut, Ties::all}) {
        all.push_back({.k = k, .score = score, .duplicates = duplicates, .ties = ties});
      }
    }
  }
  all.push_back({.k = k, .score = OutlierScore::loop, .lambda = 1.5});
  for (const OutlierScore score : {OutlierScore::ldof, OutlierScore::cof, OutlierScore::cof_pyod}) {
    all.push_back({.k = std::max<std::int64_t>(2, k), .score = score});
  }
  return all;
}

// All options, each in one context of the CPU and on the device, every seventh in all.
void check_every_score(const Ranked& data, std::int64_t k, const std::string& name, std::uint64_t turn) {
  const auto n = static_cast<std::int64_t>(data.within.size());
  for (LofOptions options : every_score(k)) {
    ++turn;
    if (is_left_out(turn) || options.k > n - 1 || options.k_to > n - 1) continue;
    options.novelty = turn % 3 != 0 && options.score != OutlierScore::inflo;
    if (turn % 4 == 1) options.contamination = turn % 8 == 1 ? 0.05 : 0.37;
    std::vector<Context> made = contexts(turn);
    if (turn % 7 != 0 && made.size() > 3) made = {made[made.size() - 4 + turn % 4], made.front()};
    check_lof(data, options, name, made);
    if (::testing::Test::HasFailure()) return;
  }
}

struct By {
  Metric metric;
  double p = 2;
};
const By kLofMetrics[] = {{Metric::euclidean}, {Metric::sqeuclidean}, {Metric::manhattan},   {Metric::chebyshev},
                          {Metric::cosine},    {Metric::hamming},     {Metric::minkowski, 3}};

class LofOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(LofOfFamily, EqualsTheReference) {
  const auto family = static_cast<std::uint64_t>(GetParam());
  const Shape shape = {157, 5, 23};
  const Rows rows = make_rows(GetParam(), shape, 3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const By by = i == 0 ? By{Metric::euclidean} : kLofMetrics[1 + (2 * family + i) % 6];
    const DType dtype = i == 1 ? DType::float32 : DType::float64;
    const auto layout = static_cast<Layout>((family + i) % static_cast<std::uint64_t>(Layout::blocks));
    const Ranked data(rows, shape.d, by.metric, by.p, dtype, layout);
    if (!data.overflow.empty()) continue;
    check_every_score(data, i == 2 ? 21 : 6, std::string(name_of(GetParam())) + " " + std::string(name_of(dtype)),
                      family + i);
    if (HasFailure()) return;
  }
}

std::vector<Family> lof_families() {
  std::vector<Family> all;
  for (int i = 0; i < kFamilies; ++i) all.push_back(static_cast<Family>(i));
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, LofOfFamily, ::testing::ValuesIn(lof_families()),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(Lof, Sizes) {
  struct Size {
    std::int64_t n, d, k;
  };
  std::uint64_t turn = 0;
  for (const auto& [n, d, k] : {Size{2, 1, 1}, Size{3, 2, 1}, Size{3, 1, 2}, Size{9, 3, 8}, Size{10, 1, 7},
                                Size{33, 2, 32}, Size{65, 9, 17}, Size{300, 3, 64}}) {
    for (const Family family : {Family::gaussian, Family::integer_ties, Family::duplicates, Family::constant}) {
      const Ranked data(make_rows(family, {n, d, 5}, ++turn), d);
      check_every_score(data, k, std::string(name_of(family)) + " n=" + std::to_string(n), turn);
      if (HasFailure()) return;
    }
  }
}

TEST(Lof, RowsThatComeInBlocks) {
  const Ranked data(make_rows(Family::integer_ties, {300, 3, 40}, 4), 3, Metric::euclidean, 2, DType::float32,
                    Layout::blocks);
  for (LofOptions options : every_score(9)) {
    const bool needs_memory = looks_at_places(options) || options.score >= OutlierScore::ldof;
    if (needs_memory && options.score != OutlierScore::inflo) continue;
    options.novelty = options.score != OutlierScore::inflo;
    check_lof(data, options, "blocks", contexts(1));
    if (HasFailure()) return;
  }
}

// Where the rows lie must not show, but that places are looked for in host memory.
TEST(Lof, TablesOnADevice) {
  if (!cuda_missing().empty()) GTEST_SKIP() << "no CUDA: " << cuda_missing();
  const Ranked data(make_rows(Family::clusters_1e2, {500, 4, 60}, 4), 4);
  const std::vector<double> values = reference::widen(data.table.view());
  const std::vector<double> asked = reference::widen(data.queries.view());
  const DeviceArray<double> there(values);
  const DeviceArray<double> asked_there(asked);
  const TableView table(there.data(), DType::float64, 500, 4, 4, 1, Memory::cuda);
  const TableView queries(asked_there.data(), DType::float64, 60, 4, 4, 1, Memory::cuda);
  const Context& ctx = cuda_context();
  if (cuda_context().device().find(',') != std::string::npos) {  // VICINAL_TEST_DEVICES names several
    expect_refused(ErrorCode::device_unavailable, "table: is in CUDA memory, which " + ctx.device() + " cannot divide",
                   "several devices", [&] { (void)lof(ctx, table, {.k = 9}); });
    return;
  }
  for (LofOptions options : every_score(9)) {
    options.novelty = options.score != OutlierScore::inflo;
    if (looks_at_places(options)) {
      expect_refused(ErrorCode::invalid_argument, "host memory", text(options),
                     [&] { (void)lof(ctx, table, options); });
      continue;
    }
    const Index index(ctx, table);
    const Lof got = lof(ctx, index, options);
    const Lof expected = reference::lof(data.table.view(), data.within, options);
    expect_same(got, expected, "on the device, " + text(options));
    if (!options.novelty) continue;
    expect_same_scores(novelty(ctx, index, got, queries),
                       reference::novelty(data.table.view(), expected, data.queries.view(), data.across), options.score,
                       "on the device, queries, " + text(options));
    if (HasFailure()) return;
  }
}

// Two places of a thousand rows each among a few hundred others: neighborhoods within copies, beside them, and half of
// them copies.
TEST(Lof, CopiesByTheThousand) {
  Rows rows = make_rows(Family::gaussian, {2300, 2, 40}, 5);
  for (std::size_t i = 0; i < 2000; ++i) {
    rows.table[2 * i] = i % 2 == 0 ? 0.5 : -0.0;
    rows.table[2 * i + 1] = i % 2 == 0 ? 1 : 0;
  }
  for (std::size_t i = 0; i < 10; ++i) {
    rows.queries[2 * i] = i % 2 == 0 ? 0.5 : 0.0;
    rows.queries[2 * i + 1] = i % 2 == 0 ? 1 : -0.0;
  }
  const Ranked data(rows, 2);
  std::uint64_t turn = 0;
  for (LofOptions options : every_score(20)) {
    ++turn;
    if (options.score == OutlierScore::cof || is_left_out(turn)) continue;
    options.novelty = options.score != OutlierScore::inflo;
    std::vector<Context> made = contexts(turn);
    made.erase(made.begin() + std::min<std::ptrdiff_t>(2, std::ssize(made)), made.end());
    check_lof(data, options, "2000 copies", made);
    if (HasFailure()) return;
  }
}

// A table worth dividing among threads, and neighborhoods longer than any block of them.
TEST(Lof, MoreRowsWhateverTheThreads) {
  const Ranked data(make_rows(Family::clusters_1e2, {1500, 3, 300}, 8), 3);
  for (const OutlierScore score :
       {OutlierScore::lof, OutlierScore::loop, OutlierScore::inflo, OutlierScore::ldof, OutlierScore::cof_pyod}) {
    check_lof(data, {.k = 30, .score = score, .contamination = 0.01, .novelty = score != OutlierScore::inflo},
              "1500 rows", contexts(1));
    if (HasFailure()) return;
  }
  check_lof(data, {.k = 10, .k_to = 50, .novelty = true}, "1500 rows", contexts(2));
  check_lof(data, {.k = 700}, "1500 rows", contexts(3));
}

// On a lattice most k-th distances are shared, on a line with copies the k-th place is far beyond the k-th row.
TEST(Lof, TiesAndPlacesOnALattice) {
  Rows rows = make_rows(Family::grid, {400, 2, 30}, 1);
  for (std::size_t i = 0; i < rows.table.size() / 4; ++i) rows.table[i] = rows.table[i % 10];
  for (const std::int64_t k : {1, 3, 4, 12, 50}) {
    for (const By by : {By{Metric::euclidean}, By{Metric::manhattan}, By{Metric::chebyshev}}) {
      const Ranked data(rows, 2, by.metric, by.p);
      std::uint64_t turn = static_cast<std::uint64_t>(k);
      for (LofOptions options : every_score(k)) {
        ++turn;
        if (!looks_at_places(options) || is_left_out(turn)) continue;
        options.novelty = true;
        std::vector<Context> made = contexts(turn);
        made.erase(made.begin() + std::min<std::ptrdiff_t>(2, std::ssize(made)), made.end());
        check_lof(data, options, "lattice with copies", made);
        if (HasFailure()) return;
      }
    }
  }
}

// Four points and their scores from scikit-learn's manual page of LocalOutlierFactor, to the digits given there.
TEST(Lof, TheExampleOfScikitLearn) {
  const std::vector<double> rows = {-1.1, 0.2, 101.1, 0.3};
  const std::vector<double> expected = {0.9821, 1.0370, 73.3697, 0.9821};
  for (const Context& ctx : contexts(0)) {
    const Lof got = lof(ctx, TableView(rows.data(), 4, 1), {.k = 2});
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::fabs(got.scores[i] - expected[i]) <= 5e-4) << got.scores[i];
    EXPECT_EQ(got.threshold, 1.5);
    EXPECT_EQ(got.outliers, 1);
    EXPECT_EQ(got.copied, 0);
  }
}

// What the policies are for, on rows that anyone can follow: four copies of 0, a row beside them, and three far away.
TEST(Lof, PoliciesForCopies) {
  const std::vector<double> rows = {0, 0, 0, 0, 1, 10, 12, 13};
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Context& ctx : contexts(0)) {
    const auto scores = [&](Duplicates duplicates) {
      return lof(ctx, TableView(rows.data(), 8, 1), {.k = 2, .duplicates = duplicates}).scores;
    };
    EXPECT_EQ(scores(Duplicates::infinite)[0], 1);
    EXPECT_EQ(scores(Duplicates::infinite)[4], infinity);
    EXPECT_EQ(scores(Duplicates::one)[0], 1);
    EXPECT_EQ(scores(Duplicates::sklearn)[0], 1);
    EXPECT_TRUE(scores(Duplicates::sklearn)[4] > 1e9);
    // Its other places are 0, four rows, and 10; theirs are 1 and 10: nothing is without bound.
    EXPECT_TRUE(std::isfinite(scores(Duplicates::distinct)[4]));
    EXPECT_TRUE(std::isfinite(scores(Duplicates::cap)[4]));
    EXPECT_EQ(lof(ctx, TableView(rows.data(), 8, 1), {.k = 2}).copied, 4);
  }
}

}  // namespace
}  // namespace vicinal::contract
