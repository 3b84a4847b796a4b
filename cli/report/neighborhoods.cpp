// See neighborhoods.hpp.
#include "report/neighborhoods.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "report/histogram.hpp"
#include "report/html.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::size_t kNearestPairsShown = 12;
constexpr std::size_t kLongestRowName = 24;
constexpr double kNoThreshold = std::numeric_limits<double>::infinity();

struct Pair {
  double distance = 0;
  std::int64_t query = 0;
  std::int64_t row = 0;

  [[nodiscard]] auto key() const { return std::tuple(distance, query, row); }
};

std::string chart(const std::vector<double>& values, const std::string& title, const std::string& note,
                  const std::string& below) {
  const Histogram drawn = histogram(values, kNoThreshold, title, below);
  std::string text = fmt::format("<section><h2>{}</h2><p class=\"note\">{}</p>\n", title, note);
  text += drawn.svg.empty() ? "<p class=\"note\">There is nothing to draw.</p>\n" : drawn.svg;
  if (drawn.zeros > 0) {
    text += fmt::format("<p class=\"note\">{} row{} at 0 or below in the first bar.</p>", count_text(drawn.zeros),
                        drawn.zeros == 1 ? " is" : "s are");
  }
  return text + "</section>\n";
}

/// The first of each row's neighbors; a pair of rows that are each other's is there once.
std::vector<Pair> nearest_pairs(const Neighborhoods& shown) {
  const NeighborProfile& profile = *shown.profile;
  std::vector<Pair> pairs;
  pairs.reserve(static_cast<std::size_t>(profile.rows));
  for (std::int64_t i = 0; i < profile.rows; ++i) {
    const auto ids = profile.ids_of(i);
    if (ids.empty()) continue;
    if (shown.self && ids[0] < i && profile.size_of(ids[0]) > 0 && profile.ids_of(ids[0])[0] == i) continue;
    pairs.push_back({profile.distances_of(i)[0], i, ids[0]});
  }
  return pairs;
}

std::string card(const Neighborhoods& shown, const Pair& pair) {
  const auto about = fmt::format("distance {:.6g}", pair.distance);
  const char* const first = shown.self ? "row" : "query";
  const std::string query = escape(shortened(shown.asked.text(pair.query), kLongestRowName));
  const std::string row = escape(shortened(shown.rows.text(pair.row), kLongestRowName));
  if (shown.image.height == 0) {
    return fmt::format(
        "<div class=\"card\"><div class=\"what\"><p><strong>{:.6g}</strong>{} {} and row {}</p></div></div>\n",
        pair.distance, first, query, row);
  }
  return fmt::format(
      "<div class=\"card\"><div class=\"what\"><img alt=\"{0} {1}\" src=\"{2}\"><img alt=\"row {3}\" "
      "src=\"{4}\"><p><strong>{5:.6g}</strong>{0} {1} and row {3}</p></div></div>\n",
      first, query, picture(*shown.queries, pair.query, shown.image), row, picture(*shown.table, pair.row, shown.image),
      pair.distance);
}

}  // namespace

Hubness hubness_of(const NeighborProfile& profile) {
  Hubness found;
  const auto n = static_cast<double>(profile.table_rows);
  const double mean = static_cast<double>(profile.neighbors) / n;
  double second = 0;
  double third = 0;
  for (const double count : profile.times_a_neighbor()) {
    found.never += count == 0 ? 1 : 0;
    found.most = std::max(found.most, static_cast<std::int64_t>(count));
    const double away = count - mean;
    second += away * away;
    third += away * away * away;
  }
  const double deviation = std::sqrt(second / n);
  found.skewness = deviation > 0 ? third / n / (deviation * deviation * deviation) : 0;
  return found;
}

std::string distances_pair(const Neighborhoods& shown) {
  const NeighborProfile& profile = *shown.profile;
  std::vector<double> nearest;
  std::vector<double> last;
  nearest.reserve(static_cast<std::size_t>(profile.rows));
  last.reserve(static_cast<std::size_t>(profile.rows));
  for (std::int64_t i = 0; i < profile.rows; ++i) {
    if (profile.within_radius()) last.push_back(static_cast<double>(profile.size_of(i)));
    if (profile.size_of(i) == 0) continue;
    nearest.push_back(profile.distances_of(i).front());
    if (!profile.within_radius()) last.push_back(profile.last_of(i));
  }
  std::string text = "<div class=\"pair\">\n";
  text +=
      chart(nearest, "How far the nearest neighbor is", "Rows by the distance to their first neighbor.", "distance");
  if (profile.within_radius()) {
    text += chart(last, "How many lie within the radius", "Rows by the number of their neighbors.", "neighbors");
  } else {
    text += chart(last, fmt::format("How far {} neighbors reach", profile.k),
                  "Rows by the distance to their last neighbor.", "distance");
  }
  return text + "</div>\n";
}

std::string hubness_section(const NeighborProfile& profile, const Hubness& hubness) {
  const std::string note = fmt::format(
      "Table rows by how often they are a neighbor. The most popular one is {} times; {} are nobody's neighbor. The "
      "skewness of these numbers is {:.2f}: above 1, a few rows are the neighbors of many.",
      count_text(hubness.most), count_text(hubness.never), hubness.skewness);
  return chart(profile.times_a_neighbor(), "Who is often a neighbor", note, "times a neighbor");
}

std::string pairs_sections(const Neighborhoods& shown) {
  std::vector<Pair> pairs = nearest_pairs(shown);
  if (pairs.empty()) return {};
  const std::size_t count = std::min(kNearestPairsShown, pairs.size());
  const auto by_key = [](const Pair& a, const Pair& b) {
    poll_interrupt();
    return a.key() < b.key();
  };
  std::partial_sort(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(count), pairs.end(), by_key);
  const char* const what = shown.image.height > 0 ? "images" : "rows";
  std::string text = fmt::format(
      "<section><h2>Nearest pairs</h2><p class=\"note\">The {} closest to another one.</p><div class=\"cards\">\n",
      what);
  for (std::size_t i = 0; i < count; ++i) text += card(shown, pairs[i]);
  std::partial_sort(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(count), pairs.end(),
                    [&](const Pair& a, const Pair& b) { return by_key(b, a); });
  text += fmt::format(
      "</div></section>\n<section><h2>Farthest pairs</h2><p class=\"note\">The {} whose nearest neighbor is farthest "
      "away.</p><div class=\"cards\">\n",
      what);
  for (std::size_t i = 0; i < count; ++i) text += card(shown, pairs[i]);
  return text + "</div></section>\n";
}

}  // namespace vicinal::cli::report
