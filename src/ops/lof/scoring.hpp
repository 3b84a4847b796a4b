// What is the same for the scores of a table that is whole and of shards (contract clause 13).
#pragma once

#include <cstdint>
#include <vector>

#include "backend/lof.hpp"
#include "core/exact_sum.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::ops {

/// A task of rows whose lists are yet to be given.
kernels::LofTask task_of(const LofOptions& options, std::int64_t rows);
/// Gives a task the lists of a graph.
void take_graph(const NeighborGraph& graph, kernels::LofTask& task);
/// Bytes of the scores, and of what is kept for novelty.
std::uint64_t result_bytes(const kernels::LofTask& task);

/// The rows whose PLOF is finite, and the sum of the squares of these.
struct FinitePlofs {
  core::ExactSum squares;
  std::int64_t count = 0;
};
FinitePlofs finite_plofs(const Context& ctx, const std::vector<double>& plofs);
/// Lambda times the root of the mean square.
double spread_of(double squares, std::int64_t count, double lambda);
/// PLOFs become probabilities.
void make_probabilities(const Context& ctx, double spread, std::vector<double>& scores);

/// The threshold of a score without a share of outliers.
double own_threshold(OutlierScore score);
/// Where the threshold is among n negated scores in ascending order: between numbers i and i + 1, at t of the way.
struct ThresholdPlace {
  std::int64_t i;
  double t;
};
ThresholdPlace threshold_place(std::int64_t n, double contamination);
/// Number i being a and the next one b, which is not looked at if t is 0.
double threshold_between(double a, double b, double t);

/// Throws `bad_data` naming the first row of `argument` without a score: sums of its distances overflowed.
void require_numbers(const std::vector<double>& scores, const char* argument, std::int64_t first_row = 0);

}  // namespace vicinal::ops
