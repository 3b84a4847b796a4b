// See picture.hpp.
#include "report/picture.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/input.hpp"
#include "report/png.hpp"

namespace vicinal::cli::report {

std::string picture(const TableView& table, std::int64_t row, const ImageShape& shape) {
  std::vector<double> values(static_cast<std::size_t>(table.cols()));
  for (std::int64_t j = 0; j < table.cols(); ++j) values[static_cast<std::size_t>(j)] = value_at(table, row, j);
  double low = 0;
  double high = 255;
  if (table.dtype() != DType::uint8) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    low = *least;
    high = *most > *least ? *most : *least + 1;
  }
  std::vector<std::uint8_t> gray(values.size());
  std::transform(values.begin(), values.end(), gray.begin(), [&](double value) {
    return static_cast<std::uint8_t>(std::lround(std::clamp((value - low) / (high - low), 0.0, 1.0) * 255));
  });
  return png_data_uri(gray, shape.width, shape.height);
}

}  // namespace vicinal::cli::report
