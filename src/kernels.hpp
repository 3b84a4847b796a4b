// THE WAIST: what a backend provides. Above it (src/ops, cli) nothing knows which device runs; below it nothing
// knows about options, defaults or files. A new backend is one folder and one object of this type.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
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

/// A kd-tree over the distinct rows, in a form of the backend's own.
class Tree {
 public:
  virtual ~Tree() = default;
  [[nodiscard]] const TreeShape& shape() const noexcept { return shape_; }

 protected:
  TreeShape shape_;
};

/// The place of a tree in an index: filled at most once, by the first search that needs it, while others wait.
/// A copy starts empty: its table may be another one.
class TreeSlot {
 public:
  TreeSlot() = default;
  TreeSlot(const TreeSlot& /*other*/) {}
  TreeSlot(TreeSlot&& other) noexcept : tree_(std::move(other.tree_)) {}
  TreeSlot& operator=(const TreeSlot&) = delete;

  /// The tree, or null.
  [[nodiscard]] std::shared_ptr<const Tree> get() const;
  /// The tree, made by `make` if there is none; waiting is cancellable.
  std::shared_ptr<const Tree> get_or_make(const Context& ctx,
                                          const std::function<std::shared_ptr<const Tree>()>& make) const;

 private:
  mutable std::mutex making_;  // held while the tree is made
  mutable std::mutex mutex_;   // guards the pointer
  mutable std::shared_ptr<const Tree> tree_;
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

/// What is known of a table before any query. Metric-independent; O(n + d) memory beyond the table.
struct Prepared {
  TableView table;
  std::shared_ptr<const void> storage;  ///< owns the table's bytes when the index does (copy or mapped file), else null
  std::vector<double> centre;           ///< [d] coordinate median of a sample, rounded to integers for integral columns
  double largest = 0;                   ///< max |value - centre| over the table
  /// Rows equal bit for bit (-0 and 0 differ, which only costs speed). Empty when all rows differ or when grouping
  /// would not pay: distinct[g] is the first row of group g (ascending); the members of g, ascending, are
  /// members[member_offsets[g] .. member_offsets[g + 1]).
  std::vector<std::int64_t> distinct;
  std::vector<std::int64_t> member_offsets;
  std::vector<std::int64_t> members;
  TreeSlot tree;
  KDistanceSlot k_distances;

  [[nodiscard]] bool grouped() const noexcept { return !distinct.empty(); }
  [[nodiscard]] std::int64_t distinct_rows() const noexcept {
    return grouped() ? static_cast<std::int64_t>(distinct.size()) : table.rows();
  }
};

/// The methods of the papers that select from a product, and all of theirs.
constexpr bool is_product(Method method) noexcept {
  return method >= Method::product_kmin && method <= Method::product_timed;
}
constexpr bool is_of_a_paper(Method method) noexcept {
  return method >= Method::product_kmin && method <= Method::block_heap;
}

enum class Collect : std::uint8_t { k_list, radius, count };

/// Ideas that a benchmark leaves out to see what each is worth; the answers stay the same.
struct Without {
  bool fusion = false;      ///< scores are written out and compared with the thresholds in a second pass
  bool tree_order = false;  ///< queries meet a tree in the order they came
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
  double radius = 0;
  Bitmap filter;
  std::span<const std::int64_t> exclude;
  Without without;
};

/// Where results go: sized by the caller for k_list (ids, distances: m * k) and count (counts: m); radius fills CSR.
struct NearestResult {
  std::vector<std::int64_t>& ids;
  std::vector<double>& distances;
  std::vector<std::int64_t>& offsets;
  std::vector<std::int64_t>& counts;
  SearchStats& stats;
};

struct VoteTask {
  const NeighborGraph* graph = nullptr;
  std::span<const Labels> outputs;
  const VoteOptions* options = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Refuses NaN and infinity by row and column, finds centre and duplicates.
  virtual void prepare(const Context& ctx, Prepared& index) const = 0;
  /// The most bytes that `prepare` takes while it works, what it leaves in the index included.
  virtual std::uint64_t prepare_scratch(const Context& ctx, const TableView& table) const = 0;
  /// The first non-finite element as {row, col}, or {-1, -1}.
  virtual std::pair<std::int64_t, std::int64_t> find_non_finite(const Context& ctx, const TableView& table) const = 0;
  /// Whether Method::fused serves the metric at that width, with that screen.
  virtual bool can_fuse(Metric metric, ScreenType screen, std::int64_t d) const = 0;
  /// The names of the screens the task would climb through, coarse to fine; empty for `direct`.
  virtual std::string screens(const Context& ctx, const NearestTask& task) const = 0;
  /// Whether Method::kdtree serves the metric.
  virtual bool can_use_tree(Metric metric) const = 0;
  /// Whether a method of the papers serves the metric at that width.
  virtual bool can_use_paper(Method /*method*/, Metric /*metric*/, std::int64_t /*d*/) const { return false; }
  /// A kd-tree of an index whose table lies in memory.
  virtual std::shared_ptr<const Tree> build_tree(const Context& ctx, const Prepared& index) const = 0;
  /// The tree that has this shape. Throws `bad_data` saying what is wrong with a shape that is none.
  virtual std::shared_ptr<const Tree> restore_tree(const Context& ctx, const Prepared& index,
                                                   TreeShape shape) const = 0;
  /// The most bytes that making a tree takes, what it leaves in the index included.
  virtual std::uint64_t tree_bytes(const Prepared& index) const = 0;
  virtual void nearest(const Context& ctx, const NearestTask& task, NearestResult& result) const = 0;
  /// Bytes of scratch `nearest` will take.
  virtual std::uint64_t nearest_scratch(const Context& ctx, const NearestTask& task) const = 0;
  virtual void vote(const Context& ctx, const VoteTask& task, std::span<Vote> result) const = 0;
};

const Backend& cpu_backend();

/// The backend a context runs on.
const Backend& backend_of(const Context& ctx);

}  // namespace vicinal::kernels
