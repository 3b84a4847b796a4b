// What `vicinal match` tells of maps for which its limits do not suit: layers that lie on themselves, and maps that
// were generalized differently, with the limits that their own numbers suggest.
#pragma once

#include <optional>
#include <string>

#include "vicinal/match.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {

/// Limits to try; none where the ones in use suit.
struct Advice {
  std::optional<double> unchanged;     ///< for --unchanged: nine of ten one-to-one groups have at least that IoU
  std::optional<double> sliver_width;  ///< for --sliver-width: nine of ten pairs that are not kept are narrower
};

/// From the groups and the widths of the pairs, where nine of ten one-to-one groups are `modified`, or a tenth of all
/// groups is `complex`.
Advice advise(const Match& match);

/// Sentences about it; empty where there is no advice.
std::string told(const Advice& advice, const Match& match);

/// One sentence where a hundredth of the area of a layer lies on other features of it; `option` chooses among features.
std::string told(const LayerOverlap& within, const PolygonLayer& layer, const std::string& path,
                 const std::string& option);

}  // namespace vicinal::cli
