// `vicinal-bench papers cc`: the closure of a graph of 1,103 members, the paper's size, by its products, by bits and by
// components, on the CPU and on a device where one is taken; then components of as many edges as are asked for, with
// members numbered along the map and shuffled.
#pragma once

#include "command/papers.hpp"

namespace vicinal::cli {

PapersPart measure_papers_cc(const PapersOptions& options);

}  // namespace vicinal::cli
