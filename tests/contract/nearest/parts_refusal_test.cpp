// Clause 26: which parts are refused, and in which words. Twelve rows on a line, so that every list is known.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "parts_check.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

/// Twelve rows on a line, of which queries are.
class LineParts : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 12;

  LineParts() {
    for (std::int64_t i = 0; i < kRows; ++i) rows_.push_back(static_cast<double>(i * i));
  }
  [[nodiscard]] TableView table() const { return {rows_.data(), kRows, 1}; }
  NeighborPart part(std::int64_t begin, std::int64_t end, const KnnOptions& options = {.k = 3},
                    PartOptions place = {.self = true}) const {
    place.first_id = begin;
    return knn_part(ctx_, table().slice(begin, end), table(), options, place);
  }
  void expect_refused(const std::vector<NeighborPart>& parts, const std::string& sentence,
                      ErrorCode code = ErrorCode::invalid_argument) const {
    refused([&] { merge(ctx_, parts); }, code, sentence);
    refused([&] { merge(ctx_, sources_of(parts)); }, code, sentence);
  }

  std::vector<double> rows_;
  Context ctx_ = Context::cpu({.threads = 2});
};

TEST_F(LineParts, ThatDoNotFitAreRefused) {
  const std::vector<NeighborPart> none;
  expect_refused(none, "parts: there are none to merge");
  expect_refused({part(0, 5), part(5, 12, {.k = 2})}, "parts: the k of part 0 is 3, but that of part 1 is 2");
  expect_refused({part(0, 5), part(5, 12, {.k = 3, .metric = Metric::manhattan})},
                 "parts: the metric of part 0 is euclidean, but that of part 1 is manhattan");
  expect_refused({part(0, 5, {.k = 3, .metric = Metric::minkowski, .p = 3}),
                  part(5, 12, {.k = 3, .metric = Metric::minkowski, .p = 1.5})},
                 "parts: the exponent p of part 0 is 3, but that of part 1 is 1.5");
  expect_refused({part(0, 5), part(5, 12, {.k = 3}, {.self = false})},
                 "the queries of part 0 are rows of the table, but those of part 1 are not");
  expect_refused({part(0, 5), part(5, 12, {.k = 3}, {.self = true, .total_rows = 12})}, "the number of all rows");
  expect_refused({part(0, 5), part(5, 12, {.k = 3}, {.self = true, .total_queries = 12})}, "the number of all queries");
  const std::vector<double> wide(24, 1.0);
  const NeighborPart of_two_columns = knn_part(ctx_, TableView(wide.data(), 7, 2), TableView(wide.data(), 12, 2),
                                               {.k = 3}, {.first_id = 5, .self = true});
  expect_refused({part(0, 5), of_two_columns}, "the number of columns of part 0 is 1, but that of part 1 is 2");
  const NeighborPart within =
      radius_part(ctx_, table().slice(5, 12), table(), {.radius = 9}, {.first_id = 5, .self = true});
  expect_refused({part(0, 5), within}, "the kind of part 0 is knn, but that of part 1 is radius");
  const NeighborPart other = radius_part(ctx_, table().slice(0, 5), table(), {.radius = 8}, {.self = true});
  expect_refused({within, other}, "the radius of part 0 is 9, but that of part 1 is 8");
  const std::vector<double> radii(kRows, 9);
  const NeighborPart each = radius_part(ctx_, table().slice(0, 5), table(), {.radii = radii}, {.self = true});
  expect_refused({within, each}, "part 1 has a radius for each query, but part 0 has one for all");
  std::vector<double> others = radii;
  others[4] = 8;
  const NeighborPart again =
      radius_part(ctx_, table().slice(5, 12), table(), {.radii = others}, {.first_id = 5, .self = true});
  expect_refused({each, again}, "the radii of part 0 are others than those of part 1");
  const NeighborPart by_id =
      radius_part(ctx_, table().slice(0, 5), table(), {.radius = 9, .order = RadiusOrder::id}, {.self = true});
  expect_refused({within, by_id}, "the order of lists of part 0 is key, but that of part 1 is id");
  // Numbers that no search has.
  NeighborPart strange = part(0, 12);
  strange.info.order = RadiusOrder::id;
  expect_refused({strange}, "describe no part of a search");
  for (const double p :
       {0.5, 0.0, -0.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    strange = part(0, 12, {.k = 3, .metric = Metric::minkowski, .p = 3});
    strange.info.p = p;
    expect_refused({strange}, "describe no part of a search");
  }
  strange = within;
  strange.info.radius = std::numeric_limits<double>::quiet_NaN();
  expect_refused({strange}, "describe no part of a search");
  const NeighborPart counts = count_part(ctx_, table(), table(), {.radius = 9}, {.self = true});
  expect_refused({counts}, "merge_counts merges");
  refused([&] { merge_counts(ctx_, std::vector{part(0, 12)}); }, ErrorCode::invalid_argument, "which merge merges");
}

TEST_F(LineParts, ThatAreMissingAreNamed) {
  expect_refused({part(0, 2), part(4, 5), part(8, 12)}, "parts: rows 2 to 3, 5 to 7 are missing");
  expect_refused({part(3, 12)}, "parts: rows 0 to 2 are missing");
  expect_refused({part(0, 11, {.k = 3}, {.self = true, .total_rows = 12})}, "parts: rows 11 are missing");
  expect_refused({part(0, 6), part(5, 12)}, "parts: part 0 and part 1 both have rows 5 for the same queries");
  expect_refused({part(0, 12), part(0, 12)}, "both have rows 0 to 11");
  const auto some = [&](std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to,
                        std::int64_t total = 0) {
    return knn_part(ctx_, table().slice(begin, end), table().slice(from, to), {.k = 2},
                    {.first_id = begin, .first_query = from, .self = true, .total_queries = total});
  };
  expect_refused({some(0, 12, 0, 4), some(0, 12, 6, 12)}, "parts: queries 4 to 5 are missing");
  expect_refused({some(0, 12, 3, 12, 12)}, "parts: queries 0 to 2 are missing");
  expect_refused({some(0, 12, 0, 9, 12)}, "parts: queries 9 to 11 are missing");
  expect_refused({some(0, 12, 0, 5), some(0, 12, 4, 12)}, "which must be the same or have none in common");
  expect_refused({some(0, 12, 0, 5), some(0, 9, 5, 12)}, "parts: rows 9 to 11 are missing for some of the queries");
  expect_refused({some(0, 12, 0, 5), some(3, 12, 5, 12)}, "parts: rows 0 to 2 are missing for queries 5 to 11");
  // Without a total any consecutive queries can be merged.
  const NeighborGraph graph = merge(ctx_, std::vector{some(7, 12, 3, 6), some(0, 7, 3, 6), some(0, 12, 6, 8)});
  EXPECT_EQ(graph.rows, 5);
  const NeighborGraph whole = knn(ctx_, table(), {.k = 2});
  EXPECT_TRUE(std::equal(graph.ids.begin(), graph.ids.end(), whole.ids.begin() + 6));
}

TEST_F(LineParts, KMayExceedAShardButNotTheTable) {
  expect_refused({part(0, 5, {.k = 12}), part(5, 12, {.k = 12})},
                 "k: is 12, but at most 11 of the 12 table rows can be neighbors; a row is not its own neighbor");
  refused([&] { part(0, 5, {.k = 12}, {.self = true, .total_rows = 12}); }, ErrorCode::invalid_argument,
          "k: is 12, but at most 11 of the 12 table rows");
  refused([&] { part(0, 5, {.k = 0}); }, ErrorCode::invalid_argument, "k: is 0, must be at least 1");
  // With a filter only the merge knows.
  const std::vector<std::uint64_t> three = {0b10101};
  const std::vector<std::uint64_t> nobody = {0};
  const NeighborPart first = part(0, 5, {.k = 3, .filter = three});
  EXPECT_EQ(first.offsets[1], 2);  // row 0 is one of the three
  const NeighborPart second = part(5, 12, {.k = 3, .filter = nobody});
  EXPECT_TRUE(second.ids.empty());
  expect_refused({first, second}, "k: is 3, but at most 2 of the 12 table rows");
  const std::vector<std::uint64_t> one_more = {0b100};
  EXPECT_EQ(merge(ctx_, std::vector{first, part(5, 12, {.k = 3, .filter = one_more})}).ids_of(2)[2], 7);
}

TEST_F(LineParts, ListsThatNoSearchMakesAreRefused) {
  const std::string sentence = "is none that a search makes";
  const auto broken = [&](const auto& breaks) {
    std::vector<NeighborPart> parts = {part(0, 5), part(5, 12)};
    breaks(parts[1]);
    return parts;
  };
  expect_refused(broken([](NeighborPart& p) { p.ids[4] = 12; }), sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.ids[4] = 4; }), sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.ids[4] = -1; }), sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { std::swap(p.ids[3], p.ids[4]), std::swap(p.keys[3], p.keys[4]); }),
                 "query 1 " + sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.ids[4] = p.ids[3], p.keys[4] = p.keys[3]; }), sentence,
                 ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.keys[5] = std::nan(""); }), sentence, ErrorCode::bad_data);
  expect_refused(broken([](NeighborPart& p) { p.keys[5] = std::numeric_limits<double>::infinity(); }), sentence,
                 ErrorCode::bad_data);
  // Its own row, where queries are rows of the table.
  expect_refused(broken([](NeighborPart& p) { p.ids[7 * 3] = 7, p.keys[7 * 3] = 0; }), sentence, ErrorCode::bad_data);
  const auto refuse_sizes = [&](const std::vector<NeighborPart>& parts, const std::string& why) {
    refused([&] { merge(ctx_, parts); }, ErrorCode::bad_data, why);
  };
  refuse_sizes(broken([](NeighborPart& p) { p.ids.pop_back(); }), "more ids than keys, or fewer");
  refuse_sizes(broken([](NeighborPart& p) { p.ids.pop_back(), p.keys.pop_back(); }), "k neighbors each");
  refuse_sizes(broken([](NeighborPart& p) { p.offsets = {0, 36}; }), "its offsets do not divide its lists");
  refuse_sizes(broken([](NeighborPart& p) { p.radii = {1}; }), "its radii do not number its queries");
  refuse_sizes(broken([](NeighborPart& p) { p.counts = {1}; }), "it has counts beside its lists");
  refuse_sizes(broken([](NeighborPart& p) {
                 p.offsets.assign(13, 36);
                 p.offsets[0] = 0;
               }),
               "a list is longer than it may be");
  std::vector<NeighborPart> counts = {count_part(ctx_, table(), table(), {.radius = 9}, {.self = true})};
  counts[0].counts[3] = 13;
  refused([&] { merge_counts(ctx_, counts); }, ErrorCode::bad_data, "above the number of its rows");
  counts[0].info.queries = 0;
  refused([&] { merge_counts(ctx_, counts); }, ErrorCode::invalid_argument, "describe no part of a search");
}

TEST_F(LineParts, SentencesCountRowsAndQueriesOfTheWholeSearch) {
  for (const Way& way : some_ways(0)) {
    const Context& ctx = context_of(way);
    const PartOptions place = {.first_id = 1000, .first_query = 500};
    std::vector<double> bad = rows_;
    bad[3] = std::nan("");
    const TableView broken(bad.data(), kRows, 1);
    refused([&] { knn_part(ctx, broken, table(), {.k = 3}, place); }, ErrorCode::bad_data, "table: row 1003, column 0");
    refused([&] { knn_part(ctx, table(), broken, {.k = 3}, place); }, ErrorCode::bad_data,
            "queries: row 503, column 0");
    refused([&] { count_part(ctx, table(), broken, {.radius = 1}, place); }, ErrorCode::bad_data, "queries: row 503");
    bad = rows_;
    bad[7] = 1e200;
    const TableView huge(bad.data(), kRows, 1);
    for (const Method method : {Method::automatic, Method::kdtree, Method::insertion}) {
      refused([&] { knn_part(ctx, huge, table().slice(4, 5), {.k = 3, .method = method}, place); }, ErrorCode::bad_data,
              "query row 500 and table row 1007 overflows");
    }
    // Its own row cannot overflow: it is no neighbor.
    const NeighborPart without =
        knn_part(ctx, huge.slice(7, 8), huge.slice(7, 8), {.k = 3}, {.first_id = 7, .first_query = 7, .self = true});
    EXPECT_TRUE(without.ids.empty());
  }
  refused([&] { part(0, 5, {.k = 3, .exclude = std::vector<std::int64_t>(3, 0)}); }, ErrorCode::invalid_argument,
          "exclude: 3 ids for 12 queries");
  std::vector<std::int64_t> exclude(kRows, -1);
  exclude[2] = 12;
  EXPECT_NO_THROW(part(0, 5, {.k = 3, .exclude = exclude}));
  refused([&] { part(0, 5, {.k = 3, .exclude = exclude}, {.self = true, .total_rows = 12}); },
          ErrorCode::invalid_argument, "exclude: entry 2 is 12, not -1 or a row of the table");
  exclude[2] = -2;
  refused([&] { part(0, 5, {.k = 3, .exclude = exclude}); }, ErrorCode::invalid_argument, "exclude: entry 2 is -2");
}

TEST_F(LineParts, PlacesOutsideOfTheWholeAreRefused) {
  const auto refuse_place = [&](const PartOptions& place, const std::string& why) {
    refused([&] { knn_part(ctx_, table(), table(), {.k = 3}, place); }, ErrorCode::invalid_argument, why);
    refused([&] { radius_part(ctx_, table(), table(), {.radius = 3}, place); }, ErrorCode::invalid_argument, why);
    refused([&] { plan_knn_part(ctx_, table(), table(), {.k = 3}, place); }, ErrorCode::invalid_argument, why);
  };
  refuse_place({.first_id = -1}, "first_id: is -1, must be at least 0");
  refuse_place({.first_query = -1}, "first_query: is -1, must be at least 0");
  refuse_place({.total_rows = -1}, "total_rows: is -1, must be at least 0");
  refuse_place({.first_id = 9, .total_rows = 20}, "first_id: 9 to 20 are not all among the 20 that total_rows says");
  refuse_place({.first_query = 9, .total_queries = 20}, "first_query: 9 to 20 are not all among the 20");
  refuse_place({.first_query = 9, .self = true, .total_rows = 20}, "first_query: 9 to 20 are not all among the 20");
  refuse_place({.first_id = std::numeric_limits<std::int64_t>::max() - 3}, "do not fit 64 bits");
  refused([&] { part(0, 5, {.k = 3, .metric = Metric::cosine, .method = Method::kdtree}); },
          ErrorCode::invalid_argument, "kdtree");
  refused([&] { part(0, 2, {.k = 3, .metric = Metric::cosine, .method = Method::kdtree}); },
          ErrorCode::invalid_argument, "kdtree");
}

TEST_F(LineParts, VotesAndMeansOfAMergedGraphAreThoseOfTheWhole) {
  const std::vector<std::int64_t> classes = {0, 1, 2, 0, 1, 2, 2, 1, 0, 1, 1, 0};
  const Labels labels = encode_labels(classes);
  const NeighborGraph whole = knn(ctx_, table(), {.k = 4});
  const NeighborGraph graph =
      merge(ctx_, std::vector{part(9, 12, {.k = 4}), part(0, 2, {.k = 4}), part(2, 9, {.k = 4})});
  const VoteOptions by_distance = {.weights = Weighting::distance, .probabilities = true};
  EXPECT_EQ(vote(ctx_, graph, labels, by_distance).probabilities, vote(ctx_, whole, labels, by_distance).probabilities);
  EXPECT_EQ(average(ctx_, graph, table(), {.weights = Weighting::distance}),
            average(ctx_, whole, table(), {.weights = Weighting::distance}));
  EXPECT_EQ(lof(ctx_, graph, {.k = 4}).scores, lof(ctx_, whole, {.k = 4}).scores);
  EXPECT_EQ(graph.stats.distinct_rows, 12);
}

}  // namespace
}  // namespace vicinal::contract
