// A row of a table as a small picture.
#pragma once

#include <cstdint>
#include <string>

#include "vicinal/table.hpp"

namespace vicinal::cli::report {

/// Height 0: rows are no images.
struct ImageShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// A data URI: bytes as they are, other numbers stretched from the row's smallest to its largest value.
std::string picture(const TableView& table, std::int64_t row, const ImageShape& shape);

}  // namespace vicinal::cli::report
