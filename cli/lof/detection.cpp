// See detection.hpp.
#include "lof/detection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

std::optional<Ranking> rank_outliers(const Context& ctx, const Labels& labels, std::span<const double> scores,
                                     std::int64_t normal) {
  std::vector<std::int32_t> outlying(labels.codes.size());
  Ranking found;
  for (std::size_t i = 0; i < outlying.size(); ++i) {
    outlying[i] = labels.codes[i] != normal ? 1 : 0;
    found.outliers += outlying[i];
  }
  if (found.outliers == 0 || found.outliers == std::ssize(outlying)) return std::nullopt;
  found.roc_auc = roc_auc_score(ctx, outlying, scores);
  found.average_precision = average_precision_score(ctx, outlying, scores);
  found.precision_at_n = precision_at_n_score(ctx, outlying, scores);
  found.curve = roc_curve(ctx, outlying, scores);
  return found;
}

}  // namespace

Detection detect(const Context& ctx, const Labels& labels, std::span<const double> scores,
                 std::span<const std::int64_t> ranked, double top_share, const std::string& normal) {
  const std::int64_t count = labels.class_count();
  std::vector<Detection::Class> all(static_cast<std::size_t>(count));
  for (const std::int32_t code : labels.codes) ++all[static_cast<std::size_t>(code)].rows;
  Detection found;
  found.top_share = top_share;
  const auto n = static_cast<std::int64_t>(ranked.size());
  found.top_rows = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(top_share * static_cast<double>(n))),
                                            std::min<std::int64_t>(n, 1), n);
  for (std::int64_t i = 0; i < found.top_rows; ++i) {
    const auto row = static_cast<std::size_t>(ranked[static_cast<std::size_t>(i)]);
    ++all[static_cast<std::size_t>(labels.codes[row])].found;
  }
  std::int64_t known = -1;
  for (std::int64_t c = 0; c < count; ++c) {
    auto& one = all[static_cast<std::size_t>(c)];
    one.name = labels.name_of(c);
    if (one.name == normal && one.rows > 0) known = c;
  }
  if (!normal.empty() && known < 0) {
    throw Error(ErrorCode::bad_data, fmt::format("--normal: no row has the label '{}'", normal));
  }
  // Of the labels in a file, those of rows that were left out may not occur.
  const auto occurs = [](const Detection::Class& one) { return one.rows > 0; };
  if (normal.empty() && std::count_if(all.begin(), all.end(), occurs) == 2) {
    const auto larger = [](const Detection::Class& a, const Detection::Class& b) { return a.rows < b.rows; };
    known = std::max_element(all.begin(), all.end(), larger) - all.begin();
  }
  if (known >= 0) {
    found.normal = all[static_cast<std::size_t>(known)].name;
    found.ranking = rank_outliers(ctx, labels, scores, known);
  }
  std::erase_if(all, [&](const Detection::Class& one) { return !occurs(one); });
  found.classes = std::move(all);
  return found;
}

}  // namespace vicinal::cli
