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
#include "cpu/nearest/nearest.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/context_state.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "cpu/nearest/batch_steps.hpp"
#include "cpu/nearest/block.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/keys.hpp"
#include "cpu/nearest/ladder.hpp"
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
constexpr std::int64_t kKeyChunk = 64;  // rows ranked in one call: their keys stay in registers and L1

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
  std::vector<Survivor> survivors;  // [group, block]
  std::vector<std::int32_t> counts;
  std::vector<Threshold> thresholds;
  std::vector<double> row;  // one row on its way into a panel
  std::vector<double> heap_keys;
  std::vector<std::int64_t> heap_ids;
  std::int64_t survived = 0;
};

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
        ladder_(make_ladder(ctx, task, types_)) {}

  void run() {
    QueryBatch batch(task_, simd_, ladder_);
    RowBlock block(task_, simd_, std::max(sizes_.block, sizes_.sample), ladder_);
    const std::int64_t m = task_.queries.rows();
    BatchSteps steps(sizes_.batch, result_.handover);
    for (std::int64_t begin = 0; begin < m;) {
      const std::int64_t end = std::min(m, begin + steps.next());
      try {
        steps.fitted(end - begin, search_batch(batch, block, begin, end));
        begin = end;
      } catch (const kernels::NoRoom&) {
        steps.failed(end - begin);
        for (WorkerScratch& worker : workers_) worker.survived = 0;
      }
    }
    result_.stats.distinct_rows = n_;
  }

 private:
  // What a block of rows is for: a limit from a few rows, before which nothing is known; a better one from the whole
  // sample; the answer.
  enum class Stage : std::uint8_t { few, sample, table };

  // Where the queries of a tile stand on the ladder.
  struct Climb {
    std::uint8_t level = 0;              // the screen they use
    std::uint8_t first = 0;              // the one that met the present block first
    bool pending = false;                // to meet the present block again, one level up
    bool settled = false;                // the level was chosen by trial ...
    int blocks_left = 0;                 // ... and stays for so many blocks
    int patience = 8;                    // blocks until the next trial, then twice as many
    std::int64_t passed[kScreens] = {};  // survivors of the present block at each level tried
  };

  [[nodiscard]] bool screened() const { return !types_.empty(); }

  // The answers of queries [begin, end). Returns the bytes that lists took of the room of a Handover.
  std::uint64_t search_batch(QueryBatch& batch, RowBlock& block, std::int64_t begin, std::int64_t end) {
    const std::int64_t m = task_.queries.rows();
    const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
    batch.load(ctx_, begin, end);
    collector_->begin(begin, end);
    seeds_.assign(static_cast<std::size_t>(end - begin), kInfinity);
    weak_.assign(static_cast<std::size_t>(end - begin), 0);
    climbs_.assign(static_cast<std::size_t>(batch.tiles()), {});
    if (sizes_.sample > 0) {
      // A few rows first: with the limits they give, most of the sample does not survive its own screen.
      const std::int64_t few = std::max<std::int64_t>(256, 4 * task_.k);
      if (few < sizes_.sample) search_sample(batch, block, few, Stage::few);
      search_sample(batch, block, sizes_.sample, few < sizes_.sample ? Stage::sample : Stage::few);
    }
    if (splits_rows_) search_by_rows(batch);
    for (std::int64_t b = 0; b < blocks && !splits_rows_; ++b) {
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
    core::parallel_for(ctx_, (end - begin + share - 1) / share, [&](std::int64_t task, int) {
      const std::int64_t last = std::min(end, begin + (task + 1) * share);
      for (std::int64_t q = begin + task * share; q < last; ++q) {
        ctx_.check_cancelled();
        collector_->finish(q);
      }
    });
    const std::uint64_t found = bytes_.load();
    collector_->end();
    for (const std::uint8_t weak : weak_) result_.stats.uncertified += weak;
    for (std::int64_t tile = 0; tile < batch.tiles(); ++tile) {
      if (climbs_[tile].level > 0) result_.stats.escalated += queries_of(batch, tile);
    }
    for (WorkerScratch& worker : workers_) result_.stats.survivors += std::exchange(worker.survived, 0);
    return 2 * found;  // and once more as they were taken
  }
  [[nodiscard]] std::int64_t queries_of(const QueryBatch& batch, std::int64_t tile) const {
    return std::min<std::int64_t>(simd_.tile_queries, batch.size() - tile * simd_.tile_queries);
  }

  // Evenly spread rows, in runs so that a block source is not asked for single rows.
  void search_sample(const QueryBatch& batch, RowBlock& block, std::int64_t size, Stage stage) {
    constexpr std::int64_t kRun = 16;
    std::vector<std::int64_t> rows;
    const std::int64_t runs = (size + kRun - 1) / kRun;
    for (std::int64_t r = 0; r < runs; ++r) {
      const std::int64_t first = r * (n_ - kRun) / std::max<std::int64_t>(runs - 1, 1);
      for (std::int64_t i = 0; i < kRun; ++i) {
        if (rows.empty() || rows.back() < first + i) rows.push_back(first + i);
      }
    }
    if (static_cast<std::int64_t>(rows.size()) > size) rows.resize(static_cast<std::size_t>(size));
    block.assign(rows);
    search_block(batch, block, stage);
  }

  // Makes the block ready for keys (once) and for the screens named in `levels` (bits).
  void prepare_block(RowBlock& block, bool rows, unsigned levels) {
    core::parallel_for(ctx_, block.panels(), [&](std::int64_t panel, int worker) {
      std::vector<double>& scratch = workers_[static_cast<std::size_t>(worker)].row;
      if (rows) block.prepare_panel(panel, scratch);
      for (std::size_t s = 0; s < ladder_.size(); ++s) {
        if ((levels >> s & 1) != 0) block.pack_panel(panel, s, scratch);
      }
    });
    for (std::size_t s = 0; s < ladder_.size(); ++s) {
      if ((levels >> s & 1) != 0) block.summarise(s);
    }
  }

  void search_block(const QueryBatch& batch, RowBlock& block, Stage stage) {
    if (!screened()) {
      prepare_block(block, true, 0);
      const std::int64_t groups = (batch.size() + sizes_.group - 1) / sizes_.group;
      core::parallel_for(ctx_, groups, [&](std::int64_t g, int /*worker*/) {
        const std::int64_t first = g * sizes_.group;
        rank_group(batch, block, first, std::min(sizes_.group, batch.size() - first), *collector_);
      });
      return;
    }
    unsigned packed = 0;
    for (Climb& climb : climbs_) {
      if (stage == Stage::table && climb.blocks_left > 0 && --climb.blocks_left == 0) {
        climb.level = 0;
        climb.settled = false;
      }
      packed |= 1U << climb.level;
    }
    prepare_block(block, true, packed);
    screen_block(batch, block, stage, false);
    for (;;) {
      unsigned wanted = 0;
      for (Climb& climb : climbs_) {
        if (climb.pending) wanted |= 1U << ++climb.level;
      }
      if (wanted == 0) return;
      prepare_block(block, false, wanted & ~packed);
      packed |= wanted;
      screen_block(batch, block, stage, true);
    }
  }

  // Every tile of queries, or those that are pending, against the block.
  void screen_block(const QueryBatch& batch, const RowBlock& block, Stage stage, bool pending) {
    const std::int64_t tiles = sizes_.group / simd_.tile_queries;  // of a task
    core::parallel_for(ctx_, (batch.tiles() + tiles - 1) / tiles, [&](std::int64_t g, int worker) {
      WorkerScratch& scratch = workers_[static_cast<std::size_t>(worker)];
      const std::int64_t first = g * tiles;
      const std::int64_t last = std::min(batch.tiles(), first + tiles);
      std::int64_t active[kGroupTiles];
      std::int64_t count = 0;
      for (std::int64_t tile = first; tile < last; ++tile) {
        if (climbs_[tile].pending != pending) continue;
        const std::int64_t query = tile * simd_.tile_queries;
        if (selective_ && !pending && are_done(batch, query, queries_of(batch, tile))) continue;
        active[count++] = tile;
      }
      if (count == 0) return;
      screen_tiles(batch, block, {active, static_cast<std::size_t>(count)}, scratch);
      for (std::int64_t s = 0; s < count; ++s) {
        const int level = climbs_[active[s]].level;
        if (stage != Stage::few && climbs(batch, block, active[s], s, stage, scratch)) continue;
        const std::int64_t query = active[s] * simd_.tile_queries;
        for (std::int64_t i = 0; i < queries_of(batch, active[s]); ++i) {
          finish_query(batch, block, level, query + i, s * simd_.tile_queries + i, stage, scratch);
        }
      }
    });
  }

  // Decides whether a tile meets the block again one level up: when ranking what survived costs more than a finer
  // screen would. Of the levels tried the cheapest serves the next blocks. Limits tighten as blocks go by, so after a
  // while the tile starts at the bottom again, at ever longer intervals.
  bool climbs(const QueryBatch& batch, const RowBlock& block, std::int64_t tile, std::int64_t slot, Stage stage,
              const WorkerScratch& scratch) {
    Climb& climb = climbs_[tile];
    const std::int64_t queries = queries_of(batch, tile);
    std::int64_t survivors = 0;
    for (std::int64_t i = 0; i < queries; ++i) survivors += scratch.counts[slot * simd_.tile_queries + i];
    if (!climb.pending) climb.first = climb.level;
    climb.passed[climb.level] = survivors;
    const auto d = static_cast<double>(d_);
    const double products = static_cast<double>(queries * block.size()) * d;
    const auto screen_cost = [&](int level) { return products * kCyclesAProduct[screen_index(types_[level])]; };
    const auto rank_cost = [&](int level) { return static_cast<double>(climb.passed[level]) * (30 + d / 2); };
    const bool finest = climb.level + 1 == static_cast<int>(types_.size());
    // Of a sample only the best are ranked: there a screen has failed when it tells next to nothing apart.
    const auto failed = [&] {
      if (stage == Stage::sample) return survivors > queries * block.size() / 2;
      return rank_cost(climb.level) > screen_cost(climb.level + 1);
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
    struct Part {
      std::vector<std::int64_t> ids, offsets, counts;
      std::vector<double> distances;
      SearchStats stats;
      kernels::NearestResult result{ids, distances, offsets, counts, stats};
      std::unique_ptr<Collector> collector;
      std::unique_ptr<RowBlock> block;
      std::vector<double> scratch;
    };
    std::vector<std::unique_ptr<Part>> parts(workers_.size());
    const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
    core::parallel_for(ctx_, blocks, [&](std::int64_t b, int worker) {
      auto& part = parts[static_cast<std::size_t>(worker)];
      if (!part) {
        part = std::make_unique<Part>();
        part->ids.resize(result_.ids.size());
        part->distances.resize(result_.distances.size());
        part->counts.resize(result_.counts.size());
        part->result.handover = result_.handover;
        part->collector = make_collector(ctx_, task_, candidates_, part->result, bytes_);
        part->collector->begin(batch.begin(), batch.begin() + batch.size());
        part->block = std::make_unique<RowBlock>(task_, simd_, sizes_.block, std::span<const Screen>());
      }
      const std::int64_t first = b * sizes_.block;
      part->block->assign(first, std::min(n_, first + sizes_.block) - first);
      for (std::int64_t p = 0; p < part->block->panels(); ++p) {
        part->block->prepare_panel(p, part->scratch);
      }
      rank_group(batch, *part->block, 0, batch.size(), *part->collector);
      if (worker == 0) ctx_.report("search", static_cast<double>(b) / static_cast<double>(blocks));
    });
    for (const auto& part : parts) {
      if (part) collector_->absorb(*part->collector);
    }
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

  [[nodiscard]] Threshold threshold(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i) const {
    const double key = limit(batch, i, *collector_);
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
  TileLimits limits(const QueryBatch& batch, const RowBlock& block, std::int64_t tile, Threshold* used) const {
    TileLimits limits{};
    const int level = climbs_[tile].level;
    const std::int64_t queries = queries_of(batch, tile);
    double a = 0;
    double b = 0;
    for (std::int64_t i = 0; i < queries; ++i) {
      used[i] = threshold(batch, block, level, tile * simd_.tile_queries + i);
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
  void screen_tiles(const QueryBatch& batch, const RowBlock& block, std::span<const std::int64_t> tiles,
                    WorkerScratch& scratch) {
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
      const int level = climbs_[tiles[s]].level;
      all[s] = limits(batch, block, tiles[s], scratch.thresholds.data() + slot);
      ScreenTile& tile = passes[s];
      tile = {};
      tile.queries = batch.panel(level, tiles[s]);
      tile.a = all[s].a;
      tile.b = all[s].b;
      tile.threshold = fused ? all[s].threshold : none.threshold;
      tile.least = fused ? all[s].least : none.least;
      tile.words = Screen::row_bytes(types_[level], d_) / 4;
      tile.valid_queries = static_cast<std::int32_t>(queries_of(batch, tiles[s]));
      tile.survivors = scratch.survivors.data() + slot * capacity;
      tile.capacity = capacity;
      tile.counts = scratch.counts.data() + slot;
    }
    for (std::int64_t p = 0; p < block.panels(); ++p) {
      ctx_.check_cancelled();
      const std::int64_t row = p * simd_.tile_rows;
      for (std::size_t s = 0; s < tiles.size(); ++s) {
        const int level = climbs_[tiles[s]].level;
        const PackedRows& packed = block.packed(level);
        ScreenTile& tile = passes[s];
        tile.rows = packed.panels.data() + row * 4 * tile.words;
        tile.start = packed.start.data() + row;
        tile.base = packed.base.data() + row;
        tile.rho = packed.rho.data() + row;
        tile.kappa = packed.kappa.data() + row;
        tile.valid_rows = static_cast<std::int32_t>(std::min<std::int64_t>(simd_.tile_rows, block.size() - row));
        tile.first_row = static_cast<std::uint32_t>(row);
        simd_.screens[screen_index(types_[level])](tile);
      }
    }
    if (fused) return;
    for (std::size_t s = 0; s < tiles.size(); ++s) {
      const bool integer = types_[climbs_[tiles[s]].level] == ScreenType::int8;
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
  void finish_query(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i, std::int64_t slot,
                    Stage stage, WorkerScratch& scratch) {
    const std::int64_t capacity = std::max(sizes_.block, sizes_.sample);
    Survivor* survivors = scratch.survivors.data() + slot * capacity;
    std::int64_t count = scratch.counts[slot];
    if (stage != Stage::table) {
      seed_query(batch, block, level, i, survivors, count, scratch);
      return;
    }
    if (selective_ && collector_->limit(batch.begin() + i) == -kInfinity) return;
    const std::int64_t best = 2 * task_.k + 8;
    // Scores of a query that float32 cannot hold may be NaN: they have no order.
    if (has_limit_from_sample(task_) && count > 2 * best && batch.terms(level, i).usable) {
      std::nth_element(survivors, survivors + best, survivors + count,
                       [](const Survivor& x, const Survivor& y) { return x.score > y.score; });
      rank(batch, block, i, survivors, best, scratch);
      survivors += best;
      count = drop(batch, block, level, i, scratch.thresholds[slot], survivors, count - best);
    }
    rank(batch, block, i, survivors, count, scratch);
    if (count > std::max<std::int64_t>(best, block.size() / 4) && count > 64) weak_[i] = 1;
  }

  // Keeps the survivors that pass the threshold as it is now. Scores were formed with the a and b of `old`: what the
  // new ones add or (int8, whose a and b are the tile's) take away is applied here, in float64.
  std::int64_t drop(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i, const Threshold& old,
                    Survivor* survivors, std::int64_t count) const {
    const Threshold now = threshold(batch, block, level, i);
    const bool integer = types_[level] == ScreenType::int8;
    const double a = integer ? now.a - old.a : std::max(0.0, now.a - old.a);
    const double b = integer ? now.b - old.b : std::max(0.0, now.b - old.b);
    const PackedRows& packed = block.packed(level);
    std::int64_t kept = 0;
    for (std::int64_t s = 0; s < count; ++s) {
      const Survivor survivor = survivors[s];
      const bool always = packed.start[survivor.row] == std::numeric_limits<float>::infinity();
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
    const void* rows[kKeyChunk];
    double keys[kKeyChunk];
    for (std::int64_t begin = 0; begin < best; begin += kKeyChunk) {
      const std::int64_t chunk = std::min(kKeyChunk, best - begin);
      ctx_.check_cancelled();
      for (std::int64_t s = 0; s < chunk; ++s) rows[s] = block.rows()[survivors[begin + s].row];
      keys_.sums(batch.row(i), rows, chunk, keys);
      for (std::int64_t s = 0; s < chunk; ++s) {
        const std::int64_t row = survivors[begin + s].row;
        const double key = keys_.key_of(keys[s], batch.is_zero(i) || block.is_zero(row));
        for (const std::int64_t id : candidates_.members(block.distinct(row))) {
          if (candidates_.eligible(query, id) && !heap.offer(key, id)) break;
        }
      }
    }
    seeds_[i] = std::min(seeds_[i], heap.limit());
  }

  // Ranks survivors by the float64 key and offers them.
  void rank(const QueryBatch& batch, const RowBlock& block, std::int64_t i, const Survivor* survivors,
            std::int64_t count, WorkerScratch& scratch) {
    const std::int64_t query = batch.begin() + i;
    const void* rows[kKeyChunk];
    std::int64_t at[kKeyChunk];
    std::int64_t chunk = 0;
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int64_t row = survivors[s].row;
      if (selective_ && !collector_->wants(query, block.distinct(row))) continue;
      at[chunk] = row;
      rows[chunk++] = block.rows()[row];
      if (chunk < kKeyChunk) continue;
      scratch.survived += chunk;
      offer_keys(batch, block, i, rows, at, chunk, *collector_);
      chunk = 0;
      if (selective_ && collector_->limit(query) == -kInfinity) return;
    }
    scratch.survived += chunk;
    if (chunk > 0) offer_keys(batch, block, i, rows, at, chunk, *collector_);
  }

  // Method `direct`: every row of the block is ranked, in chunks that stay in the cache while the group passes over
  // them.
  void rank_group(const QueryBatch& batch, const RowBlock& block, std::int64_t first, std::int64_t count,
                  Collector& collector) {
    std::int64_t at[kKeyChunk];
    const void* rows[kKeyChunk];
    for (std::int64_t begin = 0; begin < block.size(); begin += kKeyChunk) {
      const std::int64_t chunk = std::min(kKeyChunk, block.size() - begin);
      for (std::int64_t s = 0; s < chunk; ++s) at[s] = begin + s;
      for (std::int64_t i = first; i < first + count; ++i) {
        if (!selective_) {
          offer_keys(batch, block, i, block.rows() + begin, at, chunk, collector);
          continue;
        }
        if (collector.limit(batch.begin() + i) == -kInfinity) continue;
        std::int64_t wanted[kKeyChunk];
        std::int64_t size = 0;
        for (std::int64_t row = begin; row < begin + chunk; ++row) {
          if (!collector.wants(batch.begin() + i, block.distinct(row))) continue;
          wanted[size] = row;
          rows[size++] = block.rows()[row];
        }
        if (size > 0) offer_keys(batch, block, i, rows, wanted, size, collector);
      }
    }
  }

  void offer_keys(const QueryBatch& batch, const RowBlock& block, std::int64_t i, const void* const* rows,
                  const std::int64_t* at, std::int64_t count, Collector& collector) {
    ctx_.check_cancelled();
    double keys[kKeyChunk];
    keys_.sums(batch.row(i), rows, count, keys);
    const std::int64_t query = batch.begin() + i;
    double now = limit(batch, i, collector);
    for (std::int64_t s = 0; s < count; ++s) {
      const double key = keys_.key_of(keys[s], batch.is_zero(i) || block.is_zero(at[s]));
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
  std::vector<Screen> ladder_;
  std::vector<Climb> climbs_;       // [tiles of the batch]
  std::vector<double> seeds_;       // [batch] a key that bounds the k-th nearest, from the sample
  std::vector<std::uint8_t> weak_;  // [batch] the screen kept more than a quarter of some block
};

}  // namespace

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
