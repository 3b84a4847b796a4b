// What the tests of k-means have in common: results held against the reference bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "contexts.hpp"
#include "reference/kmeans.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::contract {

inline void expect_same(const KMeans& got, const KMeans& expected, const std::string& what) {
  EXPECT_EQ(got.iterations, expected.iterations) << what;
  EXPECT_EQ(name_of(got.stopped), name_of(expected.stopped)) << what;
  EXPECT_EQ(got.labels, expected.labels) << what;
  EXPECT_EQ(got.sizes, expected.sizes) << what;
  EXPECT_TRUE(same_bits(got.centres, expected.centres)) << what << ": centres";
  EXPECT_TRUE(same_bits({got.inertia}, {expected.inertia})) << what << ": " << got.inertia << " " << expected.inertia;
  EXPECT_TRUE(same_bits(got.history, expected.history)) << what << ": history";
}

inline void check_kmeans(const TableView& table, const KMeansOptions& options, const std::string& what,
                         std::uint64_t turn = 0) {
  const KMeans expected = reference::kmeans(table, options);
  for (const Context& ctx : contexts(turn)) {
    const KMeans got = kmeans(ctx, table, options);
    expect_same(got, expected,
                what + ", " + ctx.device() + " " + std::string(name_of(ctx.isa())) + ", threads " +
                    std::to_string(ctx.threads()));
    if (::testing::Test::HasFailure()) return;
  }
}

inline std::string text(const KMeansOptions& options) {
  return std::string(name_of(options.init)) + " k=" + std::to_string(options.clusters) +
         " runs=" + std::to_string(options.runs) + " weights=" + std::to_string(options.weights.size()) +
         " rule=" + std::to_string(static_cast<int>(options.rule)) +
         " empty=" + std::to_string(static_cast<int>(options.empty)) + " " + std::string(name_of(options.metric));
}

}  // namespace vicinal::contract
