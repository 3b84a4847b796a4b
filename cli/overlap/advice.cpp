// See advice.hpp.
#include "overlap/advice.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/output.hpp"
#include "io/shown.hpp"
#include "overlap/output.hpp"

namespace vicinal::cli {
namespace {

constexpr double kMostModified = 0.9;    // of one-to-one groups
constexpr double kManyComplex = 0.1;     // of all groups
constexpr std::int64_t kFewGroups = 10;  // of which no share says much
constexpr double kOnItself = 0.01;       // of a layer's area

/// The value that a share of the others is below, 0 of none.
double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

/// To two digits, upwards.
double two_digits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::ceil(value / unit) * unit;
}

}  // namespace

Advice advise(const Match& match) {
  const std::vector<std::int64_t> counts = count_changes(match);
  const auto of = [&counts](Change change) { return counts[static_cast<std::size_t>(change)]; };
  const std::int64_t one_to_one = of(Change::unchanged) + of(Change::modified);
  const auto total = static_cast<std::int64_t>(match.groups.size());
  const bool all_modified = one_to_one >= kFewGroups && static_cast<double>(of(Change::modified)) >=
                                                            kMostModified * static_cast<double>(one_to_one);
  const bool much_is_complex =
      total >= kFewGroups && static_cast<double>(of(Change::complex)) >= kManyComplex * static_cast<double>(total);
  Advice advice;
  if (all_modified) {
    std::vector<double> ious;
    for (const MatchGroup& group : match.groups) {
      if (group.change == Change::unchanged || group.change == Change::modified) ious.push_back(group.iou);
    }
    const double least = std::floor(100 * quantile(std::move(ious), 0.1)) / 100;
    if (least > 0.5 && least < match.options.unchanged_iou) advice.unchanged = least;
  }
  if ((all_modified || much_is_complex) && match.options.sliver_width == 0) {
    std::vector<double> kept;
    std::vector<double> others;
    for (const MatchPair& pair : match.pairs) {
      if (pair.overlap.area > 0) (pair.kept ? kept : others).push_back(pair.overlap.width);
    }
    const double width = quantile(std::move(others), 0.9);
    if (width > 0 && two_digits(width) < quantile(std::move(kept), 0.1)) advice.sliver_width = two_digits(width);
  }
  return advice;
}

std::string told(const Advice& advice, const Match& match) {
  const std::vector<std::int64_t> counts = count_changes(match);
  const std::int64_t modified = counts[static_cast<std::size_t>(Change::modified)];
  const std::int64_t all = modified + counts[static_cast<std::size_t>(Change::unchanged)];
  std::string text;
  if (advice.unchanged) {
    text = fmt::format(
        "{} of {} one-to-one groups are 'modified', as where maps were generalized differently: nine of ten have an "
        "IoU "
        "of at least {:.2g}, and --unchanged {:.2g} counts these as unchanged",
        format_count(modified), format_count(all), *advice.unchanged, *advice.unchanged);
  }
  if (advice.sliver_width) {
    text += fmt::format(
        "{}nine of ten overlaps that are not kept are narrower than {:g} m, and nine of ten that are kept are wider: "
        "--sliver-width {:g} excludes narrower overlaps",
        text.empty() ? "" : "; ", *advice.sliver_width, *advice.sliver_width);
  }
  return text;
}

std::string told(const LayerOverlap& within, const PolygonLayer& layer, const std::string& path,
                 const std::string& option) {
  if (!(within.covered >= kOnItself * within.area) || within.pairs == 0) return {};
  return fmt::format(
      "{}: features of the layer overlap each other: {:.3g} % of its area is covered by other features of it, in {} "
      "pairs; {} and {} share most. So features of one place are in one group. If the file has several levels, read "
      "one of them: {} \"COLUMN = VALUE\"",
      path, 100 * within.covered / within.area, format_count(within.pairs),
      io::printable(label_of(layer, within.first)), io::printable(label_of(layer, within.second)), option);
}

}  // namespace vicinal::cli
