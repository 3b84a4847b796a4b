// The outlier half of the fake plug-in (plugin.cpp): the CPU's scores, behind the plug-in's functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/lof.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::plugin {

/// Scores the task's lists; `table`: its rows, widened, where the score needs them.
inline void fake_scores(Outliers& task, const std::vector<double>& table) {
  const auto size = [&](std::int64_t rows) { return static_cast<std::size_t>(rows * task.ks); };
  kernels::LofTask wanted;
  wanted.score = static_cast<OutlierScore>(task.score);
  wanted.duplicates = static_cast<Duplicates>(task.duplicates);
  wanted.across = static_cast<AcrossK>(task.across);
  wanted.near = {task.ids, task.distances, task.offsets, task.weights, task.rows, task.k, task.stride};
  wanted.k_from = task.k_from;
  wanted.metric = static_cast<Metric>(task.metric);
  wanted.p = task.p;
  wanted.keep = task.k_distances != nullptr;
  if (!table.empty()) wanted.table = TableView(table.data(), task.table.rows, task.table.cols);
  kernels::LofModel known;
  if (task.known_rows > 0) {
    known.k_distances = {task.known_k_distances, size(task.known_rows)};
    if (task.known_densities != nullptr) known.densities = {task.known_densities, size(task.known_rows)};
    if (task.known_caps != nullptr) known.caps = {task.known_caps, size(1)};
    wanted.model = &known;
  }
  std::vector<double> k_distances;
  std::vector<double> densities;
  std::vector<double> caps;
  kernels::LofResult found{{task.scores, static_cast<std::size_t>(task.rows)}, k_distances, densities, caps};
  kernels::cpu_backend().lof().score(Context::cpu({.threads = 1}), wanted, found);
  if (task.k_distances != nullptr) std::copy(k_distances.begin(), k_distances.end(), task.k_distances);
  if (task.densities != nullptr) std::copy(densities.begin(), densities.end(), task.densities);
  if (task.caps != nullptr) std::copy(caps.begin(), caps.end(), task.caps);
  task.copied = found.copied;
}

/// As a device's: the lists, and what is made of them.
inline std::uint64_t fake_bytes(const Outliers& task) {
  const std::int64_t entries = task.offsets != nullptr ? task.entries : task.rows * task.stride;
  return static_cast<std::uint64_t>(entries) * 16 + static_cast<std::uint64_t>(task.rows * task.ks) * 24;
}

}  // namespace vicinal::plugin
