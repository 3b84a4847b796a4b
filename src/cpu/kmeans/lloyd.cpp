// See lloyd.hpp. A row is decided, in this order, by its bounds (it is not even read), by the screen, or by float64
// keys of the few centers that the screen leaves.
//
// Many centers. A row that has a label is first given the key to its center. That makes its upper bound as tight as it
// can be, and often decides it. Else an int8 screen (label_screen.hpp) finds the centers that are as near, and keys
// rank them. The float32 screen takes the rows of the first assignment and those that the int8 screen leaves too many
// centers for; where it does so with most of them it is not asked for some iterations.
//
// Bounds. upper and lower are float32 bounds, in the frame's units, of the distance to the row's center and to all
// others. Before an assignment they are moved by the shifts of the centers since the last one, with a factor for
// rounding. Bounds of a row that keys decided are left open, and so are all lower bounds made while centers were equal
// to each other.
#include "cpu/kmeans/lloyd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

#include "core/distance.hpp"
#include "core/exact_sum.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/kmeans/backoff.hpp"
#include "cpu/kmeans/label_screen.hpp"
#include "cpu/kmeans/row_reader.hpp"
#include "cpu/kmeans/screen.hpp"
#include "cpu/kmeans/seeding.hpp"
#include "cpu/kmeans/sums.hpp"
#include "cpu/kmeans/table_scan.hpp"
#include "cpu/nearest/screen.hpp"

namespace vicinal::cpu {
namespace {

constexpr float kNoUpper = std::numeric_limits<float>::infinity();
// The scale and the shift of float32 rows are applied in float32 where both are far from its ends.
constexpr double kFloatScale = 0x1p100;
constexpr std::int64_t kFetchBytes = 1024;  // of a row; what follows the processor fetches by itself
constexpr std::int64_t kLineBytes = 64;     // of the cache

// The int8 screen serves a row if it leaves at most one in so many centers open: a key takes about as long as the int8
// products of a row with six centers.
constexpr std::int64_t kOpenShare = 16;
// Where it does not serve most of the rows, of at least one in so many, it is not asked for some iterations, and for
// twice as many the next time: clusters become more alike.
constexpr std::int64_t kLabelSample = 64;
constexpr std::int64_t kLabelPause = 4;
// Lower bounds are to outlast so many iterations like the last one, if that makes the screen's reach longer by no more
// than so much, and no more than rounding does.
constexpr double kOutlasting = 2.5;
constexpr double kMaxLonger = 1.0 / 256;

std::int64_t block_rows(std::int64_t d) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 16) / d / 32 * 32, 32, 1024);
}

std::int64_t padded_columns(std::int64_t d) {
  return (d + 7) / 8 * 8;
}

// Centers as the key kernels read them: zeros beyond column d. to: [k, padded_columns(d)].
void pad_centres(std::span<const double> centres, std::int64_t k, std::int64_t d, double* to) {
  for (std::int64_t c = 0; c < k; ++c, to += padded_columns(d)) {
    std::copy_n(centres.data() + c * d, d, to);
    std::fill(to + d, to + padded_columns(d), 0.0);
  }
}

// The distance of which a key is at least the square is at most the one, and, of a key at most, at least the other; for
// the roundings of keys, d columns each below 2^-1074 among them.
double key_reach(double key, std::int64_t d) {
  const auto columns = static_cast<double>(d);
  return std::sqrt(key * (1 + (columns + 8) * 0x1p-51) + columns * 0x1p-1072) * (1 + 0x1p-50);
}
double key_beyond(double key, std::int64_t d) {
  const auto columns = static_cast<double>(d);
  return std::sqrt(std::max(key * (1 - (columns + 8) * 0x1p-51) - columns * 0x1p-1072, 0.0)) * (1 - 0x1p-50);
}

class CpuLloyd final : public kernels::ShardLloyd {
 public:
  CpuLloyd(const Context& ctx, const kernels::ClusterTask& task, const kernels::TableRanges& whole);

  void start(std::span<const double> centres) override;
  kernels::LloydStep assign() override;
  void move(std::int64_t row, std::int32_t cluster) override;
  double means() override;
  void recentre(std::span<const double> centres) override { centres_.assign(centres.begin(), centres.end()); }
  void centres(std::span<double> centres) const override {
    std::copy(centres_.begin(), centres_.end(), centres.begin());
  }
  void sizes(std::span<std::int64_t> sizes) const override;
  void labels(std::span<std::int32_t> labels) const override;
  void keys(std::span<double> keys) override;
  double inertia() override { return exact_inertia().rounded(); }
  core::ExactSum exact_inertia() override;
  void parts(std::span<std::int64_t> parts) const override;
  void rows(std::span<const std::int64_t> rows, std::span<double> values) const override;
  std::unique_ptr<kernels::Seeding> seeding(std::int64_t trials) override {
    return make_seeding(ctx_, task_, *this, trials);
  }
  std::unique_ptr<kernels::ShardSeeding> shard_seeding(std::int64_t trials, std::int64_t first) override {
    return make_shard_seeding(ctx_, task_, *this, trials, first);
  }
  kernels::AssignCounts counts() const override { return counts_; }
  std::uint64_t more_bytes() const override { return more_bytes_; }

 private:
  struct Worker {
    RowReader reader;
    std::vector<const float*> lanes;    // rows of a tile
    std::vector<const void*> lines;     // of the cache, with the rows of the next one
    core::AlignedArray<float> rounded;  // [tile_points][d] rows that are not float32
    core::AlignedArray<float> points;   // [d + 1][tile_points]
    core::AlignedArray<float> scores;   // [padded centers][tile_points]
    core::AlignedArray<double> row;     // [padded d]
    std::vector<std::int64_t> active;   // rows of a block
    std::vector<std::int32_t> offsets;  // the same, counted from the first row of the block
    std::vector<std::int64_t> open;     // of these, those that the screen left open
    std::vector<std::int32_t> candidates;
    std::vector<const void*> pointers;
    std::vector<double> sums;
    std::vector<std::int32_t> head;  // of a list of rows for each cluster
    std::vector<std::int32_t> next;
    LloydTile tile{};
    ClusterSums clusters;
    core::ExactSum inertia;
    // Of the int8 screen.
    LabelScreen::Tile labels;
    std::vector<std::int64_t> asked;  // rows in the tile
    std::vector<double> own;          // their keys to their centers
    std::vector<double> reach;        // how far the screen looks
    std::vector<std::int64_t> rest;   // rows for the float32 screen
    std::int64_t labeled = 0;         // rows that it was asked about in this assignment,
    std::int64_t refused = 0;         // and those that it left too many centers for
    std::int64_t changed = 0;
    kernels::AssignCounts counts;
  };
  using KeySink = std::function<void(Worker& worker, std::int64_t row, double key)>;

  void move_bounds();
  void find_active(Worker& worker, std::int64_t begin, std::int64_t end);
  void screen_block(Worker& worker, std::int64_t first);
  [[nodiscard]] std::vector<double> mean_of_centres() const;
  void begin_labels();
  void screen_labels(Worker& worker, std::int64_t first);
  void decide_tile(Worker& worker, std::int64_t first);
  void end_labels();
  void drop_labels();
  void widen(Worker& worker, std::int64_t row, std::int64_t first);
  void stage(Worker& worker, const std::int64_t* rows, std::int64_t count, std::int64_t first);
  void list_lines(Worker& worker, const std::int64_t* rows, std::int64_t count, std::int64_t first) const;
  void decide_open(Worker& worker, std::int64_t first);
  void decide_by_keys(Worker& worker, std::int64_t row, std::int64_t first);
  void set_label(Worker& worker, std::int64_t row, std::int32_t label, std::int64_t first);
  template <class Body>
  void for_each_block(const Body& body);
  void for_each_key(const KeySink& sink);
  [[nodiscard]] double weight(std::int64_t row) const {
    return task_.weights.empty() ? 1.0 : task_.weights[static_cast<std::size_t>(row)];
  }

  Context ctx_;
  kernels::ClusterTask task_;
  const SimdKernels& simd_;
  const LloydKernels& lloyd_;
  std::int64_t n_;
  std::int64_t d_;
  std::int64_t k_ = 0;
  Element element_;
  LloydFrame frame_;
  bool float_frame_ = false;
  std::vector<float> no_shift_;
  kernels::SumGrid grid_;
  SlicePlan plan_;
  std::uint64_t more_bytes_ = 0;
  ClusterSums clusters_;
  std::vector<Worker> workers_;
  std::vector<std::int32_t> labels_;
  std::vector<float> upper_;
  std::vector<float> lower_;
  std::vector<double> centres_;  // [k, d]
  kernels::AssignCounts counts_;

  // Of one assignment.
  LloydCentres screen_;
  bool screened_ = false;
  std::unique_ptr<LabelScreen> label_screen_;
  bool may_screen_labels_ = false;
  bool labels_screened_ = false;
  Backoff label_backoff_{kLabelPause};         // of iterations
  core::AlignedArray<double> padded_centres_;  // [k][padded d]
  std::vector<double> previous_;               // centers of the last one
  std::vector<float> shifts_;
  float most_shift_ = 0;
  float next_shift_ = 0;  // the largest of the others
  std::int32_t mover_ = -1;
};

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

void CpuLloyd::stage(Worker& worker, const std::int64_t* rows, std::int64_t count, std::int64_t first) {
  if (float_frame_) {
    for (std::int64_t i = 0; i < count; ++i) {
      worker.lanes[static_cast<std::size_t>(i)] = static_cast<const float*>(worker.reader.row(rows[i] - first));
    }
    std::fill(worker.lanes.begin() + count, worker.lanes.end(), worker.lanes[0]);  // of which nothing is read
    lloyd_.stage(worker.lanes.data(), d_, static_cast<float>(frame_.scale), frame_.shift.data(), worker.points.data());
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      float* const to = worker.rounded.data() + i * d_;
      const void* const row = worker.reader.row(rows[i] - first);
      const auto round = [&](const auto* from) {
        for (std::int64_t j = 0; j < d_; ++j) {
          to[j] = static_cast<float>(static_cast<double>(from[j]) * frame_.scale -
                                     static_cast<double>(frame_.shift[static_cast<std::size_t>(j)]));
        }
      };
      if (element_ == Element::float32) {
        round(static_cast<const float*>(row));
      } else {
        round(static_cast<const double*>(row));
      }
      worker.lanes[static_cast<std::size_t>(i)] = to;
    }
    std::fill(worker.lanes.begin() + count, worker.lanes.end(), worker.lanes[0]);
    lloyd_.stage(worker.lanes.data(), d_, 1, no_shift_.data(), worker.points.data());
  }
  worker.tile.points = worker.points.data();
}

// Lists the lines of the next tile's rows, which are to arrive while this one is multiplied.
void CpuLloyd::list_lines(Worker& worker, const std::int64_t* rows, std::int64_t count, std::int64_t first) const {
  const std::int64_t bytes = std::min<std::int64_t>(d_ * (element_ == Element::float32 ? 4 : 8), kFetchBytes);
  const void** to = worker.lines.data();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto* const row = static_cast<const std::byte*>(worker.reader.row(rows[i] - first));
    for (std::int64_t at = 0; at < bytes; at += kLineBytes) *to++ = row + at;
    *to++ = row + bytes - 1;  // where that begins a line of its own
  }
  worker.tile.lines = worker.lines.data();
  worker.tile.line_count = to - worker.lines.data();
}

void CpuLloyd::set_label(Worker& worker, std::int64_t row, std::int32_t label, std::int64_t first) {
  const std::int32_t before = labels_[static_cast<std::size_t>(row)];
  if (before == label) return;
  labels_[static_cast<std::size_t>(row)] = label;
  ++worker.changed;
  if (!task_.sums) return;
  const void* const values = worker.reader.row(row - first);
  const AddRowFn add = element_ == Element::float32 ? lloyd_.add_float32 : lloyd_.add_float64;
  worker.clusters.add(add, values, weight(row), label, d_);
  if (before >= 0) worker.clusters.add(add, values, -weight(row), before, d_);
}

void CpuLloyd::screen_block(Worker& worker, std::int64_t first) {
  const std::int64_t points = lloyd_.tile_points;
  const auto& distinct = screen_.distinct();
  const bool all_differ = static_cast<std::int64_t>(distinct.size()) == k_;
  const auto active = static_cast<std::int64_t>(worker.active.size());
  worker.open.clear();
  screen_.attach(worker.tile);
  worker.tile.scores = nullptr;
  for (std::int64_t begin = 0; begin < active; begin += points) {
    const std::int64_t count = std::min(points, active - begin);
    const std::int64_t* const rows = worker.active.data() + begin;
    stage(worker, rows, count, first);
    list_lines(worker, rows + count, std::min(points, active - begin - count), first);
    lloyd_.screen(worker.tile);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(rows[i]);
      if (!(worker.tile.second[i] < worker.tile.threshold[i])) {
        worker.open.push_back(rows[i]);
        continue;
      }
      set_label(worker, rows[i], distinct[static_cast<std::size_t>(worker.tile.index[i])], first);
      upper_[at] = worker.tile.upper[i];
      lower_[at] = k_ == 1 ? kNoUpper : (all_differ ? worker.tile.lower[i] : 0);
    }
  }
  if (!worker.open.empty()) decide_open(worker, first);
}

// Screens the open rows again, now for all that reach the threshold, and ranks those by their keys.
void CpuLloyd::decide_open(Worker& worker, std::int64_t first) {
  const std::int64_t points = lloyd_.tile_points;
  const auto open = static_cast<std::int64_t>(worker.open.size());
  const auto centres = static_cast<std::int32_t>(screen_.distinct().size());
  worker.tile.scores = worker.scores.data();
  worker.tile.line_count = 0;
  for (std::int64_t begin = 0; begin < open; begin += points) {
    const std::int64_t count = std::min(points, open - begin);
    const std::int64_t* const rows = worker.open.data() + begin;
    stage(worker, rows, count, first);
    lloyd_.screen(worker.tile);
    for (std::int64_t i = 0; i < count; ++i) {
      worker.candidates.clear();
      const float threshold = worker.tile.threshold[i];
      for (std::int32_t c = 0; c < centres; ++c) {
        if (!(worker.scores[c * points + i] < threshold)) {
          worker.candidates.push_back(screen_.distinct()[static_cast<std::size_t>(c)]);
        }
      }
      decide_by_keys(worker, rows[i], first);
    }
  }
  worker.tile.scores = nullptr;
}

// About the mean of the rows, without weights; most centers are near it.
std::vector<double> CpuLloyd::mean_of_centres() const {
  std::vector<double> mean(static_cast<std::size_t>(d_), 0);
  for (std::int64_t c = 0; c < k_; ++c) {
    const double share = static_cast<double>(clusters_.size(c)) / static_cast<double>(n_);
    for (std::int64_t j = 0; j < d_; ++j)
      mean[static_cast<std::size_t>(j)] += share * centres_[static_cast<std::size_t>(c * d_ + j)];
  }
  return mean;
}

// Whether the int8 screen serves this assignment; it begins when rows have labels.
void CpuLloyd::begin_labels() {
  labels_screened_ = false;
  if (!may_screen_labels_ || !screened_ || previous_.empty()) return;
  if (label_backoff_.waits()) return;
  if (static_cast<std::int64_t>(screen_.distinct().size()) < LabelScreen::kMinCentres) return;
  try {
    if (!label_screen_) {
      auto screen = std::make_unique<LabelScreen>(simd_, LabelScreen::choose(ctx_, task_.table, mean_of_centres()), n_,
                                                  task_.clusters);
      for (Worker& worker : workers_) worker.labels = screen->tile();
      label_screen_ = std::move(screen);
    }
    label_screen_->ask(ctx_, centres_, screen_.distinct());
    labels_screened_ = true;
  } catch (const std::bad_alloc&) {  // labels without it have the same bits
    drop_labels();
  }
}

// Leaves the int8 screen out for some iterations where it does not pay.
void CpuLloyd::end_labels() {
  std::int64_t labeled = 0;
  std::int64_t refused = 0;
  for (Worker& worker : workers_) {
    labeled += std::exchange(worker.labeled, 0);
    refused += std::exchange(worker.refused, 0);
  }
  if (labeled * kLabelSample >= n_ && refused * 2 > labeled) label_backoff_.fail();
}

void CpuLloyd::drop_labels() {
  may_screen_labels_ = false;
  label_screen_.reset();
  for (Worker& worker : workers_) worker.labels = {};
}

// The active rows of a block, all of which have labels.
void CpuLloyd::screen_labels(Worker& worker, std::int64_t first) {
  const KeysFn sums_of = simd_.keys[static_cast<int>(KeyOp::squares)][static_cast<int>(element_)];
  const double units = frame_.scale;  // of bounds
  const double to_screen = label_screen_->scale() / units;
  const double longer = kOutlasting * static_cast<double>(most_shift_);
  const auto tile_rows = static_cast<std::size_t>(label_screen_->tile_rows());
  worker.asked.clear();
  worker.own.clear();
  worker.reach.clear();
  worker.rest.clear();
  for (const std::int64_t row : worker.active) {
    const auto at = static_cast<std::size_t>(row);
    const void* const values = worker.reader.row(row - first);
    double key = 0;
    sums_of(padded_centres_.data() + labels_[at] * padded_columns(d_), &values, 1, d_, &key);
    const double upper = key_reach(key, d_) * units;
    upper_[at] = round_up(upper);
    if (upper_[at] * (1 + 0x1p-20F) < lower_[at]) continue;
    if (!label_screen_->packed(row)) {
      widen(worker, row, first);
      label_screen_->pack(row, worker.row.data());
    }
    const bool outlasts =
        longer <= upper * kMaxLonger && longer * to_screen <= label_screen_->room(row, upper * to_screen);
    const double reach = outlasts ? upper + longer : upper;
    label_screen_->put(worker.labels, static_cast<std::int64_t>(worker.asked.size()), row,
                       reach * to_screen * (1 + 0x1p-40));
    worker.asked.push_back(row);
    worker.own.push_back(key);
    worker.reach.push_back(reach);
    if (worker.asked.size() == tile_rows) decide_tile(worker, first);
  }
  if (!worker.asked.empty()) decide_tile(worker, first);
  if (worker.rest.empty()) return;
  worker.active.swap(worker.rest);
  screen_block(worker, first);
}

// Takes, of a row's own center and those that the int8 screen leaves, the first of the least key.
void CpuLloyd::decide_tile(Worker& worker, std::int64_t first) {
  const KeysFn sums_of = simd_.keys[static_cast<int>(KeyOp::squares)][static_cast<int>(Element::float64)];
  const auto rows = static_cast<std::int64_t>(worker.asked.size());
  const auto centres = static_cast<std::int64_t>(screen_.distinct().size());
  const bool all_differ = centres == k_;
  label_screen_->survivors(worker.labels, rows);
  worker.labeled += rows;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto lane = static_cast<std::size_t>(i);
    const std::int64_t row = worker.asked[lane];
    const auto at = static_cast<std::size_t>(row);
    const std::vector<std::int32_t>& found = worker.labels.centres[lane];
    if (static_cast<std::int64_t>(found.size()) * kOpenShare > centres) {
      ++worker.refused;
      worker.rest.push_back(row);
      continue;
    }
    std::int32_t label = labels_[at];
    double least = worker.own[lane];
    double next = kInfinity;  // of the others
    worker.pointers.clear();
    worker.candidates.clear();
    for (const std::int32_t c : found) {
      if (c == label) continue;
      worker.candidates.push_back(c);
      worker.pointers.push_back(padded_centres_.data() + c * padded_columns(d_));
    }
    if (!worker.candidates.empty()) {
      ++worker.counts.rechecked;
      widen(worker, row, first);
      worker.sums.resize(worker.candidates.size());
      sums_of(worker.row.data(), worker.pointers.data(), static_cast<std::int64_t>(worker.pointers.size()), d_,
              worker.sums.data());
      for (std::size_t c = 0; c < worker.candidates.size(); ++c) {
        const double key = worker.sums[c];
        if (key < least || (key == least && worker.candidates[c] < label)) {
          next = least;
          least = key;
          label = worker.candidates[c];
        } else {
          next = std::min(next, key);
        }
      }
      set_label(worker, row, label, first);
      upper_[at] = round_up(key_reach(least, d_) * frame_.scale);
    }
    lower_[at] =
        all_differ ? round_down(std::min(worker.reach[lane], key_beyond(next, d_) * frame_.scale) * (1 - 0x1p-40)) : 0;
  }
  worker.asked.clear();
  worker.own.clear();
  worker.reach.clear();
}

void CpuLloyd::widen(Worker& worker, std::int64_t row, std::int64_t first) {
  const void* const values = worker.reader.row(row - first);
  double* const x = worker.row.data();
  if (element_ == Element::float32) {
    std::copy_n(static_cast<const float*>(values), d_, x);
  } else {
    std::copy_n(static_cast<const double*>(values), d_, x);
  }
  std::fill(x + d_, x + padded_columns(d_), 0.0);
}

// Takes the first candidate (ascending) of the least key.
void CpuLloyd::decide_by_keys(Worker& worker, std::int64_t row, std::int64_t first) {
  widen(worker, row, first);
  const std::size_t count = worker.candidates.size();
  worker.pointers.resize(count);
  worker.sums.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    worker.pointers[i] = padded_centres_.data() + worker.candidates[i] * padded_columns(d_);
  }
  simd_.keys[static_cast<int>(KeyOp::squares)][static_cast<int>(Element::float64)](
      worker.row.data(), worker.pointers.data(), static_cast<std::int64_t>(count), d_, worker.sums.data());
  const auto best = std::min_element(worker.sums.begin(), worker.sums.end()) - worker.sums.begin();
  ++worker.counts.rechecked;
  set_label(worker, row, worker.candidates[static_cast<std::size_t>(best)], first);
  upper_[static_cast<std::size_t>(row)] = kNoUpper;
  lower_[static_cast<std::size_t>(row)] = 0;
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

}  // namespace

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
