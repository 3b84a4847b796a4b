// `vicinal-bench papers` without a subcommand: all parts, one JSON and one page.
#pragma once

#include "command/papers.hpp"

namespace vicinal::cli {

/// Runs all parts, on the CPU and on a device where there is one, and writes options.output and options.html after
/// each. Throws `internal` where an answer is wrong, after both are written.
void run_all_papers(const PapersOptions& options);
/// Measures nothing: writes both again from the result options.from. Throws `bad_data` where it is no such result.
void draw_all_papers(const PapersOptions& options);

}  // namespace vicinal::cli
