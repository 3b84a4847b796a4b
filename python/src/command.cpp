// The command `vicinal`, whose sources the extension contains.
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "functions.hpp"
#include "run_vicinal.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

int command_call(const nb::list& arguments) {
  std::vector<std::string> words;
  for (const nb::handle one : arguments) {
    const auto word = nb::cast<nb::bytes>(one);
    words.emplace_back(word.c_str(), word.size());
  }
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const nb::gil_scoped_release released;
  return cli::run_vicinal(static_cast<int>(words.size()), pointers.data());
}

}  // namespace

void bind_command(nb::module_& module) {
  module.def("command", &command_call, nb::arg("arguments"));
}

}  // namespace vicinal::python
