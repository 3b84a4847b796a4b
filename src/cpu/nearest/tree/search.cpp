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
#include "cpu/nearest/tree/tree.hpp"
#include "cpu/nearest/tree/walk.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kTreeBatchBytes = std::int64_t{64} << 20;
constexpr std::int64_t kChunkPoints = 256;  // of a leaf ranked in one call
constexpr int kStack = (Tree::kMaxDepth + 2) * static_cast<int>(kTreeWidth);

std::int64_t batch_of(const kernels::NearestTask& task) {
  const auto per_query = static_cast<std::int64_t>(QueryBatch::bytes_a_query(task, {}));
  std::int64_t batch = std::min(task.queries.rows(), std::max<std::int64_t>(kTreeBatchBytes / per_query, 16));
  if (task.collect != kernels::Collect::k_list) batch = std::min<std::int64_t>(batch, 16384);
  return batch;
}

// Where the points of a search go: `limit` as a collector has it, and offers of distinct rows.
// Short lists are kept sorted, on the stack: shifting some entries costs less than the branches of a heap that nothing
// predicts, and the result's own memory is cold until the list is written there.
class ListSink {
 public:
  static constexpr bool kTakesBoxes = false;
  ListSink(const kernels::NearestTask& task, const Candidates& candidates, kernels::NearestResult& result,
           std::int64_t query)
      : task_(task),
        candidates_(candidates),
        query_(query),
        k_(task.k),
        keys_(result.distances.data() + query * k_),
        ids_(result.ids.data() + query * k_),
        max_key_(task.max_key_of(query)),
        limit_(max_key_),
        heap_(keys_, ids_, k_) {}

  [[nodiscard]] double limit() const { return k_ > kMaxSorted ? std::min(heap_.limit(), max_key_) : limit_; }
  void offer(double key, std::int64_t distinct) {
    if (key > max_key_) return;  // where every point is looked at
    for (const std::int64_t id : candidates_.members(distinct)) {
      if (!candidates_.eligible(query_, id)) continue;
      if (!(k_ > kMaxSorted ? heap_.offer(key, id) : insert(key, id))) break;  // ids ascend: no later one enters either
    }
  }
  void finish() {
    if (k_ > kMaxSorted) heap_.sort();
    for (std::int64_t i = 0; i < size_; ++i) {
      keys_[i] = sorted_keys_[i];
      ids_[i] = sorted_ids_[i];
    }
    const std::int64_t size = k_ > kMaxSorted ? heap_.size() : size_;
    for (std::int64_t i = 0; i < size; ++i) keys_[i] = task_.reported(keys_[i]);
    if (size < k_) ids_[size] = -1;
  }

 private:
  static constexpr std::int64_t kMaxSorted = 32;

  bool insert(double key, std::int64_t id) {
    std::int64_t i = size_;
    if (size_ < k_) {
      ++size_;
    } else {
      --i;  // the last one leaves
      if (!core::nearer(key, id, sorted_keys_[i], sorted_ids_[i])) return false;
    }
    for (; i > 0 && core::nearer(key, id, sorted_keys_[i - 1], sorted_ids_[i - 1]); --i) {
      sorted_keys_[i] = sorted_keys_[i - 1];
      sorted_ids_[i] = sorted_ids_[i - 1];
    }
    sorted_keys_[i] = key;
    sorted_ids_[i] = id;
    if (size_ == k_) limit_ = sorted_keys_[size_ - 1];
    return true;
  }

  const kernels::NearestTask& task_;
  const Candidates& candidates_;
  std::int64_t query_;
  std::int64_t k_;
  double* keys_;
  std::int64_t* ids_;
  std::int64_t size_ = 0;
  double max_key_;
  double limit_;
  NearestHeap heap_;
  double sorted_keys_[kMaxSorted] = {};
  std::int64_t sorted_ids_[kMaxSorted] = {};
};

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
        grouped_(task.index->grouped()),
        shares_answers_(grouped_ && task.collect == kernels::Collect::k_list && !task.has_own_rows() &&
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
    ListSink sink(task_, candidates_, result_, query);
    return visit(batch.row(i), query, sink);
  }

  // One query on its way through the tree.
  template <class Sink>
  struct Visit {
    const double* x;
    std::int64_t query;
    Sink& sink;
    bool all;      // a key may overflow: then every point is looked at, because an overflow is an error (clause 1)
    double limit;  // boxes and points beyond it are of no use
    std::int64_t ranked = 0;
  };

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
        rank_leaf(child, now);
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
        if (stack_keys[size - 1] <= now.limit) rank_leaf(tree_.child(stack[size - 1]), now);
      }
    }
    sink.finish();
    return now.ranked;
  }

  template <class Sink>
  void rank_leaf(const Tree::Child& leaf, Visit<Sink>& now) const {
    const std::int64_t* rows = tree_.shape().order.data() + leaf.first;
    const std::byte* points = tree_.points(leaf.at);
    now.ranked += leaf.size;
    for (std::int64_t first = 0; first < leaf.size; first += kChunkPoints) {
      if (first > 0) ctx_.check_cancelled();
      double keys[kChunkPoints];
      std::int32_t at[kChunkPoints];
      const std::int64_t found = keys_.points(now.x, points + first * tree_.point_bytes(),
                                              std::min(kChunkPoints, leaf.size - first), now.limit, keys, at);
      if constexpr (Sink::kTakesBoxes) {
        if (!now.all && now.sink.takes(found)) continue;
      }
      if (grouped_) expect_groups(rows + first, now.limit, keys, at, found);
      for (std::int64_t f = 0; f < found; ++f) {
        const std::int64_t distinct = rows[first + at[f]];
        if (now.all && !(keys[f] < kInfinity)) {
          refuse_overflow(now.query, distinct);
        } else if (keys[f] <= now.limit) {  // which may have tightened since the keys were compared with it
          now.sink.offer(keys[f], distinct);
          if (!now.all) now.limit = now.sink.limit();
        }
      }
    }
  }

  // Asks for the members of groups that will be offered. A list that is not full yet is offered the nearest group
  // first, which may fill it: then the others need not be asked for.
  void expect_groups(const std::int64_t* rows, double limit, double* keys, std::int32_t* at, std::int64_t found) const {
    if (limit < kInfinity || found < 2) {
      for (std::int64_t f = 0; f < found; ++f) candidates_.prefetch_group(rows[at[f]]);
      for (std::int64_t f = 0; f < found; ++f) candidates_.prefetch_members(rows[at[f]]);
      return;
    }
    const auto nearest = std::min_element(keys, keys + found) - keys;
    std::swap(keys[0], keys[nearest]);
    std::swap(at[0], at[nearest]);
    candidates_.prefetch_members(rows[at[0]]);
  }

  // What will be read when the child's turn comes.
  void prefetch(std::int64_t i) const {
    const Tree::Child& child = tree_.child(i);
    const auto* from = static_cast<const char*>(child.size > 0 ? tree_.points(child.at) : tree_.boxes(child.at));
    __builtin_prefetch(from);
    __builtin_prefetch(from + 64);
  }

  // Clause 1: an overflow is an error, but only of a pair that could be neighbors.
  void refuse_overflow(std::int64_t query, std::int64_t distinct) const {
    for (const std::int64_t id : candidates_.members(distinct)) {
      if (!candidates_.eligible(query, id)) continue;
      throw Error(ErrorCode::bad_data, "the distance of query row " + std::to_string(task_.first_query + query) +
                                           " and table row " + std::to_string(task_.first_id + id) +
                                           " overflows float64; scale the data down");
    }
  }

  const Context& ctx_;
  const kernels::NearestTask& task_;
  kernels::NearestResult& result_;
  const Tree& tree_;
  TreeKeys keys_;
  Candidates candidates_;
  Admitted admitted_;
  bool counts_boxes_;                     // a box within the radius as a whole, without keys
  bool grouped_;                          // the table has equal rows
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
  TreeSearch(ctx, task, result).run();
}

std::uint64_t nearest_in_tree_scratch(const Context& /*ctx*/, const kernels::NearestTask& task) {
  const std::int64_t batch = batch_of(task);
  std::uint64_t bytes = static_cast<std::uint64_t>(batch) * (QueryBatch::bytes_a_query(task, {}) + 16 + 24);
  bytes += static_cast<std::uint64_t>(task.index->distinct_rows()) * 2;  // queries counted by panel: see Tree::bytes
  if (task.collect == kernels::Collect::count && task.takes_boxes != kernels::TakesBoxes::never) {
    const auto distinct_rows = static_cast<std::uint64_t>(task.index->distinct_rows());
    bytes += distinct_rows * 8 + child_count_bound(distinct_rows) / kTreeWidth * 8;  // see Admitted
  }
  if (task.queries.is_block_source()) bytes += static_cast<std::uint64_t>(batch * task.queries.cols()) * 8;
  return bytes;
}

}  // namespace vicinal::cpu
