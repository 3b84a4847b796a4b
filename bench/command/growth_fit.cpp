// See growth_fit.hpp.
#include "command/growth_fit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/html.hpp"

namespace vicinal::cli {
namespace {

// The 97.5 % quantile of Student's t by degrees of freedom, from 1.
constexpr double kStudent[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
constexpr double kLeastBend = 0.1;  // of an exponent
constexpr double kLeastCounterBend = 0.05;
constexpr double kShortCall = 1e-3;  // seconds: below them, fixed work is a large part

std::string exponent_text(double exponent) {
  return fmt::format("{:.2f}", exponent);
}

std::string range_text(const GrowthBend& bend, const std::string& letter) {
  return fmt::format("From {} = {} to {}", letter, with_commas(bend.from), with_commas(bend.to));
}

/// Logarithm of the median by the least.
double spread_of(const GrowthPoint& point) {
  return std::log(point.median() / point.least());
}

double exponent_between(double from, double to, double from_size, double to_size) {
  return std::log(to / from) / std::log(to_size / from_size);
}

double ratio_exponent(double from, double to, const GrowthPoint& first, const GrowthPoint& last) {
  return exponent_between(from, to, static_cast<double>(first.size), static_cast<double>(last.size));
}

/// A counter that all points have, above 0; else nothing.
std::vector<double> values_of(const std::vector<GrowthPoint>& points, const std::string& counter) {
  std::vector<double> values;
  values.reserve(points.size());
  for (const GrowthPoint& point : points) {
    const auto count = point.counts.find(counter);
    if (count == point.counts.end() || !(count->second > 0)) return {};
    values.push_back(count->second);
  }
  return values;
}

/// Steps from point `first` to `last`, of a sweep with this fit.
class Explanation {
 public:
  Explanation(const std::vector<GrowthPoint>& points, const std::vector<double>& sizes, std::size_t first,
              std::size_t last, double fitted)
      : points_(points),
        sizes_(sizes),
        first_(points[first]),
        last_(points[last]),
        from_(first),
        to_(last),
        fitted_(fitted) {}

  void complete(GrowthBend& bend, const std::string& letter) const {
    bend.reason =
        fmt::format("{}, time grows as {}^{}", range_text(bend, letter), letter, exponent_text(bend.exponent));
    if (first_.how != last_.how) {  // counters of different methods count different work
      bend.reason += fmt::format("; the method changes from \"{}\" to \"{}\".", first_.how, last_.how);
      return;
    }
    find_counter(bend);
    bend.reason += "; " + cause(bend, letter) + ".";
  }

 private:
  /// A counter that bends to the same side, and whose exponent is nearer to the time's than the fitted one is.
  void find_counter(GrowthBend& bend) const {
    const double away = bend.exponent - fitted_;
    double nearest = std::abs(away) / 2;
    for (const auto& [name, count] : first_.counts) {
      const std::vector<double> values = values_of(points_, name);
      const auto fit = values.empty() ? std::nullopt : fit_growth(sizes_, values);
      if (!fit) continue;
      const double exponent = ratio_exponent(values[from_], values[to_], first_, last_);
      const bool bends = (exponent - fit->exponent) * (away > 0 ? 1 : -1) >= kLeastCounterBend;
      if (!bends || std::abs(exponent - bend.exponent) > nearest) continue;
      nearest = std::abs(exponent - bend.exponent);
      bend.counter = name;
      bend.counter_exponent = exponent;
    }
  }

  [[nodiscard]] std::string cause(const GrowthBend& bend, const std::string& letter) const {
    if (!bend.counter.empty()) {
      return fmt::format("{} grow as {}^{}", bend.counter, letter, exponent_text(bend.counter_exponent));
    }
    if (first_.least() < kShortCall && bend.exponent < fitted_) {
      return fmt::format("a call of {} = {} takes {} ms, and fixed work is a large part of it", letter,
                         with_commas(first_.size), report::short_number(first_.least() * 1e3, 2));
    }
    const auto largest = std::max_element(first_.counts.begin(), first_.counts.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto values = largest == first_.counts.end() ? std::vector<double>() : values_of(points_, largest->first);
    if (values.empty()) return "no counter explains it";
    return fmt::format("no counter bends so: time divided by {} is {} ns, then {} ns", largest->first,
                       report::short_number(first_.least() / values[from_] * 1e9, 3),
                       report::short_number(last_.least() / values[to_] * 1e9, 3));
  }

  const std::vector<GrowthPoint>& points_;
  const std::vector<double>& sizes_;
  const GrowthPoint& first_;
  const GrowthPoint& last_;
  std::size_t from_;
  std::size_t to_;
  double fitted_;
};

}  // namespace

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

double GrowthPoint::least() const {
  return *std::min_element(seconds.begin(), seconds.end());
}

double GrowthPoint::median() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::optional<GrowthFit> fit_growth(const std::vector<double>& sizes, const std::vector<double>& values) {
  const std::size_t n = sizes.size();
  if (n < 3 || std::any_of(values.begin(), values.end(), [](double value) { return !(value > 0); })) return {};
  const auto count = static_cast<double>(n);
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < n; ++i) {
    mean_x += std::log(sizes[i]) / count;
    mean_y += std::log(values[i]) / count;
  }
  double xx = 0;
  double xy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = std::log(sizes[i]) - mean_x;
    xx += x * x;
    xy += x * (std::log(values[i]) - mean_y);
  }
  if (!(xx > 0)) return {};
  GrowthFit fit;
  fit.exponent = xy / xx;
  fit.factor = std::exp(mean_y - fit.exponent * mean_x);
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double rest = std::log(values[i]) - mean_y - fit.exponent * (std::log(sizes[i]) - mean_x);
    squares += rest * rest;
  }
  fit.error = std::sqrt(squares / (count - 2) / xx);
  fit.margin = fit.error * kStudent[std::min(n - 3, std::size(kStudent) - 1)];
  return fit;
}

std::vector<double> step_exponents(const std::vector<double>& sizes, const std::vector<double>& values) {
  std::vector<double> steps;
  steps.reserve(sizes.size());
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    steps.push_back(exponent_between(values[i - 1], values[i], sizes[i - 1], sizes[i]));
  }
  return steps;
}

std::vector<GrowthBend> find_bends(const std::vector<GrowthPoint>& points, const std::string& letter) {
  std::vector<double> sizes;
  std::vector<double> least;
  sizes.reserve(points.size());
  least.reserve(points.size());
  for (const GrowthPoint& point : points) {
    sizes.push_back(static_cast<double>(point.size));
    least.push_back(point.least());
  }
  const auto fit = fit_growth(sizes, least);
  if (!fit) return {};
  const std::vector<double> steps = step_exponents(sizes, least);
  std::vector<int> side(steps.size() + 1);  // -1 and 1: below and above the interval; the last is 0
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double noise = (spread_of(points[i]) + spread_of(points[i + 1])) / std::log(sizes[i + 1] / sizes[i]);
    const double away = steps[i] - fit->exponent;
    if (std::abs(away) > std::max({fit->margin, noise, kLeastBend})) side[i] = away > 0 ? 1 : -1;
  }
  std::vector<GrowthBend> bends;
  std::size_t first = 0;
  for (std::size_t i = 1; i < side.size(); ++i) {
    if (side[i] == side[first]) continue;
    if (side[first] != 0) {
      GrowthBend bend{points[first].size,
                      points[i].size,
                      exponent_between(least[first], least[i], sizes[first], sizes[i]),
                      "",
                      0,
                      ""};
      Explanation(points, sizes, first, i, fit->exponent).complete(bend, letter);
      bends.push_back(bend);
    }
    first = i;
  }
  return bends;
}

}  // namespace vicinal::cli
