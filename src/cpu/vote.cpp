// Vote by weights added in rank order in float64 (contract clause 4: a row is voted on by one worker alone, so the bits
// depend on nothing else). Only the classes that occur among a row's neighbors are touched: O(m k) time, and
// O(m classes) more when probabilities are asked for; one total a class and worker of scratch.
#include "cpu/vote.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/parallel.hpp"

namespace vicinal::cpu {
namespace {

using kernels::VoteTask;

struct VoteScratch {
  std::vector<double> weights;  // of the row's neighbors
  std::vector<double> totals;   // by class; all zero between rows
};

[[noreturn]] void fail(std::int64_t row, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "vote: query row " + std::to_string(row) + " " + what);
}

/// 1 / d, where distances below 2^-960 count as zero: no sum of reciprocals can overflow, whatever k.
void reciprocal_weights(std::int64_t row, std::span<const double> distances, std::span<double> weights) {
  constexpr double kSmallest = 0x1p-960;
  bool any_zero = false;
  for (const double d : distances) {
    if (!(d >= 0))
      fail(row, "has a neighbor at distance " + fmt::format("{}", d) + ", which cannot be a weight's inverse");
    any_zero = any_zero || d < kSmallest;
  }
  for (std::size_t i = 0; i < distances.size(); ++i) {
    weights[i] = any_zero ? (distances[i] < kSmallest ? 1.0 : 0.0) : 1 / distances[i];
  }
}

void custom_weights(std::int64_t row, const WeightFn& custom, std::span<const double> distances,
                    std::span<double> weights) {
  std::fill(weights.begin(), weights.end(), 0.0);
  custom(distances, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) {
      fail(row, "got the custom weight " + fmt::format("{}", weights[i]) + " for its neighbor of rank " +
                    std::to_string(i) + ": weights must be finite and not negative");
    }
  }
}

void weigh(const VoteTask& task, std::int64_t row, std::span<double> weights) {
  switch (task.options->weights) {
    case Weighting::uniform:
      std::fill(weights.begin(), weights.end(), 1.0);
      return;
    case Weighting::distance:
      return reciprocal_weights(row, task.graph->distances_of(row), weights);
    case Weighting::custom:
      return custom_weights(row, task.options->custom, task.graph->distances_of(row), weights);
  }
}

/// Votes on one row for one output; `sum` is the sum of all weights.
void vote_row(const Labels& labels, std::int64_t row, std::span<const std::int64_t> ids, double sum,
              VoteScratch& scratch, Vote& vote) {
  std::int32_t best = -1;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    scratch.totals[static_cast<std::size_t>(labels.codes[static_cast<std::size_t>(ids[i])])] += scratch.weights[i];
  }
  double best_total = -1;
  for (const std::int64_t id : ids) {
    const std::int32_t code = labels.codes[static_cast<std::size_t>(id)];
    const double total = scratch.totals[static_cast<std::size_t>(code)];
    if (total > best_total || (total == best_total && code < best)) {
      best = code;
      best_total = total;
    }
  }
  vote.codes[static_cast<std::size_t>(row)] = best;
  double* shares = vote.probabilities.empty() ? nullptr : vote.probabilities.data() + row * vote.class_count;
  for (const std::int64_t id : ids) {
    const std::int32_t code = labels.codes[static_cast<std::size_t>(id)];
    double& total = scratch.totals[static_cast<std::size_t>(code)];
    // A class met again has been cleared already: its share is written.
    if (shares != nullptr && total > 0) shares[code] = total / sum;
    total = 0;
  }
}

}  // namespace

void cpu_vote(const Context& ctx, const VoteTask& task, std::span<Vote> result) {
  const NeighborGraph& graph = *task.graph;
  const std::int64_t m = graph.rows;
  std::int64_t most_classes = 0;
  for (const Labels& labels : task.outputs) most_classes = std::max(most_classes, labels.class_count());

  // A task is some ten thousand neighbors, so that a cancel is seen soon and claiming costs nothing.
  const std::int64_t per_row =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(graph.ids.size()) / std::max<std::int64_t>(1, m));
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, 16384 / per_row);
  const std::int64_t tasks = (m + rows_per_task - 1) / rows_per_task;
  std::vector<VoteScratch> scratches(static_cast<std::size_t>(ctx.threads()));

  core::parallel_for(ctx, tasks, [&](std::int64_t task_number, int worker) {
    VoteScratch& scratch = scratches[static_cast<std::size_t>(worker)];
    scratch.totals.resize(static_cast<std::size_t>(most_classes), 0.0);
    const std::int64_t end = std::min(m, (task_number + 1) * rows_per_task);
    for (std::int64_t row = task_number * rows_per_task; row < end; ++row) {
      const std::span<const std::int64_t> ids = graph.ids_of(row);
      for (const std::int64_t id : ids) {
        if (id < 0 || id >= graph.table_rows) {
          fail(row, "has the neighbor id " + std::to_string(id) + ", outside the table's " +
                        std::to_string(graph.table_rows) + " rows");
        }
      }
      scratch.weights.resize(std::max(scratch.weights.size(), ids.size()));
      const std::span<double> weights(scratch.weights.data(), ids.size());
      weigh(task, row, weights);
      double sum = 0;
      for (const double weight : weights) sum += weight;
      if (std::isinf(sum)) fail(row, "got custom weights whose sum is beyond a float64");
      for (std::size_t output = 0; output < task.outputs.size(); ++output) {
        vote_row(task.outputs[output], row, ids, sum, scratch, result[output]);
      }
    }
  });
}

}  // namespace vicinal::cpu
