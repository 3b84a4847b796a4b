// Labels from text and from arrays.
#pragma once

#include <string_view>
#include <vector>

#include "io/array.hpp"
#include "io/bytes.hpp"

namespace vicinal::io {

/// Whole numbers (1, 1.0, 1e0) within 2^53, or integers within 64 bits, when every label is one; else text.
Labels labels_from_texts(const Context& ctx, const std::vector<std::string_view>& texts);

/// A text file with one label a line. A first line that is no whole number, where all others are, is a header.
Labels labels_from_lines(const Context& ctx, const Bytes& bytes, const std::string& file);

}  // namespace vicinal::io
