// Searches: what an index keeps of its table, a checked search and its result, and what a backend provides for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/memory_need.hpp"
#include "core/distance.hpp"
#include "core/infinity.hpp"
#include "formulas/nearest/method_kind.hpp"
#include "vicinal/context.hpp"
#include "vicinal/device.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::kernels {

/// What of a kd-tree does not follow from the table, and is all that a file keeps of it.
struct TreeShape {
  std::vector<std::int64_t> order;       ///< distinct rows in the order of the leaves, each once
  std::vector<std::int64_t> leaf_sizes;  ///< in the same order; at least 1 each
  std::vector<std::int64_t> nodes;       ///< in preorder: 0 for a leaf, else the number of children (1 to 8)
};

struct Prepared;

/// Stands for the CPU where devices are told apart by their numbers.
inline constexpr int kHost = -1;

/// A kd-tree of a table, in a form of the backend's own.
class Tree {
 public:
  virtual ~Tree() = default;
  /// What a file keeps of it, fetched where it lies on a device. `index` is the one it was made for; what it gives may
  /// borrow from the tree.
  [[nodiscard]] virtual std::shared_ptr<const TreeShape> shape_of(const Context& ctx, const Prepared& index) const = 0;
};

/// The places of trees in an index, one for the CPU and one a device: each filled at most once, by the first search
/// that needs it, while others wait. A copy starts empty: its table may be another one.
class TreeSlot {
 public:
  TreeSlot() = default;
  TreeSlot(const TreeSlot& /*other*/) {}
  TreeSlot(TreeSlot&& other) noexcept : trees_(std::move(other.trees_)) {}
  TreeSlot& operator=(const TreeSlot&) = delete;

  /// The tree that searches there use, or null.
  [[nodiscard]] std::shared_ptr<const Tree> get(int device = kHost) const;
  /// The CPU's tree, or else that of some device; or null.
  [[nodiscard]] std::shared_ptr<const Tree> any() const;
  /// The tree, made by `make` if there is none; waiting is cancellable.
  std::shared_ptr<const Tree> get_or_make(const Context& ctx, const std::function<std::shared_ptr<const Tree>()>& make,
                                          int device = kHost) const;
  /// Keeps a tree that was made elsewhere, unless there is one.
  void keep(std::shared_ptr<const Tree> tree, int device) const;

 private:
  mutable std::mutex making_;  // held while a tree is made
  mutable std::mutex mutex_;   // guards the pointers
  mutable std::vector<std::pair<int, std::shared_ptr<const Tree>>> trees_;
};

/// How far away the k-th neighbors of some rows of a table are: keys, ascending, from which Method::direct_filter takes
/// its first thresholds. Any keys are sound.
struct KDistances {
  Metric metric = Metric::euclidean;
  double p = 2;
  std::int64_t k = 0;
  std::vector<double> keys;
};

/// Their place in an index: those of the last k and metric asked for. A copy starts empty.
class KDistanceSlot {
 public:
  KDistanceSlot() = default;
  KDistanceSlot(const KDistanceSlot& /*other*/) {}
  KDistanceSlot(KDistanceSlot&& other) noexcept : distances_(std::move(other.distances_)) {}
  KDistanceSlot& operator=(const KDistanceSlot&) = delete;

  /// What is there, whatever it was made for; or null.
  [[nodiscard]] std::shared_ptr<const KDistances> get() const;
  /// Those of a metric, its exponent and k, made by `make` unless they are there. Two threads may both make them.
  std::shared_ptr<const KDistances> get_or_make(Metric metric, double p, std::int64_t k,
                                                const std::function<std::vector<double>()>& make) const;

 private:
  mutable std::mutex mutex_;  // guards the pointer
  mutable std::shared_ptr<const KDistances> distances_;
};

/// The place in an index for what devices hold of its table, in forms of their backends' own: one entry a device. A
/// copy starts empty: its table may be another one.
class DeviceSlot {
 public:
  DeviceSlot() = default;
  DeviceSlot(const DeviceSlot& /*other*/) {}
  DeviceSlot(DeviceSlot&& other) noexcept : entries_(std::move(other.entries_)) {}
  DeviceSlot& operator=(const DeviceSlot&) = delete;

  /// What the device of that number holds, or null.
  [[nodiscard]] std::shared_ptr<void> get(int device) const;
  /// Replaces what the device held.
  void put(int device, std::shared_ptr<void> held) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<int, std::shared_ptr<void>>> entries_;
};

/// What packed rows are made from and for. `metric` is one of euclidean (for sqeuclidean, too), cosine and
/// inner_product; `lanes`: rows of a panel. `pruned`: not the rows, but their images in fewer columns, which bound
/// distances from below (IndexOptions::pruned).
struct PackedKind {
  Metric metric = Metric::euclidean;
  ScreenType screen = ScreenType::int8;
  int lanes = 0;
  bool pruned = false;

  friend bool operator==(const PackedKind&, const PackedKind&) = default;
};

/// The rows of an index packed for one screen, in a form of the backend's own. Blocks of rows are packed one by one, by
/// the first search that needs them.
class PackedTable {
 public:
  explicit PackedTable(PackedKind kind) : kind_(kind) {}
  PackedTable(const PackedTable&) = delete;
  PackedTable& operator=(const PackedTable&) = delete;
  virtual ~PackedTable() = default;

  [[nodiscard]] const PackedKind& kind() const noexcept { return kind_; }
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  /// Whether every row is packed.
  [[nodiscard]] virtual bool is_complete() const = 0;

 private:
  PackedKind kind_;
};

/// What a sample of an index's rows says of pruned rows, for the searches of one metric (that of a PackedKind).
struct Pruning {
  Metric metric = Metric::euclidean;
  std::int64_t columns = 0;            ///< of a row's image; 0: none are worth it
  std::int64_t finer_columns = 0;      ///< of a finer image, for rows that the first one leaves; 0: there are none
  double share = 1;                    ///< of the rows that a query ranks, about
  double finer_share = 0;              ///< of the rows whose finer images it reads
  double share_without = 1;            ///< the same by the int8 screen of all columns
  std::uint64_t bytes = 0;             ///< that `screen` holds
  std::shared_ptr<const void> screen;  ///< in a form of the backend's own
};

/// The packed rows that an index keeps. Searches share them; what is dropped goes when the last search lets go of it.
/// A copy starts empty and keeps none: its table may be another one.
class PackedSlot {
 public:
  PackedSlot() = default;
  PackedSlot(const PackedSlot& /*other*/) {}
  PackedSlot(PackedSlot&& other) noexcept
      : keeps_(other.keeps_),
        prunes_(other.prunes_),
        remembered_(std::move(other.remembered_)),
        tables_(std::move(other.tables_)),
        pruning_(std::move(other.pruning_)) {}
  PackedSlot& operator=(const PackedSlot&) = delete;

  /// Whether searches may keep what they pack. False until `allow`, before the index is shared.
  [[nodiscard]] bool keeps() const noexcept { return keeps_; }
  void allow() noexcept { keeps_ = true; }
  /// The same of pruned rows.
  [[nodiscard]] bool prunes() const noexcept { return prunes_; }
  void allow_pruned() noexcept { prunes_ = true; }
  /// What is known of pruning for a metric; null before it is noted. What is noted first stays.
  [[nodiscard]] std::shared_ptr<const Pruning> pruning(Metric metric) const;
  std::shared_ptr<const Pruning> note(Pruning pruning) const;
  /// Held by who looks at a sample for a note; empty while somebody else does.
  [[nodiscard]] std::unique_lock<std::mutex> lock_survey() const { return {survey_, std::try_to_lock}; }
  /// Bytes of all that is noted.
  [[nodiscard]] std::uint64_t noted_bytes() const;
  /// Kinds that the index had when it was saved, for whoever loads it; lanes are 0.
  void remember(std::vector<PackedKind> kinds) { remembered_ = std::move(kinds); }
  [[nodiscard]] const std::vector<PackedKind>& remembered() const noexcept { return remembered_; }

  /// The packed rows of a kind, or null.
  [[nodiscard]] std::shared_ptr<PackedTable> get(const PackedKind& kind) const;
  /// Those made by `make`, without any block packed, where there are none.
  std::shared_ptr<PackedTable> get_or_make(const PackedKind& kind,
                                           const std::function<std::shared_ptr<PackedTable>()>& make) const;
  [[nodiscard]] std::vector<std::shared_ptr<PackedTable>> all() const;
  [[nodiscard]] std::uint64_t bytes() const;
  /// Lets go of all but those of some kinds.
  void drop_others(std::span<const PackedKind> kinds) const;

 private:
  bool keeps_ = false;
  bool prunes_ = false;
  std::vector<PackedKind> remembered_;
  mutable std::mutex mutex_;
  mutable std::mutex survey_;
  mutable std::vector<std::shared_ptr<PackedTable>> tables_;
  mutable std::vector<std::shared_ptr<const Pruning>> pruning_;
};

/// The packed rows that a search may keep in its index, of one screen.
struct PackedNeed {
  PackedKind kind;
  std::uint64_t bytes = 0;  ///< of all rows
};

/// What is known of a table before any query. Metric-independent; O(n + d) memory beyond the table.
struct Prepared {
  TableView table;
  std::int64_t first_id = 0;  ///< number of the table's first row in sentences about its values: of a shard
  std::shared_ptr<const void>
      storage;                 ///< owns the table's bytes when the index does (a copy, or the file's), else null
  std::vector<double> centre;  ///< [d] coordinate median of a sample, rounded to integers for integral columns
  double largest = 0;          ///< max |value - center| over the table
  /// Rows equal bit for bit (-0 and 0 differ, which only costs speed). Empty when all rows differ or when grouping
  /// would not pay: distinct[g] is the first row of group g (ascending); the members of g, ascending, are
  /// members[member_offsets[g] .. member_offsets[g + 1]).
  std::vector<std::int64_t> distinct;
  std::vector<std::int64_t> member_offsets;
  std::vector<std::int64_t> members;
  TreeSlot tree;
  KDistanceSlot k_distances;
  DeviceSlot device;
  PackedSlot packed;

  [[nodiscard]] bool grouped() const noexcept { return !distinct.empty(); }
  [[nodiscard]] std::int64_t distinct_rows() const noexcept {
    return grouped() ? static_cast<std::int64_t>(distinct.size()) : table.rows();
  }
};

enum class Collect : std::uint8_t { k_list, radius, count };

/// Whether a count takes boxes of a tree that lie within the radius as wholes, without keys.
enum class TakesBoxes : std::uint8_t {
  where_it_pays,
  always,  ///< of few queries as well; not with `exclude` either
  never
};

/// One search, checked by the caller: every argument is inside its domain.
struct NearestTask {
  const Prepared* index = nullptr;
  TableView queries;  ///< in self mode the table itself
  bool self = false;  ///< query i is table row i and is not its own neighbor
  Metric metric = Metric::euclidean;
  double p = 2;
  Method method = Method::fused;  ///< never `automatic`
  ScreenType screen = ScreenType::automatic;
  const Tree* tree = nullptr;  ///< for Method::kdtree, when the search starts
  Collect collect = Collect::k_list;
  std::int64_t k = 0;
  /// Of k_list: larger keys are of no use. A list may have them all the same; if it has fewer than k, it ends before
  /// the first id of -1.
  double max_key = kInfinity;
  /// [m] The same of each query, where more is known; empty: `max_key` for all. Those at most as far away are found,
  /// equal keys included. Backends of devices take no notice.
  std::span<const double> max_keys;
  double radius = 0;                                   ///< of radius and count: the largest one of all queries
  TakesBoxes takes_boxes = TakesBoxes::where_it_pays;  ///< of count, in a tree, on the CPU
  std::span<const double> radii;                       ///< [m] of each query; empty: `radius` for all
  bool by_id = false;                                  ///< of radius: lists by ascending id
  bool in_batches = false;                             ///< of radius: with a Handover
  std::uint64_t bytes_beside = 0;         ///< of radius, without: that caller and index hold, counted with the lists
  bool any_order = false;                 ///< of k_list: lists may come in another order, see `in_tree_order`
  bool lists_stay = false;                ///< of k_list: where they are found, for what is made of them there
  std::uint64_t device_bytes_beside = 0;  ///< that the caller holds on the device during the search
  bool pruned = false;                    ///< of fused: the first screen compares the index's pruned rows
  int kept_screens = 0;  ///< of fused: as many screens, the coarsest first, keep packed rows in the index
  /// Of fused with screens, on the CPU: distinct rows of the index, ascending, that alone are compared with the
  /// queries; empty: all are.
  std::span<const std::int64_t> some_rows;
  Bitmap filter;
  std::span<const std::int64_t> exclude;

  // Of a shard (ops/nearest/part.cpp). Ids, filter and exclude count the rows of the index from 0 all the same.
  std::int64_t first_id = 0;     ///< number of the index's first row in sentences
  std::int64_t first_query = 0;  ///< number of the first query in sentences
  bool same_rows = false;        ///< both are numbers of one table's rows, and a row is not its own neighbor
  bool keys = false;             ///< lists have keys instead of reported distances

  /// The row that query 0 is; that of query i is i rows after it. It may lie outside of the index.
  [[nodiscard]] std::int64_t own_row() const noexcept {
    constexpr std::int64_t kNone = -(std::int64_t{1} << 62);  // no query that comes after it is a row
    if (self) return 0;
    return same_rows ? first_query - first_id : kNone;
  }
  /// The number of distinct rows that are compared with the queries.
  [[nodiscard]] std::int64_t num_compared_rows() const noexcept {
    return some_rows.empty() ? index->distinct_rows() : static_cast<std::int64_t>(some_rows.size());
  }
  /// Larger keys are of no use to the list of a query.
  [[nodiscard]] double max_key_of(std::int64_t query) const noexcept {
    return max_keys.empty() ? max_key : max_keys[static_cast<std::size_t>(query)];
  }
  /// Whether a count takes boxes as wholes. With a filter all rows are counted first, by the nodes of the tree that
  /// they lie below, and with equal rows all distinct ones: more work than few queries save.
  [[nodiscard]] bool counts_boxes() const noexcept {
    constexpr std::int64_t kRowsAQuery = 64;
    if (collect != Collect::count || takes_boxes == TakesBoxes::never || !exclude.empty()) return false;
    if (takes_boxes == TakesBoxes::always || (filter.empty() && !index->grouped())) return true;
    const std::int64_t counted_rows = filter.empty() ? index->distinct_rows() : index->table.rows();
    return queries.rows() >= counted_rows / kRowsAQuery;
  }
  /// Whether a query may be a row of the index, which is not its neighbor.
  [[nodiscard]] bool has_own_rows() const noexcept { return self || same_rows; }
  /// What a list says of a key.
  [[nodiscard]] double reported(double key) const noexcept {
    return keys ? key : core::reported_distance(metric, key, p);
  }
};

/// Takes the lists of a radius search batch by batch, in the order of the queries, so that no more than one is held.
struct Handover {
  std::uint64_t room = 0;  ///< bytes that the lists of a batch may take, from when they are found until they are taken
  /// The result has the lists of the queries from `first` on: ids, distances, and offsets from 0. They are cleared
  /// afterwards.
  std::function<void(std::int64_t first)> take;
};

/// Thrown where the list of one query alone does not fit into the room of a Handover.
struct NoRoom {};

/// Where results go: sized by the caller for k_list (ids, distances: m * k) and count (counts: m); radius fills CSR,
/// all of it or what a batch has.
struct NearestResult {
  std::vector<std::int64_t>& ids;
  std::vector<double>& distances;
  std::vector<std::int64_t>& offsets;
  std::vector<std::int64_t>& counts;
  SearchStats& stats;
  const Handover* handover = nullptr;
  bool in_tree_order = false;  ///< the search left lists in the order of the tree: list i is that of row `order[i]`
};

/// Memory of the caller's for k lists: [m, k] each.
struct ListMemory {
  std::int64_t* ids = nullptr;
  double* distances = nullptr;
  Memory memory = Memory::host;
};

struct VoteTask {
  const NeighborGraph* graph = nullptr;  ///< null where the lists are yet to be found
  std::span<const Labels> outputs;
  const VoteOptions* options = nullptr;
  std::int64_t first = 0;  ///< row of the votes for the graph's row 0, and its number in sentences
};

/// A method for a task that leaves the choice, and one sentence why.
struct Choice {
  Method method = Method::direct;
  const char* reason = "";
};

/// What queries cost that a search in a tree leaves to screens, as those that would touch many rows.
struct LeftToScreens {
  double min_rows = kInfinity;  ///< a query is left that would touch more rows
  double rows_before = 0;       ///< rows that it has touched when it is left
  double share = 1;             ///< of the time for touching all of its rows that screens take instead,
  double max_rows = kInfinity;  ///< but at most the time for touching so many

  /// The rows whose touching takes as long as a query that would touch `rows`.
  [[nodiscard]] double rows_worth(double rows) const noexcept {
    return rows <= min_rows ? rows : std::max(min_rows, rows_before + std::min(share * rows, max_rows));
  }
};

/// Seconds that things take on a backend, guessed from shapes.
struct Costs {
  double brute = 0;           ///< the task by its method, fused or direct
  double brute_fine = 0;      ///< the same where the coarsest screen fails
  double rank = 0;            ///< for each row that the screens leave to a query, which `brute` does not contain
  double tree_start = 0;      ///< building or searching a tree, however small
  double tree_build = 0;      ///< building a tree: for each row and doubling of the rows
  double tree_query = 0;      ///< searching in it: for each query
  double tree_row = 0;        ///< and for each row a query touches
  double tree_row_alone = 0;  ///< and at least, however few queries there are: a query does not share its rows
  LeftToScreens left_to_screens;
};

/// A k-nearest search that is repeated with other queries, as many. Takes no memory and starts no thread after its
/// first run.
class RepeatedSearch {
 public:
  RepeatedSearch() = default;
  RepeatedSearch(const RepeatedSearch&) = delete;
  RepeatedSearch& operator=(const RepeatedSearch&) = delete;
  virtual ~RepeatedSearch() = default;
  /// For the queries that the task has now. Throws `bad_data` for those that are not finite.
  virtual void run(const ListMemory& lists, SearchStats& stats) = 0;
};

class NearestBackend {
 public:
  NearestBackend() = default;
  NearestBackend(const NearestBackend&) = delete;
  NearestBackend& operator=(const NearestBackend&) = delete;
  virtual ~NearestBackend() = default;

  /// Refuses NaN and infinity by row and column, finds the center, and duplicates where it needs them.
  virtual void prepare(const Context& ctx, Prepared& index) const = 0;
  /// The most bytes that `prepare` takes while it works, what it leaves in the index included.
  virtual std::uint64_t prepare_bytes(const Context& ctx, const TableView& table) const = 0;
  /// Refuses queries that are not finite, unless `search` does so while it reads them.
  virtual void check_queries(const Context& ctx, const NearestTask& task) const = 0;
  /// Whether Method::fused serves the task's metric, screen, width, k and collector.
  virtual bool can_fuse(const NearestTask& task) const = 0;
  /// Fused or direct, for a task that leaves it open.
  virtual Choice choose(const Context& ctx, const NearestTask& task) const = 0;
  virtual Costs costs(const Context& ctx, const NearestTask& task) const = 0;
  /// The names of the screens the task would climb through, coarse to fine; empty for `direct`.
  virtual std::string screens(const Context& ctx, const NearestTask& task) const = 0;
  /// What the task's screens may keep in the index, in their order; empty where nothing is kept.
  virtual std::vector<PackedNeed> packed_needs(const Context& /*ctx*/, const NearestTask& /*task*/) const { return {}; }
  /// Whether pruned rows would make a search of the index quicker, as far as a sample of its rows tells, which is
  /// looked at once an index and metric. Takes at most `pruning_bytes` meanwhile.
  virtual bool prunes(const Context& /*ctx*/, const NearestTask& /*task*/) const { return false; }
  virtual std::uint64_t pruning_bytes(const NearestTask& /*task*/) const { return 0; }
  /// Packs all rows for the screens that the task keeps.
  virtual void pack(const Context& /*ctx*/, const NearestTask& /*task*/) const {}
  /// Whether Method::kdtree serves the task's metric, shape, k and collector.
  virtual bool can_use_tree(const NearestTask& task) const = 0;
  /// Whether there is room for the tree, where it is not there yet.
  virtual bool has_room_for_tree(const Context& ctx, const NearestTask& task) const = 0;
  /// Whether a method of the papers serves the metric at that width.
  virtual bool can_use_paper(Method /*method*/, Metric /*metric*/, std::int64_t /*d*/) const { return false; }
  /// A kd-tree of an index whose table lies in memory.
  virtual std::shared_ptr<const Tree> build_tree(const Context& ctx, const Prepared& index) const = 0;
  /// The most bytes of host memory that making a tree takes, what it leaves in the index included.
  virtual std::uint64_t tree_bytes(const Prepared& index) const = 0;
  virtual void search(const Context& ctx, const NearestTask& task, NearestResult& result) const = 0;
  /// Scratch that `search` will take: what stays on a device is not counted. Throws `over_memory` where a device has no
  /// room.
  virtual MemoryNeed search_bytes(const Context& ctx, const NearestTask& task) const {
    return {host_bytes(ctx, task), 0};
  }
  /// That of the host alone, for a search that may not be chosen: throws nothing.
  virtual std::uint64_t host_bytes(const Context& ctx, const NearestTask& task) const = 0;
  virtual void vote(const Context& ctx, const VoteTask& task, std::span<Vote> result) const = 0;
  // A search whose lists are not wanted in vectors of the host's. A backend without a way of its own finds them as
  // always, and then copies them or votes on them: `holds_lists` is whether it does, for the memory they take. `voting`
  // null: they are copied.
  virtual bool holds_lists(const NearestTask& /*task*/, const VoteOptions* /*voting*/) const { return true; }
  virtual void search_into(const Context& ctx, const NearestTask& task, const ListMemory& lists,
                           SearchStats& stats) const;
  /// A search to be repeated, of context and task, which must outlive it; null where the backend has none.
  virtual std::unique_ptr<RepeatedSearch> repeat(const Context& /*ctx*/, const NearestTask& /*task*/) const {
    return nullptr;
  }
  virtual void classify(const Context& ctx, const NearestTask& task, const VoteTask& votes, std::span<Vote> result,
                        SearchStats& stats) const;
};

/// Of n rows those that a filter lets pass, which has a bit each; all where it is empty.
std::int64_t eligible_rows(Bitmap filter, std::int64_t n);

/// Lists of a search of k neighbors, in host memory.
struct HostLists {
  std::vector<std::int64_t> ids;
  std::vector<double> distances;

  HostLists(const Context& ctx, const NearestBackend& backend, const NearestTask& task, SearchStats& stats);
};

/// The CPU's tree that has this shape; devices build their own anew, which takes them less than reading it would.
/// Throws `bad_data` saying what is wrong with a shape that is none. Takes the CPU's `tree_bytes(index)`.
std::shared_ptr<const Tree> restore_tree(const Context& ctx, const Prepared& index, TreeShape shape);

}  // namespace vicinal::kernels
