// See projection.hpp.
#include "cpu/nearest/projection.hpp"

#include <algorithm>
#include <cmath>

#include "core/infinity.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kChunk = 512;  // columns centered at a time
constexpr double kLarger = 1 + 0x1p-20;
constexpr double kTiny = 0x1p-500;
constexpr double kLargestResidual = 0x1p-10;

}  // namespace

Projection::Projection(std::span<const double> axes, std::vector<double> centre, double longest,
                       const SimdKernels& simd, const Context* ctx)
    : d_(static_cast<std::int64_t>(centre.size())),
      p_(static_cast<std::int64_t>(axes.size() / centre.size())),
      axes_(axes.begin(), axes.end()),
      centre_(std::move(centre)),
      longest_(longest),
      products_(simd.keys[static_cast<int>(KeyOp::products)][static_cast<int>(Element::float64)]) {
  const auto d = static_cast<double>(d_);
  const auto p = static_cast<double>(p_);
  double squares = 0;
  for (std::int64_t i = 0; i < p_; ++i) {
    if (ctx != nullptr) ctx->check_cancelled();
    for (std::int64_t j = 0; j <= i; ++j) {
      double product = i == j ? -1 : 0;
      for (std::int64_t c = 0; c < d_; ++c) product += axes_[i * d_ + c] * axes_[j * d_ + c];
      squares += (i == j ? 1 : 2) * product * product;
    }
  }
  residual_ = std::sqrt(squares) * kLarger + p * (d + 8) * 0x1p-51;
  const double e = residual_ + std::sqrt(p) * (d + 8) * 0x1p-51 + 0x1p-51;
  const double delta = (d + p + 24) * 0x1p-51 + 3 * e;
  relative_ = e + std::sqrt(delta) * kLarger + 0x1p-50;
}

std::uint64_t Projection::bytes(std::int64_t axes, std::int64_t d) {
  return static_cast<std::uint64_t>((axes + 1) * d) * sizeof(double);
}

bool Projection::serves() const noexcept {
  return residual_ <= kLargestResidual && longest_ < 0x1p420;
}

double Projection::map(const double* row, double* to) const {
  alignas(64) double centred[kChunk];
  const void* rows[kMaxAxes + 1];
  double sums[kMaxAxes + 1];
  std::fill_n(to, p_, 0.0);
  double length_sq = 0;
  for (std::int64_t begin = 0; begin < d_; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, d_ - begin);
    for (std::int64_t j = 0; j < count; ++j) centred[j] = row[begin + j] - centre_[begin + j];
    for (std::int64_t j = count; j % 8 != 0; ++j) centred[j] = 0;
    for (std::int64_t i = 0; i < p_; ++i) rows[i] = axes_.data() + i * d_ + begin;
    rows[p_] = centred;
    products_(centred, rows, p_ + 1, count, sums);
    for (std::int64_t i = 0; i < p_; ++i) to[i] += sums[i];
    length_sq += sums[p_];
  }
  double rest = length_sq;
  for (std::int64_t i = 0; i < p_; ++i) rest -= to[i] * to[i];
  to[p_] = rest > 0 ? std::sqrt(rest) : 0;
  return length_sq < kInfinity ? std::sqrt(length_sq) : kInfinity;
}

double Projection::error(double length) const noexcept {
  return relative_ * kLarger * (length + kTiny) + kTiny;
}

double Projection::distance_slack(double length) const noexcept {
  return (error(length) + error(longest_)) * kLarger;
}

double Projection::product_slack(double length) const noexcept {
  const double of_query = error(length) * (longest_ + error(longest_));
  return (of_query + (length * kLarger + kTiny) * error(longest_)) * kLarger;
}

}  // namespace vicinal::cpu
