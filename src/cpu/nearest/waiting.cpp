// Rows whose keys wait (search.hpp). If an int8 screen compares all columns, its sums bound keys from both sides
// (screen.hpp), for rows and queries of whole numbers to a few millionths. Then limits fall without keys: a query's
// k-th smallest upper bound is at least its k-th key. What survives a round is noted with its bounds, and at the end
// keys are computed of the rows whose lower bounds the last limits leave, little more than k. A row is met once by the
// rounds, so no bound counts twice; those of the sample are counted apart (`seed_by_bounds`). O(k) memory a query and
// part.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cpu/nearest/search.hpp"

namespace vicinal::cpu {
namespace {

constexpr double kNearlyExact = 0x1p-10;  // of the query's length: rounding that leaves bounds close

}  // namespace

void Search::ready_waiting() {
  static_assert(sizeof(WaitingRow) == kWaitingRowBytes);
  if (waiting_room_ == 0) return;
  for (const auto& part : parts_of_table_) part->pass.waiting.reserve(static_cast<std::size_t>(waiting_room_));
  bounds_.reserve(static_cast<std::size_t>(task_.queries.rows() * task_.k));
  num_bounds_.reserve(static_cast<std::size_t>(task_.queries.rows()));
}

void Search::begin_waiting(const QueryBatch& batch) {
  waits_ = waiting_room_ > 0;
  if (!waits_) return;
  // The first screen must tell keys: of rows of which some wait and some are ranked, no limit would count all.
  const Screen& first = finer_ != nullptr ? *ladder_[0].finer() : ladder_[0];
  waits_ = first.tells_keys() && (finer_ == nullptr || finer_->is_complete());
  if (!waits_) return;
  for (const auto& part : parts_of_table_) {
    part->pass.waiting.clear();
    part->pass.counted = 0;
  }
  bounds_.resize(static_cast<std::size_t>(batch.size() * task_.k));
  num_bounds_.assign(static_cast<std::size_t>(batch.size()), 0);
}

// Whether the scores that query i's survivors have in a screen bound their keys closely.
bool Search::tells_keys(const QueryBatch& batch, int level, std::int64_t i) const {
  const bool refined = level == 0 && finer_ != nullptr;
  const Screen& screen = refined ? *ladder_[0].finer() : ladder_[level];
  const QueryTerms& query = refined ? batch.finer_terms(i) : batch.terms(level, i);
  return waits_ && screen.tells_keys() && query.usable && query.rho <= kNearlyExact * std::sqrt(query.rounded_sq);
}

// Of such a survivor. `used`: what the screen's scores were formed with.
KeyRange Search::key_range(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                           const Threshold& used, const Survivor& survivor) const {
  if (level == 0 && finer_ != nullptr) {
    const FinerTerms terms = FinerTerms::of(finer_->finer(block.distinct(survivor.row)), finer_->finer_bytes());
    return ladder_[0].finer()->key_range(batch.finer_terms(i), survivor.score, terms.rho, 0);
  }
  const PackedRows& packed = block.packed(level);
  const float rho = packed.rho[survivor.row];
  const double added = used.a * static_cast<double>(rho) + used.b * static_cast<double>(packed.kappa[survivor.row]);
  return ladder_[level].key_range(batch.terms(level, i), survivor.score, rho, added);
}

// A limit from survivors of the sample.
void Search::seed_by_bounds(const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                            const Threshold& used, std::span<const Survivor> survivors, NearestHeap& heap) {
  for (const Survivor& survivor : survivors) {
    const std::int64_t id = block.distinct(survivor.row);
    if (!candidates_.eligible(batch.begin() + i, id)) continue;
    heap.offer(key_range(batch, block, level, i, used, survivor).most, id);
  }
  seeds_[i] = std::min(seeds_[i], heap.limit());
}

// Notes survivors of query first + i, as many as there is room for, and returns their number.
std::size_t Search::let_wait(Pass& pass, const QueryBatch& batch, const RowBlock& block, int level, std::int64_t i,
                             const Threshold& used, std::span<const Survivor> survivors) const {
  const double now = limit(batch, i, *pass.collector);
  for (std::size_t s = 0; s < survivors.size(); ++s) {
    if (static_cast<std::int64_t>(pass.waiting.size()) == waiting_room_) return s;
    const KeyRange range = key_range(batch, block, level, i, used, survivors[s]);
    const std::int64_t id = block.distinct(survivors[s].row);
    if (range.least > now || candidates_.is_own(batch.begin() + i, id)) continue;
    pass.waiting.push_back(
        {round_down(range.least), round_up(range.most), static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(id)});
  }
  return survivors.size();
}

// After a round: lowers limits by the bounds of the rows that wait, and lets go of rows that are beyond.
void Search::count_bounds(const QueryBatch& batch) {
  for (const auto& part : parts_of_table_) {
    Pass& pass = part->pass;
    for (; pass.counted < pass.waiting.size(); ++pass.counted) {
      const WaitingRow& row = pass.waiting[pass.counted];
      float* const bounds = bounds_.data() + static_cast<std::int64_t>(row.query) * task_.k;
      std::int64_t& count = num_bounds_[row.query];
      if (count == task_.k) {
        if (!(row.most < bounds[0])) continue;
        std::pop_heap(bounds, bounds + count--);
      }
      bounds[count++] = row.most;
      std::push_heap(bounds, bounds + count);
    }
  }
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    if (num_bounds_[i] == task_.k) seeds_[i] = std::min(seeds_[i], static_cast<double>(bounds_[i * task_.k]));
  }
  for (const auto& part : parts_of_table_) {
    std::erase_if(part->pass.waiting,
                  [&](const WaitingRow& row) { return static_cast<double>(row.least) > seeds_[row.query]; });
    part->pass.counted = part->pass.waiting.size();
  }
}

// At the end of the rounds.
void Search::rank_waiting(const QueryBatch& batch) {
  const auto rank_of = [&](std::int64_t i, int worker) {
    RowBlock& block = *blocks_of_workers_[static_cast<std::size_t>(worker)];
    std::int64_t ids[kKeyChunk];
    Survivor rows[kKeyChunk];
    std::int64_t count = 0;
    const auto rank_some = [&] {
      std::sort(ids, ids + count);
      block.assign({ids, static_cast<std::size_t>(count)});
      for (std::int64_t s = 0; s < count; ++s) {
        rows[s] = {0, static_cast<std::uint32_t>(s)};
        if (block.borrows()) fetch_row(block, s);
      }
      rank(all_, batch, block, i, rows, count, workers_[static_cast<std::size_t>(worker)]);
      count = 0;
    };
    for (const auto& part : parts_of_table_) {
      for (const WaitingRow& row : part->pass.waiting) {
        if (row.query != i || static_cast<double>(row.least) > limit(batch, i, *collector_)) continue;
        ids[count++] = row.row;
        if (count == kKeyChunk) rank_some();
      }
    }
    if (count > 0) rank_some();
  };
  parallel_for(batch.size(), rank_of);
}

}  // namespace vicinal::cpu
