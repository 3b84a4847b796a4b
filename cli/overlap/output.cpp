// See output.hpp.
#include "overlap/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

constexpr int kChanges = static_cast<int>(Change::complex) + 1;
constexpr std::size_t kListed = 100;  // ids that a list in JSON names; its count says how many there are

Json ids_of(const std::vector<std::int64_t>& features, const std::vector<std::string>& ids) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(features.size(), kListed); ++i) {
    list.push_back(ids[static_cast<std::size_t>(features[i])]);
  }
  return list;
}

Json side(const std::string& path, const PolygonLayer& layer, const std::vector<MatchFeature>& features) {
  std::vector<std::int64_t> hubs;
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i].hub) hubs.push_back(static_cast<std::int64_t>(i));
  }
  return {{"file", path},
          {"crs", layer.crs},
          {"features", layer.polygons.size()},
          {"empty", layer.empty},
          {"repaired", layer.repaired.size()},
          {"repaired_ids", ids_of(layer.repaired, layer.ids)},
          {"cut", layer.cut.size()},
          {"cut_ids", ids_of(layer.cut, layer.ids)},
          {"hubs", hubs.size()},
          {"hub_ids", ids_of(hubs, layer.ids)}};
}

std::string repairs(const PolygonLayer& layer, const std::string& path) {
  if (layer.repaired.empty()) return {};
  std::string text =
      fmt::format("\n{}: {} features covered a place twice and were repaired:", path, layer.repaired.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(layer.repaired.size(), 10); ++i) {
    text += " " + layer.ids[static_cast<std::size_t>(layer.repaired[i])];
  }
  return text + (layer.repaired.size() > 10 ? " ... (--json lists more)" : "");
}

}  // namespace

std::vector<std::int64_t> count_changes(const Match& match) {
  std::vector<std::int64_t> counts(kChanges, 0);
  for (const MatchGroup& group : match.groups) ++counts[static_cast<std::size_t>(group.change)];
  return counts;
}

std::int64_t count_cut(const Match& match) {
  return std::count_if(match.pairs.begin(), match.pairs.end(), [](const MatchPair& pair) { return pair.cut; });
}

std::int64_t count_kept(const Match& match) {
  return std::count_if(match.pairs.begin(), match.pairs.end(), [](const MatchPair& pair) { return pair.kept; });
}

std::string pairs_csv(const PolygonLayers& layers, const Match& match) {
  std::string text = "a_id,b_id,area,share_a,share_b,iou,width,relation,kept,doubtful,group,cut\n";
  for (const MatchPair& pair : match.pairs) {
    const Overlap& overlap = pair.overlap;
    if (!pair.kept && !pair.cut && !(overlap.area > 0)) continue;
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{},{}\n",
                   csv_field(layers.a.ids[static_cast<std::size_t>(overlap.a)]),
                   csv_field(layers.b.ids[static_cast<std::size_t>(overlap.b)]), overlap.area, pair.share_a,
                   pair.share_b, pair.iou, overlap.width, name_of(overlap.relation), pair.kept ? 1 : 0,
                   pair.doubtful ? 1 : 0, pair.kept ? fmt::format("{}", pair.group) : std::string(), pair.cut ? 1 : 0);
  }
  return text;
}

Json to_json(const MatchedFiles& files, double seconds) {
  const Match& match = *files.match;
  Json changes;
  const std::vector<std::int64_t> counts = count_changes(match);
  for (int c = 0; c < kChanges; ++c) {
    changes[std::string(name_of(static_cast<Change>(c)))] = counts[static_cast<std::size_t>(c)];
  }
  Json review = Json::array();
  std::int64_t doubtful = 0;
  for (const MatchPair& pair : match.pairs) {
    if (!pair.doubtful || ++doubtful > static_cast<std::int64_t>(kListed)) continue;
    review.push_back({{"a", files.layers->a.ids[static_cast<std::size_t>(pair.overlap.a)]},
                      {"b", files.layers->b.ids[static_cast<std::size_t>(pair.overlap.b)]},
                      {"kept", pair.kept},
                      {"area", pair.overlap.area},
                      {"share_a", pair.share_a},
                      {"share_b", pair.share_b},
                      {"iou", pair.iou},
                      {"width", pair.overlap.width}});
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
      {"a", side(files.path_a, files.layers->a, match.a)},
      {"b", side(files.path_b, files.layers->b, match.b)},
      {"projection", files.layers->projection},
      {"rule",
       {{"name", name_of(match.options.rule)},
        {"threshold", match.options.threshold},
        {"min_width", match.options.min_width},
        {"unchanged_iou", match.options.unchanged_iou},
        {"max_partners", match.options.max_partners},
        {"max_area", match.options.max_area},
        {"max_members", match.options.split.max_members},
        {"max_steps", match.options.split.max_steps}}},
      {"pairs",
       {{"candidates", match.candidates},
        {"meeting", match.pairs.size()},
        {"kept", count_kept(match)},
        {"doubtful", doubtful}}},
      {"groups",
       {{"count", match.groups.size()}, {"largest", largest}, {"overlap_themselves", itself}, {"changes", changes}}},
      {"split", {{"groups", match.split_groups}, {"cut", cut}}},
      {"review", review},
      {"seconds", seconds},
      {"versions", fmt::format("vicinal {}, {}", VICINAL_VERSION, files.layers->versions)}};
}

std::string summary(const MatchedFiles& files, double seconds) {
  const Match& match = *files.match;
  std::string changes;
  const std::vector<std::int64_t> counts = count_changes(match);
  for (int c = 0; c < kChanges; ++c) {
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
         repairs(files.layers->a, files.path_a) + repairs(files.layers->b, files.path_b);
}

}  // namespace vicinal::cli
