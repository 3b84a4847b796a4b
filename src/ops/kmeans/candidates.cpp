// See candidates.hpp. Rows meet each candidate once: the backend keeps the least key of each and the candidate that it
// is to.
#include "ops/kmeans/candidates.hpp"

#include <algorithm>
#include <unordered_set>

#include "core/exact_sum.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kRounds = 5;
constexpr std::int64_t kDrawsPerCluster = 2;
constexpr std::size_t kSumsAtOnce = 64;

class Drawing {
 public:
  Drawing(kernels::Lloyd& lloyd, const RankRows& own) : own_(own), task_(own.task), seeding_(lloyd.seeding(0)) {}

  void round(std::int64_t count, Draws& draws);
  [[nodiscard]] double total() const { return seeding_->total(); }
  [[nodiscard]] std::int64_t drawn() const { return static_cast<std::int64_t>(rows_.size()); }
  Candidates with_rows();

 private:
  const RankRows& own_;
  const kernels::ClusterTask& task_;
  std::unique_ptr<kernels::Seeding> seeding_;
  std::vector<std::int64_t> rows_;  // candidates
  std::unordered_set<std::int64_t> taken_;
};

// So many draws from the masses as they are; then the rows meet the candidates that they make.
void Drawing::round(std::int64_t count, Draws& draws) {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(count));
  seeding_->draw(draws.next(count), drawn);
  std::size_t first = rows_.size();
  for (const std::int64_t row : drawn) {
    if (taken_.insert(row).second) rows_.push_back(row);
  }
  for (std::size_t end = first; first < rows_.size(); first = end) {
    end = std::min(first + static_cast<std::size_t>(task_.clusters), rows_.size());
    seeding_->meet(std::span(rows_).subspan(first, end - first));
  }
}

// Rows are dealt out to their candidates, so that one exact sum at a time is kept.
Candidates Drawing::with_rows() {
  std::vector<std::int32_t> winners(static_cast<std::size_t>(task_.table.rows()));
  seeding_->winners(winners);
  std::vector<std::int64_t> ends(rows_.size() + 1, 0);
  for (const std::int32_t winner : winners) ++ends[static_cast<std::size_t>(winner) + 1];
  std::vector<std::int64_t> counts(ends.begin() + 1, ends.end());
  for (std::size_t c = 1; c < ends.size(); ++c) ends[c] += ends[c - 1];
  std::vector<double> weights(task_.weights.size());
  std::vector<std::int64_t> next(ends.begin(), ends.end() - 1);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[static_cast<std::size_t>(next[static_cast<std::size_t>(winners[i])]++)] = task_.weights[i];
  }
  own_.ranks.all_reduce_sum(counts);
  Candidates found;
  for (std::size_t c = 0; c < rows_.size(); ++c) {
    if (counts[c] == 0) continue;
    found.rows.push_back(rows_[c]);
    if (!own_.weighted) found.weights.push_back(static_cast<double>(counts[c]));
  }
  // Sums of weights, some candidates at a time.
  std::vector<core::ExactSum::Limbs> limbs;
  for (std::size_t first = 0; own_.weighted && first < rows_.size(); first += limbs.size()) {
    limbs.clear();
    for (std::size_t c = first; c < std::min(first + kSumsAtOnce, rows_.size()); ++c) {
      core::ExactSum sum;
      for (std::int64_t i = ends[c]; i < ends[c + 1]; ++i) sum.add(weights[static_cast<std::size_t>(i)]);
      limbs.push_back(sum.limbs());
    }
    own_.ranks.all_reduce_sum({limbs.front().data(), limbs.size() * core::ExactSum::kLimbs});
    for (std::size_t i = 0; i < limbs.size(); ++i) {
      if (counts[first + i] > 0) found.weights.push_back(core::ExactSum(limbs[i]).rounded());
    }
  }
  return found;
}

}  // namespace

Candidates draw_candidates(const Context& ctx, kernels::Lloyd& lloyd, const RankRows& rows, Draws& draws) {
  const kernels::ClusterTask& task = rows.task;
  Drawing drawing(lloyd, rows);
  drawing.round(1, draws);
  for (std::int64_t round = 0; drawing.total() > 0 && (round < kRounds || drawing.drawn() < task.clusters); ++round) {
    ctx.report("seed", 0.5 * static_cast<double>(std::min(round, kRounds)) / static_cast<double>(kRounds));
    drawing.round(kDrawsPerCluster * task.clusters, draws);
  }
  return drawing.with_rows();
}

std::int64_t usual_candidates(std::int64_t n, std::int64_t k) {
  return std::min(n, 1 + kRounds * kDrawsPerCluster * k);
}

std::uint64_t candidate_bytes(std::int64_t n, std::int64_t k) {
  // Winners and weights; and of candidates their numbers, a set of those, sums and where their rows end.
  return static_cast<std::uint64_t>(n) * (4 + 8) + static_cast<std::uint64_t>(usual_candidates(n, k)) * 80;
}

}  // namespace vicinal::ops
