// The rows that were hardest, with the neighbors that voted: drawn when rows are images, listed when not.
#pragma once

#include <string>

#include "report/classification.hpp"

namespace vicinal::cli::report {

/// A <section>, or nothing when there are no rows.
std::string hardest_section(const ClassificationReport& report, const Classification& output);

}  // namespace vicinal::cli::report
