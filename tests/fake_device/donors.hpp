// Missing values in the fake plug-in (plugin.cpp): donors by clause 24 of the contract, all keys sorted. Rows are
// handed over in several batches, as a device that has little room would.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "plugin/abi/donors.hpp"
#include "vicinal/error.hpp"

namespace vicinal::plugin {

/// The key of two rows; NaN where they have no column in common.
inline double fake_donor_key(const double* x, const double* y, const DonorSearch& task) {
  std::array<double, 8> a{};
  double common = 0;
  for (std::int64_t j = 0; j < task.donors.cols; ++j) {
    const double t = x[j] - y[j];
    if (task.compared[j] == 0 || std::isnan(t)) continue;
    double& sum = a[static_cast<std::size_t>(j % 8)];
    sum = std::fma(t, t, sum);
    common += 1;
  }
  return (((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))) / common;
}

/// A batch's rows.
inline std::int64_t fake_donor_batch(const DonorSearch& task) {
  return task.rows.rows / 3 + 1;
}

/// As a device's: the donors, a batch of rows, and its lists.
inline DonorRoom fake_room(const DonorSearch& task) {
  const auto cells = static_cast<std::uint64_t>((task.donors.rows + fake_donor_batch(task)) * task.donors.cols);
  const auto lists = static_cast<std::uint64_t>(std::min(task.missing, fake_donor_batch(task) * task.donors.cols));
  const std::uint64_t host = lists * static_cast<std::uint64_t>(task.k + 1) * 8;
  return {cells * 8 + 2 * host, host};
}

/// `donors` and `rows`: what the task's tables hold. False: `take` failed.
inline bool fake_donors(const DonorSearch& task, const std::vector<double>& donors, const std::vector<double>& rows,
                        const HostCalls& host) {
  const std::int64_t d = task.donors.cols;
  const std::int64_t m = task.rows.rows;
  const std::int64_t step = fake_donor_batch(task);
  for (std::int64_t first = 0; first < m; first += step) {
    const std::int64_t count = std::min(step, m - first);
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> ids;
    for (std::int64_t i = first; i < first + count; ++i) {
      if (host.cancelled(host.user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
      const double* const x = rows.data() + i * d;
      std::vector<std::pair<double, std::int64_t>> keys;
      for (std::int64_t id = 0; id < task.donors.rows; ++id) {
        const double key = fake_donor_key(x, donors.data() + id * d, task);
        if (!std::isnan(key)) keys.emplace_back(key, id);
      }
      std::sort(keys.begin(), keys.end());
      std::int64_t lacks = 0;
      for (std::int64_t j = 0; j < d; ++j) {
        if (task.compared[j] == 0 || !std::isnan(x[j])) continue;
        ++lacks;
        std::vector<std::int64_t> nearest;
        for (const auto& [key, id] : keys) {
          if (static_cast<std::int64_t>(nearest.size()) == task.k) break;
          if (!std::isnan(donors[static_cast<std::size_t>(id * d + j)])) nearest.push_back(id);
        }
        sizes.push_back(static_cast<std::int64_t>(nearest.size()));
        std::reverse(nearest.begin(), nearest.end());  // they have no order
        nearest.resize(static_cast<std::size_t>(task.k), -1);
        ids.insert(ids.end(), nearest.begin(), nearest.end());
      }
      if (lacks != task.offsets[i + 1] - task.offsets[i]) throw std::runtime_error("other offsets than missing values");
    }
    if (task.take(task.user, first, count, sizes.data(), ids.data()) != 0) return false;
    host.report(host.user, "impute", static_cast<double>(first + count) / static_cast<double>(m));
  }
  return true;
}

}  // namespace vicinal::plugin
