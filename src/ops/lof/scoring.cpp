// See scoring.hpp.
#include "ops/lof/scoring.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/erf.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "ops/lof/check.hpp"

namespace vicinal::ops {
namespace {

using kernels::LofTask;

constexpr std::int64_t kRowsOfTask = 16384;  // of a task

template <class Body>
void for_each_row(const Context& ctx, std::int64_t rows, const Body& body) {
  core::parallel_for(ctx, (rows + kRowsOfTask - 1) / kRowsOfTask, [&](std::int64_t task, int worker) {
    for (std::int64_t row = task * kRowsOfTask; row < std::min(rows, (task + 1) * kRowsOfTask); ++row)
      body(row, worker);
  });
}

}  // namespace

LofTask task_of(const LofOptions& options, std::int64_t rows) {
  LofTask task;
  task.score = options.score;
  task.duplicates = options.duplicates == Duplicates::distinct ? Duplicates::infinite : options.duplicates;
  task.across = options.across;
  task.near.rows = rows;
  task.near.k = task.near.stride = longest_k(options);
  task.k_from = options.k_to > 0 ? options.k : 0;
  task.metric = options.metric;
  task.p = options.p;
  task.keep = options.novelty;
  return task;
}

void take_graph(const NeighborGraph& graph, LofTask& task) {
  task.near.ids = graph.ids.data();
  task.near.distances = graph.distances.data();
  task.near.stride = graph.k;
  if (!graph.is_csr()) return;
  task.near.offsets = graph.offsets.data();
  task.near.k = 0;
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    task.near.k = std::max(task.near.k, static_cast<std::int64_t>(graph.ids_of(row).size()));
  }
}

std::uint64_t result_bytes(const LofTask& task) {
  const auto rows = static_cast<std::uint64_t>(task.near.rows) * sizeof(double);
  return rows + (task.keep ? 2 * rows * static_cast<std::uint64_t>(task.ks()) : 0);
}

FinitePlofs finite_plofs(const Context& ctx, const std::vector<double>& plofs) {
  std::vector<FinitePlofs> parts(static_cast<std::size_t>(ctx.threads()));
  for_each_row(ctx, static_cast<std::int64_t>(plofs.size()), [&](std::int64_t row, int worker) {
    const double plof = plofs[static_cast<std::size_t>(row)];
    if (!std::isfinite(plof)) return;
    parts[static_cast<std::size_t>(worker)].squares.add(plof * plof);
    ++parts[static_cast<std::size_t>(worker)].count;
  });
  FinitePlofs all;
  for (const FinitePlofs& part : parts) {
    all.squares.add(part.squares);
    all.count += part.count;
  }
  return all;
}

double spread_of(double squares, std::int64_t count, double lambda) {
  return count > 0 ? lambda * std::sqrt(squares / static_cast<double>(count)) : 0;
}

void make_probabilities(const Context& ctx, double spread, std::vector<double>& scores) {
  for_each_row(ctx, static_cast<std::int64_t>(scores.size()), [&](std::int64_t row, int /*worker*/) {
    double& score = scores[static_cast<std::size_t>(row)];
    if (!(score > 0)) {
      score = 0;
    } else if (std::isinf(score) || spread == 0) {
      score = 1;
    } else {
      score = core::erf_of(score / (spread * 1.4142135623730951));
    }
  });
}

double own_threshold(OutlierScore score) {
  switch (score) {
    case OutlierScore::knn:
    case OutlierScore::knn_weighted:
      return kInfinity;
    case OutlierScore::loop:
      return 0.5;
    case OutlierScore::ldof:
      return 1;
    default:
      return 1.5;
  }
}

ThresholdPlace threshold_place(std::int64_t n, double contamination) {
  const double place = static_cast<double>(n - 1) * ((100 * contamination) / 100);
  const auto i = static_cast<std::int64_t>(place);
  return {i, place - static_cast<double>(i)};
}

double threshold_between(double a, double b, double t) {
  if (t == 0 || a == b) return 0 - a;
  if (std::isinf(a)) return 0 - b;
  return 0 - (t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t));
}

void require_numbers(const std::vector<double>& scores, const char* argument, std::int64_t first_row) {
  const auto found = std::find_if(scores.begin(), scores.end(), [](double score) { return std::isnan(score); });
  if (found == scores.end()) return;
  throw Error(ErrorCode::bad_data, std::string(argument) + ": row " +
                                       std::to_string(first_row + (found - scores.begin())) +
                                       " has no score, because sums of distances around it overflow");
}

}  // namespace vicinal::ops
