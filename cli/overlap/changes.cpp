// See changes.hpp.
#include "overlap/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/interrupt.hpp"
#include "overlap/output.hpp"

namespace vicinal::cli {
namespace {

void append_feature(std::string& text, const PolygonLayer& layer, std::int64_t at) {
  const auto i = static_cast<std::size_t>(at);
  text += ',';
  if (at >= 0) text += csv_field(layer.ids[i]);
  if (layer.names.empty()) return;
  text += ',';
  if (at >= 0) text += csv_field(layer.names[i]);
}

/// The features of one side, each once.
std::vector<std::int64_t> members(std::span<const ListedChange> lines, std::int64_t ListedChange::*side) {
  std::vector<std::int64_t> list;
  for (const ListedChange& line : lines) {
    if (line.*side >= 0) list.push_back(line.*side);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

void add_members(Json& json, const std::string& side, const PolygonLayer& layer,
                 const std::vector<std::int64_t>& list) {
  json[side] = listed(list, layer.ids);
  if (!layer.names.empty()) json[side + "_names"] = listed(list, layer.names);
}

}  // namespace

std::string changes_csv(const PolygonLayers& layers, const std::vector<ListedChange>& changes) {
  std::string text = "change,status,group,a_id";
  text += layers.a.names.empty() ? ",b_id" : ",a_name,b_id";
  text += layers.b.names.empty() ? ",area,share_a,share_b\n" : ",b_name,area,share_a,share_b\n";
  for (const ListedChange& line : changes) {
    poll_interrupt();
    fmt::format_to(std::back_inserter(text), "{},{},{}", name_of(line.change), status_of(line.change), line.group);
    append_feature(text, layers.a, line.a);
    append_feature(text, layers.b, line.b);
    fmt::format_to(std::back_inserter(text), ",{},{},{}\n", line.area, line.share_a, line.share_b);
  }
  return text;
}

Json changes_json(const PolygonLayers& layers, const std::vector<ListedChange>& changes) {
  Json json;
  for (int c = 0; c < kChangeCount; ++c) json[std::string(name_of(static_cast<Change>(c)))] = Json::array();
  for (std::size_t first = 0; first < changes.size();) {
    poll_interrupt();
    std::size_t end = first;
    while (end < changes.size() && changes[end].group == changes[first].group) ++end;
    const std::span<const ListedChange> lines(changes.data() + first, end - first);
    Json& list = json[std::string(name_of(lines.front().change))];
    first = end;
    if (list.size() >= kListed) continue;
    Json group = {{"group", lines.front().group}};
    add_members(group, "a", layers.a, members(lines, &ListedChange::a));
    add_members(group, "b", layers.b, members(lines, &ListedChange::b));
    list.push_back(std::move(group));
  }
  return json;
}

}  // namespace vicinal::cli
