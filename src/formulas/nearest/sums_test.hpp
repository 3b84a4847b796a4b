// Rows that are made up to find out how a matrix unit adds, and how far its sums are from the truth. No maker documents
// what the bound of half_screen.hpp rests on, so a device is tried before it is trusted: with random rows; positive
// ones; magnitudes without a scale, subnormal ones among them; and one large column, early, late or taken back by
// another, beside many small ones whose products lie just above and below what an alignment keeps. Exact products are
// whole numbers of 2^-48: a float16 is one of 2^-24 and below 2^40, 8192 products of two are below 2^93. No column is
// left for bounds: all count as columns of data, for which the proof allows an error of beta kappa_x kappa_y. So the
// largest |error| / (kappa_x kappa_y) is what is to be held against beta.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/philox.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::core {

struct SumsOperands {
  std::int64_t rows;
  std::int64_t columns;
  std::vector<std::uint16_t> halves;  ///< [rows, columns]
  std::vector<std::int64_t> units;    ///< the same in 2^-24
  std::vector<double> kappa;          ///< [rows]
};

namespace sums_test {

/// Column `col` of row `number` of the queries or of the table.
inline double element(bool query, std::int64_t number, std::int64_t col, std::int64_t columns) {
  constexpr std::int64_t kKinds = 8;
  constexpr double kLarge = 0x1p7;
  const auto words = philox(1, query ? 1 : 0, static_cast<std::uint64_t>(number << 32 | col));
  const double some = words[0] * 0x1p-31 - 1;  // in [-1, 1)
  // Of a query and a row together 20 bits, and up to 30, below kLarge squared.
  const double small = std::ldexp(query ? kLarge * (1 - 0x1p-11) : kLarge, -10 - static_cast<int>(number / kKinds % 6));
  switch (number % kKinds) {
    case 0:
      return kLarge * some;
    case 1:
      return kLarge * std::fabs(some);
    case 2:
      return std::ldexp(kLarge * some, -static_cast<int>(words[1] % 32));
    case 3:
      return kHalfNormal * some;
    case 4:
      return col == 0 ? kLarge : small;
    case 5:
      return col == 0 ? kLarge : (col % 2 == 0 ? small : -small);
    case 6:
      return col == columns - 1 ? kLarge : small;
    default:
      if (col == columns / 4) return kLarge;
      return col == columns / 2 ? (query ? -kLarge : kLarge) : small;
  }
}

/// How far a sum is from the exact one, which is given in units of 2^-48.
inline double error_of(float sum, __int128 exact) {
  if (!(std::fabs(sum) < 0x1p60F)) return HUGE_VAL;  // NaN included
  const double units = static_cast<double>(sum) * 0x1p48;
  const double whole = std::trunc(units);
  return std::fabs(static_cast<double>(exact - static_cast<__int128>(whole)) - (units - whole)) * 0x1p-48;
}

}  // namespace sums_test

inline SumsOperands sums_operands(bool query, std::int64_t rows, std::int64_t columns) {
  SumsOperands made{rows, columns, {}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    HalfSums sums;
    for (std::int64_t col = 0; col < columns; ++col) {
      made.halves.push_back(add_half(sums_test::element(query, row, col, columns), half_weight(col, columns), sums));
      made.units.push_back(static_cast<std::int64_t>(half_value(made.halves.back()) * 0x1p24));
    }
    made.kappa.push_back(half_row(sums).kappa);
  }
  return made;
}

/// The largest |error| / (kappa_x kappa_y) of sums [queries, rows]; infinity where one is no number.
inline double largest_sum_error(const SumsOperands& queries, const SumsOperands& rows, std::span<const float> sums) {
  double largest = 0;
  const auto columns = static_cast<std::size_t>(rows.columns);
  for (std::size_t q = 0; q < queries.kappa.size(); ++q) {
    for (std::size_t r = 0; r < rows.kappa.size(); ++r) {
      const std::int64_t* x = queries.units.data() + q * columns;
      const std::int64_t* y = rows.units.data() + r * columns;
      __int128 exact = 0;
      for (std::size_t col = 0; col < columns; ++col) exact += static_cast<__int128>(x[col]) * y[col];
      const double error = sums_test::error_of(sums[q * rows.kappa.size() + r], exact);
      largest = std::max(largest, error / (queries.kappa[q] * rows.kappa[r]));
    }
  }
  return largest;
}

}  // namespace vicinal::core
