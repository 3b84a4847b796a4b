// See npy.hpp. The header is a Python dictionary literal; only the exact form that NumPy documents is accepted, bounded
// in length and depth, because the file may be hostile.
#include "io/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "io/bad_data.hpp"

namespace vicinal::io {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kMaxAxes = 32;

/// A cursor over the dictionary.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where, bool bfloat16)
      : text_(text), where_(where), bfloat16_(bfloat16) {}

  ArrayHeader parse() {
    ArrayHeader header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        header.descr = descr();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran = truth();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = shape();
      } else {
        malformed("an unknown or repeated key");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) malformed("text behind the dictionary");
    if (!has_descr || !has_order || !has_shape) malformed("no 'descr', 'fortran_order' or 'shape'");
    header.type = parse_type(header.descr, where_, bfloat16_);
    return header;
  }

 private:
  [[noreturn]] void malformed(std::string_view what) const {
    bad(where_, fmt::format("has a malformed npy header: {} (near header byte {})", what, at_));
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed(fmt::format("'{}' expected", c));
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string_view quoted() {
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) malformed("a quoted word expected");
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) malformed("a quote is not closed");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }
  std::string descr() {
    skip_blanks();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      bad(where_, "holds a structured array (records with named fields); save its fields as columns of a plain array");
    }
    return std::string(quoted());
  }
  bool truth() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    malformed("True or False expected");
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> lengths;
    expect('(');
    while (!accept(')')) {
      if (lengths.size() == kMaxAxes) malformed("more than 32 axes");
      lengths.push_back(length());
      if (!accept(',')) {
        expect(')');
        // Python reads (5) as a number, not as a shape.
        if (lengths.size() == 1) malformed("a shape of one axis needs a comma");
        break;
      }
    }
    return lengths;
  }
  std::int64_t length() {
    skip_blanks();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        malformed("a length beyond 2^63");
      }
      ++at_;
    }
    if (at_ == begin) malformed("a length expected");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return value;
  }

  std::string_view text_;
  const std::string& where_;
  bool bfloat16_;
  std::size_t at_ = 0;
};

constexpr std::array<std::string_view, 9> kWrittenTypes = {"<i8", "<f8", "<f4", "|u1", "<i4",
                                                           "<u8", "<f2", "<V2", "|S3"};

/// Bytes of an element; 0 for a type that is not written.
std::uint64_t bytes_of_type(std::string_view dtype) noexcept {
  if (dtype.starts_with("<U")) {  // characters of 4 bytes
    std::uint32_t characters = 0;
    const char* const end = dtype.data() + dtype.size();
    const auto [rest, error] = std::from_chars(dtype.data() + 2, end, characters);
    return error == std::errc() && rest == end ? std::uint64_t{4} * characters : 0;
  }
  if (std::find(kWrittenTypes.begin(), kWrittenTypes.end(), dtype) == kWrittenTypes.end()) return 0;
  return static_cast<std::uint64_t>(dtype[2] - '0');
}

}  // namespace

bool is_npy(const Bytes& bytes) noexcept {
  return bytes.size >= kMagic.size() && std::memcmp(bytes.data, kMagic.data(), kMagic.size()) == 0;
}

ArrayHeader parse_npy_header(const Bytes& bytes, const std::string& where, bool bfloat16) {
  if (!is_npy(bytes)) bad(where, "is not an npy file");
  if (bytes.size < 10) bad(where, "ends within its npy header (truncated)");
  const unsigned major = bytes.data[6];
  const unsigned minor = bytes.data[7];
  if (major < 1 || major > 3 || minor != 0) {
    bad(where, fmt::format("is of npy version {}.{}; 1.0, 2.0 and 3.0 are known", major, minor));
  }
  std::uint64_t length = bytes.data[8] | std::uint64_t{bytes.data[9]} << 8;
  std::uint64_t begin = 10;
  if (major > 1) {
    if (bytes.size < 12) bad(where, "ends within its npy header (truncated)");
    length |= std::uint64_t{bytes.data[10]} << 16 | std::uint64_t{bytes.data[11]} << 24;
    begin = 12;
  }
  if (length > kNpyHeaderLimit - 12) bad(where, fmt::format("has an npy header of {} bytes, which is absurd", length));
  if (length > bytes.size - begin) bad(where, "ends within its npy header (truncated)");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data + begin), length);
  ArrayHeader header = HeaderParser(text, where, bfloat16).parse();
  header.offset = begin + length;
  return header;
}

RawArray parse_npy(const Bytes& bytes, const std::string& where, bool bfloat16) {
  RawArray array;
  array.header = parse_npy_header(bytes, where, bfloat16);
  array.where = where;
  const std::uint64_t expected = count_bytes(array.header, where);
  const std::uint64_t found = bytes.size - array.header.offset;
  if (found != expected) {
    bad(where, fmt::format("has {} bytes of elements where its shape ({}) of type '{}' needs {}", found,
                           fmt::join(array.header.shape, ", "), array.header.descr, expected));
  }
  array.bytes = bytes;
  array.bytes.data += array.header.offset;
  array.bytes.size = found;
  return array;
}

std::uint64_t bytes_of(const ArrayView& array) {
  std::uint64_t bytes = bytes_of_type(array.dtype);
  if (bytes == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("dtype '{}' cannot be written; {} and <U with a number of characters can", array.dtype,
                            fmt::join(kWrittenTypes, ", ")));
  }
  for (const std::int64_t length : array.shape) {
    if (length < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(length), &bytes)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("shape ({}) cannot be written", fmt::join(array.shape, ", ")));
    }
  }
  if (bytes > 0 && array.data == nullptr) {
    throw Error(ErrorCode::invalid_argument, "data of the array to write is null");
  }
  return bytes;
}

std::string make_npy_header(const ArrayView& array) {
  constexpr std::size_t kAlignment = 64;
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", array.dtype,
                                 fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  const std::size_t unpadded = 10 + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text.push_back('\n');
  std::string header(kMagic);
  header.push_back('\1');
  header.push_back('\0');
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

}  // namespace vicinal::io
