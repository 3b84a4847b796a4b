// See table_scan.hpp. Magnitudes are compared as integers, which order like the floats they are the bits of.
#include "cpu/kmeans/table_scan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/kmeans/row_reader.hpp"
#include "formulas/kmeans/limits.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kSample = 512;
constexpr std::int64_t kSampleValues = std::int64_t{1} << 20;

// Of one column. The last bit is counted from 2^-1074; 4096 where there is none.
struct Range {
  std::uint64_t largest = 0;
  std::uint64_t least = ~std::uint64_t{0};
  std::int32_t last = 4096;
};

struct Worker {
  RowReader reader;
  std::vector<Range> columns;
};

void take(Range& range, double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
  if (bits == 0) return;
  range.largest = std::max(range.largest, bits);
  range.least = std::min(range.least, bits);
  const auto exponent = static_cast<std::int32_t>(bits >> 52);
  std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent != 0) fraction |= std::uint64_t{1} << 52;
  range.last = std::min(range.last, std::max(exponent, 1) - 1 + std::countr_zero(fraction));
}

void take(Range& range, const Range& other) {
  range.largest = std::max(range.largest, other.largest);
  range.least = std::min(range.least, other.least);
  range.last = std::min(range.last, other.last);
}

[[noreturn]] void refuse(const Context& ctx, const TableView& table, std::int64_t first_row) {
  const auto fail = [&](std::int64_t row, std::int64_t col, const char* what) {
    throw Error(ErrorCode::bad_data,
                "table: row " + std::to_string(first_row + row) + ", column " + std::to_string(col) + what);
  };
  std::vector<double> values(static_cast<std::size_t>(table.cols()));
  for_each_part(ctx, table, [&](const TableView& part, std::int64_t first) {
    for (std::int64_t i = 0; i < part.rows(); ++i) {
      if (i % 4096 == 0) ctx.check_cancelled();
      core::widen_rows(part, i, i + 1, values.data());
      for (std::int64_t j = 0; j < part.cols(); ++j) {
        const double value = values[static_cast<std::size_t>(j)];
        if (!std::isfinite(value)) fail(first + i, j, " is not a finite number");
        if (!(std::fabs(value) < core::kTooLarge))
          fail(first + i, j, " is so large that squared distances may overflow");
      }
    }
  });
  throw Error(ErrorCode::internal, "kmeans: a value that was refused is no longer there");
}

}  // namespace

kernels::TableRanges scan_table(const Context& ctx, const TableView& table, std::span<const double> weights,
                                std::int64_t first_row) {
  const std::int64_t d = table.cols();
  const auto columns = static_cast<std::size_t>(d);
  const Element element = row_element(table);
  std::vector<Worker> workers(static_cast<std::size_t>(ctx.threads()));
  for (Worker& worker : workers) worker.columns.resize(columns);
  const std::int64_t rows = std::clamp<std::int64_t>((std::int64_t{1} << 18) / d, 1, 4096);
  for_each_part(ctx, table, [&](const TableView& part, std::int64_t /*first*/) {
    core::parallel_for(ctx, (part.rows() + rows - 1) / rows, [&](std::int64_t block, int w) {
      Worker& worker = workers[static_cast<std::size_t>(w)];
      const std::int64_t begin = block * rows;
      const std::int64_t end = std::min(begin + rows, part.rows());
      worker.reader.open(part, begin, end);
      Range* const ranges = worker.columns.data();
      for (std::int64_t i = begin; i < end; ++i) {
        if (element == Element::float32) {
          const auto* const row = static_cast<const float*>(worker.reader.row(i));
          for (std::int64_t j = 0; j < d; ++j) take(ranges[j], static_cast<double>(row[j]));
        } else {
          const auto* const row = static_cast<const double*>(worker.reader.row(i));
          for (std::int64_t j = 0; j < d; ++j) take(ranges[j], row[j]);
        }
      }
    });
  });
  kernels::TableRanges ranges;
  ranges.columns.resize(columns);
  ranges.rows = table.rows();
  for (std::size_t j = 0; j < columns; ++j) {
    Range range;
    for (const Worker& worker : workers) take(range, worker.columns[j]);
    if (!(std::bit_cast<double>(range.largest) < core::kTooLarge)) refuse(ctx, table, first_row);
    if (range.largest == 0) continue;
    ranges.columns[j] = {std::bit_cast<double>(range.largest), std::ldexp(1.0, range.last - 1074),
                         std::bit_cast<double>(range.least)};
  }
  if (!weights.empty()) {
    const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
    ranges.least_weight = *least;
    ranges.largest_weight = *most;
  }
  return ranges;
}

std::vector<double> middle_of_table(const TableView& table) {
  const std::int64_t d = table.cols();
  const std::int64_t rows = std::clamp<std::int64_t>(kSampleValues / d, 1, std::min(kSample, table.rows()));
  const std::int64_t step = table.is_block_source() ? 1 : table.rows() / rows;
  std::vector<double> sample(static_cast<std::size_t>(rows * d));
  if (step == 1) {
    core::widen_rows(table, 0, rows, sample.data());
  } else {
    for (std::int64_t i = 0; i < rows; ++i) core::widen_rows(table, i * step, i * step + 1, sample.data() + i * d);
  }
  std::vector<double> centre(static_cast<std::size_t>(d));
  std::vector<double> column(static_cast<std::size_t>(rows));
  for (std::int64_t j = 0; j < d; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      column[static_cast<std::size_t>(i)] = sample[static_cast<std::size_t>(i * d + j)];
    }
    std::nth_element(column.begin(), column.begin() + rows / 2, column.end());
    centre[static_cast<std::size_t>(j)] = column[static_cast<std::size_t>(rows / 2)];
  }
  return centre;
}

}  // namespace vicinal::cpu
