// See classical.hpp. Lines may be of any length: the classical tools cut them at 1,023 characters.
#include "classical.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "output.hpp"

namespace vicinal::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderBytes = 8;
constexpr std::uint64_t kLookedAt = 64;

struct Numbers {
  std::vector<double> values;
};

[[noreturn]] void refuse(const fs::path& path, std::int64_t line, const std::string& what) {
  throw Error(ErrorCode::bad_data, fmt::format("{}: line {} {}", path.string(), line, what));
}

void require_room(const Context& ctx, const fs::path& path, std::uint64_t bytes) {
  if (bytes <= ctx.memory_limit()) return;
  throw Error(ErrorCode::over_memory, fmt::format("{}: reading it takes {}, more than the memory limit of {}",
                                                  path.string(), format_bytes(static_cast<double>(bytes)),
                                                  format_bytes(static_cast<double>(ctx.memory_limit()))));
}

/// Appends the numbers of a line; false where something else stands between its spaces.
bool read_line(std::string_view line, std::vector<double>& values) {
  const char* at = line.data();
  const char* const end = at + line.size();
  while (true) {
    while (at != end && (*at == ' ' || *at == '\r')) ++at;
    if (at == end) return true;
    double value = 0;
    const auto [after, error] = std::from_chars(at + (*at == '+' ? 1 : 0), end, value);
    if (error != std::errc() || (after != end && *after != ' ' && *after != '\r')) return false;
    values.push_back(value);
    at = after;
  }
}

Table table_of(std::shared_ptr<Numbers> numbers, std::int64_t n, std::int64_t d) {
  Table table;
  table.view = TableView(numbers->values.data(), n, d);
  table.shape = {n, d};
  table.format = FileFormat::csv;
  table.storage = std::move(numbers);
  return table;
}

using Bytes = std::span<const unsigned char>;

/// Rows and columns, as the binary files begin.
std::optional<std::array<std::int32_t, 2>> header_of(Bytes bytes) {
  std::array<std::int32_t, 2> shape = {};
  if (bytes.size() < kHeaderBytes) return {};
  std::memcpy(shape.data(), bytes.data(), kHeaderBytes);
  if (shape[0] < 1 || shape[1] < 1) return {};
  return shape;
}

std::uint64_t size_of(const std::array<std::int32_t, 2>& shape) {
  return kHeaderBytes + static_cast<std::uint64_t>(shape[0]) * static_cast<std::uint64_t>(shape[1]) * sizeof(float);
}

/// Borrows the numbers where they lie.
Table binary_table(const FileBytes& file, const std::array<std::int32_t, 2>& shape) {
  Table table;
  table.view = TableView(reinterpret_cast<const float*>(file.bytes.data() + kHeaderBytes), shape[0], shape[1]);
  table.shape = {shape[0], shape[1]};
  table.storage = file.storage;
  return table;
}

/// The line that begins at `text`, which is moved behind it.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// Whether a text may begin with a row that is counted: spaces, then 0 or 1.
bool begins_counting(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t first = text.find_first_not_of(" +");
  return first != std::string_view::npos && (text[first] == '0' || text[first] == '1');
}

std::optional<Table> text_table(const Context& ctx, const fs::path& path, Bytes bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<double> row;
  if (!read_line(next_line(text), row) || row.size() < 2 || (row[0] != 0 && row[0] != 1)) return {};
  require_room(ctx, path, bytes.size() * 4);  // a number takes two characters or more
  const double first = row[0];
  const std::size_t width = row.size();
  const auto numbers = std::make_shared<Numbers>();
  numbers->values.assign(row.begin() + 1, row.end());
  std::int64_t rows = 1;
  std::int64_t number = 1;
  while (!text.empty()) {
    ++number;
    if (number % 4096 == 0) ctx.check_cancelled();
    row.clear();
    const bool numeric = read_line(next_line(text), row);
    if (numeric && row.empty()) continue;
    // A first column that does not count is a column like others, and the file one for the other reader.
    if (row.empty() || row[0] != first + static_cast<double>(rows)) return {};
    if (!numeric) refuse(path, number, "holds something that is no number");
    if (row.size() != width) {
      refuse(path, number, fmt::format("has {} numbers, line 1 has {}", row.size(), width));
    }
    for (std::size_t j = 1; j < width; ++j) {
      if (!std::isfinite(row[j])) refuse(path, number, fmt::format("holds a number that is not finite ({})", j + 1));
    }
    numbers->values.insert(numbers->values.end(), row.begin() + 1, row.end());
    ++rows;
  }
  if (rows < 2) return {};
  return table_of(numbers, rows, static_cast<std::int64_t>(width) - 1);
}

}  // namespace

std::optional<Table> read_classical(const Context& ctx, const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  // A few bytes tell most other files apart, so that what is packed is not unpacked twice.
  const FileBytes begin = read_bytes(ctx, path, kLookedAt);
  const auto shape = header_of(begin.bytes);
  const bool may_be_binary = shape && size_of(*shape) <= std::max(ctx.memory_limit(), fs::file_size(path, error));
  if (!may_be_binary && !begins_counting(begin.bytes)) return {};
  const FileBytes file = read_bytes(ctx, path);
  if (shape && size_of(*shape) == file.bytes.size()) return binary_table(file, *shape);
  return text_table(ctx, path, file.bytes);
}

void write_classical(const Context& ctx, const std::string& name, const KMeans& found) {
  std::string text;
  for (std::int64_t c = 0; c < found.clusters; ++c) {
    text += fmt::format("{}", c);
    for (std::int64_t j = 0; j < found.cols; ++j) {
      text += ' ';
      text += format_number(found.centres[static_cast<std::size_t>(c * found.cols + j)]);
    }
    text += '\n';
  }
  write_text(name + ".cluster_centres", text);
  text.clear();
  for (std::size_t i = 0; i < found.labels.size(); ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    text += fmt::format("{} {}\n", i, found.labels[i]);
  }
  write_text(name + ".membership", text);
}

}  // namespace vicinal::cli
