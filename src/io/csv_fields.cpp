// See csv_fields.hpp. The general path; numbers that follow each other plainly never come here.
#include "io/csv_fields.hpp"

#include <algorithm>
#include <cstring>

namespace vicinal::io {
namespace {

Field quoted_field(const Dialect& dialect, const char* p, const char* end) noexcept {
  Field field;
  const char* begin = ++p;
  const char* const limit = field_limit(begin, end);
  for (;;) {
    const auto* quote =
        p < limit ? static_cast<const char*>(std::memchr(p, '"', static_cast<std::size_t>(limit - p))) : nullptr;
    if (quote == nullptr) {
      field.fault = limit == end ? FieldFault::open_quote : FieldFault::too_long;
      field.next = limit;
      return field;
    }
    p = quote + 1;
    if (p == end || *p != '"') {
      field.text = std::string_view(begin, static_cast<std::size_t>(quote - begin));
      break;
    }
    field.escaped = true;
    ++p;
  }
  if (!dialect.row_a_line) field.line_ends = std::count(field.text.begin(), field.text.end(), '\n');
  if (!take_terminator(dialect, p, end, field.end)) field.fault = FieldFault::stray_quote;
  field.next = p;
  return field;
}

}  // namespace

Field next_field(const Dialect& dialect, const char* p, const char* end) noexcept {
  const char* const limit = field_limit(p, end);
  while (p != limit && dialect.is_blank(*p)) ++p;
  if (p != limit && *p == '"') return quoted_field(dialect, p, end);
  Field field;
  const char* begin = p;
  const char* last = p;  // behind the last character that is not blank
  while (p != limit && line_end_at(p, end) == 0 && !(*p == '\r' && p + 1 == end)) {
    if (dialect.delimiter == ' ' ? dialect.is_blank(*p) : *p == dialect.delimiter) break;
    if (*p == '"') field.fault = FieldFault::stray_quote;
    if (!dialect.is_blank(*p)) last = p + 1;
    ++p;
  }
  field.text = std::string_view(begin, static_cast<std::size_t>(last - begin));
  if (p == limit && p != end) {
    field.fault = FieldFault::too_long;
    field.next = p;
    return field;
  }
  if (!take_terminator(dialect, p, end, field.end)) field.fault = FieldFault::too_long;
  field.next = p;
  return field;
}

std::string unescape(const Field& field) {
  std::string text;
  text.reserve(field.text.size());
  for (std::size_t i = 0; i < field.text.size(); ++i) {
    text.push_back(field.text[i]);
    if (field.escaped && field.text[i] == '"') ++i;
  }
  return text;
}

std::string csv_field(std::string_view text, char delimiter) {
  const bool blanks =
      !text.empty() && (text.front() == ' ' || text.back() == ' ' || text.front() == '\t' || text.back() == '\t');
  const bool plain = text.find_first_of("\"\r\n") == std::string_view::npos &&
                     text.find(delimiter) == std::string_view::npos && !blanks && !text.empty() &&
                     text.front() != '#' && (delimiter != ' ' || text.find('\t') == std::string_view::npos);
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace vicinal::io
