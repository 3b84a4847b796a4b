// See kmeans_files.hpp. The classical tools cut lines at 1,023 characters; here they may be of any length.
#include "io/kmeans_files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "io/csv.hpp"
#include "io/element.hpp"
#include "io/scan.hpp"

namespace vicinal::io {
namespace {

constexpr std::uint64_t kHeaderBytes = 8;

struct BinaryShape {
  std::int64_t n = 0;
  std::int64_t d = 0;
};

/// What the header says, zeros where it is none.
BinaryShape header_of(const Bytes& bytes) noexcept {
  if (bytes.size < kHeaderBytes) return {};
  const BinaryShape shape = {load<std::int32_t>(bytes.data, false), load<std::int32_t>(bytes.data + 4, false)};
  return shape.n < 1 || shape.d < 1 ? BinaryShape{} : shape;
}

/// Below 2^64: both lengths are below 2^31.
std::uint64_t bytes_of_shape(const BinaryShape& shape) noexcept {
  return kHeaderBytes + static_cast<std::uint64_t>(shape.n) * static_cast<std::uint64_t>(shape.d) * sizeof(float);
}

ReadOptions text_options() {
  ReadOptions options;
  options.header = false;
  options.delimiter = ' ';
  return options;
}

}  // namespace

bool is_kmeans_binary(const Bytes& bytes) noexcept {
  const BinaryShape shape = header_of(bytes);
  return shape.n > 0 && bytes_of_shape(shape) == bytes.size;
}

bool is_kmeans_text(const Context& ctx, const Bytes& bytes) {
  const auto is_in_field = [](char c) { return c != ' ' && c != '\t'; };
  const auto* p = reinterpret_cast<const char*>(bytes.data);
  const char* const end = p + bytes.size;
  std::int64_t first = 0;
  std::int64_t rows = 0;
  while (p != end) {
    skip_blank_lines(ctx, Dialect{' '}, p, end);  // polls after each line end
    if (p == end) break;
    p = find_where(ctx, p, end, is_in_field);  // a line that is not blank
    std::int64_t id = 0;
    const auto [after, error] = std::from_chars(p, end, id);
    if (error != std::errc() || after == end || (*after != ' ' && *after != '\t')) return false;
    if (rows == 0) first = id;
    if ((first != 0 && first != 1) || id != first + rows) return false;
    // Another field must begin as a number; more than that is the reader's to say.
    const char* const q = find_where(ctx, after, end, is_in_field);
    if (q == end || std::string_view("+-.0123456789").find(*q) == std::string_view::npos) return false;
    ++rows;
    p = find_char(ctx, q, end, '\n');
  }
  return rows >= 2;
}

std::vector<std::int64_t> kmeans_binary_shape(const Bytes& bytes, const std::string& file) {
  const BinaryShape shape = header_of(bytes);
  if (shape.n < 1) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("'{}' read as kmeans-binary does not begin with numbers of rows and columns above 0", file));
  }
  if (bytes_of_shape(shape) != bytes.size) {
    throw Error(ErrorCode::bad_data, fmt::format("'{}' read as kmeans-binary has {} bytes where its header ({} x {}) "
                                                 "needs {}",
                                                 file, bytes.size, shape.n, shape.d, bytes_of_shape(shape)));
  }
  return {shape.n, shape.d};
}

Table read_kmeans_binary(const Bytes& bytes, const std::string& file) {
  Table table;
  table.shape = kmeans_binary_shape(bytes, file);
  table.view = TableView(reinterpret_cast<const float*>(bytes.data + kHeaderBytes), table.shape[0], table.shape[1]);
  table.storage = bytes.owner;
  return table;
}

Table read_kmeans_text(const Context& ctx, const Bytes& bytes, const std::string& file) {
  Table table = read_csv(ctx, bytes, file, text_options());
  const std::int64_t n = table.view.rows();
  const std::int64_t d = table.view.cols() - 1;
  if (d < 1) throw Error(ErrorCode::bad_data, fmt::format("'{}' read as kmeans-text has no column but ids", file));
  const auto* values = static_cast<const double*>(table.view.data());
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % (1 << 20) == 0) ctx.check_cancelled();
    const double expected = values[0] + static_cast<double>(i);
    if ((values[0] == 0 || values[0] == 1) && values[i * (d + 1)] == expected) continue;
    throw Error(ErrorCode::bad_data, fmt::format("'{}' read as kmeans-text has the id {} in row {}, where ids count "
                                                 "from 0 or 1",
                                                 file, values[i * (d + 1)], i));
  }
  table.view = TableView(values + 1, DType::float64, n, d, d + 1);
  table.shape = {n, d};
  return table;
}

}  // namespace vicinal::io
