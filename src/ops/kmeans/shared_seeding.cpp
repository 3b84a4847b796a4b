// See shared_seeding.hpp.
#include "ops/kmeans/shared_seeding.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "ops/common/together.hpp"

namespace vicinal::ops {
namespace {

constexpr std::array kCurrent = {kernels::ShardSeeding::kAsTheyAre};

}  // namespace

SharedSeeding::SharedSeeding(Communicator& ranks, const kernels::Lloyd& lloyd,
                             std::unique_ptr<kernels::ShardSeeding> own, std::vector<std::int64_t> begins,
                             std::int64_t cols)
    : ranks_(ranks),
      lloyd_(lloyd),
      own_(std::move(own)),
      layout_(std::move(begins)),
      masses_(share_masses(ranks_, layout_, own_.get(), kCurrent)),
      cols_(static_cast<std::size_t>(cols)) {}

void SharedSeeding::draw(std::span<const double> draws, std::span<std::int64_t> rows) {
  std::optional<OwnMasses> own;
  const int rank = ranks_.rank();
  const std::int64_t first = layout_.begins()[static_cast<std::size_t>(rank)];
  const std::int64_t count = layout_.begins()[static_cast<std::size_t>(rank) + 1] - first;
  if (own_) own.emplace(*own_, kernels::ShardSeeding::kAsTheyAre, first, count);
  for (std::size_t t = 0; t < draws.size(); ++t) {
    rows[t] = masses_.front().drawn_row(layout_, draws[t], rank, own ? &*own : nullptr);
  }
  ranks_.all_reduce_sum(rows);
}

void SharedSeeding::choose(std::span<const double> draws, std::span<std::int64_t> rows) {
  const std::size_t trials = draws.size() / rows.size();
  std::vector<std::int64_t> drawn(trials);
  std::vector<std::int64_t> attempts(trials);
  std::iota(attempts.begin(), attempts.end(), 0);
  for (std::size_t c = 0; c < rows.size(); ++c) {
    draw(draws.subspan(c * trials, trials), drawn);
    const std::vector<double> values = values_of(drawn);
    together(ranks_, [&] {
      if (own_) own_->attempt(values);
    });
    std::vector<SharedMasses> left = share_masses(ranks_, layout_, own_.get(), attempts);
    const auto best = std::min_element(
        left.begin(), left.end(), [](const SharedMasses& a, const SharedMasses& b) { return a.total() < b.total(); });
    const auto chosen = static_cast<std::size_t>(best - left.begin());
    rows[c] = drawn[chosen];
    if (own_) own_->take(static_cast<std::int64_t>(chosen));
    masses_.front() = std::move(left[chosen]);
  }
}

void SharedSeeding::meet(std::span<const std::int64_t> rows) {
  const std::vector<double> values = values_of(rows);
  together(ranks_, [&] {
    if (own_) own_->meet(values);
  });
  masses_ = share_masses(ranks_, layout_, own_.get(), kCurrent);
}

std::vector<double> SharedSeeding::values_of(std::span<const std::int64_t> rows) const {
  std::vector<double> values(rows.size() * cols_);
  lloyd_.rows(rows, values);
  return values;
}

}  // namespace vicinal::ops
