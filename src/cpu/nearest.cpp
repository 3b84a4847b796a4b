// The CPU's exact search (contract clauses 1 to 5 and 7). For a batch of queries, for each block of table rows:
//   prepare  the block's rows are packed in float32 around a centre, with their error terms (block.hpp);
//   screen   tiles of products in registers, tested against per-query thresholds as they are finished (simd/), so no
//            product is ever written; what survives goes to a buffer with one slot a row, which cannot overflow;
//   finish   survivors are ranked by the float64 key and offered to the collector, whose limit tightens the next
//   threshold.
// A sample of rows first gives every query a limit, so that sorted tables do not defeat it. Whatever the screen lets
// through is decided by the key: a weak bound costs time, never an answer. Method `direct` skips the screen: every row
// is ranked. O(m n d) time; scratch O(batch d + block d), never m x n.
#include "cpu/nearest.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "core/distance.hpp"
#include "core/floats.hpp"
#include "core/parallel.hpp"
#include "cpu/block.hpp"
#include "cpu/collector.hpp"
#include "cpu/query_batch.hpp"
#include "cpu/screen.hpp"

namespace vicinal::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kBatchBytes = std::int64_t{64} << 20;  // queries of one round
constexpr std::int64_t kPanelBytes = std::int64_t{16} << 20;  // packed rows of one block
constexpr std::int64_t kLargestBlock = 2048;
constexpr std::int64_t kLargestSample = 16384;
constexpr std::int64_t kKeyChunk = 64;  // rows ranked in one call: their keys stay in registers and L1

ScreenKind kind_of(Metric metric) {
  return metric == Metric::inner_product ? ScreenKind::product : ScreenKind::distance;
}

bool has_limit_from_sample(const kernels::NearestTask& task) {
  return task.collect == kernels::Collect::k_list;
}

// Sizes that follow from the task alone, so that nothing about the machine can show in a statistic.
struct Sizes {
  std::int64_t block;   // rows of a block
  std::int64_t batch;   // queries of a round
  std::int64_t group;   // queries of a parallel task
  std::int64_t sample;  // rows of the sample; 0: none

  Sizes(const kernels::NearestTask& task, const SimdKernels& simd, bool screened) {
    const std::int64_t n = task.index->distinct_rows();
    const std::int64_t m = task.queries.rows();
    const std::int64_t d = task.queries.cols();
    const std::int64_t quantum = kMaxTileRows;
    const std::int64_t fitting = std::clamp(kPanelBytes / (4 * d), std::int64_t{64}, kLargestBlock);
    block = std::clamp(n / 8, std::int64_t{64}, fitting) / quantum * quantum;
    if (task.metric == Metric::minkowski) block = 64;  // a power costs a hundred products: short tasks stay cancellable
    const auto per_query = static_cast<std::int64_t>(QueryBatch::bytes_a_query(task, screened));
    batch = std::min(m, std::max(kBatchBytes / per_query, std::int64_t{kMaxTileQueries}));
    if (task.collect == kernels::Collect::radius) batch = std::min<std::int64_t>(batch, 4096);
    const std::int64_t tile = simd.tile_queries;
    group = d <= 4096 && m >= 16 * tile ? 4 * tile : tile;
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
  std::vector<double> row;
  std::vector<double> heap_keys;
  std::vector<std::int64_t> heap_ids;
  std::int64_t survived = 0;
};

class Search {
 public:
  Search(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result)
      : ctx_(ctx),
        task_(task),
        result_(result),
        simd_(simd_kernels(ctx.isa())),
        d_(task.queries.cols()),
        n_(task.index->distinct_rows()),
        screened_(task.method == Method::fused && screen_serves(task.metric, task.queries.cols())),
        sizes_(task, simd_, screened_),
        splits_rows_(splits_rows(ctx, task, sizes_, screened_)),
        reading_(RowReading::of(task.index->table, task.metric)),
        candidates_(task),
        bytes_(nearest_scratch(ctx, task)),
        collector_(make_collector(ctx, task, candidates_, result, bytes_)),
        workers_(static_cast<std::size_t>(ctx.threads())) {
    if (screened_) {
      choose_centre();
      screen_.emplace(kind_of(task.metric), d_, scale_);
    }
  }

  void run() {
    const Screen* screen = screened_ ? &*screen_ : nullptr;
    QueryBatch batch(task_, simd_, screen, centre());
    RowBlock block(task_, simd_, std::max(sizes_.block, sizes_.sample), screened_);
    const std::int64_t m = task_.queries.rows();
    const std::int64_t blocks = (n_ + sizes_.block - 1) / sizes_.block;
    for (std::int64_t begin = 0; begin < m; begin += sizes_.batch) {
      const std::int64_t end = std::min(m, begin + sizes_.batch);
      batch.load(ctx_, begin, end);
      collector_->begin(begin, end);
      seeds_.assign(static_cast<std::size_t>(end - begin), kInfinity);
      weak_.assign(static_cast<std::size_t>(end - begin), 0);
      if (sizes_.sample > 0) {
        take_sample(block);
        search_block(batch, block, true);
      }
      if (splits_rows_) search_by_rows(batch);
      for (std::int64_t b = 0; b < blocks && !splits_rows_; ++b) {
        const std::int64_t first = b * sizes_.block;
        block.assign(first, std::min(n_, first + sizes_.block) - first);
        prepare_block(block);
        search_block(batch, block, false);
        const double done = (static_cast<double>(begin) + static_cast<double>(end - begin) *
                                                              static_cast<double>(b + 1) / static_cast<double>(blocks));
        ctx_.report("search", done / static_cast<double>(m));
      }
      core::parallel_for(ctx_, (end - begin + 255) / 256, [&](std::int64_t task, int) {
        const std::int64_t last = std::min(end, begin + (task + 1) * 256);
        for (std::int64_t q = begin + task * 256; q < last; ++q) {
          ctx_.check_cancelled();
          collector_->finish(q);
        }
      });
      collector_->end();
      for (const std::uint8_t weak : weak_) result_.stats.uncertified += weak;
    }
    for (const WorkerScratch& worker : workers_) result_.stats.survivors += worker.survived;
    result_.stats.distinct_rows = n_;
  }

 private:
  [[nodiscard]] const double* centre() const { return centre_.empty() ? nullptr : centre_.data(); }

  // Any fixed centre is sound. Distances: the table's median; cosine: the median direction; products: none.
  void choose_centre() {
    const kernels::Prepared& index = *task_.index;
    double largest = index.largest;
    if (task_.metric == Metric::cosine) {
      centre_.assign(static_cast<std::size_t>(d_), 0);
      if (core::normalize_row(index.centre.data(), d_, centre_.data())) {
        largest = 2;
      } else {
        centre_.clear();
        largest = 1;
      }
    } else if (task_.metric == Metric::inner_product) {
      for (const double c : index.centre) largest = std::max(largest, index.largest + std::fabs(c));
    } else {
      centre_ = index.centre;
    }
    // A power of two that brings every |y_c| below one.
    const int exponent = largest > 0 ? std::clamp(std::ilogb(largest) + 1, -1000, 1000) : 0;
    scale_ = std::ldexp(1.0, -exponent);
  }

  // Evenly spread rows, in runs so that a block source is not asked for single rows.
  void take_sample(RowBlock& block) {
    constexpr std::int64_t kRun = 16;
    std::vector<std::int64_t> rows;
    const std::int64_t runs = (sizes_.sample + kRun - 1) / kRun;
    for (std::int64_t r = 0; r < runs; ++r) {
      const std::int64_t first = r * (n_ - kRun) / std::max<std::int64_t>(runs - 1, 1);
      for (std::int64_t i = 0; i < kRun; ++i) {
        if (rows.empty() || rows.back() < first + i) rows.push_back(first + i);
      }
    }
    if (static_cast<std::int64_t>(rows.size()) > sizes_.sample) rows.resize(static_cast<std::size_t>(sizes_.sample));
    block.assign(rows);
    prepare_block(block);
  }

  void prepare_block(RowBlock& block) {
    std::vector<std::vector<double>> scratch(static_cast<std::size_t>(ctx_.threads()));
    core::parallel_for(ctx_, block.panels(), [&](std::int64_t panel, int worker) {
      block.prepare_panel(panel, screened_ ? &*screen_ : nullptr, centre(), scratch[static_cast<std::size_t>(worker)]);
    });
    block.summarise();
  }

  void search_block(const QueryBatch& batch, const RowBlock& block, bool sampling) {
    const std::int64_t groups = (batch.size() + sizes_.group - 1) / sizes_.group;
    core::parallel_for(ctx_, groups, [&](std::int64_t g, int worker) {
      WorkerScratch& scratch = workers_[static_cast<std::size_t>(worker)];
      const std::int64_t first = g * sizes_.group;
      const std::int64_t count = std::min(sizes_.group, batch.size() - first);
      if (screened_) {
        screen_group(batch, block, first, count, scratch);
        for (std::int64_t i = 0; i < count; ++i) finish_query(batch, block, first + i, i, sampling, scratch);
      } else {
        rank_group(batch, block, first, count, *collector_);
      }
    });
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
        part->collector = make_collector(ctx_, task_, candidates_, part->result, bytes_);
        part->collector->begin(batch.begin(), batch.begin() + batch.size());
        part->block = std::make_unique<RowBlock>(task_, simd_, sizes_.block, false);
      }
      const std::int64_t first = b * sizes_.block;
      part->block->assign(first, std::min(n_, first + sizes_.block) - first);
      for (std::int64_t p = 0; p < part->block->panels(); ++p) {
        part->block->prepare_panel(p, nullptr, nullptr, part->scratch);
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

  [[nodiscard]] Threshold threshold(const QueryBatch& batch, const RowBlock& block, std::int64_t i) const {
    const double key = limit(batch, i, *collector_);
    // The screen works on sums of squares: of a cosine key, twice the key.
    return screen_->threshold(batch.terms(i), task_.metric == Metric::cosine ? 2 * key : key, block.typical_norm());
  }

  void screen_group(const QueryBatch& batch, const RowBlock& block, std::int64_t first, std::int64_t count,
                    WorkerScratch& scratch) {
    const std::int64_t capacity = std::max(sizes_.block, sizes_.sample);
    scratch.survivors.resize(static_cast<std::size_t>(sizes_.group * capacity));
    scratch.counts.assign(static_cast<std::size_t>(sizes_.group), 0);
    scratch.thresholds.resize(static_cast<std::size_t>(sizes_.group));
    const std::int64_t width = simd_.tile_queries;
    const std::int64_t subs = (count + width - 1) / width;
    float a[4 * kMaxTileQueries] = {};
    float b[4 * kMaxTileQueries] = {};
    float t[4 * kMaxTileQueries] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      const Threshold now = scratch.thresholds[i] = threshold(batch, block, first + i);
      a[i] = now.a;
      b[i] = now.b;
      t[i] = now.t;
    }
    for (std::int64_t p = 0; p < block.panels(); ++p) {
      const std::int64_t row = p * simd_.tile_rows;
      for (std::int64_t s = 0; s < subs; ++s) {
        const std::int64_t q = s * width;
        ScreenTile tile{};
        tile.queries = batch.panel((first + q) / width);
        tile.rows = block.panel(p);
        tile.start = block.start() + row;
        tile.rho = block.rho() + row;
        tile.kappa = block.kappa() + row;
        tile.a = a + q;
        tile.b = b + q;
        tile.threshold = t + q;
        tile.d = d_;
        tile.valid_queries = static_cast<std::int32_t>(std::min(width, count - q));
        tile.valid_rows = static_cast<std::int32_t>(std::min<std::int64_t>(simd_.tile_rows, block.size() - row));
        tile.first_row = static_cast<std::uint32_t>(row);
        tile.survivors = scratch.survivors.data() + q * capacity;
        tile.capacity = capacity;
        tile.counts = scratch.counts.data() + q;
        simd_.screen_tile(tile);
      }
    }
  }

  // Ranks the survivors of query first + i. Many survivors: the best by score are ranked first, and what the tightened
  // threshold drops is not ranked at all.
  void finish_query(const QueryBatch& batch, const RowBlock& block, std::int64_t i, std::int64_t slot, bool sampling,
                    WorkerScratch& scratch) {
    const std::int64_t capacity = std::max(sizes_.block, sizes_.sample);
    Survivor* survivors = scratch.survivors.data() + slot * capacity;
    std::int64_t count = scratch.counts[slot];
    if (sampling) {
      seed_query(batch, block, i, survivors, count, scratch);
      return;
    }
    const std::int64_t best = 2 * task_.k + 8;
    // Scores of a query that float32 cannot hold may be NaN: they have no order.
    if (has_limit_from_sample(task_) && count > 2 * best && batch.terms(i).usable) {
      std::nth_element(survivors, survivors + best, survivors + count,
                       [](const Survivor& x, const Survivor& y) { return x.score > y.score; });
      rank(batch, block, i, survivors, best, scratch);
      survivors += best;
      count = drop(batch, block, i, scratch.thresholds[slot], survivors, count - best);
    }
    rank(batch, block, i, survivors, count, scratch);
    if (count > std::max<std::int64_t>(best, block.size() / 4) && count > 64) weak_[i] = 1;
  }

  // Keeps the survivors that pass the threshold as it is now. Scores were formed with `old`: what the new a and b would
  // add is added here, in float64 with a margin for the rounding of these few operations.
  std::int64_t drop(const QueryBatch& batch, const RowBlock& block, std::int64_t i, const Threshold& old,
                    Survivor* survivors, std::int64_t count) const {
    const Threshold now = threshold(batch, block, i);
    const double a = std::max(0.0, static_cast<double>(now.a) - static_cast<double>(old.a));
    const double b = std::max(0.0, static_cast<double>(now.b) - static_cast<double>(old.b));
    std::int64_t kept = 0;
    for (std::int64_t s = 0; s < count; ++s) {
      const Survivor survivor = survivors[s];
      const auto score = static_cast<double>(survivor.score);
      const double bound = score + a * static_cast<double>(block.rho()[survivor.row]) +
                           b * static_cast<double>(block.kappa()[survivor.row]);
      const bool far = bound + (std::fabs(bound) + std::fabs(score)) * 0x1p-40 < static_cast<double>(now.t);
      if (!far) survivors[kept++] = survivor;
    }
    return kept;
  }

  // The sample only bounds the answer: k eligible rows among it, ranked, give a key that the k-th nearest cannot
  // exceed.
  void seed_query(const QueryBatch& batch, const RowBlock& block, std::int64_t i, Survivor* survivors,
                  std::int64_t count, WorkerScratch& scratch) {
    if (!batch.terms(i).usable) return;
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
      sums(batch.row(i), rows, chunk, keys);
      for (std::int64_t s = 0; s < chunk; ++s) {
        const std::int64_t row = survivors[begin + s].row;
        const double key = key_of(keys[s], batch.is_zero(i) || block.is_zero(row));
        for (const std::int64_t id : candidates_.members(block.distinct(row))) {
          if (candidates_.eligible(query, id) && !heap.offer(key, id)) break;
        }
      }
    }
    seeds_[i] = heap.limit();
  }

  // Ranks survivors by the float64 key and offers them.
  void rank(const QueryBatch& batch, const RowBlock& block, std::int64_t i, const Survivor* survivors,
            std::int64_t count, WorkerScratch& scratch) {
    scratch.survived += count;
    const void* rows[kKeyChunk];
    std::int64_t at[kKeyChunk];
    for (std::int64_t begin = 0; begin < count; begin += kKeyChunk) {
      const std::int64_t chunk = std::min(kKeyChunk, count - begin);
      for (std::int64_t s = 0; s < chunk; ++s) {
        at[s] = survivors[begin + s].row;
        rows[s] = block.rows()[at[s]];
      }
      offer_keys(batch, block, i, rows, at, chunk, *collector_);
    }
  }

  // Method `direct`: every row of the block is ranked, in chunks that stay in the cache while the group passes over
  // them.
  void rank_group(const QueryBatch& batch, const RowBlock& block, std::int64_t first, std::int64_t count,
                  Collector& collector) {
    std::int64_t at[kKeyChunk];
    for (std::int64_t begin = 0; begin < block.size(); begin += kKeyChunk) {
      const std::int64_t chunk = std::min(kKeyChunk, block.size() - begin);
      for (std::int64_t s = 0; s < chunk; ++s) at[s] = begin + s;
      for (std::int64_t i = first; i < first + count; ++i) {
        offer_keys(batch, block, i, block.rows() + begin, at, chunk, collector);
      }
    }
  }

  void offer_keys(const QueryBatch& batch, const RowBlock& block, std::int64_t i, const void* const* rows,
                  const std::int64_t* at, std::int64_t count, Collector& collector) {
    ctx_.check_cancelled();
    double keys[kKeyChunk];
    sums(batch.row(i), rows, count, keys);
    const std::int64_t query = batch.begin() + i;
    double now = limit(batch, i, collector);
    for (std::int64_t s = 0; s < count; ++s) {
      const double key = key_of(keys[s], batch.is_zero(i) || block.is_zero(at[s]));
      if (!(std::fabs(key) < kInfinity)) [[unlikely]] {
        refuse_overflow(query, block.distinct(at[s]));
        continue;
      }
      if (key > now) continue;
      collector.offer(query, key, block.distinct(at[s]));
      now = limit(batch, i, collector);
    }
  }

  void sums(const double* x, const void* const* rows, std::int64_t count, double* out) const {
    const auto element = static_cast<int>(reading_.element);
    switch (task_.metric) {
      case Metric::euclidean:
      case Metric::sqeuclidean:
      case Metric::cosine:
        return simd_.keys[static_cast<int>(KeyOp::squares)][element](x, rows, count, d_, out);
      case Metric::inner_product:
        return simd_.keys[static_cast<int>(KeyOp::products)][element](x, rows, count, d_, out);
      case Metric::manhattan:
        return simd_.keys[static_cast<int>(KeyOp::absolutes)][element](x, rows, count, d_, out);
      case Metric::chebyshev:
        return simd_.keys[static_cast<int>(KeyOp::maximum)][element](x, rows, count, d_, out);
      case Metric::hamming:
        return simd_.keys[static_cast<int>(KeyOp::differing)][element](x, rows, count, d_, out);
      case Metric::minkowski:
        for (std::int64_t s = 0; s < count; ++s) {
          ctx_.check_cancelled();  // a power costs a hundred products
          out[s] = core::minkowski_key(x, static_cast<const double*>(rows[s]), d_, task_.p);
        }
        return;
    }
  }

  [[nodiscard]] double key_of(double sum, bool zero) const {
    switch (task_.metric) {
      case Metric::cosine:
        return zero ? 1.0 : 0.5 * sum;
      case Metric::inner_product:
        return 0.0 - sum;
      case Metric::hamming:
        return sum / static_cast<double>(d_);
      default:
        return sum;
    }
  }

  // Clause 1: an overflow is an error, but only of a pair that could be neighbors.
  void refuse_overflow(std::int64_t query, std::int64_t distinct) const {
    for (const std::int64_t id : candidates_.members(distinct)) {
      if (!candidates_.eligible(query, id)) continue;
      throw Error(ErrorCode::bad_data, "the distance of query row " + std::to_string(query) + " and table row " +
                                           std::to_string(id) + " overflows float64; scale the data down");
    }
  }

  const Context& ctx_;
  const kernels::NearestTask& task_;
  kernels::NearestResult& result_;
  const SimdKernels& simd_;
  std::int64_t d_;
  std::int64_t n_;  // distinct rows
  bool screened_;
  Sizes sizes_;
  bool splits_rows_;
  RowReading reading_;
  Candidates candidates_;
  std::atomic<std::uint64_t> bytes_;  // in use, for collectors whose answers grow
  std::unique_ptr<Collector> collector_;
  std::vector<WorkerScratch> workers_;
  std::vector<double> centre_;
  double scale_ = 1;
  std::optional<Screen> screen_;
  std::vector<double> seeds_;       // [batch] a key that bounds the k-th nearest, from the sample
  std::vector<std::uint8_t> weak_;  // [batch] the screen kept more than a quarter of some block
};

}  // namespace

bool screen_serves(Metric metric, std::int64_t d) {
  const bool product = metric == Metric::euclidean || metric == Metric::sqeuclidean || metric == Metric::cosine ||
                       metric == Metric::inner_product;
  return product && d <= Screen::kMaxColumns;
}

void nearest(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result) {
  const core::DefaultFloats floats;
  Search(ctx, task, result).run();
}

std::uint64_t nearest_scratch(const Context& ctx, const kernels::NearestTask& task) {
  const bool screened = task.method == Method::fused && screen_serves(task.metric, task.queries.cols());
  const Sizes sizes(task, simd_kernels(ctx.isa()), screened);
  const std::int64_t block = std::max(sizes.block, sizes.sample);
  std::uint64_t bytes = RowBlock::bytes(task, block);
  bytes += static_cast<std::uint64_t>(sizes.batch) * (QueryBatch::bytes_a_query(task, screened) + 24);
  if (splits_rows(ctx, task, sizes, screened)) {  // a block and lists of each worker's own
    const auto lists = static_cast<std::uint64_t>(task.queries.rows() * (task.k + 1)) * 16;
    bytes += static_cast<std::uint64_t>(ctx.threads()) * (lists + RowBlock::bytes(task, sizes.block));
  }
  if (task.queries.is_block_source()) bytes += static_cast<std::uint64_t>(sizes.batch * task.queries.cols()) * 8;
  if (screened)
    bytes += static_cast<std::uint64_t>(ctx.threads()) * static_cast<std::uint64_t>(sizes.group * block) * 8;
  return bytes;
}

}  // namespace vicinal::cpu
