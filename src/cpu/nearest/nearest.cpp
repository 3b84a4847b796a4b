// The CPU's exact search (contract clauses 1 to 5 and 7). For a batch of queries, for each block of table rows:
//   prepare  the block's rows are packed in a screen's type around a center, with their error terms (block.hpp);
//   screen   tiles of products in registers, tested against per-query thresholds as they are finished (simd/), so no
//            product is ever written; what survives goes to a buffer with one slot a row, which cannot overflow;
//   ladder   where too much survives, the tile's queries meet the block again in the next finer screen, and stay with
//            it if that helped;
//   finish   survivors are ranked by the float64 key and offered to the collector, whose limit tightens the next
//   threshold.
// A sample of rows first gives every query a limit, so that sorted tables do not defeat it. Whatever the screen lets
// through is decided by the key: a weak bound costs time, never an answer. Method `direct` skips the screen: every row
// is ranked. O(m n d) time; scratch O(batch d + block d), never m x n.
//
// An index may keep packed rows (packed_table.hpp): then `prepare` is done by the first search alone. What is left of
// a search of few queries is too little to be divided anew for each block. So the table is divided: in a few rounds,
// each of twice as many rows as the one before, workers take parts of the table for all queries, and after a round the
// lists of the parts are joined and limit the next round. Rounds and parts follow from shapes alone, so that the
// statistics are the same for every number of threads.
#include "cpu/nearest/nearest.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/context_state.hpp"
#include "core/in_steps.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "core/table_access.hpp"
#include "cpu/nearest/batch_steps.hpp"
#include "cpu/nearest/block.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/keys.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/packed_table.hpp"
#include "cpu/nearest/query_batch.hpp"
#include "cpu/nearest/screen.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kBatchBytes = std::int64_t{64} << 20;  // queries of one round
constexpr std::int64_t kPanelBytes = std::int64_t{16} << 20;  // packed rows of one block
constexpr std::int64_t kLargestBlock = 2048;
constexpr std::int64_t kLargestSample = 16384;
constexpr std::int64_t kAlone = 1 << 17;  // columns ranked, some 30 microseconds
constexpr std::int64_t kGroupTiles = 4;   // tiles of queries of one parallel task
// Cycles a product of a row's and a query's column takes in each screen, roughly, where it is native.
constexpr double kCyclesAProduct[kScreens] = {1.0 / 32, 1.0 / 45, 1.0 / 128};
constexpr double kCyclesByPairs = 1.0 / 36;  // of int8 without an instruction of its own
constexpr double kCyclesAByte = 0.25;        // of memory that is read in order, a core
constexpr std::int64_t kAheadBytes = 1024;   // of a row; what follows is read in order
constexpr double kPrunedPatience = 4;
constexpr std::int64_t kEarlyShare = 8;  // of the table, where limits are not yet near their end
constexpr double kFindBytes = 512;       // as many take as long as finding a row
constexpr std::int64_t kKeyChunk = 64;   // rows ranked in one call: their keys stay in registers and L1
constexpr std::int64_t kChunkBytes = std::int64_t{256} << 10;  // of such rows that are materialised for it
constexpr std::int64_t kMostParts = 64;                        // of a round
constexpr std::int64_t kPartLists = std::int64_t{32} << 20;    // bytes of the lists of all parts
constexpr std::int64_t kFewestBlocks = 8;                      // of a table that is divided into parts
constexpr double kRounds[] = {1.0 / 32, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1};  // shares of the table at their ends

bool has_limit_from_sample(const kernels::NearestTask& task) {
  return task.collect == kernels::Collect::k_list;
}

// Sizes that follow from the task alone, so that nothing about the machine can show in a statistic.
struct Sizes {
  std::int64_t block;   // rows of a block
  std::int64_t batch;   // queries of a round
  std::int64_t group;   // queries of a parallel task
  std::int64_t sample;  // rows of the sample; 0: none

  Sizes(const kernels::NearestTask& task, const SimdKernels& simd, const std::vector<ScreenType>& screens) {
    const bool screened = !screens.empty();
    const std::int64_t n = task.index->distinct_rows();
    const std::int64_t m = task.queries.rows();
    const std::int64_t d = task.queries.cols();
    const std::int64_t quantum = kMaxTileRows;
    const std::int64_t fitting = std::clamp(kPanelBytes / (4 * d), std::int64_t{64}, kLargestBlock);
    block = std::clamp(n / 8, std::int64_t{64}, fitting) / quantum * quantum;
    // What is done before another thread is awake is not divided.
    if (!screened && m <= kAlone / (n * (d + 8))) block = (std::min(n, fitting) + quantum - 1) / quantum * quantum;
    if (task.metric == Metric::minkowski) block = 64;  // a power costs a hundred products: short tasks stay cancellable
    const auto per_query = static_cast<std::int64_t>(QueryBatch::bytes_a_query(task, screens));
    batch = std::min(m, std::max(kBatchBytes / per_query, std::int64_t{kMaxTileQueries}));
    if (task.collect != kernels::Collect::k_list) batch = std::min<std::int64_t>(batch, 4096);
    const std::int64_t tile = simd.tile_queries;
    group = d <= 4096 && m >= 16 * tile ? kGroupTiles * tile : tile;
    if (task.metric == Metric::minkowski) group = 4;
    sample = std::max({std::int64_t{256}, 4 * task.k, std::min(n / 64, kLargestSample)});
    if (!screened || !has_limit_from_sample(task) || sample > n / 4) sample = 0;
  }
};

// Too few queries to keep every worker busy: the table is divided among them instead.
bool splits_rows(const Context& ctx, const kernels::NearestTask& task, const Sizes& sizes, bool screened) {
  const std::int64_t m = task.queries.rows();
  return !screened && !task.index->table.is_block_source() && m <= sizes.batch && m < 2 * sizes.group * ctx.threads();
}

// What one worker needs for one group of queries.
struct WorkerScratch {
  core::RawVector<Survivor> survivors;  // [group, block]
  std::vector<std::int32_t> counts;
  std::vector<Threshold> thresholds;
  std::vector<double> row;          // one row on its way into a panel
  std::vector<std::byte> elements;  // rows of a chunk that are materialised for their keys
  std::vector<double> heap_keys;
  std::vector<std::int64_t> heap_ids;
  std::int64_t survived = 0;
};

// Of keys that read the table's memory, rows are found when they are ranked. Others are made from the table: all rows
// of a block beforehand, or where few of them will be ranked, each as it is.
bool ranks_single_rows(const kernels::NearestTask& task, bool screened) {
  constexpr std::int64_t kRanked = 256;  // rows of the table that a query ranks, about
  if (!screened || task.index->table.is_block_source()) return false;
  if (RowReading::of(task.index->table, task.metric).borrow) return true;
  return task.kept_screens > 0 && task.queries.rows() <= task.index->distinct_rows() / kRanked;
}

// Whether parts of the table are searched for all queries (`task` keeps packed rows), by how many at once.
std::int64_t parts_of(const kernels::NearestTask& task, const Sizes& sizes) {
  const std::int64_t blocks = (task.index->distinct_rows() + sizes.block - 1) / sizes.block;
  const bool lists = task.collect == kernels::Collect::k_list && task.queries.rows() <= sizes.batch &&
                     task.k <= kPartLists / 16 / kMostParts / task.queries.rows();
  return task.kept_screens > 0 && lists && blocks >= kFewestBlocks ? std::min(blocks, kMostParts) : 0;
}

class Search {
 public:
  /// `given`: the caller's collector; null: the one that the task names.
  Search(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result, Collector* given)
      : ctx_(ctx),
        task_(task),
        result_(result),
        simd_(simd_kernels(ctx.isa())),
        d_(task.queries.cols()),
        n_(task.index->distinct_rows()),
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
        ladder_(make_ladder(ctx, task, types_)),
        kept_(types_.size()),
        batch_(task_, simd_, ladder_),
        block_(task_, simd_, std::max(sizes_.block, sizes_.sample), ladder_) {
    all_.collector = collector_;
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// May be called again, when the task has other queries, as many: then it takes no memory.
  void run() {
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
    result_.stats.distinct_rows = n_;
  }

  /// Takes what `run` may need, whatever the queries: also the memory of screens that they may climb to.
  void ready_to_repeat() {
    ready_workers();
    for (std::size_t s = 0; s < ladder_.size(); ++s) kept(s);
    block_.reserve_screens();
    for (const auto& block : blocks_of_workers_) block->reserve_screens();
  }

  /// After `run` has thrown: others may pack the blocks that it has claimed.
  void give_up() noexcept {
    block_.give_up();
    for (const auto& block : blocks_of_workers_) {
      if (block) block->give_up();
    }
  }

  /// Packs all rows for the screens that the task keeps.
  void pack() {
    const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
    for (std::size_t s = 0; s < static_cast<std::size_t>(task_.kept_screens); ++s) {
      core::parallel_for(ctx_, blocks, [&](std::int64_t b, int worker) {
        RowBlock block(task_, simd_, sizes_.block, ladder_);
        const std::int64_t first = b * sizes_.block;
        block.assign(first, std::min(n_, first + sizes_.block) - first);
        pack_alone(block, 1U << s, workers_[static_cast<std::size_t>(worker)]);
        if (worker == 0) ctx_.report("pack", static_cast<double>(b) / static_cast<double>(blocks));
      });
    }
  }

 private:
  // What a block of rows is for: a limit from a few rows, before which nothing is known; a better one from the whole
  // sample; the answer.
  enum class Stage : std::uint8_t { few, sample, table };

  // Where the queries of a tile stand on the ladder.
  struct Climb {
    std::uint8_t level = 0;                  // the screen they use
    std::uint8_t first = 0;                  // the one that met the present block first
    bool pending = false;                    // to meet the present block again, one level up
    bool settled = false;                    // the level was chosen by trial ...
    int blocks_left = 0;                     // ... and stays for so many blocks
    int patience = 8;                        // blocks until the next trial, then twice as many
    std::int64_t passed[kScreens + 1] = {};  // survivors of the present block at each level tried
  };

  // One way through the table, or through a part of it, for all queries of a batch.
  struct Pass {
    Collector* collector = nullptr;
    std::vector<Climb> climbs;       // [tiles of the batch]
    std::vector<std::uint8_t> weak;  // [batch] the screen kept more than a quarter of some block
  };

  // Lists of some of the table's rows, for all queries.
  struct RowPart {
    explicit RowPart(Search& search) {
      ids.resize(search.result_.ids.size());
      distances.resize(search.result_.distances.size());
      counts.resize(search.result_.counts.size());
      result.handover = search.result_.handover;
      collector = make_collector(search.ctx_, search.task_, search.candidates_, result, search.bytes_);
    }
    std::vector<std::int64_t> ids, offsets, counts;
    std::vector<double> distances;
    SearchStats stats;
    kernels::NearestResult result{ids, distances, offsets, counts, stats};
    std::unique_ptr<Collector> collector;
    Pass pass;                        // of a search by screens
    std::unique_ptr<RowBlock> block;  // of one without
    std::vector<double> scratch;
  };

  [[nodiscard]] bool screened() const { return !types_.empty(); }

  // Takes what each worker will need, whichever of them will work.
  void ready_workers() {
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
  }
  void make_row_parts() {
    row_parts_.clear();
    if (n_ <= sizes_.block) return;
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      auto& part = row_parts_.emplace_back(std::make_unique<RowPart>(*this));
      part->block = worker_block({});
      part->block->reserve_rows();
      part->scratch.resize(static_cast<std::size_t>(d_));
    }
  }
  [[nodiscard]] std::unique_ptr<RowBlock> worker_block(std::span<const Screen> screens) const {
    return std::make_unique<RowBlock>(task_, simd_, sizes_.block, screens);
  }

  // The answers of queries [begin, end). Returns the bytes that lists took of the room of a Handover.
  std::uint64_t search_batch(QueryBatch& batch, RowBlock& block, std::int64_t begin, std::int64_t end) {
    const std::int64_t m = task_.queries.rows();
    const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
    batch.load(ctx_, begin, end);
    collector_->begin(begin, end);
    seeds_.assign(static_cast<std::size_t>(end - begin), kInfinity);
    all_.weak.assign(static_cast<std::size_t>(end - begin), 0);
    all_.climbs.assign(static_cast<std::size_t>(batch.tiles()), {});
    if (sizes_.sample > 0) {
      // A few rows first: with the limits they give, most of the sample does not survive its own screen.
      const std::int64_t few = std::max<std::int64_t>(256, 4 * task_.k);
      if (few < sizes_.sample) search_sample(batch, block, few, Stage::few);
      search_sample(batch, block, sizes_.sample, few < sizes_.sample ? Stage::sample : Stage::few);
    }
    if (splits_rows_) search_by_rows(batch);
    if (parts_ > 0) search_parts(batch);
    for (std::int64_t b = 0; b < blocks && !splits_rows_ && parts_ == 0; ++b) {
      const std::int64_t first = b * sizes_.block;
      block.assign(first, std::min(n_, first + sizes_.block) - first);
      if (selective_ && are_done(batch, 0, batch.size())) break;
      search_block(batch, block, Stage::table);
      const double done = (static_cast<double>(begin) +
                           static_cast<double>(end - begin) * static_cast<double>(b + 1) / static_cast<double>(blocks));
      ctx_.report("search", done / static_cast<double>(m));
    }
    // Long lists take long to sort: few of them are spread over all workers.
    const std::int64_t share =
        task_.collect == kernels::Collect::radius
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
  [[nodiscard]] std::int64_t queries_of(const QueryBatch& batch, std::int64_t tile) const {
    return std::min<std::int64_t>(simd_.tile_queries, batch.size() - tile * simd_.tile_queries);
  }

  // Evenly spread rows, in runs so that a block source is not asked for single rows, and that runs are panels that the
  // index may keep.
  void search_sample(const QueryBatch& batch, RowBlock& block, std::int64_t size, Stage stage) {
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
  KeptRows* kept(std::size_t level) {
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
  unsigned begin_packing(RowBlock& block, unsigned levels) {
    unsigned needed = 0;
    for (std::size_t s = 0; s < ladder_.size(); ++s) {
      if ((levels >> s & 1) != 0 && block.begin_packing(s, kept(s))) needed |= 1U << s;
    }
    return needed;
  }
  void finish_packing(RowBlock& block, unsigned levels) {
    for (std::size_t s = 0; s < ladder_.size(); ++s) {
      if ((levels >> s & 1) != 0) block.finish_packing(s);
    }
  }
  void prepare_panel(RowBlock& block, std::int64_t panel, bool rows, unsigned levels, WorkerScratch& scratch) {
    if (rows) block.prepare_panel(panel, scratch.row);
    for (std::size_t s = 0; s < ladder_.size(); ++s) {
      if ((levels >> s & 1) != 0) block.pack_panel(panel, s, scratch.row);
    }
  }

  // Makes the block ready for keys (once) and for the screens named in `levels`.
  void prepare_block(RowBlock& block, bool rows, unsigned levels) {
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
  void pack_alone(RowBlock& block, unsigned levels, WorkerScratch& scratch) {
    const unsigned needed = begin_packing(block, levels);
    for (std::int64_t panel = 0; panel < block.panels() && needed != 0; ++panel) {
      ctx_.check_cancelled();
      prepare_panel(block, panel, false, needed, scratch);
    }
    finish_packing(block, needed);
  }

  void search_block(const QueryBatch& batch, RowBlock& block, Stage stage) {
    if (!screened()) {
      prepare_block(block, true, 0);
      const std::int64_t groups = (batch.size() + sizes_.group - 1) / sizes_.group;
      const auto rank_groups = [&](std::int64_t g, int /*worker*/) {
        const std::int64_t first = g * sizes_.group;
        rank_group(batch, block, first, std::min(sizes_.group, batch.size() - first), *collector_);
      };
      parallel_for(groups, rank_groups);
      return;
    }
    unsigned packed = first_levels(all_, stage);
    prepare_block(block, true, packed);
    screen_block(batch, block, stage, false);
    while (const unsigned wanted = next_levels(all_)) {
      prepare_block(block, false, wanted & ~packed);
      packed |= wanted;
      screen_block(batch, block, stage, true);
    }
  }

  // The screens (bits) that tiles meet the next block with.
  static unsigned first_levels(Pass& pass, Stage stage) {
    unsigned levels = 0;
    for (Climb& climb : pass.climbs) {
      if (stage == Stage::table && climb.blocks_left > 0 && --climb.blocks_left == 0) {
        climb.level = 0;
        climb.settled = false;
      }
      levels |= 1U << climb.level;
    }
    return levels;
  }
  // Those that pending tiles meet the present block with.
  static unsigned next_levels(Pass& pass) {
    unsigned levels = 0;
    for (Climb& climb : pass.climbs) {
      if (climb.pending) levels |= 1U << ++climb.level;
    }
    return levels;
  }

  // Tiles of queries that meet a block together, and how many times so many there are.
  [[nodiscard]] std::int64_t group_tiles() const { return sizes_.group / simd_.tile_queries; }
  [[nodiscard]] std::int64_t groups_of(const QueryBatch& batch) const {
    return (batch.tiles() + group_tiles() - 1) / group_tiles();
  }

  // Every tile of queries, or those that are pending, against the block.
  void screen_block(const QueryBatch& batch, const RowBlock& block, Stage stage, bool pending) {
    const auto screen = [&](std::int64_t g, int worker) {
      screen_group(all_, batch, block, stage, pending, g, workers_[static_cast<std::size_t>(worker)]);
    };
    parallel_for(groups_of(batch), screen);
  }
  void screen_group(Pass& pass, const QueryBatch& batch, const RowBlock& block, Stage stage, bool pending,
                    std::int64_t group, WorkerScratch& scratch) {
    const std::int64_t first = group * group_tiles();
    const std::int64_t last = std::min(batch.tiles(), first + group_tiles());
    std::int64_t active[kGroupTiles];
    std::int64_t count = 0;
    for (std::int64_t tile = first; tile < last; ++tile) {
      if (pass.climbs[tile].pending != pending) continue;
      const std::int64_t query = tile * simd_.tile_queries;
      if (selective_ && !pending && are_done(batch, query, queries_of(batch, tile))) continue;
      active[count++] = tile;
    }
    if (count == 0) return;
    screen_tiles(pass, batch, block, {active, static_cast<std::size_t>(count)}, scratch);
    for (std::int64_t s = 0; s < count; ++s) {
      const int level = pass.climbs[active[s]].level;
      if (stage != Stage::few && climbs(pass, batch, block, active[s], s, stage, scratch)) continue;
      const std::int64_t query = active[s] * simd_.tile_queries;
      for (std::int64_t i = 0; i < queries_of(batch, active[s]); ++i) {
        finish_query(pass, batch, block, level, query + i, s * simd_.tile_queries + i, stage, scratch);
      }
    }
  }

  // Every query against one block, by one worker.
  void search_block_alone(Pass& pass, const QueryBatch& batch, RowBlock& block, WorkerScratch& scratch) {
    unsigned packed = first_levels(pass, Stage::table);
    bool pending = false;
    for (unsigned wanted = packed; wanted != 0; wanted = next_levels(pass)) {
      if (!single_rows_ && !pending) {
        block.reserve_rows();
        for (std::int64_t panel = 0; panel < block.panels(); ++panel) block.prepare_panel(panel, scratch.row);
      }
      pack_alone(block, pending ? wanted & ~packed : wanted, scratch);
      packed |= wanted;
      for (std::int64_t g = 0; g < groups_of(batch); ++g) {
        screen_group(pass, batch, block, Stage::table, pending, g, scratch);
      }
      pending = true;
    }
  }

  // The table in rounds of parts (see above).
  void search_parts(const QueryBatch& batch) {
    const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
    const std::int64_t end = batch.begin() + batch.size();
    for (const auto& part : parts_of_table_) {
      part->pass.collector = part->collector.get();
      part->pass.climbs = all_.climbs;
      part->pass.weak.assign(static_cast<std::size_t>(batch.size()), 0);
    }
    std::int64_t begin_block = 0;
    for (const double share : kRounds) {
      const std::int64_t end_block =
          share < 1 ? static_cast<std::int64_t>(share * static_cast<double>(blocks)) : blocks;
      const std::int64_t count = end_block - begin_block;
      if (count <= 0) continue;
      const std::int64_t used = std::min(count, parts_);
      const auto search_part = [&](std::int64_t p, int worker) {
        const auto& part = parts_of_table_[static_cast<std::size_t>(p)];
        part->collector->begin(batch.begin(), end);
        const auto& block = blocks_of_workers_[static_cast<std::size_t>(worker)];
        const std::int64_t last = begin_block + (p + 1) * count / used;
        for (std::int64_t b = begin_block + p * count / used; b < last; ++b) {
          const std::int64_t first = b * sizes_.block;
          block->assign(first, std::min(n_, first + sizes_.block) - first);
          search_block_alone(part->pass, batch, *block, workers_[static_cast<std::size_t>(worker)]);
          if (worker == 0) ctx_.report("search", static_cast<double>(b) / static_cast<double>(blocks));
        }
      };
      parallel_for(used, search_part);
      for (std::int64_t p = 0; p < used; ++p) {
        collector_->absorb(*parts_of_table_[static_cast<std::size_t>(p)]->collector);
      }
      for (std::int64_t i = 0; i < batch.size(); ++i) seeds_[i] = limit(batch, i, *collector_);
      begin_block = end_block;
    }
    for (const auto& part : parts_of_table_) {
      for (std::size_t i = 0; i < all_.weak.size(); ++i) all_.weak[i] |= part->pass.weak[i];
      for (std::size_t tile = 0; tile < all_.climbs.size(); ++tile) {
        all_.climbs[tile].level = std::max(all_.climbs[tile].level, part->pass.climbs[tile].level);
      }
    }
  }

  // Decides whether a tile meets the block again one level up: when ranking what survived costs more than a finer
  // screen would. Of the levels tried the cheapest serves the next blocks. Limits tighten as blocks go by, so after a
  // while the tile starts at the bottom again, at ever longer intervals.
  bool climbs(Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t tile, std::int64_t slot,
              Stage stage, const WorkerScratch& scratch) {
    Climb& climb = pass.climbs[tile];
    const std::int64_t queries = queries_of(batch, tile);
    std::int64_t survivors = 0;
    for (std::int64_t i = 0; i < queries; ++i) survivors += scratch.counts[slot * simd_.tile_queries + i];
    if (!climb.pending) climb.first = climb.level;
    climb.passed[climb.level] = survivors;
    const auto d = static_cast<double>(d_);
    const auto size = static_cast<double>(block.size());
    // Few queries wait for memory: of pruned rows that counts, too.
    const double per_byte = task_.pruned ? kCyclesAByte : 0;
    const double shared = per_byte / static_cast<double>(batch.tiles());
    const double each = 30 + d / 2 + per_byte * (kFindBytes + static_cast<double>(block.element_bytes()));
    const auto screen_cost = [&](int level) {
      const auto columns = static_cast<double>(ladder_[level].columns());
      const int type = screen_index(types_[level]);
      const bool by_pairs = types_[level] == ScreenType::int8 && !simd_.quick[type];
      return static_cast<double>(queries) * size * columns * (by_pairs ? kCyclesByPairs : kCyclesAProduct[type]) +
             size * static_cast<double>(ladder_[level].row_bytes()) * shared;
    };
    const auto rank_cost = [&](int level) { return static_cast<double>(climb.passed[level]) * each; };
    const bool finest = climb.level + 1 == static_cast<int>(types_.size());
    // Of a sample only the best are ranked: there a screen has failed when it tells next to nothing apart.
    const auto failed = [&] {
      if (stage == Stage::sample) return survivors > queries * block.size() / 2;
      // Pruned rows were chosen because a sample says that they pay: what the first limits leave is no reason to read
      // all columns.
      const bool is_early = kEarlyShare * block.distinct(0) < n_;
      const double patience = task_.pruned && climb.level == 0 && is_early ? kPrunedPatience : 1;
      return rank_cost(climb.level) > patience * screen_cost(climb.level + 1);
    };
    if (!finest && !climb.settled && failed()) {
      climb.pending = true;
      return true;
    }
    if (!climb.pending) return false;
    climb.pending = false;
    climb.settled = true;
    climb.blocks_left = climb.patience;
    climb.patience = std::min(2 * climb.patience, 1 << 20);
    const auto cost = [&](int level) { return screen_cost(level) + rank_cost(level); };
    int best = climb.level;
    for (int level = climb.first; level < climb.level; ++level) {
      if (cost(level) < cost(best)) best = level;
    }
    climb.level = static_cast<std::uint8_t>(best);
    return false;
  }

  // Each worker ranks blocks of its own for all queries and keeps its own lists, which are joined at the end: the k
  // best by (key, id) of the parts' k best are the k best of all, whoever saw which block.
  void search_by_rows(const QueryBatch& batch) {
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
      const std::int64_t first = b * sizes_.block;
      part->block->assign(first, std::min(n_, first + sizes_.block) - first);
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

  // core::parallel_for by a reference to the body, which needs no memory.
  template <class Body>
  void parallel_for(std::int64_t tasks, const Body& body) {
    core::parallel_for(ctx_, tasks, std::cref(body));
  }

  // The smallest key known to bound the answer; infinity while nothing is known.
  [[nodiscard]] double limit(const QueryBatch& batch, std::int64_t i, const Collector& collector) const {
    return std::min(seeds_[i], collector.limit(batch.begin() + i));
  }

  // Whether no row can change the answers of `count` queries from batch.begin() + first on.
  [[nodiscard]] bool are_done(const QueryBatch& batch, std::int64_t first, std::int64_t count) const {
    for (std::int64_t i = first; i < first + count; ++i) {
      if (collector_->limit(batch.begin() + i) > -kInfinity) return false;
    }
    return true;
  }

  [[nodiscard]] Threshold threshold(const Pass& pass, const QueryBatch& batch, const RowBlock& block, int level,
                                    std::int64_t i) const {
    const double key = limit(batch, i, *pass.collector);
    if (selective_ && key == -kInfinity) return {0, 0, std::numeric_limits<float>::max()};  // nothing passes
    // The screen works on sums of squares: of a cosine key, twice the key.
    return ladder_[level].threshold(batch.terms(level, i), task_.metric == Metric::cosine ? 2 * key : key,
                                    block.packed(level).typical_norm);
  }

  // The operands of one tile's thresholds, as the kernels want them.
  struct TileLimits {
    float a[kMaxTileQueries];
    float b[kMaxTileQueries];
    float threshold[kMaxTileQueries];
    std::int32_t least[kMaxTileQueries];
  };

  // Fills a tile's limits; `used` [tile_queries] keeps what the scores are formed with.
  TileLimits limits(const Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t tile,
                    Threshold* used) const {
    TileLimits limits{};
    const int level = pass.climbs[tile].level;
    const std::int64_t queries = queries_of(batch, tile);
    double a = 0;
    double b = 0;
    for (std::int64_t i = 0; i < queries; ++i) {
      used[i] = threshold(pass, batch, block, level, tile * simd_.tile_queries + i);
      limits.a[i] = static_cast<float>(used[i].a);
      limits.b[i] = static_cast<float>(used[i].b);
      limits.threshold[i] = static_cast<float>(used[i].t);
      a = std::max(a, used[i].a);
      b = std::max(b, used[i].b);
    }
    if (types_[level] != ScreenType::int8) return limits;
    const PackedRows& packed = block.packed(level);
    for (std::int64_t i = 0; i < queries; ++i) {
      limits.least[i] = integer_threshold(used[i], a, b, packed.least_rho, packed.least_kappa);
      used[i].a = a;
      used[i].b = b;
    }
    limits.a[0] = round_up(a * (1 + 0x1p-20));
    limits.b[0] = round_up(b * (1 + 0x1p-20));
    return limits;
  }

  // Screens the block for some tiles; the survivors of tiles[s] go to the slots from s * tile_queries.
  void screen_tiles(const Pass& pass, const QueryBatch& batch, const RowBlock& block,
                    std::span<const std::int64_t> tiles, WorkerScratch& scratch) {
    const std::int64_t capacity = std::max(sizes_.block, sizes_.sample);
    const std::int64_t width = simd_.tile_queries;
    scratch.survivors.resize(static_cast<std::size_t>(sizes_.group * capacity));
    scratch.counts.assign(static_cast<std::size_t>(sizes_.group), 0);
    scratch.thresholds.resize(static_cast<std::size_t>(sizes_.group));
    TileLimits none{};
    std::fill(std::begin(none.threshold), std::end(none.threshold), -std::numeric_limits<float>::infinity());
    std::fill(std::begin(none.least), std::end(none.least), std::numeric_limits<std::int32_t>::min());
    const bool fused = core::ContextAccess::ablation(ctx_) != core::Ablation::fusion;
    TileLimits all[kGroupTiles];
    // What stays the same for all rows is put down once: with few columns a product takes no longer than that does.
    ScreenTile passes[kGroupTiles];
    for (std::size_t s = 0; s < tiles.size(); ++s) {
      const std::int64_t slot = static_cast<std::int64_t>(s) * width;
      const int level = pass.climbs[tiles[s]].level;
      all[s] = limits(pass, batch, block, tiles[s], scratch.thresholds.data() + slot);
      ScreenTile& tile = passes[s];
      tile = {};
      tile.queries = batch.panel(level, tiles[s]);
      tile.a = all[s].a;
      tile.b = all[s].b;
      tile.threshold = fused ? all[s].threshold : none.threshold;
      tile.least = fused ? all[s].least : none.least;
      tile.words = ladder_[level].row_bytes() / 4;
      tile.valid_queries = static_cast<std::int32_t>(queries_of(batch, tiles[s]));
      tile.survivors = scratch.survivors.data() + slot * capacity;
      tile.capacity = capacity;
      tile.counts = scratch.counts.data() + slot;
    }
    for (std::int64_t p = 0; p < block.panels(); ++p) {
      ctx_.check_cancelled();
      const std::int64_t row = p * simd_.tile_rows;
      for (std::size_t s = 0; s < tiles.size(); ++s) {
        const int level = pass.climbs[tiles[s]].level;
        const PackedRows& packed = block.packed(level);
        ScreenTile& tile = passes[s];
        tile.rows = packed.panels + row * 4 * tile.words;
        tile.start = packed.start != nullptr ? packed.start + row : nullptr;
        tile.base = packed.base != nullptr ? packed.base + row : nullptr;
        tile.rho = packed.rho + row;
        tile.kappa = packed.kappa + row;
        tile.valid_rows = static_cast<std::int32_t>(std::min<std::int64_t>(simd_.tile_rows, block.size() - row));
        tile.first_row = static_cast<std::uint32_t>(row);
        simd_.screens[screen_index(types_[level])](tile);
      }
    }
    if (fused) return;
    for (std::size_t s = 0; s < tiles.size(); ++s) {
      const bool integer = types_[pass.climbs[tiles[s]].level] == ScreenType::int8;
      for (std::int64_t q = 0; q < queries_of(batch, tiles[s]); ++q) {
        const std::int64_t slot = static_cast<std::int64_t>(s) * width + q;
        const double least = integer ? least_score(all[s].least[q]) : all[s].threshold[q];
        Survivor* begin = scratch.survivors.data() + slot * capacity;
        const auto dropped = [least](const Survivor& x) { return static_cast<double>(x.score) < least; };
        scratch.counts[slot] =
            static_cast<std::int32_t>(std::remove_if(begin, begin + scratch.counts[slot], dropped) - begin);
      }
    }
  }

  // Ranks the survivors of query first + i. Many survivors: the best by score are ranked first, and what the tightened
  // threshold drops is not ranked at all.
  void finish_query(Pass& pass, const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                    std::int64_t slot, Stage stage, WorkerScratch& scratch) {
    const std::int64_t capacity = std::max(sizes_.block, sizes_.sample);
    Survivor* survivors = scratch.survivors.data() + slot * capacity;
    std::int64_t count = scratch.counts[slot];
    if (stage != Stage::table) {
      seed_query(batch, block, level, i, survivors, count, scratch);
      return;
    }
    if (selective_ && pass.collector->limit(batch.begin() + i) == -kInfinity) return;
    const std::int64_t best = 2 * task_.k + 8;
    // Scores of a query that float32 cannot hold may be NaN: they have no order.
    if (has_limit_from_sample(task_) && count > 2 * best && batch.terms(level, i).usable) {
      std::nth_element(survivors, survivors + best, survivors + count,
                       [](const Survivor& x, const Survivor& y) { return x.score > y.score; });
      rank(pass, batch, block, i, survivors, best, scratch);
      survivors += best;
      count = drop(pass, batch, block, level, i, scratch.thresholds[slot], survivors, count - best);
    }
    rank(pass, batch, block, i, survivors, count, scratch);
    if (count > std::max<std::int64_t>(best, block.size() / 4) && count > 64) pass.weak[i] = 1;
  }

  // Keeps the survivors that pass the threshold as it is now. Scores were formed with the a and b of `old`: what the
  // new ones add or (int8, whose a and b are the tile's) take away is applied here, in float64.
  std::int64_t drop(const Pass& pass, const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                    const Threshold& old, Survivor* survivors, std::int64_t count) const {
    const Threshold now = threshold(pass, batch, block, level, i);
    const bool integer = types_[level] == ScreenType::int8;
    const double a = integer ? now.a - old.a : std::max(0.0, now.a - old.a);
    const double b = integer ? now.b - old.b : std::max(0.0, now.b - old.b);
    const PackedRows& packed = block.packed(level);
    std::int64_t kept = 0;
    for (std::int64_t s = 0; s < count; ++s) {
      const Survivor survivor = survivors[s];
      const bool always = packed.always(survivor.row);
      const ScoreTerms terms = {survivor.score, static_cast<double>(packed.rho[survivor.row]) * a,
                                static_cast<double>(packed.kappa[survivor.row]) * b};
      if (always || !is_dropped(integer, terms, now.t)) survivors[kept++] = survivor;
    }
    return kept;
  }

  // The sample only bounds the answer: k eligible rows among it, ranked, give a key that the k-th nearest cannot
  // exceed.
  void seed_query(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i, Survivor* survivors,
                  std::int64_t count, WorkerScratch& scratch) {
    if (!batch.terms(level, i).usable) return;
    scratch.heap_keys.resize(static_cast<std::size_t>(task_.k));
    scratch.heap_ids.resize(static_cast<std::size_t>(task_.k));
    NearestHeap heap(scratch.heap_keys.data(), scratch.heap_ids.data(), task_.k);
    const std::int64_t best = std::min(count, 2 * task_.k + 8);
    if (best < count) {
      std::nth_element(survivors, survivors + best, survivors + count,
                       [](const Survivor& x, const Survivor& y) { return x.score > y.score; });
    }
    const std::int64_t query = batch.begin() + i;
    KeyRows rows;
    double keys[kKeyChunk];
    for (std::int64_t begin = 0; begin < best; begin += rows.count) {
      rows.count = 0;
      ctx_.check_cancelled();
      while (rows.count < chunk_rows_ && begin + rows.count < best)
        add(block, survivors[begin + rows.count].row, rows, scratch);
      keys_.sums(batch.row(i), rows.elements, rows.count, keys);
      for (std::int64_t s = 0; s < rows.count; ++s) {
        const std::int64_t row = rows.at[s];
        const double key = keys_.key_of(keys[s], batch.is_zero(i) || rows.zero[s]);
        for (const std::int64_t id : candidates_.members(block.distinct(row))) {
          if (candidates_.eligible(query, id) && !heap.offer(key, id)) break;
        }
      }
    }
    seeds_[i] = std::min(seeds_[i], heap.limit());
  }

  // Rows of a block that are ranked in one call.
  struct KeyRows {
    const void* elements[kKeyChunk];
    std::int64_t at[kKeyChunk];  // in the block
    bool zero[kKeyChunk];        // rows of zeros, for cosine
    std::int64_t count = 0;
  };
  void add(const RowBlock& block, std::int64_t row, KeyRows& rows, WorkerScratch& scratch) const {
    const std::int64_t s = rows.count++;
    rows.at[s] = row;
    if (!single_rows_) {
      rows.elements[s] = block.rows()[row];
      rows.zero[s] = block.is_zero(row);
    } else if (block.borrows()) {
      const void* const elements = block.borrowed(row);
      rows.elements[s] = elements;
      if (task_.pruned) {  // many rows far from each other: they are fetched while others are
        const auto* const bytes = static_cast<const std::byte*>(elements);
        const std::int64_t ahead = std::min<std::int64_t>(block.element_bytes(), kAheadBytes);
        for (std::int64_t at = 0; at < ahead; at += 64) __builtin_prefetch(bytes + at);
      }
      rows.zero[s] = false;
    } else {
      const std::int64_t bytes = block.element_bytes();
      std::byte* const to = scratch.elements.data() + s * bytes;
      rows.zero[s] = block.materialise(row, scratch.row.data(), to);
      rows.elements[s] = to;
    }
  }

  // Ranks survivors by the float64 key and offers them.
  void rank(const Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t i, const Survivor* survivors,
            std::int64_t count, WorkerScratch& scratch) {
    const std::int64_t query = batch.begin() + i;
    KeyRows rows;
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int64_t row = survivors[s].row;
      if (selective_ && !pass.collector->wants(query, block.distinct(row))) continue;
      add(block, row, rows, scratch);
      if (rows.count < chunk_rows_) continue;
      scratch.survived += rows.count;
      offer_keys(batch, block, i, rows.elements, rows.at, rows.zero, rows.count, *pass.collector);
      rows.count = 0;
      if (selective_ && pass.collector->limit(query) == -kInfinity) return;
    }
    scratch.survived += rows.count;
    if (rows.count > 0) offer_keys(batch, block, i, rows.elements, rows.at, rows.zero, rows.count, *pass.collector);
  }

  // Method `direct`: every row of the block is ranked, in chunks that stay in the cache while the group passes over
  // them.
  void rank_group(const QueryBatch& batch, const RowBlock& block, std::int64_t first, std::int64_t count,
                  Collector& collector) {
    std::int64_t at[kKeyChunk];
    bool zero[kKeyChunk];
    const void* rows[kKeyChunk];
    for (std::int64_t begin = 0; begin < block.size(); begin += kKeyChunk) {
      const std::int64_t chunk = std::min(kKeyChunk, block.size() - begin);
      for (std::int64_t s = 0; s < chunk; ++s) {
        at[s] = begin + s;
        zero[s] = block.is_zero(begin + s);
      }
      for (std::int64_t i = first; i < first + count; ++i) {
        if (!selective_) {
          offer_keys(batch, block, i, block.rows() + begin, at, zero, chunk, collector);
          continue;
        }
        bool wanted_zero[kKeyChunk];
        if (collector.limit(batch.begin() + i) == -kInfinity) continue;
        std::int64_t wanted[kKeyChunk];
        std::int64_t size = 0;
        for (std::int64_t row = begin; row < begin + chunk; ++row) {
          if (!collector.wants(batch.begin() + i, block.distinct(row))) continue;
          wanted[size] = row;
          wanted_zero[size] = block.is_zero(row);
          rows[size++] = block.rows()[row];
        }
        if (size > 0) offer_keys(batch, block, i, rows, wanted, wanted_zero, size, collector);
      }
    }
  }

  void offer_keys(const QueryBatch& batch, const RowBlock& block, std::int64_t i, const void* const* rows,
                  const std::int64_t* at, const bool* zero, std::int64_t count, Collector& collector) {
    ctx_.check_cancelled();
    double keys[kKeyChunk];
    keys_.sums(batch.row(i), rows, count, keys);
    const std::int64_t query = batch.begin() + i;
    double now = limit(batch, i, collector);
    const bool are_sums = keys_.are_sums();
    for (std::int64_t s = 0; s < count; ++s) {
      if (are_sums && keys[s] > now && keys[s] < kInfinity) continue;  // most, without a step more
      const double key = keys_.key_of(keys[s], batch.is_zero(i) || zero[s]);
      if (!(std::fabs(key) < kInfinity)) [[unlikely]] {
        keys_.refuse_overflow(query, block.distinct(at[s]));
        continue;
      }
      if (key > now) continue;
      collector.offer(query, key, block.distinct(at[s]));
      now = limit(batch, i, collector);
    }
  }

  const Context& ctx_;
  const kernels::NearestTask& task_;
  kernels::NearestResult& result_;
  const SimdKernels& simd_;
  std::int64_t d_;
  std::int64_t n_;                 // distinct rows
  std::vector<ScreenType> types_;  // the ladder's, coarse to fine; empty: every row is ranked
  Sizes sizes_;
  bool splits_rows_;
  Candidates candidates_;
  PairKeys keys_;
  std::atomic<std::uint64_t> bytes_;  // in use, for collectors whose answers grow
  std::unique_ptr<Collector> made_;
  Collector* collector_;
  bool selective_;
  std::vector<WorkerScratch> workers_;
  bool single_rows_;    // rows are made ready for their keys when they are ranked
  std::int64_t parts_;  // of a round; 0: the table is not divided
  std::int64_t chunk_rows_ = std::clamp<std::int64_t>(kChunkBytes / (8 * d_), 1, kKeyChunk);
  std::vector<Screen> ladder_;
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<KeptRows>> kept_;  // one a screen, where it was asked for
  Pass all_;                                     // of the whole table
  QueryBatch batch_;
  RowBlock block_;
  bool is_ready_ = false;
  bool has_whole_table_ = false;  // `block_`, where one block is the table and every row is ranked
  std::vector<std::int64_t> sample_rows_;
  std::vector<std::unique_ptr<RowPart>> row_parts_;       // one a worker, where the rows are divided among them
  std::vector<std::unique_ptr<RowPart>> parts_of_table_;  // one a part of a round
  std::vector<std::unique_ptr<RowBlock>> blocks_of_workers_;
  std::vector<double> seeds_;  // [batch] a key that bounds the k-th nearest: from the sample, from the last round
};

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
    const std::int64_t columns =
        kind.pruned ? task.index->packed.pruning(kind.metric)->columns : task.index->table.cols();
    needs.push_back({kind, KeptRows::bytes(kind, columns, task.index->distinct_rows(), block)});
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
