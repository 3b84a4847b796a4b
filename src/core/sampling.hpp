// Rows drawn without replacement by Floyd's method: as many draws as rows, whatever the table's size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace vicinal::core {

/// `count` different rows of n, in the order of the draws; `next` gives numbers from [0, 1).
template <class Next>
std::vector<std::int64_t> rows_without_replacement(std::int64_t n, std::int64_t count, Next&& next) {
  std::vector<std::int64_t> rows;
  std::unordered_set<std::int64_t> taken;
  for (std::int64_t j = n - count; j < n; ++j) {
    const auto drawn = std::min(static_cast<std::int64_t>(next() * static_cast<double>(j + 1)), j);
    rows.push_back(taken.insert(drawn).second ? drawn : j);
    taken.insert(rows.back());
  }
  return rows;
}

}  // namespace vicinal::core
