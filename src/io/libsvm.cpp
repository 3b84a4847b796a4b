// See libsvm.hpp. Two passes over chunks that begin at lines: the first checks everything, counts rows and finds the
// largest index, which the size of the dense table follows from; the second fills it. Of several faults the pool
// rethrows that of the first chunk, so that threads do not show.
#include "io/libsvm.hpp"

#include <fast_float/fast_float.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "io/csv_layout.hpp"
#include "io/labels.hpp"
#include "io/scan.hpp"
#include "io/shown.hpp"

namespace vicinal::io {
namespace {

std::string_view text_of(const Bytes& bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/// The line at the beginning of `text`, without its comment; `text` is moved behind it.
std::string_view next_line(const Context& ctx, std::string_view& text) {
  const char* const begin = text.data();
  const char* const stop = begin + text.size();
  const char* const end = find_char(ctx, begin, stop, '\n');
  text.remove_prefix(static_cast<std::size_t>((end == stop ? end : end + 1) - begin));
  const char* const comment = find_char(ctx, begin, end, '#');
  return {begin, static_cast<std::size_t>(comment - begin)};
}

/// The next word of a line, empty at its end.
std::string_view next_word(const Context& ctx, std::string_view& line) {
  const char* const stop = line.data() + line.size();
  const char* const begin = find_where(ctx, line.data(), stop, [](char c) { return !is_blank(c); });
  const char* const end = find_where(ctx, begin, stop, is_blank);
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return {begin, static_cast<std::size_t>(end - begin)};
}

bool parse_index(std::string_view text, std::int64_t* index) noexcept {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // a dense row of more would be 8 TiB
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *index);
  return error == std::errc() && end == text.data() + text.size() && *index >= 0 && *index <= kMost;
}

constexpr std::int64_t kPollPairs = std::int64_t{1} << 18;

struct Pair {
  std::int64_t index = 0;
  double value = 0;
};

/// What a word is no pair for; empty where it is one.
std::string_view parse_pair(std::string_view word, Pair* pair) noexcept {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return "is no index:value";
  if (word.substr(0, colon) == "qid") return "is a query's number, which is of no use here";
  if (!parse_index(word.substr(0, colon), &pair->index)) return "has no index from 0 to 2^40 before its colon";
  switch (parse_number(word.substr(colon + 1), &pair->value)) {
    case NumberKind::number:
      return {};
    case NumberKind::too_large:
      return "has a value too large for float64";
    case NumberKind::not_finite:
      return "has a value that is not finite";
    default:
      return "has no number behind its colon";
  }
}

struct Chunk {
  std::string_view text;
  std::int64_t rows = 0;
  std::int64_t first_row = 0;
  std::int64_t least_index = INT64_MAX;
  std::int64_t largest_index = -1;
  std::int64_t stored = 0;
};

std::vector<Chunk> cut(const Context& ctx, std::string_view text, std::int64_t chunk) {
  std::vector<Chunk> chunks;
  const auto size = static_cast<std::size_t>(chunk);
  while (!text.empty()) {
    const char* const stop = text.data() + text.size();
    const char* const end = size >= text.size() ? stop : find_char(ctx, text.data() + size - 1, stop, '\n');
    Chunk mine;
    mine.text = text.substr(0, static_cast<std::size_t>((end == stop ? end : end + 1) - text.data()));
    text.remove_prefix(mine.text.size());
    chunks.push_back(mine);
  }
  return chunks;
}

/// Every line of a chunk in turn.
class Scanner {
 public:
  Scanner(std::string_view whole, const std::string& file, Chunk& chunk) : whole_(whole), file_(file), chunk_(chunk) {}

  /// Checks everything; rows, indices and pairs are counted.
  void check(const Context& ctx) {
    std::string_view text = chunk_.text;
    while (!text.empty()) {
      begin_ = text.data();
      std::string_view line = next_line(ctx, text);
      const std::string_view label = next_word(ctx, line);
      if (label.empty()) continue;
      if (label.find(':') != std::string_view::npos) fail(label, "stands where the label should");
      ++chunk_.rows;
      Pair pair;
      std::int64_t last = -1;
      for (std::string_view word = next_word(ctx, line); !word.empty(); word = next_word(ctx, line)) {
        if (const std::string_view why = parse_pair(word, &pair); !why.empty()) fail(word, why);
        if (pair.index <= last) fail(word, fmt::format("comes behind index {}, and indices ascend", last));
        last = pair.index;
        chunk_.least_index = std::min(chunk_.least_index, pair.index);
        if (++chunk_.stored % kPollPairs == 0) ctx.check_cancelled();
      }
      chunk_.largest_index = std::max(chunk_.largest_index, last);
    }
  }

  /// Writes the rows of a chunk that was checked into the zeroed table [n, columns] and its labels.
  void fill(const Context& ctx, double* values, std::int64_t columns, std::int64_t base,
            std::vector<std::string_view>& labels) const {
    constexpr std::int64_t kFillBlock = std::int64_t{1} << 22;
    const std::int64_t poll_rows = std::max<std::int64_t>(1, (std::int64_t{1} << 20) / columns);
    std::string_view text = chunk_.text;
    std::int64_t row = chunk_.first_row;
    std::int64_t pairs = 0;
    while (!text.empty()) {
      std::string_view line = next_line(ctx, text);
      const std::string_view label = next_word(ctx, line);
      if (label.empty()) continue;
      if (row % poll_rows == 0) ctx.check_cancelled();  // short lines may be long rows
      labels[static_cast<std::size_t>(row)] = label;
      double* const at = values + row * columns;
      for (std::int64_t j = 0; j < columns; j += kFillBlock) {
        if (j > 0) ctx.check_cancelled();
        std::fill(at + j, at + std::min(columns, j + kFillBlock), 0.0);
      }
      Pair pair;
      for (std::string_view word = next_word(ctx, line); !word.empty(); word = next_word(ctx, line)) {
        parse_pair(word, &pair);
        at[pair.index - base] = pair.value;
        if (++pairs % kPollPairs == 0) ctx.check_cancelled();
      }
      ++row;
    }
  }

 private:
  [[noreturn]] void fail(std::string_view word, std::string_view why) const {
    const std::int64_t line = 1 + std::count(whole_.data(), begin_, '\n');
    throw Error(ErrorCode::bad_data, fmt::format("'{}' line {}: '{}' {}", file_, line, shown(word), why));
  }

  std::string_view whole_;
  const std::string& file_;
  Chunk& chunk_;
  const char* begin_ = nullptr;  // of the line
};

struct Checked {
  std::vector<Chunk> chunks;
  LibsvmShape shape;
  std::int64_t base = 1;
};

Checked check(const Context& ctx, const Bytes& bytes, const std::string& file, std::int64_t chunk) {
  Checked found;
  found.chunks = cut(ctx, text_of(bytes), chunk);
  const auto count = static_cast<std::int64_t>(found.chunks.size());
  core::parallel_for(ctx, count, [&](std::int64_t i, int worker) {
    Scanner(text_of(bytes), file, found.chunks[static_cast<std::size_t>(i)]).check(ctx);
    if (worker == 0) ctx.report("read", 0.5 * static_cast<double>(i) / static_cast<double>(count));
  });
  std::int64_t least = INT64_MAX;
  std::int64_t largest = -1;
  for (Chunk& mine : found.chunks) {
    mine.first_row = found.shape.rows;
    found.shape.rows += mine.rows;
    found.shape.stored += mine.stored;
    least = std::min(least, mine.least_index);
    largest = std::max(largest, mine.largest_index);
  }
  if (found.shape.rows == 0) throw Error(ErrorCode::bad_data, fmt::format("'{}' has no data rows", file));
  found.base = least == 0 ? 0 : 1;
  found.shape.columns = largest < 0 ? 0 : largest - found.base + 1;
  return found;
}

}  // namespace

bool is_libsvm(const Context& ctx, const Bytes& bytes) {
  constexpr int kLines = 8;
  std::string_view text = text_of(bytes);
  bool any = false;
  for (int lines = 0; lines < kLines && !text.empty();) {
    std::string_view line = next_line(ctx, text);
    const std::string_view label = next_word(ctx, line);
    if (label.empty()) continue;
    double value = 0;
    if (parse_number(label, &value) != NumberKind::number) return false;
    for (std::string_view word = next_word(ctx, line); !word.empty(); word = next_word(ctx, line)) {
      const std::size_t colon = word.find(':');
      std::int64_t index = 0;
      if (colon == std::string_view::npos) return false;
      if (word.substr(0, colon) != "qid" && !parse_index(word.substr(0, colon), &index)) return false;
      any = true;
    }
    ++lines;
  }
  return any;
}

LibsvmShape libsvm_shape(const Context& ctx, const Bytes& bytes, const std::string& file, std::int64_t chunk) {
  return check(ctx, bytes, file, chunk).shape;
}

Table read_libsvm(const Context& ctx, const Bytes& bytes, const std::string& file, std::int64_t columns,
                  std::int64_t chunk) {
  const Checked found = check(ctx, bytes, file, chunk);
  const std::int64_t n = found.shape.rows;
  if (columns != 0 && found.shape.columns > columns) {
    throw Error(ErrorCode::bad_data, fmt::format("'{}' has an index for column {}, but only {} columns were requested",
                                                 file, found.shape.columns - 1, columns));
  }
  const std::int64_t d = columns != 0 ? columns : found.shape.columns;
  if (d == 0) throw Error(ErrorCode::bad_data, fmt::format("'{}' has labels but no columns", file));
  const std::string job = fmt::format("reading '{}', {} values of a sparse table, as a dense one of {} x {}", file,
                                      found.shape.stored, n, d);
  std::uint64_t need = 0;
  constexpr std::uint64_t kLabelBytes = sizeof(std::string_view) + sizeof(std::string) + sizeof(std::int64_t);
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(d) * sizeof(double), &need) ||
      need > std::uint64_t{1} << 62) {
    need = std::uint64_t{1} << 62;
  }
  core::require_memory(ctx, need + static_cast<std::uint64_t>(n) * kLabelBytes + bytes.held, job);
  const std::shared_ptr<unsigned char> out = allocate(need, job);
  auto* const values = reinterpret_cast<double*>(out.get());
  std::vector<std::string_view> labels(static_cast<std::size_t>(n));
  std::vector<Chunk> chunks = found.chunks;
  const auto count = static_cast<std::int64_t>(chunks.size());
  core::parallel_for(ctx, count, [&](std::int64_t i, int worker) {
    Scanner(text_of(bytes), file, chunks[static_cast<std::size_t>(i)]).fill(ctx, values, d, found.base, labels);
    if (worker == 0) ctx.report("read", 0.5 + 0.5 * static_cast<double>(i) / static_cast<double>(count));
  });
  Table table;
  table.format = FileFormat::libsvm;
  table.view = TableView(values, n, d);
  table.shape = {n, d};
  // 0 stands where there is no label: the format cannot leave it out.
  const bool any = std::any_of(labels.begin(), labels.end(), [](std::string_view label) { return label != "0"; });
  if (any) table.labels = labels_from_texts(ctx, labels);
  table.stored_values = found.shape.stored;
  table.storage = out;
  return table;
}

}  // namespace vicinal::io
