// A line through points, with an axis on the left and one below.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/projection.hpp"

namespace vicinal::cli::report {

/// <svg> of the points in order of x, whole numbers such as iterations; `below` names them. The point `marked` is drawn
/// large, with its value. Points whose y is not finite are left out; empty text where that leaves none.
std::string curve_svg(const std::vector<Point>& points, const std::string& label, const std::string& below,
                      std::optional<std::size_t> marked = {});

}  // namespace vicinal::cli::report
