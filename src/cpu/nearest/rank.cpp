// How rows are ranked by the float64 key (search.hpp). Rows that pass a screen, and for method direct all rows, are
// offered to the collector: here the answers are decided. The keys of a sample's rows give a query its first limit.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/infinity.hpp"
#include "cpu/nearest/search.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kAheadBytes = 1024;  // of a row; what follows is read in order

}  // namespace

// Ranks the survivors of query first + i. Many survivors: the best by score are ranked first, and what the tightened
// threshold drops is not ranked at all.
void Search::finish_query(Pass& pass, const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                          std::int64_t slot, Stage stage, WorkerScratch& scratch) {
  const std::int64_t capacity = std::max(sizes_.block, sizes_.sample);
  Survivor* survivors = scratch.survivors.data() + slot * capacity;
  std::int64_t count = scratch.counts[slot];
  if (stage != Stage::table) {
    seed_query(batch, block, level, i, slot, scratch);
    return;
  }
  if (selective_ && pass.collector->limit(batch.begin() + i) == -kInfinity) return;
  const std::int64_t best = 2 * task_.k + 8;
  if (tells_keys(batch, level, i)) {
    const std::span<const Survivor> found(survivors, static_cast<std::size_t>(count));
    const auto waiting =
        static_cast<std::int64_t>(let_wait(pass, batch, block, level, i, scratch.thresholds[slot], found));
    survivors += waiting;
    count -= waiting;
  }
  // Scores of a query that float32 cannot hold may be NaN: they have no order.
  if (has_limit_from_sample(task_) && count > 2 * best && batch.terms(level, i).usable) {
    std::nth_element(survivors, survivors + best, survivors + count,
                     [](const Survivor& x, const Survivor& y) { return x.score > y.score; });
    rank(pass, batch, block, i, survivors, best, scratch);
    survivors += best;
    count = level == 0 && finer_ != nullptr
                ? refine(pass, batch, block, i, survivors, count - best)
                : drop(pass, batch, block, level, i, scratch.thresholds[slot], survivors, count - best);
  }
  rank(pass, batch, block, i, survivors, count, scratch);
  if (count > std::max<std::int64_t>(best, block.size() / 4) && count > 64) pass.weak[i] = 1;
}

// Keeps the survivors that pass the threshold as it is now. Scores were formed with the a and b of `old`: what the
// new ones add or (int8, whose a and b are the tile's) take away is applied here, in float64.
std::int64_t Search::drop(const Pass& pass, const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
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
void Search::seed_query(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i, std::int64_t slot,
                        WorkerScratch& scratch) {
  if (!batch.terms(level, i).usable) return;
  Survivor* const survivors = scratch.survivors.data() + slot * std::max(sizes_.block, sizes_.sample);
  const std::int64_t count = scratch.counts[slot];
  scratch.heap_keys.resize(static_cast<std::size_t>(task_.k));
  scratch.heap_ids.resize(static_cast<std::size_t>(task_.k));
  NearestHeap heap(scratch.heap_keys.data(), scratch.heap_ids.data(), task_.k);
  const std::int64_t best = std::min(count, 2 * task_.k + 8);
  if (best < count) {
    std::nth_element(survivors, survivors + best, survivors + count,
                     [](const Survivor& x, const Survivor& y) { return x.score > y.score; });
  }
  if (tells_keys(batch, level, i)) {
    const std::span<const Survivor> found(survivors, static_cast<std::size_t>(best));
    return seed_by_bounds(batch, block, level, i, scratch.thresholds[slot], found, heap);
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

void Search::fetch_row(const RowBlock& block, std::int64_t row) {
  const auto* const bytes = static_cast<const std::byte*>(block.borrowed(row));
  const std::int64_t ahead = std::min<std::int64_t>(block.element_bytes(), kAheadBytes);
  for (std::int64_t at = 0; at < ahead; at += 64) __builtin_prefetch(bytes + at);
}

void Search::add(const RowBlock& block, std::int64_t row, KeyRows& rows, WorkerScratch& scratch) const {
  const std::int64_t s = rows.count++;
  rows.at[s] = row;
  if (!single_rows_) {
    rows.elements[s] = block.rows()[row];
    rows.zero[s] = block.is_zero(row);
  } else if (block.borrows()) {
    const void* const elements = block.borrowed(row);
    rows.elements[s] = elements;
    if (task_.pruned) fetch_row(block, row);  // many rows far from each other: they are fetched while others are
    rows.zero[s] = false;
  } else {
    const std::int64_t bytes = block.element_bytes();
    std::byte* const to = scratch.elements.data() + s * bytes;
    rows.zero[s] = block.materialise(row, scratch.row.data(), to);
    rows.elements[s] = to;
  }
}

// Ranks survivors by the float64 key and offers them.
void Search::rank(const Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t i,
                  const Survivor* survivors, std::int64_t count, WorkerScratch& scratch) {
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
void Search::rank_group(const QueryBatch& batch, const RowBlock& block, std::int64_t first, std::int64_t count,
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

void Search::offer_keys(const QueryBatch& batch, const RowBlock& block, std::int64_t i, const void* const* rows,
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

}  // namespace vicinal::cpu
