// See seeding.hpp. A step of k-means++ reads the table once for all its draws. Cost O(n d) a draw; memory 8 n (draws +
// 1). For k-means|| rows are assigned to centres by the iterations' own screen.
#include "cpu/seeding.hpp"

#include <algorithm>

#include "core/masses.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/row_reader.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kChunk = 1024;  // rows that one task of a thread takes
constexpr std::int64_t kBlock = 64;    // chunks, where a row takes next to nothing
static_assert(kChunk % core::kMassParts == 0);

// Least keys and the sums of their masses.
struct Nearest {
  std::vector<double> keys;  // [n]
  std::vector<double> sums;  // [nodes]
};

class CpuSeeding final : public kernels::Seeding {
 public:
  CpuSeeding(const Context& ctx, const kernels::ClusterTask& task, kernels::Lloyd& lloyd, std::int64_t trials);

  void draw(std::span<const double> draws, std::span<std::int64_t> rows) override;
  void choose(std::span<const double> draws, std::span<std::int64_t> rows) override;
  void meet(std::span<const std::int64_t> rows) override;
  double total() const override { return nearest_.sums.back(); }
  void winners(std::span<std::int32_t> winners) const override {
    std::copy(winners_.begin(), winners_.end(), winners.begin());
  }

 private:
  struct Worker {
    RowReader reader;
    std::vector<const void*> rows;
  };

  void attempt(std::span<const std::int64_t> rows);
  void meet_batch(std::span<const std::int64_t> rows);
  // Calls visit(row) for every row, then adds up the masses.
  template <class Visit>
  void add_masses(const Visit& visit);
  // Adds the masses of rows [first, end), first a multiple of 32.
  void add_rows(Nearest& to, std::int64_t first, std::int64_t end) const;
  [[nodiscard]] double mass(std::int64_t row, double key) const {
    return task_.weights.empty() ? key : task_.weights[static_cast<std::size_t>(row)] * key;
  }

  Context ctx_;
  kernels::ClusterTask task_;
  kernels::Lloyd& lloyd_;
  std::int64_t n_;
  std::int64_t d_;
  KeysFn keys_of_;
  core::MassTree tree_;
  std::int64_t centres_ = 0;  // taken so far; until there is one every key counts as 1
  Nearest nearest_;
  std::vector<Nearest> attempts_;
  std::vector<std::int32_t> winners_;
  std::vector<double> batch_keys_;
  std::vector<std::int32_t> batch_labels_;
  std::vector<Worker> workers_;
};

CpuSeeding::CpuSeeding(const Context& ctx, const kernels::ClusterTask& task, kernels::Lloyd& lloyd, std::int64_t trials)
    : ctx_(ctx),
      task_(task),
      lloyd_(lloyd),
      n_(task.table.rows()),
      d_(task.table.cols()),
      keys_of_(
          simd_kernels(ctx.isa()).keys[static_cast<int>(KeyOp::squares)][static_cast<int>(row_element(task.table))]),
      tree_(n_),
      attempts_(static_cast<std::size_t>(trials)),
      workers_(static_cast<std::size_t>(ctx.threads())) {
  const auto n = static_cast<std::size_t>(n_);
  nearest_.keys.assign(n, 1);
  nearest_.sums.resize(static_cast<std::size_t>(tree_.nodes));
  for (Nearest& attempt : attempts_) {
    attempt.keys.resize(n);
    attempt.sums.resize(nearest_.sums.size());
  }
  if (trials == 0) {
    winners_.assign(n, 0);
    batch_keys_.resize(n);
    batch_labels_.resize(n);
  }
  add_masses([](std::int64_t /*row*/) {});
}

void CpuSeeding::add_rows(Nearest& to, std::int64_t first, std::int64_t end) const {
  for (std::int64_t begin = first; begin < end; begin += core::kMassParts) {
    to.sums[static_cast<std::size_t>(begin / core::kMassParts)] = core::sum_of_parts(
        end - begin, [&](std::int64_t i) { return mass(begin + i, to.keys[static_cast<std::size_t>(begin + i)]); });
  }
}

template <class Visit>
void CpuSeeding::add_masses(const Visit& visit) {
  constexpr std::int64_t kRows = kBlock * kChunk;
  core::parallel_for(ctx_, (n_ + kRows - 1) / kRows, [&](std::int64_t block, int /*worker*/) {
    const std::int64_t first = block * kRows;
    const std::int64_t end = std::min(first + kRows, n_);
    for (std::int64_t row = first; row < end; ++row) visit(row);
    add_rows(nearest_, first, end);
  });
  core::add_levels(tree_, nearest_.sums.data());
}

void CpuSeeding::draw(std::span<const double> draws, std::span<std::int64_t> rows) {
  const auto mass_of = [&](std::int64_t i) { return mass(i, nearest_.keys[static_cast<std::size_t>(i)]); };
  for (std::size_t t = 0; t < draws.size(); ++t) {
    rows[t] = core::drawn_row(draws[t], n_, tree_, nearest_.sums.data(), mass_of);
  }
}

void CpuSeeding::choose(std::span<const double> draws, std::span<std::int64_t> rows) {
  const std::size_t trials = draws.size() / rows.size();
  std::vector<std::int64_t> drawn(trials);
  for (std::size_t c = 0; c < rows.size(); ++c) {
    draw(draws.subspan(c * trials, trials), drawn);
    attempt(drawn);
    const auto end = attempts_.begin() + static_cast<std::ptrdiff_t>(trials);
    const auto best = std::min_element(
        attempts_.begin(), end, [](const Nearest& a, const Nearest& b) { return a.sums.back() < b.sums.back(); });
    rows[c] = drawn[static_cast<std::size_t>(best - attempts_.begin())];
    std::swap(nearest_, *best);
    ++centres_;
  }
}

// What each row would leave as a further centre.
void CpuSeeding::attempt(std::span<const std::int64_t> rows) {
  const std::int64_t padded = (d_ + 7) / 8 * 8;
  std::vector<double> centres(rows.size() * static_cast<std::size_t>(padded));
  for (std::size_t t = 0; t < rows.size(); ++t) {
    core::widen_rows(task_.table, rows[t], rows[t] + 1, centres.data() + t * static_cast<std::size_t>(padded));
  }
  for_each_part(ctx_, task_.table, [&](const TableView& part, std::int64_t first) {
    core::parallel_for(ctx_, (part.rows() + kChunk - 1) / kChunk, [&](std::int64_t chunk, int w) {
      Worker& worker = workers_[static_cast<std::size_t>(w)];
      const std::int64_t begin = chunk * kChunk;
      const std::int64_t end = std::min(begin + kChunk, part.rows());
      worker.reader.open(part, begin, end);
      worker.rows.clear();
      for (std::int64_t i = begin; i < end; ++i) worker.rows.push_back(worker.reader.row(i));
      for (std::size_t t = 0; t < rows.size(); ++t) {
        double* const keys = attempts_[t].keys.data() + first + begin;
        keys_of_(centres.data() + t * static_cast<std::size_t>(padded), worker.rows.data(), end - begin, d_, keys);
        if (centres_ > 0) {
          const double* const before = nearest_.keys.data() + first + begin;
          for (std::int64_t i = 0; i < end - begin; ++i) keys[i] = std::min(keys[i], before[i]);
        }
        add_rows(attempts_[t], first + begin, first + end);
      }
    });
  });
  for (std::size_t t = 0; t < rows.size(); ++t) core::add_levels(tree_, attempts_[t].sums.data());
}

void CpuSeeding::meet(std::span<const std::int64_t> rows) {
  const auto most = static_cast<std::size_t>(task_.clusters);
  for (std::size_t first = 0; first < rows.size(); first += most) {
    meet_batch(rows.subspan(first, std::min(most, rows.size() - first)));
  }
}

void CpuSeeding::meet_batch(std::span<const std::int64_t> rows) {
  std::vector<double> values(rows.size() * static_cast<std::size_t>(d_));
  lloyd_.rows(rows, values);
  lloyd_.start(values);
  lloyd_.assign();
  lloyd_.keys(batch_keys_);
  lloyd_.labels(batch_labels_);
  add_masses([&](std::int64_t row) {
    const auto at = static_cast<std::size_t>(row);
    if (centres_ != 0 && !(batch_keys_[at] < nearest_.keys[at])) return;
    nearest_.keys[at] = batch_keys_[at];
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
  const std::uint64_t meeting = trials == 0 ? n * (4 + 8 + 4) : 0;
  return (n + nodes) * 8 * static_cast<std::uint64_t>(trials + 1) + meeting + part_bytes(task.table) +
         static_cast<std::uint64_t>(ctx.threads()) * (widened + kChunk * sizeof(void*));
}

}  // namespace vicinal::cpu
