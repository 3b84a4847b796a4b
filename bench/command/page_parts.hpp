// What the pages of `vicinal-bench` share.
#pragma once

#include <string>

#include "report/drawing.hpp"

namespace vicinal::cli {

/// Attributes of a cell of sentences: words are not broken where a table scrolls.
inline constexpr const char* kWords = "style=\"min-width:150px;overflow-wrap:break-word\"";

/// HTML of a drawing with its label below. Drawings scroll where they would be illegibly small.
std::string chart(const report::Drawing& drawing);

}  // namespace vicinal::cli
