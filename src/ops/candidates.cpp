// See candidates.hpp. Each row keeps its least key and the candidate that it is to, so that candidates are met once.
#include "ops/candidates.hpp"

#include <algorithm>
#include <unordered_set>

#include "core/exact_sum.hpp"
#include "core/masses.hpp"
#include "core/parallel.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kRounds = 5;
constexpr std::int64_t kDrawsPerCluster = 2;
constexpr std::int64_t kBlock = 64;  // chunks of masses that one task of a thread takes

class Drawing {
 public:
  Drawing(const Context& ctx, kernels::Lloyd& lloyd, const kernels::ClusterTask& task)
      : ctx_(ctx),
        lloyd_(lloyd),
        task_(task),
        n_(task.table.rows()),
        keys_(static_cast<std::size_t>(n_), 1),
        winners_(keys_.size(), 0),
        chunks_(static_cast<std::size_t>((n_ + core::kMassChunk - 1) / core::kMassChunk)),
        batch_keys_(keys_.size()),
        batch_labels_(keys_.size()) {
    add_masses([](std::int64_t /*row*/) {});
  }

  void round(std::int64_t count, Draws& draws);
  [[nodiscard]] double total() const { return running_.back(); }
  [[nodiscard]] std::int64_t drawn() const { return static_cast<std::int64_t>(rows_.size()); }
  Candidates with_rows();

 private:
  template <class Visit>
  void add_masses(const Visit& visit);
  void meet(std::size_t first);
  [[nodiscard]] double mass(std::int64_t row) const {
    const auto at = static_cast<std::size_t>(row);
    return task_.weights.empty() ? keys_[at] : task_.weights[at] * keys_[at];
  }

  const Context& ctx_;
  kernels::Lloyd& lloyd_;
  const kernels::ClusterTask& task_;
  std::int64_t n_;
  std::vector<std::int64_t> rows_;  // candidates
  std::unordered_set<std::int64_t> taken_;
  std::vector<double> keys_;           // [n] to the nearest candidate; 1 before there is one
  std::vector<std::int32_t> winners_;  // [n] that candidate
  std::vector<double> chunks_;
  std::vector<double> running_;
  std::vector<double> batch_keys_;
  std::vector<std::int32_t> batch_labels_;
};

// Calls visit(row) for every row, and then adds up the masses.
template <class Visit>
void Drawing::add_masses(const Visit& visit) {
  const auto chunks = static_cast<std::int64_t>(chunks_.size());
  core::parallel_for(ctx_, (chunks + kBlock - 1) / kBlock, [&](std::int64_t block, int /*worker*/) {
    for (std::int64_t c = block * kBlock; c < std::min((block + 1) * kBlock, chunks); ++c) {
      const std::int64_t first = c * core::kMassChunk;
      for (std::int64_t row = first; row < std::min(first + core::kMassChunk, n_); ++row) visit(row);
      chunks_[static_cast<std::size_t>(c)] = core::chunk_mass(first, n_, [&](std::int64_t i) { return mass(i); });
    }
  });
  running_ = core::running_masses(chunks_);
}

// So many draws from the masses as they are; then the rows meet the candidates that they make.
void Drawing::round(std::int64_t count, Draws& draws) {
  const std::size_t first = rows_.size();
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t row = core::drawn_row(draws.next(), n_, running_, [&](std::int64_t i) { return mass(i); });
    if (taken_.insert(row).second) rows_.push_back(row);
  }
  meet(first);
}

void Drawing::meet(std::size_t first) {
  const auto d = static_cast<std::size_t>(task_.table.cols());
  std::vector<double> centres;
  for (std::size_t end = first; first < rows_.size(); first = end) {
    end = std::min(first + static_cast<std::size_t>(task_.clusters), rows_.size());
    centres.resize((end - first) * d);
    lloyd_.rows(std::span(rows_).subspan(first, end - first), centres);
    lloyd_.start(centres);
    lloyd_.assign();
    lloyd_.keys(batch_keys_);
    lloyd_.labels(batch_labels_);
    add_masses([&](std::int64_t row) {
      const auto at = static_cast<std::size_t>(row);
      if (first != 0 && !(batch_keys_[at] < keys_[at])) return;
      keys_[at] = batch_keys_[at];
      winners_[at] = static_cast<std::int32_t>(first) + batch_labels_[at];
    });
  }
}

// Rows are dealt out to their candidates, so that one exact sum at a time is kept.
Candidates Drawing::with_rows() {
  std::vector<std::int64_t> ends(rows_.size() + 1, 0);
  for (const std::int32_t winner : winners_) ++ends[static_cast<std::size_t>(winner) + 1];
  for (std::size_t c = 1; c < ends.size(); ++c) ends[c] += ends[c - 1];
  std::vector<double> weights(task_.weights.size());
  std::vector<std::int64_t> next(ends.begin(), ends.end() - 1);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[static_cast<std::size_t>(next[static_cast<std::size_t>(winners_[i])]++)] = task_.weights[i];
  }
  Candidates found;
  for (std::size_t c = 0; c < rows_.size(); ++c) {
    if (ends[c + 1] == ends[c]) continue;
    found.rows.push_back(rows_[c]);
    core::ExactSum sum;
    for (std::int64_t i = ends[c]; i < ends[c + 1] && !weights.empty(); ++i) {
      sum.add(weights[static_cast<std::size_t>(i)]);
    }
    found.weights.push_back(weights.empty() ? static_cast<double>(ends[c + 1] - ends[c]) : sum.rounded());
  }
  return found;
}

}  // namespace

Candidates draw_candidates(const Context& ctx, kernels::Lloyd& lloyd, const kernels::ClusterTask& task, Draws& draws) {
  Drawing drawing(ctx, lloyd, task);
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
  // Keys, winners and weights; and of candidates their numbers, a set of those, sums and where their rows end.
  return static_cast<std::uint64_t>(n) * (8 + 4 + 8 + 4 + 8 + 1) +
         static_cast<std::uint64_t>(usual_candidates(n, k)) * 80;
}

}  // namespace vicinal::ops
