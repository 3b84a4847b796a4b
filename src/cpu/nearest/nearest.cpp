// The functions of nearest.hpp: one search, a search that is repeated, the packing of rows, and the memory that they
// take. search.hpp has the search itself.
#include "cpu/nearest/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/in_steps.hpp"
#include "core/table_access.hpp"
#include "cpu/nearest/block.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/packed_table.hpp"
#include "cpu/nearest/query_batch.hpp"
#include "cpu/nearest/search.hpp"
#include "cpu/nearest/sizes.hpp"

namespace vicinal::cpu {
namespace {

/// Lists and memory of a search that is repeated.
class Repeated final : public kernels::RepeatedSearch {
 public:
  Repeated(const Context& ctx, const kernels::NearestTask& task)
      : ctx_(ctx),
        task_(task),
        ids_(static_cast<std::size_t>(task.queries.rows() * task.k)),
        distances_(ids_.size()),
        row_(static_cast<std::size_t>(task.queries.cols())),
        result_{ids_, distances_, unused_, unused_, stats_},
        search_(ctx, task, result_, nullptr) {
    search_.ready_to_repeat();
  }

  void run(const kernels::ListMemory& lists, SearchStats& stats) override {
    for (std::int64_t i = 0; i < task_.queries.rows(); ++i) {
      if (i % 64 == 0) ctx_.check_cancelled();
      core::widen_rows(task_.queries, i, i + 1, row_.data());
      for (std::size_t j = 0; j < row_.size(); ++j) {
        if (!std::isfinite(row_[j])) refuse_query(task_.first_query + i, static_cast<std::int64_t>(j));
      }
    }
    stats_ = {};
    try {
      search_.run();
    } catch (...) {
      search_.give_up();
      throw;
    }
    core::copy_in_steps(ctx_, ids_, lists.ids);
    core::copy_in_steps(ctx_, distances_, lists.distances);
    stats = stats_;
  }

 private:
  const Context& ctx_;
  const kernels::NearestTask& task_;
  std::vector<std::int64_t> ids_;
  std::vector<double> distances_;
  std::vector<std::int64_t> unused_;
  std::vector<double> row_;
  SearchStats stats_;
  kernels::NearestResult result_;
  Search search_;
};

}  // namespace

void refuse_query(std::int64_t row, std::int64_t col) {
  throw Error(ErrorCode::bad_data,
              "queries: row " + std::to_string(row) + ", column " + std::to_string(col) + " is not a finite number");
}

std::unique_ptr<kernels::RepeatedSearch> repeated_search(const Context& ctx, const kernels::NearestTask& task) {
  return std::make_unique<Repeated>(ctx, task);
}

std::vector<kernels::PackedNeed> packed_needs(const Context& ctx, const kernels::NearestTask& task) {
  if (task.method != Method::fused || task.index->table.is_block_source()) return {};
  const SimdKernels& simd = simd_kernels(ctx.isa());
  const std::vector<ScreenType> types = screen_types(task, simd);
  const std::int64_t block = Sizes(task, simd, types).block;
  std::vector<kernels::PackedNeed> needs;
  for (std::size_t level = 0; level < types.size(); ++level) {
    const kernels::PackedKind kind = packed_kind(task, types, level, simd);
    const std::int64_t rows = task.index->distinct_rows();
    if (!kind.pruned) {
      needs.push_back({kind, KeptRows::bytes(kind, task.index->table.cols(), 0, rows, block)});
      continue;
    }
    const auto pruning = task.index->packed.pruning(kind.metric);
    needs.push_back({kind, KeptRows::bytes(kind, pruning->columns, pruning->finer_columns, rows, block)});
  }
  return needs;
}

void pack_rows(const Context& ctx, const kernels::NearestTask& task) {
  std::vector<std::int64_t> unused;
  std::vector<double> none;
  SearchStats stats;
  kernels::NearestResult result{unused, none, unused, unused, stats};
  Search(ctx, task, result, nullptr).pack();
}

void nearest(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result) {
  Search(ctx, task, result, nullptr).run();
}

void nearest(const Context& ctx, const kernels::NearestTask& task, Collector& collector, SearchStats& stats) {
  std::vector<std::int64_t> unused;
  std::vector<double> none;
  kernels::NearestResult result{unused, none, unused, unused, stats};
  Search(ctx, task, result, &collector).run();
}

std::uint64_t nearest_scratch(const Context& ctx, const kernels::NearestTask& task) {
  const SimdKernels& simd = simd_kernels(ctx.isa());
  const std::vector<ScreenType> screens = screen_types(task, simd);
  const Sizes sizes(task, simd, screens);
  const std::int64_t block = std::max(sizes.block, sizes.sample);
  std::uint64_t bytes = RowBlock::bytes(task, block, screens);
  if (const std::int64_t parts = parts_of(task, sizes); parts > 0) {  // lists of each part, a block of each worker
    const auto of_part =
        static_cast<std::uint64_t>(task.queries.rows()) * (static_cast<std::uint64_t>(task.k) * 16 + 64);
    bytes += static_cast<std::uint64_t>(parts) * of_part;
    bytes += static_cast<std::uint64_t>(ctx.threads()) * RowBlock::bytes(task, sizes.block, screens);
    if (!screens.empty()) bytes += waiting_bytes(task, sizes);
  }
  if (ranks_single_rows(task, !screens.empty()) && !RowReading::of(task.index->table, task.metric).borrow) {
    const std::int64_t row = task.queries.cols() * 8;
    bytes += static_cast<std::uint64_t>(ctx.threads()) * static_cast<std::uint64_t>(std::max(kChunkBytes, row) + row);
  }
  bytes += static_cast<std::uint64_t>(sizes.batch) * (QueryBatch::bytes_a_query(task, screens) + 32);
  if (splits_rows(ctx, task, sizes, !screens.empty())) {  // a block and lists of each worker's own
    const auto lists = static_cast<std::uint64_t>(task.queries.rows() * (task.k + 1)) * 16;
    bytes += static_cast<std::uint64_t>(ctx.threads()) * (lists + RowBlock::bytes(task, sizes.block, {}));
  }
  if (task.queries.is_block_source()) bytes += static_cast<std::uint64_t>(sizes.batch * task.queries.cols()) * 8;
  if (!screens.empty())
    bytes += static_cast<std::uint64_t>(ctx.threads()) * static_cast<std::uint64_t>(sizes.group * block) * 8;
  return bytes;
}

}  // namespace vicinal::cpu
