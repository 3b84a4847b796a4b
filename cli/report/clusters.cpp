// See clusters.hpp. Order of the page: the answer, what was run, the scan where there was one, where the clusters lie
// and how well rows fit them, each cluster in numbers, the way the inertia took, and the centers.
#include "report/clusters.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/output.hpp"
#include "report/chart.hpp"
#include "report/curve.hpp"
#include "report/facts.hpp"
#include "report/html.hpp"
#include "report/projection.hpp"
#include "report/scatter.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::int64_t kClustersShown = 200;
constexpr std::int64_t kClustersNumbered = 40;
constexpr std::int64_t kColumnsShown = 6;

std::string header(const ClustersReport& report) {
  const std::string name = std::filesystem::path(report.file).filename().string();
  return fmt::format(
      "<header><p class=\"over\">Clustering report</p><h1>{}</h1><p>{} rows of {} column{} in {} "
      "cluster{}</p></header>\n",
      escape(name), count_text(report.table->rows()), count_text(report.table->cols()),
      report.table->cols() == 1 ? "" : "s", report.found->clusters, report.found->clusters == 1 ? "" : "s");
}

std::string hero(const ClustersReport& report) {
  const KMeans& found = *report.found;
  std::string text = fmt::format(
      "<div class=\"hero\"><div class=\"figure\"><div class=\"big\">{}</div><span>cluster{}{}</span></div>\n",
      found.clusters, found.clusters == 1 ? "" : "s",
      report.scan != nullptr && report.scan->best ? ", the best silhouette of the scan" : "");
  text += figure(silhouette_text(report.fit->scores.mean),
                 fmt::format("silhouette, of {} rows", count_text(report.sample->size())));
  text += figure(number_text(found.inertia), "inertia");
  if (report.scores) text += figure(fmt::format("{:.4f}", report.scores->adjusted_rand), "adjusted Rand index");
  if (found.iterations > 0) {
    text += figure(count_text(found.iterations), found.iterations == 1 ? "iteration" : "iterations");
  }
  return text + figure(escape(format_duration(report.seconds)), "from file to answer") + "</div>\n";
}

std::string scan_section(const Scan& scan) {
  std::vector<Point> inertias;
  std::vector<Point> silhouettes;
  for (const ScanPoint& point : scan.points) {
    inertias.push_back({static_cast<double>(point.clusters), point.inertia});
    silhouettes.push_back({static_cast<double>(point.clusters), point.silhouette.value_or(NAN)});
  }
  std::string silhouette = curve_svg(silhouettes, "Silhouette by number of clusters", "clusters", scan.best);
  if (silhouette.empty()) silhouette = "<p class=\"note\">One cluster has none.</p>\n";
  return "<div class=\"pair\">\n<section><h2>How many clusters</h2><p class=\"note\">The mean silhouette is largest "
         "where "
         "clusters are tight and apart.</p>\n" +
         silhouette +
         "</section>\n<section><h2>What more clusters bring</h2><p class=\"note\">Inertia, the sum of squared "
         "distances "
         "to the centers, falls with every cluster; look for the bend.</p>\n" +
         curve_svg(inertias, "Inertia by number of clusters", "clusters", scan.best) + "</section>\n</div>\n";
}

std::string projection_svg(const ClustersReport& report, const Projection& projection) {
  constexpr double kWidth = 560;
  constexpr double kMargin = 22;
  const Corners corners = corners_of(projection);
  const Point& low = corners.low;
  const Point& high = corners.high;
  // One scale for both components, so that distances look as they are.
  const Point range = {std::max(high.x - low.x, 1e-12), high.y - low.y};
  const double height = std::clamp((kWidth - 2 * kMargin) * range.y / range.x + 2 * kMargin, 300.0, 520.0);
  const double scale = std::min((kWidth - 2 * kMargin) / range.x,
                                range.y > 0 ? (height - 2 * kMargin) / range.y : (kWidth - 2 * kMargin) / range.x);
  const auto x = [&](const Point& point) { return kWidth / 2 + (point.x - (low.x + high.x) / 2) * scale; };
  const auto y = [&](const Point& point) { return height / 2 - (point.y - (low.y + high.y) / 2) * scale; };
  const bool many = projection.rows.size() > 600;
  std::string shapes;
  // Rows of a cluster are one path of dots: a stroke of no length with round ends.
  for (std::int64_t c = 0; c < report.found->clusters; ++c) {
    std::string path;
    for (std::size_t i = 0; i < projection.rows.size(); ++i) {
      if (report.fit->labels[i] != c) continue;
      path += fmt::format("M{:.1f} {:.1f}h0", x(projection.rows[i]), y(projection.rows[i]));
    }
    if (path.empty()) continue;
    shapes += fmt::format("<path d=\"{}\" class=\"dots\" stroke=\"{}\" stroke-width=\"{}\"/>", path, kind_color(c),
                          many ? "4.2" : "6");
  }
  const bool numbered = report.found->clusters <= kClustersNumbered;
  for (std::size_t c = 0; c < projection.centres.size(); ++c) {
    const Point& centre = projection.centres[c];
    const auto cluster = static_cast<std::int64_t>(c);
    shapes += fmt::format(
        "<g><title>cluster {}: {} rows</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"centre\" "
        "stroke=\"{}\"/>",
        c, report.found->sizes[c], x(centre), y(centre), numbered ? "10" : "4.5", kind_color(cluster));
    if (numbered) shapes += svg_text(x(centre), y(centre) + 4, "middle", "strong", fmt::format("{}", c));
    shapes += "</g>";
  }
  return svg(kWidth, height, "Rows and centers on two principal components", shapes);
}

std::string projection_section(const Context& ctx, const ClustersReport& report) {
  const Projection projection = project(ctx, *report.sample, report.found->centres);
  return fmt::format("<section><h2>Where the clusters lie</h2><p class=\"note\">{} and the centers {}.</p>\n",
                     sampled_text(*report.sample, *report.table), projected_text(projection, *report.table)) +
         projection_svg(report, projection) + "</section>\n";
}

/// A bar for each row of the sample, by cluster and within it from the best to the worst.
std::string silhouette_svg(const ClustersReport& report) {
  constexpr ChartFrame kFrame = {480, 432, 26, 6, 40, 14};
  constexpr double kTop = kFrame.top;
  const SilhouetteScores& silhouette = report.fit->scores;
  const std::vector<double>& of_row = silhouette.samples;
  std::vector<std::vector<double>> values(static_cast<std::size_t>(report.found->clusters));
  for (std::size_t i = 0; i < of_row.size(); ++i) {
    values[static_cast<std::size_t>(report.fit->labels[i])].push_back(of_row[i]);
  }
  std::erase_if(values, [](const auto& of) { return of.empty(); });
  const double least = *std::min_element(of_row.begin(), of_row.end());
  const double most = *std::max_element(of_row.begin(), of_row.end());
  // Fifths, so that 0 is one of them.
  const int low = std::min(0, static_cast<int>(std::floor(least * 5)));
  const int high = std::max(1, static_cast<int>(std::ceil(most * 5)));
  const double gap = values.size() <= 40 ? 4 : 1;
  const double height = kFrame.plot_height();
  const double room = height - gap * static_cast<double>(values.size());
  const auto across = [&](double value) { return kFrame.across((5 * value - low) / (high - low)); };
  std::string shapes;
  for (int tick = low; tick <= high; ++tick) {
    const double at = across(tick / 5.0);
    shapes += svg_rect(at - 0.5, kTop - 6, 1, height + 6, "line");
    shapes += svg_text(at, kTop - 12, "middle", "soft", fmt::format("{:.2g}", tick / 5.0));
  }
  double top = kTop;
  std::vector<std::int64_t> names;
  for (std::int64_t c = 0; c < report.found->clusters; ++c) {
    if (silhouette.sizes[static_cast<std::size_t>(c)] > 0) names.push_back(c);
  }
  for (std::size_t c = 0; c < values.size(); ++c) {
    std::vector<double>& of = values[c];
    std::sort(of.begin(), of.end(), std::greater<>());
    const double tall = room * static_cast<double>(of.size()) / static_cast<double>(of_row.size());
    const double each = tall / static_cast<double>(of.size());
    std::string outline = fmt::format("{:.1f},{:.1f} ", across(0), top);
    for (std::size_t i = 0; i < of.size(); ++i) {
      outline += fmt::format("{:.1f},{:.2f} ", across(of[i]), top + each * static_cast<double>(i));
      outline += fmt::format("{:.1f},{:.2f} ", across(of[i]), top + each * static_cast<double>(i + 1));
    }
    outline += fmt::format("{:.1f},{:.1f}", across(0), top + tall);
    shapes += fmt::format("<polygon points=\"{}\" fill=\"{}\"><title>cluster {}</title></polygon>", outline,
                          kind_color(names[c]), names[c]);
    if (tall >= 9) shapes += svg_text(kFrame.left - 12, top + tall / 2 + 4, "end", "soft", fmt::format("{}", names[c]));
    top += tall + gap;
  }
  if (silhouette.mean) {
    shapes += kFrame.upright(across(*silhouette.mean), 6);
  }
  return svg(kFrame.width, kFrame.height, "Silhouettes of the rows, by cluster", shapes);
}

std::string silhouette_section(const ClustersReport& report) {
  std::string text =
      "<section><h2>How well rows fit</h2><p class=\"note\">Silhouettes by cluster: near 1 a row lies well, below 0 "
      "another cluster is nearer.";
  if (!report.fit->scores.mean) return text + " One cluster has none.</p></section>\n";
  return text + fmt::format(" The dashed line is their mean, {:.3f}.</p>\n", *report.fit->scores.mean) +
         silhouette_svg(report) + "</section>\n";
}

/// The mean of a cluster's rows; none where the sample has none of them.
std::optional<double> mean_of(const SilhouetteScores& scores, std::size_t cluster) {
  return scores.sizes[cluster] > 0 ? std::optional(scores.clusters[cluster]) : std::nullopt;
}

std::string sizes_section(const ClustersReport& report) {
  const KMeans& found = *report.found;
  const auto rows = static_cast<double>(found.labels.size());
  std::string text =
      "<section><h2>Cluster by cluster</h2><p class=\"note\">Rows, their share, and the mean silhouette of "
      "those in the sample.</p>\n";
  constexpr double kWidth = 1000;
  std::string strip;
  double at = 0;
  for (std::size_t c = 0; c < found.sizes.size(); ++c) {
    const double wide = kWidth * static_cast<double>(found.sizes[c]) / rows;
    strip +=
        fmt::format("<path d=\"M{:.2f} 0h{:.2f}v28h-{:.2f}z\" fill=\"{}\"><title>cluster {}: {} rows</title></path>",
                    at, std::max(wide - 2, wide / 2), std::max(wide - 2, wide / 2),
                    kind_color(static_cast<std::int64_t>(c)), c, found.sizes[c]);
    at += wide;
  }
  text += fmt::format(
      "<svg viewBox=\"0 0 1000 28\" preserveAspectRatio=\"none\" class=\"strip\" role=\"img\" "
      "aria-label=\"Sizes of the clusters\">{}</svg>\n",
      strip);
  text +=
      "<table "
      "class=\"clusters\"><thead><tr><th>cluster</th><th>rows</th><th>share</th><th>silhouette</th></tr></"
      "thead><tbody>\n";
  const std::int64_t largest = std::max<std::int64_t>(1, *std::max_element(found.sizes.begin(), found.sizes.end()));
  for (std::int64_t c = 0; c < std::min(found.clusters, kClustersShown); ++c) {
    const std::int64_t size = found.sizes[static_cast<std::size_t>(c)];
    text += fmt::format(
        "<tr><td class=\"name\"><svg viewBox=\"0 0 10 10\" class=\"swatch\" aria-hidden=\"true\"><rect width=\"10\" "
        "height=\"10\" rx=\"3\" fill=\"{}\"/></svg>{}</td><td>{}</td><td>{:.1f}\u202f%<svg viewBox=\"0 0 100 4\" "
        "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"100\" height=\"4\" class=\"track\"/><rect "
        "width=\"{:.1f}\" height=\"4\" fill=\"{}\"/></svg></td><td>{}</td></tr>\n",
        kind_color(c), c, count_text(size), 100 * static_cast<double>(size) / rows,
        100 * static_cast<double>(size) / static_cast<double>(largest), kind_color(c),
        silhouette_text(mean_of(report.fit->scores, static_cast<std::size_t>(c))));
  }
  text += "</tbody></table>\n";
  if (found.clusters > kClustersShown) {
    text += fmt::format("<p class=\"note\">The first {} of {} clusters.</p>", kClustersShown, found.clusters);
  }
  return text + "</section>\n";
}

std::string history_section(const KMeans& found) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < found.history.size(); ++i) {
    points.push_back({static_cast<double>(i + 1), found.history[i]});
  }
  const std::string curve = curve_svg(points, "Inertia by iteration", "iteration");
  if (curve.empty()) return "";
  return "<section><h2>The way there</h2><p class=\"note\">Inertia of each iteration's labels to the centers that gave "
         "them.</p>\n" +
         curve + "</section>\n";
}

/// The columns in which the centers differ most, by the range of their values, in the order of the table.
std::vector<std::int64_t> telling_columns(const KMeans& found) {
  std::vector<std::pair<double, std::int64_t>> ranges;
  for (std::int64_t j = 0; j < found.cols; ++j) {
    double low = found.centres[static_cast<std::size_t>(j)];
    double high = low;
    for (std::int64_t c = 1; c < found.clusters; ++c) {
      const double value = found.centres[static_cast<std::size_t>(c * found.cols + j)];
      low = std::min(low, value);
      high = std::max(high, value);
    }
    ranges.emplace_back(low - high, j);
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::int64_t> columns;
  for (const auto& [range, j] : ranges) {
    if (static_cast<std::int64_t>(columns.size()) < kColumnsShown) columns.push_back(j);
  }
  std::sort(columns.begin(), columns.end());
  return columns;
}

std::string centres_section(const ClustersReport& report) {
  const KMeans& found = *report.found;
  const std::vector<std::int64_t> columns = telling_columns(found);
  std::string text = "<section><h2>The centers</h2><p class=\"note\">";
  text += static_cast<std::int64_t>(columns.size()) < found.cols
              ? fmt::format("The {} of {} columns in which they differ most.", columns.size(), count_text(found.cols))
              : std::string("The mean of each cluster's rows, column by column.");
  text += "</p>\n<table><thead><tr><th>cluster</th>";
  for (const std::int64_t j : columns) {
    const auto at = static_cast<std::size_t>(j);
    const std::string name = at < report.columns.size() ? report.columns[at] : fmt::format("column {}", j);
    text += fmt::format("<th>{}</th>", escape(shortened(name, 24)));
  }
  text += "</tr></thead><tbody>\n";
  for (std::int64_t c = 0; c < std::min(found.clusters, kClustersShown); ++c) {
    text += fmt::format("<tr><td class=\"name\">{}</td>", c);
    for (const std::int64_t j : columns) {
      text += fmt::format("<td>{}</td>", number_text(found.centres[static_cast<std::size_t>(c * found.cols + j)]));
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table>\n</section>\n";
}

std::string agreement_section(const ClusteringScores& scores) {
  const auto row = [](const char* name, double value, const char* meaning) {
    return fmt::format("<tr><td class=\"name\">{}</td><td>{:.4f}</td><td>{}</td></tr>\n", name, value, meaning);
  };
  return "<section><h2>Clusters and known labels</h2><p class=\"note\">1 where they agree, about 0 where they have "
         "nothing to do with each other.</p>\n<table><thead><tr><th>score</th><th>value</th><th>1 "
         "where</th></tr></thead><tbody>\n" +
         row("adjusted Rand index", scores.adjusted_rand, "the same pairs of rows are together") +
         row("NMI, V-measure", scores.v_measure, "both of the following are 1") +
         row("homogeneity", scores.homogeneity, "each cluster has rows of one label") +
         row("completeness", scores.completeness, "each label has rows of one cluster") +
         "</tbody></table></section>\n";
}

}  // namespace

std::string render(const Context& ctx, const ClustersReport& report) {
  std::string body =
      header(report) + hero(report) + clustering_facts(report.file, *report.table, report.how, report.found->plan);
  if (report.scan != nullptr) body += scan_section(*report.scan);
  body += "<div class=\"pair\">\n" + projection_section(ctx, report) + silhouette_section(report) + "</div>\n";
  const std::string history = history_section(*report.found);
  if (history.empty()) {
    body += sizes_section(report);
  } else {
    body += "<div class=\"pair\">\n" + sizes_section(report) + history + "</div>\n";
  }
  if (report.scores) body += agreement_section(*report.scores);
  body += centres_section(report);
  body += footer(
      "Every row has the label that float64 gives it, ties to the smaller cluster; centers are means of exact sums.");
  return page("Clusters of " + std::filesystem::path(report.file).filename().string(), body);
}

}  // namespace vicinal::cli::report
