// See csv.hpp. The text is cut into chunks at rows and the rows are counted (csv_chunks.hpp); then each chunk is parsed
// straight into its place in the table. Numbers are correctly rounded (fast_float). Fields of text columns are kept as
// views until all are known; then each becomes its number among the column's texts. The table's memory is checked
// before it is taken (contract clause 7).
#include "io/csv.hpp"

#include <fast_float/fast_float.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/distinct.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "io/csv_chunks.hpp"
#include "io/labels.hpp"
#include "io/scan.hpp"
#include "io/shown.hpp"
#include "io/written_number.hpp"

namespace vicinal::io {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Parses the rows of one chunk.
class ChunkParser {
 public:
  ChunkParser(const Context& ctx, const CsvLayout& layout, const CsvChunk& chunk, CsvContent& content)
      : ctx_(ctx), layout_(layout), chunk_(chunk), content_(content), p_(chunk.begin), line_(chunk.first_line) {}

  /// Every field of the index held its row's number.
  [[nodiscard]] bool counts() const noexcept { return counts_; }

  /// With `values` null nothing is stored: only faults are looked for.
  void parse(double* values, std::vector<std::unique_ptr<std::string>>* escaped) {
    escaped_ = escaped;
    for (row_ = chunk_.first_row;; ++row_) {
      line_ += skip_blank_lines(layout_.dialect, p_, chunk_.end);
      if (p_ == chunk_.end) break;
      if (row_ == chunk_.first_row + chunk_.rows) {
        throw Error(ErrorCode::internal, fmt::format("{} has more rows than were counted", layout_.where));
      }
      parse_row(values);
      if (values != nullptr) values += layout_.numbers;
    }
    if (row_ != chunk_.first_row + chunk_.rows) {
      throw Error(ErrorCode::internal, fmt::format("{} has fewer rows than were counted", layout_.where));
    }
  }

 private:
  void parse_row(double* values) {
    row_begin_ = p_;
    const std::int64_t fields = layout_.fields();
    std::int64_t line_ends = 0;
    std::size_t texts = 0;
    std::int64_t column = 0;
    FieldEnd end = FieldEnd::delimiter;
    for (std::int64_t j = 0; j < fields; ++j) {
      poll(p_);
      if (end != FieldEnd::delimiter) check_fields();
      const ColumnRole role = layout_.roles[static_cast<std::size_t>(j)];
      if (role == ColumnRole::number) {
        double value = 0;
        if (!plain_number(&value, &end)) {
          const Field field = general_field(&line_ends, &end);
          value = number_or_throw(field, j, line_ends);
        }
        if (values != nullptr) values[layout_.place(column++)] = value;
      } else {
        const Field field = general_field(&line_ends, &end);
        if (role == ColumnRole::index) check_index(field);
        if (role == ColumnRole::label) keep(field, j, line_ends, "label", &content_.labels);
        if (role == ColumnRole::id) keep(field, j, line_ends, "id", &content_.ids);
        if (role == ColumnRole::text) {
          double value = 0;
          const bool lacks = layout_.missing && is_missing(parse_number(trimmed(field.text), &value), value);
          if (!lacks) keep(field, j, line_ends, "value", content_.texts.empty() ? nullptr : &content_.texts[texts]);
          ++texts;
          if (values != nullptr) values[layout_.place(column++)] = 0;
        }
      }
    }
    if (end == FieldEnd::delimiter) check_fields();
    line_ += line_ends + (end == FieldEnd::line ? 1 : 0);
  }

  /// Where a row is long, its chunk is.
  void poll(const char* at) {
    if (at - polled_ <= kScanBlock) return;
    polled_ = at;
    ctx_.check_cancelled();
  }

  static fast_float::from_chars_result from_chars_with_comma(const char* p, const char* end, double* value) {
    const fast_float::parse_options options(fast_float::chars_format::general, ',');
    return fast_float::from_chars_advanced(p, end, *value, options);
  }

  /// The common case: blanks, a number, blanks, the end of the field. False, with nothing moved, for anything else.
  bool plain_number(double* value, FieldEnd* end) {
    const char* p = p_;
    while (p != chunk_.end && layout_.dialect.is_blank(*p)) ++p;
    if (chunk_.end - p > 1 && *p == '+' && p[1] != '-') ++p;
    const auto result = layout_.dialect.decimal == '.' ? fast_float::from_chars(p, chunk_.end, *value)
                                                       : from_chars_with_comma(p, chunk_.end, value);
    if (result.ec == std::errc::invalid_argument || !std::isfinite(*value)) return false;
    p = result.ptr;
    if (!take_terminator(layout_.dialect, p, chunk_.end, *end)) return false;
    p_ = p;
    return true;
  }

  Field general_field(std::int64_t* line_ends, FieldEnd* end) {
    const Field field = next_field(layout_.dialect, p_, chunk_.end);
    if (field.fault != FieldFault::none) quote_fault(field.fault, line_ + *line_ends);
    *line_ends += field.line_ends;
    p_ = field.next;
    *end = field.end;
    return field;
  }

  double number_or_throw(const Field& field, std::int64_t column, std::int64_t line_ends) {
    double value = 0;
    const std::string_view text = trimmed(field.text);
    const NumberKind kind = parse_cell(text, &value, layout_.dialect.decimal);
    if (kind == NumberKind::number) return value;
    check_fields();
    if (layout_.missing && is_missing(kind, value)) return kNan;
    const std::string place = place_of(column, line_ends - field.line_ends);
    if (kind == NumberKind::missing && text.empty()) fail(fmt::format("{} is empty (a missing value)", place));
    if (kind == NumberKind::missing) fail(fmt::format("{} is '{}' (a missing value)", place, text));
    if (kind == NumberKind::not_finite) fail(fmt::format("{} is '{}', not a finite number", place, shown(text)));
    if (kind == NumberKind::too_large) fail(fmt::format("{} is '{}', too large for float64", place, shown(text)));
    if (const auto written = written_number(text, layout_.dialect)) {
      fail(fmt::format("{} is '{}', {}: {}", place, shown(text), written->what, written->way));
    }
    fail(fmt::format("{} is '{}', not a number", place, shown(text)));
  }

  void check_index(const Field& field) {
    double value = 0;
    const bool number = parse_number(trimmed(field.text), &value) == NumberKind::number;
    counts_ = counts_ && number && value == static_cast<double>(row_ + layout_.index_base);
  }

  static bool is_missing(NumberKind kind, double value) {
    return kind == NumberKind::missing || (kind == NumberKind::not_finite && std::isnan(value));
  }

  /// Quotes may enclose blanks.
  [[nodiscard]] std::string_view trimmed(std::string_view text) const {
    while (!text.empty() && layout_.dialect.is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && layout_.dialect.is_blank(text.back())) text.remove_suffix(1);
    return text;
  }

  void keep(const Field& field, std::int64_t column, std::int64_t line_ends, const char* what,
            std::vector<std::string_view>* kept) {
    if (field.text.empty()) {
      check_fields();
      fail(fmt::format("{} is empty (a missing {})", place_of(column, line_ends - field.line_ends), what));
    }
    if (kept == nullptr || kept->empty()) return;
    std::string_view text = field.text;
    if (field.escaped) {
      escaped_->push_back(std::make_unique<std::string>(unescape(field)));
      text = *escaped_->back();
    }
    (*kept)[static_cast<std::size_t>(row_)] = text;
  }

  /// A wrong number of fields explains whatever else is wrong with a row, so it is looked at first. Throws if it is.
  void check_fields() {
    std::int64_t found = 0;
    std::int64_t line_ends = 0;
    const char* p = row_begin_;
    for (;;) {
      poll(p);
      const Field field = next_field(layout_.dialect, p, chunk_.end);
      if (field.fault != FieldFault::none) quote_fault(field.fault, line_ + line_ends);
      ++found;
      line_ends += field.line_ends;
      p = field.next;
      if (field.end != FieldEnd::delimiter) break;
    }
    if (found != layout_.fields()) {
      fail(fmt::format("{} line {} has {} field{} where {} {} expected", layout_.where, line_, found,
                       found == 1 ? "" : "s", layout_.fields(), layout_.fields() == 1 ? "is" : "are"));
    }
  }

  [[noreturn]] void quote_fault(FieldFault fault, std::int64_t line) const {
    if (fault == FieldFault::too_long) {
      fail(fmt::format("{} line {} has a field of more than {} MiB", layout_.where, line, kMaxFieldBytes >> 20));
    }
    fail(fmt::format("{} line {} {}", layout_.where, line,
                     fault == FieldFault::open_quote
                         ? "opens a quote that is never closed"
                         : "has a quote inside a field; quotes must enclose whole fields, and be doubled inside"));
  }

  [[nodiscard]] std::string place_of(std::int64_t column, std::int64_t line_ends) const {
    return fmt::format("{} line {}, {}", layout_.where, line_ + line_ends, layout_.column_name(column));
  }

  [[noreturn]] static void fail(const std::string& sentence) { throw Error(ErrorCode::bad_data, sentence); }

  const Context& ctx_;
  const CsvLayout& layout_;
  const CsvChunk& chunk_;
  CsvContent& content_;
  const char* p_;
  const char* polled_ = p_;
  const char* row_begin_ = nullptr;
  std::int64_t line_;
  std::int64_t row_ = 0;
  bool counts_ = true;
  std::vector<std::unique_ptr<std::string>>* escaped_ = nullptr;
};

/// Bytes the values take; nullopt-like 0 when the file is too short for so many fields, so that some row must be
/// faulty.
std::uint64_t bytes_of_values(const CsvLayout& layout, std::int64_t rows) {
  __extension__ using Wide = unsigned __int128;
  const std::int64_t digits = layout.missing ? 0 : layout.numbers;  // at least one character each
  const auto least = static_cast<Wide>(rows) * static_cast<Wide>(layout.fields() - 1 + digits);
  if (least > static_cast<Wide>(layout.end - layout.body)) return 0;
  return static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(layout.numbers) * sizeof(double);
}

/// The distinct texts in ascending order; `values` [rows, numbers] gets at column `j` the number of each row's, NaN of
/// a missing one, which is a view of nothing.
std::vector<std::string> number_texts(const Context& ctx, const std::vector<std::string_view>& texts,
                                      std::int64_t numbers, std::int64_t j, double* values) {
  core::Distinct<std::string_view> distinct([&ctx] { ctx.check_cancelled(); });
  const auto value = [&](std::size_t row) -> double& { return values[static_cast<std::int64_t>(row) * numbers + j]; };
  for (std::size_t i = 0; i < texts.size(); ++i) {
    value(i) = texts[i].data() == nullptr ? kNan : static_cast<double>(distinct.number_of(texts[i]));
  }
  const std::vector<std::int64_t> order = distinct.sorted();
  std::vector<std::string> classes;
  classes.reserve(order.size());
  std::vector<double> rank(order.size());
  for (const std::int64_t number : order) {
    distinct.step();
    rank[static_cast<std::size_t>(number)] = static_cast<double>(classes.size());
    classes.emplace_back(distinct.value(number));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    distinct.step();
    if (!std::isnan(value(i))) value(i) = rank[static_cast<std::size_t>(value(i))];
  }
  return classes;
}

std::vector<std::vector<std::string>> number_all_texts(const Context& ctx, const CsvLayout& layout,
                                                       const CsvContent& content, double* values) {
  std::vector<std::vector<std::string>> categories(static_cast<std::size_t>(layout.numbers));
  std::int64_t column = 0;
  std::size_t text = 0;
  for (const ColumnRole role : layout.roles) {
    if (role == ColumnRole::text) {
      const std::int64_t place = layout.place(column);
      categories[static_cast<std::size_t>(place)] =
          number_texts(ctx, content.texts[text++], layout.numbers, place, values);
    }
    column += role == ColumnRole::number || role == ColumnRole::text ? 1 : 0;
  }
  return categories;
}

/// Columns that were found to be of text, not named: where most texts stand once they are names or ids.
void refuse_ids(const CsvLayout& layout, const CsvContent& content) {
  constexpr std::int64_t kFewTexts = 32;
  std::int64_t at = 0;
  for (std::int64_t j = 0; j < layout.fields(); ++j) {
    const ColumnRole role = layout.roles[static_cast<std::size_t>(j)];
    if (role != ColumnRole::number && role != ColumnRole::text) continue;
    const auto texts = std::ssize(content.categories[static_cast<std::size_t>(layout.place(at++))]);
    const auto& found = layout.found_texts;
    if (std::find(found.begin(), found.end(), j) == found.end() || texts <= kFewTexts || 2 * texts <= content.rows) {
      continue;
    }
    throw Error(ErrorCode::bad_data,
                fmt::format("{}, {} has {} different texts in {} rows, so that they are hardly categories: leave the "
                            "column out by the option drop, or name it by the option text or id",
                            layout.where, layout.column_name(j), texts, content.rows));
  }
}

/// The texts in one piece, beside `held` bytes.
RowIds ids_from_texts(const Context& ctx, const CsvLayout& layout, const std::vector<std::string_view>& texts,
                      std::uint64_t held) {
  constexpr std::size_t kPollIds = std::size_t{1} << 16;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i % kPollIds == 0) ctx.check_cancelled();
    bytes += texts[i].size();
  }
  core::require_memory(ctx, held + bytes + texts.size() * (sizeof(std::string_view) + sizeof(std::size_t)),
                       fmt::format("reading the ids of {}", layout.where));
  RowIds ids;
  ids.name = layout.name_of(ColumnRole::id);
  ids.reserve(std::ssize(texts), bytes);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i % kPollIds == 0) ctx.check_cancelled();
    ids.add(texts[i]);
  }
  return ids;
}

}  // namespace

CsvContent parse_csv(const Context& ctx, const CsvLayout& layout, const Bytes& bytes, std::int64_t chunk) {
  const std::vector<CsvChunk> chunks = cut_csv(ctx, layout, chunk);
  CsvContent content;
  content.rows = chunks.back().first_row + chunks.back().rows;
  if (content.rows == 0) {
    throw Error(ErrorCode::bad_data,
                fmt::format("{} has {}no data rows", layout.where, layout.header ? "a header line but " : ""));
  }
  const bool has_label = layout.has(ColumnRole::label);
  const bool has_id = layout.has(ColumnRole::id);
  const std::uint64_t value_bytes = bytes_of_values(layout, content.rows);
  const bool store = value_bytes > 0;
  std::shared_ptr<unsigned char> values;
  const std::string job = fmt::format("reading {}", layout.where);
  // A label is a view into the text, then a string, then a code.
  constexpr std::uint64_t kLabelBytes = sizeof(std::string_view) + sizeof(std::string) + sizeof(std::int64_t);
  core::require_memory(ctx,
                       value_bytes + (has_label ? static_cast<std::uint64_t>(content.rows) * kLabelBytes : 0) +
                           (has_id ? static_cast<std::uint64_t>(content.rows) * sizeof(std::string_view) : 0) +
                           static_cast<std::uint64_t>(content.rows * layout.texts) * sizeof(std::string_view) +
                           bytes.held,
                       job);
  if (store) values = allocate(value_bytes, job);
  if (has_label) content.labels.resize(static_cast<std::size_t>(content.rows));
  if (has_id) content.ids.resize(static_cast<std::size_t>(content.rows));
  if (store) {
    content.texts.assign(static_cast<std::size_t>(layout.texts),
                         std::vector<std::string_view>(static_cast<std::size_t>(content.rows)));
  }
  content.escaped.resize(chunks.size());

  std::atomic<bool> counts{true};
  std::atomic<std::int64_t> done{0};
  const auto count = static_cast<std::int64_t>(chunks.size());
  core::parallel_for(ctx, count, [&](std::int64_t i, int worker) {
    const CsvChunk& mine = chunks[static_cast<std::size_t>(i)];
    double* at = store ? reinterpret_cast<double*>(values.get()) + mine.first_row * layout.numbers : nullptr;
    ChunkParser parser(ctx, layout, mine, content);
    parser.parse(at, &content.escaped[static_cast<std::size_t>(i)]);
    if (!parser.counts()) counts = false;
    const std::int64_t finished = ++done;
    if (worker == 0) ctx.report("read", static_cast<double>(finished) / static_cast<double>(count));
  });
  content.counts = counts;
  if (!content.counts) return content;
  if (store && layout.texts > 0) {
    content.categories = number_all_texts(ctx, layout, content, reinterpret_cast<double*>(values.get()));
    refuse_ids(layout, content);
  }
  if (store) content.values = std::shared_ptr<const double>(values, reinterpret_cast<const double*>(values.get()));
  return content;
}

std::int64_t count_csv_rows(const Context& ctx, const CsvLayout& layout, std::int64_t chunk) {
  const std::vector<CsvChunk> chunks = cut_csv(ctx, layout, chunk);
  return chunks.back().first_row + chunks.back().rows;
}

Table read_csv(const Context& ctx, const Bytes& bytes, const std::string& file, const ReadOptions& options,
               std::int64_t chunk, LineCount lines) {
  const CsvLayout layout = lay_out_csv(ctx, bytes, file, options, lines);
  CsvContent content = parse_csv(ctx, layout, bytes, chunk);
  if (!content.counts) {
    content = {};
    ReadOptions keeping = options;
    keeping.keep_index = true;
    return read_csv(ctx, bytes, file, keeping, chunk, lines);
  }
  if (content.values == nullptr) {
    throw Error(ErrorCode::internal, fmt::format("{} has more fields than it has bytes", layout.where));
  }
  Table table;
  table.format = FileFormat::csv;
  table.view = TableView(content.values.get(), content.rows, layout.numbers);
  table.shape = {content.rows, layout.numbers};
  table.storage = content.values;
  if (!layout.names.empty()) table.columns.resize(static_cast<std::size_t>(layout.numbers));
  std::int64_t column = 0;
  for (std::size_t j = 0; j < layout.names.size(); ++j) {
    const ColumnRole role = layout.roles[j];
    if (role != ColumnRole::number && role != ColumnRole::text) continue;
    table.columns[static_cast<std::size_t>(layout.place(column++))] = layout.names[j];
  }
  table.notes = layout.notes();
  table.categories = std::move(content.categories);
  if (!content.labels.empty()) table.labels = labels_from_texts(ctx, content.labels);
  table.label_name = layout.name_of(ColumnRole::label);
  if (!content.ids.empty())
    table.ids = ids_from_texts(ctx, layout, content.ids, bytes_of_values(layout, content.rows) + bytes.held);
  return table;
}

}  // namespace vicinal::io
