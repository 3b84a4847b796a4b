// See screen.hpp.
#include "cpu/kmeans/screen.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/distance.hpp"
#include "cpu/nearest/screen.hpp"

namespace vicinal::cpu {
namespace {

// The first of each group of centers equal bit for bit, ascending: sorted by their bits, then by id.
std::vector<std::int32_t> distinct_of(std::span<const double> centres, std::int64_t k, std::int64_t d) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  const auto compare = [&](std::int32_t a, std::int32_t b) {
    for (std::int64_t j = 0; j < d; ++j) {
      const auto x = std::bit_cast<std::uint64_t>(centres[static_cast<std::size_t>(a * d + j)]);
      const auto y = std::bit_cast<std::uint64_t>(centres[static_cast<std::size_t>(b * d + j)]);
      if (x != y) return x < y ? -1 : 1;
    }
    return 0;
  };
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const int difference = compare(a, b);
    return difference != 0 ? difference < 0 : a < b;
  });
  std::vector<std::int32_t> first;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) first.push_back(order[i]);
  }
  std::sort(first.begin(), first.end());
  return first;
}

}  // namespace

LloydFrame LloydFrame::of(std::span<const double> centre, double largest) {
  LloydFrame frame;
  const auto d = static_cast<std::int64_t>(centre.size());
  frame.shift.assign(static_cast<std::size_t>(d + 4), 0);
  if (!core::lloyd_serves(d, largest)) return frame;
  frame.usable = true;
  frame.scale = core::lloyd_scale(largest);
  for (std::int64_t j = 0; j < d; ++j) {
    const auto at = static_cast<std::size_t>(j);
    frame.shift[at] = static_cast<float>(centre[at] * frame.scale);
  }
  return frame;
}

float centre_shift(const double* a, const double* b, std::int64_t d, double scale) {
  if (std::equal(a, a + d, b)) return 0;
  return round_up(std::max(std::sqrt(core::euclidean_key(a, b, d)), 0x1p-440) * scale * (1 + 0x1p-20));
}

LloydCentres::LloydCentres(const LloydKernels& simd, const LloydFrame& frame, std::int64_t d)
    : simd_(simd), frame_(frame), d_(d) {}

bool LloydCentres::assign(std::span<const double> centres) {
  const std::int64_t k = static_cast<std::int64_t>(centres.size()) / d_;
  distinct_ = distinct_of(centres, k, d_);
  if (!frame_.usable) return false;
  const auto count = static_cast<std::int64_t>(distinct_.size());
  const std::int64_t tall = simd_.centre_tile;
  const std::int64_t step = tall / 3;
  full_panels_ = count / tall;
  std::int64_t rest = (count - full_panels_ * tall + step - 1) / step * step;
  if (rest == tall) {
    ++full_panels_;
    rest = 0;
  }
  last_height_ = static_cast<std::int32_t>(rest);
  padded_ = full_panels_ * tall + rest;
  panels_.reserve(padded_ * (d_ + 2));
  lengths_.assign(static_cast<std::size_t>(padded_), 0);
  allowances_.assign(static_cast<std::size_t>(padded_), 0);
  const double beta = core::lloyd_beta(d_);
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::int64_t i = 0; i < padded_; ++i) {
    const std::int64_t panel = std::min(i / tall, full_panels_);
    const std::int64_t height = panel < full_panels_ ? tall : rest;
    float* to = panels_.data() + panel * tall * (d_ + 2) + (i - panel * tall);
    if (i >= count) {  // no center: minus infinity is never the best
      to[0] = -std::numeric_limits<float>::infinity();
      for (std::int64_t j = 1; j < d_ + 2; ++j) to[j * height] = 0;
      continue;
    }
    const double* centre = centres.data() + distinct_[static_cast<std::size_t>(i)] * d_;
    double squares = 0;
    for (std::int64_t j = 0; j < d_; ++j) {
      const auto value = static_cast<float>(
          std::fma(centre[j], frame_.scale, -static_cast<double>(frame_.shift[static_cast<std::size_t>(j)])));
      to[(j + 1) * height] = value;
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    if (!(squares <= core::kMaxLloydSquares)) return false;
    const core::LloydCentre facts = core::lloyd_centre(squares, beta);
    least = std::min(least, facts.length);
    most = std::max(most, facts.length);
    to[0] = round_up(facts.start);
    to[(d_ + 1) * height] = lengths_[static_cast<std::size_t>(i)] = round_up(facts.length);
    allowances_[static_cast<std::size_t>(i)] = round_up(facts.allowance);
  }
  bound_.beta = round_up(beta);
  bound_.unit = round_up(core::kLloydUnit);
  bound_.tiny = static_cast<float>(core::kLloydTiny);
  bound_.key_margin = round_up(core::lloyd_key_margin(d_));
  bound_.least_norm = round_down(least);
  bound_.most_rho = round_up(core::kLloydUnit * most * (1 + 0x1p-20) + core::kLloydTiny);
  return true;
}

void LloydCentres::attach(LloydTile& tile) const {
  tile.d = d_;
  tile.panels = panels_.data();
  tile.full_panels = full_panels_;
  tile.last_height = last_height_;
  tile.lengths = lengths_.data();
  tile.allowances = allowances_.data();
  tile.bound = bound_;
}

std::uint64_t LloydCentres::bytes(std::int64_t k, std::int64_t d) {
  return static_cast<std::uint64_t>(k + kMaxTileQueries) * (static_cast<std::uint64_t>(d) + 8) * sizeof(float);
}

}  // namespace vicinal::cpu
