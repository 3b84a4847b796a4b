// How well clusters agree with known classes (contract clause 21). Pairs of a class and a cluster are sorted and
// counted, so that memory does not grow with their product; counts are whole numbers, and sums are exact.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/elementary.hpp"
#include "core/entry.hpp"
#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "ops/common/refuse.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal {
namespace {

__extension__ using Pairs = unsigned __int128;

void check_labeling(core::Poll& poll, const Labeling& labeling, std::string_view name) {
  if (labeling.clusters < 1 || labeling.clusters > std::numeric_limits<std::int32_t>::max()) {
    refuse(fmt::format("{}: has {} clusters, must have from 1 to 2^31 - 1", name, labeling.clusters));
  }
  for (std::size_t i = 0; i < labeling.labels.size(); ++i) {
    poll.step();
    if (labeling.labels[i] >= 0 && labeling.labels[i] < labeling.clusters) continue;
    refuse(fmt::format("{}: row {} has label {}, must be from 0 to {}", name, i, labeling.labels[i],
                       labeling.clusters - 1));
  }
}

/// How many rows each label has.
std::vector<std::int64_t> sizes_of(core::Poll& poll, const Labeling& labeling) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(labeling.clusters));
  for (const std::int32_t label : labeling.labels) {
    poll.step();
    ++sizes[static_cast<std::size_t>(label)];
  }
  return sizes;
}

/// Of one labeling: the sum of squared sizes, how many labels occur, and the entropy times the number of rows.
struct LabelSizes {
  Pairs squares = 0;
  std::int64_t labels = 0;
  double entropy = 0;

  LabelSizes(core::Poll& poll, const std::vector<std::int64_t>& sizes, double rows) {
    core::ExactSum sum;
    for (const std::int64_t size : sizes) {
      poll.step();
      if (size == 0) continue;
      ++labels;
      squares += static_cast<Pairs>(size) * static_cast<Pairs>(size);
      const auto count = static_cast<double>(size);
      sum.add(count * core::natural_log(rows / count));
    }
    entropy = sum.rounded();
  }
};

double adjusted_rand(Pairs rows, Pairs squares_of_cells, Pairs squares_of_truth, Pairs squares_of_predicted) {
  // Ordered pairs of different rows: together in both, in `predicted` alone, in `truth` alone, in neither.
  const auto both = static_cast<double>(squares_of_cells - rows);
  const auto predicted_alone = static_cast<double>(squares_of_predicted - squares_of_cells);
  const auto truth_alone = static_cast<double>(squares_of_truth - squares_of_cells);
  const auto neither = static_cast<double>(rows * rows - squares_of_truth - squares_of_predicted + squares_of_cells);
  if (predicted_alone == 0 && truth_alone == 0) return 1;
  return 2 * (both * neither - truth_alone * predicted_alone) /
         ((both + truth_alone) * (truth_alone + neither) + (both + predicted_alone) * (predicted_alone + neither));
}

}  // namespace

ClusteringScores clustering_scores(const Context& ctx, const Labeling& truth, const Labeling& predicted) try {
  const core::Entry entry;
  if (truth.labels.empty()) refuse("truth: has no rows");
  if (truth.labels.size() != predicted.labels.size()) {
    refuse(fmt::format("predicted: has {} rows, but truth has {}", predicted.labels.size(), truth.labels.size()));
  }
  core::Poll poll(ctx);
  check_labeling(poll, truth, "truth");
  check_labeling(poll, predicted, "predicted");
  core::require_memory(
      ctx,
      8 * (static_cast<std::uint64_t>(truth.labels.size()) + static_cast<std::uint64_t>(truth.clusters) +
           static_cast<std::uint64_t>(predicted.clusters)),
      "clustering_scores");
  const std::vector<std::int64_t> classes = sizes_of(poll, truth);
  const std::vector<std::int64_t> clusters = sizes_of(poll, predicted);
  std::vector<std::uint64_t> cells;  // of each row: class and cluster
  cells.reserve(truth.labels.size());
  for (std::size_t i = 0; i < truth.labels.size(); ++i) {
    poll.step();
    cells.push_back(static_cast<std::uint64_t>(truth.labels[i]) << 32 |
                    static_cast<std::uint64_t>(predicted.labels[i]));
  }
  std::sort(cells.begin(), cells.end(), [&poll](std::uint64_t a, std::uint64_t b) {
    poll.step();
    return a < b;
  });
  const auto rows = static_cast<double>(cells.size());
  const LabelSizes of_truth(poll, classes, rows);
  const LabelSizes of_predicted(poll, clusters, rows);
  Pairs squares = 0;
  std::int64_t occupied = 0;
  core::ExactSum information;
  for (std::size_t begin = 0; begin < cells.size();) {
    std::size_t end = begin;
    for (; end < cells.size() && cells[end] == cells[begin]; ++end) poll.step();
    const auto count = static_cast<double>(end - begin);
    const auto in_class = static_cast<double>(classes[cells[begin] >> 32]);
    const auto in_cluster = static_cast<double>(clusters[cells[begin] & 0xffffffffU]);
    information.add(count * core::natural_log((rows * count) / (in_class * in_cluster)));
    squares += static_cast<Pairs>(end - begin) * (end - begin);
    ++occupied;
    begin = end;
  }
  const double mutual = std::max(information.rounded(), 0.0);
  ClusteringScores scores;
  scores.adjusted_rand = adjusted_rand(cells.size(), squares, of_truth.squares, of_predicted.squares);
  scores.homogeneity = occupied == of_predicted.labels ? 1 : std::min(mutual / of_truth.entropy, 1.0);
  scores.completeness = occupied == of_truth.labels ? 1 : std::min(mutual / of_predicted.entropy, 1.0);
  const double sum = scores.homogeneity + scores.completeness;
  scores.v_measure = sum > 0 ? 2 * scores.homogeneity * scores.completeness / sum : 0;
  scores.normalized_mutual_info = scores.v_measure;
  return scores;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
