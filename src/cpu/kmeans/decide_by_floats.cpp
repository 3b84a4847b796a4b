// How the float32 screen and float64 keys decide rows (cpu_lloyd.hpp).
#include <algorithm>
#include <cstddef>

#include "cpu/kmeans/cpu_lloyd.hpp"

namespace vicinal::cpu {

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

}  // namespace vicinal::cpu
