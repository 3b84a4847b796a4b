// What the pages of `vicinal-bench` share.
#pragma once

#include <string>

#include "report/drawing.hpp"

namespace vicinal::cli {

/// Attributes of a cell of sentences: words are not broken where a table scrolls.
inline constexpr const char* kWords = "style=\"min-width:150px;overflow-wrap:break-word\"";

/// A text of words and numbers as HTML. Numbers whose thousands are apart (12 345) do not break, words may.
std::string words(const std::string& text);

/// HTML of a drawing with its label below. Drawings scroll where they would be illegibly small.
std::string chart(const report::Drawing& drawing);

}  // namespace vicinal::cli
