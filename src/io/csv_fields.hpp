// Fields of delimited text by RFC 4180: quotes may enclose delimiters and line ends, a doubled quote is one quote.
// A quote is only legal around a whole field; that is what lets chunks of a file be told apart by counting quotes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace vicinal::io {

/// A field, with the blanks around it, takes at most so many bytes; what is longer is refused. So nothing that looks at
/// one field takes long.
inline constexpr std::int64_t kMaxFieldBytes = std::int64_t{16} << 20;

/// The end of what a field that begins at p may reach.
inline const char* field_limit(const char* p, const char* end) noexcept {
  return end - p > kMaxFieldBytes ? p + kMaxFieldBytes : end;
}

/// How a file separates fields. ' ' stands for any run of spaces and tabs.
struct Dialect {
  char delimiter = ',';
  char comment = 0;         ///< lines that begin with it are as blank; 0: none
  char decimal = '.';       ///< in numbers: a point or a comma
  bool row_a_line = false;  ///< rows were made of a line each: line ends within quotes do not count
  [[nodiscard]] bool is_blank(char c) const noexcept { return c == ' ' || (c == '\t' && delimiter != '\t'); }
};

enum class FieldEnd : std::uint8_t { delimiter, line, text };  ///< what follows: `text` is the end of everything
enum class FieldFault : std::uint8_t { none, stray_quote, open_quote, too_long };

struct Field {
  std::string_view text;  ///< without surrounding blanks and quotes; doubled quotes still doubled
  bool escaped = false;   ///< has doubled quotes
  FieldEnd end = FieldEnd::text;
  FieldFault fault = FieldFault::none;
  const char* next = nullptr;  ///< where the next field (or line) begins
  std::int64_t line_ends = 0;  ///< line ends inside the quotes
};

/// A line end at p ("\n" or "\r\n"): its length, else 0.
inline int line_end_at(const char* p, const char* end) noexcept {
  if (p == end) return 0;
  if (*p == '\n') return 1;
  if (*p == '\r' && p + 1 != end && p[1] == '\n') return 2;
  return 0;
}

/// What follows a field's content at p; moves p behind it. Returns false when that is neither delimiter nor line end,
/// or is more blanks than a field may have.
inline bool take_terminator(const Dialect& dialect, const char*& p, const char* end, FieldEnd& kind) noexcept {
  const char* start = p;
  if (p != end && dialect.is_blank(*p)) {
    const char* const limit = field_limit(p, end);
    while (p != limit && dialect.is_blank(*p)) ++p;
    if (p == limit && p != end) return false;
  }
  if (p == end || (*p == '\r' && p + 1 == end)) {
    p = end;
    kind = FieldEnd::text;
    return true;
  }
  if (const int length = line_end_at(p, end); length > 0) {
    p += length;
    kind = FieldEnd::line;
    return true;
  }
  kind = FieldEnd::delimiter;
  if (dialect.delimiter == ' ') return p != start;
  if (*p != dialect.delimiter) return false;
  ++p;
  return true;
}

/// The field that begins at p (p may be end: an empty last field).
Field next_field(const Dialect& dialect, const char* p, const char* end) noexcept;

/// The text with doubled quotes made single.
std::string unescape(const Field& field);

/// A text as a field, quoted where a reader would see anything but this text.
std::string csv_field(std::string_view text, char delimiter);

/// Moves p over lines that hold nothing but blanks or a comment; counts them. A line that is longer than a field may be
/// is none of these. Behind `most` bytes it stops.
inline std::int64_t skip_blank_lines(const Dialect& dialect, const char*& p, const char* end,
                                     std::int64_t most = INT64_MAX) noexcept {
  const char* const begin = p;
  std::int64_t lines = 0;
  for (;;) {
    if (p - begin > most) return lines;
    const char* q = p;
    const char* const limit = field_limit(p, end);
    while (q != limit && dialect.is_blank(*q)) ++q;
    if (q == limit && q != end) return lines;
    if (q == end || (*q == '\r' && q + 1 == end)) {
      p = end;
      return lines;
    }
    int length = line_end_at(q, end);
    if (length == 0 && (dialect.comment == 0 || *q != dialect.comment)) return lines;
    if (length == 0) {
      const auto* const found = static_cast<const char*>(std::memchr(q, '\n', static_cast<std::size_t>(limit - q)));
      if (found == nullptr && limit != end) return lines;
      q = found == nullptr ? end : found;
      length = q == end ? 0 : 1;
    }
    p = q + length;
    lines += length > 0 ? 1 : 0;
  }
}

}  // namespace vicinal::io
