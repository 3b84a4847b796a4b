// k-means of shards against the reference and the single process, bit for bit (contract clause 12, shards): any number
// of ranks, cuts anywhere, ranks of different instruction sets; and how ranks fail together.
#include "vicinal/shards.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <limits>
#include <optional>
#include <stdexcept>

#include "data.hpp"
#include "kmeans_check.hpp"
#include "ranks.hpp"
#include "shard_cases.hpp"

namespace vicinal::contract {
namespace {

/// What all ranks returned as one result; they must agree on all but the labels.
KMeans joined(const std::vector<KMeans>& parts, const std::string& what) {
  KMeans all = parts.front();
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    KMeans other = parts[rank];
    all.labels.insert(all.labels.end(), other.labels.begin(), other.labels.end());
    other.labels = parts.front().labels;
    expect_same(other, parts.front(), what + ": rank " + std::to_string(rank) + " against 0");
    EXPECT_EQ(other.stats.assigned, parts.front().stats.assigned) << what;
  }
  return all;
}

KMeans by_ranks(const TableView& table, const KMeansOptions& options, const std::vector<std::int64_t>& cuts,
                std::uint64_t turn, const std::string& what) {
  std::vector<KMeans> parts(cuts.size() - 1);
  const auto thrown = run_ranks(static_cast<int>(parts.size()), [&](Communicator& own) {
    const auto rank = static_cast<std::size_t>(own.rank());
    KMeansOptions mine = options;
    if (!options.weights.empty()) {
      mine.weights = options.weights.subspan(static_cast<std::size_t>(cuts[rank]),
                                             static_cast<std::size_t>(cuts[rank + 1] - cuts[rank]));
    }
    parts[rank] =
        kmeans(context_of_rank(own.rank(), turn), own, table.slice(cuts[rank], cuts[rank + 1]), cuts[rank], mine);
  });
  expect_no_error(thrown, what);
  return joined(parts, what);
}

void check_shards(const TableView& table, const KMeansOptions& options, const std::string& name, std::uint64_t turn) {
  const KMeans expected = reference::kmeans(table, options);
  // The even and the odd numbers in turns, which are not those of the options.
  for (const int ranks : std::popcount(turn) % 2 == 0 ? std::vector<int>{2, 4} : std::vector<int>{1, 3, 7}) {
    const std::string what = name + ", " + text(options) + ", ranks " + std::to_string(ranks);
    expect_same(by_ranks(table, options, uneven_cuts(table.rows(), ranks, turn), turn, what), expected, what);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(KMeansShards, TheSameBits) {
  constexpr std::int64_t n = ShardWeights::kRows;
  constexpr std::int64_t d = 5;
  const ShardWeights weights;
  std::uint64_t turn = 0;
  for (const Family family : {Family::gaussian, Family::duplicates, Family::clusters_1e6, Family::integer_ties,
                              Family::column_scales, Family::subnormal}) {
    const Rows rows = make_rows(family, {n, d, 1}, 8);
    const bool zeros = family == Family::integer_ties;  // rows that have no direction
    for (const KMeansInit init :
         {KMeansInit::plus_plus, KMeansInit::parallel, KMeansInit::random, KMeansInit::first_k}) {
      for (const auto& weights_of : {std::vector<double>(), weights.all, weights.some_zero}) {
        ++turn;
        if (is_left_out(turn)) continue;
        KMeansOptions options{.clusters = turn % 2 == 0 ? 4 : 13, .init = init, .weights = weights_of, .seed = turn};
        if (turn % 3 == 0 && !zeros) options.metric = Metric::cosine;
        options.runs = turn % 4 == 0 ? 2 : 1;
        options.history = turn % 5 == 0;
        options.tolerance = turn % 2 == 0 ? 1e-4 : 0;
        options.max_iterations = turn % 3 == 1 ? 3 : 300;
        const DType dtype = turn % 3 == 0 && family != Family::subnormal ? DType::float32 : DType::float64;
        const Stored stored(rows.table, d, dtype, static_cast<Layout>(turn % kLayouts));
        check_shards(stored.view(), options, std::string(name_of(family)) + " " + std::to_string(turn), turn);
        if (HasFailure()) return;
      }
    }
  }
}

// Centers so far away that clusters are empty, whose rows come from any rank: of equal keys the first row of all.
TEST(KMeansShards, EmptyClusters) {
  check_empty_clusters({Family::clusters_1e2, Family::duplicates, Family::grid, Family::constant}, check_shards);
}

// Trees of masses of one to four levels, cut next to and between the multiples of their parts.
TEST(KMeansShards, DrawsFromMassesOfManyRanks) {
  struct Cut {
    std::int64_t n;
    std::vector<std::int64_t> cuts;
  };
  const std::vector<Cut> all = {
      {31, {0, 1, 30, 31}},
      {40, {0, 31, 32, 33, 40}},
      {1024, {0, 1, 1023, 1024}},
      {3000, {0, 1000, 1024, 1030, 2049, 3000}},
      {32768, {0, 32767, 32768}},
      {70001, {0, 5, 40, 31000, 32769, 65536, 65540, 70001}},
      {100000, {0, 32768, 65536, 100000}},
      {100010, {0, 98304, 98310, 98311, 100010}},
  };
  std::uint64_t turn = 0;
  for (const auto& [n, cuts] : all) {
    const Rows rows = make_rows(Family::gaussian, {n, 2, 1}, static_cast<std::uint64_t>(n));
    std::vector<double> weights;
    for (std::int64_t i = 0; i < n; ++i) weights.push_back(0.1 * static_cast<double>(i % 7));
    for (const KMeansInit init : {KMeansInit::plus_plus, KMeansInit::parallel}) {
      for (const bool weighted : {false, true}) {
        for (const Layout layout : {Layout::contiguous, Layout::blocks}) {
          ++turn;
          if (is_left_out(turn) || (layout == Layout::blocks && weighted)) continue;
          KMeansOptions options{.clusters = 9, .init = init, .seed = turn, .max_iterations = 2};
          if (weighted) options.weights = weights;
          const Stored stored(rows.table, 2, DType::float64, layout);
          const std::string what = std::to_string(n) + " rows, " + text(options);
          const KMeans expected = kmeans(Context::cpu({.threads = 2}), stored.view(), options);
          expect_same(by_ranks(stored.view(), options, cuts, turn, what), expected, what);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Rows that the int8 screen of the CPU judges, counted from the first multiple of 1,024 at or before a shard.
TEST(KMeansShards, ScreenedDrawsOfManyRanks) {
  const std::int64_t n = 4300;
  const Rows rows = make_rows(Family::gaussian, {n, 30, 1}, 8);
  for (const DType dtype : {DType::float32, DType::float16}) {
    const Stored stored(rows.table, 30, dtype);
    KMeansOptions options{.clusters = 60, .seed = 3, .max_iterations = 1};
    const std::string what = "screened, " + std::string(name_of(dtype));
    const KMeans expected = kmeans(Context::cpu({.threads = 2}), stored.view(), options);
    for (const std::vector<std::int64_t>& cuts :
         {std::vector<std::int64_t>{0, 1, 1030, 2049, 3001, n}, std::vector<std::int64_t>{0, 2048, n}}) {
      expect_same(by_ranks(stored.view(), options, cuts, 1, what), expected, what);
    }
  }
}

// A shard that is read in parts, which divide groups of 32 rows, as it does not begin at a multiple of 32.
TEST(KMeansShards, DrawsFromASourceThatComesInParts) {
  if (kSparse > 1) GTEST_SKIP() << "a large table";
  constexpr std::int64_t n = 9000;
  constexpr std::int64_t d = 1024;
  const Rows rows = make_rows(Family::gaussian, {n, d, 1}, 12);
  const TableView whole(rows.table.data(), n, d);
  std::atomic<int> reads = 0;
  const TableView source = TableView::blocks(DType::float64, n, d, [&](std::int64_t begin, std::int64_t end, void* to) {
    ++reads;
    std::copy(rows.table.begin() + begin * d, rows.table.begin() + end * d, static_cast<double*>(to));
  });
  const KMeansOptions options{.clusters = 5, .seed = 3, .max_iterations = 1};
  const KMeans expected = kmeans(Context::cpu({.threads = 2}), whole, options);
  const KMeans got = by_ranks(source, options, {0, 17, n}, 1, "in parts");
  EXPECT_GT(reads, 3 * 5);  // three parts, each read for every center
  expect_same(got, expected, "in parts");
}

// Every cut of few rows in two, and many random cuts of more.
TEST(KMeansShards, EveryCut) {
  const Rows rows = make_rows(Family::duplicates, {70, 3, 1}, 3);
  const TableView table(rows.table.data(), 70, 3);
  for (const KMeansInit init : {KMeansInit::plus_plus, KMeansInit::parallel}) {
    const KMeansOptions options{.clusters = 6, .init = init, .seed = 4};
    const KMeans expected = reference::kmeans(table, options);
    for (std::int64_t cut = 1; cut < 70; cut += sanitized(1, 9)) {
      const std::string what = text(options) + " cut at " + std::to_string(cut);
      expect_same(by_ranks(table, options, {0, cut, 70}, 1, what), expected, what);
      if (HasFailure()) return;
    }
  }
}

// The formula of docs/ranks.md.
TEST(KMeansShards, SendAsManyBytesAsTheDocsSay) {
  constexpr std::int64_t n = 300;
  const Rows rows = make_rows(Family::integer_ties, {n, 6, 1}, 5);
  const TableView table(rows.table.data(), n, 6);
  const std::vector<double> weights(n, 1.5);
  for (const bool weighted : {false, true}) {
    for (const std::int64_t iterations : {1, 2}) {
      KMeansOptions options{.clusters = 5, .init = KMeansInit::first_k, .max_iterations = iterations, .tolerance = 0};
      options.empty = EmptyClusters::keep;
      std::vector<std::uint64_t> sent(3);
      std::vector<KMeans> found(3);
      const std::vector<std::int64_t> cuts = {0, 40, 170, n};
      expect_no_error(run_ranks(3,
                                [&](Communicator& own) {
                                  const auto rank = static_cast<std::size_t>(own.rank());
                                  KMeansOptions mine = options;
                                  const std::int64_t size = cuts[rank + 1] - cuts[rank];
                                  if (weighted) mine.weights = std::span(weights).first(static_cast<std::size_t>(size));
                                  found[rank] = kmeans(context_of_rank(own.rank(), 0), own,
                                                       table.slice(cuts[rank], cuts[rank + 1]), cuts[rank], mine);
                                  sent[rank] = own.bytes_sent();
                                }),
                      "bytes");
      ASSERT_EQ(found[0].stopped, KMeansStop::max_iterations);
      const std::uint64_t k = 5;
      const std::uint64_t d = 6;
      const std::uint64_t l = weighted ? 3 : 2;  // whole numbers from 0 to 3, times 1.5 of 53 bits
      const std::uint64_t w = weighted ? 5 : 0;  // 1.5 of 53 bits, up to 2^63 rows: 117 bits across limbs of 32
      const std::uint64_t vote = 8;
      const std::uint64_t before = 14 * 8 + 3 * 8 + 8 * (3 * d + 2) + 3 * vote;
      const std::uint64_t start = 8 * k * d + 2 * vote;
      const std::uint64_t assign = 8 * (k + 1) + vote;
      const std::uint64_t means = 8 * k * (1 + w + d * l) + 2 * vote;
      const std::uint64_t end = assign + 8 * k + 560 + vote + 24 + 8 * k + vote;
      const auto times = static_cast<std::uint64_t>(iterations);
      for (const std::uint64_t bytes : sent) EXPECT_EQ(bytes, before + start + times * (assign + means) + end);
    }
  }
}

/// Rows of three ranks, and how they are clustered.
struct ThreeShards {
  static constexpr std::int64_t kRows = 90;
  std::vector<std::int64_t> cuts = {0, 20, 55, kRows};
  Rows rows = make_rows(Family::gaussian, {kRows, 3, 1}, 6);
  KMeansOptions options{.clusters = 4, .seed = 2};

  [[nodiscard]] TableView shard(const std::vector<double>& values, int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return TableView(values.data() + cuts[r] * 3, cuts[r + 1] - cuts[r], 3);
  }
  /// Each rank runs kmeans with what `change` makes of its arguments.
  struct Call {
    Context ctx = Context::cpu({.threads = 2});
    TableView shard;
    std::int64_t first_row = 0;
    KMeansOptions options;
  };
  [[nodiscard]] std::vector<Thrown> run(const std::function<void(int rank, Call& call)>& change) const {
    return run_ranks(3, [&](Communicator& own) {
      Call call;
      call.shard = shard(rows.table, own.rank());
      call.first_row = cuts[static_cast<std::size_t>(own.rank())];
      call.options = options;
      change(own.rank(), call);
      (void)kmeans(call.ctx, own, call.shard, call.first_row, call.options);
    });
  }
};

TEST(KMeansShards, FailTogether) {
  const ThreeShards three;
  const auto bad = ErrorCode::invalid_argument;
  using Call = ThreeShards::Call;
  for (int failing = 0; failing < 3; ++failing) {
    const std::string rank = "rank " + std::to_string(failing) + ": ";
    const auto at = [&](const std::function<void(Call&)>& change) {
      return three.run([&](int r, Call& call) {
        if (r == failing) change(call);
      });
    };
    // Data: the rows of the whole table are named.
    const std::int64_t row = three.cuts[static_cast<std::size_t>(failing)] + 7;
    std::vector<double> broken = three.rows.table;
    broken[static_cast<std::size_t>(row * 3 + 1)] = std::numeric_limits<double>::quiet_NaN();
    expect_same_error(at([&](Call& call) { call.shard = three.shard(broken, failing); }), ErrorCode::bad_data,
                      rank + "table: row " + std::to_string(row) + ", column 1 is not a finite number");
    std::fill_n(broken.begin() + row * 3, 3, 0.0);
    expect_same_error(three.run([&](int r, Call& call) {
      call.options.metric = Metric::cosine;
      if (r == failing) call.shard = three.shard(broken, r);
    }),
                      ErrorCode::bad_data, rank + "table: row " + std::to_string(row) + " is all zeros");
    expect_same_error(three.run([&](int r, Call& call) {
      static const std::vector<double> ones(ThreeShards::kRows, 1);
      static const std::vector<double> below(ThreeShards::kRows, -1);
      call.options.weights = std::span(r == failing ? below : ones).first(static_cast<std::size_t>(call.shard.rows()));
    }),
                      bad, rank + "weights: that of row " + std::to_string(row - 7));
    // Memory, a cancel, and a source that fails, early or late.
    expect_same_error(at([](Call& call) { call.ctx = call.ctx.with_memory_limit(1000); }), ErrorCode::over_memory,
                      rank + "kmeans");
    expect_same_error(at([](Call& call) {
                        const CancelToken token;
                        token.cancel();
                        call.ctx = Context::cpu({.threads = 1, .cancel = token});
                      }),
                      ErrorCode::cancelled, rank);
    for (const int reads : {0, 1, 3, 5, 8, 10}) {
      std::atomic<int> left = reads;
      const TableView whole = three.shard(three.rows.table, failing);
      const auto fill = [&](std::int64_t begin, std::int64_t end, void* to) {
        if (left-- == 0) throw std::runtime_error("the source has run dry");
        const auto* const from = static_cast<const double*>(whole.data());
        std::copy(from + begin * 3, from + end * 3, static_cast<double*>(to));
      };
      expect_same_error(at([&](Call& call) { call.shard = TableView::blocks(DType::float64, whole.rows(), 3, fill); }),
                        ErrorCode::io, rank + "the source has run dry");
    }
    // A cancel on the way, by the progress of the rank itself.
    expect_same_error(at([](Call& call) {
                        const CancelToken token;
                        const auto progress = [token](std::string_view stage, double /*fraction*/) {
                          if (stage == "iterate") token.cancel();
                        };
                        call.ctx = Context::cpu({.threads = 1, .progress = progress, .cancel = token});
                      }),
                      ErrorCode::cancelled, rank);
    expect_same_error(
        at([](Call& call) {
          call.ctx = Context::cpu({.threads = 1, .progress = [](std::string_view /*stage*/, double /*fraction*/) {
                                     throw std::runtime_error("no more progress");
                                   }});
        }),
        ErrorCode::io, rank + "no more progress");
    if (failing == 0) continue;
    expect_same_error(at([](Call& call) { call.options.clusters = 5; }), bad,
                      "clusters: is not the same on ranks 0 and " + std::to_string(failing));
    expect_same_error(
        at([](Call& call) { ++call.first_row; }), bad,
        "first_row: is " + std::to_string(three.cuts[static_cast<std::size_t>(failing)] + 1) + " on rank");
    std::vector<double> centres(three.rows.table.begin(), three.rows.table.begin() + 12);
    std::vector<double> others = centres;
    others.back() += 1;
    expect_same_error(three.run([&](int r, Call& call) {
      call.options.init = KMeansInit::given;
      call.options.centres = TableView(r == failing ? others.data() : centres.data(), 4, 3);
    }),
                      bad, rank + "centres: are not those of rank 0");
  }
  expect_same_error(three.run([](int, Call& call) { call.options.batch_size = 8; }), bad,
                    "rank 0: batch_size: mini-batches are drawn from a table that is whole");
  const KMeansCheckpoint state;
  expect_same_error(three.run([](int, Call& call) { call.options.checkpoint = [](const KMeansCheckpoint&) {}; }), bad,
                    "rank 0: checkpoint: there is none for a table in shards");
  expect_same_error(three.run([&](int, Call& call) { call.options.resume = &state; }), bad,
                    "rank 0: resume: there is no checkpoint of a table in shards");
  expect_same_error(three.run([](int, Call& call) { call.options.clusters = 91; }), bad,
                    "clusters: is 91, but the table has only 90 rows");
  const std::vector<double> zeros(ThreeShards::kRows, 0);
  expect_same_error(three.run([&](int, Call& call) {
    call.options.weights = std::span(zeros).first(static_cast<std::size_t>(call.shard.rows()));
  }),
                    bad, "weights: all are 0");
  const std::vector<double> large(ThreeShards::kRows, 1e307);
  expect_same_error(three.run([&](int r, Call& call) {
    static const std::vector<double> ones(ThreeShards::kRows, 1);
    call.options.weights = std::span(r == 1 ? large : ones).first(static_cast<std::size_t>(call.shard.rows()));
  }),
                    ErrorCode::bad_data, "weights: so large that weighted sums may overflow");
  if (cuda_missing().empty()) {
    expect_same_error(three.run([](int r, Call& call) {
      if (r == 1) call.ctx = cuda_context();
    }),
                      ErrorCode::device_unavailable, "rank 1: kmeans: shards of a table are clustered on the CPU");
  }
  // All ranks fail outside a phase, each with an error of its own: one of them stands.
  const auto ended = three.run([](int r, Call& call) {
    call.ctx = Context::cpu({.threads = 1, .progress = [r](std::string_view /*stage*/, double /*fraction*/) {
                               throw Error(r == 1 ? ErrorCode::io : ErrorCode::bad_data, "no more progress");
                             }});
  });
  expect_same_error(ended, ended.front().code, ": no more progress");
  // A rank that does not take part at all.
  const auto thrown = run_ranks(3, [&](Communicator& own) {
    if (own.rank() == 1) throw Error(ErrorCode::io, "communicator: rank 1 has left");
    (void)kmeans(Context::cpu({.threads = 1}), own, three.shard(three.rows.table, own.rank()),
                 three.cuts[static_cast<std::size_t>(own.rank())], three.options);
  });
  expect_same_error(thrown, ErrorCode::io, "communicator: rank 1 has left");
}

// After an error of the data the group is as before.
TEST(KMeansShards, GoOnAfterAnError) {
  const ThreeShards three;
  std::vector<double> broken = three.rows.table;
  broken[100] = std::numeric_limits<double>::infinity();
  std::vector<KMeans> parts(3);
  expect_no_error(
      run_ranks(3,
                [&](Communicator& own) {
                  const auto rank = static_cast<std::size_t>(own.rank());
                  const Context ctx = context_of_rank(own.rank(), 1);
                  EXPECT_THROW((void)kmeans(ctx, own, three.shard(broken, own.rank()), three.cuts[rank], three.options),
                               Error);
                  parts[rank] =
                      kmeans(ctx, own, three.shard(three.rows.table, own.rank()), three.cuts[rank], three.options);
                }),
      "again");
  expect_same(joined(parts, "again"),
              reference::kmeans(TableView(three.rows.table.data(), ThreeShards::kRows, 3), three.options), "again");
}

}  // namespace
}  // namespace vicinal::contract
