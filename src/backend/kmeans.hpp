// k-means and its seeding (contract clause 12): what a backend provides.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/cluster_parts.hpp"
#include "backend/memory_need.hpp"
#include "core/exact_sum.hpp"
#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::kernels {

/// Bytes on the host of screens, without which a job takes longer and has the same bits.
struct ScreenBytes {
  std::uint64_t draws = 0;   ///< of k-means++
  std::uint64_t labels = 0;  ///< of iterations with many centers

  [[nodiscard]] std::uint64_t all() const noexcept { return draws + labels; }
};

/// Rows to cluster, checked by the caller: weights are finite and above 0, 1 <= clusters < 2^24.
struct ClusterTask {
  TableView table;
  std::span<const double> weights;  ///< [n], or empty: 1 each
  std::int64_t clusters = 0;
  bool sums = true;            ///< false: labels, sizes and keys only; `means` and `move` are not asked
  std::int64_t first_row = 0;  ///< of a shard: what is added to the numbers of rows in sentences
  /// Bytes on the host of the whole job, as planned before the values are known; 0: it is not known.
  std::uint64_t planned = 0;
  /// Those of `planned` that are for screens. What the values need beyond the plan may take them.
  ScreenBytes screens = {};
};

/// What work the assignments were.
struct AssignCounts {
  std::int64_t rows = 0;
  std::int64_t skipped = 0;    ///< decided by bounds, without a look at the row
  std::int64_t rechecked = 0;  ///< decided by keys
};

/// What an assignment did, and the means after it.
struct LloydStep {
  std::int64_t changed = 0;  ///< labels; in the first assignment since `start` every one
  std::int64_t empty = 0;    ///< clusters without rows
  bool moved = false;        ///< the centers are the means
  double shift = 0;          ///< keys of the centers before and after, added in ascending order of the clusters
};

class Seeding;
inline constexpr std::int64_t kNoSeeding = -1;  ///< in the place of its trials

struct ClusterPlan {
  MemoryNeed bytes;
  std::int64_t part = 0;       ///< rows that a device has room for at a time; 0: all
  bool seeds_on_host = false;  ///< k-means++, as a device has no room for that
  /// More bytes on the host. Who plans the job counts them where they fit, in ClusterTask::screens.
  ScreenBytes screens = {};
};

/// The rows of a table under assignment to centers that move (contract clause 12): centers, labels, sums of the
/// clusters, and whatever a backend keeps between two iterations, wherever it keeps them.
class Lloyd {
 public:
  virtual ~Lloyd() = default;
  /// Forgets labels and sums, and takes centers [k, d]: finite and below 2^500, k at most the task's clusters.
  virtual void start(std::span<const double> centres) = 0;
  /// Labels every row.
  virtual LloydStep assign() = 0;
  /// Gives row `row`, which has a label, another one.
  virtual void move(std::int64_t row, std::int32_t cluster) = 0;
  /// Replaces the centers of clusters that have rows by their means. Returns the shift.
  virtual double means() = 0;
  /// Puts other centers in the place of those that there are. Labels and what is counted by them stay; keys are of the
  /// new centers.
  virtual void recentre(std::span<const double> centres) = 0;
  /// `assign`, and `means` unless `wait` and some cluster is empty.
  virtual LloydStep step(bool wait);
  virtual void centres(std::span<double> centres) const = 0;      ///< [k, d]
  virtual void sizes(std::span<std::int64_t> sizes) const = 0;    ///< [k] rows of each
  virtual void labels(std::span<std::int32_t> labels) const = 0;  ///< [n]
  virtual void keys(std::span<double> keys) = 0;                  ///< [n] of each row and its label's center
  virtual double inertia() = 0;
  /// Rows of the table, widened: [rows, d].
  virtual void rows(std::span<const std::int64_t> rows, std::span<double> values) const = 0;
  /// For first centers of the same table; `trials`: the most draws for one of k-means++, or 0 for k-means||. It must
  /// not outlive what it is made of.
  virtual std::unique_ptr<Seeding> seeding(std::int64_t trials) = 0;
  [[nodiscard]] virtual AssignCounts counts() const = 0;
  /// Bytes on the host beyond those of the plan: slices of sums of values that are far apart.
  [[nodiscard]] virtual std::uint64_t more_bytes() const { return 0; }
};

class ShardSeeding;

/// The rows of one shard of a table. What is merged with other shards is integers on a common grid.
class ShardLloyd : public Lloyd {
 public:
  /// The integers of the shard's clusters: [k, grid.cluster_size()].
  virtual void parts(std::span<std::int64_t> parts) const = 0;
  /// The exact sum of which `inertia` is rounded.
  virtual core::ExactSum exact_inertia() = 0;
  /// As `seeding`; the shard's first row is row `first` of those of all shards.
  virtual std::unique_ptr<ShardSeeding> shard_seeding(std::int64_t trials, std::int64_t first) = 0;
};

/// The masses of a shard's rows (contract clause 12, draws). It knows the sums of the tree of all masses as far as a
/// table would have them that begins at the last multiple of 32,768 rows at or before the shard's first row, and in
/// which the rows before the shard have no mass.
class ShardSeeding {
 public:
  virtual ~ShardSeeding() = default;
  /// k-means++: what each of these rows [m, d], m at most `trials`, would leave as a further center.
  virtual void attempt(std::span<const double> rows) = 0;
  /// Takes the row of an attempt as a center.
  virtual void take(std::int64_t attempt) = 0;
  /// k-means||: takes rows [m, d], at most the task's clusters, as centers, numbered on from those before.
  virtual void meet(std::span<const double> rows) = 0;
  /// Sums of masses, by core::MassTree of that table; as they are (kAsTheyAre), or as an attempt would leave them.
  [[nodiscard]] virtual std::span<const double> sums(std::int64_t attempt) const = 0;
  /// The mass of a row of that table.
  [[nodiscard]] virtual double mass(std::int64_t attempt, std::int64_t row) const = 0;
  /// The number of the center that each row of the shard is nearest to, [n]; of k-means||.
  virtual void winners(std::span<std::int32_t> winners) const = 0;

  static constexpr std::int64_t kAsTheyAre = -1;
  static constexpr std::int64_t kAligned = 32768;  ///< rows
};

/// Rows being drawn as first centers (contract clause 12). A table has one at a time.
class Seeding {
 public:
  virtual ~Seeding() = default;
  /// The rows that draws in [0, 1) stand for, all by the masses as they are.
  virtual void draw(std::span<const double> draws, std::span<std::int64_t> rows) = 0;
  /// k-means++: takes rows.size() centers one after the other, each the best of draws.size() / rows.size() draws.
  virtual void choose(std::span<const double> draws, std::span<std::int64_t> rows) = 0;
  /// k-means||: takes rows, at most the task's clusters, as centers, numbered on from those before. The iterations that
  /// this was made of are to be started anew.
  virtual void meet(std::span<const std::int64_t> rows) = 0;
  /// The sum of the masses.
  [[nodiscard]] virtual double total() const = 0;
  /// The number of the center that each row is nearest to, [n]; of k-means||.
  virtual void winners(std::span<std::int32_t> winners) const = 0;
};

class KMeansBackend {
 public:
  KMeansBackend() = default;
  KMeansBackend(const KMeansBackend&) = delete;
  KMeansBackend& operator=(const KMeansBackend&) = delete;
  virtual ~KMeansBackend() = default;

  /// The names of the screens that label rows, coarse to fine.
  virtual std::string screens(const ClusterTask& /*task*/) const { return "float32"; }
  /// What a shard's rows are like. Reads it once, and refuses what `lloyd` refuses. Throws `device_unavailable` by
  /// default: shards are clustered on the CPU.
  virtual TableRanges ranges(const Context& ctx, const ClusterTask& task) const;
  /// A shard whose rows `ranges` has read, with the ranges of all shards. Throws as `ranges`.
  virtual std::unique_ptr<ShardLloyd> shard(const Context& ctx, const ClusterTask& task,
                                            const TableRanges& whole) const;
  /// Reads the table once: refuses NaN, infinity and magnitudes of 2^500 and more by row and column.
  virtual std::unique_ptr<Lloyd> lloyd(const Context& ctx, const ClusterTask& task) const = 0;
  /// The most bytes that it and its seeding (or kNoSeeding) take beside each other; what depends on values (slices of
  /// sums) is taken as `planned_limbs` says. If it is more, `lloyd` and `shard` hold it against the limit, beside
  /// ClusterTask::planned, before they allocate it. Throws `over_memory` where a device has no room.
  virtual ClusterPlan plan(const Context& ctx, const ClusterTask& task, std::int64_t trials) const = 0;
};

}  // namespace vicinal::kernels
