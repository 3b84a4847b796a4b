// See seeding_screen.hpp.
#include "cpu/kmeans/seeding_screen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "backend/nearest.hpp"
#include "core/infinity.hpp"
#include "cpu/kmeans/table_scan.hpp"
#include "cpu/nearest/ladder.hpp"

namespace vicinal::cpu {
namespace {

constexpr double kMaxReach = 0x1p14;
constexpr std::int64_t kMaxPrefetched = 32768;  // bytes of a tile
constexpr double kAlike = 1.25;                 // between errors of draws
constexpr std::int32_t kNever = -(1 << 30);

}  // namespace

bool SeedingScreen::serves(const SimdKernels& simd, const TableView& table) {
  return simd.quick[screen_index(ScreenType::int8)] && !table.is_block_source() &&
         table.cols() <= Screen::largest_columns(ScreenType::int8);
}

std::uint64_t SeedingScreen::bytes(std::int64_t rows, std::int64_t d, std::int64_t draws) {
  const auto row_bytes = static_cast<std::uint64_t>(Screen::row_bytes(ScreenType::int8, d));
  const auto padded = static_cast<std::uint64_t>(up_to_multiple(rows, kMaxTileRows));
  const auto queries = static_cast<std::uint64_t>(up_to_multiple(draws, kMaxTileQueries));
  const std::uint64_t limits = sizeof(std::int32_t) + sizeof(double);  // of a draw
  return padded * (row_bytes + 16) + queries * (row_bytes + limits) + 512 + choosing_bytes(padded);
}

// Values of up to 512 rows' columns.
std::uint64_t SeedingScreen::choosing_bytes(std::uint64_t rows) {
  return std::min<std::uint64_t>(512 * rows, std::uint64_t{1} << 20) * sizeof(double);
}

SeedingScreen::SeedingScreen(const SimdKernels& simd, Screen screen, std::int64_t rows, std::int64_t draws)
    : simd_(simd),
      screen_(std::move(screen)),
      rows_(rows),
      d_(static_cast<std::int64_t>(screen_.centre().size())),
      row_bytes_(Screen::row_bytes(ScreenType::int8, d_)),
      no_kappa_(static_cast<std::size_t>(simd.tile_rows), 0),
      most_rho_(static_cast<std::size_t>(simd.tile_queries), 0),
      no_b_(static_cast<std::size_t>(simd.tile_queries), 0) {
  const std::int64_t padded = up_to_multiple(rows, simd.tile_rows);
  panels_.reserve(padded * row_bytes_);
  fixed_.reserve(padded);
  base_.reserve(padded);
  reach_.reserve(padded);
  rho_.reserve(padded);
  for (std::int64_t row = rows; row < padded; ++row) pack_nothing(row);
  const std::int64_t queries = up_to_multiple(draws, simd.tile_queries);
  queries_.reserve(queries * row_bytes_);
  least_.resize(static_cast<std::size_t>(queries));
  beyond_.resize(static_cast<std::size_t>(queries));
}

Screen SeedingScreen::choose(const Context& ctx, const TableView& table) {
  kernels::Prepared index;
  index.table = table;
  index.centre = middle_of_table(table);
  index.largest = 1;  // of the floating-point screens alone
  kernels::NearestTask task;
  task.index = &index;
  task.queries = table;
  task.metric = Metric::sqeuclidean;
  return make_ladder(ctx, task, {ScreenType::int8}).front();
}

void SeedingScreen::pack(std::int64_t row, const double* values, double key) {
  const std::int64_t tile = row / simd_.tile_rows;
  const RoundedRow sums =
      screen_.pack(values, Screen::Side::row, panel(tile), row - tile * simd_.tile_rows, simd_.tile_rows);
  const double rho = screen_.query_terms(sums).rho;
  fixed_[row] = static_cast<std::int32_t>(-128 * sums.sum - std::floor(sums.rounded_sq / 2));
  rho_[row] = sums.finite && rho < kMaxReach ? round_up(rho) : std::numeric_limits<float>::infinity();
  set_key(row, key);
}

void SeedingScreen::pack_nothing(std::int64_t row) {
  const std::int64_t tile = row / simd_.tile_rows;
  screen_.pack_nothing(panel(tile), row - tile * simd_.tile_rows, simd_.tile_rows);
  fixed_[row] = 0;
  rho_[row] = reach_[row] = 0;
  base_[row] = kNever;
}

void SeedingScreen::set_key(std::int64_t row, double key) {
  const auto d = static_cast<double>(d_);
  const double farthest = screen_.scale() * std::sqrt(key * (1 + (d + 8) * 0x1p-51) + d * 0x1p-1072) * (1 + 0x1p-50);
  const double reach = (farthest + static_cast<double>(rho_[row])) * (1 + 0x1p-50);
  if (!(reach < kMaxReach - 1)) {
    base_[row] = (1 << 30) + fixed_[row];
    reach_[row] = 0;
    return;
  }
  const float rounded = round_up(reach);
  reach_[row] = rounded;
  const double half = static_cast<double>(rounded) * static_cast<double>(rounded) / 2;  // exact
  base_[row] = fixed_[row] + static_cast<std::int32_t>(std::ceil(half));
}

void SeedingScreen::ask(std::span<const double> draws) {
  draws_ = static_cast<std::int64_t>(draws.size()) / d_;
  const std::int64_t width = simd_.tile_queries;
  std::fill(beyond_.begin(), beyond_.end(), 0.0);  // rho_y at first
  double least_rho = kInfinity;
  for (std::int64_t q = 0; q < up_to_multiple(draws_, width); ++q) {
    std::byte* const panel = queries_.data() + q / width * width * row_bytes_;
    std::int32_t& least = least_[static_cast<std::size_t>(q)];
    if (q >= draws_) {
      screen_.pack_nothing(panel, q % width, width);
      least = std::numeric_limits<std::int32_t>::max();
      continue;
    }
    const RoundedRow sums = screen_.pack(draws.data() + q * d_, Screen::Side::query, panel, q % width, width);
    const double rho = screen_.query_terms(sums).rho;
    least = std::numeric_limits<std::int32_t>::min();
    if (!sums.finite || !(rho < kMaxReach)) continue;
    beyond_[static_cast<std::size_t>(q)] = rho * (1 + 0x1p-20);
    least_rho = std::min(least_rho, rho);
    least = static_cast<std::int32_t>(std::floor(sums.rounded_sq / 2 - rho * rho * (0.5 + 0x1p-30)));
  }
  double most = 0;
  for (const double rho : beyond_) most = rho <= least_rho * kAlike ? std::max(most, rho) : most;
  const float rounded = round_up(most);
  std::fill(most_rho_.begin(), most_rho_.end(), rounded);
  for (double& rho : beyond_) rho = std::max(0.0, rho - static_cast<double>(rounded));
  is_any_beyond_ = std::any_of(beyond_.begin(), beyond_.end(), [](double more) { return more > 0; });
}

SeedingScreen::Scratch SeedingScreen::scratch() const {
  Scratch scratch;
  scratch.survivors.resize(static_cast<std::size_t>(simd_.tile_queries) * static_cast<std::size_t>(simd_.tile_rows));
  scratch.counts.resize(static_cast<std::size_t>(simd_.tile_queries));
  scratch.least.resize(static_cast<std::size_t>(simd_.tile_queries));
  return scratch;
}

void SeedingScreen::survivors(std::int64_t tile, Scratch& scratch) const {
  scratch.found.clear();
  const std::int64_t height = simd_.tile_rows;
  const std::int64_t width = simd_.tile_queries;
  const std::int64_t first = tile * height;
  ScreenTile ask{};
  ask.rows = panels_.data() + first * row_bytes_;
  ask.base = base_.data() + first;
  ask.rho = reach_.data() + first;
  ask.kappa = no_kappa_.data();
  ask.a = most_rho_.data();
  ask.b = no_b_.data();
  ask.words = row_bytes_ / 4;
  // A tile is over before the processor has seen that the next one follows.
  const std::byte* const next = ask.rows + height * row_bytes_;
  const std::int64_t next_bytes = first + height < rows_ ? std::min(height * row_bytes_, kMaxPrefetched) : 0;
  for (std::int64_t at = 0; at < next_bytes; at += 64) __builtin_prefetch(next + at);
  ask.valid_rows = static_cast<std::int32_t>(std::min(height, rows_ - first));
  ask.survivors = scratch.survivors.data();
  ask.capacity = height;
  ask.counts = scratch.counts.data();
  const double reach = is_any_beyond_ ? static_cast<double>(*std::max_element(ask.rho, ask.rho + height)) : 0;
  for (std::int64_t group = 0; group < draws_; group += width) {
    ask.queries = queries_.data() + group * row_bytes_;
    ask.least = is_any_beyond_ ? scratch.least.data() : least_.data() + group;
    for (std::int64_t q = 0; is_any_beyond_ && q < width; ++q) {
      const auto at = static_cast<std::size_t>(group + q);
      const double least = std::floor(least_[at] - beyond_[at] * reach * (1 + 0x1p-50));
      scratch.least[static_cast<std::size_t>(q)] = static_cast<std::int32_t>(std::max(least, -0x1p31));
    }
    ask.valid_queries = static_cast<std::int32_t>(std::min(width, draws_ - group));
    std::fill(scratch.counts.begin(), scratch.counts.end(), 0);
    simd_.screens[screen_index(ScreenType::int8)](ask);
    for (std::int32_t q = 0; q < ask.valid_queries; ++q) {
      const Survivor* const survivors = scratch.survivors.data() + q * height;
      for (std::int32_t i = 0; i < scratch.counts[static_cast<std::size_t>(q)]; ++i) {
        scratch.found.push_back({static_cast<std::int32_t>(group) + q, static_cast<std::int32_t>(survivors[i].row)});
      }
    }
  }
}

}  // namespace vicinal::cpu
