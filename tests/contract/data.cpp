// Families and layouts of data.hpp. Values that padding leaves between the elements are NaN, so that reading one shows.

#include "data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace vicinal::contract {

namespace {

constexpr double kPi = 3.14159265358979323846;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }
  double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * kPi * uniform()); }
  std::vector<double> normals(std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& v : values) v = normal();
    return values;
  }

 private:
  std::mt19937_64 random_;
};

// Calls fill(row, i) for each row of d values.
template <class Fill>
std::vector<double> each_row(std::int64_t rows, std::int64_t d, Fill fill) {
  std::vector<double> values(static_cast<std::size_t>(rows * d));
  for (std::int64_t i = 0; i < rows; ++i) fill(values.data() + i * d, i);
  return values;
}

// Rows that are copies of a few prototypes, in random order.
std::vector<double> copies(Draw& draw, const std::vector<double>& prototypes, std::int64_t rows, std::int64_t d) {
  const auto count = static_cast<std::int64_t>(prototypes.size()) / d;
  return each_row(rows, d, [&](double* row, std::int64_t) {
    const auto first = prototypes.begin() + draw.below(count) * d;
    std::copy(first, first + d, row);
  });
}

std::vector<double> clustered(Draw& draw, const std::vector<double>& centers, double radius, std::int64_t rows,
                              std::int64_t d) {
  std::vector<double> values = copies(draw, centers, rows, d);
  for (double& v : values) v += radius * draw.normal();
  return values;
}

std::vector<double> scaled_normals(Draw& draw, std::int64_t rows, std::int64_t d, double scale, double offset) {
  std::vector<double> values = draw.normals(rows * d);
  for (double& v : values) v = v * scale + offset;
  return values;
}

std::vector<double> rolled(Draw& draw, std::int64_t rows, std::int64_t d) {
  return each_row(rows, d, [&](double* row, std::int64_t) {
    const double angle = 1.5 * kPi * (1 + 2 * draw.uniform());
    const std::array<double, 3> point = {angle * std::cos(angle), 21 * draw.uniform(), angle * std::sin(angle)};
    for (std::int64_t j = 0; j < d; ++j) row[j] = j < 3 ? point[static_cast<std::size_t>(j)] : 0;
  });
}

// Sorts the table by distance from the first query.
void sort_by_distance(Rows& rows, std::int64_t d, bool near_first) {
  const auto n = static_cast<std::int64_t>(rows.table.size()) / d;
  std::vector<double> distance(static_cast<std::size_t>(n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      const double t = rows.table[static_cast<std::size_t>(i * d + j)] - rows.queries[static_cast<std::size_t>(j)];
      distance[static_cast<std::size_t>(i)] += near_first ? t * t : -t * t;
    }
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return distance[static_cast<std::size_t>(a)] < distance[static_cast<std::size_t>(b)];
  });
  rows.table = each_row(n, d, [&, table = rows.table](double* row, std::int64_t i) {
    const auto first = table.begin() + order[static_cast<std::size_t>(i)] * d;
    std::copy(first, first + d, row);
  });
}

// What one value of the simple families is: each value by itself, from its row and column.
double value_of(Family family, Draw& draw, const Shape& shape, std::int64_t column) {
  const double share = shape.d > 1 ? static_cast<double>(column) / static_cast<double>(shape.d - 1) : 0.5;
  switch (family) {
    case Family::integer_ties:
      return static_cast<double>(draw.below(4));
    case Family::large_column:
      return draw.normal() * (column == shape.d / 2 ? 1e4 : 1);
    case Family::column_scales:
      return draw.normal() * std::pow(10, 6 * share - 3);
    case Family::one_large_many_small:
      return column == 0 ? 8192 + draw.uniform() : 1 + 1e-3 * draw.uniform();
    case Family::images:
      return draw.below(2) == 0 ? 0 : static_cast<double>(draw.below(256));
    default:
      return draw.normal();
  }
}

Rows copied_rows(Draw& draw, const std::vector<double>& prototypes, const Shape& shape) {
  return {copies(draw, prototypes, shape.n, shape.d), copies(draw, prototypes, shape.m, shape.d)};
}

Rows clustered_rows(Draw& draw, double radius, const Shape& shape) {
  const std::vector<double> centers = draw.normals(8 * shape.d);
  return {clustered(draw, centers, radius, shape.n, shape.d), clustered(draw, centers, radius, shape.m, shape.d)};
}

Rows scaled_rows(Draw& draw, const Shape& shape, double scale, double offset) {
  return {scaled_normals(draw, shape.n, shape.d, scale, offset), scaled_normals(draw, shape.m, shape.d, scale, offset)};
}

void scale_values(std::vector<double>& values, double factor) {
  for (double& v : values) v *= factor;
}

void scale_each_row(Draw& draw, std::vector<double>& values, std::int64_t d) {
  double factor = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % static_cast<std::size_t>(d) == 0) factor = std::pow(10, -60 * draw.uniform());
    values[i] *= factor;
  }
}

Rows signed_zero_rows(Draw& draw, const Shape& shape) {
  constexpr std::array<double, 4> kValues = {-1, -0.0, 0, 1};
  const std::vector<double> prototypes = each_row(5, shape.d, [&](double* row, std::int64_t) {
    std::generate(row, row + shape.d, [&] { return kValues[static_cast<std::size_t>(draw.below(4))]; });
  });
  Rows rows = copied_rows(draw, prototypes, shape);
  for (double& v : rows.table) v = v == 0 && draw.below(2) == 0 ? -v : v;
  return rows;
}

Rows zeroed_rows(Draw& draw, const Shape& shape) {
  const auto make = [&](std::int64_t count) {
    return each_row(count, shape.d, [&](double* row, std::int64_t) {
      const bool is_zero = draw.below(3) == 0;
      for (std::int64_t j = 0; j < shape.d; ++j) row[j] = is_zero ? (draw.below(2) == 0 ? 0.0 : -0.0) : draw.normal();
    });
  };
  return {make(shape.n), make(shape.m)};
}

Rows colinear_rows(Draw& draw, const Shape& shape) {
  Rows rows = copied_rows(draw, draw.normals(4 * shape.d), shape);
  const auto stretch = [&](std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size() / static_cast<std::size_t>(shape.d); ++i) {
      const double factor = draw.below(2) == 0 ? 1 + 2 * draw.uniform() : static_cast<double>(1 + draw.below(9));
      for (std::int64_t j = 0; j < shape.d; ++j)
        values[i * static_cast<std::size_t>(shape.d) + static_cast<std::size_t>(j)] *= factor;
    }
  };
  stretch(rows.table);
  stretch(rows.queries);
  return rows;
}

Rows permuted_rows(Draw& draw, const Shape& shape) {
  std::vector<double> values = draw.normals(shape.d);
  const auto shuffled = [&](double* row, std::int64_t) {
    for (std::int64_t j = shape.d - 1; j > 0; --j) {
      std::swap(values[static_cast<std::size_t>(j)], values[static_cast<std::size_t>(draw.below(j + 1))]);
    }
    std::copy(values.begin(), values.end(), row);
  };
  // Every query is a constant row, so that all table rows are equally far but for the rounding of the sums.
  return {each_row(shape.n, shape.d, shuffled), each_row(shape.m, shape.d, [&](double* row, std::int64_t i) {
            std::fill(row, row + shape.d, static_cast<double>(i) / 7);
          })};
}

Rows mostly_duplicated_rows(Draw& draw, const Shape& shape) {
  Rows rows = copied_rows(draw, draw.normals(50 * shape.d), shape);
  for (std::vector<double>* values : {&rows.table, &rows.queries}) {
    for (std::size_t i = 0; i < values->size(); i += static_cast<std::size_t>(shape.d)) {
      if (draw.below(10) == 0) (*values)[i] += draw.normal();
    }
  }
  return rows;
}

// Row i counts through a grid whose sides are as even as they can be.
Rows grid_rows(Draw& draw, const Shape& shape) {
  const auto columns = std::min<std::int64_t>(shape.d, 4);
  const auto side =
      static_cast<std::int64_t>(std::ceil(std::pow(static_cast<double>(shape.n), 1 / static_cast<double>(columns))));
  const auto place = [&](double* row, std::int64_t i) {
    for (std::int64_t j = 0; j < shape.d; ++j, i /= side) row[j] = static_cast<double>(i % side);
  };
  return {each_row(shape.n, shape.d, place),
          each_row(shape.m, shape.d, [&](double* row, std::int64_t) { place(row, draw.below(shape.n)); })};
}

Rows rows_on_a_line(Draw& draw, const Shape& shape) {
  const std::vector<double> direction = draw.normals(shape.d);
  const auto place = [&](double* row, std::int64_t) {
    const double length = draw.normal();
    for (std::int64_t j = 0; j < shape.d; ++j) row[j] = length * direction[static_cast<std::size_t>(j)];
  };
  return {each_row(shape.n, shape.d, place), each_row(shape.m, shape.d, place)};
}

std::uint16_t to_half(float value) {
  // Cut instead of rounded: every result is a float16, which is all a test needs.
  const float clamped = std::clamp(value, -65000.0F, 65000.0F);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &clamped, sizeof bits);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const float magnitude = std::fabs(clamped);
  if (magnitude < 0x1p-14F) return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(magnitude * 0x1p24F));
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(((bits & 0x7fffffffU) - (112U << 23)) >> 13));
}

void store(double value, DType dtype, std::uint8_t* at) {
  const auto single = static_cast<float>(std::clamp(value, -3e38, 3e38));
  std::uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  const auto upper = static_cast<std::uint16_t>(bits >> 16);
  const std::uint16_t half = to_half(single);
  switch (dtype) {
    case DType::uint8:
      *at = static_cast<std::uint8_t>(
          static_cast<std::int64_t>(std::clamp(value, -1e15, 1e15) * (std::fabs(value) < 4 ? 16 : 1)));
      return;
    case DType::float16:
      std::memcpy(at, &half, 2);
      return;
    case DType::bfloat16:
      std::memcpy(at, &upper, 2);
      return;
    case DType::float32:
      std::memcpy(at, &single, 4);
      return;
    case DType::float64:
      std::memcpy(at, &value, 8);
      return;
  }
}

}  // namespace

std::string_view name_of(Family family) {
  constexpr std::array<std::string_view, kFamilies> kNames = {"gaussian",
                                                              "integer_ties",
                                                              "duplicates",
                                                              "signed_zeros",
                                                              "offset",
                                                              "large_column",
                                                              "column_scales",
                                                              "clusters_1e2",
                                                              "clusters_1e3",
                                                              "clusters_1e6",
                                                              "outliers",
                                                              "far_queries",
                                                              "very_far_queries",
                                                              "constant",
                                                              "tiny_squares",
                                                              "subnormal",
                                                              "subnormal_float",
                                                              "huge",
                                                              "one_large_many_small",
                                                              "swiss_roll",
                                                              "near_first",
                                                              "far_first",
                                                              "images",
                                                              "zero_rows",
                                                              "colinear",
                                                              "positive_offset",
                                                              "permutations",
                                                              "tiny_queries",
                                                              "row_scales",
                                                              "mostly_duplicates",
                                                              "grid",
                                                              "constant_column",
                                                              "on_a_line",
                                                              "far_outlier"};
  return kNames[static_cast<std::size_t>(family)];
}

std::string_view name_of(Layout layout) {
  constexpr std::array<std::string_view, kLayouts> kNames = {
      "contiguous", "padded", "every_other_column", "fortran", "reversed_rows", "reversed_columns", "blocks"};
  return kNames[static_cast<std::size_t>(layout)];
}

Rows make_rows(Family family, const Shape& shape, std::uint64_t seed) {
  Draw draw(seed * 1000003 + static_cast<std::uint64_t>(family));
  const auto simple = [&](std::int64_t count) {
    return each_row(count, shape.d, [&](double* row, std::int64_t) {
      for (std::int64_t j = 0; j < shape.d; ++j) row[j] = value_of(family, draw, shape, j);
    });
  };
  switch (family) {
    case Family::duplicates:
      return copied_rows(draw, draw.normals(7 * shape.d), shape);
    case Family::signed_zeros:
      return signed_zero_rows(draw, shape);
    case Family::offset:
      return scaled_rows(draw, shape, 1, 1e6);
    case Family::positive_offset:
      return scaled_rows(draw, shape, 1, 100);
    case Family::tiny_squares:
      return scaled_rows(draw, shape, 1e-160, 0);
    case Family::subnormal:
      return scaled_rows(draw, shape, 1e-310, 0);
    case Family::subnormal_float:
      return scaled_rows(draw, shape, 1e-40, 0);
    case Family::huge:
      return scaled_rows(draw, shape, 1e150, 0);
    case Family::clusters_1e2:
      return clustered_rows(draw, 1e-2, shape);
    case Family::clusters_1e3:
      return clustered_rows(draw, 1e-3, shape);
    case Family::clusters_1e6:
      return clustered_rows(draw, 1e-6, shape);
    case Family::constant:
      return {std::vector<double>(static_cast<std::size_t>(shape.n * shape.d), 1.5), draw.normals(shape.m * shape.d)};
    case Family::mostly_duplicates:
      return mostly_duplicated_rows(draw, shape);
    case Family::grid:
      return grid_rows(draw, shape);
    case Family::on_a_line:
      return rows_on_a_line(draw, shape);
    case Family::swiss_roll:
      return {rolled(draw, shape.n, shape.d), rolled(draw, shape.m, shape.d)};
    case Family::zero_rows:
      return zeroed_rows(draw, shape);
    case Family::colinear:
      return colinear_rows(draw, shape);
    case Family::permutations:
      return permuted_rows(draw, shape);
    default:
      break;
  }
  Rows rows = {simple(shape.n), simple(shape.m)};
  if (family == Family::constant_column) {
    for (std::size_t i = 0; i < rows.table.size(); i += static_cast<std::size_t>(shape.d)) rows.table[i] = 2;
  }
  if (family == Family::far_outlier) rows.table[static_cast<std::size_t>(shape.n / 2 * shape.d)] = 1e12;
  if (family == Family::tiny_queries) scale_values(rows.queries, 1e-60);
  if (family == Family::row_scales) {
    scale_each_row(draw, rows.table, shape.d);
    scale_each_row(draw, rows.queries, shape.d);
  }
  if (family == Family::far_queries) scale_values(rows.queries, 1e3);
  if (family == Family::very_far_queries) scale_values(rows.queries, 1e30);
  if (family == Family::near_first || family == Family::far_first) {
    sort_by_distance(rows, shape.d, family == Family::near_first);
  }
  if (family == Family::outliers) {
    for (std::int64_t i = 0; i < std::min<std::int64_t>(10, shape.n); ++i) {
      double* row = rows.table.data() + draw.below(shape.n) * shape.d;
      for (std::int64_t j = 0; j < shape.d; ++j) row[j] *= 1e4;
    }
  }
  return rows;
}

Stored::Stored(const std::vector<double>& rows, std::int64_t d, DType dtype, Layout layout) {
  const auto n = static_cast<std::int64_t>(rows.size()) / d;
  std::int64_t row_stride = d;
  std::int64_t col_stride = 1;
  std::int64_t origin = 0;
  if (layout == Layout::padded) row_stride = d + 3;
  if (layout == Layout::every_other_column) {
    col_stride = 2;
    row_stride = 2 * d + 1;
  }
  if (layout == Layout::fortran) {
    row_stride = 1;
    col_stride = n + 1;
  }
  if (layout == Layout::reversed_rows) {
    row_stride = -d;
    origin = (n - 1) * d;
  }
  if (layout == Layout::reversed_columns) {
    col_stride = -1;
    origin = d - 1;
  }
  const std::int64_t size = size_of(dtype);
  const std::int64_t last =
      origin + (n - 1) * std::max<std::int64_t>(row_stride, 0) + (d - 1) * std::max<std::int64_t>(col_stride, 0);
  bytes_.assign(static_cast<std::size_t>((last + 1) * size), 0xff);  // all ones are NaN in every float type
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      store(rows[static_cast<std::size_t>(i * d + j)], dtype,
            bytes_.data() + (origin + i * row_stride + j * col_stride) * size);
    }
  }
  if (layout == Layout::blocks) {
    view_ = TableView::blocks(dtype, n, d, [this, d, size](std::int64_t begin, std::int64_t end, void* out) {
      std::memcpy(out, bytes_.data() + begin * d * size, static_cast<std::size_t>((end - begin) * d * size));
    });
  } else {
    view_ = TableView(bytes_.data() + origin * size, dtype, n, d, row_stride, col_stride);
  }
}

}  // namespace vicinal::contract
