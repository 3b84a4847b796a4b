// How a search goes through batches of queries and through the table (search.hpp): the sample, then block after block.
//
// An index may keep packed rows (packed_table.hpp): then `prepare` is done by the first search alone. What is left of
// a search of few queries is too little to be divided anew for each block. So the table is divided: in a few rounds,
// each of twice as many rows as the one before, workers take parts of the table for all queries, and after a round the
// lists of the parts are joined and limit the next round. Rounds and parts follow from shapes alone, so that the
// statistics are the same for every number of threads.
#include "cpu/nearest/search.hpp"

#include <algorithm>
#include <utility>

#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "cpu/nearest/batch_steps.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/nearest.hpp"

namespace vicinal::cpu {
namespace {

constexpr double kRounds[] = {1.0 / 32, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1};  // shares of the table at their ends

}  // namespace

Search::Search(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result, Collector* given)
    : ctx_(ctx),
      task_(task),
      result_(result),
      simd_(simd_kernels(ctx.isa())),
      d_(task.queries.cols()),
      n_(task.num_compared_rows()),
      types_(screen_types(task, simd_)),
      sizes_(task, simd_, types_),
      splits_rows_(given == nullptr && splits_rows(ctx, task, sizes_, screened())),
      candidates_(task),
      keys_(ctx, task, candidates_),
      bytes_(result.handover != nullptr ? 0 : task.bytes_beside + nearest_scratch(ctx, task)),
      made_(given == nullptr ? make_collector(ctx, task, candidates_, result, bytes_) : nullptr),
      collector_(given == nullptr ? made_.get() : given),
      selective_(collector_->is_selective()),
      workers_(static_cast<std::size_t>(ctx.threads())),
      single_rows_(ranks_single_rows(task, screened())),
      parts_(given == nullptr ? parts_of(task, sizes_) : 0),
      waiting_room_(parts_ > 0 && screened() && !selective_ ? waiting_rows(task, sizes_) : 0),
      ladder_(make_ladder(ctx, task, types_)),
      kept_(types_.size()),
      batch_(task_, simd_, ladder_),
      block_(task_, simd_, std::max(sizes_.block, sizes_.sample), ladder_) {
  all_.collector = collector_;
}

void Search::run() {
  ready_workers();
  for (WorkerScratch& worker : workers_) worker.survived = 0;
  const std::int64_t m = task_.queries.rows();
  BatchSteps steps(sizes_.batch, result_.handover);
  for (std::int64_t begin = 0; begin < m;) {
    const std::int64_t end = std::min(m, begin + steps.next());
    try {
      steps.fitted(end - begin, search_batch(batch_, block_, begin, end));
      begin = end;
    } catch (const kernels::NoRoom&) {
      steps.failed(end - begin);
      for (WorkerScratch& worker : workers_) worker.survived = 0;
    }
  }
  result_.stats.distinct_rows = task_.index->distinct_rows();
}

void Search::ready_to_repeat() {
  ready_workers();
  for (std::size_t s = 0; s < ladder_.size(); ++s) kept(s);
  block_.reserve_screens();
  for (const auto& block : blocks_of_workers_) block->reserve_screens();
}

void Search::give_up() noexcept {
  block_.give_up();
  for (const auto& block : blocks_of_workers_) {
    if (block) block->give_up();
  }
}

void Search::pack() {
  const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
  for (std::size_t s = 0; s < static_cast<std::size_t>(task_.kept_screens); ++s) {
    core::parallel_for(ctx_, blocks, [&](std::int64_t b, int worker) {
      RowBlock block(task_, simd_, sizes_.block, ladder_);
      assign_block(block, b);
      pack_alone(block, 1U << s, workers_[static_cast<std::size_t>(worker)]);
      if (worker == 0) ctx_.report("pack", static_cast<double>(b) / static_cast<double>(blocks));
    });
  }
}

// Takes what each worker will need, whichever of them will work.
void Search::ready_workers() {
  if (is_ready_) return;
  is_ready_ = true;
  if (splits_rows_ && task_.collect == kernels::Collect::k_list) make_row_parts();
  for (WorkerScratch& scratch : workers_) scratch.row.resize(static_cast<std::size_t>(d_));
  if (!screened()) return;
  for (WorkerScratch& scratch : workers_) {
    scratch.survivors.resize(static_cast<std::size_t>(sizes_.group * std::max(sizes_.block, sizes_.sample)));
    scratch.counts.reserve(static_cast<std::size_t>(sizes_.group));
    scratch.thresholds.resize(static_cast<std::size_t>(sizes_.group));
    if (single_rows_ && !block_.borrows()) {
      scratch.elements.resize(static_cast<std::size_t>(chunk_rows_ * block_.element_bytes()));
    }
    if (sizes_.sample > 0) {
      scratch.heap_keys.reserve(static_cast<std::size_t>(task_.k));
      scratch.heap_ids.reserve(static_cast<std::size_t>(task_.k));
    }
  }
  if (parts_ == 0) return;
  parts_of_table_.resize(static_cast<std::size_t>(parts_));
  for (auto& part : parts_of_table_) part = std::make_unique<RowPart>(*this);
  blocks_of_workers_.resize(workers_.size());
  for (auto& block : blocks_of_workers_) {
    block = worker_block(ladder_);
    if (!single_rows_) block->reserve_rows();
  }
  ready_waiting();
}

void Search::make_row_parts() {
  row_parts_.clear();
  if (n_ <= sizes_.block) return;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    auto& part = row_parts_.emplace_back(std::make_unique<RowPart>(*this));
    part->block = worker_block({});
    part->block->reserve_rows();
    part->scratch.resize(static_cast<std::size_t>(d_));
  }
}

std::unique_ptr<RowBlock> Search::worker_block(std::span<const Screen> screens) const {
  return std::make_unique<RowBlock>(task_, simd_, sizes_.block, screens);
}

// Gives a block the rows of that number among the table's blocks, or among those of the rows that are compared.
void Search::assign_block(RowBlock& block, std::int64_t number) const {
  const std::int64_t first = number * sizes_.block;
  const std::int64_t count = std::min(n_ - first, sizes_.block);
  if (task_.some_rows.empty()) return block.assign(first, count);
  block.assign(task_.some_rows.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
}

// The answers of queries [begin, end). Returns the bytes that lists took of the room of a Handover.
std::uint64_t Search::search_batch(QueryBatch& batch, RowBlock& block, std::int64_t begin, std::int64_t end) {
  const std::int64_t m = task_.queries.rows();
  const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
  batch.load(ctx_, begin, end);
  collector_->begin(begin, end);
  seeds_.assign(static_cast<std::size_t>(end - begin), kInfinity);
  all_.weak.assign(static_cast<std::size_t>(end - begin), 0);
  all_.climbs.assign(static_cast<std::size_t>(batch.tiles()), {});
  finer_ = screened() && ladder_[0].finer() != nullptr ? kept(0) : nullptr;
  begin_waiting(batch);
  if (sizes_.sample > 0) {
    // A few rows first: with the limits they give, most of the sample does not survive its own screen.
    const std::int64_t few = std::max<std::int64_t>(256, 4 * task_.k);
    if (few < sizes_.sample) search_sample(batch, block, few, Stage::few);
    search_sample(batch, block, sizes_.sample, few < sizes_.sample ? Stage::sample : Stage::few);
  }
  if (splits_rows_) search_by_rows(batch);
  if (parts_ > 0) search_parts(batch);
  for (std::int64_t b = 0; b < blocks && !splits_rows_ && parts_ == 0; ++b) {
    assign_block(block, b);
    if (selective_ && are_done(batch, 0, batch.size())) break;
    search_block(batch, block, Stage::table);
    const double done = (static_cast<double>(begin) +
                         static_cast<double>(end - begin) * static_cast<double>(b + 1) / static_cast<double>(blocks));
    ctx_.report("search", done / static_cast<double>(m));
  }
  // Long lists take long to sort: few of them are spread over all workers.
  const std::int64_t share = task_.collect == kernels::Collect::radius
                                 ? std::clamp<std::int64_t>((end - begin) / (4 * std::int64_t{ctx_.threads()}), 1, 256)
                                 : 256;
  const auto finish = [&](std::int64_t task, int) {
    const std::int64_t last = std::min(end, begin + (task + 1) * share);
    for (std::int64_t q = begin + task * share; q < last; ++q) {
      ctx_.check_cancelled();
      collector_->finish(q);
    }
  };
  parallel_for((end - begin + share - 1) / share, finish);
  const std::uint64_t found = bytes_.load();
  collector_->end();
  for (const std::uint8_t weak : all_.weak) result_.stats.uncertified += weak;
  for (std::int64_t tile = 0; tile < batch.tiles(); ++tile) {
    if (all_.climbs[tile].level > 0) result_.stats.escalated += queries_of(batch, tile);
  }
  for (WorkerScratch& worker : workers_) result_.stats.survivors += std::exchange(worker.survived, 0);
  return 2 * found;  // and once more as they were taken
}

// Evenly spread rows, in runs so that a block source is not asked for single rows, and that runs are panels that the
// index may keep.
void Search::search_sample(const QueryBatch& batch, RowBlock& block, std::int64_t size, Stage stage) {
  constexpr std::int64_t kRun = kMaxTileRows;
  std::vector<std::int64_t>& rows = sample_rows_;
  rows.clear();
  const std::int64_t runs = (size + kRun - 1) / kRun;
  for (std::int64_t r = 0; r < runs; ++r) {
    const std::int64_t first = r * (n_ / kRun - 1) / std::max<std::int64_t>(runs - 1, 1) * kRun;
    for (std::int64_t i = 0; i < kRun; ++i) {
      if (rows.empty() || rows.back() < first + i) rows.push_back(first + i);
    }
  }
  if (static_cast<std::int64_t>(rows.size()) > size) rows.resize(static_cast<std::size_t>(size));
  block.assign(rows);
  search_block(batch, block, stage);
}

// Where the index keeps the rows of a screen; null where it does not.
KeptRows* Search::kept(std::size_t level) {
  if (level >= static_cast<std::size_t>(task_.kept_screens)) return nullptr;
  const std::scoped_lock lock(kept_mutex_);
  std::shared_ptr<KeptRows>& kept = kept_[level];
  if (!kept) {
    const kernels::PackedKind kind = packed_kind(task_, types_, level, simd_);
    kept = std::static_pointer_cast<KeptRows>(task_.index->packed.get_or_make(
        kind, [&] { return std::make_shared<KeptRows>(kind, ladder_[level], n_, sizes_.block); }));
  }
  return kept.get();
}

// Of the screens named in `levels` (bits), those for which the block is yet to be packed.
unsigned Search::begin_packing(RowBlock& block, unsigned levels) {
  unsigned needed = 0;
  for (std::size_t s = 0; s < ladder_.size(); ++s) {
    if ((levels >> s & 1) != 0 && block.begin_packing(s, kept(s))) needed |= 1U << s;
  }
  return needed;
}

void Search::finish_packing(RowBlock& block, unsigned levels) {
  for (std::size_t s = 0; s < ladder_.size(); ++s) {
    if ((levels >> s & 1) != 0) block.finish_packing(s);
  }
}

void Search::prepare_panel(RowBlock& block, std::int64_t panel, bool rows, unsigned levels, WorkerScratch& scratch) {
  if (rows) block.prepare_panel(panel, scratch.row);
  for (std::size_t s = 0; s < ladder_.size(); ++s) {
    if ((levels >> s & 1) != 0) block.pack_panel(panel, s, scratch.row);
  }
}

// Makes the block ready for keys (once) and for the screens named in `levels`.
void Search::prepare_block(RowBlock& block, bool rows, unsigned levels) {
  if (rows && !single_rows_) block.reserve_rows();
  const unsigned needed = begin_packing(block, levels);
  if (single_rows_ && needed == 0) return;
  const auto prepare = [&](std::int64_t panel, int worker) {
    prepare_panel(block, panel, rows && !single_rows_, needed, workers_[static_cast<std::size_t>(worker)]);
  };
  parallel_for(block.panels(), prepare);
  finish_packing(block, needed);
}

// The same by one worker, without rows for keys.
void Search::pack_alone(RowBlock& block, unsigned levels, WorkerScratch& scratch) {
  const unsigned needed = begin_packing(block, levels);
  for (std::int64_t panel = 0; panel < block.panels() && needed != 0; ++panel) {
    ctx_.check_cancelled();
    prepare_panel(block, panel, false, needed, scratch);
  }
  finish_packing(block, needed);
}

// The table in rounds of parts (see above).
void Search::search_parts(const QueryBatch& batch) {
  const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
  const std::int64_t end = batch.begin() + batch.size();
  for (const auto& part : parts_of_table_) {
    part->pass.collector = part->collector.get();
    part->pass.climbs = all_.climbs;
    part->pass.weak.assign(static_cast<std::size_t>(batch.size()), 0);
  }
  std::int64_t begin_block = 0;
  for (const double share : kRounds) {
    const std::int64_t end_block = share < 1 ? static_cast<std::int64_t>(share * static_cast<double>(blocks)) : blocks;
    const std::int64_t count = end_block - begin_block;
    if (count <= 0) continue;
    const std::int64_t used = std::min(count, parts_);
    const auto search_part = [&](std::int64_t p, int worker) {
      const auto& part = parts_of_table_[static_cast<std::size_t>(p)];
      part->collector->begin(batch.begin(), end);
      const auto& block = blocks_of_workers_[static_cast<std::size_t>(worker)];
      const std::int64_t last = begin_block + (p + 1) * count / used;
      for (std::int64_t b = begin_block + p * count / used; b < last; ++b) {
        assign_block(*block, b);
        search_block_alone(part->pass, batch, *block, workers_[static_cast<std::size_t>(worker)]);
        if (worker == 0) ctx_.report("search", static_cast<double>(b) / static_cast<double>(blocks));
      }
    };
    parallel_for(used, search_part);
    for (std::int64_t p = 0; p < used; ++p) {
      collector_->absorb(*parts_of_table_[static_cast<std::size_t>(p)]->collector);
    }
    for (std::int64_t i = 0; i < batch.size(); ++i) seeds_[i] = limit(batch, i, *collector_);
    if (waits_) count_bounds(batch);
    begin_block = end_block;
  }
  if (waits_) rank_waiting(batch);
  for (const auto& part : parts_of_table_) {
    for (std::size_t i = 0; i < all_.weak.size(); ++i) all_.weak[i] |= part->pass.weak[i];
    for (std::size_t tile = 0; tile < all_.climbs.size(); ++tile) {
      all_.climbs[tile].level = std::max(all_.climbs[tile].level, part->pass.climbs[tile].level);
    }
  }
}

// Each worker ranks blocks of its own for all queries and keeps its own lists, which are joined at the end: the k
// best by (key, id) of the parts' k best are the k best of all, whoever saw which block.
void Search::search_by_rows(const QueryBatch& batch) {
  const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
  if (blocks == 1) {          // nothing to divide, nothing to join
    if (!has_whole_table_) {  // a search that is repeated finds it ready
      block_.assign(0, n_);
      block_.reserve_rows();
      for (std::int64_t p = 0; p < block_.panels(); ++p) block_.prepare_panel(p, workers_[0].row);
      has_whole_table_ = true;
    }
    rank_group(batch, block_, 0, batch.size(), *collector_);
    return;
  }
  const bool stay = task_.collect == kernels::Collect::k_list;  // else they grow, and give back what they took
  if (!stay) make_row_parts();
  for (const auto& part : row_parts_) part->collector->begin(batch.begin(), batch.begin() + batch.size());
  const auto search_rows = [&](std::int64_t b, int worker) {
    const auto& part = row_parts_[static_cast<std::size_t>(worker)];
    assign_block(*part->block, b);
    for (std::int64_t p = 0; p < part->block->panels(); ++p) {
      part->block->prepare_panel(p, part->scratch);
    }
    rank_group(batch, *part->block, 0, batch.size(), *part->collector);
    if (worker == 0) ctx_.report("search", static_cast<double>(b) / static_cast<double>(blocks));
  };
  parallel_for(blocks, search_rows);
  for (const auto& part : row_parts_) collector_->absorb(*part->collector);
  if (!stay) row_parts_.clear();
}

}  // namespace vicinal::cpu
