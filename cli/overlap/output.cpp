// See output.hpp.
#include "overlap/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/interrupt.hpp"
#include "io/shown.hpp"
#include "overlap/changes.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

Json side(const std::string& path, const PolygonLayer& layer, const std::vector<MatchFeature>& features,
          const LayerOverlap& within) {
  std::vector<std::int64_t> hubs;
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i].hub) hubs.push_back(static_cast<std::int64_t>(i));
  }
  Json most = Json::array();
  if (within.pairs > 0) most = listed({within.first, within.second}, layer.ids);
  return {{"file", path},
          {"crs", layer.crs},
          {"features", layer.polygons.size()},
          {"empty", layer.empty},
          {"repaired", layer.repaired.size()},
          {"repaired_ids", listed(layer.repaired, layer.ids)},
          {"cut", layer.cut.size()},
          {"cut_ids", listed(layer.cut, layer.ids)},
          {"hubs", hubs.size()},
          {"hub_ids", listed(hubs, layer.ids)},
          {"on_itself",
           {{"pairs", within.pairs},
            {"features", within.features},
            {"share", within.area > 0 ? within.covered / within.area : 0},
            {"most", most}}}};
}

/// A number, or null.
Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json sums_carried(const MatchedFiles& files) {
  Json list = Json::array();
  for (std::size_t c = 0; c < files.carry->sum.size(); ++c) {
    list.push_back(
        {{"column", files.carry->sum[c]}, {"total", files.carried->total[c]}, {"left", files.carried->left[c]}});
  }
  return list;
}

/// Amounts that lie where the new map has no feature, or on which it lies twice.
std::string left_over(const MatchedFiles& files) {
  constexpr double kRounding = 1e-6;  // of the total
  std::string text;
  for (std::size_t c = 0; c < files.carry->sum.size(); ++c) {
    const double left = files.carried->left[c];
    const double total = files.carried->total[c];
    if (!(std::fabs(left) > kRounding * std::fabs(total))) continue;
    text += left > 0 ? fmt::format("\n{:g} of {:g} of column {} are in places where {} has no feature", left, total,
                                   files.carry->sum[c], files.path_b)
                     : fmt::format("\n{:g} of column {} are counted twice, where features of {} overlap each other",
                                   -left, files.carry->sum[c], files.path_b);
  }
  return text;
}

std::string repairs(const PolygonLayer& layer, const std::string& path) {
  if (layer.repaired.empty()) return {};
  std::string text =
      fmt::format("\n{}: {} features covered a place twice and were repaired:", path, layer.repaired.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(layer.repaired.size(), 10); ++i) {
    text += " " + io::printable(label_of(layer, layer.repaired[i]));
  }
  return text + (layer.repaired.size() > 10 ? " ... (--json lists more)" : "");
}

}  // namespace

std::string_view status_of(Change change) noexcept {
  switch (change) {
    case Change::unchanged:
    case Change::modified:
      return "retained";
    case Change::removed:
      return "retired";
    case Change::created:
      return "added";
    default:
      return "replaced";
  }
}

std::string label_of(const PolygonLayer& layer, std::int64_t feature) {
  const auto at = static_cast<std::size_t>(feature);
  return layer.names.empty() ? layer.ids[at] : fmt::format("{} ({})", layer.ids[at], layer.names[at]);
}

Json listed(const std::vector<std::int64_t>& features, const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(features.size(), kListed); ++i) {
    list.push_back(texts[static_cast<std::size_t>(features[i])]);
  }
  return list;
}

std::vector<std::int64_t> count_changes(const Match& match) {
  std::vector<std::int64_t> counts(kChangeCount, 0);
  for (const MatchGroup& group : match.groups) ++counts[static_cast<std::size_t>(group.change)];
  return counts;
}

std::int64_t count_cut(const Match& match) {
  return std::count_if(match.pairs.begin(), match.pairs.end(), [](const MatchPair& pair) { return pair.cut; });
}

std::int64_t count_slivers(const Match& match) {
  return std::count_if(match.pairs.begin(), match.pairs.end(),
                       [](const MatchPair& pair) { return pair.sliver && pair.overlap.area > 0; });
}

std::int64_t count_kept(const Match& match) {
  return std::count_if(match.pairs.begin(), match.pairs.end(), [](const MatchPair& pair) { return pair.kept; });
}

std::string pairs_csv(const PolygonLayers& layers, const Match& match) {
  std::string text = layers.a.names.empty() ? "a_id" : "a_id,a_name";
  text += layers.b.names.empty() ? ",b_id" : ",b_id,b_name";
  text += ",area,share_a,share_b,iou,width,relation,kept,doubtful,group,cut,sliver\n";
  for (const MatchPair& pair : match.pairs) {
    poll_interrupt();
    const Overlap& overlap = pair.overlap;
    if (!pair.kept && !pair.cut && !(overlap.area > 0)) continue;
    const auto a = static_cast<std::size_t>(overlap.a);
    const auto b = static_cast<std::size_t>(overlap.b);
    text += csv_field(layers.a.ids[a]) + ",";
    if (!layers.a.names.empty()) text += csv_field(layers.a.names[a]) + ",";
    text += csv_field(layers.b.ids[b]);
    if (!layers.b.names.empty()) text += "," + csv_field(layers.b.names[b]);
    fmt::format_to(std::back_inserter(text), ",{},{},{},{},{},{},{},{},{},{},{}\n", overlap.area, pair.share_a,
                   pair.share_b, pair.iou, overlap.width, name_of(overlap.relation), pair.kept ? 1 : 0,
                   pair.doubtful ? 1 : 0, pair.kept ? fmt::format("{}", pair.group) : std::string(), pair.cut ? 1 : 0,
                   pair.sliver ? 1 : 0);
  }
  return text;
}

Json to_json(const MatchedFiles& files, double seconds) {
  const Match& match = *files.match;
  Json changes;
  const std::vector<std::int64_t> counts = count_changes(match);
  for (int c = 0; c < kChangeCount; ++c) {
    changes[std::string(name_of(static_cast<Change>(c)))] = counts[static_cast<std::size_t>(c)];
  }
  Json review = Json::array();
  std::int64_t doubtful = 0;
  for (const MatchPair& pair : match.pairs) {
    if (!pair.doubtful || ++doubtful > static_cast<std::int64_t>(kListed)) continue;
    const auto a = static_cast<std::size_t>(pair.overlap.a);
    const auto b = static_cast<std::size_t>(pair.overlap.b);
    Json line = {{"a", files.layers->a.ids[a]}, {"b", files.layers->b.ids[b]}};
    if (!files.layers->a.names.empty()) line["a_name"] = files.layers->a.names[a];
    if (!files.layers->b.names.empty()) line["b_name"] = files.layers->b.names[b];
    line.update({{"kept", pair.kept},
                 {"area", pair.overlap.area},
                 {"share_a", pair.share_a},
                 {"share_b", pair.share_b},
                 {"iou", pair.iou},
                 {"width", pair.overlap.width}});
    review.push_back(std::move(line));
  }
  Json cut = Json::array();
  for (const MatchPair& pair : match.pairs) {
    if (!pair.cut) continue;
    cut.push_back({{"a", files.layers->a.ids[static_cast<std::size_t>(pair.overlap.a)]},
                   {"b", files.layers->b.ids[static_cast<std::size_t>(pair.overlap.b)]},
                   {"share", std::max(pair.share_a, pair.share_b)}});
  }
  std::int64_t largest = 0;
  std::int64_t itself = 0;
  for (const MatchGroup& group : match.groups) {
    largest = std::max(largest, group.count_a + group.count_b);
    itself += group.overlaps_itself ? 1 : 0;
  }
  return {
      {"a", side(files.path_a, files.layers->a, match.a, *files.within_a)},
      {"b", side(files.path_b, files.layers->b, match.b, *files.within_b)},
      {"projection", files.layers->projection},
      {"rule",
       {{"name", name_of(match.options.rule)},
        {"threshold", match.options.threshold},
        {"min_width", match.options.min_width},
        {"sliver_width", match.options.sliver_width},
        {"unchanged_iou", match.options.unchanged_iou},
        {"max_partners", match.options.max_partners},
        {"max_area", match.options.max_area},
        {"max_members", match.options.split.max_members},
        {"max_steps", match.options.split.max_steps}}},
      {"pairs",
       {{"candidates", match.candidates},
        {"meeting", match.pairs.size()},
        {"kept", count_kept(match)},
        {"doubtful", doubtful},
        {"slivers", count_slivers(match)}}},
      {"groups",
       {{"count", match.groups.size()}, {"largest", largest}, {"overlap_themselves", itself}, {"changes", changes}}},
      {"changed", changes_json(*files.layers, *files.changes)},
      {"carried", sums_carried(files)},
      {"advice",
       {{"unchanged", number_or_null(files.advice.unchanged)},
        {"sliver_width", number_or_null(files.advice.sliver_width)}}},
      {"split", {{"groups", match.split_groups}, {"cut", cut}}},
      {"review", review},
      {"seconds", seconds},
      {"versions", fmt::format("vicinal {}, {}", VICINAL_VERSION, files.layers->versions)}};
}

std::string summary(const MatchedFiles& files, double seconds) {
  const Match& match = *files.match;
  std::string changes;
  const std::vector<std::int64_t> counts = count_changes(match);
  for (int c = 0; c < kChangeCount; ++c) {
    if (counts[static_cast<std::size_t>(c)] == 0) continue;
    changes += fmt::format("{}{} {}", changes.empty() ? "" : ", ", format_count(counts[static_cast<std::size_t>(c)]),
                           name_of(static_cast<Change>(c)));
  }
  const std::int64_t doubtful =
      std::count_if(match.pairs.begin(), match.pairs.end(), [](const MatchPair& pair) { return pair.doubtful; });
  return fmt::format("{} and {} features: {} pairs kept in {} groups ({}); {} pairs worth a look; {:.2f} s",
                     format_count(files.layers->a.polygons.size()), format_count(files.layers->b.polygons.size()),
                     format_count(count_kept(match)), format_count(static_cast<std::int64_t>(match.groups.size())),
                     changes, format_count(doubtful), seconds) +
         (match.split_groups == 0 ? ""
                                  : fmt::format("\n{} groups were too large and divided, {} pairs cut",
                                                format_count(match.split_groups), format_count(count_cut(match)))) +
         (match.options.sliver_width > 0
              ? fmt::format("\n{} overlaps are slivers: narrower than {:g} m, and not half of both features",
                            format_count(count_slivers(match)), match.options.sliver_width)
              : "") +
         left_over(files) + repairs(files.layers->a, files.path_a) + repairs(files.layers->b, files.path_b);
}

}  // namespace vicinal::cli
