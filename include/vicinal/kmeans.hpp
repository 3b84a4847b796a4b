// k-means: Lloyd's algorithm with labels by float64 distances, exact sums of rows, and the same bits on every machine
// (docs/contract.md, clause 12).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// How the first centers are chosen.
enum class KMeansInit : std::uint8_t {
  plus_plus,  ///< "k-means++", greedy: rows are drawn by weight times squared distance; the best of 2 + floor(ln k)
              ///< draws
  parallel,   ///< "k-means||": rounds of 2 k draws of the same kind; weighted k-means++ chooses among these rows
  random,     ///< rows drawn without replacement, each with the same chance
  first_k,    ///< "first-k": rows 0 to k - 1, as the classical tool does
  given,      ///< KMeansOptions::centres
};

/// When iterations end.
enum class KMeansRule : std::uint8_t {
  settled,   ///< no label changed, the centers moved by at most `tolerance`, or at most `changed_share` of the
             ///< labels changed
  classical  ///< the parallel k-means tools' rule: see KMeansOptions
};

enum class EmptyClusters : std::uint8_t {
  farthest,  ///< an empty cluster takes the row farthest from its center
  keep       ///< an empty cluster keeps its center
};

enum class KMeansStop : std::uint8_t { labels, shift, changed_share, max_iterations, no_improvement };

VICINAL_API std::string_view name_of(KMeansInit init) noexcept;
VICINAL_API std::string_view name_of(KMeansStop stop) noexcept;
/// The inverse of `name_of`; throws `invalid_argument` listing the valid names.
VICINAL_API KMeansInit kmeans_init_from(std::string_view name);

struct KMeansCheckpoint;

struct KMeansOptions {
  std::int64_t clusters = 8;  ///< 1 <= clusters <= rows with a weight, and below 2^24
  KMeansInit init = KMeansInit::plus_plus;
  TableView centres = {};             ///< [clusters, d] on the host, for KMeansInit::given
  Metric metric = Metric::euclidean;  ///< or cosine: spherical k-means, see `kmeans`
  /// [n] finite and at least 0; empty: all 1. Rows of weight 0 do not count; they get the label of the nearest
  /// returned center.
  std::span<const double> weights = {};
  std::int64_t runs = 1;  ///< number of runs, each with other draws; the smallest inertia wins, then the earlier run
  std::uint64_t seed = 0;
  std::int64_t max_iterations = 300;
  double tolerance = 1e-4;   ///< stop if the sum of the centers' squared shifts is at most this times the mean variance
  double changed_share = 0;  ///< stop if at most this fraction of the labels changed; 0: this test is off
  /// `classical`: stop if at most `changed_share` of the labels changed (the tools use 0.001) or after
  /// `max_iterations` (the tools use 501), but not because of the shift. The labels are those of the last
  /// assignment; the centers are the means computed after it.
  KMeansRule rule = KMeansRule::settled;
  EmptyClusters empty = EmptyClusters::farthest;
  /// Rows of a mini-batch; 0: iterations over all rows. Each iteration draws new rows, and centers move in
  /// proportion to the weight of these rows relative to all earlier rows. It ends if the smoothed inertia has not
  /// improved for 10 iterations; `tolerance` and `changed_share` are not used. All rows are labeled at the end.
  /// Needs KMeansRule::settled.
  std::int64_t batch_size = 0;
  bool history = false;  ///< return the inertia of each iteration, at the cost of one more pass over the data for each
  /// Called with the state of the run, on the thread that called `kmeans`: when first centers are chosen, and at the
  /// end of an iteration, once `checkpoint_seconds` have passed since the call began or the last checkpoint. What it
  /// receives is borrowed. It must not compute on the CUDA device of the call. If it throws, `kmeans` ends with this
  /// exception; of `std::bad_alloc` it makes `over_memory`. `kmeans` with a Communicator refuses it and `resume` with
  /// `invalid_argument`.
  std::function<void(const KMeansCheckpoint&)> checkpoint = {};
  double checkpoint_seconds = 30;  ///< at least 0; 0: after every iteration
  /// A state of an earlier call with the same table and options (but for these three), from which this call goes on:
  /// the result has the same bits as that of a call without interruption, except the counters in `stats`. Borrowed. A
  /// state of another shape or metric, or with another history, is refused; that the table, the weights, the seed and
  /// the rules are the same, nobody checks.
  const KMeansCheckpoint* resume = nullptr;
};

/// Counters of the work, which are the same for every thread count, and times.
struct KMeansStats {
  std::int64_t assigned = 0;   ///< rows that were assigned, summed over iterations and runs
  std::int64_t skipped = 0;    ///< of these, rows whose bounds show that their label cannot have changed
  std::int64_t rechecked = 0;  ///< of these, rows that float64 keys decided, because the screen did not
  double seed_seconds = 0;
  double iterate_seconds = 0;
};

struct KMeans {
  std::int64_t clusters = 0;
  std::int64_t cols = 0;
  Metric metric = Metric::euclidean;
  std::vector<double> centres;       ///< [clusters, cols]
  std::vector<std::int32_t> labels;  ///< [n]
  std::vector<std::int64_t> sizes;   ///< [clusters] rows with that label
  double inertia = 0;  ///< sum over the rows of weight times squared (or cosine) distance to the center of the label
  std::int64_t iterations = 0;  ///< iterations of the winning run
  KMeansStop stopped = KMeansStop::labels;
  std::vector<double>
      history;  ///< inertia of each iteration: of its rows and labels, to the centers that determined these labels
  Plan plan;
  KMeansStats stats;
};

/// What `kmeans` needs to go on from a moment between two iterations (KMeansOptions::checkpoint).
struct VICINAL_API KMeansCheckpoint {
  std::int64_t clusters = 0;
  Metric metric = Metric::euclidean;
  std::int64_t run = 0;         ///< number of the run
  std::int64_t iterations = 0;  ///< iterations of this run that have ended
  /// [clusters, cols]. If `iterations` is 0, the first centers; otherwise those at the beginning of the last iteration,
  /// which is repeated, because its labels are not kept. With mini-batches, the centers after the last iteration.
  std::vector<double> centres = {};
  std::vector<double> history = {};  ///< [iterations] if KMeansOptions::history
  std::vector<double> masses = {};   ///< mini-batches: [clusters] weight of the rows that each cluster has won
  double smoothed = 0;               ///< mini-batches: smoothed inertia
  double least = 0;                  ///< mini-batches: the least smoothed inertia; infinity before the first iteration
  std::int64_t without_improvement = 0;  ///< mini-batches: iterations since then
  /// The best of the runs before this one; clusters is 0 in the first run. Without labels of rows of weight 0.
  KMeans best = {};

  /// Writes the state to a file (safetensors layout), first under a temporary name. Computes on the CPU, whatever the
  /// context. Throws `io`, `cancelled`, `over_memory`, and `invalid_argument` or `bad_data` for arrays that do not fit
  /// together. Time O(k d + n); memory 16 k d + 8 n bytes, n only if there is a best run.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads a file of `save`. Throws `bad_data` for anything else, `io`, `over_memory`, `cancelled`. O(k d + n).
  static KMeansCheckpoint load(const Context& ctx, const std::filesystem::path& path);
};

/// Clusters the rows of a table [n, d] by Lloyd's algorithm. Labels are those of float64 distances, and all results
/// have the same bits for every thread count, instruction set and device. With Metric::cosine, rows and means are
/// scaled to length one (spherical k-means).
///
/// Time O(n k d) per iteration at most. Memory O(n + k d) per thread beyond the table, and a copy of the rows if the
/// metric is cosine or a weight is 0. Block sources are read again in every iteration, unless the device can hold the
/// whole table; a table that does not fit the device is treated the same way.
///
/// Throws `invalid_argument` for options outside their domain and a checkpoint that does not fit them, `bad_data`
/// naming row and column of NaN, infinity and values whose squared distances may overflow (with cosine also rows of
/// zeros), `over_memory` before work begins, `cancelled`. On a device `over_memory` also means that labels, weights and
/// a small part of the rows do not fit, or that the working arrays do not fit in addition to a table that is already in
/// device memory.
VICINAL_API KMeans kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options);

/// The plan of `kmeans` without running it: method, bytes of memory and the reason. Throws `invalid_argument` for
/// options outside their domain.
VICINAL_API Plan plan_kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options);

/// The cluster of each row of a table [m, d]: that of the nearest center, ties to the smaller cluster. O(m k d) time,
/// O(m + k d) memory. Throws `invalid_argument` for a table of another width or a model whose arrays do not fit
/// together, `bad_data` for NaN, infinity and values too large, `over_memory`, `cancelled`. The same bits for every
/// thread count, instruction set and device.
VICINAL_API std::vector<std::int32_t> predict(const Context& ctx, const KMeans& model, const TableView& table);
/// Distances [m, clusters] of each row of a table [m, d] to every center, by the model's metric. O(m k d) time, O(m k)
/// memory. Throws as `predict`.
VICINAL_API std::vector<double> transform(const Context& ctx, const KMeans& model, const TableView& table);
/// The distance of each row of a table [m, d] to the center of its label, by the model's metric: [m]. `labels` [m],
/// such as `model.labels` or those of `predict`, are in [0, clusters). O(m d) time, O(m) memory in addition to a copy
/// of the rows if the metric is cosine. Throws as `predict`, and `invalid_argument` for labels that are not as many as
/// the rows or are not clusters.
VICINAL_API std::vector<double> centre_distances(const Context& ctx, const KMeans& model, const TableView& table,
                                                 std::span<const std::int32_t> labels);
/// Minus the inertia of a table's rows [m, d]: the sum of `weights` [m] (empty: all 1) times the squared or cosine
/// distance to the nearest center. O(m k d) time, O(m + k d) memory. Throws as `predict`, and `invalid_argument` for
/// weights that are not as many as the rows.
VICINAL_API double score(const Context& ctx, const KMeans& model, const TableView& table,
                         std::span<const double> weights = {});

}  // namespace vicinal
