// The CPU's exact search (contract clauses 1 to 5 and 7). For a batch of queries, for each block of table rows:
//   prepare  the block's rows are packed in a screen's type around a center, with their error terms (block.hpp);
//   screen   tiles of products in registers, tested against per-query thresholds as they are finished (simd/), so no
//            product is ever written; what survives goes to a buffer with one slot a row, which cannot overflow;
//   ladder   where too much survives, the tile's queries meet the block again in the next finer screen, and stay with
//            it if that helped;
//   finish   survivors are ranked by the float64 key and offered to the collector, whose limit tightens the next
//            threshold.
// A sample of rows first gives every query a limit, so that sorted tables do not defeat it. Whatever the screen lets
// through is decided by the key: a weak bound costs time, never an answer. Method `direct` skips the screen: every row
// is ranked. O(m n d) time; scratch O(batch d + block d), never m x n.
//
// The functions of `Search` are in five files: search.cpp goes through batches of queries and blocks of the table,
// climb.cpp screens a block and decides which queries climb the ladder, refine.cpp looks at finer images of what a
// screen of images leaves, waiting.cpp lets rows wait for their keys until limits have fallen, rank.cpp ranks rows by
// their keys.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/nearest.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "cpu/nearest/block.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/keys.hpp"
#include "cpu/nearest/packed_table.hpp"
#include "cpu/nearest/query_batch.hpp"
#include "cpu/nearest/screen.hpp"
#include "cpu/nearest/sizes.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {

inline constexpr std::int64_t kKeyChunk = 64;  // rows ranked in one call: their keys stay in registers and L1
inline constexpr std::int64_t kChunkBytes = std::int64_t{256} << 10;  // of such rows that are materialised for it

/// What one worker needs for one group of queries.
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

class Search {
 public:
  /// `given`: the caller's collector; null: the one that the task names.
  Search(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result, Collector* given);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// May be called again, when the task has other queries, as many: then it takes no memory.
  void run();

  /// Takes what `run` may need, whatever the queries: also the memory of screens that they may climb to.
  void ready_to_repeat();

  /// After `run` has thrown: others may pack the blocks that it has claimed.
  void give_up() noexcept;

  /// Packs all rows for the screens that the task keeps.
  void pack();

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
    std::int64_t refined = 0;                // of level 0, those whose finer images were compared
  };

  // A row whose key is computed when limits have fallen, and bounds of the key.
  struct WaitingRow {
    float least;
    float most;
    std::uint32_t query;  // of the batch
    std::uint32_t row;
  };

  // One way through the table, or through a part of it, for all queries of a batch.
  struct Pass {
    Collector* collector = nullptr;
    std::vector<Climb> climbs;       // [tiles of the batch]
    std::vector<std::uint8_t> weak;  // [batch] the screen kept more than a quarter of some block
    std::vector<WaitingRow> waiting;
    std::size_t counted = 0;  // of them, whose bounds are among `bounds_`
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

  // Rows of a block that are ranked in one call.
  struct KeyRows {
    const void* elements[kKeyChunk];
    std::int64_t at[kKeyChunk];  // in the block
    bool zero[kKeyChunk];        // rows of zeros, for cosine
    std::int64_t count = 0;
  };

  // The operands of one tile's thresholds (climb.cpp).
  struct TileLimits;

  // search.cpp
  void ready_workers();
  void make_row_parts();
  [[nodiscard]] std::unique_ptr<RowBlock> worker_block(std::span<const Screen> screens) const;
  void assign_block(RowBlock& block, std::int64_t number) const;
  std::uint64_t search_batch(QueryBatch& batch, RowBlock& block, std::int64_t begin, std::int64_t end);
  void search_sample(const QueryBatch& batch, RowBlock& block, std::int64_t size, Stage stage);
  KeptRows* kept(std::size_t level);
  unsigned begin_packing(RowBlock& block, unsigned levels);
  void finish_packing(RowBlock& block, unsigned levels);
  void prepare_panel(RowBlock& block, std::int64_t panel, bool rows, unsigned levels, WorkerScratch& scratch);
  void prepare_block(RowBlock& block, bool rows, unsigned levels);
  void pack_alone(RowBlock& block, unsigned levels, WorkerScratch& scratch);
  void search_parts(const QueryBatch& batch);
  void search_by_rows(const QueryBatch& batch);

  // climb.cpp
  void search_block(const QueryBatch& batch, RowBlock& block, Stage stage);
  static unsigned first_levels(Pass& pass, Stage stage);
  static unsigned next_levels(Pass& pass);
  void screen_block(const QueryBatch& batch, const RowBlock& block, Stage stage, bool pending);
  void screen_group(Pass& pass, const QueryBatch& batch, const RowBlock& block, Stage stage, bool pending,
                    std::int64_t group, WorkerScratch& scratch);
  void search_block_alone(Pass& pass, const QueryBatch& batch, RowBlock& block, WorkerScratch& scratch);
  bool climbs(Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t tile, std::int64_t slot,
              Stage stage, const WorkerScratch& scratch);
  [[nodiscard]] Threshold threshold(const Pass& pass, const QueryBatch& batch, const RowBlock& block, int level,
                                    std::int64_t i) const;
  [[nodiscard]] Threshold limit_of(const Screen& screen, const QueryTerms& query, double key,
                                   double typical_norm) const;
  TileLimits limits(const Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t tile,
                    Threshold* used) const;
  void screen_tiles(const Pass& pass, const QueryBatch& batch, const RowBlock& block,
                    std::span<const std::int64_t> tiles, WorkerScratch& scratch);

  // refine.cpp
  void refine_tile(Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t tile, std::int64_t slot,
                   WorkerScratch& scratch);
  std::int64_t refine(const Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t i,
                      Survivor* survivors, std::int64_t count) const;

  // waiting.cpp
  void ready_waiting();
  void begin_waiting(const QueryBatch& batch);
  [[nodiscard]] bool tells_keys(const QueryBatch& batch, int level, std::int64_t i) const;
  [[nodiscard]] KeyRange key_range(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                                   const Threshold& used, const Survivor& survivor) const;
  void seed_by_bounds(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i, const Threshold& used,
                      std::span<const Survivor> survivors, NearestHeap& heap);
  std::size_t let_wait(Pass& pass, const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                       const Threshold& used, std::span<const Survivor> survivors) const;
  void count_bounds(const QueryBatch& batch);
  void rank_waiting(const QueryBatch& batch);

  // rank.cpp
  void finish_query(Pass& pass, const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                    std::int64_t slot, Stage stage, WorkerScratch& scratch);
  std::int64_t drop(const Pass& pass, const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                    const Threshold& old, Survivor* survivors, std::int64_t count) const;
  void seed_query(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i, std::int64_t slot,
                  WorkerScratch& scratch);
  /// Of a block that borrows: asks for the elements of a row.
  static void fetch_row(const RowBlock& block, std::int64_t row);
  void add(const RowBlock& block, std::int64_t row, KeyRows& rows, WorkerScratch& scratch) const;
  void rank(const Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t i, const Survivor* survivors,
            std::int64_t count, WorkerScratch& scratch);
  void rank_group(const QueryBatch& batch, const RowBlock& block, std::int64_t first, std::int64_t count,
                  Collector& collector);
  void offer_keys(const QueryBatch& batch, const RowBlock& block, std::int64_t i, const void* const* rows,
                  const std::int64_t* at, const bool* zero, std::int64_t count, Collector& collector);

  // What all of them use.
  [[nodiscard]] bool screened() const { return !types_.empty(); }
  [[nodiscard]] std::int64_t queries_of(const QueryBatch& batch, std::int64_t tile) const {
    return std::min<std::int64_t>(simd_.tile_queries, batch.size() - tile * simd_.tile_queries);
  }

  // Tiles of queries that meet a block together, and how many times so many there are.
  [[nodiscard]] std::int64_t group_tiles() const { return sizes_.group / simd_.tile_queries; }
  [[nodiscard]] std::int64_t groups_of(const QueryBatch& batch) const {
    return (batch.tiles() + group_tiles() - 1) / group_tiles();
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
  bool single_rows_;           // rows are made ready for their keys when they are ranked
  std::int64_t parts_;         // of a round; 0: the table is not divided
  std::int64_t waiting_room_;  // rows of a part whose keys may wait
  std::int64_t chunk_rows_ = std::clamp<std::int64_t>(kChunkBytes / (8 * d_), 1, kKeyChunk);
  std::vector<Screen> ladder_;
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<KeptRows>> kept_;  // one a screen, where it was asked for
  Pass all_;                                     // of the whole table
  QueryBatch batch_;
  RowBlock block_;
  const KeptRows* finer_ = nullptr;  // of the first screen, if it has finer images
  bool is_ready_ = false;
  bool has_whole_table_ = false;  // `block_`, where one block is the table and every row is ranked
  std::vector<std::int64_t> sample_rows_;
  std::vector<std::unique_ptr<RowPart>> row_parts_;       // one a worker, where the rows are divided among them
  std::vector<std::unique_ptr<RowPart>> parts_of_table_;  // one a part of a round
  std::vector<std::unique_ptr<RowBlock>> blocks_of_workers_;
  std::vector<double> seeds_;  // [batch] a key that bounds the k-th nearest: from the sample, from the last round
  bool waits_ = false;         // rows may wait, in the present batch
  std::vector<float> bounds_;  // [batch, k] heaps of the least upper bounds of rows that waited
  std::vector<std::int64_t> num_bounds_;  // [batch] of each heap
};

}  // namespace vicinal::cpu
