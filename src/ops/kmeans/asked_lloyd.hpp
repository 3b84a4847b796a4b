// Lloyd's iterations over shards that are asked (include/vicinal/kmeans_shards.hpp): centers, labels and merged sums
// are here, rows are where the shards are. To those who iterate it is a table like any other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kmeans.hpp"
#include "ops/kmeans/question.hpp"
#include "vicinal/context.hpp"
#include "vicinal/kmeans_shards.hpp"

namespace vicinal::ops {

class AskedLloyd final : public kernels::Lloyd {
 public:
  /// `question` describes the table: all but its kind and what depends on it. Borrows everything.
  AskedLloyd(const Context& ctx, const AskShards& ask, Question question);

  void start(std::span<const double> centres) override;
  kernels::LloydStep assign() override;
  void move(std::int64_t row, std::int32_t cluster) override;
  double means() override;
  void recentre(std::span<const double> centres) override;
  void centres(std::span<double> centres) const override;
  void sizes(std::span<std::int64_t> sizes) const override;
  void labels(std::span<std::int32_t> labels) const override;
  void keys(std::span<double> keys) override;
  double inertia() override;
  void rows(std::span<const std::int64_t> rows, std::span<double> values) const override;
  std::unique_ptr<kernels::Seeding> seeding(std::int64_t trials) override;
  [[nodiscard]] kernels::AssignCounts counts() const override { return counts_; }

  [[nodiscard]] std::int64_t rows_in_all() const { return about_.begins.back(); }
  [[nodiscard]] std::int64_t cols() const { return about_.cols; }
  /// What the shards answer; read(shard, answer, first row, end) is called for each, in order.
  template <class Read>
  void asked(QuestionKind kind, const Read& read) const;
  /// `masses` [n] and `winners` [n] relative to rows [c, d].
  void masses(std::span<const double> candidates, std::span<double> masses, std::span<std::int32_t> winners) const;

 private:
  void add_parts(ByteReader& answer);

  const Context& ctx_;
  const AskShards& ask_;
  mutable Question about_;
  std::int64_t clusters_;  // the most that there are
  kernels::SumGrid grid_;
  std::vector<double> centres_;       // [k, d]
  std::vector<double> labelled_by_;   // those of the last assignment
  std::vector<Move> moves_;           // since then
  std::vector<std::int32_t> labels_;  // [n]; empty: there are none
  std::vector<std::int64_t> parts_;   // [k, cluster_size] of all shards, by the last assignment, without moves
  std::vector<std::int64_t> sizes_;   // [k]
  kernels::AssignCounts counts_;
};

/// Sends a question and looks at the number of its answers.
std::vector<std::vector<std::byte>> answers_of(const Context& ctx, const AskShards& ask, const Question& question);

}  // namespace vicinal::ops
