// `vicinal-bench papers gs-attacks`: the robustness experiment of Liu, Zheng and Liu 2019. 5,000 training rows of KDD
// Cup 99, 4,900 of them normal and 100 attacks, and 500 test rows whose attacks are of other kinds; ten draws, k
// varied. Rates of detection and of false alarms, by the paper's method and by the reference's votes.
#pragma once

#include "command/papers.hpp"

namespace vicinal::cli {

PapersPart measure_papers_attacks(const PapersOptions& options);

}  // namespace vicinal::cli
