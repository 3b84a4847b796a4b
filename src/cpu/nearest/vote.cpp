// Vote by weights added in rank order in float64 (contract clause 4: a row is voted on by one worker alone, so the bits
// depend on nothing else). Only the classes that occur among a row's neighbors are touched: O(m k) time, and
// O(m classes) more when probabilities are asked for; one total a class and worker of scratch.
#include "cpu/nearest/vote.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel.hpp"
#include "formulas/nearest/neighbor_weights.hpp"

namespace vicinal::cpu {
namespace {

using kernels::VoteTask;

struct VoteScratch {
  std::vector<double> weights;  // of the row's neighbors
  std::vector<double> totals;   // by class; all zero between rows
};

/// One row's vote for one output, put at `place`; `sum` is the sum of all weights.
void vote_row(const Labels& labels, std::int64_t place, std::span<const std::int64_t> ids, double sum,
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
  vote.codes[static_cast<std::size_t>(place)] = best;
  double* shares = vote.probabilities.empty() ? nullptr : vote.probabilities.data() + place * vote.class_count;
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
  const core::NeighborWeights weights_of("vote", task.options->weights, task.options->custom, task.options->given);

  core::parallel_for(ctx, tasks, [&](std::int64_t task_number, int worker) {
    VoteScratch& scratch = scratches[static_cast<std::size_t>(worker)];
    scratch.totals.resize(static_cast<std::size_t>(most_classes), 0.0);
    const std::int64_t end = std::min(m, (task_number + 1) * rows_per_task);
    for (std::int64_t row = task_number * rows_per_task; row < end; ++row) {
      const std::span<const std::int64_t> ids = graph.ids_of(row);
      for (const std::int64_t id : ids) {
        if (id < 0 || id >= graph.table_rows) weights_of.refuse_id(id, graph.table_rows, task.first + row);
      }
      scratch.weights.resize(std::max(scratch.weights.size(), ids.size()));
      const std::span<double> weights(scratch.weights.data(), ids.size());
      weights_of.weigh(task.first + row, ids.data() - graph.ids.data(), graph.distances_of(row), weights);
      double sum = 0;
      for (const double weight : weights) sum += weight;
      if (std::isinf(sum)) weights_of.refuse_sum(task.first + row);
      for (std::size_t output = 0; output < task.outputs.size(); ++output) {
        vote_row(task.outputs[output], task.first + row, ids, sum, scratch, result[output]);
      }
    }
  });
}

}  // namespace vicinal::cpu
