// lof of lists that are divided among ranks (contract clause 13). Phases: k-distances, which all ranks gather; local
// values such as densities, which they gather as well; scores. A rank's rows are scored as rows that `novelty` scores,
// against what is known of all rows, which these are part of; so they are scored twice, the first time for their local
// values alone. What is made of all scores is an exact sum, a maximum, counts, and an exact selection.
#include "vicinal/shards.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <limits>
#include <vector>

#include "backend/backend.hpp"
#include "backend/lof.hpp"
#include "core/entry.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/ordered_bits.hpp"
#include "core/poll.hpp"
#include "core/seconds.hpp"
#include "ops/common/refuse.hpp"
#include "ops/common/shard_rows.hpp"
#include "ops/common/together.hpp"
#include "ops/lof/check.hpp"
#include "ops/lof/scoring.hpp"

namespace vicinal {
namespace {

using kernels::LofResult;
using kernels::LofTask;

void agree_on_lof(Communicator& ranks, const NeighborGraph& graph, const LofOptions& options) {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  ops::require_agreement(ranks, std::array<ops::Agreed, 12>{{
                                    {"graph: its number of table rows", graph.table_rows},
                                    {"graph: whether it is one of a radius", number(graph.is_csr())},
                                    {"graph: its metric", number(graph.metric)},
                                    {"graph: its p", std::bit_cast<std::int64_t>(graph.p)},
                                    {"k", options.k},
                                    {"k_to", options.k_to},
                                    {"across", number(options.across)},
                                    {"score", number(options.score)},
                                    {"duplicates", number(options.duplicates)},
                                    {"lambda", std::bit_cast<std::int64_t>(options.lambda)},
                                    {"contamination", std::bit_cast<std::int64_t>(options.contamination)},
                                    {"novelty", number(options.novelty)},
                                }});
}

/// The lists of a rank, and what is exchanged about their rows.
class Phases {
 public:
  Phases(const Context& ctx, Communicator& ranks, const LofTask& task, std::vector<std::int64_t> begins)
      : ctx_(ctx), ranks_(ranks), task_(task), begins_(std::move(begins)), ks_(task.ks()) {}

  void run(Lof& found);

 private:
  [[nodiscard]] std::vector<double> own_k_distances() const;
  [[nodiscard]] std::vector<double> of_all_rows(const std::vector<double>& own) const;
  void cap(std::vector<double>& densities, Lof& found) const;
  void score(const kernels::LofModel& model, bool keep, Lof& found, std::vector<double>& local) const;

  const Context& ctx_;
  Communicator& ranks_;
  const LofTask& task_;
  std::vector<std::int64_t> begins_;
  std::int64_t ks_;
};

// The k-distances of the rank's rows, for every k: [rows, ks].
std::vector<double> Phases::own_k_distances() const {
  std::vector<double> k_distances;
  k_distances.reserve(static_cast<std::size_t>(task_.near.rows * ks_));
  core::Poll poll(ctx_);
  for (std::int64_t row = 0; row < task_.near.rows; ++row) {
    const core::Neighborhood near(task_.near, row);
    for (std::int64_t i = near.size - ks_; i < near.size; ++i) {
      poll.step();
      k_distances.push_back(near.distances[i]);
    }
  }
  return k_distances;
}

std::vector<double> Phases::of_all_rows(const std::vector<double>& own) const {
  std::vector<std::int64_t> bytes;
  for (std::size_t r = 1; r < begins_.size(); ++r) {
    bytes.push_back((begins_[r] - begins_[r - 1]) * ks_ * static_cast<std::int64_t>(sizeof(double)));
  }
  std::vector<double> all(static_cast<std::size_t>(begins_.back() * ks_));
  ranks_.all_gather(std::as_bytes(std::span(own)), bytes, std::as_writable_bytes(std::span(all)));
  return all;
}

// Puts the caps of the whole table in the place of densities without bound.
void Phases::cap(std::vector<double>& densities, Lof& found) const {
  if (task_.duplicates != Duplicates::cap || !core::has_densities(task_.score)) return;
  const auto ks = static_cast<std::size_t>(ks_);
  std::vector<std::int64_t> largest(ks, 0);  // bits of densities, which are at least 0
  for (std::size_t i = 0; i < densities.size(); ++i) {
    if (densities[i] < kInfinity) {
      largest[i % ks] = std::max(largest[i % ks], std::bit_cast<std::int64_t>(densities[i]));
    }
  }
  ranks_.all_reduce_max(largest);
  found.caps.clear();
  for (const std::int64_t bits : largest) found.caps.push_back(bits > 0 ? 2 * std::bit_cast<double>(bits) : 1);
  for (std::size_t i = 0; i < densities.size(); ++i) {
    if (!(densities[i] < kInfinity)) densities[i] = found.caps[i % ks];
  }
}

void Phases::score(const kernels::LofModel& model, bool keep, Lof& found, std::vector<double>& local) const {
  LofTask task = task_;
  task.model = &model;
  task.keep = keep;
  std::vector<double> k_distances;  // of a model they are not those of these rows
  std::vector<double> caps;
  found.scores.resize(static_cast<std::size_t>(task.near.rows));
  LofResult result{found.scores, k_distances, local, caps};
  kernels::cpu_backend().lof().score(ctx_, task, result);
  found.copied = result.copied;
}

void Phases::run(Lof& found) {
  const bool compares = core::compares_neighbors(task_.score);
  std::vector<double> own;
  std::vector<double> k_distances;
  std::vector<double> local;
  std::vector<double> densities;
  ops::together(ranks_, [&] {
    if (task_.keep || task_.score == OutlierScore::lof) own = own_k_distances();
  });
  if (task_.score == OutlierScore::lof) k_distances = of_all_rows(own);
  if (compares) {
    ops::together(ranks_, [&] {
      // Densities of others are not known yet: the scores are of no use. Nothing is capped by an infinite cap.
      densities.resize(static_cast<std::size_t>(begins_.back() * ks_));
      const std::vector<double> no_caps(static_cast<std::size_t>(ks_), kInfinity);
      score({k_distances, densities, no_caps}, true, found, local);
    });
    cap(local, found);
    densities = of_all_rows(local);
  }
  ops::together(ranks_, [&] {
    std::vector<double> again;
    score({k_distances, densities, found.caps}, false, found, again);
    ops::require_numbers(found.scores, "table", begins_[static_cast<std::size_t>(ranks_.rank())]);
  });
  if (!task_.keep) return;
  found.k_distances = std::move(own);
  found.densities = std::move(local);
}

/// Number `place` of the values of all ranks in ascending order, and the one after it.
std::array<double, 2> selected(const Context& ctx, Communicator& ranks, const std::vector<double>& values,
                               std::int64_t place) {
  constexpr int kBits = 8;
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto code = [&](double x) { return static_cast<std::uint64_t>(core::ordered_bits(x)) ^ kSign; };
  std::uint64_t found = 0;      // the bits that are known already
  std::int64_t before = place;  // of the values that begin with them
  std::int64_t equal = 0;       // how many these are, at last equal to the one that is found
  core::Poll poll(ctx);
  for (int shift = 64 - kBits; shift >= 0; shift -= kBits) {
    std::vector<std::int64_t> counts(std::size_t{1} << kBits, 0);
    ops::together(ranks, [&] {
      ctx.check_cancelled();
      for (const double value : values) {
        poll.step();
        const std::uint64_t bits = code(value);
        const bool is_known = shift + kBits == 64 || bits >> (shift + kBits) == found >> (shift + kBits);
        if (is_known) ++counts[bits >> shift & 0xff];
      }
    });
    ranks.all_reduce_sum(counts);
    std::uint64_t digit = 0;
    for (; before >= counts[digit]; ++digit) before -= counts[digit];
    found |= digit << shift;
    equal = counts[digit];
  }
  const auto of_code = [&](std::uint64_t bits) {
    return core::from_ordered_bits(static_cast<std::int64_t>(bits ^ kSign));
  };
  std::array<std::int64_t, 1> least_above = {std::numeric_limits<std::int64_t>::min()};  // its complement
  ops::together(ranks, [&] {
    for (const double value : values) {
      poll.step();
      if (code(value) > found) least_above[0] = std::max(least_above[0], ~core::ordered_bits(value));
    }
  });
  ranks.all_reduce_max(least_above);
  const double value = of_code(found);
  return {value, before + 1 < equal ? value : core::from_ordered_bits(~least_above[0])};
}

/// What is made of the scores of all rows.
void finish_together(const Context& ctx, Communicator& ranks, std::int64_t n, Lof& found) {
  if (found.options.score == OutlierScore::loop) {
    ops::FinitePlofs plofs;
    ops::together(ranks, [&] { plofs = ops::finite_plofs(ctx, found.scores); });
    std::array<std::int64_t, core::ExactSum::kLimbs + 1> sums = {};
    const core::ExactSum::Limbs limbs = plofs.squares.limbs();
    std::copy(limbs.begin(), limbs.end(), sums.begin());
    sums.back() = plofs.count;
    ranks.all_reduce_sum(sums);
    core::ExactSum::Limbs all = {};
    std::copy(sums.begin(), sums.end() - 1, all.begin());
    found.spread = ops::spread_of(core::ExactSum(all).rounded(), sums.back(), found.options.lambda);
    ops::together(ranks, [&] { ops::make_probabilities(ctx, found.spread, found.scores); });
  }
  found.threshold = ops::own_threshold(found.options.score);
  if (found.options.contamination > 0) {
    std::vector<double> negated;
    ops::together(ranks, [&] {
      negated.reserve(found.scores.size());
      core::Poll poll(ctx);
      for (const double score : found.scores) {
        poll.step();
        negated.push_back(0 - score);
      }
    });
    const ops::ThresholdPlace at = ops::threshold_place(n, found.options.contamination);
    const std::array<double, 2> around = selected(ctx, ranks, negated, at.i);
    found.threshold = ops::threshold_between(around[0], around[1], at.t);
  }
  std::array<std::int64_t, 2> counts = {found.copied, 0};
  for (const double score : found.scores) counts[1] += score > found.threshold ? 1 : 0;
  ranks.all_reduce_sum(counts);
  found.copied = counts[0];
  found.outliers = counts[1];
}

Lof lof_of_shard(const Context& ctx, Communicator& ranks, const NeighborGraph& graph, std::int64_t first_row,
                 const LofOptions& options) {
  Lof found;
  found.options = options;
  found.options.metric = graph.metric;
  found.options.p = graph.p;
  ops::together(ranks, [&] {
    ops::check_lof_shards(options);
    ops::check_lof_options(found.options);
    if (graph.rows < 1) refuse("graph: has no rows");
    if (options.k_to > 0 && graph.is_csr()) refuse("k_to: a range of k needs a graph of k neighbors a row");
  });
  agree_on_lof(ranks, graph, options);
  const std::vector<std::int64_t> begins = ops::row_begins(ranks, graph.rows, first_row);
  const std::int64_t n = begins.back();
  ops::alike([&] {
    if (graph.table_rows == n) return;
    refuse("graph: joins rows with " + std::to_string(graph.table_rows) + " table rows, but the ranks have " +
           std::to_string(n));
  });
  LofTask task;
  const auto start = std::chrono::steady_clock::now();
  ops::together(ranks, [&] {
    ops::check_lof_lists(ctx, graph, first_row, n, options);
    task = ops::task_of(found.options, graph.rows);
    ops::take_graph(graph, task);
    found.plan = graph.plan;
    found.plan.device = ctx.device();
    // What is known of all rows, what is kept of the rank's own, and one more of its numbers while they are gathered.
    const auto ks = static_cast<std::uint64_t>(task.ks());
    found.plan.memory = ops::result_bytes(task) + kernels::cpu_backend().lof().bytes(ctx, task).host +
                        16 * ks * (static_cast<std::uint64_t>(n) + static_cast<std::uint64_t>(graph.rows)) +
                        8 * static_cast<std::uint64_t>(graph.rows);
    found.plan.device_memory = 0;
    core::require_memory(ctx, found.plan.memory, "lof");
  });
  Phases(ctx, ranks, task, begins).run(found);
  finish_together(ctx, ranks, n, found);
  found.score_seconds = seconds_since(start);
  return found;
}

}  // namespace

Lof lof(const Context& ctx, Communicator& communicator, const NeighborGraph& graph, std::int64_t first_row,
        const LofOptions& options) try {
  const core::Entry entry;
  return ops::by_ranks(communicator, [&] { return lof_of_shard(ctx, communicator, graph, first_row, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
