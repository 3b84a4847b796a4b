// The shards' side of k-means by questions (include/vicinal/kmeans_shards.hpp). What a shard keeps between two
// questions makes it fast and changes no answer: labels are a function of the centers alone.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/kmeans/iterate.hpp"
#include "ops/kmeans/question.hpp"
#include "vicinal/kmeans_shards.hpp"

namespace vicinal {
namespace {

using ops::ByteWriter;
using ops::Move;
using ops::Question;
using ops::QuestionKind;

bool same(const Move& a, const Move& b) {
  return a.row == b.row && a.cluster == b.cluster;
}

}  // namespace

struct KMeansShard::State {
  State(const Context& context, const TableView& shard, std::int64_t first_row, std::span<const double> given)
      : ctx(context), table(shard), weights(given), first(first_row) {
    check_table(ctx, table, "table");
    ops::check_weights(weights, table.rows(), first);
    if (first < 0) refuse("first_row: is " + std::to_string(first) + ", must be at least 0");
  }

  std::vector<std::byte> answer(const Question& question) {
    if (question.cols != table.cols()) {
      refuse("table: has " + std::to_string(table.cols()) + " columns, but the question is about " +
             std::to_string(question.cols));
    }
    if (question.weighted != !weights.empty()) refuse("weights: all shards have weights, or none has");
    prepare(question);
    ByteWriter to;
    if (question.kind == QuestionKind::ranges) {
      ops::write(to, own_ranges);
      return to.take();
    }
    locate(question);
    make_lloyd(question);
    switch (question.kind) {
      case QuestionKind::ranges:
        break;
      case QuestionKind::assign:
        assign(question, to);
        break;
      case QuestionKind::parts:
        label(question.labelled_by, question.moves);
        write_parts(to, question.clusters);
        break;
      case QuestionKind::keys: {
        label(question.labelled_by, question.moves);
        look_from(question.centres);
        std::vector<double> keys(static_cast<std::size_t>(kept()));
        if (lloyd) lloyd->keys(keys);
        to.array(keys);
        break;
      }
      case QuestionKind::inertia: {
        label(question.labelled_by, question.moves);
        look_from(question.centres);
        core::ExactSum::Limbs limbs = {};
        if (lloyd) limbs = lloyd->exact_inertia().limbs();
        to.array(std::span<const std::int64_t>(limbs));
        break;
      }
      case QuestionKind::rows:
        write_rows(question.rows, to);
        break;
      case QuestionKind::masses:
        write_masses(question, to);
        break;
      case QuestionKind::left_out:
        write_left_out(question, to);
        break;
    }
    return to.take();
  }

 private:
  [[nodiscard]] std::int64_t kept() const { return rows->table().rows(); }

  /// The rows that are clustered, and what they are like.
  void prepare(const Question& question) {
    if (rows && metric == question.metric && planned_clusters >= question.clusters) return;
    forget();
    rows.reset();
    KMeansOptions options;
    options.clusters = question.clusters;
    options.metric = question.metric;
    options.weights = weights;
    options.init = KMeansInit::parallel;
    const ops::ScreenedPlan screened = ops::plan_of_rows(ctx, table, options);
    core::require_memory(ctx, screened.plan.memory, "kmeans");
    planned = screened.plan.memory;
    screens = screened.screens;
    planned_clusters = question.clusters;
    metric = question.metric;
    rows.emplace(ctx, table, weights, metric, first);
    own_ranges = {};
    if (kept() > 0) own_ranges = backend().ranges(ctx, task());
    own_ranges.columns.resize(static_cast<std::size_t>(table.cols()));
    own_ranges.rows = kept();
  }

  /// Where the rows come among those of all shards.
  void locate(const Question& question) {
    const auto at = std::find(question.first_rows.begin(), question.first_rows.end(), first);
    if (at == question.first_rows.end()) refuse("question: is about shards that do not begin with this one's row");
    const auto shard = static_cast<std::size_t>(at - question.first_rows.begin());
    begin = question.begins[shard];
    if (question.begins[shard + 1] - begin != kept()) refuse("question: is about a shard of another number of rows");
  }

  [[nodiscard]] kernels::ClusterTask task() const {
    return {rows->table(), rows->weights(), planned_clusters, true, first, planned, screens};
  }
  [[nodiscard]] const kernels::KMeansBackend& backend() const { return kernels::backend_of(ctx).kmeans(); }

  void make_lloyd(const Question& question) {
    ByteWriter to;
    ops::write(to, question.ranges);
    std::vector<std::byte> asked = to.take();
    if (!grid_of.empty() && asked == grid_of) return;
    forget();
    grid = kernels::SumGrid(question.ranges, question.weighted);
    if (kept() > 0) lloyd = backend().shard(ctx, task(), question.ranges);
    grid_of = std::move(asked);
  }

  void forget() {
    seeding.reset();
    met.clear();
    lloyd.reset();
    grid_of.clear();
    unlabel();
  }
  void unlabel() {
    labelled_by.clear();
    moves.clear();
    looked_from.clear();
  }

  /// Labels by these centers, some of them then changed.
  void label(const std::vector<double>& centres, const std::vector<Move>& wanted) {
    if (!lloyd) return;
    const bool same_centres = labelled_by == centres;
    const bool goes_on =
        same_centres && moves.size() <= wanted.size() && std::equal(moves.begin(), moves.end(), wanted.begin(), same);
    if (!goes_on) {
      if (seeding) {
        seeding.reset();
        met.clear();
        unlabel();
      }
      const bool starts = labelled_by.size() != centres.size();
      unlabel();  // should what follows throw
      starts ? lloyd->start(centres) : lloyd->recentre(centres);
      lloyd->assign();
      labelled_by = centres;
      looked_from = centres;
    }
    while (moves.size() < wanted.size()) {
      const Move& next = wanted[moves.size()];
      if (next.row >= begin && next.row < begin + kept()) {
        lloyd->move(next.row - begin, static_cast<std::int32_t>(next.cluster));
      }
      moves.push_back(next);
    }
  }
  /// Measures from these centers, whatever labels there are.
  void look_from(const std::vector<double>& centres) {
    if (!lloyd || looked_from == centres) return;
    lloyd->recentre(centres);
    looked_from = centres;
  }

  void assign(const Question& question, ByteWriter& to) {
    const kernels::AssignCounts before = lloyd ? lloyd->counts() : kernels::AssignCounts{};
    label(question.centres, {});
    std::vector<std::int32_t> labels(static_cast<std::size_t>(kept()));
    kernels::AssignCounts after = before;
    if (lloyd) {
      lloyd->labels(labels);
      after = lloyd->counts();
    }
    to.number(after.rows - before.rows);
    to.number(after.skipped - before.skipped);
    to.number(after.rechecked - before.rechecked);
    write_parts(to, question.clusters);
    ops::write_labels(to, labels, question.clusters);
  }
  void write_parts(ByteWriter& to, std::int64_t clusters) {
    std::vector<std::int64_t> parts(static_cast<std::size_t>(clusters * grid.cluster_size()), 0);
    if (lloyd) lloyd->parts(parts);
    to.array(parts);
  }

  void write_rows(const std::vector<std::int64_t>& asked, ByteWriter& to) {
    std::vector<std::int64_t> own;
    for (const std::int64_t row : asked) {
      if (row >= begin && row < begin + kept()) own.push_back(row - begin);
    }
    std::vector<double> values(own.size() * static_cast<std::size_t>(table.cols()));
    if (lloyd && !own.empty()) lloyd->rows(own, values);
    to.array(values);
  }

  /// As k-means|| meets candidates, some at a time, at most as many as there are clusters.
  void write_masses(const Question& question, ByteWriter& to) {
    std::vector<double> masses(static_cast<std::size_t>(kept()));
    std::vector<std::int32_t> winners(static_cast<std::size_t>(kept()));
    if (lloyd) {
      const std::vector<double>& candidates = question.centres;
      const bool goes_on =
          seeding && met.size() <= candidates.size() && std::equal(met.begin(), met.end(), candidates.begin());
      if (!goes_on) {
        seeding.reset();
        met.clear();
        unlabel();
        seeding = lloyd->shard_seeding(0, 0);
      }
      const std::size_t most = static_cast<std::size_t>(question.clusters * table.cols());
      while (met.size() < candidates.size()) {
        const auto next =
            std::span(candidates).subspan(met.size()).first(std::min(most, candidates.size() - met.size()));
        seeding->meet(next);
        met.insert(met.end(), next.begin(), next.end());
      }
      for (std::size_t i = 0; i < masses.size(); ++i) {
        masses[i] = seeding->mass(kernels::ShardSeeding::kAsTheyAre, static_cast<std::int64_t>(i));
      }
      if (!met.empty()) seeding->winners(winners);
    }
    to.array(masses);
    to.array(winners);
  }

  void write_left_out(const Question& question, ByteWriter& to) {
    KMeans found;
    found.clusters = question.clusters;
    found.cols = table.cols();
    found.centres = question.centres;
    std::vector<std::int32_t> labels(rows->left_out().size());
    if (!labels.empty()) {
      found.labels.resize(static_cast<std::size_t>(kept()));
      static_cast<void>(ops::label_left_out(ctx, *rows, found));
      for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = found.labels[static_cast<std::size_t>(rows->left_out()[i])];
      }
    }
    ops::write_labels(to, labels, question.clusters);
  }

  const Context ctx;
  const TableView table;
  const std::span<const double> weights;
  const std::int64_t first;
  std::int64_t begin = 0;

  std::optional<ops::ClusteredRows> rows;
  Metric metric = Metric::euclidean;
  std::int64_t planned_clusters = 0;
  std::uint64_t planned = 0;
  kernels::ScreenBytes screens;
  kernels::TableRanges own_ranges;

  std::vector<std::byte> grid_of;  // the ranges of all shards
  kernels::SumGrid grid;
  std::unique_ptr<kernels::ShardLloyd> lloyd;  // null without rows that have a weight
  std::vector<double> labelled_by;             // empty: there are no labels
  std::vector<Move> moves;
  std::vector<double> looked_from;

  std::unique_ptr<kernels::ShardSeeding> seeding;  // behind what it is made of
  std::vector<double> met;
};

KMeansShard::KMeansShard(const Context& ctx, const TableView& shard, std::int64_t first_row,
                         std::span<const double> weights) try {
  const core::Entry entry;
  state_ = std::make_shared<State>(ctx, shard, first_row, weights);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::byte> KMeansShard::answer(std::span<const std::byte> question) try {
  const core::Entry entry;
  if (state_ == nullptr) refuse("KMeansShard: was moved from");
  return state_->answer(ops::question_of(question));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
