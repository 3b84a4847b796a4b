// See csv_layout.hpp. Delimiter and header are guessed from the first records, deterministically; every guess can be
// overruled by an option.
#include "io/csv_layout.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/memory.hpp"
#include "io/bad_data.hpp"
#include "io/scan.hpp"
#include "io/shown.hpp"
#include "io/written_number.hpp"

namespace vicinal::io {
namespace {

constexpr std::size_t kSampleRecords = 32;
constexpr std::int64_t kSampleBytes = std::int64_t{1} << 20;
constexpr std::size_t kMaxFields = std::size_t{1} << 22;
constexpr std::size_t kPollFields = std::size_t{1} << 16;

[[noreturn]] void unfit(const std::string& where, std::string_view what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {}", where, what));
}

/// A record's extent; its fields are not kept.
struct Extent {
  const char* begin = nullptr;
  const char* next = nullptr;
  std::size_t fields = 0;
  FieldFault fault = FieldFault::none;
  std::int64_t lines = 0;  // physical lines it spans
};

struct Record : Extent {
  std::vector<Field> cells;
};

/// The record at p; `visit` sees each field.
template <class Visit>
Extent scan_record(const Context& ctx, const Dialect& dialect, const char* p, const char* end, const Visit& visit) {
  Extent record;
  record.begin = p;
  const char* polled = p;
  for (;;) {
    if (p - polled > kScanBlock) {
      ctx.check_cancelled();
      polled = p;
    }
    const Field field = next_field(dialect, p, end);
    record.lines += field.line_ends;
    ++record.fields;
    visit(field);
    p = field.next;
    if (field.fault != FieldFault::none || field.end != FieldEnd::delimiter || record.fields > kMaxFields) {
      record.fault = field.fault;
      record.lines += field.end == FieldEnd::line ? 1 : 0;
      record.next = p;
      return record;
    }
  }
}

std::vector<Extent> sample_extents(const Context& ctx, const Dialect& dialect, const char* p, const char* end) {
  std::vector<Extent> records;
  const char* begin = p;
  while (records.size() < kSampleRecords && p - begin < kSampleBytes) {
    skip_blank_lines(ctx, dialect, p, end);
    if (p == end) break;
    records.push_back(scan_record(ctx, dialect, p, end, [](const Field&) {}));
    if (records.back().fault != FieldFault::none) break;
    p = records.back().next;
  }
  return records;
}

/// The first records with their fields, whose memory is asked for first where they are many: a line may have millions.
std::vector<Record> sample_records(const Context& ctx, const CsvLayout& layout, const char* p) {
  constexpr std::uint64_t kFieldBytes = sizeof(Field) + sizeof(std::string) + sizeof(ColumnRole);
  const std::vector<Extent> extents = sample_extents(ctx, layout.dialect, p, layout.end);
  std::uint64_t fields = 0;
  for (const Extent& extent : extents) fields += extent.fields;
  if (fields > kPollFields) core::require_memory(ctx, fields * kFieldBytes, fmt::format("reading {}", layout.where));
  std::vector<Record> records;
  for (const Extent& extent : extents) {
    Record& record = records.emplace_back(Record{extent, {}});
    record.cells.reserve(extent.fields);
    scan_record(ctx, layout.dialect, extent.begin, layout.end,
                [&](const Field& field) { record.cells.push_back(field); });
  }
  return records;
}

/// The delimiter that cuts most of the first records into the same number (at least 2) of fields; a comma for one
/// column.
char detect_delimiter(const Context& ctx, const char* begin, const char* text_end, std::string_view candidates,
                      char comment) {
  // A long line is cut: one that is not whole counts only when there is no other.
  const char* end = text_end - begin > kSampleBytes ? begin + kSampleBytes : text_end;
  char best = ',';
  std::int64_t best_matches = 0;
  for (const char candidate : candidates) {
    std::map<std::size_t, std::int64_t> counts;
    std::vector<Extent> sample = sample_extents(ctx, {candidate, comment}, begin, end);
    if (sample.size() > 1 && sample.back().next == end && end != text_end) sample.pop_back();
    for (const Extent& record : sample) {
      if (record.fault == FieldFault::none) ++counts[record.fields];
    }
    std::size_t usual = 0;
    std::int64_t matches = 0;
    for (const auto& [fields, records] : counts) {  // ascending
      // Of two counts that are as frequent the larger means a ragged line, but with blanks a header of several words.
      if (records > matches || (records == matches && candidate != ' ')) {
        usual = fields;
        matches = records;
      }
    }
    if (usual >= 2 && matches > best_matches) {
      best = candidate;
      best_matches = matches;
    }
  }
  return best;
}

std::optional<std::int64_t> as_position(const std::string& text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// 1 or 0 for the words that pandas, R and people write for true and false.
std::optional<double> truth_of(std::string_view text) noexcept {
  for (const std::string_view word : {"True", "TRUE", "true", "Yes", "YES", "yes"}) {
    if (text == word) return 1;
  }
  for (const std::string_view word : {"False", "FALSE", "false", "No", "NO", "no"}) {
    if (text == word) return 0;
  }
  return std::nullopt;
}

NumberKind kind_of(const Dialect& dialect, const Field& field) {
  double value = 0;
  return parse_cell(field.text, &value, dialect.decimal);
}

std::vector<std::string> references(const ReadOptions& options) {
  std::vector<std::string> names = options.drop;
  names.insert(names.end(), options.text.begin(), options.text.end());
  names.insert(names.end(), options.only.begin(), options.only.end());
  if (!options.label.empty()) names.push_back(options.label);
  if (!options.id.empty()) names.push_back(options.id);
  return names;
}

bool is_number(const Field& field, std::int64_t wanted) {
  return as_position(std::string(field.text)) == wanted && (field.text.size() == 1 || field.text.front() != '0');
}

/// 0, 1, .., d - 1 above other numbers, as pandas names the columns of an array; behind an index' empty name, too.
/// Lines that count on are data (numpy.arange), and so are two columns of whole numbers, which may be edges.
bool is_header_of_numbers(const std::vector<Record>& records) {
  const std::vector<Field>& first = records.front().cells;
  const std::size_t skipped = first.front().text.empty() ? 1 : 0;
  if (records.size() < 2 || first.size() < 2) return false;
  for (std::size_t j = skipped; j < first.size(); ++j) {
    if (!is_number(first[j], static_cast<std::int64_t>(j - skipped))) return false;
  }
  if (skipped == 1) return true;
  const auto d = static_cast<std::int64_t>(first.size());
  bool counts_on = true;
  bool whole = true;
  for (std::size_t i = 1; i < records.size(); ++i) {
    for (std::size_t j = 0; j < records[i].cells.size(); ++j) {
      const Field& field = records[i].cells[j];
      if (i == 1 && !is_number(field, d + static_cast<std::int64_t>(j))) counts_on = false;
      double value = 0;
      whole = whole && parse_number(field.text, &value) == NumberKind::number && value == std::floor(value) &&
              field.text.find('.') == std::string_view::npos;
    }
  }
  return !counts_on && (d > 2 || !whole);
}

/// The first line has one field less than all others: R's write.table leaves out the name of the row names.
bool lacks_first_name(const std::vector<Record>& records) {
  const std::size_t fields = records.front().fields;
  return records.size() > 1 && std::all_of(records.begin() + 1, records.end(), [&](const Record& record) {
           return record.fault == FieldFault::none && record.fields == fields + 1;
         });
}

/// Whether the first column counts the rows, from 0 or 1; `base` gets the number of the first.
bool counts_rows(const std::vector<Record>& records, std::size_t first, std::int64_t* base) {
  if (records.size() < first + 2) return false;  // one row counts by chance
  for (std::int64_t start = 0; start < 2; ++start) {
    bool counts = true;
    for (std::size_t i = first; i < records.size() && counts; ++i) {
      double value = 0;
      counts = records[i].fields > 0 && parse_number(records[i].cells[0].text, &value) == NumberKind::number &&
               value == static_cast<double>(start + static_cast<std::int64_t>(i - first));
    }
    *base = start;
    if (counts) return true;
  }
  return false;
}

bool detect_header(const Context& ctx, const Dialect& dialect, const std::vector<Record>& records,
                   const ReadOptions& options) {
  const std::vector<Field>& first = records.front().cells;
  if (is_header_of_numbers(records)) return true;
  const std::vector<std::string> referred = references(options);
  for (std::size_t j = 0; j < first.size(); ++j) {
    if (j % kPollFields == 0) ctx.check_cancelled();
    if (kind_of(dialect, first[j]) != NumberKind::text) continue;
    const std::string name = unescape(first[j]);
    bool by_position = false;
    for (const std::string& reference : referred) {
      if (reference == name) return true;
      if (as_position(reference) == static_cast<std::int64_t>(j)) by_position = true;
    }
    if (records.size() == 1) {
      if (!by_position) return true;  // nothing but a header
      continue;
    }
    // Mostly numbers will do: what is wrong further down is reported there, not as a header that is no number.
    std::int64_t numbers = 0;
    std::int64_t texts = 0;
    for (std::size_t i = 1; i < records.size(); ++i) {
      if (j >= records[i].fields) continue;
      const NumberKind kind = kind_of(dialect, records[i].cells[j]);
      if (kind == NumberKind::number) ++numbers;
      if (kind == NumberKind::text) ++texts;
    }
    if (numbers > 0 && numbers >= texts) return true;
  }
  return false;
}

std::int64_t find_column(const CsvLayout& layout, const std::string& reference, std::string_view role) {
  const std::int64_t matches = std::count(layout.names.begin(), layout.names.end(), reference);
  if (matches > 1) {
    bad(layout.where,
        fmt::format("has {} columns named '{}', so the {} column is not clear", matches, shown(reference), role));
  }
  if (matches == 1) return std::find(layout.names.begin(), layout.names.end(), reference) - layout.names.begin();
  const std::optional<std::int64_t> position = as_position(reference);
  if (position && *position < layout.fields()) return *position;
  if (position) {
    unfit(layout.where, fmt::format("has {} columns (0 to {}), so there is no {} column {}", layout.fields(),
                                    layout.fields() - 1, role, *position));
  }
  if (layout.names.empty()) {
    unfit(layout.where, fmt::format("has no header line, so the {} column '{}' must be given by position (0 to {})",
                                    role, shown(reference), layout.fields() - 1));
  }
  constexpr std::size_t kMaxShown = 20;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kMaxShown, layout.names.size()); ++i) names.push_back(shown(layout.names[i]));
  unfit(layout.where, fmt::format("has no column '{}' for {}; its columns are {}{}", shown(reference), role,
                                  fmt::join(names, ", "), layout.names.size() > kMaxShown ? ", ..." : ""));
}

void check_delimiter(char delimiter) {
  const auto c = static_cast<unsigned char>(delimiter);
  const bool letter_or_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool printable = (c >= 0x20 && c < 0x7f) || c == '\t';
  if (letter_or_digit || !printable || c == '"' || c == '+' || c == '-' || c == '.') {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("delimiter {} cannot separate fields; use , ; | a tab or a space",
                            printable ? fmt::format("'{}'", delimiter) : fmt::format("0x{:02x}", c)));
  }
}

void check_comment(const ReadOptions& options) {
  const bool printable = options.comment > 0x20 && options.comment < 0x7f;
  const bool of_numbers = std::string_view("+-.\"").find(options.comment) != std::string_view::npos ||
                          (options.comment >= '0' && options.comment <= '9');
  if (!printable || of_numbers || options.comment == options.delimiter) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("comment {} cannot begin lines that are skipped; use # % ; or the like",
                            printable ? fmt::format("'{}'", options.comment) : "character"));
  }
}

/// Whether fields are numbers with a decimal comma: at least one, and none is a number with a point.
bool has_decimal_commas(const std::vector<Record>& records) {
  bool commas = false;
  for (const Record& record : records) {
    for (const Field& field : record.cells) {
      double value = 0;
      const bool by_point = parse_number(field.text, &value, '.') == NumberKind::number;
      const bool by_comma = parse_number(field.text, &value, ',') == NumberKind::number;
      if (by_point && !by_comma) return false;
      commas = commas || (by_comma && !by_point);
    }
  }
  return commas;
}

/// Rows of numbers with decimal commas between semicolons look parted by commas, too.
bool is_parted_by_semicolons(const Context& ctx, const CsvLayout& layout, const char* p) {
  CsvLayout other;
  other.where = layout.where;
  other.end = layout.end;
  other.dialect = {';', layout.dialect.comment};
  const std::vector<Record> records = sample_records(ctx, other, p);
  return std::all_of(records.begin(), records.end(), [&](const Record& record) {
    return record.fields > 1 && record.fields == records.front().fields &&
           std::all_of(record.cells.begin(), record.cells.end(), [](const Field& field) {
             double value = 0;
             return parse_number(field.text, &value, ',') == NumberKind::number;
           });
  });
}

/// Columns of numbers that have text among the first rows become columns of text.
void mark_texts(const Context& ctx, CsvLayout& layout) {
  for (const Record& record : sample_records(ctx, layout, layout.body)) {
    for (std::size_t j = 0; j < std::min(record.fields, layout.roles.size()); ++j) {
      if (j % kPollFields == 0) ctx.check_cancelled();
      const bool text = kind_of(layout.dialect, record.cells[j]) == NumberKind::text;
      const bool truth = truth_of(record.cells[j].text).has_value();  // others may follow that are neither
      if (!(text || truth) || layout.roles[j] != ColumnRole::number) continue;
      // A number that is only written differently is refused by name where the rows are read.
      if (text && written_number(record.cells[j].text, layout.dialect)) continue;
      layout.roles[j] = ColumnRole::text;
      layout.found_texts.push_back(static_cast<std::int64_t>(j));
    }
  }
}

/// Leaves of the table's columns those that are named, in their order. Throws `invalid_argument` naming those that are
/// not there.
void keep_only(const Context& ctx, CsvLayout& layout, const std::vector<std::string>& only) {
  constexpr std::int64_t kTwice = -2;
  std::unordered_map<std::string_view, std::int64_t> fields;
  for (std::size_t j = 0; j < layout.names.size(); ++j) {
    if (j % kPollFields == 0) ctx.check_cancelled();
    const auto [at, is_new] = fields.emplace(layout.names[j], static_cast<std::int64_t>(j));
    if (!is_new) at->second = kTwice;
  }
  std::vector<std::int64_t> place_of(layout.roles.size(), -1);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < only.size(); ++i) {
    if (i % kPollFields == 0) ctx.check_cancelled();
    const auto named = fields.find(only[i]);
    const std::int64_t field = named != fields.end() ? named->second : as_position(only[i]).value_or(layout.fields());
    if (field == kTwice) bad(layout.where, fmt::format("has several columns named '{}'", shown(only[i])));
    if (field >= layout.fields()) {
      missing.push_back(fmt::format("'{}'", shown(only[i])));
      continue;
    }
    const auto at = static_cast<std::size_t>(field);
    const ColumnRole role = layout.roles[at];
    if (place_of[at] >= 0 || role == ColumnRole::label || role == ColumnRole::id || role == ColumnRole::dropped) {
      unfit(layout.where, fmt::format("is to be read with column '{}' {}", shown(only[i]),
                                      place_of[at] >= 0             ? "twice"
                                      : role == ColumnRole::dropped ? "both in the table and dropped"
                                                                    : "both in the table and as label or id"));
    }
    place_of[at] = static_cast<std::int64_t>(i);
  }
  if (!missing.empty()) {
    constexpr std::size_t kMaxShown = 20;
    const bool many = missing.size() > kMaxShown;
    if (many) missing.resize(kMaxShown);
    unfit(layout.where, fmt::format("has no column {}{}", fmt::join(missing, ", "), many ? ", ..." : ""));
  }
  for (std::size_t j = 0; j < layout.roles.size(); ++j) {
    ColumnRole& role = layout.roles[j];
    if (role == ColumnRole::label || role == ColumnRole::id) continue;
    role = place_of[j] >= 0 ? ColumnRole::number : ColumnRole::dropped;
    if (place_of[j] >= 0) layout.places.push_back(place_of[j]);
  }
  if (std::is_sorted(layout.places.begin(), layout.places.end())) layout.places.clear();
}

/// Lines that end by CR alone, as on old Macintoshes, are one line here.
bool has_bare_returns(const char* begin, const char* text_end) {
  const char* const end = text_end - begin > kSampleBytes ? begin + kSampleBytes : text_end;
  if (std::find(begin, end, '\n') != end) return false;
  const char* const found = std::find(begin, end, '\r');
  return found != end && found + 1 != end;
}

/// The delimiter of Excel's first line "sep=;", behind which p is moved; 0 where there is none.
char take_excel_delimiter(const char*& p, const char* end) noexcept {
  const std::string_view text(p, static_cast<std::size_t>(std::min<std::ptrdiff_t>(end - p, 7)));
  if (text.size() < 6 || (!text.starts_with("sep=") && !text.starts_with("SEP="))) return 0;
  const char* behind = p + 5;
  const int length = line_end_at(behind, end);
  if (length == 0) return 0;
  p = behind + length;
  return text[4];
}

/// Everything but the roles of the columns.
CsvLayout lay_out(const Context& ctx, const Bytes& bytes, const std::string& file, const ReadOptions& options,
                  LineCount lines) {
  CsvLayout layout;
  layout.body_line = lines.first;
  layout.dialect.row_a_line = lines.row_a_line;
  layout.where = fmt::format("'{}'", file);
  const auto* begin = reinterpret_cast<const char*>(bytes.data);
  layout.end = begin + bytes.size;
  const char* p = begin;
  layout.body_line += skip_preamble(ctx, p, layout.end);
  if (p == layout.end) bad(layout.where, bytes.size == 0 ? "is empty" : "has no data rows");
  if (has_bare_returns(p, layout.end)) {
    bad(layout.where, "has lines that end by CR alone; replace CR by LF, in a shell by tr '\\r' '\\n'");
  }
  if (options.comment != 0) check_comment(options);
  if (options.decimal != 0 && options.decimal != '.' && options.decimal != ',') {
    throw Error(ErrorCode::invalid_argument, "decimal is neither a point nor a comma");
  }
  layout.dialect.comment = options.comment;
  char delimiter = take_excel_delimiter(p, layout.end);
  if (delimiter != 0) ++layout.body_line;
  if (options.delimiter != 0) delimiter = options.delimiter;
  if (delimiter != 0) check_delimiter(delimiter);
  layout.dialect.delimiter =
      delimiter != 0 ? delimiter : detect_delimiter(ctx, p, layout.end, ",;\t| ", options.comment);

  layout.body_line += skip_blank_lines(ctx, layout.dialect, p, layout.end);  // comments of the caller's kind
  if (delimiter == 0 && layout.dialect.delimiter == ',' && options.decimal != '.' &&
      is_parted_by_semicolons(ctx, layout, p)) {
    layout.dialect.delimiter = ';';
  }
  const std::vector<Record> records = sample_records(ctx, layout, p);
  if (records.empty()) bad(layout.where, "has no data rows");
  if (options.decimal == ',' && layout.dialect.delimiter == ',') {
    unfit(layout.where, "is parted by commas, which cannot be the decimal mark, too");
  }
  const bool commas = options.decimal == ',' ||
                      (options.decimal == 0 && layout.dialect.delimiter == ';' && has_decimal_commas(records));
  layout.dialect.decimal = commas ? ',' : '.';
  const Record& first = records.front();
  if (first.fields > kMaxFields) {
    bad(layout.where, fmt::format("has more than {} fields in its first line", kMaxFields));
  }
  layout.header = first.fault == FieldFault::none &&
                  (options.header ? *options.header : detect_header(ctx, layout.dialect, records, options));
  layout.roles.assign(first.fields, ColumnRole::number);
  layout.body = p;
  if (layout.header) {
    layout.header_of_numbers = !options.header && is_header_of_numbers(records);
    if (lacks_first_name(records)) {
      layout.names.emplace_back();
      layout.roles.push_back(ColumnRole::number);
    }
    for (const Field& field : first.cells) layout.names.push_back(unescape(field));
    layout.body = first.next;
    layout.body_line += first.lines;
    layout.unnamed_first = layout.names.size() > 1 && is_no_name(layout.names[0]);
    if (layout.unnamed_first && !options.keep_index && counts_rows(records, 1, &layout.index_base)) {
      layout.roles[0] = ColumnRole::index;
    }
  }
  return layout;
}

}  // namespace

std::string CsvLayout::column_name(std::int64_t column) const {
  const auto at = static_cast<std::size_t>(column);
  if (at < names.size() && !names[at].empty()) return fmt::format("column '{}'", shown(names[at]));
  return fmt::format("column {}", column);
}

std::string CsvLayout::name_of(ColumnRole role) const {
  const auto at = static_cast<std::size_t>(std::find(roles.begin(), roles.end(), role) - roles.begin());
  return at < names.size() ? names[at] : std::string();
}

std::vector<std::string> CsvLayout::notes() const {
  std::vector<std::string> notes;
  if (header_of_numbers) {
    notes.push_back(fmt::format("{}: the first line counts the columns and is read as a header, not as a row", where));
  }
  if (unnamed_first && roles[0] == ColumnRole::index) {
    notes.push_back(fmt::format("{}: the first column has no name and counts the rows: an index, left out", where));
  } else if (unnamed_first && (roles[0] == ColumnRole::number || roles[0] == ColumnRole::text)) {
    notes.push_back(fmt::format("{}: column 0 has no name and is read as one of the table", where));
  }
  return notes;
}

std::int64_t skip_preamble(const Context& ctx, const char*& p, const char* end) {
  if (std::string_view(p, static_cast<std::size_t>(end - p)).starts_with("\xef\xbb\xbf")) p += 3;
  std::int64_t lines = 0;
  for (std::int64_t comments = 0;; ++comments) {
    if (comments % 4096 == 0) ctx.check_cancelled();
    lines += skip_blank_lines(ctx, {}, p, end);
    if (p == end || *p != '#') return lines;
    p = find_char(ctx, p, end, '\n');
    if (p != end) {
      ++p;
      ++lines;
    }
  }
}

std::int64_t columns_of_sample(const Context& ctx, const char* begin, const char* end) {
  const Dialect dialect{detect_delimiter(ctx, begin, end, ",;\t|", 0)};
  std::int64_t columns = 0;
  for (const Extent& record : sample_extents(ctx, dialect, begin, end)) {
    const auto fields = static_cast<std::int64_t>(record.fields);
    if (record.fault != FieldFault::none || (columns != 0 && columns != fields)) return 1;
    columns = fields;
  }
  return columns;
}

bool is_text(const Bytes& bytes) noexcept {
  constexpr std::uint64_t kSample = 4096;
  return std::all_of(bytes.data, bytes.data + std::min(bytes.size, kSample), [](unsigned char c) {
    return (c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
  });
}

CsvLayout lay_out_csv(const Context& ctx, const Bytes& bytes, const std::string& file, const ReadOptions& options,
                      LineCount lines) {
  CsvLayout layout = lay_out(ctx, bytes, file, options, lines);
  for (const std::string& reference : options.drop) {
    layout.roles[static_cast<std::size_t>(find_column(layout, reference, "drop"))] = ColumnRole::dropped;
  }
  if (!options.label.empty()) {
    ColumnRole& role = layout.roles[static_cast<std::size_t>(find_column(layout, options.label, "label"))];
    if (role == ColumnRole::dropped) {
      unfit(layout.where, fmt::format("is to be read with column '{}' both as label and dropped", options.label));
    }
    role = ColumnRole::label;
  }
  if (!options.id.empty()) {
    ColumnRole& role = layout.roles[static_cast<std::size_t>(find_column(layout, options.id, "id"))];
    if (role == ColumnRole::dropped || role == ColumnRole::label) {
      unfit(layout.where, fmt::format("is to be read with column '{}' both as id and {}", shown(options.id),
                                      role == ColumnRole::label ? "as label" : "dropped"));
    }
    role = ColumnRole::id;
  }
  if (!options.only.empty()) keep_only(ctx, layout, options.only);
  for (const std::string& reference : options.text) {
    ColumnRole& role = layout.roles[static_cast<std::size_t>(find_column(layout, reference, "text"))];
    if (role != ColumnRole::number && role != ColumnRole::text && role != ColumnRole::index) {
      unfit(layout.where, fmt::format("is to be read with column '{}' both as text and {}", shown(reference),
                                      role == ColumnRole::label ? "as label"
                                      : role == ColumnRole::id  ? "as id"
                                                                : "dropped"));
    }
    role = ColumnRole::text;
  }
  layout.missing = options.missing;
  if (options.find_text) mark_texts(ctx, layout);
  layout.texts = std::count(layout.roles.begin(), layout.roles.end(), ColumnRole::text);
  layout.numbers = std::count(layout.roles.begin(), layout.roles.end(), ColumnRole::number) + layout.texts;
  if (layout.numbers == 0) unfit(layout.where, "has no column left for the table");
  return layout;
}

CsvLayout lay_out_csv_labels(const Context& ctx, const Bytes& bytes, const std::string& file, const std::string& column,
                             std::optional<bool> header, LineCount lines) {
  ReadOptions options;
  options.label = column;
  options.header = header;
  CsvLayout layout = lay_out(ctx, bytes, file, options, lines);
  std::fill(layout.roles.begin(), layout.roles.end(), ColumnRole::dropped);
  layout.roles[static_cast<std::size_t>(find_column(layout, column, "label"))] = ColumnRole::label;
  return layout;
}

NumberKind parse_cell(std::string_view text, double* value, char decimal) noexcept {
  const NumberKind kind = parse_number(text, value, decimal);
  if (kind != NumberKind::text) return kind;
  const std::optional<double> truth = truth_of(text);
  *value = truth.value_or(0);
  return truth ? NumberKind::number : kind;
}

NumberKind parse_number(std::string_view text, double* value, char decimal) noexcept {
  static constexpr std::array<std::string_view, 9> kMissing = {"",     "NA",   "N/A",  "n/a", "na",
                                                               "null", "NULL", "None", "?"};
  if (std::find(kMissing.begin(), kMissing.end(), text) != kMissing.end()) return NumberKind::missing;
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  const char* end = digits.data() + digits.size();
  const fast_float::parse_options options(fast_float::chars_format::general, decimal);
  const auto result = fast_float::from_chars_advanced(digits.data(), end, *value, options);
  if (result.ec == std::errc::invalid_argument || result.ptr != end) return NumberKind::text;
  if (std::isfinite(*value)) return NumberKind::number;
  // Words give NaN and infinity; digits only where the number is beyond float64.
  const bool has_digit = std::any_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return has_digit && !std::isnan(*value) ? NumberKind::too_large : NumberKind::not_finite;
}

}  // namespace vicinal::io
