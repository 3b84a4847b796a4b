// Errors: vicinal::Error becomes the class of vicinal._errors that its code names. (What Python itself raised in a
// callback or a signal handler, Call and run_interruptibly carry through the library.)
#pragma once

namespace vicinal::python {

/// Makes every vicinal::Error that leaves a function of the module the Python error of its code.
void translate_errors();

}  // namespace vicinal::python
