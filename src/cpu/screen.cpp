// Arithmetic of the float32 screen; the proof is in screen.hpp.
#include "cpu/screen.hpp"

#include <cmath>
#include <limits>

namespace vicinal::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kGrow = 1 + 0x1p-20;

// The smallest float not below x (x finite or +inf).
float round_up(double x) {
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) < x ? std::nextafterf(f, std::numeric_limits<float>::infinity()) : f;
}

float round_down(double x) {
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) > x ? std::nextafterf(f, -std::numeric_limits<float>::infinity()) : f;
}

double measured_error(const RoundedRow& row) {
  return std::sqrt(row.error_sq) * (1 + 0x1p-30) + 0x1p-51 * std::sqrt(row.exact_sq) + 0x1p-200;
}

}  // namespace

RoundedRow round_row(const double* row, const double* centre, double scale, std::int64_t d, float* out,
                     std::int64_t stride) {
  // Eight lanes so that the compiler vectorises; the order of these additions is free, the bounds absorb it.
  double exact[8] = {};
  double rounded[8] = {};
  double error[8] = {};
  double weighted[8] = {};
  std::int64_t j = 0;
  const auto add = [&](std::int64_t column, int lane) {
    const double value = (centre != nullptr ? row[column] - centre[column] : row[column]) * scale;
    const auto narrow = static_cast<float>(value);
    const auto wide = static_cast<double>(narrow);
    out[column * stride] = narrow;
    exact[lane] += value * value;
    rounded[lane] += wide * wide;
    error[lane] += (value - wide) * (value - wide);
    weighted[lane] += static_cast<double>(d + 3 - column) * (wide * wide);
  };
  for (; j + 8 <= d; j += 8) {
    for (int lane = 0; lane < 8; ++lane) add(j + lane, lane);
  }
  for (; j < d; ++j) add(j, static_cast<int>(j & 7));
  RoundedRow sums{};
  for (int lane = 0; lane < 8; ++lane) {
    sums.exact_sq += exact[lane];
    sums.rounded_sq += rounded[lane];
    sums.error_sq += error[lane];
    sums.weighted_sq += weighted[lane];
  }
  sums.finite = sums.rounded_sq < kInfinity && sums.error_sq < kInfinity;
  return sums;
}

Screen::Screen(ScreenKind kind, std::int64_t d, double scale)
    : kind_(kind), d_(d), scale_(scale), beta_(0x1p-24 * (1 + 2 * static_cast<double>(d + 4) * 0x1p-23)) {}

RowTerms Screen::row_terms(const RoundedRow& row) const {
  const auto d = static_cast<double>(d_);
  const double rho = measured_error(row);
  const double half = kind_ == ScreenKind::distance ? row.rounded_sq / 2 : 0;
  const double slack = kind_ == ScreenKind::distance ? rho * rho : 0;
  const double start =
      -half + slack * (0.5 + 0x1p-20) + beta_ * (d + 3) * (1 + 0x1p-10) * (half + slack) + (2 * d + 8) * 0x1p-149;
  return {round_up(start), round_up(rho), round_up(std::sqrt(row.weighted_sq) * (1 + 0x1p-30))};
}

QueryTerms Screen::query_terms(const RoundedRow& row) const {
  QueryTerms query{row.exact_sq, row.rounded_sq, measured_error(row), std::sqrt(row.weighted_sq) * (1 + 0x1p-30), true};
  // Rows are no longer than sqrt(d) <= 2^10 after scaling, so below this every partial sum stays finite.
  query.usable = row.finite && row.rounded_sq < 0x1p160 && d_ <= kMaxColumns;
  return query;
}

Threshold Screen::threshold(const QueryTerms& query, double key, double typical_norm) const {
  const Threshold open{0, 0, -std::numeric_limits<float>::infinity()};
  if (!query.usable || !(key < kInfinity)) return open;
  const auto d = static_cast<double>(d_);
  const double margin = (d + 8) * 0x1p-51;
  double a = 0;
  double b = beta_ * query.kappa;
  double t = 0;
  if (kind_ == ScreenKind::product) {
    const double length = std::sqrt(query.exact_sq) * (1 + margin);
    a = length;
    b += query.rho / 2 + (d + 4) * 0x1p-52 * length;
    t = -key * scale_ * scale_;
    t -= std::fabs(t) * 0x1p-50 + d * 0x1p-1073 * scale_ * scale_;  // the key's products may have vanished
  } else {
    const double reach = scale_ * std::sqrt(key * (1 + margin) + d * 0x1p-1072) * (1 + 0x1p-50);
    if (reach > typical_norm) {
      a = reach;
      b += query.rho / 2;
      t = (query.exact_sq * (1 - margin) - reach * reach * (1 + margin)) / 2;
    } else {
      a = reach + query.rho;
      t = (query.rounded_sq * (1 - margin) - a * a * (1 + margin)) / 2;
    }
    t -= std::fabs(t) * 0x1p-50;
  }
  const Threshold closed{round_up(a * kGrow), round_up(b * kGrow), round_down(t)};
  if (!std::isfinite(closed.a) || !std::isfinite(closed.b)) return open;
  return closed;
}

}  // namespace vicinal::cpu
