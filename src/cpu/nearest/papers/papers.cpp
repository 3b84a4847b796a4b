// Which method does what, for batches of queries. See papers.hpp.
#include "cpu/nearest/papers/papers.hpp"

#include <algorithm>
#include <bit>

#include "core/distance.hpp"
#include "core/parallel.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/papers/product.hpp"
#include "cpu/nearest/papers/selection.hpp"

namespace vicinal::cpu {
namespace {

using papers::List;
using papers::Scratch;
using papers::Workspace;

constexpr std::int64_t kPaperBatchBytes = std::int64_t{64} << 20;  // queries of one round
constexpr std::int64_t kTileQueries = 16;                          // of the methods that make keys by tiles
constexpr std::int64_t kTileRows = 1024;

// Queries that a worker has in hand at once.
std::int64_t group_of(const kernels::NearestTask& task, const SimdKernels& simd) {
  const std::int64_t n = task.index->table.rows();
  if (kernels::is_product(task.method)) return simd.tile_queries;
  const bool tiled = task.method == Method::direct_filter || task.method == Method::tiled_insertion;
  return Workspace::group(n, tiled ? kTileQueries : 1);
}

std::int64_t batch_of(const kernels::NearestTask& task, const SimdKernels& simd) {
  const auto bytes = static_cast<std::int64_t>(QueryBatch::bytes_a_query(task, screen_types(task, simd)));
  return std::min(task.queries.rows(), std::max<std::int64_t>(kPaperBatchBytes / bytes, kMaxTileQueries));
}

class Papers {
 public:
  Papers(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result)
      : ctx_(ctx),
        task_(task),
        result_(result),
        method_(task.method),
        scratch_(static_cast<std::size_t>(ctx.threads())) {
    if (method_ == Method::direct_filter) {
      sequence_ = task.index->k_distances.get_or_make(task.metric, task.p, task.k, [&] { return sequence(); });
    }
  }

  void run() {
    Workspace work(ctx_, task_, make_ladder(ctx_, task_, screen_types(task_, simd_kernels(ctx_.isa()))));
    if (method_ == Method::product_timed) method_ = papers::quicker_selection(work, scratch_[0]);
    const std::int64_t m = task_.queries.rows();
    const std::int64_t batch = batch_of(task_, work.simd());
    const std::int64_t group = group_of(task_, work.simd());
    for (std::int64_t begin = 0; begin < m; begin += batch) {
      const std::int64_t end = std::min(m, begin + batch);
      work.load(begin, end);
      std::vector<List> lists;
      for (std::int64_t q = begin; q < end; ++q) {
        lists.push_back({result_.distances.data() + q * task_.k, result_.ids.data() + q * task_.k, task_.k});
      }
      core::parallel_for(ctx_, (end - begin + group - 1) / group, [&](std::int64_t g, int worker) {
        const std::int64_t first = g * group;
        const std::int64_t count = std::min(group, end - begin - first);
        search_group(work, first, count, lists.data(), scratch_[static_cast<std::size_t>(worker)]);
        for (std::int64_t i = first; i < first + count; ++i) finish(lists[static_cast<std::size_t>(i)]);
        if (worker == 0) ctx_.report("search", static_cast<double>(begin + first) / static_cast<double>(m));
      });
    }
    for (const Scratch& scratch : scratch_) {
      result_.stats.selection_seconds += scratch.selection_seconds / ctx_.threads();
    }
    result_.stats.survivors += work.ranked();
    result_.stats.distinct_rows = task_.index->distinct_rows();
  }

 private:
  void search_group(const Workspace& work, std::int64_t first, std::int64_t count, const List* lists,
                    Scratch& scratch) {
    if (kernels::is_product(method_)) {
      return papers::select_from_products(work, method_, first / work.simd().tile_queries, lists, scratch);
    }
    if (method_ == Method::tiled_insertion) return insert_by_tiles(work, first, count, lists, scratch);
    const std::int64_t n = work.n();
    scratch.keys.resize(static_cast<std::size_t>(count * n));
    work.keys_of_tile(first, count, 0, n, scratch.keys.data());
    const papers::SelectionTimer timer(scratch);
    for (std::int64_t q = 0; q < count; ++q) {
      ctx_.check_cancelled();
      const std::span<const double> keys(scratch.keys.data() + q * n, static_cast<std::size_t>(n));
      if (method_ == Method::insertion) {
        papers::SortedList(lists[first + q]).insert(keys, 0);
      } else if (method_ == Method::block_heap) {
        papers::select_by_block_heap(keys, lists[first + q]);
      } else {
        papers::select_by_filter(keys, sequence_->keys, scratch, lists[first + q]);
      }
    }
  }

  // Tiles of keys that stay in the cache are taken in by the lists of their queries, one tile after the other.
  void insert_by_tiles(const Workspace& work, std::int64_t first, std::int64_t count, const List* lists,
                       Scratch& scratch) {
    std::vector<papers::SortedList> sorted;
    for (std::int64_t q = 0; q < count; ++q) sorted.emplace_back(lists[first + q]);
    for (std::int64_t begin = 0; begin < work.n(); begin += kTileRows) {
      const std::int64_t rows = std::min(kTileRows, work.n() - begin);
      scratch.keys.resize(static_cast<std::size_t>(count * rows));
      work.keys_of_tile(first, count, begin, rows, scratch.keys.data());
      const papers::SelectionTimer timer(scratch);
      for (std::int64_t q = 0; q < count; ++q) {
        sorted[static_cast<std::size_t>(q)].insert({scratch.keys.data() + q * rows, static_cast<std::size_t>(rows)},
                                                   begin);
      }
    }
  }

  void finish(const List& list) const {
    for (std::int64_t r = 0; r < list.k; ++r) {
      list.keys[r] = task_.reported(list.keys[r]);
    }
  }

  // A pair of table rows may overflow where no query's does: then there is no sequence.
  [[nodiscard]] std::vector<double> sequence() const {
    try {
      return papers::k_distances(ctx_, task_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      return {};
    }
  }

  const Context& ctx_;
  const kernels::NearestTask& task_;
  kernels::NearestResult& result_;
  Method method_;
  std::vector<Scratch> scratch_;
  std::shared_ptr<const kernels::KDistances> sequence_;
};

}  // namespace

bool paper_serves(Method method, Metric metric, std::int64_t d) {
  return !kernels::is_product(method) || screen_serves(metric, ScreenType::float32, d);
}

void nearest_by_paper(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result) {
  Papers(ctx, task, result).run();
}

std::uint64_t nearest_by_paper_scratch(const Context& ctx, const kernels::NearestTask& task) {
  const SimdKernels& simd = simd_kernels(ctx.isa());
  const std::vector<ScreenType> screens = screen_types(task, simd);
  const auto n = static_cast<std::uint64_t>(task.index->table.rows());
  const auto group = static_cast<std::uint64_t>(group_of(task, simd));
  std::uint64_t a_worker = (group + 2) * n * sizeof(double);
  if (kernels::is_product(task.method)) {
    a_worker = group * n * sizeof(float) + n * (sizeof(double) + sizeof(std::int64_t)) +
               std::bit_ceil(n) * sizeof(papers::Ranked) + group * 64 * kMaxTileRows * sizeof(Survivor);
  }
  std::uint64_t queries = static_cast<std::uint64_t>(batch_of(task, simd));
  if (task.method == Method::direct_filter) queries = std::max<std::uint64_t>(queries, 1024);
  std::uint64_t bytes = RowBlock::bytes(task, task.index->table.rows(), screens) +
                        queries * (QueryBatch::bytes_a_query(task, screens) + sizeof(List)) +
                        static_cast<std::uint64_t>(ctx.threads()) * a_worker;
  if (task.queries.is_block_source()) bytes += queries * static_cast<std::uint64_t>(task.queries.cols()) * 8;
  return bytes;
}

}  // namespace vicinal::cpu
