// See neighbors.hpp.
#include "report/neighbors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "base/progress.hpp"
#include "report/facts.hpp"
#include "report/html.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

std::string header(const NeighborsReport& report) {
  const NeighborProfile& profile = *report.shown.profile;
  const std::string& file = report.queries_file.empty() ? report.table_file : report.queries_file;
  std::string who = fmt::format("its {} nearest neighbors", profile.k);
  if (profile.within_radius()) {
    who = report.most > 0 ? fmt::format("up to {} nearest neighbors within {}", report.most, report.radius)
                          : fmt::format("all neighbors within {}", report.radius);
  }
  const std::string where = report.queries_file.empty()
                                ? std::string("among the others")
                                : fmt::format("among {} table rows", count_text(profile.table_rows));
  return fmt::format(
      "<header><p class=\"over\">Neighbors report</p><h1>{}</h1><p>{} rows, each with {} {}</p></header>\n",
      escape(std::filesystem::path(file).filename().string()), count_text(profile.rows), who, where);
}

double median_nearest(const NeighborProfile& profile) {
  std::vector<double> nearest;
  nearest.reserve(static_cast<std::size_t>(profile.rows));
  for (std::int64_t i = 0; i < profile.rows; ++i) {
    if (profile.size_of(i) > 0) nearest.push_back(profile.distances_of(i)[0]);
  }
  if (nearest.empty()) return 0;
  const auto middle = nearest.begin() + static_cast<std::ptrdiff_t>(nearest.size() / 2);
  std::nth_element(nearest.begin(), middle, nearest.end(), [](double a, double b) {
    poll_interrupt();
    return a < b;
  });
  return *middle;
}

std::string hero(const NeighborsReport& report, const Hubness& hubness) {
  const NeighborProfile& profile = *report.shown.profile;
  std::int64_t alone = 0;
  for (std::int64_t i = 0; i < profile.rows; ++i) alone += profile.size_of(i) == 0 ? 1 : 0;
  std::string text = fmt::format(
      "<div class=\"hero\"><div class=\"figure\"><div class=\"big\">{}</div><span>median distance to the nearest "
      "neighbor</span></div>\n",
      number_text(median_nearest(profile)));
  text += figure(count_text(profile.neighbors), "neighbors");
  if (profile.within_radius()) text += figure(count_text(alone), "rows without any");
  text += figure(count_text(hubness.most), "times the most popular row is one");
  return text + figure(escape(format_duration(report.seconds)), "from file to answer") + "</div>\n";
}

std::string facts(const NeighborsReport& report) {
  const NeighborProfile& profile = *report.shown.profile;
  const auto table = [](const TableView& view) {
    return fmt::format("{} x {} ({})", count_text(view.rows()), count_text(view.cols()), name_of(view.dtype()));
  };
  std::string metric(name_of(profile.metric));
  if (profile.metric == Metric::minkowski) metric += fmt::format(", p = {}", profile.p);
  std::string text =
      "<dl class=\"facts\">\n" + fact("Table file", report.table_file) + fact("Table", table(*report.shown.table));
  if (!report.queries_file.empty()) {
    text += fact("Query file", report.queries_file) + fact("Queries", table(*report.shown.queries));
  }
  const std::string most = report.most > 0 ? fmt::format("k = {}, ", report.most) : "";
  text += fact("Neighbors", profile.within_radius() ? fmt::format("{}within {}", most, report.radius)
                                                    : fmt::format("k = {}", profile.k));
  return text + fact("Metric", metric) + fact("Ran as", ran_as(profile.plan)) +
         fact("Version", "vicinal " VICINAL_VERSION) + fact("Why this method", profile.plan.reason, true) + "</dl>\n";
}

}  // namespace

std::string render(const NeighborsReport& report) {
  const Hubness hubness = hubness_of(*report.shown.profile);
  const std::string& file = report.queries_file.empty() ? report.table_file : report.queries_file;
  return page("Neighbors of " + std::filesystem::path(file).filename().string(),
              header(report) + hero(report, hubness) + facts(report) + distances_pair(report.shown) +
                  hubness_section(*report.shown.profile, hubness) + pairs_sections(report.shown) +
                  footer("The neighbors are those of brute force in float64, ties to the smaller row."));
}

}  // namespace vicinal::cli::report
