// Settings: keywords to members of option structs. A table of fields for each struct (options.cpp) is all there is;
// names, types, defaults and errors follow from it.
#pragma once

#include <nanobind/nanobind.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "words.hpp"

namespace vicinal::python {

class Call;

/// Throws `invalid_argument`: "k: True is not allowed; expected a whole number".
[[noreturn]] void refuse(const char* name, nanobind::handle value, const std::string& expected);

/// A keyword that was given.
struct Setting {
  const char* name;
  nanobind::handle value;
  Call& call;

  void read(bool& out) const;
  void read(std::int64_t& out) const;  ///< whatever has __index__, but no bool
  void read(std::uint64_t& out) const;
  void read(double& out) const;  ///< whatever has __float__, but no bool and no text
  void read(std::string& out) const;
  void read(char& out) const;  ///< a text of one character
  void read(std::vector<std::string>& out) const;
  void read(std::vector<double>& out) const;
  void read(Words auto& out) const { out = from_text(text(), out); }
  template <class T>
  void read(std::optional<T>& out) const {
    read(out.emplace());
  }
  /// Whether it has elements, and is no text.
  [[nodiscard]] bool is_array() const;
  /// Weights of neighbors: a word, or a function of an array of distances that returns as many weights.
  void read_weights(Weighting& out, WeightFn& custom) const;
  /// Or an array of them.
  void read_weights(Weighting& out, WeightFn& custom, std::span<const double>& given) const;
  void read(std::span<const double>& out) const;
  void read(std::span<const std::int64_t>& out) const;
  void read_filter(std::span<const std::uint64_t>& out) const;  ///< bool [n]
  void read_table(TableView& out) const;

 private:
  [[nodiscard]] std::string text() const;
};

/// A default as Python shows it.
inline nanobind::object shown(std::same_as<bool> auto value) {
  return nanobind::bool_(value);
}
inline nanobind::object shown(std::int64_t value) {
  return nanobind::int_(value);
}
inline nanobind::object shown(std::uint64_t value) {
  return nanobind::int_(value);
}
inline nanobind::object shown(double value) {
  return nanobind::float_(value);
}
inline nanobind::object shown(Words auto value) {
  return nanobind::str(std::string(word_of(value)).c_str());
}
inline nanobind::object shown(const std::string& value) {
  return nanobind::str(value.c_str());
}
inline nanobind::object shown(const std::vector<std::string>&) {
  return nanobind::make_tuple();
}
nanobind::object shown(const std::vector<double>& values);
// What depends on the call.
template <class T>
nanobind::object shown(std::span<const T>) {
  return nanobind::none();
}
template <class T>
nanobind::object shown(const std::optional<T>&) {
  return nanobind::none();
}
inline nanobind::object shown(char) {
  return nanobind::none();
}

template <class Options>
struct Field {
  const char* name;
  void (*set)(Options&, const Setting&);
  nanobind::object (*get)(const Options&);
};
template <class Options>
using Fields = std::vector<Field<Options>>;

/// A struct as a dictionary of its fields.
template <class Options>
nanobind::dict dict_of(const Fields<Options>& fields, const Options& options) {
  nanobind::dict all;
  for (const Field<Options>& field : fields) all[field.name] = field.get(options);
  return all;
}

template <class Options, class Value>
Options owner_of(Value Options::*);

/// The field of a member, named as in C++.
template <auto Member, class Options = decltype(owner_of(Member))>
Field<Options> field(const char* name) {
  return {name, [](Options& options, const Setting& setting) { setting.read(options.*Member); },
          [](const Options& options) { return shown(options.*Member); }};
}

}  // namespace vicinal::python
