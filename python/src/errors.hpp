// Errors: vicinal::Error becomes the class of vicinal._errors that its code names. What Python itself raised in a
// callback or a signal handler is carried through the library and raised again.
#pragma once

#include <nanobind/nanobind.h>

namespace vicinal::python {

/// Makes every vicinal::Error that leaves a function of the module the Python error of its code.
void translate_errors(const nanobind::module_& module);

}  // namespace vicinal::python
