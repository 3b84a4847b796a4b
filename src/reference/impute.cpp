// See impute.hpp.
#include "reference/impute.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "reference/kmeans.hpp"

namespace vicinal::reference {
namespace {

std::vector<double> present_in(const std::vector<double>& table, std::size_t cols, std::size_t column) {
  std::vector<double> present;
  for (std::size_t at = column; at < table.size(); at += cols) {
    if (!std::isnan(table[at])) present.push_back(table[at]);
  }
  return present;
}

double mean(const std::vector<double>& values) {
  return exact_sum(values) / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double low = values[(values.size() - 1) / 2];
  const double high = values[values.size() / 2];
  const double middle = low == high ? low : low / 2 + high / 2;
  return middle == 0 ? 0.0 : middle;
}

/// NaN where the rows have no column in common.
double donor_key(std::span<const double> x, std::span<const double> y, const std::vector<bool>& is_text) {
  std::array<double, 8> a{};
  double common = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (is_text[j] || std::isnan(x[j]) || std::isnan(y[j])) continue;
    const double t = x[j] - y[j];
    a[j % 8] = std::fma(t, t, a[j % 8]);
    common += 1;
  }
  const double left = (a[0] + a[4]) + (a[2] + a[6]);
  const double right = (a[1] + a[5]) + (a[3] + a[7]);
  return (left + right) / common;
}

}  // namespace

std::vector<double> impute(const std::vector<double>& fitted, std::size_t cols, const std::vector<double>& rows,
                           const std::string& filling, std::size_t k, const std::vector<std::size_t>& texts) {
  std::vector<bool> is_text(cols, false);
  for (const std::size_t j : texts) is_text[j] = true;
  std::vector<double> filled = rows;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::size_t j = at % cols;
    if (is_text[j] || !std::isnan(rows[at])) continue;
    const std::vector<double> column = present_in(fitted, cols, j);
    filled[at] = filling == "median" ? median(column) : mean(column);
    if (filling != "knn") continue;
    std::vector<std::pair<double, std::size_t>> donors;
    for (std::size_t i = 0; i < fitted.size() / cols; ++i) {
      const double found =
          donor_key(std::span(rows).subspan(at - j, cols), std::span(fitted).subspan(i * cols, cols), is_text);
      if (!std::isnan(found) && !std::isnan(fitted[i * cols + j])) donors.emplace_back(found, i);
    }
    if (donors.empty()) continue;
    std::sort(donors.begin(), donors.end());
    donors.resize(std::min(k, donors.size()));
    std::vector<double> values;
    for (const auto& [unused, i] : donors) values.push_back(fitted[i * cols + j]);
    filled[at] = mean(values);
  }
  return filled;
}

}  // namespace vicinal::reference
