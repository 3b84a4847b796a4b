// See asked_lloyd.hpp.
#include "ops/kmeans/asked_lloyd.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/in_steps.hpp"
#include "formulas/kmeans/masses.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/merged_means.hpp"

namespace vicinal::ops {
namespace {

/// Draws of k-means|| from masses that the shards have computed.
class AskedSeeding final : public kernels::Seeding {
 public:
  explicit AskedSeeding(const AskedLloyd& lloyd)
      : lloyd_(lloyd), tree_(lloyd.rows_in_all()), sums_(static_cast<std::size_t>(tree_.nodes)) {
    masses_.resize(static_cast<std::size_t>(lloyd.rows_in_all()));
    winners_.resize(masses_.size());
  }

  void draw(std::span<const double> draws, std::span<std::int64_t> rows) override {
    look();
    const auto mass = [&](std::int64_t row) { return masses_[static_cast<std::size_t>(row)]; };
    for (std::size_t t = 0; t < draws.size(); ++t) {
      rows[t] = core::drawn_row(draws[t], lloyd_.rows_in_all(), tree_, sums_.data(), mass);
    }
  }
  void choose(std::span<const double> /*draws*/, std::span<std::int64_t> /*rows*/) override {
    refuse("init: k-means++ is not for shards that are asked");
  }
  void meet(std::span<const std::int64_t> rows) override {
    const std::size_t before = candidates_.size();
    candidates_.resize(before + rows.size() * static_cast<std::size_t>(lloyd_.cols()));
    lloyd_.rows(rows, std::span(candidates_).subspan(before));
    is_current_ = false;
  }
  double total() const override {
    look();
    return sums_.back();
  }
  void winners(std::span<std::int32_t> winners) const override {
    look();
    std::copy(winners_.begin(), winners_.end(), winners.begin());
  }

 private:
  /// One question for all candidates since the last.
  void look() const {
    if (is_current_) return;
    lloyd_.masses(candidates_, masses_, winners_);
    for (std::int64_t i = 0; i < tree_.sizes[0]; ++i) {
      const std::int64_t first = i * core::kMassParts;
      sums_[static_cast<std::size_t>(i)] = core::sum_of_parts(
          lloyd_.rows_in_all() - first, [&](std::int64_t p) { return masses_[static_cast<std::size_t>(first + p)]; });
    }
    core::add_levels(tree_, sums_.data());
    is_current_ = true;
  }

  const AskedLloyd& lloyd_;
  core::MassTree tree_;
  std::vector<double> candidates_;
  mutable std::vector<double> sums_;
  mutable std::vector<double> masses_;
  mutable std::vector<std::int32_t> winners_;
  mutable bool is_current_ = false;
};

}  // namespace

std::vector<std::vector<std::byte>> answers_of(const Context& ctx, const AskShards& ask, const Question& question) {
  std::vector<std::vector<std::byte>> answers = ask(bytes_of(question));
  ctx.check_cancelled();
  if (answers.size() != question.first_rows.size()) {
    throw Error(ErrorCode::bad_data, "kmeans: " + std::to_string(answers.size()) + " answers of " +
                                         std::to_string(question.first_rows.size()) + " shards");
  }
  return answers;
}

AskedLloyd::AskedLloyd(const Context& ctx, const AskShards& ask, Question question)
    : ctx_(ctx),
      ask_(ask),
      about_(std::move(question)),
      clusters_(about_.clusters),
      grid_(about_.ranges, about_.weighted) {}

template <class Read>
void AskedLloyd::asked(QuestionKind kind, const Read& read) const {
  about_.kind = kind;
  // The variance is that of one cluster.
  const bool of_labels = kind != QuestionKind::rows && kind != QuestionKind::masses;
  about_.clusters = of_labels ? std::ssize(sizes_) : clusters_;
  const std::vector<std::vector<std::byte>> answers = answers_of(ctx_, ask_, about_);
  about_.centres.clear();
  about_.labelled_by.clear();
  about_.moves.clear();
  about_.rows.clear();
  for (std::size_t s = 0; s < answers.size(); ++s) {
    ByteReader answer(answers[s], "answer of shard " + std::to_string(s));
    read(answer, static_cast<std::size_t>(about_.begins[s]), static_cast<std::size_t>(about_.begins[s + 1]));
    answer.finish();
  }
}

void AskedLloyd::start(std::span<const double> centres) {
  centres_.assign(centres.begin(), centres.end());
  sizes_.resize(centres_.size() / static_cast<std::size_t>(cols()));
  labels_.clear();
}

void AskedLloyd::add_parts(ByteReader& answer) {
  const auto own = answer.array<std::int64_t>(parts_.size());
  // Wraps around where an answer is no sum of a shard's rows, as an addition of unsigned numbers does.
  for (std::size_t i = 0; i < own.size(); ++i) {
    parts_[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(parts_[i]) + static_cast<std::uint64_t>(own[i]));
  }
}

kernels::LloydStep AskedLloyd::assign() {
  const auto size = static_cast<std::size_t>(grid_.cluster_size());
  const bool first = labels_.empty();
  core::resize_in_steps(ctx_, labels_, rows_in_all());
  parts_.assign(sizes_.size() * size, 0);
  labelled_by_ = centres_;
  moves_.clear();
  about_.centres = centres_;
  kernels::LloydStep step;
  std::vector<std::int32_t> labels;
  asked(QuestionKind::assign, [&](ByteReader& answer, std::size_t begin, std::size_t end) {
    counts_.rows += answer.number<std::int64_t>();
    counts_.skipped += answer.number<std::int64_t>();
    counts_.rechecked += answer.number<std::int64_t>();
    add_parts(answer);
    labels.resize(end - begin);
    read_labels(answer, labels, about_.clusters);
    for (std::size_t i = begin; i < end; ++i) {
      step.changed += first || labels_[i] != labels[i - begin] ? 1 : 0;
      labels_[i] = labels[i - begin];
    }
  });
  std::int64_t rows = 0;
  for (std::size_t c = 0; c < sizes_.size(); ++c) {
    sizes_[c] = parts_[c * size];
    step.empty += sizes_[c] == 0 ? 1 : 0;
    if (sizes_[c] < 0 || sizes_[c] > rows_in_all()) throw Error(ErrorCode::bad_data, "answers: sizes of no clusters");
    rows += sizes_[c];
  }
  if (rows != rows_in_all()) throw Error(ErrorCode::bad_data, "answers: sizes of no clusters");
  return step;
}

void AskedLloyd::move(std::int64_t row, std::int32_t cluster) {
  std::int32_t& label = labels_[static_cast<std::size_t>(row)];
  --sizes_[static_cast<std::size_t>(label)];
  ++sizes_[static_cast<std::size_t>(cluster)];
  label = cluster;
  moves_.push_back({row, cluster});
}

double AskedLloyd::means() {
  std::vector<std::int64_t> used = parts_;
  if (!moves_.empty()) {
    std::fill(parts_.begin(), parts_.end(), 0);
    about_.labelled_by = labelled_by_;
    about_.moves = moves_;
    asked(QuestionKind::parts, [&](ByteReader& answer, std::size_t, std::size_t) { add_parts(answer); });
    std::swap(used, parts_);
  }
  return merged_means(ctx_, grid_, used, centres_);
}

void AskedLloyd::recentre(std::span<const double> centres) {
  centres_.assign(centres.begin(), centres.end());
}

void AskedLloyd::centres(std::span<double> centres) const {
  std::copy(centres_.begin(), centres_.end(), centres.begin());
}

void AskedLloyd::sizes(std::span<std::int64_t> sizes) const {
  std::copy(sizes_.begin(), sizes_.end(), sizes.begin());
}

void AskedLloyd::labels(std::span<std::int32_t> labels) const {
  std::copy(labels_.begin(), labels_.end(), labels.begin());
}

void AskedLloyd::keys(std::span<double> keys) {
  about_.labelled_by = labelled_by_;
  about_.moves = moves_;
  about_.centres = centres_;
  asked(QuestionKind::keys, [&](ByteReader& answer, std::size_t begin, std::size_t end) {
    const auto own = answer.array<double>(end - begin);
    answer.require(std::all_of(own.begin(), own.end(), [](double key) { return key >= 0; }), "has keys below 0");
    std::copy(own.begin(), own.end(), keys.begin() + static_cast<std::ptrdiff_t>(begin));
  });
}

double AskedLloyd::inertia() {
  about_.labelled_by = labelled_by_;
  about_.moves = moves_;
  about_.centres = centres_;
  core::ExactSum sum;
  asked(QuestionKind::inertia, [&](ByteReader& answer, std::size_t, std::size_t) {
    const auto own = answer.array<std::int64_t>(core::ExactSum::kLimbs);
    core::ExactSum::Limbs limbs;
    std::copy(own.begin(), own.end(), limbs.begin());
    sum.add(core::ExactSum(limbs));
  });
  return sum.rounded();
}

void AskedLloyd::rows(std::span<const std::int64_t> rows, std::span<double> values) const {
  const auto d = static_cast<std::size_t>(cols());
  about_.rows.assign(rows.begin(), rows.end());
  asked(QuestionKind::rows, [&](ByteReader& answer, std::size_t begin, std::size_t end) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<std::size_t>(rows[i]);
      if (row >= begin && row < end) own.push_back(i);
    }
    const auto from = answer.array<double>(own.size() * d);
    for (std::size_t i = 0; i < own.size(); ++i) {
      std::copy_n(from.data() + i * d, d, values.data() + own[i] * d);
    }
  });
}

void AskedLloyd::masses(std::span<const double> candidates, std::span<double> masses,
                        std::span<std::int32_t> winners) const {
  about_.centres.assign(candidates.begin(), candidates.end());
  const auto count = static_cast<std::int64_t>(candidates.size()) / cols();
  asked(QuestionKind::masses, [&](ByteReader& answer, std::size_t begin, std::size_t end) {
    const auto own = answer.array<double>(end - begin);
    const auto nearest = answer.array<std::int32_t>(end - begin);
    const auto is_candidate = [&](std::int32_t x) { return x >= 0 && x < std::max<std::int64_t>(count, 1); };
    answer.require(std::all_of(own.begin(), own.end(), [](double mass) { return mass >= 0; }) &&
                       std::all_of(nearest.begin(), nearest.end(), is_candidate),
                   "has masses of no rows");
    std::copy(own.begin(), own.end(), masses.begin() + static_cast<std::ptrdiff_t>(begin));
    std::copy(nearest.begin(), nearest.end(), winners.begin() + static_cast<std::ptrdiff_t>(begin));
  });
}

std::unique_ptr<kernels::Seeding> AskedLloyd::seeding(std::int64_t /*trials*/) {
  return std::make_unique<AskedSeeding>(*this);
}

}  // namespace vicinal::ops
