// What a model's file says, read piece by piece: every question that has no good answer is a refusal that names the
// file. Numbers are written as the shortest text that reads back as the same bits.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "ops/nearest/index_file.hpp"

namespace vicinal::ops {

template <class Number>
std::string text_of(Number value) {
  std::array<char, 40> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

class ModelReader {
 public:
  ModelReader(const FileKind& kind, const std::filesystem::path& path, const ModelParts& parts)
      : kind_(kind), path_(path), parts_(parts) {}

  const std::string& text(const std::string& name) const;
  template <class Number>
  Number number(const std::string& name) const {
    const std::string& digits = text(name);
    Number value{};
    const char* const end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) refuse("its '" + name + "' is not a number");
    return value;
  }
  /// from(text), which throws `invalid_argument` for a name that it does not know.
  template <class From>
  auto named(const std::string& name, const From& from) const {
    try {
      return from(text(name));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      refuse("its '" + name + "' is not known");
    }
  }
  /// Null where the file has no such array. A dimension of -1 is any.
  const ModelArray* array(const std::string& name, const char* dtype, const std::vector<std::int64_t>& shape);
  template <class Value>
  static std::vector<Value> values(const ModelArray& array) {
    std::int64_t size = 1;
    for (const std::int64_t dim : array.shape) size *= dim;
    std::vector<Value> read(static_cast<std::size_t>(size));
    std::memcpy(read.data(), array.data, read.size() * sizeof(Value));
    return read;
  }
  void require(bool right, const std::string& why) const {
    if (!right) refuse(why);
  }
  /// read(); an argument that the library refuses is the file's fault.
  template <class Read>
  void checked(const Read& read) const {
    try {
      read();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      refuse(error.what());
    }
  }
  /// Every array was asked for.
  void require_all_seen() const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const FileKind& kind_;
  const std::filesystem::path& path_;
  const ModelParts& parts_;
  std::set<std::string> seen_;
};

/// Numbers in all arrays, so that their memory can be planned before they are copied.
std::uint64_t numbers_in(const ModelParts& parts);

}  // namespace vicinal::ops
