// See placed_rows.hpp.
#include "ops/density/placed_rows.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/distance.hpp"
#include "core/in_steps.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kRangeColumns = std::int64_t{1} << 16;  // below a millisecond, but for minkowski

}  // namespace

std::int64_t range_length(std::int64_t cols) noexcept {
  return std::max<std::int64_t>(16, kRangeColumns / (cols + 8));
}

std::int64_t PlacedRows::polled_pairs() const noexcept {
  return range_length(cols_);
}

void for_ranges(const Context& ctx, std::int64_t begin, std::int64_t end, std::int64_t cols,
                const std::function<void(std::int64_t first, std::int64_t last, int worker)>& body) {
  const std::int64_t step = range_length(cols);
  if (end - begin <= step) {
    ctx.check_cancelled();
    return body(begin, end, 0);
  }
  core::parallel_for(ctx, (end - begin + step - 1) / step, [&](std::int64_t task, int worker) {
    body(begin + task * step, std::min(end, begin + (task + 1) * step), worker);
  });
}

PlacedRows::PlacedRows(const Context& ctx, const TableView& table, std::vector<std::int64_t> rows, Metric metric,
                       double p)
    : rows_(std::move(rows)), cols_(table.cols()), metric_(metric), p_(p) {
  core::resize_in_steps(ctx, values_, count() * cols_);
  if (metric == Metric::cosine) is_zero_.resize(rows_.size());
  for_ranges(ctx, 0, count(), cols_, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t place = first; place < last; ++place) {
      const ComparedRow made = compared(table, row_at(place), values_.data() + place * cols_);
      if (metric_ == Metric::cosine) is_zero_[static_cast<std::size_t>(place)] = made.is_zero ? 1 : 0;
    }
  });
}

ComparedRow PlacedRows::compared(const TableView& table, std::int64_t row, double* values) const {
  core::widen_rows(table, row, row + 1, values);
  return {values, metric_ == Metric::cosine && !core::normalize_row(values, cols_, values)};
}

ComparedRow PlacedRows::at(std::int64_t place) const {
  return {values_.data() + place * cols_, !is_zero_.empty() && is_zero_[static_cast<std::size_t>(place)] != 0};
}

double PlacedRows::key(const ComparedRow& x, const ComparedRow& y) const {
  switch (metric_) {
    case Metric::manhattan:
      return core::manhattan_key(x.values, y.values, cols_);
    case Metric::chebyshev:
      return core::chebyshev_key(x.values, y.values, cols_);
    case Metric::minkowski:
      return core::minkowski_key(x.values, y.values, cols_, p_);
    case Metric::hamming:
      return core::hamming_key(x.values, y.values, cols_);
    case Metric::cosine:
      return core::cosine_key_normalized(x.values, x.is_zero, y.values, y.is_zero, cols_);
    default:
      return core::euclidean_key(x.values, y.values, cols_);
  }
}

double PlacedRows::key_to(const ComparedRow& row, std::int64_t place) const {
  return key(row, at(place));
}

double PlacedRows::reported(double key) const {
  return core::reported_distance(metric_, key, p_);
}

double PlacedRows::distance(std::int64_t a, std::int64_t b) const {
  const double found = key(at(a), at(b));
  if (!(found < kInfinity)) {
    throw Error(ErrorCode::bad_data, "table: the distance of rows " + std::to_string(std::min(row_at(a), row_at(b))) +
                                         " and " + std::to_string(std::max(row_at(a), row_at(b))) +
                                         " overflows float64; scale the data down");
  }
  return reported(found);
}

}  // namespace vicinal::ops
