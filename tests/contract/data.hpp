// Data for the contract tests: families of rows that are hard for fast screens, stored in every dtype and layout.
// The same seed gives the same rows. Values a dtype cannot hold are clamped (uint8 wraps): any value is a valid test.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vicinal/table.hpp"

namespace vicinal::contract {

enum class Family : std::uint8_t {
  gaussian,
  integer_ties,          ///< integers 0 to 3: most distances are shared
  duplicates,            ///< seven distinct rows
  signed_zeros,          ///< few distinct rows of -1, -0, 0 and 1
  offset,                ///< 1e6 + gaussian
  large_column,          ///< one column times 1e4
  column_scales,         ///< columns from 1e-3 to 1e3
  clusters_1e2,          ///< eight clusters of relative radius 1e-2
  clusters_1e3,          ///< 1e-3
  clusters_1e6,          ///< 1e-6
  outliers,              ///< ten rows times 1e4
  far_queries,           ///< queries 1e3 times farther out
  very_far_queries,      ///< 1e30 times
  constant,              ///< every row the same
  tiny_squares,          ///< about 1e-160: squares are subnormal
  subnormal,             ///< about 1e-310: subnormal float64
  subnormal_float,       ///< about 1e-40: subnormal float32
  huge,                  ///< about 1e150: squares come close to overflow
  one_large_many_small,  ///< one large early column, then many small positive ones
  swiss_roll,
  near_first,  ///< sorted by distance from the queries
  far_first,
  images,             ///< bytes, half of them 0
  zero_rows,          ///< a third of all rows
  colinear,           ///< few directions, many lengths: cosines tie but for rounding
  positive_offset,    ///< 100 + gaussian: inner products are close to each other
  permutations,       ///< one row's values permuted: sums differ by rounding alone
  tiny_queries,       ///< queries 1e-60 times the table: nothing in float32
  row_scales,         ///< each row times 1 to 1e-60
  mostly_duplicates,  ///< nine of ten rows are copies of a row among fifty
  grid,               ///< the whole numbers of a grid, in order
  constant_column,    ///< one column is the same everywhere
  on_a_line,          ///< all rows on one line
  far_outlier,        ///< one row 1e12 away
};
inline constexpr int kFamilies = static_cast<int>(Family::far_outlier) + 1;
std::string_view name_of(Family family);

struct Shape {
  std::int64_t n = 0;  ///< table rows
  std::int64_t d = 0;  ///< columns
  std::int64_t m = 0;  ///< query rows
};

/// Table and query rows, row-major.
struct Rows {
  std::vector<double> table;
  std::vector<double> queries;
};
Rows make_rows(Family family, const Shape& shape, std::uint64_t seed);

enum class Layout : std::uint8_t {
  contiguous,
  padded,
  every_other_column,
  fortran,
  reversed_rows,
  reversed_columns,
  blocks
};
inline constexpr int kLayouts = static_cast<int>(Layout::blocks) + 1;
std::string_view name_of(Layout layout);

/// Rows stored in one dtype and layout; owns the memory its view borrows.
class Stored {
 public:
  Stored(const std::vector<double>& rows, std::int64_t d, DType dtype, Layout layout = Layout::contiguous);
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;
  [[nodiscard]] const TableView& view() const noexcept { return view_; }

 private:
  std::vector<std::uint8_t> bytes_;
  TableView view_;
};

}  // namespace vicinal::contract
