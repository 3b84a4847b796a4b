// sort_edges: the order of std::sort whatever the number of threads, where keys differ in their upper halves, in their
// lower halves alone, or not at all; a cancel is noticed while edges are ordered by halves.
#include "cpu/density/sort_edges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backend/density.hpp"
#include "core/philox.hpp"
#include "counted_polls.hpp"
#include "cpu/density/components.hpp"
#include "vicinal/context.hpp"

namespace vicinal {
namespace {

using kernels::TreeEdge;

double uniform_of(std::int64_t i) {
  return core::philox_uniform(1, 0, static_cast<std::uint64_t>(i));
}

/// Edges with keys of key_of(i), i below `size`. Their rows are in no order.
template <class KeyOf>
std::vector<TreeEdge> edges_of(std::int64_t size, const KeyOf& key_of) {
  std::vector<TreeEdge> edges;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto row = static_cast<std::int64_t>(uniform_of(i) * 1e6);
    edges.push_back({.key = key_of(i), .a = row, .b = row + 1 + i % 7});
  }
  return edges;
}

void expect_sorted(const std::vector<TreeEdge>& edges, const std::string& what) {
  std::vector<TreeEdge> expected = edges;
  std::sort(expected.begin(), expected.end(), cpu::lighter);
  for (const int threads : {1, 2, 3, 7}) {
    std::vector<TreeEdge> found = edges;
    cpu::sort_edges(Context::cpu({.threads = threads}), found);
    const auto differing =
        std::mismatch(found.begin(), found.end(), expected.begin(),
                      [](const auto& x, const auto& y) { return x.key == y.key && x.a == y.a && x.b == y.b; });
    EXPECT_EQ(differing.first - found.begin(), std::ssize(found)) << what << ", " << threads << " threads";
  }
}

TEST(SortEdges, IsTheOrderOfASort) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const std::int64_t size : {0, 1, 2, 4095, 4096, 4097, 16384, 50000}) {
    const auto expect = [&](const std::string& what, const auto& key_of) {
      expect_sorted(edges_of(size, key_of), std::to_string(size) + " edges, " + what);
    };
    expect("keys of both signs", [](std::int64_t i) { return uniform_of(2 * i) - 0.5; });
    expect("keys of all sizes",
           [](std::int64_t i) { return std::ldexp(uniform_of(3 * i) - 0.5, static_cast<int>(i % 2000) - 1000); });
    expect("equal keys", [](std::int64_t) { return 2.5; });
    expect("three keys", [](std::int64_t i) { return static_cast<double>(i % 3 - 1); });
    // 2^-30 of a key is below its upper half.
    expect("runs of halves", [](std::int64_t i) { return static_cast<double>(i % 100) + 1 + 0x1p-30 * uniform_of(i); });
    expect("one half", [](std::int64_t i) { return 1 + 0x1p-30 * uniform_of(i); });
    expect("some zeros of both signs",
           [](std::int64_t i) { return i % 50 == 0 ? 0.0 : (i % 75 == 1 ? -0.0 : uniform_of(i) - 0.5); });
    expect("infinities",
           [](std::int64_t i) { return i % 40 == 0 ? (i % 80 == 0 ? kInfinity : -kInfinity) : uniform_of(i); });
  }
}

// Halves are made, ordered by three digits in two loops each, and followed by edges, which are compared in runs.
TEST(Polls, OrderOfEdgesByHalves) {
  const Context ctx = Context::cpu({.threads = 2});
  std::vector<TreeEdge> edges = edges_of(kManyRows, [](std::int64_t i) { return uniform_of(i); });
  const std::int64_t tasks = 2 * of_tasks(ctx, kManyRows / 4096) + of_tasks(ctx, kManyRows / 16384);
  EXPECT_GE(polls_of([&] { cpu::sort_edges(ctx, edges); }), tasks + 3 * 2 * kManyRows / kBetweenLooks);
}

}  // namespace
}  // namespace vicinal
