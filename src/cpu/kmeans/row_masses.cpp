// See row_masses.hpp.
#include "cpu/kmeans/row_masses.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/kmeans/seeding.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kBlock = 64;  // chunks, where a row takes next to nothing
// The screen pauses after a step in which it left out less than one in so many pairs that it judged: a pair takes it a
// small part of the time that a key takes. The first pause has so many steps.
constexpr std::int64_t kWorthShare = 6;
constexpr std::int64_t kScreenPause = 2;
constexpr std::int64_t kWideRow = 1024;        // columns of a row before which a cancel is looked for
constexpr std::int32_t kMixed = -1;            // in the place of a group's center
constexpr std::int64_t kBetweenCentres = 256;  // whose keys to a draw are one task
static_assert(kSeedingChunk % core::kMassParts == 0);

// The bits of rows [first, end) in the word of a group.
std::uint32_t bits_of(std::int64_t group, std::int64_t first, std::int64_t end) {
  const std::int64_t from = std::max<std::int64_t>(first - group * core::kMassParts, 0);
  const std::int64_t to = std::min<std::int64_t>(end - group * core::kMassParts, core::kMassParts);
  return static_cast<std::uint32_t>((std::uint64_t{1} << to) - (std::uint64_t{1} << from));
}

// Whether the plan counts the screen, and the values leave its memory.
bool has_room_for_screen(const Context& ctx, const kernels::ClusterTask& task, const kernels::Lloyd& lloyd,
                         std::int64_t trials) {
  return seeding_screen_bytes(ctx, task, trials) > 0 && task.screens.draws > 0 &&
         task.planned + lloyd.more_bytes() <= ctx.memory_limit();
}

}  // namespace

RowMasses::RowMasses(const Context& ctx, const kernels::ClusterTask& task, kernels::Lloyd& lloyd, std::int64_t trials,
                     std::int64_t first)
    : ctx_(ctx),
      task_(task),
      lloyd_(lloyd),
      before_(first % kAligned),
      rows_(before_ + task.table.rows()),
      d_(task.table.cols()),
      keys_of_(
          simd_kernels(ctx.isa()).keys[static_cast<int>(KeyOp::squares)][static_cast<int>(row_element(task.table))]),
      wide_keys_of_(simd_kernels(ctx.isa()).keys[static_cast<int>(KeyOp::squares)][static_cast<int>(Element::float64)]),
      tree_(rows_),
      keys_(rows_),
      sums_(static_cast<std::size_t>(tree_.nodes)),
      winners_(static_cast<std::size_t>(rows_), 0),
      attempts_(static_cast<std::size_t>(trials)),
      may_screen_(has_room_for_screen(ctx, task, lloyd, trials)),
      screen_first_(before_ / kSeedingChunk * kSeedingChunk),
      backoff_(kScreenPause),
      workers_(static_cast<std::size_t>(ctx.threads())) {
  std::fill_n(keys_.data(), before_, 0.0);
  std::fill(keys_.data() + before_, keys_.data() + rows_, 1.0);
  for (Attempt& attempt : attempts_) {
    attempt.keys.reserve(rows_);
    attempt.changed.resize(static_cast<std::size_t>(tree_.sizes[0]));
    attempt.sums.resize(sums_.size());
    attempt.centre.resize(padded());
  }
  if (trials > 0) groups_.assign(static_cast<std::size_t>(tree_.sizes[0]), Group{kMixed, 0});
  for (Worker& worker : workers_) {
    worker.open.resize(static_cast<std::size_t>(kSeedingChunk * trials));
    worker.counts.resize(static_cast<std::size_t>(trials));
    worker.rows.resize(kSeedingChunk);
    worker.keys.resize(kSeedingChunk);
  }
  if (trials == 0) {
    batch_keys_.resize(static_cast<std::size_t>(rows_ - before_));
    batch_labels_.resize(batch_keys_.size());
  }
  add_masses([](std::int64_t /*row*/) {});
}

template <class Visit>
void RowMasses::add_masses(const Visit& visit) {
  constexpr std::int64_t kRows = kBlock * kSeedingChunk;
  core::parallel_for(ctx_, (rows_ + kRows - 1) / kRows, [&](std::int64_t block, int /*worker*/) {
    const std::int64_t first = block * kRows;
    const std::int64_t end = std::min(first + kRows, rows_);
    for (std::int64_t row = std::max(first, before_); row < end; ++row) visit(row);
    for (std::int64_t group = first / core::kMassParts; group * core::kMassParts < end; ++group) {
      sums_[static_cast<std::size_t>(group)] = group_mass(group, [&](std::int64_t row) { return key_of(row); });
    }
  });
  core::add_levels(tree_, sums_.data());
}

double RowMasses::mass(std::int64_t attempt, std::int64_t row) const {
  if (attempt == kAsTheyAre) return mass_of(row, key_of(row));
  const Attempt& its = attempts_[static_cast<std::size_t>(attempt)];
  const std::uint32_t changed = its.changed[static_cast<std::size_t>(row / core::kMassParts)];
  const bool is_changed = (changed >> row % core::kMassParts & 1U) != 0;
  return mass_of(row, is_changed ? its.keys[row] : key_of(row));
}

// The keys between the drawn rows and the centers so far.
void RowMasses::find_between(std::int64_t trials) {
  between_.resize(static_cast<std::size_t>(trials * centres_));
  nearest_.resize(static_cast<std::size_t>(centres_));
  core::parallel_for(ctx_, (centres_ + kBetweenCentres - 1) / kBetweenCentres, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t first = task * kBetweenCentres;
    const std::int64_t count = std::min(kBetweenCentres, centres_ - first);
    const void* pointers[kBetweenCentres];
    for (std::int64_t c = 0; c < count; ++c) {
      pointers[c] = values_.data() + (first + c) * static_cast<std::int64_t>(padded());
    }
    double* const nearest = nearest_.data() + first;
    for (std::int64_t t = 0; t < trials; ++t) {
      double* const keys = between_.data() + t * centres_ + first;
      wide_keys_of_(attempts_[static_cast<std::size_t>(t)].centre.data(), pointers, count, d_, keys);
      for (std::int64_t c = 0; c < count; ++c) nearest[c] = t == 0 ? keys[c] : std::min(nearest[c], keys[c]);
    }
  });
}

void RowMasses::attempt(std::span<const double> rows) {
  const std::int64_t trials = static_cast<std::int64_t>(rows.size()) / d_;
  for (std::int64_t t = 0; t < trials; ++t) {
    std::copy_n(rows.data() + t * d_, d_, attempts_[static_cast<std::size_t>(t)].centre.data());
  }
  find_between(trials);
  screens_ = screen_ != nullptr && !backoff_.waits();
  if (screens_) screen_->ask(rows);
  for_each_part(ctx_, task_.table, [&](const TableView& part, std::int64_t part_first) {
    // A group of rows that two parts share is summed by both, at last with the rows of both.
    const std::int64_t part_begin = before_ + part_first;
    const std::int64_t part_end = part_begin + part.rows();
    const std::int64_t first_chunk = part_begin / kSeedingChunk;
    const std::int64_t end_chunk = (part_end + kSeedingChunk - 1) / kSeedingChunk;
    core::parallel_for(ctx_, end_chunk - first_chunk, [&](std::int64_t task, int w) {
      Worker& worker = workers_[static_cast<std::size_t>(w)];
      const std::int64_t first = std::max((first_chunk + task) * kSeedingChunk, part_begin);
      const std::int64_t end = std::min((first_chunk + task + 1) * kSeedingChunk, part_end);
      const std::int64_t begin = first - part_begin;
      if (screens_) {
        list_screened(worker, trials, first, end);
        for (std::int64_t t = 0; t < trials; ++t) {
          const std::int32_t* const open = worker.open.data() + t * kSeedingChunk;
          const auto count = static_cast<std::size_t>(worker.counts[static_cast<std::size_t>(t)]);
          worker.reader.gather(part, begin, {open, count}, worker.rows.data());
          attempt_rows(worker, t, first, end);
        }
        return;
      }
      bool is_open = false;
      for (std::int64_t t = 0; t < trials; ++t) {
        list_open(worker, t, first, end);
        const std::int32_t* const open = worker.open.data() + t * kSeedingChunk;
        const std::int64_t count = worker.counts[static_cast<std::size_t>(t)];
        if (!is_open && count > 0) {
          worker.reader.open(part, begin, end - part_begin);
          is_open = true;
        }
        for (std::int64_t i = 0; i < count; ++i) {
          worker.rows[static_cast<std::size_t>(i)] = worker.reader.row(begin + open[i]);
        }
        attempt_rows(worker, t, first, end);
      }
    });
  });
  for (std::int64_t t = 0; t < trials; ++t) core::add_levels(tree_, attempts_[static_cast<std::size_t>(t)].sums.data());
  choose_screen();
}

// Decides, after a step, whether the next ones are screened.
void RowMasses::choose_screen() {
  std::int64_t screened = 0;
  std::int64_t computed = 0;
  for (Worker& worker : workers_) {
    screened += std::exchange(worker.screened, 0);
    computed += std::exchange(worker.computed, 0);
  }
  if (!may_screen_) return;
  if (screen_) {
    if (screens_ && (screened - computed) * kWorthShare < screened) backoff_.fail();
    return;
  }
  unscreened_ += computed;
  if (unscreened_ < kPackingKeys * (rows_ - before_)) return;
  const auto trials = static_cast<std::int64_t>(attempts_.size());
  if ((task_.clusters - centres_ - 1) * trials <= kPackingKeys) return;
  try {
    auto screen = std::make_unique<SeedingScreen>(simd_kernels(ctx_.isa()), SeedingScreen::choose(ctx_, task_.table),
                                                  rows_ - screen_first_, trials);
    pack_rows(*screen);
    for (Worker& worker : workers_) worker.scratch = screen->scratch();
    screen_ = std::move(screen);
  } catch (const std::bad_alloc&) {  // draws without it have the same bits
    may_screen_ = false;
  }
}

void RowMasses::pack_rows(SeedingScreen& screen) const {
  for (std::int64_t row = screen_first_; row < before_; ++row) screen.pack_nothing(row - screen_first_);
  const std::int64_t rows = rows_ - before_;
  // Rows of a tile are written by one worker, as far as they are in one task.
  const std::int64_t first_chunk = before_ / kSeedingChunk;
  const std::int64_t end_chunk = (rows_ + kSeedingChunk - 1) / kSeedingChunk;
  core::parallel_for(ctx_, end_chunk - first_chunk, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t first = std::max((first_chunk + task) * kSeedingChunk, before_);
    const std::int64_t end = std::min((first_chunk + task + 1) * kSeedingChunk, before_ + rows);
    std::vector<double> values(static_cast<std::size_t>(d_));
    for (std::int64_t row = first; row < end; ++row) {
      if (d_ > kWideRow) ctx_.check_cancelled();
      core::widen_rows(task_.table, row - before_, row - before_ + 1, values.data());
      screen.pack(row - screen_first_, values.data(), key_of(row));
    }
  });
}

// Whether a draw may change a row of a group, as far as its center and its greatest key say; `between`: keys between
// the centers and a draw, or the least of those of all draws.
bool RowMasses::is_open(std::int64_t group, const double* between) const {
  const Group& its = groups_[static_cast<std::size_t>(group)];
  return its.centre < 0 || between[its.centre] < unchanged_from(its.greatest, d_);
}

// The rows of [first, end) that a draw may change.
void RowMasses::list_open(Worker& worker, std::int64_t draw, std::int64_t first, std::int64_t end) const {
  const double* const between = between_.data() + draw * centres_;
  std::int32_t* const open = worker.open.data() + draw * kSeedingChunk;
  std::int64_t count = 0;
  for (std::int64_t group = first / core::kMassParts; group * core::kMassParts < end; ++group) {
    if (!is_open(group, between)) continue;
    const std::int64_t group_end = std::min(end, (group + 1) * core::kMassParts);
    for (std::int64_t row = std::max(first, group * core::kMassParts); row < group_end; ++row) {
      open[count] = static_cast<std::int32_t>(row - first);
      const bool changes =
          centres_ == 0 || between[winners_[static_cast<std::size_t>(row)]] < unchanged_from(key_of(row), d_);
      count += changes ? 1 : 0;
    }
  }
  worker.counts[static_cast<std::size_t>(draw)] = count;
}

// The same for all draws, of which the screen leaves some rows out. Tiles of a group that is not open are not screened.
// Rows that are found are on their way to the caches until their keys are computed.
void RowMasses::list_screened(Worker& worker, std::int64_t trials, std::int64_t first, std::int64_t end) const {
  std::fill(worker.counts.begin(), worker.counts.end(), 0);
  const std::int64_t height = screen_->tile_rows();
  const std::int64_t first_tile = (first - screen_first_) / height;
  const std::int64_t end_tile = (end - screen_first_ + height - 1) / height;
  for (std::int64_t tile = first_tile; tile < end_tile; ++tile) {
    const std::int64_t tile_first = screen_first_ + tile * height;
    if (!is_open(tile_first / core::kMassParts, nearest_.data())) continue;
    const std::int64_t from = std::max(first, tile_first);
    const std::int64_t to = std::min(end, tile_first + height);
    worker.screened += (to - from) * trials;
    screen_->survivors(tile, worker.scratch);
    for (const SeedingScreen::Found& found : worker.scratch.found) {
      const std::int64_t row = tile_first + found.row;
      if (row < from || row >= to) continue;
      const auto centre = static_cast<std::int64_t>(winners_[static_cast<std::size_t>(row)]);
      const double between = between_[static_cast<std::size_t>(found.draw * centres_ + centre)];
      if (!(between < unchanged_from(key_of(row), d_))) continue;
      std::int64_t& count = worker.counts[static_cast<std::size_t>(found.draw)];
      worker.open[static_cast<std::size_t>(found.draw * kSeedingChunk + count++)] =
          static_cast<std::int32_t>(row - first);
      RowReader::prefetch(task_.table, row - before_);
    }
  }
}

// The sum of the masses of 32 rows as an attempt would leave them.
double RowMasses::changed_mass(const Attempt& attempt, std::int64_t group) const {
  const std::int64_t first = group * core::kMassParts;
  const std::int64_t count = std::min(core::kMassParts, rows_ - first);
  double masses[core::kMassParts] = {};  // what is beyond the last row adds nothing
  std::copy_n(keys_.data() + first, count, masses);
  for (std::uint32_t left = attempt.changed[static_cast<std::size_t>(group)]; left != 0; left &= left - 1) {
    const int at = std::countr_zero(left);
    masses[at] = attempt.keys[first + at];
  }
  if (!task_.weights.empty()) {
    for (std::int64_t i = 0; i < count; ++i) masses[i] = mass_of(first + i, masses[i]);
  }
  return core::sum_of_parts(core::kMassParts, [&](std::int64_t i) { return masses[i]; });
}

// One draw and the rows [first, end), of which it may change the listed ones.
void RowMasses::attempt_rows(Worker& worker, std::int64_t draw, std::int64_t first, std::int64_t end) {
  Attempt& attempt = attempts_[static_cast<std::size_t>(draw)];
  const std::int32_t* const open = worker.open.data() + draw * kSeedingChunk;
  const std::int64_t count = worker.counts[static_cast<std::size_t>(draw)];
  const std::int64_t first_group = first / core::kMassParts;
  const std::int64_t end_group = (end + core::kMassParts - 1) / core::kMassParts;
  std::uint32_t* const changed = attempt.changed.data();
  changed[first_group] &= ~bits_of(first_group, first, end);
  changed[end_group - 1] &= ~bits_of(end_group - 1, first, end);
  if (first_group + 1 < end_group) std::fill(changed + first_group + 1, changed + end_group - 1, 0U);
  keys_of_(attempt.centre.data(), worker.rows.data(), count, d_, worker.keys.data());
  worker.computed += count;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = first + open[i];
    const double key = worker.keys[static_cast<std::size_t>(i)];
    if (centres_ > 0 && !(key < key_of(row))) continue;
    attempt.keys[row] = key;
    changed[row / core::kMassParts] |= 1U << row % core::kMassParts;
  }
  double* const sums = attempt.sums.data();
  std::copy(sums_.data() + first_group, sums_.data() + end_group, sums + first_group);
  for (std::int64_t group = first_group; group < end_group; ++group) {
    if (changed[group] != 0) sums[group] = changed_mass(attempt, group);
  }
}

void RowMasses::note_group(std::int64_t group) {
  const std::int64_t first = group * core::kMassParts;
  const std::int64_t end = std::min(first + core::kMassParts, rows_);
  const std::int32_t* const winners = winners_.data();
  Group& its = groups_[static_cast<std::size_t>(group)];
  its = {winners[first], key_of(first)};
  for (std::int64_t row = first + 1; row < end; ++row) {
    if (winners[row] != winners[first]) its.centre = kMixed;
    its.greatest = std::max(its.greatest, key_of(row));
  }
}

void RowMasses::take(std::int64_t attempt) {
  Attempt& taken = attempts_[static_cast<std::size_t>(attempt)];
  constexpr std::int64_t kGroups = kBlock * kSeedingChunk / core::kMassParts;
  const auto groups = static_cast<std::int64_t>(taken.changed.size());
  core::parallel_for(ctx_, (groups + kGroups - 1) / kGroups, [&](std::int64_t block, int /*worker*/) {
    for (std::int64_t group = block * kGroups; group < std::min(groups, (block + 1) * kGroups); ++group) {
      std::uint32_t changed = taken.changed[static_cast<std::size_t>(group)];
      if (changed == 0) continue;
      for (; changed != 0; changed &= changed - 1) {
        const std::int64_t row = group * core::kMassParts + std::countr_zero(changed);
        keys_[row] = taken.keys[row];
        winners_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(centres_);
        if (screen_) screen_->set_key(row - screen_first_, keys_[row]);
      }
      note_group(group);
    }
  });
  std::swap(sums_, taken.sums);
  ++centres_;
  values_.insert(values_.end(), taken.centre.begin(), taken.centre.end());
}

void RowMasses::meet(std::span<const double> rows) {
  lloyd_.start(rows);
  lloyd_.assign();
  lloyd_.keys(batch_keys_);
  lloyd_.labels(batch_labels_);
  add_masses([&](std::int64_t row) {
    const auto own = static_cast<std::size_t>(row - before_);
    if (centres_ != 0 && !(batch_keys_[own] < keys_[row])) return;
    keys_[row] = batch_keys_[own];
    winners_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(centres_) + batch_labels_[own];
  });
  centres_ += static_cast<std::int64_t>(rows.size()) / d_;
}

}  // namespace vicinal::cpu
