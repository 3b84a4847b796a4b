// Whether rows are images, and of which size.
#pragma once

#include <string>

#include "report/picture.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

/// From --image-shape HxW, or from a table that was stored as [n, height, width]. Throws `invalid_argument` for any
/// other form, and where the table has another number of columns.
report::ImageShape image_shape_of(const std::string& option, const Table& table);

}  // namespace vicinal::cli
