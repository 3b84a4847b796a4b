// See row_masses.hpp.
#include "cpu/kmeans/row_masses.hpp"

#include <bit>

#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "cpu/kmeans/seeding.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kBlock = 64;  // chunks, where a row takes next to nothing
static_assert(kSeedingChunk % core::kMassParts == 0);

// The bits of rows [first, end) in the word of a group.
std::uint32_t bits_of(std::int64_t group, std::int64_t first, std::int64_t end) {
  const std::int64_t from = std::max<std::int64_t>(first - group * core::kMassParts, 0);
  const std::int64_t to = std::min<std::int64_t>(end - group * core::kMassParts, core::kMassParts);
  return static_cast<std::uint32_t>((std::uint64_t{1} << to) - (std::uint64_t{1} << from));
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
      keys_(static_cast<std::size_t>(rows_), 1),
      sums_(static_cast<std::size_t>(tree_.nodes)),
      winners_(keys_.size(), 0),
      attempts_(static_cast<std::size_t>(trials)),
      workers_(static_cast<std::size_t>(ctx.threads())) {
  std::fill_n(keys_.begin(), before_, 0.0);
  for (Attempt& attempt : attempts_) {
    attempt.keys.resize(keys_.size());
    attempt.changed.resize(static_cast<std::size_t>(tree_.sizes[0]));
    attempt.sums.resize(sums_.size());
    attempt.centre.resize(padded());
  }
  for (Worker& worker : workers_) {
    worker.limits.resize(kSeedingChunk);
    worker.open.resize(kSeedingChunk);
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
  return mass_of(row, is_changed ? its.keys[static_cast<std::size_t>(row)] : key_of(row));
}

void RowMasses::attempt(std::span<const double> rows) {
  const std::size_t trials = rows.size() / static_cast<std::size_t>(d_);
  const auto centres = static_cast<std::size_t>(centres_);
  std::vector<const void*> pointers;
  for (std::size_t c = 0; c < centres; ++c) pointers.push_back(values_.data() + c * padded());
  between_.resize(trials * centres);
  for (std::size_t t = 0; t < trials; ++t) {
    double* const centre = attempts_[t].centre.data();
    std::copy_n(rows.data() + t * static_cast<std::size_t>(d_), d_, centre);
    wide_keys_of_(centre, pointers.data(), centres_, d_, between_.data() + t * centres);
  }
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
      set_limits(worker, first, end);
      bool is_open = false;
      for (std::size_t t = 0; t < trials; ++t) {
        list_open(worker, between_.data() + t * centres, first, end);
        if (!is_open && !worker.rows.empty()) {
          worker.reader.open(part, begin, end - part_begin);
          is_open = true;
        }
        for (std::size_t i = 0; i < worker.rows.size(); ++i) worker.rows[i] = worker.reader.row(begin + worker.open[i]);
        attempt_rows(worker, attempts_[t], first, end);
      }
    });
  });
  for (std::size_t t = 0; t < trials; ++t) core::add_levels(tree_, attempts_[t].sums.data());
}

void RowMasses::set_limits(Worker& worker, std::int64_t first, std::int64_t end) const {
  for (std::int64_t row = first; row < end; ++row) {
    worker.limits[static_cast<std::size_t>(row - first)] = unchanged_from(key_of(row), d_);
  }
}

// The rows of [first, end) that a draw may change; between: [centers] its keys to these.
void RowMasses::list_open(Worker& worker, const double* between, std::int64_t first, std::int64_t end) const {
  const std::int32_t* const winners = winners_.data() + first;
  std::size_t count = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(end - first); ++i) {
    worker.open[count] = i;
    count += centres_ == 0 || between[winners[i]] < worker.limits[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  worker.rows.resize(count);
}

// One draw and the rows [first, end), of which it may change the listed ones.
void RowMasses::attempt_rows(Worker& worker, Attempt& attempt, std::int64_t first, std::int64_t end) {
  const std::int64_t first_group = first / core::kMassParts;
  const std::int64_t end_group = (end + core::kMassParts - 1) / core::kMassParts;
  for (std::int64_t group = first_group; group < end_group; ++group) {
    attempt.changed[static_cast<std::size_t>(group)] &= ~bits_of(group, first, end);
  }
  keys_of_(attempt.centre.data(), worker.rows.data(), static_cast<std::int64_t>(worker.rows.size()), d_,
           worker.keys.data());
  for (std::size_t i = 0; i < worker.rows.size(); ++i) {
    const std::int64_t row = first + worker.open[i];
    if (centres_ > 0 && !(worker.keys[i] < key_of(row))) continue;
    attempt.keys[static_cast<std::size_t>(row)] = worker.keys[i];
    attempt.changed[static_cast<std::size_t>(row / core::kMassParts)] |= 1U << row % core::kMassParts;
  }
  for (std::int64_t group = first_group; group < end_group; ++group) {
    const auto at = static_cast<std::size_t>(group);
    const std::uint32_t changed = attempt.changed[at];
    attempt.sums[at] = changed == 0 ? sums_[at] : group_mass(group, [&](std::int64_t row) {
      return (changed >> row % core::kMassParts & 1U) != 0 ? attempt.keys[static_cast<std::size_t>(row)] : key_of(row);
    });
  }
}

void RowMasses::take(std::int64_t attempt) {
  const Attempt& taken = attempts_[static_cast<std::size_t>(attempt)];
  core::Poll poll(ctx_);
  for (std::size_t group = 0; group < taken.changed.size(); ++group) {
    poll.step();
    for (std::uint32_t changed = taken.changed[group]; changed != 0; changed &= changed - 1) {
      const std::size_t at = group * core::kMassParts + static_cast<std::size_t>(std::countr_zero(changed));
      keys_[at] = taken.keys[at];
      winners_[at] = static_cast<std::int32_t>(centres_);
    }
  }
  sums_ = taken.sums;
  ++centres_;
  values_.insert(values_.end(), taken.centre.begin(), taken.centre.end());
}

void RowMasses::meet(std::span<const double> rows) {
  lloyd_.start(rows);
  lloyd_.assign();
  lloyd_.keys(batch_keys_);
  lloyd_.labels(batch_labels_);
  add_masses([&](std::int64_t row) {
    const auto at = static_cast<std::size_t>(row);
    const auto own = static_cast<std::size_t>(row - before_);
    if (centres_ != 0 && !(batch_keys_[own] < keys_[at])) return;
    keys_[at] = batch_keys_[own];
    winners_[at] = static_cast<std::int32_t>(centres_) + batch_labels_[own];
  });
  centres_ += static_cast<std::int64_t>(rows.size()) / d_;
}

}  // namespace vicinal::cpu
