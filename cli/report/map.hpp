// The report of `vicinal match`: one page with both maps colored by what became of their features, counts, and the
// doubtful pairs enlarged.
#pragma once

#include <string>

#include "overlap/output.hpp"

namespace vicinal::cli::report {

std::string render_map(const MatchedFiles& files, double seconds);

}  // namespace vicinal::cli::report
