// What `vicinal info` tells of a column: its type, how many values differ, what is missing, and its range.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "vicinal/io.hpp"

namespace vicinal::io {

class ColumnSummary {
 public:
  std::string name;
  std::int64_t finite = 0;  ///< numbers, truths among them
  std::int64_t whole = 0;   ///< of these
  std::int64_t truths = 0;  ///< of these: True, no and the like
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t missing = 0;  ///< beside NaN: empty fields, NA and the like
  std::int64_t texts = 0;
  std::int64_t dates = 0;    ///< of these, times among them
  std::int64_t written = 0;  ///< of these: numbers as people write them, with %, a currency or thousands apart
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::string first_text;  ///< in ascending order of bytes, cut at 64
  std::string last_text;

  /// Values that differ are counted as long as they take at most so many bytes.
  void limit(std::uint64_t bytes) noexcept { left_ = bytes; }
  void add(double value) {
    if (std::isnan(value)) {
      ++nan;
    } else if (std::isinf(value)) {
      ++infinite;
    } else {
      ++finite;
      if (value == std::floor(value)) ++whole;
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
      sum += value;
      keep(numbers_, value == 0 ? 0.0 : value, 0);
    }
  }
  void add(std::string_view text) {
    constexpr std::size_t kMost = 64;
    const std::string_view begin = text.substr(0, kMost);
    if (texts == 0 || begin < first_text) first_text = begin;
    if (texts == 0 || begin > last_text) last_text = begin;
    ++texts;
    keep(words_, std::string(text), text.size());
  }

  [[nodiscard]] double mean() const { return sum / static_cast<double>(finite); }
  /// Values that differ, without those missing; at least so many where not all are counted.
  [[nodiscard]] std::int64_t distinct() const noexcept {
    return static_cast<std::int64_t>(numbers_.size() + words_.size());
  }
  [[nodiscard]] bool counts_all() const noexcept { return counts_; }
  /// "whole", "number", "truth", "text", "date", "written number", or "none" where nothing is there.
  [[nodiscard]] std::string_view type() const noexcept {
    if (texts > 0) return dates == texts ? "date" : written == texts ? "written number" : "text";
    if (truths > 0 && truths == finite) return "truth";
    if (finite > 0 && whole == finite && infinite == 0) return "whole";
    return finite + infinite + nan > 0 ? "number" : "none";
  }

 private:
  template <class Set, class Value>
  void keep(Set& set, Value&& value, std::uint64_t bytes) {
    if (!counts_) return;
    constexpr std::uint64_t kEntry = 64;  // of a hash set
    if (left_ < kEntry + bytes) {
      counts_ = set.contains(value);
    } else if (set.insert(std::forward<Value>(value)).second) {
      left_ -= kEntry + bytes;
    }
  }

  std::uint64_t left_ = UINT64_MAX;
  bool counts_ = true;
  std::unordered_set<double> numbers_;
  std::unordered_set<std::string> words_;
};

struct TextSummary {
  std::int64_t rows = 0;
  std::vector<ColumnSummary> columns;  ///< of the table, in order
  std::vector<std::string> notes;      ///< as Table::notes
};

/// Each column of delimited text or JSON lines, whatever is in it; columns that `options` drop and an index are left
/// out. `distinct_bytes`: what is kept to count values that differ, all columns together. Throws `bad_data` naming the
/// line of a row with another number of fields and of quotes out of place, and what `read_table` throws. One pass,
/// O(bytes).
VICINAL_API TextSummary summarize_text(const Context& ctx, const std::filesystem::path& path,
                                       const ReadOptions& options, std::uint64_t distinct_bytes);

}  // namespace vicinal::io
