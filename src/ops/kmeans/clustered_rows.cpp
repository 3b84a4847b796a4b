// See clustered_rows.hpp. Rows that the host can read are copied run by run, in their own type unless they are scaled;
// those in a device's memory are fetched as float64, into which they widen exactly.
#include "ops/kmeans/clustered_rows.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "core/distance.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal::ops {
namespace {

constexpr std::size_t kBlock = 16384;        // rows between two looks at the cancel token
constexpr std::int64_t kTaskValues = 32768;  // of one task of a thread

DType copied_type(const TableView& table, Metric metric) {
  return metric == Metric::cosine || table.memory() == Memory::cuda ? DType::float64 : table.dtype();
}

RowCopy copy_of(const Context& ctx, const TableView& table, const kernels::Lloyd& reader,
                std::span<const std::int64_t> rows, Metric metric, std::int64_t first_row) {
  const DType dtype = copied_type(table, metric);
  const std::int64_t d = table.cols();
  const std::int64_t row_bytes = d * size_of(dtype);
  const std::size_t count = rows.size();
  RowCopy copy;
  copy.bytes.reset(new std::byte[count * static_cast<std::size_t>(row_bytes)]);
  copy.table = TableView(copy.bytes.get(), dtype, static_cast<std::int64_t>(count), d, d);
  std::byte* to = copy.bytes.get();
  for (std::size_t begin = 0; begin < count;) {
    ctx.check_cancelled();
    std::size_t end = std::min(begin + kBlock, count);
    const std::span<double> values(reinterpret_cast<double*>(to), (end - begin) * static_cast<std::size_t>(d));
    if (table.memory() == Memory::cuda) {
      reader.rows(rows.subspan(begin, end - begin), values);
    } else {
      const std::size_t most = end;
      for (end = begin + 1; end < most && rows[end] == rows[end - 1] + 1;) ++end;
      if (metric == Metric::cosine) {
        core::widen_rows(table, rows[begin], rows[end - 1] + 1, values.data());
      } else {
        core::copy_rows(table, rows[begin], rows[end - 1] + 1, to);
      }
    }
    if (metric == Metric::cosine) {
      bring_to_length_one(ctx, values.first((end - begin) * static_cast<std::size_t>(d)), d, "table",
                          [&](std::int64_t i) { return first_row + rows[begin + static_cast<std::size_t>(i)]; });
    }
    to += static_cast<std::int64_t>(end - begin) * row_bytes;
    begin = end;
  }
  return copy;
}

}  // namespace

ClusteredRows::ClusteredRows(const Context& ctx, const TableView& table, std::span<const double> weights, Metric metric,
                             std::int64_t first_row)
    : kept_{nullptr, table}, weights_(weights) {
  if (!copies_rows(weights, metric)) return;
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < table.rows(); ++i) {
    const bool has_weight = weights.empty() || weights[static_cast<std::size_t>(i)] > 0;
    (has_weight ? kept : left_out_).push_back(i);
  }
  const auto reader = kernels::backend_of(ctx).kmeans().lloyd(ctx, {table, {}, 1, false, first_row});
  kept_ = copy_of(ctx, table, *reader, kept, metric, first_row);
  if (left_out_.empty()) return;
  others_ = copy_of(ctx, table, *reader, left_out_, metric, first_row);
  for (const std::int64_t row : kept) kept_weights_.push_back(weights[static_cast<std::size_t>(row)]);
  weights_ = kept_weights_;
}

RowCopy rows_on_host(const Context& ctx, const TableView& table) {
  if (table.memory() != Memory::cuda) return {nullptr, table};
  std::vector<std::int64_t> all(static_cast<std::size_t>(table.rows()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const auto reader = kernels::backend_of(ctx).kmeans().lloyd(ctx, {table, {}, 1, false});
  return copy_of(ctx, table, *reader, all, Metric::euclidean, 0);
}

std::uint64_t bytes_on_host(const TableView& table) {
  return table.memory() == Memory::cuda ? copy_bytes(table, Metric::euclidean) : 0;
}

void bring_to_length_one(const Context& ctx, std::span<double> rows, std::int64_t d, std::string_view table,
                         const std::function<std::int64_t(std::int64_t i)>& number_of) {
  const std::int64_t n = static_cast<std::int64_t>(rows.size()) / d;
  const std::int64_t block = std::max<std::int64_t>(1, kTaskValues / d);
  core::parallel_for(ctx, (n + block - 1) / block, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t i = task * block; i < std::min((task + 1) * block, n); ++i) {
      double* const row = rows.data() + i * d;
      if (core::normalize_row(row, d, row)) continue;
      throw Error(ErrorCode::bad_data, std::string(table) + ": row " + std::to_string(number_of(i)) +
                                           " is all zeros, which has no direction for the cosine");
    }
  });
}

bool copies_rows(std::span<const double> weights, Metric metric) {
  return metric == Metric::cosine || std::any_of(weights.begin(), weights.end(), [](double w) { return w == 0; });
}

std::uint64_t copy_bytes(const TableView& table, Metric metric) {
  // The rows; their numbers, in lists that grow; and their weights.
  const std::int64_t row = table.cols() * size_of(copied_type(table, metric)) + 16 + 16;
  return static_cast<std::uint64_t>(table.rows() * row);
}

TableView shape_of_copy(const TableView& table, std::int64_t rows, Metric metric) {
  alignas(double) static constexpr std::byte kNowhere[8] = {};
  return TableView(static_cast<const void*>(kNowhere), copied_type(table, metric), rows, table.cols(), table.cols());
}

}  // namespace vicinal::ops
