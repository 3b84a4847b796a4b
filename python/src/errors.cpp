#include "errors.hpp"

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <string_view>

#include "base/code_name.hpp"
#include "vicinal/error.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

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
          const std::string_view word = cli::code_name(error.code());
          const nb::object kind =
              nb::module_::import_("vicinal._errors").attr("BY_CODE")[nb::str(word.data(), word.size())];
          PyErr_SetObject(kind.ptr(), nb::str(in_names_of_python(error.what()).c_str()).ptr());
        }
      },
      nullptr);
}

}  // namespace vicinal::python
