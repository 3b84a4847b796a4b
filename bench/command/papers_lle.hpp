// `vicinal-bench papers lle`: locally linear embedding as Li, Yan and Zhang 2021 measure it: K = 9 neighbors in D = 32
// columns, swiss roll and S-curve over n, by a Krylov method, on the CPU and on a device where one is taken; the Krylov
// part alone; and the forms of the sparse product in it.
#pragma once

#include "command/papers.hpp"

namespace vicinal::cli {

PapersPart measure_papers_lle(const PapersOptions& options);
/// Draws the figures of --svg from the result that --from names. Throws `bad_data` where it is none.
void draw_papers_lle(const PapersOptions& options);

}  // namespace vicinal::cli
