// See table_output.hpp.
#include "io/table_output.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal::io {
namespace {

constexpr std::int64_t kElementsAtATime = std::int64_t{1} << 16;

/// The type that a table has already; int32 is none.
bool is_type_of(DType dtype, Stored type) {
  return vicinal::name_of(dtype) == name_of(type);
}

[[noreturn]] void refuse(const TableOutput& output, std::int64_t row, std::int64_t column, double value,
                         Narrowed narrowed) {
  throw Error(
      ErrorCode::bad_data,
      fmt::format("cannot write '{}': row {}, column {} is {}, which {} {}", output.path.string(), row, column, value,
                  name_of(output.type),
                  narrowed == Narrowed::beyond ? "has no number near to" : "does not hold exactly (lossy rounds it)"));
}

}  // namespace

void write_rows(const TableOutput& output, PackedFile& file, const RowEncoder& encode) {
  const TableView& view = output.table.view;
  const std::int64_t block = std::max<std::int64_t>(1, kElementsAtATime / view.cols());
  const std::int64_t blocks = (view.rows() + block - 1) / block;
  // A block source is asked by one thread at a time.
  const std::int64_t at_once = view.is_block_source() ? 1 : 4 * static_cast<std::int64_t>(output.ctx.threads());
  std::vector<std::string> texts(static_cast<std::size_t>(std::min(at_once, blocks)));
  for (std::int64_t first = 0; first < blocks; first += at_once) {
    output.ctx.report("write", static_cast<double>(first) / static_cast<double>(blocks));
    const std::int64_t count = std::min(at_once, blocks - first);
    core::parallel_for(output.ctx, count, [&](std::int64_t i, int) {
      std::string& text = texts[static_cast<std::size_t>(i)];
      text.clear();
      encode((first + i) * block, std::min(view.rows(), (first + i + 1) * block), text);
    });
    for (std::int64_t i = 0; i < count; ++i) file.write(texts[static_cast<std::size_t>(i)]);
  }
}

void encode_elements(const TableOutput& output, std::int64_t begin, std::int64_t end, unsigned char* to) {
  const TableView& view = output.table.view;
  if (is_type_of(view.dtype(), output.type)) return core::copy_rows(view, begin, end, to);
  const std::int64_t d = view.cols();
  const std::int64_t rows = std::max<std::int64_t>(1, std::min(end - begin, kElementsAtATime / d));
  std::vector<double> values(static_cast<std::size_t>(rows * d));
  for (std::int64_t row = begin; row < end; row += rows) {
    const std::int64_t stop = std::min(end, row + rows);
    core::widen_rows(view, row, stop, values.data());
    for (std::int64_t i = 0; i < (stop - row) * d; ++i, to += size_of(output.type)) {
      const double value = values[static_cast<std::size_t>(i)];
      const Narrowed narrowed = narrow(value, output.type, to);
      if (narrowed == Narrowed::exactly || (narrowed == Narrowed::rounded && output.lossy)) continue;
      refuse(output, row + i / d, i % d, value, narrowed);
    }
  }
}

}  // namespace vicinal::io
