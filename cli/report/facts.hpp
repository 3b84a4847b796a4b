// What every report says at its top: figures, and the facts of what was run.
#pragma once

#include <string>

namespace vicinal::cli::report {

/// A name and its value in a list of facts; escaped here. `wide` ones take a line of their own.
std::string fact(const std::string& name, const std::string& value, bool wide = false);
/// A value, already escaped, over its name.
std::string figure(const std::string& value, const std::string& name);

}  // namespace vicinal::cli::report
