// See embedding.hpp. Order of the page: the answer, what was run, the pictures, each piece's eigenvalues.
#include "report/embedding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "input.hpp"
#include "output.hpp"
#include "report/facts.hpp"
#include "report/html.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::int64_t kPointsDrawn = 4000;
constexpr std::size_t kPiecesShown = 50;
constexpr double kSide = 420;

struct Drawn {
  double x;
  double y;
  double depth;
  std::string color;
};

/// 0 to 1, from blue over green to red; readable on light and on dark paper.
std::string hue(double share) {
  return fmt::format("hsl({:.0f} 60% 50%)", 230 * (1 - share));
}

std::vector<std::string> colors_of(const EmbeddingReport& report, const std::vector<std::int64_t>& rows) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const std::int64_t i : rows) {
    if (report.labels != nullptr) {
      values.push_back(static_cast<double>(report.labels->codes[static_cast<std::size_t>(i)]));
    } else if (report.parameters != nullptr) {
      values.push_back(value_at(*report.parameters, i, 0));
    } else {
      values.push_back(static_cast<double>(report.found->piece[static_cast<std::size_t>(i)]));
    }
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  std::vector<std::string> colors;
  colors.reserve(values.size());
  for (const double value : values) colors.push_back(hue(*high > *low ? (value - *low) / (*high - *low) : 0));
  return colors;
}

std::string picture(std::vector<Drawn> points, const std::string& label) {
  std::stable_sort(points.begin(), points.end(), [](const Drawn& a, const Drawn& b) { return a.depth < b.depth; });
  double low[2] = {points[0].x, points[0].y};
  double high[2] = {points[0].x, points[0].y};
  for (const Drawn& point : points) {
    low[0] = std::min(low[0], point.x);
    low[1] = std::min(low[1], point.y);
    high[0] = std::max(high[0], point.x);
    high[1] = std::max(high[1], point.y);
  }
  const auto place = [&](double value, int axis) {
    const double width = high[axis] - low[axis];
    return width > 0 ? 10 + (kSide - 20) * ((value - low[axis]) / width) : kSide / 2;
  };
  std::string shapes;
  for (const Drawn& point : points) {
    shapes += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\"/>", place(point.x, 0),
                          kSide - place(point.y, 1), point.color);
  }
  return svg(kSide, kSide, label, shapes);
}

std::string pictures(const EmbeddingReport& report) {
  const std::int64_t n = report.table->rows();
  const std::int64_t count = std::min(n, kPointsDrawn);
  const std::int64_t dim = report.found->options.dim;
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(n * i / count);
  const std::vector<std::string> colors = colors_of(report, rows);
  std::vector<Drawn> embedded;
  std::vector<Drawn> given;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double* y = report.found->embedding.data() + rows[i] * dim;
    embedded.push_back({y[0], dim > 1 ? y[1] : 0, 0, colors[i]});
    if (report.table->cols() != 3) continue;
    const double x[] = {value_at(*report.table, rows[i], 0), value_at(*report.table, rows[i], 1),
                        value_at(*report.table, rows[i], 2)};
    // From a little above and to the left.
    given.push_back({x[0] + 0.35 * x[1], x[2] + 0.25 * x[1], -x[1], colors[i]});
  }
  std::string text = "<section><h2>Embedding</h2>\n";
  if (count < n) text += fmt::format("<p>{} of the rows are drawn.</p>\n", format_count(count));
  if (report.found->pieces.size() > 1) text += "<p>Pieces are drawn over each other; each has axes of its own.</p>\n";
  text += picture(std::move(embedded), "the first two columns of the embedding");
  if (!given.empty())
    text += "<h2>Rows as they were</h2>\n" + picture(std::move(given), "the three columns of the table");
  return text + "</section>\n";
}

std::string pieces(const Lle& found) {
  std::string text =
      "<section><h2>Eigenvalues</h2>\n<table><tr><th>Piece</th><th>Rows</th><th>Column</th><th>Eigenvalue</th>"
      "<th>Residual</th><th>Localization</th></tr>\n";
  for (std::size_t p = 0; p < std::min(kPiecesShown, found.pieces.size()); ++p) {
    const LlePiece& piece = found.pieces[p];
    for (std::size_t c = 0; c < piece.singular_values.size(); ++c) {
      text += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.4e}</td><td>{:.1e}</td><td>{:.3f}</td></tr>\n",
                          p, format_count(piece.rows), c, piece.singular_values[c] * piece.singular_values[c],
                          piece.residuals[c], piece.localization[c]);
    }
    if (piece.next > 0) {
      text += fmt::format("<tr><td>{}</td><td></td><td>next</td><td>{:.4e}</td><td></td><td></td></tr>\n", p,
                          piece.next * piece.next);
    }
  }
  return text + "</table></section>\n";
}

}  // namespace

double affine_residual(const TableView& parameters, const Lle& found) {
  const std::int64_t dim = found.options.dim;
  double all = 0;
  double left = 0;
  // Columns are orthonormal and orthogonal to the constant, so that the best map is a projection.
  for (std::int64_t c = 0; c < parameters.cols(); ++c) {
    std::vector<double> values;
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < parameters.rows(); ++i) {
      if (found.piece[static_cast<std::size_t>(i)] != 0) continue;
      rows.push_back(i);
      values.push_back(value_at(parameters, i, c));
    }
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    double spread = 0;
    for (double& value : values) {
      value -= mean;
      spread += value * value;
    }
    if (!(spread > 0)) continue;
    double kept = 0;
    for (std::int64_t y = 0; y < dim; ++y) {
      double dot = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        dot += values[i] * found.embedding[static_cast<std::size_t>(rows[i] * dim + y)];
      }
      kept += dot * dot;
    }
    all += 1;
    left += std::max(0.0, 1 - kept / spread);
  }
  return all > 0 ? left / all : 0;
}

std::string render(const EmbeddingReport& report) {
  const Lle& found = *report.found;
  const std::string name = std::filesystem::path(report.file).filename().string();
  std::string body = fmt::format(
      "<header><p class=\"over\">Embedding report</p><h1>{}</h1><p>{} rows of {} columns in {} "
      "dimension{}</p></header>\n",
      escape(name), format_count(report.table->rows()), format_count(report.table->cols()), found.options.dim,
      found.options.dim == 1 ? "" : "s");
  body += fmt::format("<div class=\"hero\">{}", figure(format_count(static_cast<std::int64_t>(found.pieces.size())),
                                                       found.pieces.size() == 1 ? "piece" : "pieces"));
  body += figure(short_number(found.error), "sum of the eigenvalues");
  if (report.parameters != nullptr) {
    body += figure(short_number(affine_residual(*report.parameters, found)), "affine residual of the parameters");
  }
  body += figure(escape(format_duration(report.seconds)), "from file to answer") + "</div>\n<dl class=\"facts\">\n";
  body += fact("File", report.file) + fact("Variant", std::string(name_of(found.options.variant)));
  body += fact("Neighbors", fmt::format("{}", found.options.k)) + fact("Search", ran_as(found.plan));
  const bool counted = std::all_of(found.pieces.begin(), found.pieces.end(),
                                   [&](const LlePiece& piece) { return piece.counted == found.options.dim; });
  if (counted) body += fact("Eigenvalues counted", "none was skipped");
  if (found.options.variant == LleVariant::standard) {
    body += fact("Largest weight", short_number(found.largest_weight));
  }
  body += fact("Why", found.plan.reason, true) + fact("vicinal", VICINAL_VERSION) + "</dl>\n";
  return page(name + ": embedding", body + pictures(report) + pieces(found));
}

}  // namespace vicinal::cli::report
