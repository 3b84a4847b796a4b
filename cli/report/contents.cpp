// See contents.hpp. Values are drawn from a sample spread evenly over the table, which the page says.
#include "report/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/input.hpp"
#include "base/output.hpp"
#include "base/progress.hpp"
#include "report/facts.hpp"
#include "report/histogram.hpp"
#include "report/html.hpp"
#include "vicinal/error.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::int64_t kValuesSampled = 200000;
constexpr std::int64_t kImagesShown = 24;
constexpr std::size_t kColumnsListed = 100;

struct Column {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double squares = 0;  // of deviations, as Welford adds them
  std::int64_t finite = 0;
  std::int64_t zeros = 0;
  std::int64_t missing = 0;  // NaN and infinity

  void add(double value) {
    if (!std::isfinite(value)) {
      ++missing;
      return;
    }
    ++finite;
    least = std::min(least, value);
    most = std::max(most, value);
    zeros += value == 0 ? 1 : 0;
    const double away = value - mean;
    mean += away / static_cast<double>(finite);
    squares += away * (value - mean);
  }
  [[nodiscard]] double deviation() const { return finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0; }
};

struct Contents {
  std::vector<Column> columns;
  std::vector<double> sample;
  std::int64_t zeros = 0;
  std::int64_t missing = 0;
  std::int64_t constant = 0;  // columns of one value
};

Contents read_contents(const Context& ctx, const TableView& view) {
  Contents found;
  found.columns.resize(static_cast<std::size_t>(view.cols()));
  const std::int64_t cells = view.rows() * view.cols();
  const std::int64_t step = std::max<std::int64_t>(1, cells / kValuesSampled) | 1;  // odd: it meets every column
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < view.rows(); ++i) {
    if (i % 1024 == 0) {
      ctx.check_cancelled();
      ctx.report("summarize", static_cast<double>(i) / static_cast<double>(view.rows()));
    }
    for (std::int64_t j = 0; j < view.cols(); ++j) {
      const double value = value_at(view, i, j);
      found.columns[static_cast<std::size_t>(j)].add(value);
      if (i * view.cols() + j == next) {
        found.sample.push_back(value);
        next += step;
      }
    }
  }
  for (const Column& column : found.columns) {
    found.zeros += column.zeros;
    found.missing += column.missing;
    found.constant += column.finite > 0 && column.least == column.most ? 1 : 0;
  }
  return found;
}

std::string hero(const ContentsReport& report, const Contents& contents) {
  const TableView& view = report.table->view;
  const auto cells = static_cast<double>(view.rows()) * static_cast<double>(view.cols());
  return fmt::format("<div class=\"hero\"><div class=\"figure\"><div class=\"big\">{}</div><span>row{}</span></div>\n",
                     count_text(view.rows()), view.rows() == 1 ? "" : "s") +
         figure(count_text(view.cols()), view.cols() == 1 ? "column" : "columns") +
         figure(fmt::format("{:.1f}\u202f%", 100 * static_cast<double>(contents.zeros) / cells),
                "of the values are 0") +
         figure(count_text(contents.missing), "values are not finite") +
         figure(escape(format_duration(report.seconds)), "to read") + "</div>\n";
}

std::string facts(const ContentsReport& report, const Contents& contents) {
  const FileInfo& info = *report.info;
  std::string text = "<dl class=\"facts\">\n" + fact("File", report.file);
  std::string format(name_of(info.format));
  if (info.compression != Compression::none) format += fmt::format(", {}", name_of(info.compression));
  text += fact("Format", format) + fact("Size", format_bytes(static_cast<double>(info.bytes)));
  text += fact("Read as", std::string(name_of(report.table->view.dtype())));
  if (report.table->shape.size() > 1) text += fact("Shape", fmt::format("{}", fmt::join(report.table->shape, " x ")));
  return text + fact("Columns of one value", count_text(contents.constant)) +
         fact("Version", "vicinal " VICINAL_VERSION) + "</dl>\n";
}

std::string values_section(const Contents& contents, const TableView& view) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const Histogram drawn = histogram(contents.sample, kNone, "Values by how often they come", "value");
  if (drawn.svg.empty()) return {};
  const bool all = static_cast<std::int64_t>(contents.sample.size()) == view.rows() * view.cols();
  std::string text =
      fmt::format("<section><h2>How the values lie</h2><p class=\"note\">{} of the values of all columns{}.</p>\n{}",
                  all ? std::string("All") : count_text(static_cast<std::int64_t>(contents.sample.size())),
                  all ? "" : ", spread evenly over the table", drawn.svg);
  if (drawn.zeros > 0) {
    text +=
        fmt::format("<p class=\"note\">{} of them are at 0 or below, in the first bar.</p>", count_text(drawn.zeros));
  }
  return text + "</section>\n";
}

std::string columns_section(const ContentsReport& report, const Contents& contents) {
  std::string text =
      "<section><h2>Column by column</h2><p class=\"note\">Of finite values; the deviation is that of all rows.</p>\n"
      "<table><thead><tr><th>column</th><th>least</th><th>most</th><th>mean</th><th>deviation</th><th>zeros</th>"
      "<th>not finite</th></tr></thead><tbody>\n";
  const std::size_t shown = std::min(kColumnsListed, contents.columns.size());
  for (std::size_t j = 0; j < shown; ++j) {
    const Column& column = contents.columns[j];
    const bool named = j < report.table->columns.size();
    const auto number = [&](double value) { return column.finite > 0 ? number_text(value) : std::string("-"); };
    text += fmt::format(
        "<tr><td class=\"name\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape(shortened(named ? report.table->columns[j] : fmt::format("{}", j), 40)), number(column.least),
        number(column.most), number(column.mean), number(column.deviation()), count_text(column.zeros),
        count_text(column.missing));
  }
  text += "</tbody></table>\n";
  if (shown < contents.columns.size()) {
    text += fmt::format("<p class=\"note\">The first {} of {} columns.</p>", shown,
                        count_text(static_cast<std::int64_t>(contents.columns.size())));
  }
  return text + "</section>\n";
}

std::string images_section(const ContentsReport& report) {
  if (report.image.height == 0) return {};
  const TableView& view = report.table->view;
  const std::int64_t shown = std::min(kImagesShown, view.rows());
  std::string text =
      "<section><h2>Some of the images</h2><p class=\"note\">Spread evenly over the table.</p><ul class=\"near\">\n";
  for (std::int64_t i = 0; i < shown; ++i) {
    const std::int64_t row = i * view.rows() / shown;
    text += fmt::format("<li><img alt=\"row {0}\" src=\"{1}\">row {0}</li>\n", row, picture(view, row, report.image));
  }
  return text + "</ul></section>\n";
}

}  // namespace

std::string render(const Context& ctx, const ContentsReport& report) {
  const TableView& view = report.table->view;
  if (view.rows() < 1 || view.cols() < 1) {
    throw Error(ErrorCode::bad_data, fmt::format("{}: the table is empty, and there is nothing to show", report.file));
  }
  const Contents contents = read_contents(ctx, view);
  const std::string name = std::filesystem::path(report.file).filename().string();
  return page(
      "Contents of " + name,
      fmt::format("<header><p class=\"over\">Contents report</p><h1>{}</h1><p>What the file holds</p></header>\n",
                  escape(name)) +
          hero(report, contents) + facts(report, contents) + values_section(contents, view) + images_section(report) +
          columns_section(report, contents) + footer());
}

}  // namespace vicinal::cli::report
