// See hardest.hpp. Hardest are the wrong rows that gave their true class the least weight; when there are too few wrong
// ones, the right rows with the smallest winning share follow.
#include "report/hardest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "report/html.hpp"
#include "report/picture.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::size_t kHardestShown = 12;
constexpr std::size_t kNeighborsShown = kNeighborsDrawn;

struct HardRow {
  bool right = false;
  double truth_share = 0;
  double winning_share = 0;
  std::int64_t row = 0;

  [[nodiscard]] auto key() const { return std::tuple(right, truth_share, right ? winning_share : -winning_share, row); }
};

double share_of(const Vote& vote, std::int64_t row, std::int32_t code) {
  return code < 0 ? 0 : vote.probabilities[static_cast<std::size_t>(row * vote.class_count + code)];
}

std::vector<HardRow> hardest_rows(const Classification& output) {
  std::vector<HardRow> rows(output.truth.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const std::int32_t said = output.vote->codes[i];
    rows[i] = {said == output.truth[i], share_of(*output.vote, row, output.truth[i]), share_of(*output.vote, row, said),
               row};
  }
  const std::size_t shown = std::min(rows.size(), kHardestShown);
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end(),
                    [](const HardRow& a, const HardRow& b) {
                      poll_interrupt();
                      return a.key() < b.key();
                    });
  rows.resize(shown);
  return rows;
}

std::string neighbor_item(const ClassificationReport& report, const Classification& output, std::int64_t id,
                          double distance, std::int32_t truth) {
  const std::int32_t code = output.labels->codes[static_cast<std::size_t>(id)];
  const std::string name = output.scores->names[static_cast<std::size_t>(code)];
  const char* color = code == truth ? "truth" : "said";
  const std::string about = fmt::format("training row {}, {}, distance {:.6g}", id, name, distance);
  if (report.image.height > 0) {
    return fmt::format("<li title=\"{0}\"><img alt=\"{0}\" src=\"{1}\"><b class=\"{2}\">{3}</b></li>", escape(about),
                       picture(*report.train, id, report.image), color, escape(shortened(name, 20)));
  }
  return fmt::format("<li title=\"{}\"><b class=\"{}\">{}</b> row {} at {:.4g}</li>", escape(about), color,
                     escape(shortened(name, 24)), id, distance);
}

std::string card(const ClassificationReport& report, const Classification& output, const HardRow& hard) {
  const std::int32_t truth = output.truth[static_cast<std::size_t>(hard.row)];
  const std::int32_t said = output.vote->codes[static_cast<std::size_t>(hard.row)];
  const auto name = [&](std::int32_t code) {
    return code < 0 ? std::string("nothing")
                    : escape(shortened(output.scores->names[static_cast<std::size_t>(code)], 32));
  };
  const bool image = report.image.height > 0;
  const std::string row = escape(shortened(report.asked.text(hard.row), 24));
  std::string text = "<div class=\"card\"><div class=\"what\">";
  if (image) {
    text += fmt::format("<img alt=\"test row {}\" src=\"{}\">", row, picture(*report.test, hard.row, report.image));
  }
  text += fmt::format("<p><strong><span class=\"truth\">{}</span> taken for <span class=\"{}\">{}</span></strong>",
                      name(truth), hard.right ? "truth" : "said", name(said));
  text += fmt::format("row {}; {:.0f}\u202f% of the vote for {}, {:.0f}\u202f% for {}</p></div>", row,
                      100 * hard.winning_share, name(said), 100 * hard.truth_share, name(truth));
  text += image ? "<ul class=\"near\">" : "<ul class=\"near words\">";
  const auto ids = report.profile->ids_of(hard.row);
  const auto distances = report.profile->distances_of(hard.row);
  for (std::size_t rank = 0; rank < std::min(ids.size(), kNeighborsShown); ++rank) {
    text += neighbor_item(report, output, ids[rank], distances[rank], truth);
  }
  return text + "</ul></div>\n";
}

}  // namespace

std::string hardest_section(const ClassificationReport& report, const Classification& output) {
  const std::vector<HardRow> rows = hardest_rows(output);
  if (rows.empty()) return {};
  const std::int64_t k = report.profile->k;
  std::string text = fmt::format(
      "<section><h2>The hardest {}</h2><p class=\"note\">Where the true class got the least of the vote, most certain "
      "errors "
      "first; below each, {} training {} in order of distance.</p><div class=\"cards\">\n",
      report.image.height > 0 ? "images" : "rows",
      k == 0 || k > static_cast<std::int64_t>(kNeighborsShown) ? fmt::format("the {} nearest", kNeighborsShown)
                                                               : fmt::format("its {} nearest", k),
      report.image.height > 0 ? "images" : "rows");
  for (const HardRow& row : rows) text += card(report, output, row);
  return text + "</div></section>\n";
}

}  // namespace vicinal::cli::report
