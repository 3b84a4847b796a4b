// See detection.hpp. The area is the share of pairs, an outlier and a normal row, of which the outlier has the larger
// score: counted in whole numbers, divided once.
#include "lof/detection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

std::optional<double> area(const Labels& labels, std::span<const double> scores, std::span<const std::int64_t> ranked,
                           std::int64_t normal) {
  __extension__ using Wide = unsigned __int128;
  Wide twice_won = 0;
  std::uint64_t outliers = 0;
  std::uint64_t normals = 0;
  for (std::size_t begin = 0; begin < ranked.size();) {
    const double score = scores[static_cast<std::size_t>(ranked[begin])];
    std::uint64_t equal_outliers = 0;
    std::uint64_t equal_normals = 0;
    std::size_t end = begin;
    for (; end < ranked.size() && scores[static_cast<std::size_t>(ranked[end])] == score; ++end) {
      const bool is_normal = labels.codes[static_cast<std::size_t>(ranked[end])] == normal;
      (is_normal ? equal_normals : equal_outliers) += 1;
    }
    twice_won += static_cast<Wide>(equal_normals) * (2 * static_cast<Wide>(outliers) + equal_outliers);
    outliers += equal_outliers;
    normals += equal_normals;
    begin = end;
  }
  if (outliers == 0 || normals == 0) return std::nullopt;
  return static_cast<double>(twice_won) / 2 / (static_cast<double>(outliers) * static_cast<double>(normals));
}

}  // namespace

Detection detect(const Labels& labels, std::span<const double> scores, std::span<const std::int64_t> ranked,
                 double top_share, const std::string& normal) {
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
    found.auc = area(labels, scores, ranked, known);
  }
  found.classes = std::move(all);
  return found;
}

}  // namespace vicinal::cli
