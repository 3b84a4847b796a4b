// The list of what became of each feature, for tables and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/output.hpp"
#include "vicinal/match.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {

/// change,status,group,a_id,b_id,area,share_a,share_b of each line, with a_name and b_name where the maps have names.
std::string changes_csv(const PolygonLayers& layers, const std::vector<ListedChange>& changes);

/// By change, the first hundred groups of each: {"split": [{"group": 3, "a": ["x"], "b": ["y", "z"]}], ...}.
Json changes_json(const PolygonLayers& layers, const std::vector<ListedChange>& changes);

}  // namespace vicinal::cli
