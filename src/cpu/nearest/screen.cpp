// Arithmetic of the screens; the proof is in screen.hpp.
#include "cpu/nearest/screen.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace vicinal::cpu {
namespace {

constexpr double kGrow = 1 + 0x1p-20;

double measured_error(const RoundedRow& row) {
  return std::sqrt(row.error_sq) * (1 + 0x1p-30) + 0x1p-51 * std::sqrt(row.exact_sq) + 0x1p-200;
}

// Eight lanes so that the compiler vectorizes; the order of these additions is free, the bounds absorb it.
struct LaneSums {
  double exact[8] = {};
  double rounded[8] = {};
  double error[8] = {};
  double weighted[8] = {};
  double plain[8] = {};

  void add(int lane, double value, double rounding, double weight) {
    exact[lane] += value * value;
    rounded[lane] += rounding * rounding;
    error[lane] += (value - rounding) * (value - rounding);
    weighted[lane] += weight * (rounding * rounding);
    plain[lane] += rounding;
  }
  [[nodiscard]] RoundedRow total() const {
    RoundedRow sums{};
    for (int lane = 0; lane < 8; ++lane) {
      sums.exact_sq += exact[lane];
      sums.rounded_sq += rounded[lane];
      sums.error_sq += error[lane];
      sums.weighted_sq += weighted[lane];
      sums.sum += plain[lane];
    }
    sums.finite = sums.exact_sq < kInfinity && sums.rounded_sq < kInfinity && sums.error_sq < kInfinity;
    return sums;
  }
};

// A float32 to bfloat16, to nearest even; what would be subnormal is zero.
std::uint16_t bfloat16_bits(float value) {
  if (!(std::fabs(value) >= std::numeric_limits<float>::min())) return std::isnan(value) ? 0x7FC0 : 0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// `round(value, column)` stores the rounding of one element and returns it.
template <class Round>
RoundedRow round_row(const double* row, const double* centre, double scale, std::int64_t d, Round round) {
  LaneSums sums;
  const auto add = [&](std::int64_t column, int lane) {
    const double value = (row[column] - centre[column]) * scale;
    sums.add(lane, value, round(value, column), static_cast<double>(d + 4 - column));
  };
  std::int64_t j = 0;
  for (; j + 8 <= d; j += 8) {
    for (int lane = 0; lane < 8; ++lane) add(j + lane, lane);
  }
  for (; j < d; ++j) add(j, static_cast<int>(j & 7));
  return sums.total();
}

}  // namespace

float round_up(double x) {
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) < x ? std::nextafterf(f, std::numeric_limits<float>::infinity()) : f;
}

float round_down(double x) {
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) > x ? std::nextafterf(f, -std::numeric_limits<float>::infinity()) : f;
}

KeyRange Screen::key_range(const QueryTerms& query, float score, float rho, double added) const {
  if (rho == 0 || !query.usable || !(score < 0x1p28F)) return {};  // it survives whatever the query, or was capped
  const auto sum = static_cast<double>(score);
  const auto of_row = static_cast<double>(rho);
  const double error = std::fabs(sum) * 0x1p-23 + (query.rounded_sq + added) * 0x1p-40;
  const double near_sq = query.rounded_sq - 2 * (sum - added + error);
  const double far_sq = query.rounded_sq - 2 * (sum - added * (1 + 0x1p-18) - 3 - 0.51 * of_row * of_row - error);
  const double rounding = query.rho + of_row;
  const double near = std::max(0.0, std::sqrt(std::max(0.0, near_sq)) - rounding) * (1 - 0x1p-40) / scale_;
  const double far = (std::sqrt(std::max(0.0, far_sq)) + rounding) * (1 + 0x1p-40) / scale_;
  const auto d = static_cast<double>(d_);
  const double rounded = 0x1p-51 * (d + 8);
  const double vanished = d * 0x1p-1072;
  return {std::max(0.0, near * near * (1 - rounded) - vanished), far * far * (1 + rounded) + vanished};
}

bool Threshold::open() const noexcept {
  return t == -kInfinity;
}

std::int64_t Screen::largest_columns(ScreenType type) {
  return std::int64_t{1} << (type == ScreenType::int8 ? 15 : 20);
}

std::int64_t Screen::columns_a_word(ScreenType type) {
  if (type == ScreenType::int8) return 4;
  return type == ScreenType::bfloat16 ? 2 : 1;
}

std::int64_t Screen::row_bytes(ScreenType type, std::int64_t d) {
  const std::int64_t columns = columns_a_word(type);
  return (d + columns - 1) / columns * 4;
}

Screen::Screen(ScreenType type, ScreenKind kind, std::int64_t d, double scale, std::vector<double> centre)
    : type_(type), kind_(kind), d_(d), scale_(scale), centre_(std::move(centre)) {
  centre_.resize(static_cast<std::size_t>(d), 0.0);
  const double unit = type == ScreenType::bfloat16 ? 0x1p-23 : 0x1p-24;
  const double steps = static_cast<double>(d + 4);
  beta_ = type == ScreenType::int8 ? 0 : unit * (1 + 4 * steps * 0x1p-23);
  tiny_ = 2 * steps * (type == ScreenType::bfloat16 ? 0x1p-126 : 0x1p-149);
}

Screen::Screen(ScreenType type, ScreenKind kind, double scale, std::vector<double> centre,
               std::shared_ptr<const Projection> projection)
    : Screen(type, kind, projection->columns(), scale, std::move(centre)) {
  projection_ = std::move(projection);
}

RoundedRow Screen::pack(const double* row, Side side, std::byte* panel, std::int64_t lane, std::int64_t width) const {
  if (!projection_) return pack_columns(row, side, panel, lane, width);
  double image[Projection::kMaxAxes + 1];
  const double length = projection_->map(row, image);
  RoundedRow rounded = pack_columns(image, side, panel, lane, width);
  rounded.length = length;
  if (!(length < kInfinity)) rounded.finite = false;
  if (side == Side::row && !(length * kGrow + 0x1p-500 <= projection_->longest())) rounded.finite = false;
  return rounded;
}

RoundedRow Screen::pack_columns(const double* row, Side side, std::byte* panel, std::int64_t lane,
                                std::int64_t width) const {
  const double* centre = centre_.data();
  if (type_ == ScreenType::float32) {
    float* out = reinterpret_cast<float*>(panel) + lane;
    return round_row(row, centre, scale_, d_, [&](double value, std::int64_t column) {
      const auto narrow = static_cast<float>(value);
      out[column * width] = narrow;
      return static_cast<double>(narrow);
    });
  }
  if (type_ == ScreenType::bfloat16) {
    auto* out = reinterpret_cast<std::uint16_t*>(panel) + 2 * lane;
    if (d_ % 2 != 0) out[(d_ / 2) * 2 * width + 1] = 0;
    return round_row(row, centre, scale_, d_, [&](double value, std::int64_t column) {
      const std::uint16_t bits = bfloat16_bits(static_cast<float>(value));
      out[(column >> 1) * 2 * width + (column & 1)] = bits;
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
    });
  }
  auto* out = reinterpret_cast<std::uint8_t*>(panel) + 4 * lane;
  const int surplus = side == Side::query ? 128 : 0;
  for (std::int64_t column = d_; column % 4 != 0; ++column) {
    out[(column >> 2) * 4 * width + (column & 3)] = static_cast<std::uint8_t>(surplus);
  }
  return round_row(row, centre, scale_, d_, [&](double value, std::int64_t column) {
    const double nearest = std::nearbyint(value < 127 ? std::max(value, -128.0) : 127.0);  // a NaN becomes 127
    out[(column >> 2) * 4 * width + (column & 3)] = static_cast<std::uint8_t>(static_cast<int>(nearest) + surplus);
    return nearest;
  });
}

void Screen::pack_nothing(std::byte* panel, std::int64_t lane, std::int64_t width) const {
  const std::int64_t words = row_bytes(type_, d_) / 4;
  for (std::int64_t word = 0; word < words; ++word) std::memset(panel + 4 * (word * width + lane), 0, 4);
}

RowTerms Screen::row_terms(const RoundedRow& row) const {
  const auto d = static_cast<double>(d_);
  const double rho = measured_error(row);
  const double half = kind_ == ScreenKind::distance ? row.rounded_sq / 2 : 0;
  const double slack = kind_ == ScreenKind::distance ? rho * rho * (0.5 + 0x1p-20) : 0;
  if (type_ == ScreenType::int8) {
    if (!row.finite || !(rho < 0x1p14)) return always(row);
    const double base = -128 * row.sum - std::floor(half) + std::ceil(slack);
    return {0, static_cast<std::int32_t>(base), round_up(rho), round_up(std::sqrt(row.rounded_sq) * (1 + 0x1p-30))};
  }
  // A row longer than the scale promises (a saved index may lie): the bound counts on finite sums.
  if (!row.finite || !(row.rounded_sq <= 2 * d)) return always(row);
  const double start = -half + slack + beta_ * (d + 3) * (1 + 0x1p-10) * (half + 2 * slack) + tiny_;
  return {round_up(start), 0, round_up(rho), round_up(std::sqrt(row.weighted_sq) * (1 + 0x1p-30))};
}

RowTerms Screen::always(const RoundedRow& row) {
  // Only int8 reads the base: there the sum is a small integer.
  const double base = std::fabs(row.sum) <= 0x1p22 ? 0x1p30 - 128 * row.sum : 0;
  return {std::numeric_limits<float>::infinity(), static_cast<std::int32_t>(base), 0, 0};
}

QueryTerms Screen::query_terms(const RoundedRow& row) const {
  QueryTerms query{row.exact_sq, row.rounded_sq, measured_error(row), std::sqrt(row.weighted_sq) * (1 + 0x1p-30), true};
  // Rows are no longer than sqrt(2d) < 2^11 after scaling, so below this every partial sum stays finite.
  query.usable = row.finite && row.rounded_sq < 0x1p160;
  if (projection_) {
    query.slack = kind_ == ScreenKind::product ? scale_ * scale_ * projection_->product_slack(row.length)
                                               : scale_ * projection_->distance_slack(row.length);
    query.slack *= kGrow;
  }
  return query;
}

Threshold Screen::threshold(const QueryTerms& query, double key, double typical_norm) const {
  const Threshold open{0, 0, -kInfinity};
  if (!query.usable || !(key < kInfinity)) return open;
  const auto d = static_cast<double>(projection_ ? std::max(d_, projection_->cols()) : d_);  // the key's, too
  const double margin = (d + 8) * 0x1p-51;
  const bool integer = type_ == ScreenType::int8;
  const double norms = integer ? 1 : 0.5;  // |y~| <= norms * kappa_y
  double a = 0;
  double b = integer ? 0 : beta_ * query.kappa;
  double t = 0;
  if (kind_ == ScreenKind::product) {
    const double length = std::sqrt(query.exact_sq) * (1 + margin);
    a = length;
    // |Y| <= |y~| + rho_y: the second part is in a.
    a += (d + 4) * 0x1p-52 * length;
    b += norms * (query.rho + (d + 4) * 0x1p-51 * length);
    t = -key * scale_ * scale_;
    t -= std::fabs(t) * 0x1p-50 + d * 0x1p-1073 * scale_ * scale_;  // the key's products may have vanished
    t -= query.slack * kGrow;
  } else {
    const double reach = scale_ * std::sqrt(key * (1 + margin) + d * 0x1p-1072) * (1 + 0x1p-50) + query.slack;
    if (reach > typical_norm) {
      a = reach;
      b += norms * query.rho;
      t = (query.exact_sq * (1 - margin) - reach * reach * (1 + margin)) / 2;
    } else {
      a = reach + query.rho;
      t = (query.rounded_sq * (1 - margin) - a * a * (1 + margin)) / 2;
    }
    t -= std::fabs(t) * 0x1p-50;
  }
  if (!(t < kInfinity)) return open;  // squares of the scale beyond float64
  if (integer) return a < 0x1p80 && b < 0x1p80 ? Threshold{a, b, t} : open;
  const Threshold closed{round_up(a * kGrow), round_up(b * kGrow), round_down(t)};
  return std::isfinite(closed.a) && std::isfinite(closed.b) ? closed : open;
}

std::int32_t integer_threshold(const Threshold& query, double a, double b, double least_rho, double least_kappa) {
  if (query.open()) return std::numeric_limits<std::int32_t>::min();
  const double more = (a - query.a) * least_rho + (b - query.b) * least_kappa;
  const double least = std::floor(query.t + more * (1 - 0x1p-40) - std::fabs(query.t) * 0x1p-50);
  return static_cast<std::int32_t>(std::clamp(least, -0x1p31, 0x1p28));
}

}  // namespace vicinal::cpu
