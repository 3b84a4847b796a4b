// Scores of a ranking: how well large scores find the positive rows (contract clause 21). Rows are sorted once; those
// of one score are taken together, and counted in whole numbers, so that their order makes no difference.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/entry.hpp"
#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "ops/common/refuse.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal {
namespace {

using Truth = std::span<const std::int32_t>;
using RankedScores = std::span<const double>;

/// Rows of one score.
struct EqualRows {
  double score = 0;
  std::uint64_t positives = 0;
  std::uint64_t negatives = 0;
  [[nodiscard]] std::uint64_t size() const noexcept { return positives + negatives; }
};

/// Rows from the largest score down.
class RankedRows {
 public:
  /// `bytes_per_row`: of the result.
  RankedRows(const Context& ctx, Truth truth, RankedScores scores, std::string_view job, std::uint64_t bytes_per_row)
      : poll_(ctx) {
    if (truth.size() != scores.size()) {
      refuse(fmt::format("scores: has {} rows, but truth has {}", scores.size(), truth.size()));
    }
    core::require_memory(ctx, scores.size() * (sizeof(Row) + bytes_per_row), job);
    rows_.reserve(scores.size());
    for (std::size_t i = 0; i < scores.size(); ++i) {
      poll_.step();
      if (truth[i] != 0 && truth[i] != 1) refuse(fmt::format("truth: row {} is {}, must be 0 or 1", i, truth[i]));
      if (std::isnan(scores[i])) throw Error(ErrorCode::bad_data, fmt::format("scores: row {} is NaN", i));
      rows_.push_back({scores[i] + 0.0, truth[i] == 1});  // -0 becomes 0
      positives_ += truth[i] == 1 ? 1 : 0;
    }
    std::sort(rows_.begin(), rows_.end(), [this](const Row& a, const Row& b) {
      poll_.step();
      return a.score > b.score;
    });
  }

  [[nodiscard]] std::uint64_t positives() const noexcept { return positives_; }
  [[nodiscard]] std::uint64_t negatives() const noexcept { return rows_.size() - positives_; }
  void require_positive() const {
    if (positives_ == 0) throw Error(ErrorCode::bad_data, "truth: has no positive row, which scores could find");
  }
  /// There is a pair of a positive and a negative row.
  void require_both() const {
    if (positives_ > 0 && negatives() > 0) return;
    throw Error(ErrorCode::bad_data, fmt::format("truth: has no {} row, so that there is no pair to compare",
                                                 positives_ == 0 ? "positive" : "negative"));
  }
  /// body(rows of the same score), from the largest score down.
  template <class Body>
  void for_each(const Body& body) {
    for (std::size_t at = 0; at < rows_.size();) {
      EqualRows equal{rows_[at].score, 0, 0};
      for (; at < rows_.size() && rows_[at].score == equal.score; ++at) {
        poll_.step();
        ++(rows_[at].positive ? equal.positives : equal.negatives);
      }
      body(equal);
    }
  }

 private:
  struct Row {
    double score;
    bool positive;
  };
  std::vector<Row> rows_;
  std::uint64_t positives_ = 0;
  core::Poll poll_;
};

double share(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double roc_auc_score(const Context& ctx, Truth truth, RankedScores scores) try {
  const core::Entry entry;
  RankedRows rows(ctx, truth, scores, "roc_auc_score", 0);
  rows.require_both();
  __extension__ using Wide = unsigned __int128;
  Wide twice_won = 0;
  std::uint64_t positives = 0;
  rows.for_each([&](const EqualRows& equal) {
    twice_won += static_cast<Wide>(equal.negatives) * (2 * static_cast<Wide>(positives) + equal.positives);
    positives += equal.positives;
  });
  const double pairs = static_cast<double>(rows.positives()) * static_cast<double>(rows.negatives());
  return core::computed(static_cast<double>(twice_won) / 2 / pairs);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

RocCurve roc_curve(const Context& ctx, Truth truth, RankedScores scores, bool drop_intermediate) try {
  const core::Entry entry;
  RankedRows rows(ctx, truth, scores, "roc_curve", 3 * sizeof(double));
  rows.require_both();
  RocCurve curve;
  std::uint64_t positives = 0;
  std::uint64_t negatives = 0;
  const auto add = [&](double threshold) {
    curve.false_positive_rates.push_back(share(negatives, rows.negatives()));
    curve.true_positive_rates.push_back(share(positives, rows.positives()));
    curve.thresholds.push_back(threshold);
  };
  std::size_t points = 1;
  rows.for_each([&](const EqualRows& /*equal*/) { ++points; });
  for (auto* const values : {&curve.false_positive_rates, &curve.true_positive_rates, &curve.thresholds}) {
    values->reserve(points);
  }
  add(std::numeric_limits<double>::infinity());
  EqualRows step;  // to the point that is not added yet
  rows.for_each([&](const EqualRows& next) {
    const bool repeats = step.positives == next.positives && step.negatives == next.negatives;
    const bool first = positives + negatives == step.size();
    if (step.size() > 0 && (first || !repeats || !drop_intermediate)) add(step.score);
    step = next;
    positives += step.positives;
    negatives += step.negatives;
  });
  add(step.score);
  return curve;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

double average_precision_score(const Context& ctx, Truth truth, RankedScores scores) try {
  const core::Entry entry;
  RankedRows rows(ctx, truth, scores, "average_precision_score", 0);
  rows.require_positive();
  core::ExactSum sum;
  std::uint64_t positives = 0;
  std::uint64_t seen = 0;
  rows.for_each([&](const EqualRows& equal) {
    positives += equal.positives;
    seen += equal.size();
    sum.add(static_cast<double>(equal.positives) * share(positives, seen));
  });
  return core::computed(sum.rounded() / static_cast<double>(positives));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

double precision_at_n_score(const Context& ctx, Truth truth, RankedScores scores, std::int64_t n) try {
  const core::Entry entry;
  if (n < 0 || n > static_cast<std::int64_t>(scores.size())) {
    refuse(fmt::format("n: is {}, must be from 0 to {}, the number of rows", n, scores.size()));
  }
  RankedRows rows(ctx, truth, scores, "precision_at_n_score", 0);
  rows.require_positive();
  const std::uint64_t wanted = n > 0 ? static_cast<std::uint64_t>(n) : rows.positives();
  __extension__ using Wide = unsigned __int128;
  std::uint64_t positives = 0;
  std::uint64_t seen = 0;
  double precision = 0;
  rows.for_each([&](const EqualRows& equal) {
    if (seen < wanted && seen + equal.size() >= wanted) {
      const Wide found =
          static_cast<Wide>(positives) * equal.size() + static_cast<Wide>(wanted - seen) * equal.positives;
      precision = static_cast<double>(found) / (static_cast<double>(equal.size()) * static_cast<double>(wanted));
    }
    positives += equal.positives;
    seen += equal.size();
  });
  return core::computed(precision);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
