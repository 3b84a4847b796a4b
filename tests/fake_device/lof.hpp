// The outlier half of the fake plug-in (plugin.cpp): the CPU's scores, behind the plug-in's functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/lof.hpp"
#include "engine.hpp"
#include "formulas/lof/outlier.hpp"
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

/// Neighborhoods of some of a table's rows.
struct FakeLofRows {
  FakeLofRows(const Outliers& of, const Engine& on) : engine(on), task(of) {}

  const Engine& engine;
  Outliers task;
  std::vector<std::int64_t> ids;
  std::vector<double> distances;

  void k_distances(Outliers& of) const {
    of.copied = 0;
    for (std::int64_t row = 0; row < task.rows; ++row) {
      const double* const list = distances.data() + row * task.stride;
      std::copy(list + task.k - task.ks, list + task.k, of.k_distances + row * task.ks);
      of.copied += list[task.k - 1] == 0 ? 1 : 0;
    }
  }
  /// As new rows' against a model of which only the k-distances are known; none of them is capped.
  void densities(const double* k_distances, double* densities) const {
    const std::vector<double> unknown(static_cast<std::size_t>(task.known_rows * task.ks), 1);
    std::vector<double> scores(static_cast<std::size_t>(task.rows));
    std::vector<double> unused(scores.size() * static_cast<std::size_t>(task.ks));
    score(k_distances != nullptr ? k_distances : unknown.data(), unknown.data(), scores.data(), unused.data(),
          densities);
  }
  /// The rows' own densities, which may be capped, are among those of all.
  void scores(const double* densities, std::int64_t first_row, double* scores) const {
    const auto kind = static_cast<OutlierScore>(task.score);
    const auto duplicates = static_cast<Duplicates>(task.duplicates);
    for (std::int64_t row = 0; row < task.rows; ++row) {
      core::AcrossKs joined(static_cast<AcrossK>(task.across));
      for (std::int64_t j = 0; j < task.ks; ++j) {
        const std::int64_t k = task.k - task.ks + 1 + j;
        std::vector<double> of_k(static_cast<std::size_t>(task.known_rows));
        for (std::size_t o = 0; o < of_k.size(); ++o) of_k[o] = densities[static_cast<std::int64_t>(o) * task.ks + j];
        const core::Neighborhoods near = {ids.data(), distances.data(), nullptr, nullptr, task.rows, k, task.stride};
        const double own = of_k[static_cast<std::size_t>(first_row + row)];
        joined.take(core::row_score(kind, duplicates, core::Neighborhood(near, row), own, of_k.data()));
      }
      scores[row] = joined.result();
    }
  }

 private:
  void score(const double* known_k_distances, const double* known_densities, double* scores, double* k_distances,
             double* densities) const {
    const std::vector<double> no_caps(static_cast<std::size_t>(task.ks), std::numeric_limits<double>::infinity());
    Outliers asked = task;
    asked.ids = ids.data();
    asked.distances = distances.data();
    asked.known_k_distances = known_k_distances;
    asked.known_densities = known_densities;
    asked.known_caps = no_caps.data();
    asked.scores = scores;
    asked.k_distances = k_distances;
    asked.densities = densities;
    asked.caps = nullptr;
    fake_scores(asked, {});
  }
};

/// As a device's: the lists, and what is made of them.
inline std::uint64_t fake_bytes(const Outliers& task) {
  const std::int64_t entries = task.offsets != nullptr ? task.entries : task.rows * task.stride;
  return static_cast<std::uint64_t>(entries) * 16 + static_cast<std::uint64_t>(task.rows * task.ks) * 24;
}

}  // namespace vicinal::plugin
