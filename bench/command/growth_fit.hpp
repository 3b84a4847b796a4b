// How a measured quantity grows with a size: the exponent of a power that fits it, where it bends, and which counter
// follows it there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vicinal::cli {

/// "1,000,000".
std::string with_commas(std::int64_t value);

/// One size of a sweep.
struct GrowthPoint {
  std::int64_t size = 0;
  std::vector<double> seconds;           ///< of each timed call
  std::optional<double> peak_bytes;      ///< of the first call, above what there was before it
  std::map<std::string, double> counts;  ///< counters of the call, by name
  std::map<std::string, double> parts;   ///< seconds of parts of the last call, by name
  std::string how;                       ///< the method that ran

  [[nodiscard]] double least() const;
  [[nodiscard]] double median() const;
};

/// value = c size^exponent, by least squares of the logarithms.
struct GrowthFit {
  double exponent = 0;
  double error = 0;   ///< standard error of the exponent
  double margin = 0;  ///< half of its 95 % interval, by Student's t
  double factor = 0;  ///< c
};

/// Of at least three points with values above 0; else nothing.
std::optional<GrowthFit> fit_growth(const std::vector<double>& sizes, const std::vector<double>& values);

/// The exponent of each step between neighboring sizes.
std::vector<double> step_exponents(const std::vector<double>& sizes, const std::vector<double>& values);

/// A range of steps whose exponents are all above, or all below, the interval of the fit.
struct GrowthBend {
  std::int64_t from = 0;  ///< size
  std::int64_t to = 0;
  double exponent = 0;  ///< of time, from `from` to `to`
  std::string counter;  ///< that bends there, too, and grows as the time does; empty: none
  double counter_exponent = 0;
  std::string reason;  ///< a sentence
};

/// A step is part of a bend if its exponent is outside of the interval, and differs from the fitted exponent by at
/// least 0.1 and by more than the spread of the calls explains: the logarithms of median by least of its two points,
/// divided by the logarithm of the sizes' ratio. None without a fit. `letter` is the size's: n.
std::vector<GrowthBend> find_bends(const std::vector<GrowthPoint>& points, const std::string& letter);

}  // namespace vicinal::cli
