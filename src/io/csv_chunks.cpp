// See csv_chunks.hpp. Whether a line end separates rows depends on every quote before it, but only on how many: even
// means outside. So one pass counts quotes and notes, for both parities, the first line end outside; then the parities
// of the chunks are summed up and each chunk knows where it begins. Text whose quotes are not balanced is faulty, and
// the parser meets the fault in or before the first chunk whose beginning is wrong: a chunk then ends within quotes. So
// it is with a comment whose quotes are not paired.
#include "io/csv_chunks.hpp"

#include <algorithm>

#include "core/parallel.hpp"
#include "io/scan.hpp"

namespace vicinal::io {
namespace {

struct Scout {
  std::int64_t quotes = 0;
  const char* row[2] = {nullptr, nullptr};  // behind the first line end with that parity of quotes before it
};

Scout scout(const Context& ctx, const char* begin, const char* end) {
  Scout found;
  found.quotes = std::count(begin, end, '"');
  if (found.quotes == 0) {
    const char* line_end = find_char(ctx, begin, end, '\n');
    if (line_end != end) found.row[0] = line_end + 1;
    return found;
  }
  int parity = 0;
  for (const char* p = begin; p != end && (found.row[0] == nullptr || found.row[1] == nullptr); ++p) {
    if (*p == '"') parity ^= 1;
    if (*p == '\n' && found.row[parity] == nullptr) found.row[parity] = p + 1;
  }
  return found;
}

/// Counts rows and lines of a chunk that begins at a row.
std::int64_t count_rows(const Context& ctx, const Dialect& dialect, CsvChunk& chunk) {
  std::int64_t lines = 0;
  const char* p = chunk.begin;
  const char* end = chunk.end;
  const bool quotes = find_char(ctx, p, end, '"') != end;
  while (p != end) {
    if (*p == '\n' || *p == '\r' || dialect.is_blank(*p) || (dialect.comment != 0 && *p == dialect.comment)) {
      lines += skip_blank_lines(dialect, p, end);
      if (p == end) break;
    }
    ++chunk.rows;
    for (bool inside = false; p != end;) {
      const char* line_end = find_char(ctx, p, end, '\n');
      if (quotes && count_char(ctx, p, line_end, '"') % 2 != 0) inside = !inside;
      if (line_end != end && !(inside && dialect.row_a_line)) ++lines;
      p = line_end == end ? end : line_end + 1;
      if (!inside) break;
    }
  }
  return lines;
}

}  // namespace

std::vector<CsvChunk> cut_csv(const Context& ctx, const CsvLayout& layout, std::int64_t chunk) {
  const std::int64_t size = layout.end - layout.body;
  const std::int64_t count = std::max<std::int64_t>(1, size / chunk + (size % chunk != 0 ? 1 : 0));
  std::vector<CsvChunk> chunks(static_cast<std::size_t>(count));
  const auto at = [&](std::int64_t i) -> CsvChunk& { return chunks[static_cast<std::size_t>(i)]; };

  std::vector<Scout> scouts(static_cast<std::size_t>(count));
  core::parallel_for(ctx, count, [&](std::int64_t i, int) {
    // From one character before the nominal beginning, which may be the line end that makes it a row's beginning.
    const char* begin = layout.body + (i == 0 ? 0 : i * chunk - 1);
    const char* end = i + 1 == count ? layout.end : layout.body + (i + 1) * chunk - 1;
    scouts[static_cast<std::size_t>(i)] = scout(ctx, begin, end);
  });
  std::vector<const char*> begins(static_cast<std::size_t>(count) + 1, layout.end);
  begins[0] = layout.body;
  std::int64_t parity = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Scout& found = scouts[static_cast<std::size_t>(i)];
    if (i > 0) begins[static_cast<std::size_t>(i)] = found.row[parity];
    parity = (parity + found.quotes) % 2;
  }
  for (std::int64_t i = count - 1; i > 0; --i) {  // a chunk without a row's beginning is empty
    auto& begin = begins[static_cast<std::size_t>(i)];
    if (begin == nullptr) begin = begins[static_cast<std::size_t>(i) + 1];
  }

  std::vector<std::int64_t> lines(static_cast<std::size_t>(count));
  core::parallel_for(ctx, count, [&](std::int64_t i, int) {
    at(i).begin = begins[static_cast<std::size_t>(i)];
    at(i).end = begins[static_cast<std::size_t>(i) + 1];
    lines[static_cast<std::size_t>(i)] = count_rows(ctx, layout.dialect, at(i));
  });
  std::int64_t row = 0;
  std::int64_t line = layout.body_line;
  for (std::int64_t i = 0; i < count; ++i) {
    at(i).first_row = row;
    at(i).first_line = line;
    row += at(i).rows;
    line += lines[static_cast<std::size_t>(i)];
  }
  return chunks;
}

}  // namespace vicinal::io
