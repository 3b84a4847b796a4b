// What Lloyd's iterations on the CPU answer, and what they need of memory (cpu_lloyd.hpp).
#include "cpu/kmeans/lloyd.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/distance.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/kmeans/cpu_lloyd.hpp"
#include "cpu/kmeans/table_scan.hpp"

namespace vicinal::cpu {
namespace {

// The scale and the shift of float32 rows are applied in float32 where both are far from its ends.
constexpr double kFloatScale = 0x1p100;

std::int64_t block_rows(std::int64_t d) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 16) / d / 32 * 32, 32, 1024);
}

// to: [k, padded_columns(d)].
void pad_centres(std::span<const double> centres, std::int64_t k, std::int64_t d, double* to) {
  for (std::int64_t c = 0; c < k; ++c, to += padded_columns(d)) {
    std::copy_n(centres.data() + c * d, d, to);
    std::fill(to + d, to + padded_columns(d), 0.0);
  }
}

}  // namespace

CpuLloyd::CpuLloyd(const Context& ctx, const kernels::ClusterTask& task, const kernels::TableRanges& whole)
    : ctx_(ctx),
      task_(task),
      simd_(simd_kernels(ctx.isa())),
      lloyd_(lloyd_kernels(ctx.isa())),
      n_(task.table.rows()),
      d_(task.table.cols()),
      element_(row_element(task.table)),
      screen_(lloyd_, frame_, d_) {
  double largest = 0;
  for (const kernels::NumberRange& column : whole.columns) largest = std::max(largest, column.largest);
  frame_ = LloydFrame::of(middle_of_table(task.table), largest);
  float_frame_ = element_ == Element::float32 && frame_.scale <= kFloatScale && frame_.scale >= 1 / kFloatScale;
  no_shift_.assign(static_cast<std::size_t>(d_ + 4), 0);
  if (task.sums) {
    grid_ = kernels::SumGrid(whole, !task.weights.empty());
    plan_ = SlicePlan(grid_);
  }
  const auto threads = static_cast<std::size_t>(ctx.threads());
  const bool weighted = !task.weights.empty();
  if (task.sums) {
    // What the values need beyond the plan, for the sums of all threads, and where slices are cut.
    const std::int64_t more = grid_.limbs() - kernels::planned_limbs(task.table.dtype(), weighted);
    more_bytes_ = static_cast<std::uint64_t>(std::max<std::int64_t>(more, 0) * plan_.stride()) * sizeof(double) *
                  (static_cast<std::uint64_t>(task.clusters) * (threads + 1) + 1);
    core::require_memory(ctx, task.planned - task.screens.all() + more_bytes_, "kmeans: sums of values so far apart");
    clusters_ = ClusterSums(plan_, task.clusters, weighted);
  }
  workers_.resize(threads);
  const std::int64_t points = lloyd_.tile_points;
  for (Worker& worker : workers_) {
    worker.lanes.resize(static_cast<std::size_t>(points));
    worker.lines.resize(static_cast<std::size_t>(points * (kFetchBytes / kLineBytes + 1)));
    if (!float_frame_) worker.rounded.reserve(points * d_);
    worker.points.reserve((d_ + 1) * points);
    worker.scores.reserve((task.clusters + kMaxTileQueries) * points);
    worker.row.reserve(padded_columns(d_));
    worker.active.reserve(static_cast<std::size_t>(block_rows(d_)));
    worker.offsets.resize(static_cast<std::size_t>(block_rows(d_) + points));
    worker.head.assign(static_cast<std::size_t>(task.clusters), -1);
    if (task.sums) worker.clusters = ClusterSums(plan_, task.clusters, weighted);
  }
  labels_.resize(static_cast<std::size_t>(n_));
  upper_.resize(labels_.size());
  lower_.resize(labels_.size());
  padded_centres_.reserve(task.clusters * padded_columns(d_));
  may_screen_labels_ = frame_.usable && task.screens.labels > 0 && task.planned + more_bytes_ <= ctx.memory_limit();
}

void CpuLloyd::start(std::span<const double> centres) {
  centres_.assign(centres.begin(), centres.end());
  k_ = static_cast<std::int64_t>(centres.size()) / d_;
  std::fill(labels_.begin(), labels_.end(), -1);
  previous_.clear();
  label_backoff_.reset();
  if (!task_.sums) return;
  clusters_.clear();
  for (Worker& worker : workers_) worker.clusters.clear();
}

// How far each center has gone since the last assignment, in the frame's units.
void CpuLloyd::move_bounds() {
  shifts_.assign(static_cast<std::size_t>(k_), 0);
  most_shift_ = next_shift_ = 0;
  mover_ = -1;
  for (std::int64_t c = 0; c < k_; ++c) {
    const float shift = centre_shift(centres_.data() + c * d_, previous_.data() + c * d_, d_, frame_.scale);
    shifts_[static_cast<std::size_t>(c)] = shift;
    if (shift > most_shift_) {
      next_shift_ = most_shift_;
      most_shift_ = shift;
      mover_ = static_cast<std::int32_t>(c);
    } else if (shift > next_shift_) {
      next_shift_ = shift;
    }
  }
}

// Moves the bounds of a block's rows and lists those that they do not decide.
void CpuLloyd::find_active(Worker& worker, std::int64_t begin, std::int64_t end) {
  worker.active.clear();
  worker.counts.rows += end - begin;
  if (previous_.empty()) {
    for (std::int64_t i = begin; i < end; ++i) worker.active.push_back(i);
    return;
  }
  const Shifts shifts = {shifts_.data(), most_shift_, next_shift_, mover_};
  const std::int64_t found = lloyd_.move_bounds(labels_.data() + begin, end - begin, shifts, upper_.data() + begin,
                                                lower_.data() + begin, worker.offsets.data());
  worker.active.resize(static_cast<std::size_t>(found));
  for (std::size_t i = 0; i < worker.active.size(); ++i) worker.active[i] = begin + worker.offsets[i];
  worker.counts.skipped += end - begin - static_cast<std::int64_t>(worker.active.size());
}

// body(worker, part, first, begin, end): rows [begin, end) of a part whose first row is `first`.
template <class Body>
void CpuLloyd::for_each_block(const Body& body) {
  const std::int64_t rows = block_rows(d_);
  for_each_part(ctx_, task_.table, [&](const TableView& part, std::int64_t first) {
    core::parallel_for(ctx_, (part.rows() + rows - 1) / rows, [&](std::int64_t block, int w) {
      const std::int64_t begin = block * rows;
      body(workers_[static_cast<std::size_t>(w)], part, first, begin, std::min(begin + rows, part.rows()));
    });
  });
}

kernels::LloydStep CpuLloyd::assign() {
  if (!previous_.empty()) move_bounds();
  screened_ = screen_.assign(centres_);
  pad_centres(centres_, k_, d_, padded_centres_.data());
  begin_labels();
  for (Worker& worker : workers_) worker.changed = 0;
  for_each_block([&](Worker& worker, const TableView& part, std::int64_t first, std::int64_t begin, std::int64_t end) {
    find_active(worker, first + begin, first + end);
    if (worker.active.empty()) return;
    worker.reader.open(part, begin, end);
    if (labels_screened_) return screen_labels(worker, first);
    if (screened_) return screen_block(worker, first);
    worker.candidates = screen_.distinct();
    for (const std::int64_t row : worker.active) decide_by_keys(worker, row, first);
  });
  if (labels_screened_) end_labels();
  previous_ = centres_;
  std::int64_t changed = 0;
  counts_ = {};
  for (const Worker& worker : workers_) {
    changed += worker.changed;
    counts_.rows += worker.counts.rows;
    counts_.skipped += worker.counts.skipped;
    counts_.rechecked += worker.counts.rechecked;
  }
  if (task_.sums && changed > 0) {
    const std::int64_t tasks = std::min<std::int64_t>(k_, ctx_.threads());
    core::parallel_for(ctx_, tasks, [&](std::int64_t task, int /*worker*/) {
      for (std::int64_t c = task; c < k_; c += tasks) {
        for (Worker& worker : workers_) clusters_.take(worker.clusters, c);
      }
    });
  }
  kernels::LloydStep step;
  step.changed = changed;
  if (!task_.sums) return step;
  for (std::int64_t c = 0; c < k_; ++c) step.empty += clusters_.size(c) == 0 ? 1 : 0;
  return step;
}

void CpuLloyd::move(std::int64_t row, std::int32_t cluster) {
  std::vector<double> values(static_cast<std::size_t>(d_));
  core::widen_rows(task_.table, row, row + 1, values.data());
  const auto at = static_cast<std::size_t>(row);
  clusters_.add(lloyd_.add_float64, values.data(), weight(row), cluster, d_);
  clusters_.add(lloyd_.add_float64, values.data(), -weight(row), labels_[at], d_);
  clusters_.settle(cluster);
  clusters_.settle(labels_[at]);
  labels_[at] = cluster;
  upper_[at] = kNoUpper;
  lower_[at] = 0;
}

double CpuLloyd::means() {
  std::vector<double> shifts(static_cast<std::size_t>(k_), 0);
  const std::int64_t tasks = std::min<std::int64_t>(k_, ctx_.threads());
  core::parallel_for(ctx_, tasks, [&](std::int64_t task, int /*worker*/) {
    std::vector<double> before(static_cast<std::size_t>(d_));
    for (std::int64_t c = task; c < k_; c += tasks) {
      if (clusters_.size(c) == 0) continue;
      const std::span<double> centre = std::span(centres_).subspan(static_cast<std::size_t>(c * d_), before.size());
      std::copy(centre.begin(), centre.end(), before.begin());
      const double weight = clusters_.rounded(c, centre);
      for (double& value : centre) value /= weight;
      shifts[static_cast<std::size_t>(c)] = core::euclidean_key(before.data(), centre.data(), d_);
    }
  });
  return std::accumulate(shifts.begin(), shifts.end(), 0.0);
}

void CpuLloyd::sizes(std::span<std::int64_t> sizes) const {
  if (task_.sums) {
    for (std::size_t c = 0; c < sizes.size(); ++c) sizes[c] = clusters_.size(static_cast<std::int64_t>(c));
    return;
  }
  std::fill(sizes.begin(), sizes.end(), 0);
  for (const std::int32_t label : labels_) ++sizes[static_cast<std::size_t>(label)];
}

void CpuLloyd::labels(std::span<std::int32_t> labels) const {
  std::copy(labels_.begin(), labels_.end(), labels.begin());
}

// Rows of a block are taken cluster by cluster, so that one call of the key kernel serves many of them.
void CpuLloyd::for_each_key(const KeySink& sink) {
  const KeysFn sums_of = simd_.keys[static_cast<int>(KeyOp::squares)][static_cast<int>(element_)];
  core::AlignedArray<double> padded(k_ * padded_columns(d_));
  pad_centres(centres_, k_, d_, padded.data());
  for_each_block([&](Worker& worker, const TableView& part, std::int64_t first, std::int64_t begin, std::int64_t end) {
    worker.reader.open(part, begin, end);
    worker.next.resize(static_cast<std::size_t>(block_rows(d_)));
    worker.candidates.clear();  // clusters that the block has rows of
    for (std::int64_t i = end - 1; i >= begin; --i) {
      const std::int32_t label = labels_[static_cast<std::size_t>(first + i)];
      std::int32_t& head = worker.head[static_cast<std::size_t>(label)];
      if (head < 0) worker.candidates.push_back(label);
      worker.next[static_cast<std::size_t>(i - begin)] = head;
      head = static_cast<std::int32_t>(i - begin);
    }
    for (const std::int32_t label : worker.candidates) {
      worker.active.clear();
      worker.pointers.clear();
      std::int32_t& head = worker.head[static_cast<std::size_t>(label)];
      for (; head >= 0; head = worker.next[static_cast<std::size_t>(head)]) {
        worker.active.push_back(begin + head);
        worker.pointers.push_back(worker.reader.row(begin + head));
      }
      worker.sums.resize(worker.active.size());
      sums_of(padded.data() + label * padded_columns(d_), worker.pointers.data(),
              static_cast<std::int64_t>(worker.active.size()), d_, worker.sums.data());
      for (std::size_t i = 0; i < worker.active.size(); ++i) sink(worker, first + worker.active[i], worker.sums[i]);
    }
  });
}

void CpuLloyd::keys(std::span<double> keys) {
  for_each_key([&](Worker& /*worker*/, std::int64_t row, double key) { keys[static_cast<std::size_t>(row)] = key; });
}

void CpuLloyd::rows(std::span<const std::int64_t> rows, std::span<double> values) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    core::widen_rows(task_.table, rows[i], rows[i] + 1, values.data() + i * static_cast<std::size_t>(d_));
  }
}

core::ExactSum CpuLloyd::exact_inertia() {
  for (Worker& worker : workers_) worker.inertia = {};
  for_each_key([&](Worker& worker, std::int64_t row, double key) { worker.inertia.add(weight(row) * key); });
  core::ExactSum total;
  for (const Worker& worker : workers_) total.add(worker.inertia);
  return total;
}

void CpuLloyd::parts(std::span<std::int64_t> parts) const {
  const auto size = static_cast<std::size_t>(grid_.cluster_size());
  for (std::int64_t c = 0; c < k_; ++c) {
    clusters_.parts(c, grid_, parts.subspan(static_cast<std::size_t>(c) * size, size));
  }
}

std::unique_ptr<kernels::Lloyd> make_lloyd(const Context& ctx, const kernels::ClusterTask& task) {
  return make_shard(ctx, task, scan_table(ctx, task.table, task.weights, task.first_row));
}

std::unique_ptr<kernels::ShardLloyd> make_shard(const Context& ctx, const kernels::ClusterTask& task,
                                                const kernels::TableRanges& whole) {
  return std::make_unique<CpuLloyd>(ctx, task, whole);
}

std::uint64_t label_screen_bytes(const Context& ctx, const kernels::ClusterTask& task) {
  if (!task.sums || !LabelScreen::serves(simd_kernels(ctx.isa()), task.table, task.clusters)) return 0;
  return LabelScreen::bytes(task.table.rows(), task.table.cols(), task.clusters,
                            static_cast<std::uint64_t>(ctx.threads()));
}

std::uint64_t lloyd_scratch(const Context& ctx, const kernels::ClusterTask& task) {
  const auto n = static_cast<std::uint64_t>(task.table.rows());
  const std::int64_t d = task.table.cols();
  const auto columns = static_cast<std::uint64_t>(padded_columns(d));
  const auto k = static_cast<std::uint64_t>(task.clusters);
  const auto threads = static_cast<std::uint64_t>(ctx.threads());
  const auto block = static_cast<std::uint64_t>(block_rows(d));
  const auto limbs = static_cast<std::uint64_t>(kernels::planned_limbs(task.table.dtype(), !task.weights.empty()));
  const std::uint64_t sums =
      task.sums ? k * (limbs * columns * 8 + 16 + (task.weights.empty() ? 0 : sizeof(core::ExactSum))) : 0;
  const std::uint64_t worker = sums + block * (columns * 8 + 64) +
                               kMaxTilePoints * (columns * 8 + (k + kMaxTileQueries) * 4) + k * 32 + columns * 8 +
                               kMaxTilePoints * (kFetchBytes / kLineBytes + 1) * sizeof(void*);
  return n * 12 + part_bytes(task.table) + sums + threads * worker + LloydCentres::bytes(task.clusters, d) +
         k * columns * 32;
}

}  // namespace vicinal::cpu
