// See written_number.hpp. Each form is a small pattern of digits and marks, looked for in the whole text.
#include "io/written_number.hpp"

#include <algorithm>
#include <initializer_list>

#include "io/csv_layout.hpp"

namespace vicinal::io {
namespace {

constexpr std::size_t kMaxWritten = 40;  // longer texts are no numbers of people

bool is_decimal_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// Digits that `text` begins with are taken away; how many there were.
std::size_t take_digits(std::string_view& text) noexcept {
  std::size_t count = 0;
  while (count < text.size() && is_decimal_digit(text[count])) ++count;
  text.remove_prefix(count);
  return count;
}

bool take_prefix(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Marks of groups of three digits: comma, point, apostrophes, underscore, space, and no-break spaces.
constexpr std::string_view kGroupMarks[] = {",", ".", "'", "\xe2\x80\x99", "_", " ", "\xc2\xa0", "\xe2\x80\xaf"};

/// 1,234 or 1,234,567.8: groups of three behind one mark, and a fraction behind another.
bool has_groups(std::string_view text) noexcept {
  if (!take_prefix(text, "-")) take_prefix(text, "+");
  const std::size_t lead = take_digits(text);
  if (lead < 1 || lead > 3) return false;
  const auto* const mark =
      std::find_if(std::begin(kGroupMarks), std::end(kGroupMarks), [&](auto one) { return text.starts_with(one); });
  if (mark == std::end(kGroupMarks)) return false;
  int groups = 0;
  while (take_prefix(text, *mark)) {
    if (take_digits(text) != 3) return false;
    ++groups;
  }
  if (groups == 0 || text.empty()) return groups > 0;
  if (*mark == text.substr(0, 1) || (text[0] != '.' && text[0] != ',')) return false;
  text.remove_prefix(1);
  take_digits(text);
  return text.empty();
}

bool is_plain_or_grouped(std::string_view text) noexcept {
  double value = 0;
  return !text.empty() && (is_decimal_digit(text.back()) || text.back() == '.') &&
         (parse_number(text, &value, '.') == NumberKind::number ||
          parse_number(text, &value, ',') == NumberKind::number || has_groups(text));
}

std::string_view without_blanks(std::string_view text) noexcept {
  for (const bool front : {true, false}) {
    for (const std::string_view blank : {" ", "\xc2\xa0", "\xe2\x80\xaf"}) {
      while (front ? text.starts_with(blank) : text.ends_with(blank)) {
        front ? text.remove_prefix(blank.size()) : text.remove_suffix(blank.size());
      }
    }
  }
  return text;
}

/// "12 %", "%12".
bool is_percentage(std::string_view text) noexcept {
  if (text.ends_with('%')) return is_plain_or_grouped(without_blanks(text.substr(0, text.size() - 1)));
  return text.starts_with('%') && is_plain_or_grouped(without_blanks(text.substr(1)));
}

/// "$1,200", "-$5", "12 EUR", "€ 3,50".
bool is_money(std::string_view text) noexcept {
  constexpr std::string_view kUnits[] = {"$",   "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "\xe2\x82\xb9", "US$", "USD",
                                         "EUR", "GBP",          "CHF",      "JPY",      "CNY",          "INR"};
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return std::any_of(std::begin(kUnits), std::end(kUnits), [&](std::string_view unit) {
    return (text.starts_with(unit) && is_plain_or_grouped(without_blanks(text.substr(unit.size())))) ||
           (text.ends_with(unit) && is_plain_or_grouped(without_blanks(text.substr(0, text.size() - unit.size()))));
  });
}

/// "09:30", "9:30:15.25".
bool is_time(std::string_view text) noexcept {
  const std::size_t hours = take_digits(text);
  if (hours < 1 || hours > 2 || !take_prefix(text, ":") || take_digits(text) != 2) return false;
  if (text.empty()) return true;
  if (!take_prefix(text, ":") || take_digits(text) != 2) return false;
  return text.empty() || (take_prefix(text, ".") && take_digits(text) > 0 && text.empty());
}

/// Three numbers, or two and the name of a month, between the same marks; a time may follow.
bool is_date(std::string_view text) noexcept {
  const std::size_t first = take_digits(text);
  if (text.empty() || (text[0] != '-' && text[0] != '/' && text[0] != '.')) return false;
  const std::string_view mark = text.substr(0, 1);
  text.remove_prefix(1);
  std::size_t month = take_digits(text);
  if (month == 0) {
    while (month < text.size() &&
           ((text[month] >= 'a' && text[month] <= 'z') || (text[month] >= 'A' && text[month] <= 'Z'))) {
      ++month;
    }
    if (month != 3) return false;
    text.remove_prefix(month);
    month = 2;
  }
  if (!take_prefix(text, mark)) return false;
  const std::size_t last = take_digits(text);
  const bool year_first = first == 4 && month <= 2 && last >= 1 && last <= 2;
  const bool year_last = first >= 1 && first <= 2 && month <= 2 && (last == 4 || last == 2);
  if (!year_first && !year_last) return false;
  if (text.empty()) return true;
  if (text[0] != ' ' && text[0] != 'T') return false;
  text.remove_prefix(1);
  // Behind a time may be a zone.
  const std::size_t zone = text.find_first_of("Z+-");
  return is_time(text.substr(0, zone));
}

}  // namespace

std::optional<WrittenNumber> written_number(std::string_view text, const Dialect& dialect) noexcept {
  if (text.empty() || text.size() > kMaxWritten) return std::nullopt;
  double value = 0;
  if (parse_number(text, &value, dialect.decimal) != NumberKind::text) return std::nullopt;
  if (is_date(text)) {
    return WrittenNumber{"a date", "write dates as numbers, such as days since the first, or leave the column out"};
  }
  if (is_time(text)) return WrittenNumber{"a time", "write times as numbers, such as seconds, or leave the column out"};
  if (is_percentage(text)) return WrittenNumber{"a percentage", "write the numbers without %"};
  if (is_money(text)) return WrittenNumber{"an amount of money", "write the numbers without the currency"};
  if (has_groups(text)) {
    return WrittenNumber{"a number with marks between thousands",
                         "write the numbers without them, in Python by pandas.read_csv(..., thousands=...)"};
  }
  const bool points = dialect.decimal == '.';
  if (parse_number(text, &value, points ? ',' : '.') != NumberKind::number) return std::nullopt;
  if (!points) return WrittenNumber{"a number with a decimal point, where others have a comma", "write all alike"};
  return WrittenNumber{"a number with a decimal comma", dialect.delimiter == ','
                                                            ? "write the numbers with a decimal point, in Python by "
                                                              "pandas.read_csv(..., decimal=',')"
                                                            : "say so by the option decimal"};
}

}  // namespace vicinal::io
