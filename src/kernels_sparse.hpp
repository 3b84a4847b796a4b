// The second waist, of what works on sparse matrices: what a backend provides for locally linear embedding (contract
// clause 17). Only the CPU does as yet; a device's half takes its place here, and nothing above changes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "solver/rows.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::kernels {

/// A checked task: neighbors [n, k] of the rows of a table in host memory, none its own.
struct LleTask {
  TableView table;
  std::vector<solver::Point> ids;
  std::int64_t k = 0;
  LleOptions options;  ///< the solver may be `automatic`
};

/// Fills embedding, piece, pieces, error, largest_weight and seconds, adds to `plan`.
void embed(const Context& ctx, const LleTask& task, Lle& result);

/// Bytes for the neighbors' rows, before a solver is known.
std::uint64_t embed_bytes(const Context& ctx, std::int64_t n, std::int64_t d, const LleOptions& options);

}  // namespace vicinal::kernels
