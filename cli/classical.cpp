// See classical.hpp. Lines may be of any length: the classical tools cut them at 1,023 characters.
#include "classical.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

#include "output.hpp"

namespace vicinal::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kHeaderBytes = 8;

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

std::optional<Table> read_binary(const Context& ctx, const fs::path& path, std::uint64_t size) {
  if (size < kHeaderBytes + sizeof(float)) return {};
  std::ifstream in(path, std::ios::binary);
  std::int32_t shape[2] = {};
  in.read(reinterpret_cast<char*>(shape), kHeaderBytes);
  if (!in || shape[0] < 1 || shape[1] < 1) return {};
  const std::uint64_t count = static_cast<std::uint64_t>(shape[0]) * static_cast<std::uint64_t>(shape[1]);
  if (size != kHeaderBytes + count * sizeof(float)) return {};
  require_room(ctx, path, count * sizeof(float));
  const auto values = std::make_shared<std::vector<float>>(count);
  in.read(reinterpret_cast<char*>(values->data()), static_cast<std::streamsize>(count * sizeof(float)));
  if (!in) throw Error(ErrorCode::io, fmt::format("{}: cannot be read", path.string()));
  Table table;
  table.view = TableView(values->data(), shape[0], shape[1]);
  table.shape = {shape[0], shape[1]};
  table.storage = values;
  return table;
}

std::optional<Table> read_text(const Context& ctx, const fs::path& path, std::uint64_t size) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!std::getline(in, line)) return {};
  std::vector<double> row;
  if (!read_line(line, row) || row.size() < 2 || (row[0] != 0 && row[0] != 1)) return {};
  require_room(ctx, path, size * 4 + size);  // a number takes two characters or more
  const double first = row[0];
  const std::size_t width = row.size();
  const auto numbers = std::make_shared<Numbers>();
  numbers->values.assign(row.begin() + 1, row.end());
  std::int64_t rows = 1;
  std::int64_t number = 1;
  while (std::getline(in, line)) {
    ++number;
    if (number % 4096 == 0) ctx.check_cancelled();
    row.clear();
    const bool numeric = read_line(line, row);
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
  const std::uint64_t size = fs::file_size(path, error);
  if (error) return {};
  if (auto table = read_binary(ctx, path, size)) return table;
  return read_text(ctx, path, size);
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
