// The spanning trees of the fake plug-in (plugin.cpp): the device's own rounds (cuda/density/growth.cuh), compiled for
// threads that run one after the other, and a search that meets every row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "plugin/abi/density.hpp"
#include "plugin/abi/plugin.hpp"
#include "vicinal/error.hpp"

#define __device__

namespace vicinal::cuda::density {

using std::nextafter;

template <class T>
void atomicMin(T* at, T x) {
  *at = std::min(*at, x);
}
template <class T>
void atomicMax(T* at, T x) {
  *at = std::max(*at, x);
}
inline void atomicAdd(std::uint32_t* at, unsigned x) {
  *at += x;
}
inline std::uint32_t atomicCAS(std::uint32_t* at, std::uint32_t is, std::uint32_t x) {
  const std::uint32_t old = *at;
  if (old == is) *at = x;
  return old;
}

}  // namespace vicinal::cuda::density

#include "cuda/density/growth.cuh"

namespace vicinal::plugin {

/// The key of two rows of the table.
using PairKey = std::function<double(std::int64_t i, std::int64_t j)>;

/// As cuda::density::grow wants it. Threads run backwards, so that what depends on their order shows.
class FakeSpace {
 public:
  FakeSpace(const cuda::density::Growth& growth, const HostCalls& host, const PairKey& key)
      : growth_(growth), host_(host), key_(key) {}

  template <class Work>
  void each(std::int64_t count, const Work& work) const {
    if (host_.cancelled(host_.user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
    for (std::int64_t i = count; i-- > 0;) work(i);
  }
  [[nodiscard]] std::int64_t list(std::int64_t count) const {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (growth_.flags[i] != 0) growth_.numbers[found++] = static_cast<std::uint32_t>(i);
    }
    return found;
  }
  void clear(std::uint32_t* at) const { *at = 0; }
  [[nodiscard]] std::int64_t fetch(const std::uint32_t* at) const { return *at; }
  void relabel(std::int64_t uncertain) const {
    if (uncertain > growth_.n) throw std::logic_error("more uncertain rows than rows");
  }
  void grown(std::int64_t edges) const {
    host_.report(host_.user, "tree", static_cast<double>(edges) / static_cast<double>(growth_.n - 1));
  }

  void search(std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) {
      if (host_.cancelled(host_.user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
      search_row(growth_.order != nullptr ? growth_.order[growth_.numbers[i]] : growth_.numbers[i]);
    }
  }

 private:
  void search_row(std::uint32_t row) const {
    std::uint32_t found = growth_.other[row];
    double least = found != cuda::density::kNoRow ? growth_.other_key[row] : std::numeric_limits<double>::infinity();
    const std::uint32_t own = growth_.label[row];
    for (std::uint32_t id = 0; id < growth_.n; ++id) {
      if (growth_.label[id] == own) continue;
      const double pair_key = key_(row, id);
      if (pair_key > growth_.pair_limit(growth_.core(row), own)) continue;
      const double key = growth_.key(growth_.core(row), growth_.core(id), pair_key);
      if (key > least || (key == least && id >= found)) continue;
      least = key;
      found = id;
    }
    if (found != cuda::density::kNoRow && least < growth_.limit(own))
      growth_.best[own] = cuda::density::place_of(least);
    growth_.finish(row, least, found);
  }

  const cuda::density::Growth& growth_;
  const HostCalls& host_;
  const PairKey& key_;
};

/// `order`: of a tree, or empty.
inline void fake_tree(const std::vector<std::int64_t>& ids, const std::vector<double>& keys, std::int64_t n,
                      std::int64_t k, std::vector<std::uint32_t> order, const HostCalls& host, const PairKey& key,
                      SpanningTask& task) {
  const auto rows = static_cast<std::size_t>(n);
  std::vector<double> cores(task.rank > 0 ? rows : 0);
  std::vector<std::uint32_t> numbers[6];  // parent, label, sizes, next, other, numbers
  for (std::vector<std::uint32_t>& each : numbers) each.resize(rows, 77);
  std::vector<double> floor(rows, -77);
  std::vector<double> other_key(rows, -77);
  std::vector<std::uint8_t> known(rows, 1);
  std::vector<std::uint8_t> flags(rows, 1);
  std::vector<unsigned long long> best(rows, 77);
  std::vector<unsigned long long> pair(rows, 77);
  std::vector<double> edge_keys(rows);
  std::vector<unsigned long long> edges(rows);
  unsigned long long largest = 77;
  std::uint32_t count = 77;
  const cuda::density::Growth growth = {n,
                                        k,
                                        ids.data(),
                                        keys.data(),
                                        task.rank > 0 ? cores.data() : nullptr,
                                        task.divisor,
                                        order.empty() ? nullptr : order.data(),
                                        numbers[0].data(),
                                        numbers[1].data(),
                                        numbers[2].data(),
                                        numbers[3].data(),
                                        floor.data(),
                                        numbers[4].data(),
                                        other_key.data(),
                                        known.data(),
                                        best.data(),
                                        pair.data(),
                                        flags.data(),
                                        numbers[5].data(),
                                        &largest,
                                        &count,
                                        edge_keys.data(),
                                        edges.data()};
  FakeSpace space(growth, host, key);
  if (task.rank > 0) {
    space.each(n, cuda::density::TakeCores{keys.data(), k, task.rank, cores.data()});
    std::copy(cores.begin(), cores.end(), task.core_keys);
  }
  if (!cuda::density::grow(space, growth)) throw std::logic_error("a round joined no components");
  for (std::size_t i = 0; i + 1 < rows; ++i) {
    task.edges[i] = {edge_keys[i], cuda::density::first_of(edges[i]), cuda::density::second_of(edges[i])};
  }
  std::sort(task.edges, task.edges + (n - 1), [](const TreeEdge& x, const TreeEdge& y) {
    return x.key != y.key ? x.key < y.key : x.a != y.a ? x.a < y.a : x.b < y.b;
  });
}

/// As a device's.
struct SpanningNeeds {
  std::uint64_t lists;
  std::uint64_t rows;    ///< while the tree grows
  std::uint64_t edges;   ///< from then on, with core keys
  std::uint64_t at_end;  ///< instead of lists and rows

  SpanningNeeds(const Search& search, const SpanningTask& task) {
    const auto n = static_cast<std::uint64_t>(search.table.rows);
    lists = n * static_cast<std::uint64_t>(search.k) * 16;
    rows = n * 60;
    edges = n * (task.rank > 0 ? 24 : 16);
    at_end = n * 48;
  }
  [[nodiscard]] std::uint64_t after_lists() const { return edges + std::max(lists + rows, at_end); }
};

}  // namespace vicinal::plugin
