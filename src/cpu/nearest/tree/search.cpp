// The search in a kd-tree. A query goes down to the nearest child first and leaves the others, nearest on top, on a
// stack; what has become too far when its turn comes is dropped unseen. Queries are taken in the order of the leaves
// they fall into, so that one finds in the cache what the one before it has read, and equal ones may share an answer.
// A box is left out, or counted as a whole, by the bounds of cpu/nearest/tree/tree.hpp, so the answers are those of
// brute force; which boxes are looked into depends on the query, the tree, and the task's filter, exclude and number of
// queries alone, so the statistics do not depend on threads either.
#include "cpu/nearest/tree/search.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/context_state.hpp"
#include "core/distance.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "cpu/nearest/batch_steps.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/query_batch.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/leaf.hpp"
#include "cpu/nearest/tree/list_sink.hpp"
#include "cpu/nearest/tree/self.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "cpu/nearest/tree/walk.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kTreeBatchBytes = std::int64_t{64} << 20;
constexpr int kStack = (Tree::kMaxDepth + 2) * static_cast<int>(kTreeWidth);

std::int64_t batch_of(const kernels::NearestTask& task) {
  const auto per_query = static_cast<std::int64_t>(QueryBatch::bytes_a_query(task, {}));
  std::int64_t batch = std::min(task.queries.rows(), std::max<std::int64_t>(kTreeBatchBytes / per_query, 16));
  if (task.collect != kernels::Collect::k_list) batch = std::min<std::int64_t>(batch, 16384);
  return batch;
}

// Where the points of other searches go (list_sink.hpp).
class CollectorSink {
 public:
  static constexpr bool kTakesBoxes = false;
  CollectorSink(Collector& collector, std::int64_t query) : collector_(collector), query_(query) {}
  [[nodiscard]] double limit() const { return collector_.limit(query_); }
  void offer(double key, std::int64_t distinct) { collector_.offer(query_, key, distinct); }
  void finish() { collector_.finish(query_); }

 private:
  Collector& collector_;
  std::int64_t query_;
};

// How many rows the filter admits, by distinct rows and by boxes of a tree. With a filter or equal rows, the rows below
// each node are counted first, which does not pay for few queries (NearestTask::counts_boxes).
class Admitted {
 public:
  Admitted(const kernels::NearestTask& task, const Tree& tree, const Candidates& candidates)
      : tree_(tree),
        candidates_(candidates),
        rows_(task.index->table.rows()),
        distinct_rows_(task.index->distinct_rows()),
        has_filter_(!task.filter.empty()),
        all_(!has_filter_ && !task.index->grouped()) {}

  /// Whether every distinct row is one row that is admitted.
  [[nodiscard]] bool all() const noexcept { return all_; }
  /// The rows that are admitted of those that share a distinct row, once the nodes are counted.
  [[nodiscard]] std::int64_t of(std::int64_t distinct) const noexcept {
    if (has_filter_) return admitted_[static_cast<std::size_t>(distinct)];
    return static_cast<std::int64_t>(candidates_.members(distinct).size());
  }
  /// Whether there is a row of this number, and it is admitted.
  [[nodiscard]] bool has(std::int64_t id) const noexcept {
    return id >= 0 && id < rows_ && candidates_.is_admitted(id);
  }
  /// Looks at every row. Boxes are counted from then on.
  void count_nodes(const Context& ctx) {
    if (all_) return;
    if (has_filter_) count_admitted(ctx);
    nodes_.assign(static_cast<std::size_t>(tree_.nodes()), 0);
    for (std::int64_t node = tree_.nodes(); node-- > 0;) {  // a node's children come after it
      for (std::uint32_t lanes = tree_.lanes(node); lanes != 0; lanes &= lanes - 1) {
        nodes_[static_cast<std::size_t>(node)] += below(ctx, Tree::child_of(node, std::countr_zero(lanes)));
      }
    }
  }
  /// The rows below a child of the tree.
  [[nodiscard]] std::int64_t below(const Context& ctx, std::int64_t child) const {
    if (all_) return tree_.points_below(child);
    const Tree::Child& one = tree_.child(child);
    if (one.size == 0) return nodes_[static_cast<std::size_t>(one.at)];
    std::int64_t rows = 0;
    for (std::int64_t i = 0; i < one.size; ++i) {
      if (i % kChunkPoints == 0) ctx.check_cancelled();
      rows += of(tree_.shape().order[static_cast<std::size_t>(one.first + i)]);
    }
    return rows;
  }

 private:
  void count_admitted(const Context& ctx) {
    admitted_.assign(static_cast<std::size_t>(distinct_rows_), 0);
    std::int64_t seen = 0;
    for (std::int64_t distinct = 0; distinct < distinct_rows_; ++distinct) {
      for (const std::int64_t id : candidates_.members(distinct)) {
        if (seen++ % kChunkPoints == 0) ctx.check_cancelled();
        if (candidates_.is_admitted(id)) ++admitted_[static_cast<std::size_t>(distinct)];
      }
    }
  }

  const Tree& tree_;
  const Candidates& candidates_;
  std::int64_t rows_;
  std::int64_t distinct_rows_;
  bool has_filter_;
  bool all_;
  std::vector<std::int64_t> admitted_;  // [distinct rows], or empty without a filter
  std::vector<std::int64_t> nodes_;     // [nodes] or empty
};

// Counts rows by whole boxes. Its own row, at distance 0, is counted as the others are, and taken off at the end.
class CountSink {
 public:
  static constexpr bool kTakesBoxes = true;
  CountSink(const Context& ctx, const kernels::NearestTask& task, const Collector& collector, const Admitted& admitted,
            kernels::NearestResult& result, std::int64_t query)
      : ctx_(ctx), task_(task), admitted_(admitted), result_(result), query_(query), limit_(collector.limit(query)) {}

  [[nodiscard]] double limit() const { return limit_; }
  void offer(double key, std::int64_t distinct) {
    if (key <= limit_) count_ += admitted_.of(distinct);
  }
  /// So many distinct rows. False: it must be offered each.
  [[nodiscard]] bool takes(std::int64_t found) {
    if (admitted_.all()) count_ += found;
    return admitted_.all();
  }
  /// All rows below a child.
  void take(std::int64_t child) { count_ += admitted_.below(ctx_, child); }
  void finish() {
    const bool has_own = limit_ >= 0 && admitted_.has(task_.own_row() + query_);
    result_.counts[query_] += count_ - (has_own ? 1 : 0);
  }

 private:
  const Context& ctx_;
  const kernels::NearestTask& task_;
  const Admitted& admitted_;
  kernels::NearestResult& result_;
  std::int64_t query_;
  double limit_;
  std::int64_t count_ = 0;
};

class TreeSearch {
 public:
  TreeSearch(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result)
      : ctx_(ctx),
        task_(task),
        result_(result),
        tree_(static_cast<const Tree&>(*task.tree)),
        keys_(ctx, task, tree_),
        candidates_(task),
        admitted_(task, tree_, candidates_),
        counts_boxes_(task.counts_boxes()),
        leaves_(ctx, task, tree_, keys_, candidates_),
        shares_answers_(task.index->grouped() && task.collect == kernels::Collect::k_list && !task.has_own_rows() &&
                        task.exclude.empty()),
        bytes_(result.handover != nullptr ? 0 : task.bytes_beside + nearest_in_tree_scratch(ctx, task)) {
    if (task.collect != kernels::Collect::k_list) collector_ = make_collector(ctx, task, candidates_, result, bytes_);
  }

  void run() {
    const std::int64_t m = task_.queries.rows();
    QueryBatch batch(task_, simd_kernels(ctx_.isa()), {});
    if (counts_boxes_) admitted_.count_nodes(ctx_);
    BatchSteps steps(batch_of(task_), result_.handover);
    for (std::int64_t begin = 0; begin < m;) {
      const std::int64_t end = std::min(m, begin + steps.next());
      try {
        steps.fitted(end - begin, search_batch(batch, begin, end));
        begin = end;
      } catch (const kernels::NoRoom&) {
        steps.failed(end - begin);
      }
    }
    result_.stats.distinct_rows = task_.index->distinct_rows();
  }

 private:
  // The answers of queries [begin, end). Returns the bytes that lists took of the room of a Handover.
  std::uint64_t search_batch(QueryBatch& batch, std::int64_t begin, std::int64_t last) {
    batch.load(ctx_, begin, last);
    if (collector_) collector_->begin(begin, last);
    const std::vector<std::int64_t> order = order_of(batch);
    const std::int64_t chunk = std::clamp<std::int64_t>(batch.size() / 16 / ctx_.threads(), 1, 256);
    std::vector<std::int64_t> ranked(static_cast<std::size_t>(ctx_.threads()), 0);
    std::atomic<std::int64_t> done{begin};
    core::parallel_for(ctx_, (batch.size() + chunk - 1) / chunk, [&](std::int64_t task, int worker) {
      const std::int64_t end = std::min(batch.size(), (task + 1) * chunk);
      std::int64_t points = 0;
      for (std::int64_t at = task * chunk; at < end; ++at) {
        ctx_.check_cancelled();
        if (at + 2 < end) __builtin_prefetch(batch.row(order[static_cast<std::size_t>(at) + 2]));
        const std::int64_t i = order[static_cast<std::size_t>(at)];
        const std::int64_t before = at > task * chunk ? order[static_cast<std::size_t>(at) - 1] : i;
        if (shares_answers_ && before != i && are_equal(batch, before, i)) {
          copy_answer(batch.begin() + before, batch.begin() + i);
        } else {
          points = search(batch, i);
        }
        ranked[static_cast<std::size_t>(worker)] += points;  // as if searched: no chunk shows
      }
      const std::int64_t now = done.fetch_add(end - task * chunk) + end - task * chunk;
      ctx_.report("search", static_cast<double>(now) / static_cast<double>(task_.queries.rows()));
    });
    const std::uint64_t found = bytes_.load();
    if (collector_) collector_->end();
    result_.stats.survivors += std::accumulate(ranked.begin(), ranked.end(), std::int64_t{0});
    return 2 * found;  // and once more as they were taken
  }

  // Queries of the batch in the order of the leaves whose boxes they are nearest to; where they share answers, equal
  // ones beside each other in each stretch of that order.
  std::vector<std::int64_t> order_of(const QueryBatch& batch) const {
    std::vector<std::int64_t> order(static_cast<std::size_t>(batch.size()));
    std::iota(order.begin(), order.end(), 0);
    const core::Ablation ablation = core::ContextAccess::ablation(ctx_);
    if (batch.size() < 64 || tree_.nodes() == 0 || ablation == core::Ablation::tree_order) return order;
    std::vector<std::int64_t> leaf(static_cast<std::size_t>(batch.size()));
    core::parallel_for(ctx_, (batch.size() + 1023) / 1024, [&](std::int64_t task, int /*worker*/) {
      const std::int64_t end = std::min(batch.size(), (task + 1) * 1024);
      for (std::int64_t i = task * 1024; i < end; ++i) leaf[static_cast<std::size_t>(i)] = leaf_of(batch.row(i));
    });
    std::vector<std::int64_t> next(static_cast<std::size_t>(tree_.panels()) + 1, 0);
    for (const std::int64_t l : leaf) ++next[static_cast<std::size_t>(l) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::size_t i = 0; i < leaf.size(); ++i) {
      order[static_cast<std::size_t>(next[static_cast<std::size_t>(leaf[i])]++)] = static_cast<std::int64_t>(i);
    }
    if (!shares_answers_) return order;
    core::parallel_for(ctx_, (batch.size() + 1023) / 1024, [&](std::int64_t task, int /*worker*/) {
      std::sort(order.begin() + task * 1024, order.begin() + std::min(batch.size(), (task + 1) * 1024),
                [&](std::int64_t a, std::int64_t b) {
                  const std::int64_t of_a = leaf[static_cast<std::size_t>(a)];
                  const std::int64_t of_b = leaf[static_cast<std::size_t>(b)];
                  return of_a != of_b ? of_a < of_b : comes_before(batch, a, b);
                });
    });
    return order;
  }

  // By value, then by number.
  [[nodiscard]] bool comes_before(const QueryBatch& batch, std::int64_t a, std::int64_t b) const {
    const double* x = batch.row(a);
    const double* y = batch.row(b);
    for (std::int64_t j = 0; j < tree_.cols(); ++j) {
      if (x[j] != y[j]) return x[j] < y[j];
    }
    return a < b;
  }
  [[nodiscard]] bool are_equal(const QueryBatch& batch, std::int64_t a, std::int64_t b) const {
    if (task_.max_key_of(batch.begin() + a) != task_.max_key_of(batch.begin() + b)) return false;
    return std::equal(batch.row(a), batch.row(a) + tree_.cols(), batch.row(b));
  }
  void copy_answer(std::int64_t from, std::int64_t to) {
    std::copy_n(result_.ids.data() + from * task_.k, task_.k, result_.ids.data() + to * task_.k);
    std::copy_n(result_.distances.data() + from * task_.k, task_.k, result_.distances.data() + to * task_.k);
  }

  [[nodiscard]] std::int64_t leaf_of(const double* x) const {
    const Tree::Child* child = &tree_.child(0);
    while (child->size == 0) {
      alignas(64) double keys[kTreeWidth];
      keys_.boxes(x, tree_.boxes(child->at), kInfinity, keys);
      const double* nearest = std::min_element(keys, keys + std::popcount(tree_.lanes(child->at)));
      child = &tree_.child(Tree::child_of(child->at, nearest - keys));
    }
    return child->at;
  }

  // Returns how many points were ranked.
  std::int64_t search(const QueryBatch& batch, std::int64_t i) {
    const std::int64_t query = batch.begin() + i;
    if (counts_boxes_) {
      CountSink sink(ctx_, task_, *collector_, admitted_, result_, query);
      return visit(batch.row(i), query, sink);
    }
    if (collector_) {
      CollectorSink sink(*collector_, query);
      return visit(batch.row(i), query, sink);
    }
    ListSink sink(task_, candidates_, keys_.insert(), result_, query, query);
    return visit(batch.row(i), query, sink);
  }

  // Returns how many points were ranked.
  template <class Sink>
  std::int64_t visit(const double* x, std::int64_t query, Sink& sink) {
    // Two arrays, because an entry moved as one right after it was written as two would have to wait for the cache.
    double stack_keys[kStack];
    std::int64_t stack[kStack];
    const bool all = keys_.may_overflow(x, tree_.lowest(), tree_.highest());
    Visit<Sink> now{x, query, sink, all, all ? kInfinity : sink.limit()};
    std::int64_t opened = 0;
    int size = 0;
    stack_keys[size] = 0;
    stack[size++] = 0;
    if constexpr (Sink::kTakesBoxes) {
      if (!all && keys_.farthest(x, tree_.lowest(), tree_.highest()) <= now.limit) {
        now.sink.take(0);
        size = 0;
      }
    }
    while (size > 0) {
      if (stack_keys[--size] > now.limit) continue;
      const Tree::Child& child = tree_.child(stack[size]);
      if (child.size > 0) {
        leaves_.rank(child, now);
        continue;
      }
      if (++opened % 16 == 0) ctx_.check_cancelled();
      alignas(64) double keys[kTreeWidth];
      std::uint32_t near = 0;
      if constexpr (Sink::kTakesBoxes) {
        std::uint32_t inside = 0;
        near = keys_.boxes(x, tree_.boxes(child.at), now.limit, keys, inside) & tree_.lanes(child.at);
        if (!all) {
          for (inside &= near, near &= ~inside; inside != 0; inside &= inside - 1) {
            now.sink.take(Tree::child_of(child.at, std::countr_zero(inside)));
          }
        }
      } else {
        near = keys_.boxes(x, tree_.boxes(child.at), now.limit, keys) & tree_.lanes(child.at);
      }
      const int bottom = size;
      for (; near != 0; near &= near - 1) {  // the nearest on top, of equals the first
        const int lane = std::countr_zero(near);
        const double key = keys[lane];
        int place = size++;
        for (; place > bottom && stack_keys[place - 1] <= key; --place) {
          stack_keys[place] = stack_keys[place - 1];
          stack[place] = stack[place - 1];
        }
        stack_keys[place] = key;
        stack[place] = Tree::child_of(child.at, lane);
        prefetch(stack[place]);
      }
      // Mostly all children are leaves, or none is: a loop of their own is one that the processor foresees.
      for (; size > bottom && tree_.child(stack[size - 1]).size > 0; --size) {
        if (stack_keys[size - 1] <= now.limit) leaves_.rank(tree_.child(stack[size - 1]), now);
      }
    }
    sink.finish();
    return now.ranked;
  }

  // What will be read when the child's turn comes.
  void prefetch(std::int64_t i) const {
    const Tree::Child& child = tree_.child(i);
    const auto* from = static_cast<const char*>(child.size > 0 ? tree_.points(child.at) : tree_.boxes(child.at));
    __builtin_prefetch(from);
    __builtin_prefetch(from + 64);
  }

  const Context& ctx_;
  const kernels::NearestTask& task_;
  kernels::NearestResult& result_;
  const Tree& tree_;
  TreeKeys keys_;
  Candidates candidates_;
  Admitted admitted_;
  bool counts_boxes_;  // a box within the radius as a whole, without keys
  LeafRanks leaves_;
  bool shares_answers_;                   // equal queries, which are likely where the table has equal rows
  std::atomic<std::uint64_t> bytes_;      // in use, for collectors whose answers grow
  std::unique_ptr<Collector> collector_;  // null for k lists
};

}  // namespace

bool tree_serves(Metric metric) {
  return metric == Metric::euclidean || metric == Metric::sqeuclidean || metric == Metric::manhattan ||
         metric == Metric::chebyshev || metric == Metric::minkowski;
}

void nearest_in_tree(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result) {
  if (self_lists_serve(ctx, task)) return self_lists(ctx, task, result);
  TreeSearch(ctx, task, result).run();
}

std::uint64_t nearest_in_tree_scratch(const Context& ctx, const kernels::NearestTask& task) {
  const std::int64_t batch = batch_of(task);
  std::uint64_t bytes = static_cast<std::uint64_t>(batch) * (QueryBatch::bytes_a_query(task, {}) + 16 + 24);
  bytes += static_cast<std::uint64_t>(task.index->distinct_rows()) * 2;  // queries counted by panel: see Tree::bytes
  if (task.collect == kernels::Collect::count && task.takes_boxes != kernels::TakesBoxes::never) {
    const auto distinct_rows = static_cast<std::uint64_t>(task.index->distinct_rows());
    bytes += distinct_rows * 8 + child_count_bound(distinct_rows) / kTreeWidth * 8;  // see Admitted
  }
  if (task.self && task.collect == kernels::Collect::k_list) bytes += self_lists_bytes(ctx, task);
  if (task.queries.is_block_source()) bytes += static_cast<std::uint64_t>(batch * task.queries.cols()) * 8;
  return bytes;
}

}  // namespace vicinal::cpu
