// See summary.hpp.
#include "io/summary.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "io/bad_data.hpp"
#include "io/content.hpp"
#include "io/csv_layout.hpp"
#include "io/json_lines.hpp"
#include "io/scan.hpp"
#include "io/written_number.hpp"

namespace vicinal::io {
namespace {

void add_field(const Dialect& dialect, const Field& field, ColumnSummary& column) {
  double value = 0;
  const std::string_view text = field.text;
  switch (parse_number(text, &value, dialect.decimal)) {
    case NumberKind::missing:
      ++column.missing;
      return;
    case NumberKind::text:
      break;
    default:
      column.add(value);
      return;
  }
  if (parse_cell(text, &value, dialect.decimal) == NumberKind::number) {
    ++column.truths;
    column.add(value);
    return;
  }
  if (const auto written = written_number(text, dialect)) {
    const bool date = written->what == "a date" || written->what == "a time";
    ++(date ? column.dates : column.written);
  }
  if (field.escaped) {
    column.add(std::string_view(unescape(field)));
  } else {
    column.add(text);
  }
}

[[noreturn]] void refuse_quotes(const CsvLayout& layout, std::int64_t line, FieldFault fault) {
  bad(layout.where, fmt::format("line {} {}", line,
                                fault == FieldFault::too_long     ? "has a field that is too long"
                                : fault == FieldFault::open_quote ? "opens a quote that is never closed"
                                                                  : "has a quote inside a field"));
}

TextSummary summarize_rows(const Context& ctx, const CsvLayout& layout, std::uint64_t distinct_bytes) {
  TextSummary summary;
  summary.notes = layout.notes();
  std::vector<std::int64_t> place(layout.roles.size(), -1);
  for (std::int64_t j = 0; j < layout.fields(); ++j) {
    const ColumnRole role = layout.roles[static_cast<std::size_t>(j)];
    if (role != ColumnRole::number && role != ColumnRole::text) continue;
    place[static_cast<std::size_t>(j)] = std::ssize(summary.columns);
    ColumnSummary& column = summary.columns.emplace_back();
    const bool named = static_cast<std::size_t>(j) < layout.names.size();
    column.name = named ? layout.names[static_cast<std::size_t>(j)] : fmt::format("{}", summary.columns.size() - 1);
    column.limit(distinct_bytes / static_cast<std::uint64_t>(layout.numbers));
  }
  const char* p = layout.body;
  const char* polled = p;
  std::int64_t line = layout.body_line;
  for (;;) {
    line += skip_blank_lines(ctx, layout.dialect, p, layout.end);
    if (p == layout.end) return summary;
    std::int64_t fields = 0;
    std::int64_t line_ends = 0;
    for (FieldEnd end = FieldEnd::delimiter; end == FieldEnd::delimiter; ++fields) {
      if (p - polled > kScanBlock / 8) {
        polled = p;
        ctx.check_cancelled();
        ctx.report("summarize", static_cast<double>(p - layout.body) / static_cast<double>(layout.end - layout.body));
      }
      const Field field = next_field(layout.dialect, p, layout.end);
      if (field.fault != FieldFault::none) refuse_quotes(layout, line + line_ends, field.fault);
      const std::int64_t at = fields < layout.fields() ? place[static_cast<std::size_t>(fields)] : -1;
      if (at >= 0) add_field(layout.dialect, field, summary.columns[static_cast<std::size_t>(at)]);
      line_ends += field.line_ends + (field.end == FieldEnd::line ? 1 : 0);
      p = field.next;
      end = field.end;
    }
    if (fields != layout.fields()) {
      bad(layout.where, fmt::format("line {} has {} field{} where {} {} expected", line, fields, fields == 1 ? "" : "s",
                                    layout.fields(), layout.fields() == 1 ? "is" : "are"));
    }
    line += line_ends;
    ++summary.rows;
  }
}

}  // namespace

TextSummary summarize_text(const Context& ctx, const std::filesystem::path& path, const ReadOptions& options,
                           std::uint64_t distinct_bytes) try {
  const core::Entry entry;
  const Content content = open_content(ctx, path, options.format);
  Bytes bytes = content.bytes;
  ReadOptions reading = options;
  LineCount lines;
  if (content.format == FileFormat::json_lines) {
    DelimitedJson json = delimited_json(ctx, bytes, content.file, options);
    bytes = json.text;
    reading = json.options;
    lines = json.lines;
  }
  TextSummary summary = summarize_rows(ctx, lay_out_csv(ctx, bytes, content.file, reading, lines), distinct_bytes);
  if (summary.rows == 0) bad(fmt::format("'{}'", content.file), "has no data rows");
  return summary;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal::io
