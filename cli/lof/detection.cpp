// See detection.hpp.
#include "lof/detection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "vicinal/error.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal::cli {
namespace {

/// Of all other classes against the one that is normal; none where there is no row of either kind.
std::optional<double> area(const Context& ctx, const Labels& labels, std::span<const double> scores,
                           std::int64_t normal) {
  std::vector<std::int32_t> outlying(labels.codes.size());
  std::size_t outliers = 0;
  for (std::size_t i = 0; i < outlying.size(); ++i) {
    outlying[i] = labels.codes[i] != normal ? 1 : 0;
    outliers += labels.codes[i] != normal ? 1 : 0;
  }
  if (outliers == 0 || outliers == outlying.size()) return std::nullopt;
  return roc_auc_score(ctx, outlying, scores);
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
    if (one.name == normal) known = c;
  }
  if (!normal.empty() && known < 0) {
    throw Error(ErrorCode::bad_data, fmt::format("--normal: no row has the label '{}'", normal));
  }
  if (normal.empty() && count == 2) known = all[0].rows >= all[1].rows ? 0 : 1;
  if (known >= 0) {
    found.normal = all[static_cast<std::size_t>(known)].name;
    found.auc = area(ctx, labels, scores, known);
  }
  found.classes = std::move(all);
  return found;
}

}  // namespace vicinal::cli
