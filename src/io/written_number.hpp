// Numbers as people write them, which are no numbers to a reader: by what they are called and what to do.
#pragma once

#include <optional>
#include <string_view>

#include "io/csv_fields.hpp"

namespace vicinal::io {

struct WrittenNumber {
  std::string_view what;  ///< "a date"
  std::string_view way;   ///< "write it as a number, such as days"
};

/// What a text is that a table's number may be written as: with another decimal mark than the file's, with thousands
/// separators, as money, a percentage, a date or a time. Nothing for other texts, and for numbers.
std::optional<WrittenNumber> written_number(std::string_view text, const Dialect& dialect) noexcept;

}  // namespace vicinal::io
