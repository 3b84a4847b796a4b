// See json_lines.hpp. A line is looked at once, without recursion: its values are numbers, texts and words, kept as
// they stand until the line is whole, and written in the order of the columns. Chunks begin at lines, which JSON's
// texts cannot hold; they are written on all threads, some at a time, and joined in order.
#include "io/json_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "core/parallel.hpp"
#include "io/bad_data.hpp"
#include "io/scan.hpp"
#include "io/shown.hpp"

namespace vicinal::io {
namespace {

constexpr std::size_t kMaxJsonValues = std::size_t{1} << 22;  // as the fields of a CSV's line
constexpr std::size_t kJsonPoll = std::size_t{1} << 14;

bool is_json_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// Why a line is no row.
struct JsonFault {
  std::string what;        ///< behind "line 3"
  bool is_nested = false;  ///< a value is an object or an array
  bool is_cut = false;     ///< the line ends within its value
};

/// The tokens of one line.
class JsonLine {
 public:
  JsonLine(const Context& ctx, const char* begin, const char* end) : ctx_(ctx), p_(begin), end_(end) {}

  /// The next character that is not blank, 0 at the end.
  char peek() {
    if (p_ != end_ && is_json_blank(*p_)) p_ = find_where(ctx_, p_, end_, [](char c) { return !is_json_blank(c); });
    return p_ == end_ ? '\0' : *p_;
  }
  bool take(char c) {
    if (peek() != c || p_ == end_) return false;
    ++p_;
    return true;
  }

  /// A text with its quotes and escapes.
  std::string_view text() {
    if (peek() != '"')
      fail(p_ == end_ ? "ends where a name is expected" : "has no name in quotes where one is expected");
    const char* const begin = p_++;
    const char* const limit = field_limit(begin, end_);
    for (;; ++p_) {
      if (p_ == limit) {
        if (limit == end_) fail("opens a quote that is never closed", false, true);
        fail(fmt::format("has a text of more than {} MiB", kMaxFieldBytes >> 20));
      }
      const auto c = static_cast<unsigned char>(*p_);
      if (c == '"') break;
      if (c < 0x20) fail("has a control character within a text");
      if (c == '\\') escape(limit);
    }
    ++p_;
    return {begin, static_cast<std::size_t>(p_ - begin)};
  }

  /// A number, a text or a word, as it stands. `name` is for sentences.
  std::string_view value() {
    const char c = peek();
    if (c == '"') return text();
    if (c == '{' || c == '[') fail(c == '{' ? "an object" : "an array", true);
    if (p_ == end_) fail("ends where a value is expected", false, true);
    const char* const begin = p_;
    const char* const limit = field_limit(begin, end_);
    while (p_ != limit && *p_ != ',' && *p_ != '}' && *p_ != ']' && !is_json_blank(*p_)) ++p_;
    const std::string_view token(begin, static_cast<std::size_t>(p_ - begin));
    if (!is_word(token) && !is_number_token(token)) {
      fail(fmt::format("has '{}', which is no value of JSON", shown(token)));
    }
    return token;
  }

  [[noreturn]] static void fail(std::string what, bool is_nested = false, bool is_cut = false) {
    throw JsonFault{std::move(what), is_nested, is_cut};
  }

 private:
  void escape(const char* limit) {
    constexpr std::string_view kEscapes = "\"\\/bfnrtu";
    if (++p_ == limit) --p_;
    if (kEscapes.find(*p_) == std::string_view::npos) fail("has an unknown escape behind a backslash");
    if (*p_ != 'u') return;
    for (int i = 0; i < 4; ++i) {
      if (p_ + 1 == limit || std::strchr("0123456789abcdefABCDEF", p_[1]) == nullptr || p_[1] == '\0') {
        fail("has \\u without four hexadecimal digits behind it");
      }
      ++p_;
    }
  }

  /// NaN and infinities are no JSON, but Python writes them; the CSV reader says what becomes of them.
  static bool is_word(std::string_view token) noexcept {
    constexpr std::string_view kWords[] = {"null", "true", "false", "NaN", "Infinity", "-Infinity"};
    return std::find(std::begin(kWords), std::end(kWords), token) != std::end(kWords);
  }

  static bool is_number_token(std::string_view token) noexcept {
    const char* p = token.data();
    const char* const end = p + token.size();
    const auto digits = [&] {
      const char* const begin = p;
      while (p != end && *p >= '0' && *p <= '9') ++p;
      return p - begin;
    };
    if (p != end && *p == '-') ++p;
    const bool zero = p != end && *p == '0';
    const auto whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    if (p != end && *p == '.' && (++p, digits() == 0)) return false;
    if (p != end && (*p == 'e' || *p == 'E')) {
      ++p;
      if (p != end && (*p == '+' || *p == '-')) ++p;
      if (digits() == 0) return false;
    }
    return p == end;
  }

  const Context& ctx_;
  const char* p_;
  const char* end_;
};

void append_character(std::string& out, std::uint32_t c) {
  const auto more = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    more(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    more(6);
    more(0);
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    more(12);
    more(6);
    more(0);
  }
}

std::uint32_t hexadecimal(std::string_view digits) noexcept {
  std::uint32_t value = 0;
  for (const char c : digits) {
    value = 16 * value + static_cast<std::uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

/// The content of a text that was scanned; half a surrogate pair becomes U+FFFD.
std::string decoded(std::string_view token) {
  constexpr std::string_view kFrom = "bfnrt";
  constexpr std::string_view kTo = "\b\f\n\r\t";
  const std::string_view text = token.substr(1, token.size() - 2);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char escape = text[++i];
    if (escape != 'u') {
      const std::size_t at = kFrom.find(escape);
      out += at == std::string_view::npos ? escape : kTo[at];
      continue;
    }
    std::uint32_t c = hexadecimal(text.substr(i + 1, 4));
    i += 4;
    if (c >= 0xd800 && c < 0xdc00 && text.substr(i + 1, 2) == "\\u") {
      const std::uint32_t low = hexadecimal(text.substr(i + 3, 4));
      if (low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        i += 6;
      }
    }
    append_character(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
  }
  return out;
}

/// As a field of CSV. Texts are quoted, so that none is taken for another thing than it is; an empty field is missing.
void append_field(std::string& out, std::string_view token) {
  if (token == "null") {
    out += "\"\"";
  } else if (token.empty() || token.front() != '"') {
    out += token.empty() ? std::string_view("\"\"") : token;
  } else {
    out += '"';
    const bool plain = token.find('\\') == std::string_view::npos;
    const std::string text = plain ? std::string() : decoded(token);
    for (const char c : plain ? token.substr(1, token.size() - 2) : std::string_view(text)) {
      if (c == '"') out += '"';
      out += c;
    }
    out += '"';
  }
}

/// What the first line says of all others.
struct JsonColumns {
  bool objects = false;
  std::size_t count = 0;
  std::vector<std::string> names;                       ///< of objects
  std::vector<std::string_view> tokens;                 ///< the names as the first line spells them
  std::unordered_map<std::string, std::size_t> places;  ///< of names

  [[nodiscard]] std::string named(std::size_t column) const {
    return objects ? fmt::format("column '{}'", shown(names[column])) : fmt::format("column {}", column);
  }
};

/// The first line.
JsonColumns read_columns(const Context& ctx, std::string_view line) {
  JsonLine tokens(ctx, line.data(), line.data() + line.size());
  JsonColumns columns;
  columns.objects = tokens.take('{');
  if (!columns.objects && !tokens.take('[')) JsonLine::fail("is neither an object nor an array");
  const char close = columns.objects ? '}' : ']';
  if (tokens.take(close)) JsonLine::fail("has no values");
  do {
    if (columns.count % kJsonPoll == 0) ctx.check_cancelled();
    if (columns.count >= kMaxJsonValues) JsonLine::fail(fmt::format("has more than {} values", kMaxJsonValues));
    if (columns.objects) {
      columns.tokens.push_back(tokens.text());
      columns.names.push_back(decoded(columns.tokens.back()));
      if (!columns.places.emplace(columns.names.back(), columns.count).second) {
        JsonLine::fail(fmt::format("has the name '{}' twice", shown(columns.names.back())));
      }
      if (!tokens.take(':')) JsonLine::fail("has no colon behind a name", false, tokens.peek() == 0);
    }
    ++columns.count;
    try {
      (void)tokens.value();
    } catch (JsonFault& fault) {
      if (fault.is_nested) fault.what = fmt::format("{} is {}", columns.named(columns.count - 1), fault.what);
      throw;
    }
  } while (tokens.take(','));
  if (!tokens.take(close)) {
    const bool cut = tokens.peek() == 0;
    JsonLine::fail(cut ? "ends before its value does" : "has no comma between two values", false, cut);
  }
  if (tokens.peek() != 0) JsonLine::fail("has something behind its value");
  return columns;
}

/// Rows of a chunk as delimited text.
class JsonWriter {
 public:
  JsonWriter(const Context& ctx, const JsonColumns& columns) : ctx_(ctx), columns_(columns), values_(columns.count) {}

  void write(std::string_view line, std::string& out) {
    JsonLine tokens(ctx_, line.data(), line.data() + line.size());
    if (!tokens.take(columns_.objects ? '{' : '[')) {
      JsonLine::fail(columns_.objects ? "is no object, as the first is" : "is no array, as the first is");
    }
    const char close = columns_.objects ? '}' : ']';
    std::fill(values_.begin(), values_.end(), std::string_view());
    std::size_t at = 0;
    std::size_t found = 0;
    if (tokens.peek() != close) {
      do {
        if (found++ % kJsonPoll == 0) ctx_.check_cancelled();
        if (columns_.objects) {
          at = place_of_name(tokens, at);
        } else if (found > columns_.count) {
          JsonLine::fail(fmt::format("has more than {} values, as many as the first has", columns_.count));
        }
        try {
          values_[at] = tokens.value();
        } catch (JsonFault& fault) {
          if (fault.is_nested) fault.what = fmt::format("{} is {}", columns_.named(at), fault.what);
          throw;
        }
        ++at;
      } while (tokens.take(','));
    }
    if (!tokens.take(close)) {
      JsonLine::fail(tokens.peek() == 0 ? "ends before its value does" : "has no comma between two values");
    }
    if (tokens.peek() != 0) JsonLine::fail("has something behind its value");
    if (!columns_.objects && found != columns_.count) {
      JsonLine::fail(fmt::format("has {} values where the first has {}", found, columns_.count));
    }
    for (std::size_t j = 0; j < values_.size(); ++j) {
      if (j % kJsonPoll == 0) ctx_.check_cancelled();
      if (j > 0) out += ',';
      append_field(out, values_[j]);
    }
  }

 private:
  /// Mostly the next one; `guess` is its column.
  std::size_t place_of_name(JsonLine& tokens, std::size_t guess) {
    const std::string_view token = tokens.text();
    if (!tokens.take(':')) JsonLine::fail("has no colon behind a name");
    std::size_t at = guess;
    if (guess >= columns_.count || columns_.tokens[guess] != token) {
      const std::string name = decoded(token);
      const auto place = columns_.places.find(name);
      if (place == columns_.places.end()) {
        JsonLine::fail(
            fmt::format("has the name '{}', which the first line has not; give it there, too, with null or a "
                        "value",
                        shown(name)));
      }
      at = place->second;
    }
    if (!values_[at].empty()) JsonLine::fail(fmt::format("has the name '{}' twice", shown(columns_.names[at])));
    return at;
  }

  const Context& ctx_;
  const JsonColumns& columns_;
  std::vector<std::string_view> values_;
};

struct JsonText {
  const char* begin;
  const char* end;
};

JsonText text_behind_mark(const Bytes& bytes) noexcept {
  const auto* const begin = reinterpret_cast<const char*>(bytes.data);
  const bool mark = bytes.size >= 3 && std::memcmp(begin, "\xef\xbb\xbf", 3) == 0;
  return {begin + (mark ? 3 : 0), begin + bytes.size};
}

/// The line at p, without its end; p is moved behind it.
std::string_view next_json_line(const Context& ctx, const char*& p, const char* end) {
  const char* const begin = p;
  const char* const stop = find_char(ctx, p, end, '\n');
  p = stop == end ? end : stop + 1;
  return {begin, static_cast<std::size_t>(stop - begin)};
}

bool is_blank_line(const Context& ctx, std::string_view line) {
  const char* const end = line.data() + line.size();
  return find_where(ctx, line.data(), end, [](char c) { return !is_json_blank(c); }) == end;
}

/// The first line that is not blank, empty where there is none; p is moved behind it.
std::string_view first_json_line(const Context& ctx, const char*& p, const char* end) {
  while (p != end) {
    const std::string_view line = next_json_line(ctx, p, end);
    if (!is_blank_line(ctx, line)) return line;
  }
  return {};
}

[[noreturn]] void refuse_line(const std::string& file, const JsonText& text, const char* line, const JsonFault& fault) {
  const auto number = 1 + std::count(text.begin, line, '\n');
  const std::string way =
      "; only numbers, texts, true, false and null make a table: flatten it, in Python by "
      "pandas.json_normalize";
  throw Error(ErrorCode::bad_data, fmt::format("'{}' line {}{} {}{}", file, number, fault.is_nested ? "," : "",
                                               fault.what, fault.is_nested ? way : ""));
}

JsonColumns columns_of(const Context& ctx, const JsonText& text, const std::string& file) {
  const char* p = text.begin;
  const std::string_view line = first_json_line(ctx, p, text.end);
  if (line.empty()) bad(fmt::format("'{}'", file), "has no data rows");
  try {
    return read_columns(ctx, line);
  } catch (const JsonFault& fault) {
    const bool alone = first_json_line(ctx, p, text.end).empty();
    JsonLine first(ctx, line.data(), line.data() + line.size());
    const bool list = first.take('[') && (first.peek() == '{' || first.peek() == '[' || first.peek() == 0);
    if (list || (fault.is_cut && !alone) || (fault.is_nested && alone)) {
      bad(fmt::format("'{}'", file),
          "is one value of JSON, not a row a line: write lines, in Python by DataFrame.to_json(..., orient='records', "
          "lines=True), in a shell by jq -c '.[]'");
    }
    refuse_line(file, text, line.data(), fault);
  }
}

void append_json(GrowingBuffer& out, std::string_view piece) {
  while (out.room() < piece.size()) out.grow(std::max(piece.size() - out.room(), out.size() / 2));
  std::copy(piece.begin(), piece.end(), out.end());
  out.add(piece.size());
}

}  // namespace

bool is_json(const Context& ctx, const Bytes& bytes) {
  const JsonText text = text_behind_mark(bytes);
  const char* p = text.begin;
  const std::string_view line = first_json_line(ctx, p, text.end);
  JsonLine whole(ctx, line.data(), text.end);
  if (line.empty()) return false;
  if (whole.take('{')) return whole.peek() == '"' || whole.peek() == '}';
  if (!whole.take('[')) return false;
  if (whole.peek() == '{' || whole.peek() == '[') return true;
  if (is_blank_line(ctx, line.substr(line.find('[') + 1))) return true;
  try {
    return read_columns(ctx, line).count > 0;
  } catch (const JsonFault&) {
    return false;
  }
}

std::int64_t count_json_rows(const Context& ctx, const Bytes& bytes) {
  const JsonText text = text_behind_mark(bytes);
  const char* p = text.begin;
  std::int64_t rows = 0;
  for (std::int64_t lines = 0; p != text.end; ++lines) {
    if (lines % static_cast<std::int64_t>(kJsonPoll) == 0) ctx.check_cancelled();
    if (!is_blank_line(ctx, next_json_line(ctx, p, text.end))) ++rows;
  }
  return rows;
}

DelimitedJson delimited_json(const Context& ctx, const Bytes& bytes, const std::string& file,
                             const ReadOptions& options, std::int64_t at_most, std::int64_t chunk) {
  JsonText text = text_behind_mark(bytes);
  const JsonColumns columns = columns_of(ctx, text, file);
  const JsonText whole = text;
  if (at_most < INT64_MAX) {
    const char* p = text.begin;
    for (std::int64_t i = 0; i < at_most && p != text.end; ++i) (void)first_json_line(ctx, p, text.end);
    text.end = p;
  }
  GrowingBuffer out(ctx, fmt::format("reading '{}'", file), bytes.held);
  if (columns.objects) {
    std::string header;
    for (const std::string_view token : columns.tokens) {
      if (!header.empty()) header += ',';
      append_field(header, token);
    }
    append_json(out, header + "\n");
  }
  const std::int64_t size = text.end - text.begin;
  std::vector<const char*> begins = {text.begin};
  for (std::int64_t at = chunk; at < size; at += chunk) {
    const char* const from = std::max(text.begin + at - 1, begins.back());
    if (from == text.end) break;
    const char* const line_end = find_char(ctx, from, text.end, '\n');
    if (line_end == text.end) break;
    begins.push_back(line_end + 1);
  }
  begins.push_back(text.end);
  const auto chunks = std::ssize(begins) - 1;
  const std::int64_t wave = 4 * static_cast<std::int64_t>(ctx.threads());
  for (std::int64_t first = 0; first < chunks; first += wave) {
    const std::int64_t count = std::min(wave, chunks - first);
    std::vector<std::string> pieces(static_cast<std::size_t>(count));
    ctx.report("read", 0.5 * static_cast<double>(first) / static_cast<double>(chunks));
    core::parallel_for(ctx, count, [&](std::int64_t i, int) {
      std::string& piece = pieces[static_cast<std::size_t>(i)];
      JsonWriter writer(ctx, columns);
      const char* p = begins[static_cast<std::size_t>(first + i)];
      const char* const end = begins[static_cast<std::size_t>(first + i + 1)];
      for (std::int64_t lines = 0; p != end; ++lines) {
        if (lines % 1024 == 0) ctx.check_cancelled();
        const std::string_view line = next_json_line(ctx, p, end);
        try {
          if (!is_blank_line(ctx, line)) writer.write(line, piece);
        } catch (const JsonFault& fault) {
          refuse_line(file, whole, line.data(), fault);
        }
        piece += '\n';
      }
    });
    for (const std::string& piece : pieces) append_json(out, piece);
  }
  DelimitedJson made;
  made.text = out.take();
  made.text.held += bytes.held;
  made.options = options;
  made.options.header = columns.objects;
  made.options.delimiter = ',';
  made.options.decimal = '.';
  made.lines = {columns.objects ? 0 : 1, true};
  return made;
}

}  // namespace vicinal::io
