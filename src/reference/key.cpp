// Keys of the oracle, from contract clause 1 sentence by sentence.

#include <quadmath.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "reference/fma.hpp"
#include "reference/reference.hpp"

namespace vicinal::reference {

namespace {

// "Eight accumulators a0..a7 start at +0. Column j, ascending, goes to accumulator j mod 8. The sum is the tree."
template <class AddColumn>
double accumulated(std::size_t columns, AddColumn add_column) {
  std::array<double, 8> a{};
  std::size_t j = 0;
  for (; j + 8 <= columns; j += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) a[lane] = add_column(a[lane], j + lane);
  }
  for (; j < columns; ++j) a[j % 8] = add_column(a[j % 8], j);
  const double left = (a[0] + a[4]) + (a[2] + a[6]);
  const double right = (a[1] + a[5]) + (a[3] + a[7]);
  return left + right;
}

// "The float64 nearest to the exact value", by way of 113 bits.
double power(double t, double p) {
  if (t == 0) return 0;
  return static_cast<double>(powq(t, p));
}

double squares(std::span<const double> x, std::span<const double> y) {
  return accumulated(x.size(), [&](double a, std::size_t j) {
    const double t = x[j] - y[j];
    return std::fma(t, t, a);
  });
}

double largest_difference(std::span<const double> x, std::span<const double> y) {
  double largest = 0;
  for (std::size_t j = 0; j < x.size(); ++j) largest = std::max(largest, std::fabs(x[j] - y[j]));
  return largest;
}

double share_of_differing(std::span<const double> x, std::span<const double> y) {
  std::size_t differing = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (x[j] != y[j]) ++differing;
  }
  return static_cast<double>(differing) / static_cast<double>(x.size());
}

}  // namespace

std::vector<double> unit_row(std::span<const double> x) {
  double largest = 0;
  for (const double v : x) largest = std::max(largest, std::fabs(v));
  if (largest == 0) return {};
  int exponent = 0;
  std::frexp(largest, &exponent);  // largest in [2^(exponent - 1), 2^exponent)
  std::vector<double> row(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) row[j] = std::ldexp(x[j], 1 - exponent);
  const double length =
      std::sqrt(accumulated(row.size(), [&](double a, std::size_t j) { return std::fma(row[j], row[j], a); }));
  for (double& v : row) v = v / length;
  return row;
}

VICINAL_WITH_AND_WITHOUT_FMA
double cosine_of_units(std::span<const double> u, std::span<const double> v) {
  if (u.empty() || v.empty()) return 1;
  return squares(u, v) / 2;
}

VICINAL_WITH_AND_WITHOUT_FMA
double key(Metric metric, double p, std::span<const double> x, std::span<const double> y) {
  switch (metric) {
    case Metric::euclidean:
    case Metric::sqeuclidean:
      return squares(x, y);
    case Metric::manhattan:
      return accumulated(x.size(), [&](double a, std::size_t j) { return a + std::fabs(x[j] - y[j]); });
    case Metric::chebyshev:
      return largest_difference(x, y);
    case Metric::minkowski:
      return accumulated(x.size(), [&](double a, std::size_t j) { return a + power(std::fabs(x[j] - y[j]), p); });
    case Metric::inner_product:
      return 0 - accumulated(x.size(), [&](double a, std::size_t j) { return std::fma(x[j], y[j], a); });
    case Metric::cosine:
      return cosine_of_units(unit_row(x), unit_row(y));
    case Metric::hamming:
      return share_of_differing(x, y);
  }
  throw std::logic_error("reference::key: unknown metric");
}

double distance_of(Metric metric, double p, double key) {
  if (metric == Metric::euclidean) return std::sqrt(key);
  if (metric == Metric::minkowski) return power(key, 1 / p);
  return key;
}

}  // namespace vicinal::reference
