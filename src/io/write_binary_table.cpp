// Tables as idx, fvecs, bvecs, ivecs and the classical k-means tools' binary file (table_output.hpp).
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "io/table_output.hpp"

namespace vicinal::io {
namespace {

template <class T>
void append(std::string& bytes, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

[[noreturn]] void too_many(const TableOutput& output, std::int64_t length, std::string_view most) {
  throw Error(ErrorCode::invalid_argument, fmt::format("cannot write '{}': {} has room for lengths up to {}, not {}",
                                                       output.path.string(), name_of(output.format), most, length));
}

void reverse_each(std::string& bytes, std::size_t size) {
  for (std::size_t at = 0; size > 1 && at < bytes.size(); at += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

std::string idx_header(const TableOutput& output) {
  const char code = output.type == Stored::uint8 ? '\x08' : output.type == Stored::float32 ? '\x0d' : '\x0e';
  const std::vector<std::int64_t>& shape = output.table.shape;
  std::string header = {'\0', '\0', code, static_cast<char>(shape.size())};
  for (const std::int64_t length : shape) {
    if (length > std::int64_t{UINT32_MAX}) too_many(output, length, "2^32 - 1");
    std::string one;
    append(one, static_cast<std::uint32_t>(length));
    reverse_each(one, one.size());
    header += one;
  }
  return header;
}

}  // namespace

void write_binary_table(const TableOutput& output, PackedFile& file) {
  const TableView& view = output.table.view;
  const std::int64_t row_bytes = view.cols() * size_of(output.type);
  const auto elements = [&](std::int64_t begin, std::int64_t end, std::string& out) {
    out.resize(static_cast<std::size_t>((end - begin) * row_bytes));
    encode_elements(output, begin, end, reinterpret_cast<unsigned char*>(out.data()));
  };
  if (output.format == FileFormat::idx) {
    file.write(idx_header(output));
    return write_rows(output, file, [&](std::int64_t begin, std::int64_t end, std::string& out) {
      elements(begin, end, out);
      reverse_each(out, static_cast<std::size_t>(size_of(output.type)));
    });
  }
  for (const std::int64_t length : {view.rows(), view.cols()}) {
    const bool stored = output.format == FileFormat::kmeans_binary || length == view.cols();
    if (stored && length > INT32_MAX) too_many(output, length, "2^31 - 1");
  }
  if (output.format == FileFormat::kmeans_binary) {
    std::string header;
    append(header, static_cast<std::int32_t>(view.rows()));
    append(header, static_cast<std::int32_t>(view.cols()));
    file.write(header);
    return write_rows(output, file, elements);
  }
  write_rows(output, file, [&](std::int64_t begin, std::int64_t end, std::string& out) {
    std::string rows;
    elements(begin, end, rows);
    for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(row_bytes)) {
      append(out, static_cast<std::int32_t>(view.cols()));
      out.append(rows, at, static_cast<std::size_t>(row_bytes));
    }
  });
}

}  // namespace vicinal::io
