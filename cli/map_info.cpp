// See map_info.hpp.
#include "map_info.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/input.hpp"
#include "io/shown.hpp"

namespace vicinal::cli {
namespace {

constexpr std::array<std::string_view, 5> kMapSuffixes = {".gpkg", ".shp", ".geojson", ".topojson", ".fgb"};

std::string extent_text(const std::vector<double>& extent) {
  if (extent.empty()) return "no extent";
  return fmt::format("x {:.10g} to {:.10g}, y {:.10g} to {:.10g}", extent[0], extent[2], extent[1], extent[3]);
}

}  // namespace

bool is_map(const std::string& file) {
  std::string suffix = std::filesystem::path(file).extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char letter) { return letter < 128 ? static_cast<char>(std::tolower(letter)) : letter; });
  if (std::find(kMapSuffixes.begin(), kMapSuffixes.end(), suffix) != kMapSuffixes.end()) return true;
  return suffix == ".json" &&
         (begins_with_word(file, "\"FeatureCollection\"") || begins_with_word(file, "\"Topology\""));
}

Json map_json(const PolygonFileInfo& map) {
  Json layers = Json::array();
  for (const PolygonFileInfo::Layer& layer : map.layers) {
    Json columns = Json::array();
    for (std::size_t c = 0; c < layer.columns.size(); ++c) {
      columns.push_back({{"name", layer.columns[c]}, {"type", layer.types[c]}});
    }
    layers.push_back({{"name", layer.name},
                      {"features", layer.features},
                      {"geometry", layer.geometry},
                      {"crs", layer.crs.empty() ? Json(nullptr) : Json(layer.crs)},
                      {"extent", layer.extent.empty() ? Json(nullptr) : Json(layer.extent)},
                      {"columns", columns}});
  }
  return {{"format", map.format}, {"layers", layers}};
}

std::string map_text(const PolygonFileInfo& map) {
  std::string text;
  for (const PolygonFileInfo::Layer& layer : map.layers) {
    text += fmt::format("layer {}: {} feature{}, {}, {}, {}\n", io::printable(layer.name), format_count(layer.features),
                        layer.features == 1 ? "" : "s", layer.geometry,
                        layer.crs.empty() ? "no CRS" : io::printable(layer.crs), extent_text(layer.extent));
    if (layer.columns.empty()) continue;
    std::vector<std::vector<std::string>> lines = {{"column", "type"}};
    for (std::size_t c = 0; c < layer.columns.size(); ++c) {
      lines.push_back({io::printable(layer.columns[c]), layer.types[c]});
    }
    text += "\n" + format_table(lines) + (&layer == &map.layers.back() ? "" : "\n");
  }
  return text;
}

}  // namespace vicinal::cli
