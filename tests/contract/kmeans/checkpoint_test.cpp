// kmeans goes on from any of its checkpoints with the bits of a call without interruption (contract clause 12), also
// after the state was in a file; a state that does not fit is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "contexts.hpp"
#include "core/philox.hpp"
#include "kmeans_check.hpp"
#include "refused.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::contract {
namespace {

constexpr std::int64_t kHeapRows = 400;
constexpr std::int64_t kHeapCols = 3;

/// Rows in twelve heaps; many have copies, so that clusters run empty.
std::vector<double> heaps() {
  std::vector<double> rows;
  for (std::int64_t i = 0; i < kHeapRows * kHeapCols; ++i) {
    const double x = core::philox_uniform(3, 1, static_cast<std::uint64_t>(i));
    const double centre =
        core::philox_uniform(3, 2, static_cast<std::uint64_t>(i / kHeapCols % 12 * kHeapCols + i % kHeapCols));
    rows.push_back(1 + 6 * centre + std::floor(8 * x) / 4);
  }
  return rows;
}

class KMeansCheckpoints : public ::testing::Test {
 protected:
  KMeansCheckpoints() { std::filesystem::create_directories(folder_); }
  ~KMeansCheckpoints() override { std::filesystem::remove_all(folder_); }

  std::vector<KMeansCheckpoint> states_of(const KMeansOptions& options) {
    std::vector<KMeansCheckpoint> states;
    KMeansOptions keeping = options;
    keeping.checkpoint_seconds = 0;
    keeping.checkpoint = [&, caller = std::this_thread::get_id()](const KMeansCheckpoint& state) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(state.metric, options.metric);
      states.push_back(state);
    };
    expect_same(kmeans(ctx_, table_, keeping), expected_, "with checkpoints");
    return states;
  }

  /// Goes on from up to nine of the states, the first ones among them, and from each again through a file,
  /// in contexts of other kinds than the states are from.
  void check(const KMeansOptions& options, const std::string& what, std::size_t min_states = 4) {
    expected_ = kmeans(ctx_, table_, options);
    const std::vector<KMeansCheckpoint> states = states_of(options);
    EXPECT_GE(states.size(), min_states) << what;
    for (std::size_t i = 0; i < states.size(); i += i < 2 ? 1 : 1 + states.size() / 8) {
      KMeansOptions resumed = options;
      const std::string where = what + ", state " + std::to_string(i) + ": run " + std::to_string(states[i].run) +
                                ", iteration " + std::to_string(states[i].iterations);
      resumed.resume = &states[i];
      expect_same(kmeans(contexts_[i % contexts_.size()], table_, resumed), expected_, where);
      states[i].save(ctx_, folder_ / "state");
      const KMeansCheckpoint read = KMeansCheckpoint::load(ctx_, folder_ / "state");
      resumed.resume = &read;
      std::size_t left = 0;
      resumed.checkpoint_seconds = 0;
      resumed.checkpoint = [&](const KMeansCheckpoint& state) {
        ++left;
        EXPECT_TRUE(state.run > read.run || state.iterations >= read.iterations) << where;
      };
      const Context& other = contexts_[(i + 1) % contexts_.size()];
      expect_same(kmeans(other, table_, resumed), expected_, where + ", from a file");
      EXPECT_LE(left, states.size() - i) << where;
      if (HasFailure()) return;
    }
  }

  const Context ctx_ = Context::cpu({.threads = 2});
  const std::vector<Context> contexts_ = contexts(1);
  const std::vector<double> rows_ = heaps();
  const TableView table_{rows_.data(), kHeapRows, kHeapCols};
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("vicinal_checkpoint_" + std::to_string(getpid()));
  KMeans expected_;
};

TEST_F(KMeansCheckpoints, GoOnWithTheSameBits) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < kHeapRows; ++i)
    weights.push_back(i % 7 == 0 ? 0 : 0.25 * static_cast<double>(i % 5 + 1));
  for (const KMeansInit init :
       {KMeansInit::plus_plus, KMeansInit::parallel, KMeansInit::random, KMeansInit::first_k, KMeansInit::given}) {
    for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
      for (const bool weighted : {false, true}) {
        KMeansOptions options{.clusters = 9, .init = init, .metric = metric, .runs = 2, .seed = 4, .tolerance = 0};
        if (init == KMeansInit::given) options.centres = table_.slice(0, 9);
        if (weighted) options.weights = weights;
        options.history = weighted;
        check(options, text(options), 3);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(KMeansCheckpoints, WithEveryRuleAndEmptyClusters) {
  std::vector<double> same;  // the last six centers are one, so that clusters run empty
  for (std::int64_t c = 0; c < 12; ++c) {
    for (std::int64_t j = 0; j < kHeapCols; ++j)
      same.push_back(rows_[static_cast<std::size_t>(std::min<std::int64_t>(c, 6) * kHeapCols + j)]);
  }
  for (const EmptyClusters empty : {EmptyClusters::farthest, EmptyClusters::keep}) {
    for (const KMeansRule rule : {KMeansRule::settled, KMeansRule::classical}) {
      KMeansOptions options{.clusters = 12, .init = KMeansInit::given, .tolerance = 0, .rule = rule, .empty = empty};
      options.centres = TableView(same.data(), 12, kHeapCols);
      check(options, text(options), 3);
      options.changed_share = 0.01;
      check(options, text(options) + ", share", 2);
      options.tolerance = rule == KMeansRule::settled ? 1e-2 : 0;
      options.changed_share = 0;
      check(options, text(options) + ", shift", 2);
      options.max_iterations = 3;  // the last state is that of the last iteration
      check(options, text(options) + ", few", 3);
    }
  }
}

TEST_F(KMeansCheckpoints, OfMiniBatches) {
  for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
    KMeansOptions options{
        .clusters = 7, .metric = metric, .runs = 2, .seed = 9, .max_iterations = 40, .batch_size = 32};
    options.history = metric == Metric::cosine;
    check(options, text(options) + ", batches", 20);
    std::vector<double> weights;
    for (std::int64_t i = 0; i < kHeapRows; ++i) weights.push_back(0.5 + static_cast<double>(i % 3));
    options.weights = weights;
    options.empty = EmptyClusters::keep;
    check(options, text(options) + ", weighted batches", 20);
  }
}

TEST_F(KMeansCheckpoints, AreGivenWhenTheirTimeHasCome) {
  KMeansOptions options{.clusters = 5, .tolerance = 0};
  int calls = 0;
  options.checkpoint = [&](const KMeansCheckpoint&) { ++calls; };
  options.checkpoint_seconds = 1e9;
  kmeans(ctx_, table_, options);
  EXPECT_EQ(calls, 0);
}

TEST_F(KMeansCheckpoints, WhatTheFunctionThrowsEndsTheCall) {
  KMeansOptions options{.clusters = 5};
  options.checkpoint_seconds = 0;
  options.checkpoint = [](const KMeansCheckpoint&) { throw Error(ErrorCode::io, "no space"); };
  refused([&] { kmeans(ctx_, table_, options); }, ErrorCode::io, "no space");
}

TEST_F(KMeansCheckpoints, ThatDoNotFitAreRefused) {
  KMeansOptions options{.clusters = 6, .runs = 3, .tolerance = 0, .history = true};
  expected_ = kmeans(ctx_, table_, options);
  const std::vector<KMeansCheckpoint> states = states_of(options);
  const KMeansCheckpoint good = states.back();
  ASSERT_EQ(good.run, 2);
  const auto refuses = [&](const std::function<void(KMeansCheckpoint&)>& change, const std::string& why,
                           ErrorCode code = ErrorCode::invalid_argument) {
    KMeansCheckpoint state = good;
    change(state);
    KMeansOptions resumed = options;
    resumed.resume = &state;
    refused([&] { kmeans(ctx_, table_, resumed); }, code, why);
  };
  refuses([](KMeansCheckpoint& s) { s.run = 3; }, "beyond runs");
  refuses([](KMeansCheckpoint& s) { s.run = -1; }, "below 0");
  refuses([](KMeansCheckpoint& s) { s.run = 0; }, "from its second run on");
  refuses(
      [](KMeansCheckpoint& s) {
        s.iterations = 301;
        s.history.resize(301);
      },
      "beyond runs or max_iterations");
  refuses([](KMeansCheckpoint& s) { s.history.pop_back(); }, "history");
  refuses([](KMeansCheckpoint& s) { s.history.clear(); }, "history");
  refuses([](KMeansCheckpoint& s) { s.centres.clear(); }, "centers do not fit");
  refuses([](KMeansCheckpoint& s) { s.centres[3] = NAN; }, "resume: centres: row 1, column 0 is not finite",
          ErrorCode::bad_data);
  refuses([](KMeansCheckpoint& s) { s.metric = s.best.metric = Metric::cosine; }, "resume: it is of another metric");
  refuses([](KMeansCheckpoint& s) { s.best.history.clear(); }, "iterations of its best run");
  refuses([](KMeansCheckpoint& s) { s.best.iterations = std::int64_t{1} << 62; }, "iterations of its best run");
  refuses([](KMeansCheckpoint& s) { s.best.inertia = INFINITY; }, "no result");
  {
    KMeansCheckpoint state = states.front();
    state.metric = Metric::cosine;  // of the first run, which has no best one before
    KMeansOptions resumed = options;
    resumed.resume = &state;
    refused([&] { kmeans(ctx_, table_, resumed); }, ErrorCode::invalid_argument, "resume: it is of another metric");
    state.masses = {-1};
    refused([&] { state.save(ctx_, folder_ / "state"); }, ErrorCode::invalid_argument, "checkpoint: its masses");
  }
  refuses([](KMeansCheckpoint& s) { s.masses.assign(6, 1); }, "masses");
  refuses([](KMeansCheckpoint& s) { s.best.labels[0] = 6; }, "not a cluster");
  refuses([](KMeansCheckpoint& s) { s.best.labels.pop_back(); }, "sizes of its best run");
  refuses([](KMeansCheckpoint& s) { s.best.clusters = 5; }, "other clusters");
  refuses([](KMeansCheckpoint& s) { s.best.inertia = NAN; }, "no result");
  refuses([](KMeansCheckpoint& s) { s.best.metric = Metric::cosine; }, "another metric");
  options.clusters = 5;
  refuses([](KMeansCheckpoint&) {}, "clusters x columns");
  options.clusters = 6;
  options.checkpoint_seconds = -1;
  refuses([](KMeansCheckpoint&) {}, "checkpoint_seconds");
}

TEST_F(KMeansCheckpoints, DamagedFilesAreRefused) {
  const KMeansOptions options{.clusters = 4, .runs = 2, .seed = 1};
  expected_ = kmeans(ctx_, table_, options);
  const std::filesystem::path path = folder_ / "state";
  states_of(options).back().save(ctx_, path);
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> damaged = {whole.substr(0, whole.size() - 1), whole.substr(0, 40), "", "id,x\n"};
  for (std::size_t at = 0; at < whole.size(); at += 97) {
    damaged.push_back(whole);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 4);
  }
  for (const std::string& bytes : damaged) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    refused([&] { KMeansCheckpoint::load(ctx_, path); }, ErrorCode::bad_data, "checkpoint file");
  }
  refused([&] { KMeansCheckpoint::load(ctx_, folder_ / "nothing"); }, ErrorCode::io, "nothing");
}

}  // namespace
}  // namespace vicinal::contract
