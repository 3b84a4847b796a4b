// --memberships of `vicinal hdbscan`: a file of how much each row belongs to each cluster, written as it comes.
#pragma once

#include <cstdint>
#include <string>

#include "density/density_command.hpp"
#include "vicinal/memberships.hpp"

namespace vicinal::cli {

/// .npy: [rows, clusters]; .csv: the row and a column for each cluster. `is_new`: the rows are not those of the index.
void write_memberships(const Context& ctx, const std::string& path, const DensityRows& rows, const Index& index,
                       const Hdbscan& fitted, bool is_new);

}  // namespace vicinal::cli
