// See density.hpp. Order of the page: the answer, what was run, where the clusters lie and how large they are, the
// condensed tree and the outlier scores, or the reachability plot.
#include "report/density.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/output.hpp"
#include "report/chart.hpp"
#include "report/facts.hpp"
#include "report/histogram.hpp"
#include "report/html.hpp"
#include "report/projection.hpp"
#include "report/scatter.hpp"
#include "vicinal/sample.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::int64_t kMostClustersListed = 100;
constexpr std::size_t kMostIcicles = 400;
constexpr const char* kNoiseColor = "#8d939c";

std::string density_header(const DensityReport& report) {
  const std::string name = std::filesystem::path(report.file).filename().string();
  return fmt::format(
      "<header><p class=\"over\">Clustering report</p><h1>{}</h1><p>{} rows of {} column{} in {} "
      "cluster{}</p></header>\n",
      escape(name), count_text(report.table->rows()), count_text(report.table->cols()),
      report.table->cols() == 1 ? "" : "s", report.sizes.size(), report.sizes.size() == 1 ? "" : "s");
}

std::string density_hero(const DensityReport& report) {
  const std::size_t clusters = report.sizes.size();
  const double share = 100 * static_cast<double>(report.noise) / static_cast<double>(report.labels.size());
  std::string text =
      fmt::format("<div class=\"hero\"><div class=\"figure\"><div class=\"big\">{}</div><span>cluster{}</span></div>\n",
                  count_text(static_cast<std::int64_t>(clusters)), clusters == 1 ? "" : "s");
  text += figure(fmt::format("{:.1f}\u202f%", share), fmt::format("noise, {} rows", count_text(report.noise)));
  if (report.core_rows >= 0) text += figure(count_text(report.core_rows), "core rows");
  if (report.scores) text += figure(fmt::format("{:.4f}", report.scores->adjusted_rand), "adjusted Rand index");
  return text + figure(escape(format_duration(report.seconds)), "from file to answer") + "</div>\n";
}

std::string color_of(std::int64_t label) {
  return label < 0 ? kNoiseColor : kind_color(label);
}

std::string map_section(const Context& ctx, const DensityReport& report) {
  const TableSample sample = sample_rows(ctx, *report.table, kSampleRows);
  const Projection projection = project(ctx, sample, {});
  std::vector<Dot> dots;
  for (std::size_t i = 0; i < projection.rows.size(); ++i) {
    const std::int64_t label = report.labels[static_cast<std::size_t>(sample.ids[i])];
    dots.push_back({projection.rows[i].x, projection.rows[i].y, label < 0 ? 0.0 : 1.0, color_of(label)});
  }
  return fmt::format("<section><h2>Where the clusters lie</h2><p class=\"note\">{} {}. Noise is gray.</p>\n",
                     sampled_text(sample, *report.table), projected_text(projection, *report.table)) +
         scatter_svg(std::move(dots), "Rows on two principal components, by cluster") + "</section>\n";
}

std::string cluster_line(const std::string& name, const std::string& color, std::int64_t size, double share,
                         const std::string& more) {
  return fmt::format(
      "<tr><td class=\"name\"><svg viewBox=\"0 0 10 10\" class=\"swatch\" aria-hidden=\"true\"><rect width=\"10\" "
      "height=\"10\" rx=\"3\" fill=\"{}\"/></svg>{}</td><td>{}</td><td>{:.1f}\u202f%</td>{}</tr>\n",
      color, name, count_text(size), 100 * share, more);
}

std::string list_section(const DensityReport& report) {
  const bool persists = report.tree != nullptr;
  const auto rows = static_cast<double>(report.labels.size());
  std::string text = fmt::format(
      "<section><h2>Cluster by cluster</h2><p class=\"note\">Rows and their share{}.</p>\n<table "
      "class=\"clusters\"><thead><tr><th>cluster</th><th>rows</th><th>share</th>{}</tr></thead><tbody>\n",
      persists ? ", and how long a cluster persists, from 0 to 1" : "", persists ? "<th>persistence</th>" : "");
  const auto clusters = static_cast<std::int64_t>(report.sizes.size());
  for (std::int64_t cluster = 0; cluster < std::min(clusters, kMostClustersListed); ++cluster) {
    const auto at = static_cast<std::size_t>(cluster);
    text += cluster_line(fmt::format("{}", cluster), kind_color(cluster), report.sizes[at],
                         static_cast<double>(report.sizes[at]) / rows,
                         persists ? fmt::format("<td>{:.3f}</td>", report.persistences[at]) : "");
  }
  text += cluster_line("noise", kNoiseColor, report.noise, static_cast<double>(report.noise) / rows,
                       persists ? "<td></td>" : "");
  text += "</tbody></table>\n";
  if (clusters > kMostClustersListed) {
    text +=
        fmt::format("<p class=\"note\">The first {} of {} clusters.</p>\n", kMostClustersListed, count_text(clusters));
  }
  return text + "</section>\n";
}

/// The condensed tree as icicles: a cluster is as wide as its rows at its birth, and hangs from its birth to the
/// smallest distance at which something leaves it. Distances are on a logarithmic axis.
std::string icicles(const CondensedTree& tree) {
  constexpr ChartFrame kFrame = {1000, 360, 14, 14, 64, 10};
  const std::size_t clusters = std::min(tree.parents.size(), kMostIcicles);
  std::vector<double> ends(tree.parents.size(), std::numeric_limits<double>::infinity());
  double longest = 0;
  double shortest = std::numeric_limits<double>::infinity();
  const auto include = [&](std::int64_t cluster, double distance) {
    if (!(distance > 0) || std::isinf(distance)) return;
    double& end = ends[static_cast<std::size_t>(cluster)];
    end = std::min(end, distance);
    longest = std::max(longest, distance);
    shortest = std::min(shortest, distance);
  };
  for (std::size_t row = 0; row < tree.row_clusters.size(); ++row) {
    include(tree.row_clusters[row], tree.row_distances[row]);
  }
  for (std::size_t cluster = 1; cluster < tree.parents.size(); ++cluster) {
    include(tree.parents[cluster], tree.births[cluster]);
  }
  if (!(longest > shortest)) return "<p class=\"note\">All distances are equal: there is no hierarchy.</p>\n";
  const double span = std::log(longest / shortest);
  const auto down = [&](double distance) {
    const double clipped = std::clamp(distance, shortest, longest);
    return kFrame.down(std::log(longest / clipped) / span);
  };
  std::string shapes;
  for (const double tick : log_ticks(shortest, longest)) {
    if (tick >= shortest && tick <= longest) shapes += kFrame.level(down(tick), short_number(tick));
  }
  std::vector<double> lefts(clusters, kFrame.left);
  std::vector<double> used(clusters, 0);  // width that parts of a cluster have taken already
  const double per_row = kFrame.plot_width() / static_cast<double>(std::max<std::int64_t>(tree.sizes[0], 1));
  for (std::size_t cluster = 0; cluster < clusters; ++cluster) {
    const double width = per_row * static_cast<double>(tree.sizes[cluster]);
    if (cluster > 0) {
      const auto parent = static_cast<std::size_t>(tree.parents[cluster]);
      lefts[cluster] = lefts[parent] + used[parent];
      used[parent] += width;
    }
    const double top = down(tree.births[cluster]);
    const double bottom = std::isinf(ends[cluster]) ? kFrame.base() : down(ends[cluster]);
    const std::int64_t label = tree.labels[cluster];
    shapes += fmt::format(
        "<g><title>{}: {} rows</title><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
        "fill=\"{}\" fill-opacity=\"{}\"/></g>",
        label >= 0 ? fmt::format("cluster {}", label) : std::string("not chosen"), tree.sizes[cluster], lefts[cluster],
        top, std::max(width - 1, 0.5), std::max(bottom - top, 1.0), color_of(label), label >= 0 ? "0.9" : "0.3");
  }
  return svg(kFrame.width, kFrame.height, "The condensed tree", shapes);
}

std::string tree_section(const DensityReport& report) {
  std::string text = fmt::format(
      "<section><h2>The hierarchy</h2><p class=\"note\">Each bar is a cluster of the condensed tree: as wide as its "
      "rows "
      "are many, from the distance at which it is born down to the one at which its last rows leave it. Chosen "
      "clusters "
      "have colors.{}</p>\n",
      report.tree->parents.size() > kMostIcicles
          ? fmt::format(" The first {} of {} clusters.", kMostIcicles,
                        count_text(static_cast<std::int64_t>(report.tree->parents.size())))
          : "");
  return text + icicles(*report.tree) + "</section>\n";
}

/// The reachability of rows in their order, colored by cluster; of many rows the largest of each column of the picture.
std::string reachability_plot(const DensityReport& report) {
  constexpr ChartFrame kFrame = {1000, 300, 14, 30, 64, 10};
  constexpr std::size_t kMostBars = 920;
  const Optics& order = *report.order;
  const std::size_t n = order.ordering.size();
  double highest = 0;
  for (const double reach : order.reachability) highest = std::isinf(reach) ? highest : std::max(highest, reach);
  if (highest == 0) return "<p class=\"note\">No row is reached at a distance above 0.</p>\n";
  std::string shapes;
  for (const double tick : round_ticks(0, highest, 5)) {
    if (tick <= highest) shapes += kFrame.level(kFrame.down(1 - tick / highest), short_number(tick));
  }
  const std::size_t bars = std::min(n, kMostBars);
  const double width = kFrame.plot_width() / static_cast<double>(bars);
  for (std::size_t bar = 0; bar < bars; ++bar) {
    double reach = 0;
    for (std::size_t place = bar * n / bars; place < (bar + 1) * n / bars; ++place) {
      reach = std::max(reach, order.reachability[static_cast<std::size_t>(order.ordering[place])]);
    }
    const std::int64_t label = report.labels[static_cast<std::size_t>(order.ordering[bar * n / bars])];
    const double top = kFrame.down(1 - std::min(reach, highest) / highest);
    shapes += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>",
                          kFrame.left + width * static_cast<double>(bar), top, width + 0.4, kFrame.base() - top,
                          color_of(label));
  }
  shapes += kFrame.name_below("rows in their order");
  return svg(kFrame.width, kFrame.height, "The reachability plot", shapes);
}

std::string reachability_section(const DensityReport& report) {
  return "<section><h2>Reachability</h2><p class=\"note\">Rows in the order of OPTICS, each as high as the distance at "
         "which it is reached from the rows before it. Valleys are clusters; noise is gray.</p>\n" +
         reachability_plot(report) + "</section>\n";
}

std::string outlier_section(const DensityReport& report) {
  const Histogram drawn = histogram(report.outlier_scores, std::numeric_limits<double>::infinity(),
                                    "Outlier scores of the rows", "outlier score");
  if (drawn.svg.empty()) return "";
  return "<section><h2>Outlier scores</h2><p class=\"note\">GLOSH: 0 for rows in the densest places of their clusters, "
         "near 1 for rows far from them.</p>\n" +
         drawn.svg + "</section>\n";
}

}  // namespace

std::string render(const Context& ctx, const DensityReport& report) {
  std::string body = density_header(report) + density_hero(report) +
                     clustering_facts(report.file, *report.table, report.how, *report.plan);
  body += "<div class=\"pair\">\n" + map_section(ctx, report) + list_section(report) + "</div>\n";
  if (report.tree != nullptr) body += tree_section(report) + outlier_section(report);
  if (report.order != nullptr) body += reachability_section(report);
  body += footer("Neighbors are those of float64 brute force; of equal distances the order of row numbers decides.");
  return page("Clusters of " + std::filesystem::path(report.file).filename().string(), body);
}

}  // namespace vicinal::cli::report
