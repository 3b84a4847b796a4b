// See seeding.hpp. A step of k-means++ reads the table once for all its draws, but only rows that it may change: those
// whose own centre is near enough to a drawn row (`list_open`). Cost O(n d) a draw at most; memory 8 n (draws + 1)
// and the centres. For k-means|| rows are assigned to centres by the iterations' own screen.
#include "cpu/kmeans/seeding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/kmeans/row_reader.hpp"
#include "formulas/kmeans/masses.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kChunk = 1024;  // rows that one task of a thread takes
constexpr std::int64_t kBlock = 64;    // chunks, where a row takes next to nothing
static_assert(kChunk % core::kMassParts == 0);

// What a drawn row would leave as a centre. A least key is in `keys` where its row's bit in `changed` says so, else it
// is the one of before.
struct Attempt {
  std::vector<double> keys;            // [n]
  std::vector<std::uint32_t> changed;  // [n / 32]
  std::vector<double> sums;            // [nodes]
};

class CpuSeeding final : public kernels::Seeding {
 public:
  CpuSeeding(const Context& ctx, const kernels::ClusterTask& task, kernels::Lloyd& lloyd, std::int64_t trials);

  void draw(std::span<const double> draws, std::span<std::int64_t> rows) override;
  void choose(std::span<const double> draws, std::span<std::int64_t> rows) override;
  void meet(std::span<const std::int64_t> rows) override;
  double total() const override { return sums_.back(); }
  void winners(std::span<std::int32_t> winners) const override {
    std::copy(winners_.begin(), winners_.end(), winners.begin());
  }

 private:
  struct Worker {
    RowReader reader;
    std::vector<double> limits;      // of the rows of a chunk: keys between centres from which a row cannot change
    std::vector<std::int32_t> open;  // those that a draw may change, counted from the first
    std::vector<const void*> rows;   // where these lie
    std::vector<double> keys;
  };

  void attempt(std::span<const std::int64_t> rows);
  void set_limits(Worker& worker, std::int64_t first, std::int64_t end) const;
  void list_open(Worker& worker, const double* between, std::int64_t first, std::int64_t end) const;
  void attempt_rows(Worker& worker, Attempt& attempt, const double* centre, std::int64_t first, std::int64_t end);
  void take(const Attempt& attempt, std::int64_t row);
  // Calls visit(row) for every row, then adds up the masses.
  template <class Visit>
  void add_masses(const Visit& visit);
  // The sum of the masses of 32 rows; key(row) is the least key of one.
  template <class Key>
  [[nodiscard]] double group_mass(std::int64_t group, const Key& key) const {
    const std::int64_t first = group * core::kMassParts;
    return core::sum_of_parts(n_ - first, [&](std::int64_t i) { return mass(first + i, key(first + i)); });
  }
  [[nodiscard]] double mass(std::int64_t row, double key) const {
    return task_.weights.empty() ? key : task_.weights[static_cast<std::size_t>(row)] * key;
  }
  [[nodiscard]] double key_of(std::int64_t row) const { return keys_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] std::size_t padded() const { return static_cast<std::size_t>((d_ + 7) / 8 * 8); }

  Context ctx_;
  kernels::ClusterTask task_;
  kernels::Lloyd& lloyd_;
  std::int64_t n_;
  std::int64_t d_;
  KeysFn keys_of_;
  KeysFn wide_keys_of_;
  core::MassTree tree_;
  std::int64_t centres_ = 0;           // taken so far; until there is one every key counts as 1
  std::vector<double> keys_;           // [n] least ones
  std::vector<double> sums_;           // [nodes] of their masses
  std::vector<std::int32_t> winners_;  // [n] the centres that they are to
  // k-means++
  std::vector<Attempt> attempts_;
  std::vector<double> values_;   // [centres, padded]
  std::vector<double> between_;  // [draws, centres] keys
  std::vector<Worker> workers_;
  // k-means||
  std::vector<double> batch_keys_;
  std::vector<std::int32_t> batch_labels_;
};

CpuSeeding::CpuSeeding(const Context& ctx, const kernels::ClusterTask& task, kernels::Lloyd& lloyd, std::int64_t trials)
    : ctx_(ctx),
      task_(task),
      lloyd_(lloyd),
      n_(task.table.rows()),
      d_(task.table.cols()),
      keys_of_(
          simd_kernels(ctx.isa()).keys[static_cast<int>(KeyOp::squares)][static_cast<int>(row_element(task.table))]),
      wide_keys_of_(simd_kernels(ctx.isa()).keys[static_cast<int>(KeyOp::squares)][static_cast<int>(Element::float64)]),
      tree_(n_),
      keys_(static_cast<std::size_t>(n_), 1),
      sums_(static_cast<std::size_t>(tree_.nodes)),
      winners_(keys_.size(), 0),
      attempts_(static_cast<std::size_t>(trials)),
      workers_(static_cast<std::size_t>(ctx.threads())) {
  for (Attempt& attempt : attempts_) {
    attempt.keys.resize(keys_.size());
    attempt.changed.resize(static_cast<std::size_t>(tree_.sizes[0]));
    attempt.sums.resize(sums_.size());
  }
  for (Worker& worker : workers_) {
    worker.limits.resize(kChunk);
    worker.open.resize(kChunk);
    worker.keys.resize(kChunk);
  }
  if (trials == 0) {
    batch_keys_.resize(keys_.size());
    batch_labels_.resize(keys_.size());
  }
  add_masses([](std::int64_t /*row*/) {});
}

template <class Visit>
void CpuSeeding::add_masses(const Visit& visit) {
  constexpr std::int64_t kRows = kBlock * kChunk;
  core::parallel_for(ctx_, (n_ + kRows - 1) / kRows, [&](std::int64_t block, int /*worker*/) {
    const std::int64_t first = block * kRows;
    const std::int64_t end = std::min(first + kRows, n_);
    for (std::int64_t row = first; row < end; ++row) visit(row);
    for (std::int64_t group = first / core::kMassParts; group * core::kMassParts < end; ++group) {
      sums_[static_cast<std::size_t>(group)] = group_mass(group, [&](std::int64_t row) { return key_of(row); });
    }
  });
  core::add_levels(tree_, sums_.data());
}

void CpuSeeding::draw(std::span<const double> draws, std::span<std::int64_t> rows) {
  for (std::size_t t = 0; t < draws.size(); ++t) {
    rows[t] = core::drawn_row(draws[t], n_, tree_, sums_.data(), [&](std::int64_t i) { return mass(i, key_of(i)); });
  }
}

void CpuSeeding::choose(std::span<const double> draws, std::span<std::int64_t> rows) {
  const std::size_t trials = draws.size() / rows.size();
  std::vector<std::int64_t> drawn(trials);
  for (std::size_t c = 0; c < rows.size(); ++c) {
    draw(draws.subspan(c * trials, trials), drawn);
    attempt(drawn);
    const auto best =
        std::min_element(attempts_.begin(), attempts_.begin() + static_cast<std::ptrdiff_t>(trials),
                         [](const Attempt& a, const Attempt& b) { return a.sums.back() < b.sums.back(); });
    rows[c] = drawn[static_cast<std::size_t>(best - attempts_.begin())];
    take(*best, rows[c]);
  }
}

// What each row would leave as a further centre.
void CpuSeeding::attempt(std::span<const std::int64_t> rows) {
  const std::size_t trials = rows.size();
  const auto centres = static_cast<std::size_t>(centres_);
  std::vector<double> drawn(trials * padded());
  std::vector<const void*> pointers;
  for (std::size_t c = 0; c < centres; ++c) pointers.push_back(values_.data() + c * padded());
  between_.resize(trials * centres);
  for (std::size_t t = 0; t < trials; ++t) {
    double* const centre = drawn.data() + t * padded();
    core::widen_rows(task_.table, rows[t], rows[t] + 1, centre);
    wide_keys_of_(centre, pointers.data(), centres_, d_, between_.data() + t * centres);
  }
  for_each_part(ctx_, task_.table, [&](const TableView& part, std::int64_t part_first) {
    core::parallel_for(ctx_, (part.rows() + kChunk - 1) / kChunk, [&](std::int64_t chunk, int w) {
      Worker& worker = workers_[static_cast<std::size_t>(w)];
      const std::int64_t begin = chunk * kChunk;
      const std::int64_t first = part_first + begin;
      const std::int64_t end = std::min(first + kChunk, part_first + part.rows());
      set_limits(worker, first, end);
      bool is_open = false;
      for (std::size_t t = 0; t < trials; ++t) {
        list_open(worker, between_.data() + t * centres, first, end);
        if (!is_open && !worker.rows.empty()) {
          worker.reader.open(part, begin, end - part_first);
          is_open = true;
        }
        for (std::size_t i = 0; i < worker.rows.size(); ++i) worker.rows[i] = worker.reader.row(begin + worker.open[i]);
        attempt_rows(worker, attempts_[t], drawn.data() + t * padded(), first, end);
      }
    });
  });
  for (std::size_t t = 0; t < trials; ++t) core::add_levels(tree_, attempts_[t].sums.data());
}

void CpuSeeding::set_limits(Worker& worker, std::int64_t first, std::int64_t end) const {
  for (std::int64_t row = first; row < end; ++row) {
    worker.limits[static_cast<std::size_t>(row - first)] = unchanged_from(key_of(row), d_);
  }
}

// The rows of [first, end) that a draw may change; between: [centres] its keys to these.
void CpuSeeding::list_open(Worker& worker, const double* between, std::int64_t first, std::int64_t end) const {
  const std::int32_t* const winners = winners_.data() + first;
  std::size_t count = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(end - first); ++i) {
    worker.open[count] = i;
    count += centres_ == 0 || between[winners[i]] < worker.limits[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  worker.rows.resize(count);
}

// One draw and the rows [first, end), of which it may change the listed ones.
void CpuSeeding::attempt_rows(Worker& worker, Attempt& attempt, const double* centre, std::int64_t first,
                              std::int64_t end) {
  const std::int64_t first_group = first / core::kMassParts;
  const std::int64_t end_group = (end + core::kMassParts - 1) / core::kMassParts;
  std::fill(attempt.changed.begin() + first_group, attempt.changed.begin() + end_group, 0U);
  keys_of_(centre, worker.rows.data(), static_cast<std::int64_t>(worker.rows.size()), d_, worker.keys.data());
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

// A drawn row becomes a centre.
void CpuSeeding::take(const Attempt& attempt, std::int64_t row) {
  for (std::size_t group = 0; group < attempt.changed.size(); ++group) {
    for (std::uint32_t changed = attempt.changed[group]; changed != 0; changed &= changed - 1) {
      const std::size_t at = group * core::kMassParts + static_cast<std::size_t>(std::countr_zero(changed));
      keys_[at] = attempt.keys[at];
      winners_[at] = static_cast<std::int32_t>(centres_);
    }
  }
  sums_ = attempt.sums;
  ++centres_;
  values_.resize(static_cast<std::size_t>(centres_) * padded(), 0.0);
  core::widen_rows(task_.table, row, row + 1, values_.data() + values_.size() - padded());
}

void CpuSeeding::meet(std::span<const std::int64_t> rows) {
  std::vector<double> values(rows.size() * static_cast<std::size_t>(d_));
  lloyd_.rows(rows, values);
  lloyd_.start(values);
  lloyd_.assign();
  lloyd_.keys(batch_keys_);
  lloyd_.labels(batch_labels_);
  add_masses([&](std::int64_t row) {
    const auto at = static_cast<std::size_t>(row);
    if (centres_ != 0 && !(batch_keys_[at] < keys_[at])) return;
    keys_[at] = batch_keys_[at];
    winners_[at] = static_cast<std::int32_t>(centres_) + batch_labels_[at];
  });
  centres_ += static_cast<std::int64_t>(rows.size());
}

}  // namespace

std::unique_ptr<kernels::Seeding> make_seeding(const Context& ctx, const kernels::ClusterTask& task,
                                               kernels::Lloyd& lloyd, std::int64_t trials) {
  return std::make_unique<CpuSeeding>(ctx, task, lloyd, trials);
}

std::uint64_t seeding_scratch(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials) {
  const auto n = static_cast<std::uint64_t>(task.table.rows());
  const auto d = static_cast<std::uint64_t>(task.table.cols());
  const auto nodes = static_cast<std::uint64_t>(core::MassTree(task.table.rows()).nodes);
  const std::uint64_t widened = row_element(task.table) == Element::float32 ? 0 : kChunk * d * sizeof(double);
  const auto draws = static_cast<std::uint64_t>(trials);
  std::uint64_t bytes = n * (8 + 4) + nodes * 8 + part_bytes(task.table);
  if (trials == 0) return bytes + n * (8 + 4);
  // 2 + floor(ln k) draws are for fewer than e^(draws - 1) centres; room for centres grows twofold.
  const auto centres = static_cast<std::uint64_t>(
      std::min(static_cast<double>(task.table.rows()), std::exp(static_cast<double>(trials - 1)) + 1));
  bytes += draws * (n * 8 + nodes * 12) + 2 * centres * (d + 7) * 8 + centres * (draws + 2) * 8;
  return bytes + static_cast<std::uint64_t>(ctx.threads()) * (widened + kChunk * 32);
}

}  // namespace vicinal::cpu
