// How the int8 screen of labels decides rows (cpu_lloyd.hpp, label_screen.hpp).
#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "core/infinity.hpp"
#include "cpu/kmeans/cpu_lloyd.hpp"
#include "cpu/nearest/screen.hpp"

namespace vicinal::cpu {
namespace {

// The int8 screen serves a row if it leaves at most one in so many centers open: a key takes about as long as the int8
// products of a row with six centers.
constexpr std::int64_t kOpenShare = 16;
// It pauses where it does not serve most of the rows, of at least one in so many.
constexpr std::int64_t kLabelSample = 64;
// Lower bounds are to outlast so many iterations like the last one, if that makes the screen's reach longer by no more
// than so much, and no more than rounding does.
constexpr double kOutlasting = 2.5;
constexpr double kMaxLonger = 1.0 / 256;

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

}  // namespace

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

}  // namespace vicinal::cpu
