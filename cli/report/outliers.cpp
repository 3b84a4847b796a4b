// See outliers.hpp. Order of the page: the answer, what was run, how the scores lie beside where the rows lie, the most
// outlying rows with their columns, and the labels where there are any.
#include "report/outliers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/input.hpp"
#include "base/missing.hpp"
#include "report/chart.hpp"
#include "report/facts.hpp"
#include "report/histogram.hpp"
#include "report/html.hpp"
#include "report/projection.hpp"
#include "vicinal/sample.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::size_t kOutliersShown = 50;
constexpr std::size_t kRowsMarked = 10;
constexpr std::int64_t kClassesShown = 200;
constexpr std::uint64_t kSeed = 0;

std::string header(const OutliersReport& report) {
  const auto rows = static_cast<std::int64_t>(report.scored->scores.size());
  std::string size = fmt::format("{} rows", count_text(rows));
  if (report.scored->table != nullptr) {
    const std::int64_t d = report.scored->table->view.cols();
    size += fmt::format(" of {} column{}", count_text(d), d == 1 ? "" : "s");
  }
  return fmt::format("<header><p class=\"over\">Outlier report</p><h1>{}</h1><p>{}, scored by {}</p></header>\n",
                     escape(std::filesystem::path(report.file).filename().string()), size,
                     name_of(report.lof->options.score));
}

std::string hero(const OutliersReport& report) {
  const ScoredRows& scored = *report.scored;
  const double share = static_cast<double>(scored.outliers) / static_cast<double>(scored.scores.size());
  std::string text = fmt::format(
      "<div class=\"hero\"><div class=\"figure\"><div class=\"big\">{}</div><span>row{} above the threshold, "
      "{:.3g}\u202f% of all</span></div>\n",
      count_text(scored.outliers), scored.outliers == 1 ? "" : "s", 100 * share);
  text += figure(escape(number_text(report.lof->threshold)), "threshold");
  if (!scored.ranked.empty()) {
    text += figure(escape(number_text(scored.scores[static_cast<std::size_t>(scored.ranked[0])])), "largest score");
  }
  if (scored.detection && scored.detection->ranking)
    text += figure(fmt::format("{:.4f}", scored.detection->ranking->roc_auc), "ROC-AUC");
  return text + figure(escape(format_duration(report.seconds)), "from file to answer") + "</div>\n";
}

std::string facts(const OutliersReport& report) {
  std::string text = "<dl class=\"facts\">\n" + fact("File", report.file);
  for (const auto& [name, value] : report.how) text += fact(name, value);
  if (!report.lof->plan.device.empty() && !report.lof->plan.isa.empty())
    text += fact("Ran as", ran_as(report.lof->plan));
  return text + fact("Version", "vicinal " VICINAL_VERSION) + "</dl>\n";
}

std::string histogram_section(const OutliersReport& report) {
  const Histogram found = histogram(report.scored->scores, report.lof->threshold, "How often each score comes",
                                    std::string(name_of(report.lof->options.score)));
  std::string text =
      "<section><h2>How the scores lie</h2><p class=\"note\">Rows by score, on a logarithmic axis upwards; those above "
      "the threshold in "
      "the other color.";
  if (found.infinite > 0) text += fmt::format(" {} with an infinite score are not drawn.", count_text(found.infinite));
  if (found.zeros > 0) text += fmt::format(" {} with a score of 0 are in the first bar.", count_text(found.zeros));
  if (found.svg.empty()) return text + " None has a finite score.</p></section>\n";
  return text + "</p>\n" + found.svg + "</section>\n";
}

std::string dots(const std::vector<Point>& points, const char* style, double size) {
  if (points.empty()) return {};
  std::string path;
  for (const Point& point : points) path += fmt::format("M{:.1f} {:.1f}h0", point.x, point.y);
  return fmt::format("<path d=\"{}\" class=\"dots\" style=\"stroke:var(--{})\" stroke-width=\"{}\"/>", path, style,
                     size);
}

/// A sample of the rows and the most outlying ones, on the sample's two principal components.
std::string map_section(const Context& ctx, const OutliersReport& report) {
  constexpr double kWidth = 480;
  constexpr double kHeight = 320;
  constexpr double kMargin = 16;
  const ScoredRows& scored = *report.scored;
  if (scored.table == nullptr) return {};
  const TableView& view = scored.table->view;
  const TableSample sample = sample_rows(ctx, view, kSampleRows, kSeed);
  const std::size_t marked = std::min(scored.top.size(), kRowsMarked);
  std::vector<double> outlying;
  for (std::size_t i = 0; i < marked; ++i) {
    for (std::int64_t j = 0; j < view.cols(); ++j) outlying.push_back(value_at(view, scored.top[i].row, j));
  }
  Projection projection = project(ctx, sample, outlying);
  const Corners corners = corners_of(projection);
  const Point& low = corners.low;
  const Point& high = corners.high;
  // One scale for both components, so that distances look as they are.
  const double scale = std::min((kWidth - 2 * kMargin) / std::max(high.x - low.x, 1e-300),
                                (kHeight - 2 * kMargin) / std::max(high.y - low.y, 1e-300));
  const auto placed = [&](const Point& point) -> Point {
    return {kWidth / 2 + (point.x - (low.x + high.x) / 2) * scale,
            kHeight / 2 - (point.y - (low.y + high.y) / 2) * scale};
  };
  std::vector<Point> normal;
  std::vector<Point> outliers;
  for (std::size_t i = 0; i < projection.rows.size(); ++i) {
    const double score = scored.scores[static_cast<std::size_t>(sample.ids[i])];
    (score > report.lof->threshold ? outliers : normal).push_back(placed(projection.rows[i]));
  }
  std::string shapes = dots(normal, "good", projection.rows.size() > 600 ? 3.6 : 5) + dots(outliers, "bad", 5);
  for (std::size_t i = marked; i-- > 0;) {
    const Point at = placed(projection.centres[i]);
    shapes += fmt::format(
        "<g><title>rank {}: row {}, {}</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5.5\" class=\"ring\"/></g>",
        i + 1, escape(scored.names.text(scored.top[i].row)), number_text(scored.top[i].score), at.x, at.y);
  }
  const std::string what = sample.size() < view.rows()
                               ? fmt::format("{} of {} rows", count_text(sample.size()), count_text(view.rows()))
                               : std::string("All rows");
  const std::string where =
      view.cols() == 1
          ? std::string("along their one column")
          : fmt::format("on their two principal components, which have {:.0f}\u202f% and {:.0f}\u202f% of the variance",
                        100 * projection.share[0], 100 * projection.share[1]);
  return fmt::format("<section><h2>Where they lie</h2><p class=\"note\">{} {}{}.</p>\n", what, where,
                     marked == 0   ? std::string()
                     : marked == 1 ? std::string("; a ring around the most outlying one")
                                   : fmt::format("; rings around the {} most outlying", marked)) +
         svg(kWidth, kHeight, "Rows on two principal components, outliers marked", shapes) + "</section>\n";
}

std::string bar(double share) {
  return fmt::format(
      "<svg viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"100\" height=\"4\" "
      "class=\"track\"/><rect width=\"{:.1f}\" height=\"4\" class=\"bad\"/></svg>",
      100 * share);
}

std::string top_section(const OutliersReport& report) {
  const ScoredRows& scored = *report.scored;
  if (scored.top.empty()) return {};
  const std::size_t shown = std::min(scored.top.size(), kOutliersShown);
  const bool columns =
      std::any_of(scored.top.begin(), scored.top.end(), [](const OutlyingRow& one) { return !one.columns.empty(); });
  std::string text = shown == 1 ? std::string("<section><h2>The most outlying row</h2><p class=\"note\">")
                                : fmt::format("<section><h2>The {} most outlying</h2><p class=\"note\">", shown);
  text += columns
              ? "With the columns that have the largest shares of the squared distance to the mean of the neighbors."
              : "Largest scores first.";
  text += "</p>\n<table class=\"outliers\"><colgroup><col style=\"width:15%\"><col style=\"width:15%\">";
  if (scored.labels != nullptr) text += "<col style=\"width:18%\">";
  if (columns) text += "<col>";
  text += fmt::format("</colgroup><thead><tr><th>{}</th><th>{}</th>", escape(shortened(scored.names.header(), 32)),
                      name_of(report.lof->options.score));
  if (scored.labels != nullptr) text += "<th>label</th>";
  if (columns) text += "<th>pushed out by</th>";
  text += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const OutlyingRow& one = scored.top[i];
    text += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td>", escape(shortened(scored.names.text(one.row), 32)),
                        number_text(one.score));
    if (scored.labels != nullptr) {
      const std::string label = scored.labels->name_of(scored.labels->codes[static_cast<std::size_t>(one.row)]);
      text += fmt::format("<td class=\"words\">{}</td>", escape(shortened(label, 24)));
    }
    if (columns) {
      text += "<td><div class=\"shares\">";
      for (const ColumnShare& share : one.columns) {
        if (share.share < kShareShown) continue;
        text += fmt::format("<div><p><span>{}</span><span>{:.0f}\u202f%</span></p>{}</div>",
                            escape(shortened(report.preparation->name_of(share.column), 24)), 100 * share.share,
                            bar(share.share));
      }
      text += "</div></td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table>\n</section>\n";
}

/// True over false positive rates, with the diagonal on which scores that say nothing lie.
std::string roc_svg(const RocCurve& curve) {
  constexpr double kSide = 330;
  constexpr ChartFrame kFrame = {56 + kSide + 26, 14 + kSide + 46, 14, 46, 56, 26};
  std::string shapes;
  for (int tick = 0; tick <= 4; ++tick) {
    const double share = tick / 4.0;
    const std::string name = fmt::format("{} %", 25 * tick);
    shapes += kFrame.level(kFrame.down(1 - share), name) + kFrame.tick(kFrame.across(share), name);
  }
  shapes += kFrame.name_below("normal rows above the threshold");
  shapes += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" class=\"mean\"/>", kFrame.across(0), kFrame.down(1),
                        kFrame.across(1), kFrame.down(0));
  std::string path;
  std::string last;
  for (std::size_t i = 0; i < curve.thresholds.size(); ++i) {
    const std::string point = fmt::format("{:.1f},{:.1f} ", kFrame.across(curve.false_positive_rates[i]),
                                          kFrame.down(1 - curve.true_positive_rates[i]));
    if (point != last) path += point;
    last = point;
  }
  shapes += fmt::format("<polyline points=\"{}\" class=\"curve\"/>", path);
  return svg(kFrame.width, kFrame.height, "ROC curve: outliers over normal rows above each threshold", shapes);
}

std::string roc_sections(const Ranking& ranking) {
  const auto row = [](const char* name, double value) {
    return fmt::format("<tr><td class=\"name\">{}</td><td>{:.4f}</td></tr>\n", name, value);
  };
  return "<div class=\"pair top\">\n<section><h2>ROC curve</h2><p class=\"note\">Share of the outliers above each "
         "threshold, over the share of the normal rows above it; scores that say nothing lie on the dashed "
         "line.</p>\n" +
         roc_svg(ranking.curve) +
         fmt::format(
             "</section>\n<section><h2>How well outliers are found</h2><p class=\"note\">n is {}, the number of "
             "outliers.</p>\n<table><tbody>\n",
             count_text(ranking.outliers)) +
         row("ROC-AUC", ranking.roc_auc) + row("average precision", ranking.average_precision) +
         row("precision at n", ranking.precision_at_n) + "</tbody></table></section>\n</div>\n";
}

std::string labels_section(const Detection& detection) {
  std::string text = fmt::format(
      "<section><h2>What was found of each label</h2><p class=\"note\">Among the {} rows with the largest scores, "
      "{:.3g}\u202f% "
      "of all.",
      count_text(detection.top_rows), 100 * detection.top_share);
  if (detection.ranking) {
    text +=
        fmt::format(" A row of another label than {} has a larger score than one of it in {:.2f}\u202f% of all pairs.",
                    escape(shortened(*detection.normal, 24)), 100 * detection.ranking->roc_auc);
  }
  text += "</p>\n<table><thead><tr><th>label</th><th>rows</th><th>found</th><th>share</th></tr></thead><tbody>\n";
  std::int64_t shown = 0;
  for (const Detection::Class& one : detection.classes) {
    if (++shown > kClassesShown) break;
    const double share = static_cast<double>(one.found) / static_cast<double>(one.rows);
    text += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td><td>{}</td><td>{:.1f}\u202f%{}</td></tr>\n",
                        escape(shortened(one.name, 32)), count_text(one.rows), count_text(one.found), 100 * share,
                        bar(share));
  }
  text += "</tbody></table>\n";
  if (static_cast<std::int64_t>(detection.classes.size()) > kClassesShown) {
    text += fmt::format("<p class=\"note\">The first {} of {} labels.</p>", kClassesShown, detection.classes.size());
  }
  return text + "</section>\n";
}

}  // namespace

std::string render(const Context& ctx, const OutliersReport& report) {
  std::string body = header(report) + hero(report) + facts(report);
  body += "<div class=\"pair\">\n" + histogram_section(report) + map_section(ctx, report) + "</div>\n";
  body += top_section(report);
  if (report.scored->detection) {
    body += labels_section(*report.scored->detection);
    if (report.scored->detection->ranking) body += roc_sections(*report.scored->detection->ranking);
  }
  body +=
      footer("Neighbors are those of float64, ties to the smaller row; scores have the same bits on every machine.");
  return page("Outliers of " + std::filesystem::path(report.file).filename().string(), body);
}

}  // namespace vicinal::cli::report
