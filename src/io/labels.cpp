// See labels.hpp; core::encode sorts and numbers the classes.
#include "io/labels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory_resource>
#include <optional>
#include <string>

#include "core/encode.hpp"
#include "core/memory.hpp"
#include "io/bad_data.hpp"
#include "io/csv_layout.hpp"
#include "io/element.hpp"
#include "io/scan.hpp"

namespace vicinal::io {
namespace {

constexpr double kLargestLabel = 0x1p53;
constexpr std::int64_t kPollLabels = std::int64_t{1} << 16;

/// Polls at every so many labels.
void poll(const Context& ctx, std::int64_t labels) {
  if (labels % kPollLabels == 0) ctx.check_cancelled();
}

std::optional<std::int64_t> whole(double value) {
  if (!(std::fabs(value) <= kLargestLabel) || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) return value;
  double real = 0;
  if (parse_number(text, &real) != NumberKind::number) return std::nullopt;
  return whole(real);
}

void append_utf8(std::string& text, std::uint32_t c) {
  if (c < 0x80) {
    text.push_back(static_cast<char>(c));
    return;
  }
  if (c < 0x800) {
    text.push_back(static_cast<char>(0xc0 | c >> 6));
  } else {
    if (c < 0x10000) {
      text.push_back(static_cast<char>(0xe0 | c >> 12));
    } else {
      text.push_back(static_cast<char>(0xf0 | c >> 18));
      text.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3f)));
    }
    text.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
  }
  text.push_back(static_cast<char>(0x80 | (c & 0x3f)));
}

/// Element i of an 'S' or 'U' array: NumPy pads with zeros at the end.
std::string text_element(const RawArray& array, std::int64_t i) {
  const ElementType& type = array.header.type;
  const unsigned char* at = array.bytes.data + i * type.size;
  std::string text;
  if (type.kind == ElementKind::bytes) {
    text.assign(reinterpret_cast<const char*>(at), static_cast<std::size_t>(type.size));
    text.erase(text.find_last_not_of('\0') + 1);
    return text;
  }
  std::int64_t length = type.size / 4;
  while (length > 0 && load<std::uint32_t>(at + 4 * (length - 1), type.big_endian) == 0) --length;
  for (std::int64_t c = 0; c < length; ++c) {
    const auto code = load<std::uint32_t>(at + 4 * c, type.big_endian);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      bad(array.where, fmt::format("has text that is not Unicode in row {}", i));
    }
    append_utf8(text, code);
  }
  return text;
}

std::int64_t integer_element(const RawArray& array, std::int64_t i) {
  const ElementType& type = array.header.type;
  const unsigned char* at = array.bytes.data + i * type.size;
  const bool big = type.big_endian;
  if (type.kind == ElementKind::boolean) return *at != 0 ? 1 : 0;
  if (type.kind == ElementKind::signed_int) {
    if (type.size == 1) return load<std::int8_t>(at, big);
    if (type.size == 2) return load<std::int16_t>(at, big);
    if (type.size == 4) return load<std::int32_t>(at, big);
    return load<std::int64_t>(at, big);
  }
  if (type.kind == ElementKind::unsigned_int) {
    if (type.size == 1) return *at;
    if (type.size == 2) return load<std::uint16_t>(at, big);
    if (type.size == 4) return load<std::uint32_t>(at, big);
    const auto value = load<std::uint64_t>(at, big);
    if (value >> 63 != 0) bad(array.where, fmt::format("has a label beyond 2^63 in row {}", i));
    return static_cast<std::int64_t>(value);
  }
  if (type.size == 2) bad(array.where, "has labels of a 16-bit float type; labels are integers or text");
  const double value = type.size == 4 ? static_cast<double>(load<float>(at, big)) : load<double>(at, big);
  const std::optional<std::int64_t> label = whole(value);
  if (!label) bad(array.where, fmt::format("has the label {} in row {}, which is no whole number", value, i));
  return *label;
}

}  // namespace

Labels labels_from_array(const Context& ctx, const RawArray& array) {
  const ArrayHeader& header = array.header;
  if (header.shape.size() != 1 && !(header.shape.size() == 2 && header.shape[1] == 1)) {
    bad(array.where, fmt::format("has shape ({}), but labels are one column", fmt::join(header.shape, ", ")));
  }
  const std::int64_t n = header.shape[0];
  if (n == 0) bad(array.where, "has no labels");
  const bool text = header.type.kind == ElementKind::bytes || header.type.kind == ElementKind::text;
  const auto each = static_cast<std::uint64_t>(text ? sizeof(std::string) + header.type.size : sizeof(std::int64_t));
  std::uint64_t need = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(n), each, &need)) need = UINT64_MAX;
  core::require_memory(ctx, need, fmt::format("reading {}", array.where));
  if (text) {
    std::vector<std::string> values;
    values.reserve(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      poll(ctx, i);
      values.push_back(text_element(array, i));
    }
    return core::encode(std::vector<std::string_view>(values.begin(), values.end()), [&ctx] { ctx.check_cancelled(); });
  }
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    poll(ctx, i);
    values.push_back(integer_element(array, i));
  }
  return core::encode(values, [&ctx] { ctx.check_cancelled(); });
}

Labels labels_from_texts(const Context& ctx, const std::vector<std::string_view>& texts) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(texts.size());
  for (const std::string_view text : texts) {
    poll(ctx, std::ssize(numbers));
    const std::optional<std::int64_t> number = as_integer(text);
    if (!number) break;
    numbers.push_back(*number);
  }
  const auto check = [&ctx] { ctx.check_cancelled(); };
  return numbers.size() == texts.size() ? core::encode(numbers, check) : core::encode(texts, check);
}

Labels labels_from_lines(const Context& ctx, const Bytes& bytes, const std::string& file) {
  const std::string where = fmt::format("'{}'", file);
  const auto* p = reinterpret_cast<const char*>(bytes.data);
  const char* const end = p + bytes.size;
  skip_preamble(ctx, p, end);
  if (const std::int64_t columns = columns_of_sample(ctx, p, end); columns > 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} columns; say which one holds the labels", where, columns));
  }
  std::vector<std::string_view> labels;
  std::pmr::monotonic_buffer_resource unquoted;  // texts with doubled quotes, which take at most twice the file
  constexpr std::string_view kBlanks = " \t\r";
  for (std::int64_t lines = 0; p != end; ++lines) {
    poll(ctx, lines);
    const char* const stop = find_char(ctx, p, end, '\n');
    const char* const begin =
        find_where(ctx, p, stop, [&](char c) { return kBlanks.find(c) == std::string_view::npos; });
    p = stop == end ? end : stop + 1;
    if (begin == stop) continue;
    if (stop - begin > kMaxFieldBytes) {
      bad(where, fmt::format("has a label of more than {} MiB behind {} others", kMaxFieldBytes >> 20, labels.size()));
    }
    std::string_view line(begin, static_cast<std::size_t>(stop - begin));
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (line.size() >= 2 && line.front() == '"' && line.back() == '"') {
      Field field;
      field.text = line.substr(1, line.size() - 2);
      field.escaped = field.text.find('"') != std::string_view::npos;
      line = field.text;
      if (field.escaped) {
        const std::string text = unescape(field);
        auto* const copy = static_cast<char*>(unquoted.allocate(std::max<std::size_t>(text.size(), 1), 1));
        line = std::string_view(copy, static_cast<std::size_t>(std::copy(text.begin(), text.end(), copy) - copy));
      }
    }
    labels.push_back(line);
  }
  if (labels.empty()) bad(where, "has no labels");
  core::require_memory(ctx, labels.size() * (sizeof(std::string_view) + sizeof(std::string) + sizeof(std::int64_t)),
                       fmt::format("reading {}", where));
  std::size_t whole_numbers = 0;
  for (std::size_t i = labels.size(); i > 1 && as_integer(labels[i - 1]); --i) {
    poll(ctx, static_cast<std::int64_t>(++whole_numbers));
  }
  if (labels.size() > 1 && whole_numbers == labels.size() - 1 && !as_integer(labels[0])) labels.erase(labels.begin());
  return labels_from_texts(ctx, labels);
}

}  // namespace vicinal::io
