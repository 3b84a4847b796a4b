#include "errors.hpp"

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <string_view>

#include "vicinal/error.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// The word for a code, in Python as in docs/python.md.
const char* code_word(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::bad_data:
      return "bad_data";
    case ErrorCode::io:
      return "io";
    case ErrorCode::over_memory:
      return "over_memory";
    case ErrorCode::device_unavailable:
      return "device_unavailable";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::internal:
      break;
  }
  return "internal";
}

/// What C++ calls `radii` is an array as `radius` here.
std::string in_names_of_python(const std::string& sentence) {
  constexpr std::string_view kRadii = "radii: ";
  return sentence.starts_with(kRadii) ? "radius: " + sentence.substr(kRadii.size()) : sentence;
}

}  // namespace

void translate_errors() {
  nb::register_exception_translator(
      [](const std::exception_ptr& pointer, void*) {
        try {
          std::rethrow_exception(pointer);
        } catch (const Error& error) {
          const nb::object kind = nb::module_::import_("vicinal._errors").attr("BY_CODE")[code_word(error.code())];
          PyErr_SetObject(kind.ptr(), nb::str(in_names_of_python(error.what()).c_str()).ptr());
        }
      },
      nullptr);
}

}  // namespace vicinal::python
