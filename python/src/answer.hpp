// Answer: what a function of the module returns, a pair (native, fields). The fields' arrays show the library's memory,
// which `native` owns; the classes of vicinal/_results.py show the fields as attributes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"

namespace vicinal::python {

class Answer {
 public:
  /// Of a result that Python keeps: an `expect` or `native` of a later call finds it as a T.
  template <class T>
  Answer(const Call& call, std::shared_ptr<const T> result)
      : native_(nanobind::cast(Native{std::move(result), &typeid(T)})) {
    fields_["copied"] = call.copied();
  }

  /// A read-only array of `values`, which the result owns.
  template <class T>
  Answer& array(const char* name, std::span<const T> values, std::initializer_list<std::int64_t> shape) {
    const std::vector<std::size_t> sizes(shape.begin(), shape.end());
    fields_[name] = nanobind::ndarray<nanobind::numpy, const T>(values.data(), sizes.size(), sizes.data(), native_);
    return *this;
  }
  template <class T>
  Answer& array(const char* name, const std::vector<T>& values, std::initializer_list<std::int64_t> shape) {
    return array(name, std::span<const T>(values), shape);
  }
  template <class T>
  Answer& array(const char* name, const std::vector<T>& values) {
    return array(name, std::span<const T>(values), {static_cast<std::int64_t>(values.size())});
  }
  /// One member of structs in a row, as an array with their stride.
  template <class Struct, class T>
  Answer& column(const char* name, const std::vector<Struct>& structs, T Struct::*member) {
    static_assert(sizeof(Struct) % sizeof(T) == 0);
    const std::size_t size = structs.size();
    const std::int64_t stride = sizeof(Struct) / sizeof(T);
    const T* const first = structs.empty() ? nullptr : &(structs.front().*member);
    fields_[name] = nanobind::ndarray<nanobind::numpy, const T>(first, 1, &size, native_, &stride);
    return *this;
  }
  template <class T>
  Answer& value(const char* name, const T& value) {
    fields_[name] = nanobind::cast(value);
    return *this;
  }
  Answer& text(const char* name, std::string_view value) {
    fields_[name] = nanobind::str(value.data(), value.size());
    return *this;
  }
  Answer& plan(const Plan& plan);
  Answer& stats(const SearchStats& stats);

  [[nodiscard]] nanobind::object done() const { return nanobind::make_tuple(native_, fields_); }

 private:
  nanobind::object native_;
  nanobind::dict fields_;
};

nanobind::dict dict_of(const Plan& plan);
nanobind::dict dict_of(const SearchStats& stats);

/// A vector as an array of its own, without a copy.
template <class T>
nanobind::object array_of(std::vector<T>&& values, std::initializer_list<std::int64_t> shape) {
  auto* const owned = new std::vector<T>(std::move(values));
  const nanobind::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, T>(owned->data(), sizes.size(), sizes.data(), owner));
}

/// A copy of a vector.
template <class T>
nanobind::object copy_of(const std::vector<T>& values) {
  return array_of(std::vector<T>(values), {static_cast<std::int64_t>(values.size())});
}

}  // namespace vicinal::python
