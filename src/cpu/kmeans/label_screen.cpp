// See label_screen.hpp.
#include "cpu/kmeans/label_screen.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/kmeans/seeding_screen.hpp"
#include "cpu/nearest/byte_scale.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kMinColumns = 16;
constexpr std::int64_t kMaxColumns = std::int64_t{1} << 13;
constexpr std::int64_t kScaleRows = 128;     // of a sample, by which the scale is chosen
constexpr std::int64_t kCentresAtOnce = 16;  // of a task
constexpr double kMaxRho = 0x1p14;
constexpr double kMostH = 0x1p29;
constexpr double kUp = 1 + 0x1p-30;
constexpr double kDown = 1 - 0x1p-30;

}  // namespace

bool LabelScreen::serves(const SimdKernels& simd, const TableView& table, std::int64_t centres) {
  return simd.quick[screen_index(ScreenType::int8)] && !table.is_block_source() && table.cols() >= kMinColumns &&
         table.cols() <= kMaxColumns && centres >= kMinCentres;
}

std::uint64_t LabelScreen::bytes(std::int64_t rows, std::int64_t d, std::int64_t centres, std::uint64_t threads) {
  const auto row_bytes = static_cast<std::uint64_t>(Screen::row_bytes(ScreenType::int8, d));
  const auto queries = static_cast<std::uint64_t>(up_to_multiple(centres, kMaxTileQueries));
  const auto n = static_cast<std::uint64_t>(rows);
  // A tile's lists may have every center.
  constexpr std::uint64_t kLanes = kMaxTileRows;
  const std::uint64_t tile = kLanes * (row_bytes + 72 + queries * 8) + kMaxTileQueries * (kLanes * 8 + 4);
  constexpr std::uint64_t kRuns = std::uint64_t{1} << 11;
  const std::uint64_t choosing = static_cast<std::uint64_t>((kScaleRows + 2) * d) * sizeof(double);
  return n * (row_bytes + 16) + queries * (row_bytes + 48) + kRuns + threads * tile + choosing;
}

Screen LabelScreen::choose(const Context& ctx, const TableView& table, std::vector<double> centre) {
  const std::int64_t d = table.cols();
  const std::int64_t count = std::min(table.rows(), kScaleRows);
  std::vector<double> sample(static_cast<std::size_t>(count * d));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = i * table.rows() / count;
    core::widen_rows(table, row, row + 1, sample.data() + i * d);
  }
  if (std::all_of(sample.begin(), sample.end(), [](double x) { return x == std::nearbyint(x); })) {
    for (double& value : centre) value = std::nearbyint(value);
  }
  const ByteScale best = byte_scale(ctx, sample, centre);
  return {ScreenType::int8, ScreenKind::distance, d, best.scale, std::move(centre)};
}

LabelScreen::LabelScreen(const SimdKernels& simd, Screen screen, std::int64_t rows, std::int64_t centres)
    : simd_(simd),
      screen_(std::move(screen)),
      d_(static_cast<std::int64_t>(screen_.centre().size())),
      row_bytes_(Screen::row_bytes(ScreenType::int8, d_)) {
  rows_.reserve(rows * row_bytes_);
  fixed_.reserve(rows);
  exact_.reserve(rows);
  rounded_.reserve(rows);
  rho_.reserve(rows);
  std::fill_n(rho_.data(), rows, -1.0F);
  const std::int64_t queries = up_to_multiple(centres, simd.tile_queries);
  centres_.reserve(queries * row_bytes_);
  least_.resize(static_cast<std::size_t>(queries));
  longest_.resize(least_.size());
  most_rho_.resize(least_.size());
}

void LabelScreen::ask(const Context& ctx, std::span<const double> centres, std::span<const std::int32_t> distinct) {
  const auto count = static_cast<std::int64_t>(distinct.size());
  const std::vector<double>& middle = screen_.centre();
  std::vector<double> lengths(distinct.size());
  std::vector<double> greatest(distinct.size());
  core::parallel_for(ctx, (count + kCentresAtOnce - 1) / kCentresAtOnce, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t i = task * kCentresAtOnce; i < std::min(count, (task + 1) * kCentresAtOnce); ++i) {
      const double* centre = centres.data() + distinct[static_cast<std::size_t>(i)] * d_;
      double square = 0;
      double most = 0;
      for (std::int64_t j = 0; j < d_; ++j) {
        const double apart = centre[j] - middle[static_cast<std::size_t>(j)];
        most = std::max(most, std::fabs(apart));
        square += apart * apart;
      }
      lengths[static_cast<std::size_t>(i)] = square;
      greatest[static_cast<std::size_t>(i)] = most;
    }
  });
  runs_ = runs_of(lengths, greatest);
  for (std::int32_t& i : order_) i = distinct[static_cast<std::size_t>(i)];
  const std::int64_t width = simd_.tile_queries;
  mean_length_ = mean_error_ = 0;
  for (Run& run : runs_) {
    const Screen finer(ScreenType::int8, ScreenKind::distance, d_, scale() * run.ratio, middle);
    run.ratio = finer.scale() / scale();
    std::vector<Sizes> groups(static_cast<std::size_t>((run.end - run.first + width - 1) / width));
    core::parallel_for(ctx, std::ssize(groups), [&](std::int64_t group, int /*worker*/) {
      groups[static_cast<std::size_t>(group)] = round_centres(centres, finer, run, run.first + group * width);
    });
    Sizes all;
    for (const Sizes& group : groups) {
      all.lengths += group.lengths;
      all.errors += group.errors;
    }
    run.typical = all.lengths / static_cast<double>(run.end - run.first);
    mean_length_ += all.lengths / run.ratio / static_cast<double>(count);
    mean_error_ += all.errors / run.ratio / static_cast<double>(count);
  }
}

double LabelScreen::room(std::int64_t row, double reach) const {
  const auto rho = static_cast<double>(rho_[row]);
  const double error = rho * mean_length_ + (reach + rho) * mean_error_;
  return reach > 0 ? error / (4 * reach) : 0;
}

std::vector<LabelScreen::Run> LabelScreen::runs_of(std::span<const double> lengths, std::span<const double> largest) {
  // Any ratio will do; this one lets the largest element fill its byte.
  const double finest = std::min(0x1p10, 0x1p17 / static_cast<double>(d_));
  const auto ratio_of = [&](double element) { return std::clamp(126.5 / element / scale(), 0x1p-10, finest); };
  std::vector<int> fineness(largest.size());
  std::transform(largest.begin(), largest.end(), fineness.begin(),
                 [&](double element) { return std::ilogb(ratio_of(element)); });
  order_.resize(lengths.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
    const int of_a = fineness[static_cast<std::size_t>(a)];
    const int of_b = fineness[static_cast<std::size_t>(b)];
    if (of_a != of_b) return of_a > of_b;
    const double x = lengths[static_cast<std::size_t>(a)];
    const double y = lengths[static_cast<std::size_t>(b)];
    return x != y ? x < y : a < b;
  });
  std::vector<Run> runs;
  const std::int64_t count = std::ssize(order_);
  int of_run = 0;
  double most = 0;  // element of the run
  for (std::int64_t first = 0; first < count; first += simd_.tile_queries) {
    const std::int64_t end = std::min(count, first + simd_.tile_queries);
    // A group has one scale, which is that of its coarsest center: the last one.
    const int coarsest = fineness[static_cast<std::size_t>(order_[static_cast<std::size_t>(end - 1)])];
    if (runs.empty() || coarsest != of_run) {
      runs.push_back({.first = first, .end = end});
      of_run = coarsest;
      most = 0;
    }
    for (std::int64_t i = first; i < end; ++i) {
      most = std::max(most, largest[static_cast<std::size_t>(order_[static_cast<std::size_t>(i)])]);
    }
    runs.back().end = end;
    runs.back().ratio = ratio_of(most);
  }
  return runs;
}

/// Those of a group.
LabelScreen::Sizes LabelScreen::round_centres(std::span<const double> centres, const Screen& finer, const Run& run,
                                              std::int64_t first) {
  const std::int64_t width = simd_.tile_queries;
  std::byte* const panel = centres_.data() + first * row_bytes_;
  double longest = 0;
  double most = 0;
  Sizes sizes;
  for (std::int64_t i = 0; i < width; ++i) {
    std::int32_t& least = least_[static_cast<std::size_t>(first + i)];
    if (first + i >= run.end) {
      screen_.pack_nothing(panel, i, width);
      least = std::numeric_limits<std::int32_t>::max();
      continue;
    }
    const std::int32_t c = order_[static_cast<std::size_t>(first + i)];
    const RoundedRow sums = finer.pack(centres.data() + c * d_, Screen::Side::query, panel, i, width);
    const double rho = finer.query_terms(sums).rho;
    least = std::numeric_limits<std::int32_t>::min();
    if (!sums.finite || !(rho < kMaxRho)) continue;
    const double length = std::sqrt(sums.exact_sq) * kUp;
    longest = std::max(longest, length);
    most = std::max(most, rho);
    sizes.lengths += length;
    sizes.errors += rho;
    const double bound = (sums.rounded_sq * kDown - rho * rho * kUp) / (2 * run.ratio);
    least = static_cast<std::int32_t>(std::clamp(std::floor(bound - std::fabs(bound) * 0x1p-30), -0x1p31, 0x1p28));
  }
  std::fill_n(longest_.begin() + first, width, round_up(longest * (1 + 0x1p-20)));
  std::fill_n(most_rho_.begin() + first, width, round_up(most * (1 + 0x1p-20)));
  return sizes;
}

void LabelScreen::pack(std::int64_t row, const double* values) {
  const RoundedRow sums = screen_.pack(values, Screen::Side::row, rows_.data() + row * row_bytes_, 0, 1);
  const double rho = screen_.query_terms(sums).rho;
  fixed_[row] = static_cast<std::int32_t>(-128 * sums.sum);
  if (!sums.finite || !(rho < kMaxRho)) {
    exact_[row] = rounded_[row] = 0;
    rho_[row] = std::numeric_limits<float>::infinity();
    return;
  }
  exact_[row] = round_down(sums.exact_sq * kDown);
  rounded_[row] = round_down(sums.rounded_sq);
  rho_[row] = round_up(rho);
}

LabelScreen::Tile LabelScreen::tile() const {
  Tile tile;
  const auto rows = static_cast<std::size_t>(simd_.tile_rows);
  tile.panel.reserve(simd_.tile_rows * row_bytes_);
  std::memset(tile.panel.data(), 0, rows * static_cast<std::size_t>(row_bytes_));
  tile.lanes.resize(rows);
  tile.base.resize(rows);
  tile.rho.resize(rows);
  tile.kappa.resize(rows);
  tile.survivors.resize(static_cast<std::size_t>(simd_.tile_queries) * rows);
  tile.counts.resize(static_cast<std::size_t>(simd_.tile_queries));
  tile.centres.resize(rows);
  return tile;
}

void LabelScreen::put(Tile& tile, std::int64_t lane, std::int64_t row, double reach) const {
  const std::int64_t width = simd_.tile_rows;
  const std::byte* from = rows_.data() + row * row_bytes_;
  std::byte* to = tile.panel.data() + 4 * lane;
  for (std::int64_t at = 0; at < row_bytes_; at += 4, to += 4 * width) std::memcpy(to, from + at, 4);
  const auto rho = static_cast<double>(rho_[row]);
  const double around = (reach + rho) * kUp;
  tile.lanes[static_cast<std::size_t>(lane)] = {.form_t = around * around * kUp - static_cast<double>(rounded_[row]),
                                                .form_f = reach * reach * kUp - static_cast<double>(exact_[row]),
                                                .rho = rho_[row],
                                                .kappa = round_up(around),
                                                .fixed = fixed_[row]};
}

/// What the kernel adds to the sums of the lanes' rows and the centers of a run.
void LabelScreen::aim(Tile& tile, std::int64_t rows, const Run& run) {
  const double half = run.ratio / 2;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    const Tile::Lane& lane = tile.lanes[i];
    const double t = half * lane.form_t;
    const double f = half * lane.form_f;
    const bool is_t = t <= f + static_cast<double>(lane.rho) * run.typical;
    const double h = is_t ? t : f;
    const double above = h + std::fabs(h) * 0x1p-30 + 1;  // 1: conversion takes off less
    const bool counts = above < kMostH;
    tile.rho[i] = counts && !is_t ? lane.rho : 0;
    tile.kappa[i] = counts ? lane.kappa : 0;
    tile.base[i] = lane.fixed + static_cast<std::int32_t>(counts ? std::max(above, -kMostH) : kMostH);
  }
}

void LabelScreen::survivors(Tile& tile, std::int64_t rows) const {
  for (std::int64_t i = 0; i < rows; ++i) tile.centres[static_cast<std::size_t>(i)].clear();
  const std::int64_t width = simd_.tile_queries;
  ScreenTile ask{};
  ask.rows = tile.panel.data();
  ask.base = tile.base.data();
  ask.rho = tile.rho.data();
  ask.kappa = tile.kappa.data();
  ask.words = row_bytes_ / 4;
  ask.valid_rows = static_cast<std::int32_t>(rows);
  ask.survivors = tile.survivors.data();
  ask.capacity = simd_.tile_rows;
  ask.counts = tile.counts.data();
  for (const Run& run : runs_) {
    aim(tile, rows, run);
    for (std::int64_t first = run.first; first < run.end; first += width) {
      ask.queries = centres_.data() + first * row_bytes_;
      ask.least = least_.data() + first;
      ask.a = longest_.data() + first;
      ask.b = most_rho_.data() + first;
      ask.valid_queries = static_cast<std::int32_t>(std::min(width, run.end - first));
      std::fill(tile.counts.begin(), tile.counts.end(), 0);
      simd_.screens[screen_index(ScreenType::int8)](ask);
      for (std::int64_t q = 0; q < ask.valid_queries; ++q) {
        const Survivor* const found = tile.survivors.data() + q * simd_.tile_rows;
        const std::int32_t centre = order_[static_cast<std::size_t>(first + q)];
        for (std::int32_t i = 0; i < tile.counts[static_cast<std::size_t>(q)]; ++i) {
          tile.centres[found[i].row].push_back(centre);
        }
      }
    }
  }
}

}  // namespace vicinal::cpu
