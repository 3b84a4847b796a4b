// k-means of shards that are asked against the reference, bit for bit (contract clause 12, shards): by shards that keep
// what they know, and by new ones for each question; and what they refuse.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data.hpp"
#include "kmeans_check.hpp"
#include "ranks.hpp"
#include "refused.hpp"
#include "shard_cases.hpp"
#include "vicinal/kmeans_shards.hpp"

namespace vicinal::contract {
namespace {

std::span<const double> part_of(std::span<const double> weights, std::int64_t begin, std::int64_t end) {
  if (weights.empty()) return {};
  return weights.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

/// The shards of a table; `forgetful`: each question is answered by a new object, and asked twice.
class Shards {
 public:
  Shards(const TableView& table, const KMeansOptions& options, std::vector<std::int64_t> cuts, bool forgetful)
      : table_(table), weights_(options.weights), cuts_(std::move(cuts)), forgetful_(forgetful) {
    for (std::size_t s = 0; s + 1 < cuts_.size(); ++s) rows_.push_back(cuts_[s + 1] - cuts_[s]);
    for (std::size_t s = 0; s < rows_.size(); ++s) contexts_.push_back(context_of_rank(static_cast<int>(s), 1));
    for (std::size_t s = 0; s < rows_.size(); ++s) kept_.push_back(made(s));
  }
  [[nodiscard]] const std::vector<std::int64_t>& rows() const { return rows_; }
  [[nodiscard]] std::vector<std::vector<std::byte>> answers(std::span<const std::byte> question) {
    ++questions;
    std::vector<std::vector<std::byte>> all;
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      if (forgetful_) {
        KMeansShard other = made(s);
        all.push_back(other.answer(question));
        EXPECT_TRUE(other.answer(question) == all.back() || questions_count_work(question)) << "asked twice";
      } else {
        all.push_back(kept_[s].answer(question));
      }
    }
    return all;
  }
  int questions = 0;

 private:
  /// Answers about labels begin with counters of work, which differ.
  [[nodiscard]] static bool questions_count_work(std::span<const std::byte> question) {
    std::int64_t kind = 0;
    std::memcpy(&kind, question.data() + 8, sizeof kind);
    return kind == 1;
  }
  [[nodiscard]] KMeansShard made(std::size_t s) const {
    return {contexts_[s], table_.slice(cuts_[s], cuts_[s + 1]), cuts_[s], part_of(weights_, cuts_[s], cuts_[s + 1])};
  }

  TableView table_;
  std::span<const double> weights_;
  std::vector<std::int64_t> cuts_;
  std::vector<std::int64_t> rows_;
  std::vector<Context> contexts_;
  std::vector<KMeansShard> kept_;
  bool forgetful_;
};

KMeans by_questions(const Context& ctx, const TableView& table, const KMeansOptions& options, Shards& shards) {
  return kmeans(
      ctx, shards.rows(), table.cols(), [&](std::span<const std::byte> question) { return shards.answers(question); },
      options);
}

void check_asked(const TableView& table, const KMeansOptions& options, const std::string& name, std::uint64_t turn) {
  const KMeans expected = reference::kmeans(table, options);
  for (const int count : {turn % 2 == 0 ? 1 : 2, turn % 2 == 0 ? 3 : 7}) {
    const std::string what = name + ", " + text(options) + ", shards " + std::to_string(count);
    Shards shards(table, options, uneven_cuts(table.rows(), count, turn), turn % 3 == 0);
    expect_same(by_questions(Context::cpu({.threads = 2}), table, options, shards), expected, what);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(KMeansAsked, TheSameBits) {
  constexpr std::int64_t n = ShardWeights::kRows;
  constexpr std::int64_t d = 5;
  const ShardWeights weights;
  std::uint64_t turn = 0;
  for (const Family family : {Family::gaussian, Family::duplicates, Family::clusters_1e6, Family::integer_ties,
                              Family::column_scales, Family::subnormal}) {
    const Rows rows = make_rows(family, {n, d, 1}, 8);
    const bool zeros = family == Family::integer_ties;  // rows that have no direction
    for (const KMeansInit init : {KMeansInit::parallel, KMeansInit::random, KMeansInit::first_k}) {
      for (const auto& weights_of : {std::vector<double>(), weights.all, weights.some_zero}) {
        ++turn;
        KMeansOptions options{.clusters = turn % 2 == 0 ? 4 : 13, .init = init, .weights = weights_of, .seed = turn};
        if (turn % 4 == 0 && !zeros) options.metric = Metric::cosine;
        options.runs = turn % 5 == 0 ? 2 : 1;
        options.history = turn % 7 == 0;
        options.tolerance = turn % 2 == 0 ? 1e-4 : 0;
        options.max_iterations = turn % 3 == 1 ? 3 : 300;
        const DType dtype = turn % 3 == 0 && family != Family::subnormal ? DType::float32 : DType::float64;
        const Stored stored(rows.table, d, dtype, static_cast<Layout>(turn % kLayouts));
        check_asked(stored.view(), options, std::string(name_of(family)) + " " + std::to_string(turn), turn);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(KMeansAsked, EmptyClusters) {
  check_empty_clusters({Family::clusters_1e2, Family::duplicates, Family::constant}, check_asked);
}

TEST(KMeansAsked, AnIterationIsOneQuestion) {
  const Rows rows = make_rows(Family::gaussian, {300, 4, 1}, 3);
  const TableView table(rows.table.data(), 300, 4);
  const KMeansOptions options = {.clusters = 5, .init = KMeansInit::first_k, .max_iterations = 7, .tolerance = 0};
  Shards shards(table, options, {0, 100, 300}, false);
  const KMeans found = by_questions(Context::cpu({.threads = 2}), table, options, shards);
  ASSERT_EQ(found.iterations, 7);
  // The ranges, the rows of the first centers, the labels by the last centers, and the inertia.
  EXPECT_EQ(shards.questions, 7 + 4);
}

TEST(KMeansAsked, Refusals) {
  const Context ctx = Context::cpu({.threads = 1});
  Rows rows = make_rows(Family::gaussian, {60, 3, 1}, 3);
  const TableView table(rows.table.data(), 60, 3);
  const KMeansOptions options = {.clusters = 4, .init = KMeansInit::first_k};
  Shards shards(table, options, {0, 25, 60}, false);
  const auto ask = [&](std::span<const std::byte> question) { return shards.answers(question); };
  const auto run = [&](const KMeansOptions& with) { kmeans(ctx, shards.rows(), 3, ask, with); };
  refused([&] { run({.clusters = 4}); }, ErrorCode::invalid_argument, "k-means++");
  refused([&] { run({.clusters = 4, .init = KMeansInit::random, .batch_size = 10}); }, ErrorCode::invalid_argument,
          "batch_size");
  refused([&] { run({.clusters = 61, .init = KMeansInit::random}); }, ErrorCode::invalid_argument, "only 60 rows");
  refused([&] { kmeans(ctx, {}, 3, ask, options); }, ErrorCode::invalid_argument, "shard_rows");
  refused([&] { kmeans(ctx, shards.rows(), 0, ask, options); }, ErrorCode::invalid_argument, "cols");
  refused([&] { kmeans(ctx, shards.rows(), 4, ask, options); }, ErrorCode::invalid_argument, "has 3 columns");
  refused(
      [&] {
        kmeans(ctx, std::vector<std::int64_t>{25, 36}, 3, ask, options);
      },
      ErrorCode::bad_data, "is about other rows");
  refused([&] { kmeans(ctx.with_memory_limit(1000), shards.rows(), 3, ask, options); }, ErrorCode::over_memory, "");
  rows.table[40 * 3 + 1] = std::numeric_limits<double>::quiet_NaN();
  Shards others(table, options, {0, 25, 60}, false);
  const auto ask_others = [&](std::span<const std::byte> question) { return others.answers(question); };
  refused([&] { kmeans(ctx, others.rows(), 3, ask_others, options); }, ErrorCode::bad_data, "row 40, column 1");
}

// Sums of values that are far apart take more than any plan knows before.
TEST(KMeansAsked, MemoryForSums) {
  const Context ctx = Context::cpu({.threads = 1});
  Rows rows = make_rows(Family::gaussian, {300, 2, 1}, 3);
  const TableView table(rows.table.data(), 300, 2);
  const KMeansOptions options = {.clusters = 100, .init = KMeansInit::first_k, .max_iterations = 1};
  const auto run = [&](const Context& with) {
    Shards shards(table, options, {0, 100, 300}, false);
    return by_questions(with, table, options, shards);
  };
  const std::uint64_t planned = run(ctx).plan.memory;
  EXPECT_EQ(run(ctx.with_memory_limit(planned)).plan.memory, planned);
  refused([&] { run(ctx.with_memory_limit(planned - 1)); }, ErrorCode::over_memory, "kmeans");
  rows.table[20] = 1e-200;
  rows.table[40] = 1e100;
  refused([&] { run(ctx.with_memory_limit(planned)); }, ErrorCode::over_memory, "values so far apart");
  const std::uint64_t needed = run(ctx).plan.memory;
  EXPECT_GT(needed, planned);
  EXPECT_EQ(run(ctx.with_memory_limit(needed)).plan.memory, needed);
}

TEST(KMeansAsked, ACancelEndsAfterTheQuestion) {
  const Rows rows = make_rows(Family::gaussian, {300, 4, 1}, 3);
  const TableView table(rows.table.data(), 300, 4);
  const KMeansOptions options = {.clusters = 5, .init = KMeansInit::first_k, .tolerance = 0};
  for (const int last : {1, 2, 5}) {
    const Context ctx = Context::cpu({.threads = 1});
    Shards shards(table, options, {0, 100, 300}, false);
    const auto ask = [&](std::span<const std::byte> question) {
      auto answers = shards.answers(question);
      if (shards.questions == last) ctx.cancel_token().cancel();
      return answers;
    };
    refused([&] { kmeans(ctx, shards.rows(), 4, ask, options); }, ErrorCode::cancelled, "");
    EXPECT_EQ(shards.questions, last);
  }
}

// Answers and questions that were cut, or are of something else, are errors and nothing worse.
TEST(KMeansAsked, DamagedBytes) {
  const Context ctx = Context::cpu({.threads = 1});
  const Rows rows = make_rows(Family::gaussian, {60, 3, 1}, 3);
  const TableView table(rows.table.data(), 60, 3);
  const KMeansOptions options = {.clusters = 4, .init = KMeansInit::parallel, .max_iterations = 3};
  Shards shards(table, options, {0, 25, 60}, false);
  std::vector<std::vector<std::byte>> questions;
  kmeans(
      ctx, shards.rows(), 3,
      [&](std::span<const std::byte> question) {
        questions.emplace_back(question.begin(), question.end());
        return shards.answers(question);
      },
      options);
  const auto passes_or_throws = [](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::bad_data || error.code() == ErrorCode::invalid_argument ||
                  error.code() == ErrorCode::over_memory)
          << error.what();
    }
  };
  for (const std::vector<std::byte>& question : questions) {
    for (std::size_t at = 0; at < question.size(); at += 5) {
      std::vector<std::byte> damaged = question;
      damaged[at] ^= std::byte{0x55};
      KMeansShard shard(ctx, table.slice(0, 25), 0);
      passes_or_throws([&] { static_cast<void>(shard.answer(damaged)); });
      refused([&] { static_cast<void>(shard.answer(std::span(question).first(at))); }, ErrorCode::bad_data, "question");
    }
  }
  for (int damaged_question = 0; damaged_question < static_cast<int>(questions.size()); ++damaged_question) {
    for (const std::size_t place : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233}) {
      int asked = 0;
      const auto damage = [&](std::span<const std::byte> question) {
        auto answers = shards.answers(question);
        if (asked++ == damaged_question) {
          std::vector<std::byte>& answer = answers[place % 2];
          if (place % 3 == 0) {
            answer.resize(answer.size() / 2);
          } else {
            answer[place % answer.size()] ^= std::byte{0x81};
          }
        }
        return answers;
      };
      passes_or_throws([&] { kmeans(ctx, shards.rows(), 3, damage, options); });
    }
  }
}

}  // namespace
}  // namespace vicinal::contract
