// The page of `vicinal-bench growth`: exponents, drawings and counters of each system, in one file that loads nothing.
#pragma once

#include <string>
#include <vector>

#include "base/output.hpp"
#include "command/growth.hpp"

namespace vicinal::cli {

/// HTML of the sweeps; `head` has date, version, commit and machine.
std::string growth_page(const Json& head, const std::vector<MeasuredSystem>& systems);

}  // namespace vicinal::cli
