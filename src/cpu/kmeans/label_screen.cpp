// See label_screen.hpp.
#include "cpu/kmeans/label_screen.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "cpu/kmeans/seeding_screen.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kMinColumns = 16;
constexpr std::int64_t kMaxColumns = std::int64_t{1} << 13;
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
  const std::uint64_t tile = kLanes * (row_bytes + 64 + queries * 8) + kMaxTileQueries * (kLanes * 8 + 4);
  return n * (row_bytes + 16) + queries * (row_bytes + 32) + threads * tile + 512 + SeedingScreen::choosing_bytes(n);
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
  const double largest = *std::max_element(greatest.begin(), greatest.end());
  // Any ratio will do; this one lets the largest element fill its byte.
  const double finest = std::min(0x1p10, 0x1p17 / static_cast<double>(d_));
  ratio_ = largest > 0 ? std::clamp(126.5 / largest / scale(), 0x1p-10, finest) : 1;
  const Screen finer(ScreenType::int8, ScreenKind::distance, d_, scale() * ratio_, middle);
  ratio_ = finer.scale() / scale();
  order_.resize(distinct.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
    const double x = lengths[static_cast<std::size_t>(a)];
    const double y = lengths[static_cast<std::size_t>(b)];
    return x != y ? x < y : a < b;
  });
  const std::int64_t width = simd_.tile_queries;
  std::vector<double> totals(static_cast<std::size_t>((count + width - 1) / width));  // of |Y|, of each group
  core::parallel_for(ctx, std::ssize(totals), [&](std::int64_t group, int /*worker*/) {
    const std::int64_t first = group * width;
    std::byte* const panel = centres_.data() + first * row_bytes_;
    double longest = 0;
    double most = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      std::int32_t& least = least_[static_cast<std::size_t>(first + i)];
      if (first + i >= count) {
        screen_.pack_nothing(panel, i, width);
        least = std::numeric_limits<std::int32_t>::max();
        continue;
      }
      const std::int32_t c = distinct[static_cast<std::size_t>(order_[static_cast<std::size_t>(first + i)])];
      const RoundedRow sums = finer.pack(centres.data() + c * d_, Screen::Side::query, panel, i, width);
      const double rho = finer.query_terms(sums).rho;
      least = std::numeric_limits<std::int32_t>::min();
      if (!sums.finite || !(rho < kMaxRho)) continue;
      const double length = std::sqrt(sums.exact_sq) * kUp;
      longest = std::max(longest, length);
      most = std::max(most, rho);
      totals[static_cast<std::size_t>(group)] += length;
      const double bound = (sums.rounded_sq * kDown - rho * rho * kUp) / (2 * ratio_);
      least = static_cast<std::int32_t>(std::clamp(std::floor(bound - std::fabs(bound) * 0x1p-30), -0x1p31, 0x1p28));
    }
    std::fill_n(longest_.begin() + first, width, round_up(longest * (1 + 0x1p-20)));
    std::fill_n(most_rho_.begin() + first, width, round_up(most * (1 + 0x1p-20)));
  });
  typical_ = std::accumulate(totals.begin(), totals.end(), 0.0) / static_cast<double>(count);
  for (std::int32_t& i : order_) i = distinct[static_cast<std::size_t>(i)];
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
  const auto i = static_cast<std::size_t>(lane);
  const auto rho = static_cast<double>(rho_[row]);
  const double around = (reach + rho) * kUp;
  const double half = ratio_ / 2;
  double h = half * (around * around * kUp - static_cast<double>(rounded_[row]));        // T
  const double other = half * (reach * reach * kUp - static_cast<double>(exact_[row]));  // F
  tile.rho[i] = 0;
  if (!(h <= other + rho * typical_)) {
    h = other;
    tile.rho[i] = rho_[row];
  }
  tile.kappa[i] = round_up(around);
  h = std::ceil(h + std::fabs(h) * 0x1p-30);
  if (!(h < kMostH)) {
    h = kMostH;
    tile.rho[i] = tile.kappa[i] = 0;
  }
  tile.base[i] = fixed_[row] + static_cast<std::int32_t>(std::max(h, -kMostH));
}

void LabelScreen::survivors(Tile& tile, std::int64_t rows) const {
  for (std::int64_t i = 0; i < rows; ++i) tile.centres[static_cast<std::size_t>(i)].clear();
  const std::int64_t width = simd_.tile_queries;
  const auto count = static_cast<std::int64_t>(order_.size());
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
  for (std::int64_t first = 0; first < count; first += width) {
    ask.queries = centres_.data() + first * row_bytes_;
    ask.least = least_.data() + first;
    ask.a = longest_.data() + first;
    ask.b = most_rho_.data() + first;
    ask.valid_queries = static_cast<std::int32_t>(std::min(width, count - first));
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

}  // namespace vicinal::cpu
