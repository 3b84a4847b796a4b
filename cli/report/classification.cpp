// See classification.hpp. Order of the page: the answer, what was run, where it errs (matrix), how each class does, how
// far a sure vote can be trusted, and the hardest rows.
#include "report/classification.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/output.hpp"
#include "base/progress.hpp"
#include "report/facts.hpp"
#include "report/hardest.hpp"
#include "report/html.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::size_t kLargestDrawnMatrix = 40;
constexpr std::size_t kLongestLabel = 16;

std::string header(const ClassificationReport& report) {
  const std::string name = std::filesystem::path(report.test_file).filename().string();
  const NeighborProfile& profile = *report.profile;
  const std::string training = count_text(profile.table_rows);
  const std::string who = profile.within_radius()
                              ? fmt::format("those of {} training rows within {}", training, report.radius)
                              : fmt::format("its {} nearest of {} training rows", profile.k, training);
  return fmt::format(
      "<header><p class=\"over\">Classification report</p><h1>{}</h1><p>{} rows, each given the class that {} vote "
      "for</p></header>\n",
      escape(name), count_text(profile.rows), who);
}

std::string hero(const ClassificationReport& report, const Scores& scores) {
  return fmt::format(
             "<div class=\"hero\"><div class=\"figure\"><div class=\"big\">{:.2f}<small>%</small></div><span>accuracy: "
             "{} of {} rows right</span></div>\n",
             100 * scores.accuracy, count_text(scores.correct), count_text(scores.rows)) +
         figure(fmt::format("{:.4f}", scores.macro.f1), "mean F1 of the classes") +
         figure(count_text(scores.rows - scores.correct), "errors") +
         figure(escape(format_duration(report.seconds)), "from files to answer") + "</div>\n";
}

std::string facts(const ClassificationReport& report) {
  const NeighborProfile& profile = *report.profile;
  const auto table = [](const TableView& view) {
    return fmt::format("{} x {} ({})", count_text(view.rows()), count_text(view.cols()), name_of(view.dtype()));
  };
  std::string metric(name_of(profile.metric));
  if (profile.metric == Metric::minkowski) metric += fmt::format(", p = {}", profile.p);
  return "<dl class=\"facts\">\n" + fact("Training file", report.train_file) +
         fact("Training table", table(*report.train)) + fact("Test file", report.test_file) +
         fact("Test table", table(*report.test)) +
         fact("Neighbors and weights", profile.within_radius()
                                           ? fmt::format("within {}, {}", report.radius, report.weights)
                                           : fmt::format("k = {}, {}", profile.k, report.weights)) +
         fact("Metric", metric) +
         fact("Ran as", fmt::format("{}, {}, {} thread{}", name_of(profile.plan.method), profile.plan.isa,
                                    profile.plan.threads, profile.plan.threads == 1 ? "" : "s")) +
         fact("Version", "vicinal " VICINAL_VERSION) + fact("Why this method", profile.plan.reason, true) + "</dl>\n";
}

/// Rows are true classes, columns predicted ones; the shade is the share of the row, as a root so that rare errors
/// show.
std::string confusion_svg(const Scores& scores) {
  const std::size_t c = scores.classes.size();
  const double cell = c <= 12 ? 42 : c <= 20 ? 32 : 22;
  const bool numbers = c <= 20;
  std::size_t longest = 1;
  for (const std::string& name : scores.names) {
    longest = std::max(longest, std::min(character_count(name), kLongestLabel));
  }
  const double left = 34 + 7.2 * static_cast<double>(longest);
  const bool slanted = longest > 4;
  const double top = slanted ? 30 + 5.4 * static_cast<double>(longest) : 44;
  const double side = cell * static_cast<double>(c);
  std::string shapes = svg_text(left + side / 2, 12, "middle", "soft", "predicted");
  shapes += fmt::format(
      "<text transform=\"translate(12 {:.1f}) rotate(-90)\" text-anchor=\"middle\" class=\"soft\">true</text>",
      top + side / 2);
  for (std::size_t i = 0; i < c; ++i) {
    const double at = static_cast<double>(i) * cell;
    const std::string label = shortened(scores.names[i], kLongestLabel);
    shapes += svg_text(left - 8, top + at + cell / 2 + 4, "end", "strong", label);
    if (slanted) {
      shapes += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-40)\" class=\"strong\">{}</text>",
                            left + at + cell / 2, top - 8, escape(label));
    } else {
      shapes += svg_text(left + at + cell / 2, top - 10, "middle", "strong", label);
    }
    for (std::size_t j = 0; j < c; ++j) {
      const std::int64_t count = scores.confusion[i * c + j];
      const double share = scores.classes[i].support > 0
                               ? static_cast<double>(count) / static_cast<double>(scores.classes[i].support)
                               : 0;
      const double x = left + static_cast<double>(j) * cell;
      const double shade = std::sqrt(share);
      shapes += fmt::format("<g><title>{} of {} rows of {} taken for {}</title>", count, scores.classes[i].support,
                            escape(scores.names[i]), escape(scores.names[j]));
      shapes += svg_rect(x + 1, top + at + 1, cell - 2, cell - 2, "track");
      if (count > 0) shapes += svg_rect(x + 1, top + at + 1, cell - 2, cell - 2, i == j ? "good" : "bad", shade);
      if (count > 0 && numbers) {
        shapes += svg_text(x + cell / 2, top + at + cell / 2 + 4, "middle", shade > 0.6 ? "on" : "",
                           fmt::format("{}", count));
      }
      shapes += "</g>";
    }
  }
  // Slanted labels reach beyond the last column.
  const double right = slanted ? 5.6 * static_cast<double>(longest) : 6;
  return svg(left + side + std::max(6.0, right - cell / 2), top + side + 4, "Confusion matrix", shapes);
}

std::string confusion_section(const Scores& scores) {
  std::string text =
      "<section><h2>What is taken for what</h2><p class=\"note\">Rows are true classes, columns predicted ones; "
      "the shade is the share of the row.</p>\n";
  if (scores.confusion.empty() || scores.classes.size() > kLargestDrawnMatrix) {
    text += fmt::format("<p class=\"note\">{} classes are too many to draw; the JSON output has the counts.</p>\n",
                        scores.classes.size());
  } else {
    text += confusion_svg(scores);
    text += "<p class=\"key\"><span><i class=\"good\"></i>right</span><span><i class=\"bad\"></i>wrong</span></p>";
  }
  return text + "</section>\n";
}

std::string bar_cell(double value) {
  return fmt::format(
      "<td>{:.3f}<svg viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
      "<rect width=\"100\" height=\"4\" class=\"track\"/><rect width=\"{:.1f}\" height=\"4\" "
      "class=\"good\"/></svg></td>",
      value, 100 * value);
}

std::string classes_section(const Scores& scores) {
  std::string text =
      "<section><h2>Class by class</h2><p class=\"note\">Precision: how many of the rows said to be of a class "
      "are. Recall: how many of its rows are found. F1 is their harmonic mean.</p>\n<table><thead><tr>"
      "<th>class</th><th>rows</th><th>precision</th><th>recall</th><th>F1</th></tr></thead><tbody>\n";
  constexpr std::size_t kClassesShown = 200;
  for (std::size_t j = 0; j < std::min(scores.classes.size(), kClassesShown); ++j) {
    const ClassScore& one = scores.classes[j];
    text += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td>", escape(shortened(scores.names[j], 40)),
                        count_text(one.support)) +
            bar_cell(one.precision) + bar_cell(one.recall) + bar_cell(one.f1) + "</tr>\n";
  }
  for (const auto& [name, mean] :
       {std::pair("macro mean", scores.macro), std::pair("weighted mean", scores.weighted)}) {
    text += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td>", name, count_text(scores.rows)) +
            bar_cell(mean.precision) + bar_cell(mean.recall) + bar_cell(mean.f1) + "</tr>\n";
  }
  text += "</tbody></table>\n";
  text += fmt::format("<p class=\"note\">Cohen's kappa {}, Matthews' correlation coefficient {:.4f}.</p>",
                      scores.kappa ? fmt::format("{:.4f}", *scores.kappa) : "none", scores.matthews);
  if (scores.classes.size() > kClassesShown) {
    text += fmt::format("<p class=\"note\">The first {} of {} classes.</p>", kClassesShown, scores.classes.size());
  }
  return text + "</section>\n";
}

struct Bin {
  std::string label;
  std::int64_t right = 0;
  std::int64_t wrong = 0;
};

bool by_votes_of(const ClassificationReport& report) {
  return report.weights == "uniform" && !report.profile->within_radius() && report.profile->k <= 10;
}

/// With equal weights the winning share is one of k values, each a bin of its own; otherwise ten bins of a tenth.
std::vector<Bin> confidence_bins(const ClassificationReport& report, const Classification& output) {
  const std::int64_t k = report.profile->k;
  const bool by_votes = by_votes_of(report);
  std::vector<Bin> bins(by_votes ? static_cast<std::size_t>(k) : 10);
  for (std::size_t b = 0; b < bins.size(); ++b) {
    bins[b].label = by_votes ? fmt::format("{} of {}", b + 1, k) : fmt::format("{}–{}", b * 10, b * 10 + 10);
  }
  const auto count = static_cast<double>(bins.size());
  for (std::size_t i = 0; i < output.truth.size(); ++i) {
    const std::int32_t said = output.vote->codes[i];
    if (said < 0) continue;
    const double share =
        output.vote
            ->probabilities[i * static_cast<std::size_t>(output.vote->class_count) + static_cast<std::size_t>(said)];
    const double place = by_votes ? std::round(share * count) - 1 : std::floor(share * count);
    Bin& bin = bins[static_cast<std::size_t>(std::clamp(place, 0.0, count - 1))];
    ++(said == output.truth[i] ? bin.right : bin.wrong);
  }
  // Low bins are empty by nature: a winner needs a share of at least one over the number of classes.
  const auto first = std::find_if(bins.begin(), bins.end(), [](const Bin& bin) { return bin.right + bin.wrong > 0; });
  bins.erase(bins.begin(), first);
  return bins;
}

std::string confidence_svg(const std::vector<Bin>& bins) {
  std::int64_t largest = 1;
  for (const Bin& bin : bins) largest = std::max(largest, bin.right + bin.wrong);
  const double step = bins.size() <= 6 ? 76 : 54;
  const double top = 40;
  const double height = 270;
  const double width = step * static_cast<double>(bins.size());
  std::string shapes;
  for (std::size_t b = 0; b < bins.size(); ++b) {
    const Bin& bin = bins[b];
    const std::int64_t total = bin.right + bin.wrong;
    const double middle = (static_cast<double>(b) + 0.5) * step;
    const double scale = height / static_cast<double>(largest);
    const double right = static_cast<double>(bin.right) * scale;
    const double wrong = static_cast<double>(bin.wrong) * scale;
    const double bar = step * 0.62;
    shapes += fmt::format("<g><title>{}: {} right, {} wrong</title>", escape(bin.label), bin.right, bin.wrong);
    if (right > 0) shapes += svg_rect(middle - bar / 2, top + height - right, bar, right, "good");
    if (wrong > 0)
      shapes += svg_rect(middle - bar / 2, top + height - right - wrong, bar, std::max(wrong - 1, 0.5), "bad");
    if (total > 0) {
      const double above = top + height - right - wrong;
      shapes +=
          svg_text(middle, above - 20, "middle", "strong",
                   fmt::format("{:.0f}\u202f%", 100 * static_cast<double>(bin.right) / static_cast<double>(total)));
      shapes += svg_text(middle, above - 6, "middle", "soft", count_text(total));
    }
    shapes += "</g>" + svg_text(middle, top + height + 18, "middle", "soft", bin.label);
  }
  shapes += svg_rect(0, top + height + 1, width, 1, "line");
  return svg(width, top + height + 26, "Rows by the winning share of the vote, right and wrong", shapes);
}

std::string confidence_section(const ClassificationReport& report, const Classification& output) {
  return std::string(
             "<section><h2>How far a vote can be trusted</h2><p class=\"note\">Rows by the share of the vote that "
             "won") +
         (by_votes_of(report) ? "" : ", in percent") +
         ". Above each bar: how many of its rows are right, and how many rows there are.</p>\n" +
         confidence_svg(confidence_bins(report, output)) +
         "<p class=\"key\"><span><i class=\"good\"></i>right</span><span><i "
         "class=\"bad\"></i>wrong</span></p></section>\n";
}

}  // namespace

std::string render(const ClassificationReport& report) {
  std::string body = header(report);
  for (std::size_t i = 0; i < report.outputs.size(); ++i) {
    const Classification& output = report.outputs[i];
    if (report.outputs.size() > 1) body += fmt::format("<h1>{}</h1>\n", escape(output.name));
    body += hero(report, *output.scores);
    if (i == 0) body += facts(report);
    body +=
        "<div class=\"pair\">\n" + confusion_section(*output.scores) + confidence_section(report, output) + "</div>\n";
    body += classes_section(*output.scores);
    body += hardest_section(report, output);
  }
  body += footer("The neighbors are those of brute force in float64, ties to the smaller row.");
  return page("Classification of " + std::filesystem::path(report.test_file).filename().string(), body);
}

}  // namespace vicinal::cli::report
