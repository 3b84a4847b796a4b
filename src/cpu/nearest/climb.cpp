// How tiles of queries meet a block of rows (search.hpp): the thresholds of their screens, the kernels that test
// products against them, and the rule by which a tile climbs to the next finer screen if too many rows pass. The rule
// compares estimated costs; a wrong choice costs time, never an answer.
#include <algorithm>
#include <limits>

#include "core/context_state.hpp"
#include "core/infinity.hpp"
#include "cpu/nearest/search.hpp"

namespace vicinal::cpu {
namespace {

// Cycles a product of a row's and a query's column takes in each screen, roughly, where it is native.
constexpr double kCyclesAProduct[kScreens] = {1.0 / 32, 1.0 / 45, 1.0 / 128};
constexpr double kCyclesByPairs = 1.0 / 36;  // of int8 without an instruction of its own
constexpr double kCyclesAByte = 0.25;        // of memory that is read in order, a core
constexpr double kPrunedPatience = 4;
constexpr std::int64_t kEarlyShare = 8;  // of the table, where limits are not yet near their end
constexpr double kFindBytes = 512;       // as many take as long as finding a row
constexpr double kCyclesToWait = 100;    // of a row whose key waits

}  // namespace

void Search::search_block(const QueryBatch& batch, RowBlock& block, Stage stage) {
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
unsigned Search::first_levels(Pass& pass, Stage stage) {
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
unsigned Search::next_levels(Pass& pass) {
  unsigned levels = 0;
  for (Climb& climb : pass.climbs) {
    if (climb.pending) levels |= 1U << ++climb.level;
  }
  return levels;
}

// Every tile of queries, or those that are pending, against the block.
void Search::screen_block(const QueryBatch& batch, const RowBlock& block, Stage stage, bool pending) {
  const auto screen = [&](std::int64_t g, int worker) {
    screen_group(all_, batch, block, stage, pending, g, workers_[static_cast<std::size_t>(worker)]);
  };
  parallel_for(groups_of(batch), screen);
}

void Search::screen_group(Pass& pass, const QueryBatch& batch, const RowBlock& block, Stage stage, bool pending,
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
    if (level == 0 && finer_ != nullptr) refine_tile(pass, batch, block, active[s], s, scratch);
    if (stage != Stage::few && climbs(pass, batch, block, active[s], s, stage, scratch)) continue;
    const std::int64_t query = active[s] * simd_.tile_queries;
    for (std::int64_t i = 0; i < queries_of(batch, active[s]); ++i) {
      finish_query(pass, batch, block, level, query + i, s * simd_.tile_queries + i, stage, scratch);
    }
  }
}

// Every query against one block, by one worker.
void Search::search_block_alone(Pass& pass, const QueryBatch& batch, RowBlock& block, WorkerScratch& scratch) {
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

// Decides whether a tile meets the block again one level up: when ranking what survived costs more than a finer
// screen would. Of the levels tried the cheapest serves the next blocks. Limits tighten as blocks go by, so after a
// while the tile starts at the bottom again, at ever longer intervals.
bool Search::climbs(Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t tile, std::int64_t slot,
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
  const double now = 30 + d / 2 + per_byte * (kFindBytes + static_cast<double>(block.element_bytes()));
  const auto each = [&](int level) {
    return tells_keys(batch, level, tile * simd_.tile_queries) ? kCyclesToWait : now;
  };
  const auto screen_cost = [&](int level) {
    const auto columns = static_cast<double>(ladder_[level].columns());
    const int type = screen_index(types_[level]);
    const bool by_pairs = types_[level] == ScreenType::int8 && !simd_.quick[type];
    return static_cast<double>(queries) * size * columns * (by_pairs ? kCyclesByPairs : kCyclesAProduct[type]) +
           size * static_cast<double>(ladder_[level].row_bytes()) * shared;
  };
  const double refining =
      finer_ != nullptr ? kCyclesAByte * (kFindBytes + static_cast<double>(finer_->finer_bytes())) : 0;
  const auto rank_cost = [&](int level) {
    return static_cast<double>(climb.passed[level]) * each(level) +
           (level == 0 ? static_cast<double>(climb.refined) * refining : 0);
  };
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

Threshold Search::threshold(const Pass& pass, const QueryBatch& batch, const RowBlock& block, int level,
                            std::int64_t i) const {
  return limit_of(ladder_[level], batch.terms(level, i), limit(batch, i, *pass.collector),
                  block.packed(level).typical_norm);
}

Threshold Search::limit_of(const Screen& screen, const QueryTerms& query, double key, double typical_norm) const {
  if (selective_ && key == -kInfinity) return {0, 0, std::numeric_limits<float>::max()};  // nothing passes
  // The screen works on sums of squares: of a cosine key, twice the key.
  return screen.threshold(query, task_.metric == Metric::cosine ? 2 * key : key, typical_norm);
}

// The operands of one tile's thresholds, as the kernels want them.
struct Search::TileLimits {
  float a[kMaxTileQueries];
  float b[kMaxTileQueries];
  float threshold[kMaxTileQueries];
  std::int32_t least[kMaxTileQueries];
};

// Fills a tile's limits; `used` [tile_queries] keeps what the scores are formed with.
Search::TileLimits Search::limits(const Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t tile,
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
void Search::screen_tiles(const Pass& pass, const QueryBatch& batch, const RowBlock& block,
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

}  // namespace vicinal::cpu
