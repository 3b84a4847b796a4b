// See embedding.hpp. Order of the page: the answer, what was run, what to beware of, the pictures, eigenvalues and
// conditions, pieces.
#include "report/embedding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <utility>

#include "base/input.hpp"
#include "report/facts.hpp"
#include "report/histogram.hpp"
#include "report/html.hpp"
#include "report/scatter.hpp"
#include "report/spectrum.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::int64_t kPointsDrawn = 4000;
constexpr std::size_t kPiecesDrawn = 6;
constexpr std::size_t kPiecesShown = 50;
constexpr std::int64_t kKindsNamed = 12;

/// The colors of the rows drawn, and what they mean.
struct Colors {
  std::vector<std::string> of;
  std::string key;
};

Colors kinds(const std::vector<std::int64_t>& codes, std::int64_t count,
             const std::function<std::string(std::int64_t)>& name) {
  Colors colors;
  for (const std::int64_t code : codes) colors.of.push_back(kind_color(code));
  colors.key = "<p class=\"key\">";
  for (std::int64_t kind = 0; kind < std::min(count, kKindsNamed); ++kind) {
    colors.key += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", kind_color(kind),
                              escape(shortened(name(kind), 30)));
  }
  if (count > kKindsNamed) colors.key += fmt::format("and {} more", count_text(count - kKindsNamed));
  colors.key += "</p>\n";
  return colors;
}

Colors shades(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Colors colors;
  for (const double value : values) {
    colors.of.push_back(ramp_color(*high > *low ? value / (*high - *low) - *low / (*high - *low) : 0));
  }
  constexpr int kSteps = 5;
  colors.key = fmt::format("<p class=\"key\"><span>first parameter: {} ", number_text(*low));
  for (int i = 0; i < kSteps; ++i) {
    colors.key += fmt::format("<i style=\"background:{}\"></i>", ramp_color(static_cast<double>(i) / (kSteps - 1)));
  }
  colors.key += fmt::format("{}</span></p>\n", number_text(*high));
  return colors;
}

Colors colors_of(const EmbeddingReport& report, const std::vector<std::int64_t>& rows) {
  if (report.labels == nullptr && report.parameters != nullptr) {
    std::vector<double> values;
    values.reserve(rows.size());
    for (const std::int64_t i : rows) values.push_back(value_at(*report.parameters, i, 0));
    return shades(values);
  }
  const Lle& found = report.rows->found;
  std::vector<std::int64_t> codes;
  codes.reserve(rows.size());
  for (const std::int64_t i : rows) {
    const auto at = static_cast<std::size_t>(i);
    codes.push_back(report.labels != nullptr ? report.labels->codes[at] : found.piece[at]);
  }
  if (report.labels != nullptr) {
    return kinds(codes, report.labels->class_count(), [&](std::int64_t code) { return report.labels->name_of(code); });
  }
  return kinds(codes, static_cast<std::int64_t>(found.pieces.size()),
               [](std::int64_t piece) { return fmt::format("piece {}", piece); });
}

/// Each piece has axes of its own, and so drawings of its own; of three columns every pair is one.
std::string panels(const EmbeddingReport& report, const std::vector<std::int64_t>& rows, const Colors& colors) {
  const Lle& found = report.rows->found;
  const std::int64_t dim = found.options.dim;
  constexpr std::pair<int, int> kPairs[] = {{0, 1}, {0, 2}, {1, 2}};
  std::string text = "<div class=\"panels\">\n";
  for (std::size_t p = 0; p < std::min(kPiecesDrawn, found.pieces.size()); ++p) {
    for (int pair = 0; pair < (dim > 2 ? 3 : 1); ++pair) {
      const auto [across, up] = kPairs[pair];
      std::vector<Dot> dots;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (found.piece[static_cast<std::size_t>(rows[i])] != static_cast<std::int64_t>(p)) continue;
        const double* const y = found.embedding.data() + rows[i] * dim;
        dots.push_back({y[across], dim > 1 ? y[up] : 0, 0, colors.of[i]});
      }
      if (dots.empty()) continue;
      std::string name = dim > 1 ? fmt::format("column {} over column {}", up, across) : std::string("column 0");
      if (found.pieces.size() > 1) {
        name = fmt::format("piece {}, {} rows: {}", p, count_text(found.pieces[p].rows), name);
      }
      text += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", scatter_svg(std::move(dots), name), name);
    }
  }
  return text + "</div>\n";
}

/// Rows of three columns, seen from a little above and to the left; empty for others.
std::string given_rows(const EmbeddingReport& report, const std::vector<std::int64_t>& rows, const Colors& colors) {
  if (report.table->cols() != 3) return {};
  std::vector<Dot> dots;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double x[] = {value_at(*report.table, rows[i], 0), value_at(*report.table, rows[i], 1),
                        value_at(*report.table, rows[i], 2)};
    dots.push_back({x[0] + 0.35 * x[1], x[2] + 0.25 * x[1], -x[1], colors.of[i]});
  }
  return "<section><h2>Rows as they were</h2>\n" + scatter_svg(std::move(dots), "the three columns of the table") +
         "</section>\n";
}

std::string pictures(const EmbeddingReport& report) {
  const Lle& found = report.rows->found;
  const std::int64_t n = report.table->rows();
  const std::int64_t count = std::min(n, kPointsDrawn);
  const std::int64_t dim = found.options.dim;
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(n * i / count);
  const Colors colors = colors_of(report, rows);
  std::string note;
  if (count < n) note += fmt::format("{} of the rows are drawn. ", count_text(count));
  if (found.pieces.size() > 1) note += "Each piece has axes of its own. ";
  if (found.pieces.size() > kPiecesDrawn) {
    note += fmt::format("The first {} of {} pieces. ", kPiecesDrawn, count_text(std::ssize(found.pieces)));
  }
  if (dim > 3) note += fmt::format("The first three of {} columns. ", dim);
  if (!note.empty()) note = "<p class=\"note\">" + note + "</p>";
  const std::string made =
      "<section><h2>Embedding</h2>\n" + note + panels(report, rows, colors) + colors.key + "</section>\n";
  const std::string given = given_rows(report, rows, colors);
  const bool alone = dim <= 2 && found.pieces.size() == 1;
  return alone && !given.empty() ? "<div class=\"pair\">\n" + made + given + "</div>\n" : made + given;
}

std::string numbers(const EmbeddingReport& report) {
  const Lle& found = report.rows->found;
  const auto largest = std::max_element(found.pieces.begin(), found.pieces.end(),
                                        [](const LlePiece& a, const LlePiece& b) { return a.rows < b.rows; });
  std::string text = "<div class=\"pair\">\n<section><h2>Eigenvalues</h2><p class=\"note\">";
  if (found.pieces.size() > 1) {
    text += fmt::format("Of the largest piece, {} rows. ", count_text(largest->rows));
  }
  text += "Where the last lies close to the next one, which was left out, another column tells as much.</p>\n" +
          spectrum_svg(*largest) + "</section>\n<section><h2>Condition of the weights</h2><p class=\"note\">";
  const LleQuality& quality = *report.rows->quality;
  const ConditionCounts counts = count_conditions(quality);
  text += fmt::format(
      "Largest over least eigenvalue of the system that a row's weights solve, of {} rows; the largest {}, the median "
      "{}. It is bounded by <code>--reg</code>; without it, large ones make weights a matter of rounding.</p>\n",
      count_text(static_cast<std::int64_t>(quality.rows.size())), number_text(counts.largest),
      number_text(counts.median));
  const Histogram drawn = histogram(quality.conditions, std::numeric_limits<double>::infinity(),
                                    "Rows by the condition of their weights", "condition");
  return text + drawn.svg + "</section>\n</div>\n";
}

std::string pieces(const Lle& found) {
  std::string text =
      "<section><h2>Pieces</h2>\n<table><thead><tr><th>piece</th><th>rows</th><th>column</th><th>eigenvalue</th>"
      "<th>gap to the next</th><th>residual</th><th>localization</th></tr></thead><tbody>\n";
  for (std::size_t p = 0; p < std::min(kPiecesShown, found.pieces.size()); ++p) {
    const LlePiece& piece = found.pieces[p];
    const std::vector<double> gaps = eigenvalue_gaps(piece);
    for (std::size_t c = 0; c < piece.singular_values.size(); ++c) {
      text += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.4e}</td><td>{:.1f}\u202f"
          "%</td><td>{:.1e}</td><td{}>{:.3f}</td></tr>\n",
          p, count_text(piece.rows), c, piece.singular_values[c] * piece.singular_values[c], 100 * gaps[c],
          piece.residuals[c], piece.localization[c] < kLocalizedShare ? " class=\"said\"" : "", piece.localization[c]);
    }
  }
  text += "</tbody></table>\n";
  if (found.pieces.size() > kPiecesShown) {
    text += fmt::format("<p class=\"note\">The first {} of {} pieces.</p>\n", kPiecesShown,
                        count_text(static_cast<std::int64_t>(found.pieces.size())));
  }
  return text +
         "<p class=\"note\">Localization is 1 for a column spread evenly over its rows, 1 / n for one that lives on a "
         "single row.</p></section>\n";
}

std::string left_of_parameters(const EmbeddedRows& rows) {
  const LleParameterFit& fit = *rows.fit;
  std::string text = fmt::format(
      "<section><h2>What is left of the parameters</h2><p class=\"note\">The share of each parameter's variance that "
      "no "
      "affine map of the embedding gives. Of all of it, no similarity gives {} (Procrustes), whose columns are of one "
      "length.</p>\n<table><thead><tr><th>parameter</th><th>left</th></tr></thead><tbody>\n",
      number_text(fit.procrustes));
  for (std::size_t j = 0; j < fit.columns.size(); ++j) {
    text += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escape(shortened(rows.parameter_name(j), 24)),
                        number_text(fit.columns[j]));
  }
  return text + "</tbody></table></section>\n";
}

std::string summary(const EmbeddingReport& report) {
  const EmbeddedRows& rows = *report.rows;
  std::string text = fmt::format(
      "<div class=\"hero\"><div class=\"figure\"><div class=\"big\">{:.4f}</div><span>trustworthiness, of {} "
      "rows</span></div>\n",
      rows.quality->trustworthiness, count_text(static_cast<std::int64_t>(rows.quality->rows.size())));
  text += figure(fmt::format("{:.4f}", rows.quality->continuity), "continuity");
  if (rows.fit) {
    text += figure(number_text(rows.fit->affine), "affine residual");
  }
  text += figure(count_text(static_cast<std::int64_t>(rows.found.pieces.size())),
                 rows.found.pieces.size() == 1 ? "piece" : "pieces");
  return text + figure(escape(format_duration(report.seconds)), "from file to answer") + "</div>\n";
}

std::string facts(const EmbeddingReport& report) {
  const Lle& found = report.rows->found;
  std::string text = "<dl class=\"facts\">\n" + fact("File", report.file);
  text += fact("Variant", std::string(name_of(found.options.variant)));
  text += fact("Neighbors", fmt::format("{}", found.options.k)) + fact("Search", ran_as(found.plan));
  text += fact("Sum of the eigenvalues", number_text(found.eigenvalue_sum));
  const auto open = std::find_if(found.pieces.begin(), found.pieces.end(),
                                 [](const LlePiece& piece) { return piece.count != LleCount::complete; });
  text += fact("Eigenvalues counted", count_sentence(open == found.pieces.end() ? found.pieces[0] : *open));
  if (found.options.variant == LleVariant::standard) text += fact("Largest weight", number_text(found.largest_weight));
  return text + fact("Why", found.plan.reason, true) + fact("Version", "vicinal " VICINAL_VERSION) + "</dl>\n";
}

std::string warnings(const Lle& found) {
  const std::vector<std::string> sentences = embedding_warnings(found);
  if (sentences.empty()) return {};
  std::string text = "<section><h2>Beware</h2>\n";
  for (std::string sentence : sentences) {
    sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
    text += "<p class=\"said\">" + escape(sentence) + ".</p>\n";
  }
  return text + "</section>\n";
}

}  // namespace

std::string render(const EmbeddingReport& report) {
  const Lle& found = report.rows->found;
  const std::string name = std::filesystem::path(report.file).filename().string();
  const std::string header = fmt::format(
      "<header><p class=\"over\">Embedding report</p><h1>{}</h1><p>{} rows of {} columns in {} "
      "dimension{}</p></header>\n",
      escape(name), count_text(report.table->rows()), count_text(report.table->cols()), found.options.dim,
      found.options.dim == 1 ? "" : "s");
  std::string body = header + summary(report) + facts(report) + warnings(found) + pictures(report) + numbers(report);
  if (report.rows->fit) body += left_of_parameters(*report.rows);
  return page("Embedding of " + name, body + pieces(found) + footer());
}

}  // namespace vicinal::cli::report
