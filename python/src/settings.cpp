#include "settings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>

#include "answer.hpp"
#include "buffer.hpp"
#include "call.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// numpy.bool is a bool here, too, though it is no subclass.
bool is_bool(nb::handle value) {
  return nb::isinstance<nb::bool_>(value) || nb::cast<std::string>(value.type().attr("__name__")).starts_with("bool");
}

nb::object index_of(const Setting& setting, const char* expected) {
  if (is_bool(setting.value) || !PyIndex_Check(setting.value.ptr())) refuse(setting.name, setting.value, expected);
  return nb::steal(PyNumber_Index(setting.value.ptr()));
}

/// One call of a function of weights. It gets a copy: the memory is the library's, and soon other distances'.
void weigh(nb::handle function, std::span<const double> distances, std::span<double> weights) {
  nb::ndarray<nb::numpy, const double> borrowed(distances.data(), {distances.size()});
  const nb::object answer = function(borrowed.cast(nb::rv_policy::copy));
  const nb::tuple seen =
      nb::cast<nb::tuple>(nb::module_::import_("vicinal._tables").attr("vector")(answer, "weights", "float64"));
  const auto buffer = Buffer::of(seen[0]);
  const auto given = static_cast<std::size_t>(buffer->bytes()) / sizeof(double);
  if (given != weights.size()) {
    throw Error(ErrorCode::invalid_argument, "weights: the function returned " + std::to_string(given) +
                                                 " weights for " + std::to_string(weights.size()) + " distances");
  }
  std::copy_n(static_cast<const double*>(buffer->data()), given, weights.begin());
}

}  // namespace

void refuse(const char* name, nb::handle value, const std::string& expected) {
  std::string text = nb::cast<std::string>(nb::repr(value));
  constexpr std::size_t kShown = 60;
  if (text.size() > kShown) text = "a value of type " + nb::cast<std::string>(value.type().attr("__name__"));
  throw Error(ErrorCode::invalid_argument, std::string(name) + ": " + text + " is not allowed; expected " + expected);
}

void Setting::read(bool& out) const {
  if (!is_bool(value)) refuse(name, value, "True or False");
  out = nb::cast<bool>(nb::bool_(value));
}
void Setting::read(std::int64_t& out) const {
  const nb::object index = index_of(*this, "a whole number");
  out = PyLong_AsLongLong(index.ptr());
  if (out == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse(name, value, "a whole number of 64 bits");
  }
}
void Setting::read(std::uint64_t& out) const {
  const nb::object index = index_of(*this, "a whole number of at least 0");
  out = PyLong_AsUnsignedLongLong(index.ptr());
  if (out == std::numeric_limits<std::uint64_t>::max() && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse(name, value, "a whole number from 0 to 2^64 - 1");
  }
}
void Setting::read(double& out) const {
  if (is_bool(value) || nb::isinstance<nb::str>(value)) refuse(name, value, "a number");
  out = PyFloat_AsDouble(value.ptr());
  if (out == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse(name, value, "a number");
  }
}
bool Setting::is_array() const {
  if (nb::isinstance<nb::str>(value) || !nb::hasattr(value, "__len__")) return false;
  const nb::object dimensions = nb::getattr(value, "ndim", nb::none());
  return dimensions.is_none() || nb::cast<int>(dimensions) > 0;
}
std::string Setting::text() const {
  if (!nb::isinstance<nb::str>(value)) refuse(name, value, "a text");
  return nb::cast<std::string>(value);
}
void Setting::read(std::string& out) const {
  out = text();
}
void Setting::read(char& out) const {
  const std::string given = text();
  if (given.size() != 1) refuse(name, value, "a text of one character");
  out = given.front();
}
void Setting::read(std::vector<std::string>& out) const {
  if (nb::isinstance<nb::str>(value) || !nb::isinstance<nb::sequence>(value)) refuse(name, value, "a list of texts");
  for (const nb::handle one : value) Setting{name, one, call}.read(out.emplace_back());
}
void Setting::read(std::vector<double>& out) const {
  const auto given = call.numbers(name, value);
  out.assign(given.begin(), given.end());
}
nb::object shown(const std::vector<double>& values) {
  return copy_of(values);
}
void Setting::read(std::span<const double>& out) const {
  out = call.numbers(name, value);
}
void Setting::read(std::span<const std::int64_t>& out) const {
  out = call.integers(name, value);
}
void Setting::read_filter(std::span<const std::uint64_t>& out) const {
  out = call.bitmap(name, value);
}
void Setting::read_table(TableView& out) const {
  const Input input = call.host_table(name, value);
  call.keep(input.storage);
  out = input.view;
}

void Setting::read_weights(Weighting& out, WeightFn& custom, std::span<const double>& given) const {
  if (!is_array()) return read_weights(out, custom);
  out = Weighting::given;
  read(given);
}

void Setting::read_weights(Weighting& out, WeightFn& custom) const {
  if (is_array()) refuse(name, value, "'uniform', 'distance' or a function; arrays are for vote and average");
  if (!PyCallable_Check(value.ptr())) {
    read(out);
    return;
  }
  out = Weighting::custom;
  call.keep(holding(nb::borrow(value)));
  custom = [&call = call, function = value](std::span<const double> distances, std::span<double> weights) {
    call.ask_python([&] { weigh(function, distances, weights); });
  };
}

}  // namespace vicinal::python
