// See clustered_rows.hpp. Rows that the host can read are copied in their own type, run by run; those in a device's
// memory are fetched as float64, into which they widen exactly.
#include "ops/clustered_rows.hpp"

#include <algorithm>

#include "core/table_access.hpp"
#include "kernels.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kBlock = 16384;  // rows between two looks at the cancel token

DType copied_type(const TableView& table) {
  return table.memory() == Memory::cuda ? DType::float64 : table.dtype();
}

RowCopy copy_of(const Context& ctx, const TableView& table, const kernels::Lloyd& reader,
                std::span<const std::int64_t> rows) {
  const DType dtype = copied_type(table);
  const std::int64_t row_bytes = table.cols() * size_of(dtype);
  const std::size_t count = rows.size();
  RowCopy copy;
  copy.bytes.reset(new std::byte[count * static_cast<std::size_t>(row_bytes)]);
  copy.table = TableView(copy.bytes.get(), dtype, static_cast<std::int64_t>(count), table.cols(), table.cols());
  std::byte* to = copy.bytes.get();
  for (std::size_t begin = 0; begin < count;) {
    ctx.check_cancelled();
    const std::size_t most = std::min(begin + kBlock, count);
    std::size_t end = most;
    if (table.memory() == Memory::cuda) {
      const auto values = static_cast<std::size_t>(table.cols()) * (end - begin);
      reader.rows(rows.subspan(begin, end - begin), {reinterpret_cast<double*>(to), values});
    } else {
      for (end = begin + 1; end < most && rows[end] == rows[end - 1] + 1;) ++end;
      core::copy_rows(table, rows[begin], rows[end - 1] + 1, to);
    }
    to += static_cast<std::int64_t>(end - begin) * row_bytes;
    begin = end;
  }
  return copy;
}

}  // namespace

ClusteredRows::ClusteredRows(const Context& ctx, const TableView& table, std::span<const double> weights)
    : kept_{nullptr, table}, weights_(weights) {
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    (weights[i] > 0 ? kept : left_out_).push_back(static_cast<std::int64_t>(i));
  }
  if (left_out_.empty()) return;
  const auto reader = kernels::backend_of(ctx).lloyd(ctx, {table, {}, 1, false});
  kept_ = copy_of(ctx, table, *reader, kept);
  others_ = copy_of(ctx, table, *reader, left_out_);
  for (const std::int64_t row : kept) kept_weights_.push_back(weights[static_cast<std::size_t>(row)]);
  weights_ = kept_weights_;
}

TableView shape_of_copy(const TableView& table, std::int64_t rows) {
  alignas(double) static constexpr std::byte kNowhere[8] = {};
  return TableView(static_cast<const void*>(kNowhere), copied_type(table), rows, table.cols(), table.cols());
}

}  // namespace vicinal::ops
