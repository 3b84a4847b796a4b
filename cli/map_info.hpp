// What `vicinal info` tells of a map: its layers, where they lie, and the columns of their features.
#pragma once

#include <string>

#include "base/output.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {

/// By the suffix of a file, or by the first bytes of one that ends in .json.
bool is_map(const std::string& file);

Json map_json(const PolygonFileInfo& map);

/// The same for a person.
std::string map_text(const PolygonFileInfo& map);

}  // namespace vicinal::cli
