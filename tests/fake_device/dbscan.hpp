// The DBSCAN of the fake plug-in (plugin.cpp): all pairs of rows, and the device's own digits of weights
// (formulas/density/weight_digits.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "formulas/density/weight_digits.hpp"
#include "plugin/abi/dbscan.hpp"
#include "plugin/abi/plugin.hpp"
#include "vicinal/error.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::plugin {

class FakeClusters {
 public:
  FakeClusters(std::int64_t n, const HostCalls& host, const std::function<double(std::int64_t, std::int64_t)>& key,
               DbscanTask& task)
      : host_(host), task_(task), near_(static_cast<std::size_t>(n)), parent_(static_cast<std::size_t>(n)) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      step("core rows", i);
      for (std::int64_t j = 0; j < n; ++j) {
        if (i != j && key(i, j) <= task.limit) near_[static_cast<std::size_t>(i)].push_back(static_cast<int>(j));
      }
    }
  }

  void run() {
    find_core_rows();
    const auto n = static_cast<std::int64_t>(parent_.size());
    for (std::int64_t i = n; i-- > 0;) {  // backwards: roots are the smallest all the same
      step("clusters", n - 1 - i);
      for (const int j : near_[static_cast<std::size_t>(i)]) join(static_cast<int>(i), j);
    }
    task_.clusters = 0;
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      const auto root = static_cast<std::size_t>(root_of(static_cast<int>(i)));
      task_.labels[i] = task_.core[i] == 0 ? -1 : root == i ? task_.clusters++ : task_.labels[root];
    }
    for (std::int64_t i = 0; i < n; ++i) {
      step("border rows", i);
      if (task_.core[i] == 0) label(i);
    }
  }

 private:
  void step(const char* stage, std::int64_t row) const {
    if (row % 64 != 0) return;
    host_.report(host_.user, stage, static_cast<double>(row) / static_cast<double>(parent_.size()));
    if (host_.cancelled(host_.user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
  }

  void find_core_rows() const {
    if (task_.weights == nullptr) {
      for (std::size_t i = 0; i < near_.size(); ++i) {
        task_.core[i] = static_cast<std::int64_t>(near_[i].size()) + 1 >= task_.min_samples ? 1 : 0;
      }
      return;
    }
    const core::WeightDigits digits =
        core::weight_digits({task_.weights, near_.size()}, static_cast<double>(task_.min_samples));
    for (std::size_t i = 0; i < near_.size(); ++i) {
      core::DigitSum all;
      for (int number = 0; number < static_cast<int>(digits.least.size()); ++number) {
        std::int64_t sum = core::weight_digit(task_.weights[i], digits.base, digits.bits, number);
        for (const int j : near_[i]) sum += core::weight_digit(task_.weights[j], digits.base, digits.bits, number);
        all.take(sum, digits.least[static_cast<std::size_t>(number)], digits.bits);
      }
      task_.core[i] = all.is_enough() ? 1 : 0;
    }
  }

  int root_of(int row) {
    while (parent_[static_cast<std::size_t>(row)] != row) row = parent_[static_cast<std::size_t>(row)];
    return row;
  }
  void join(int a, int b) {
    if (task_.core[a] == 0 || task_.core[b] == 0) return;
    const int root_a = root_of(a);
    const int root_b = root_of(b);
    for (int row = a; row != root_a;) row = std::exchange(parent_[static_cast<std::size_t>(row)], root_a);
    parent_[static_cast<std::size_t>(std::max(root_a, root_b))] = std::min(root_a, root_b);
  }
  void label(std::int64_t row) const {
    for (const int j : near_[static_cast<std::size_t>(row)]) {
      if (task_.core[j] == 0) continue;
      std::int64_t& own = task_.labels[row];
      own = own < 0 ? task_.labels[j] : std::min(own, task_.labels[j]);
    }
  }

  const HostCalls& host_;
  DbscanTask& task_;
  std::vector<std::vector<int>> near_;  // rows within the limit
  std::vector<int> parent_;
};

/// As a device's: what is known of the rows, and room for the neighbors of one.
inline std::uint64_t fake_bytes(const Search& search, const DbscanTask& task) {
  const std::uint64_t lists = static_cast<Method>(search.method) == Method::kdtree ? 0 : 32;
  return static_cast<std::uint64_t>(search.table.rows) * (30 + lists + (task.has_weights != 0 ? 25 : 0));
}

}  // namespace vicinal::plugin
