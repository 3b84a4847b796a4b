// What the tests of co-clustering have in common: graphs of several kinds, and results held against the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/philox.hpp"
#include "reference/cocluster.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/error.hpp"

namespace vicinal::contract {

struct Graph {
  std::int64_t n_a = 0;
  std::int64_t n_b = 0;
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
  std::vector<double> weights;

  [[nodiscard]] BipartiteEdges edges() const { return {n_a, n_b, a, b, weights}; }
  void add(std::int64_t i, std::int64_t j) {
    a.push_back(i);
    b.push_back(j);
  }
};

/// Random numbers below a bound, by a seed.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(core::philox_uniform(seed_, 0, counter_++) * static_cast<double>(bound));
  }
  /// 0 .. size - 1 in a random order.
  std::vector<std::int64_t> order(std::int64_t size) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(size));
    std::iota(numbers.begin(), numbers.end(), 0);
    for (std::int64_t i = size - 1; i > 0; --i) {
      std::swap(numbers[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(below(i + 1))]);
    }
    return numbers;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

/// Members and edges by chance, some edges twice.
inline Graph random_graph(std::uint64_t seed, std::int64_t max_members) {
  Draws draws(seed);
  Graph graph;
  graph.n_a = draws.below(max_members + 1);
  graph.n_b = draws.below(max_members + 1);
  if (graph.n_a == 0 || graph.n_b == 0) return graph;
  const std::int64_t count = draws.below(2 * (graph.n_a + graph.n_b));
  for (std::int64_t e = 0; e < count; ++e) {
    if (e > 0 && draws.below(8) == 0) {
      const auto again = static_cast<std::size_t>(draws.below(e));
      graph.add(graph.a[again], graph.b[again]);
    } else {
      graph.add(draws.below(graph.n_a), draws.below(graph.n_b));
    }
  }
  return graph;
}

/// One path through all members, whose numbers and edges are in a random order: the deepest trees, the most products.
inline Graph random_path(std::uint64_t seed, std::int64_t members) {
  Draws draws(seed);
  Graph graph;
  graph.n_a = (members + 1) / 2;
  graph.n_b = members / 2;
  const auto a = draws.order(graph.n_a);
  const auto b = draws.order(graph.n_b);
  for (const std::int64_t e : draws.order(members - 1)) {
    graph.add(a[static_cast<std::size_t>((e + 1) / 2)], b[static_cast<std::size_t>(e / 2)]);
  }
  return graph;
}

inline void expect_same_groups(const Cocluster& got, const Cocluster& expected, const std::string& what) {
  EXPECT_EQ(got.labels_a, expected.labels_a) << what;
  EXPECT_EQ(got.labels_b, expected.labels_b) << what;
  ASSERT_EQ(got.groups.size(), expected.groups.size()) << what;
  for (std::size_t i = 0; i < got.groups.size(); ++i) {
    EXPECT_EQ(got.groups[i].label, expected.groups[i].label) << what << ", group " << i;
    EXPECT_EQ(got.groups[i].count_a, expected.groups[i].count_a) << what << ", group " << i;
    EXPECT_EQ(got.groups[i].count_b, expected.groups[i].count_b) << what << ", group " << i;
  }
}

inline constexpr CoclusterMethod kProducts[] = {CoclusterMethod::closure, CoclusterMethod::product_serial,
                                                CoclusterMethod::product_global, CoclusterMethod::product_tiled};

/// `call` must throw an error of that code, whose sentence has all the words.
template <class Call>
void expect_refused(ErrorCode code, const std::vector<std::string>& words, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "no error that says " << words[0];
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what() << " lacks " << word;
    }
  }
}

}  // namespace vicinal::contract
