// Cases that k-means of ranks and k-means of shards that are asked have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "data.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::contract {

/// Weights of 230 rows, and the same with zeros for all rows of some shards.
struct ShardWeights {
  static constexpr std::int64_t kRows = 230;
  std::vector<double> all;
  std::vector<double> some_zero;

  ShardWeights() {
    for (std::int64_t i = 0; i < kRows; ++i) all.push_back(0.3 * static_cast<double>(1 + i % 4));
    some_zero = all;
    for (std::size_t i = 0; i < some_zero.size(); ++i) {
      if (i % 5 == 0 || i < 3 || (i > 60 && i < 160)) some_zero[i] = 0;
    }
  }
};

/// Centers so far away that clusters are empty: check(table, options, name, turn) with each rule, weighted and not.
template <class Check>
void check_empty_clusters(std::initializer_list<Family> families, const Check& check) {
  constexpr std::int64_t n = 180;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < n; ++i) weights.push_back(i % 6 == 5 ? 0 : 1 + 0.37 * static_cast<double>(i % 4));
  std::uint64_t turn = 0;
  for (const Family family : families) {
    const Rows rows = make_rows(family, {n, 4, 1}, 17);
    const TableView table(rows.table.data(), n, 4);
    std::vector<double> centres(rows.table.begin(), rows.table.begin() + 20 * 4);
    for (std::size_t i = 0; i < 12 * 4; ++i) centres[i] = 1e3 + static_cast<double>(i);
    for (const EmptyClusters empty : {EmptyClusters::farthest, EmptyClusters::keep}) {
      for (const bool weighted : {false, true}) {
        KMeansOptions options{.clusters = 20, .init = KMeansInit::given, .centres = TableView(centres.data(), 20, 4)};
        options.empty = empty;
        options.history = weighted;
        options.max_iterations = 6;
        if (weighted) options.weights = weights;
        if (++turn % 3 == 0) {
          options.rule = KMeansRule::classical;
          options.changed_share = 0.01;
        }
        check(table, options, std::string(name_of(family)), turn);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace vicinal::contract
