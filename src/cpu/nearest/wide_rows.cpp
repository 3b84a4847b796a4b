// See wide_rows.hpp.
#include "cpu/nearest/wide_rows.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/distance.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cpu {
namespace {

bool lies_ready(const TableView& table, Metric metric) {
  return table.dtype() == DType::float64 && metric != Metric::cosine && core::is_row_contiguous(table);
}

}  // namespace

std::uint64_t WideRows::bytes(const TableView& table, Metric metric) {
  if (lies_ready(table, metric)) return 0;
  const auto rows = static_cast<std::uint64_t>(table.rows());
  return rows * (static_cast<std::uint64_t>(table.cols()) * sizeof(double) + 1);
}

WideRows::WideRows(const Context& ctx, const TableView& table, Metric metric, double p)
    : metric_(metric),
      p_(p),
      cols_(table.cols()),
      stride_(table.row_stride()),
      rows_(static_cast<const double*>(table.data())) {
  if (lies_ready(table, metric)) return;
  constexpr std::int64_t kRows = 1024;
  const std::int64_t n = table.rows();
  copy_.resize(static_cast<std::size_t>(n * cols_));
  if (metric_ == Metric::cosine) zero_.resize(static_cast<std::size_t>(n));
  core::parallel_for(ctx, (n + kRows - 1) / kRows, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t begin = task * kRows;
    const std::int64_t end = std::min(begin + kRows, n);
    core::widen_rows(table, begin, end, copy_.data() + begin * cols_);
    if (metric_ != Metric::cosine) return;
    for (std::int64_t i = begin; i < end; ++i) {
      double* const row = copy_.data() + i * cols_;
      zero_[static_cast<std::size_t>(i)] = core::normalize_row(row, cols_, row) ? 0 : 1;
    }
  });
  rows_ = copy_.data();
  stride_ = cols_;
}

double WideRows::key(std::int64_t a, std::int64_t b) const {
  const double* const x = rows_ + a * stride_;
  const double* const y = rows_ + b * stride_;
  switch (metric_) {
    case Metric::cosine:
      return core::cosine_key_normalized(x, zero_[static_cast<std::size_t>(a)] != 0, y,
                                         zero_[static_cast<std::size_t>(b)] != 0, cols_);
    case Metric::manhattan:
      return core::manhattan_key(x, y, cols_);
    case Metric::chebyshev:
      return core::chebyshev_key(x, y, cols_);
    case Metric::minkowski:
      return core::minkowski_key(x, y, cols_, p_);
    case Metric::inner_product:
      return core::inner_product_key(x, y, cols_);
    case Metric::hamming:
      return core::hamming_key(x, y, cols_);
    default:
      return core::euclidean_key(x, y, cols_);
  }
}

double WideRows::distance(std::int64_t a, std::int64_t b) const {
  const double found = key(a, b);
  if (!std::isfinite(found)) {
    throw Error(ErrorCode::bad_data, "the distance of table rows " + std::to_string(a) + " and " + std::to_string(b) +
                                         " overflows float64; scale the data down");
  }
  return core::reported_distance(metric_, found, p_);
}

}  // namespace vicinal::cpu
