// See image_shape.hpp.
#include "base/image_shape.hpp"

#include <fmt/core.h>

#include <cstdio>

#include "vicinal/error.hpp"

namespace vicinal::cli {

report::ImageShape image_shape_of(const std::string& option, const Table& table) {
  report::ImageShape shape;
  if (option.empty()) {
    if (table.shape.size() == 3) shape = {table.shape[1], table.shape[2]};
    return shape;
  }
  long long height = 0;
  long long width = 0;
  int used = 0;
  if (std::sscanf(option.c_str(), "%lldx%lld%n", &height, &width, &used) != 2 ||
      used != static_cast<int>(option.size()) || height < 1 || width < 1 || height > 65535 || width > 65535) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--image-shape: '{}' is not of the form 28x28", option));
  }
  if (height * width != table.view.cols()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--image-shape: {} has {} pixels, the table has {} columns",
                                                         option, height * width, table.view.cols()));
  }
  return {height, width};
}

}  // namespace vicinal::cli
