// A neighbor graph from the file that `vicinal knn` or `vicinal radius` wrote.
#pragma once

#include <filesystem>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cli {

/// A graph of a table within itself from an .npz with `ids`, `distances` and, for CSR, `offsets`. Whether the ids are
/// those of rows is for its consumer to say. Throws `bad_data` naming the file for arrays that do not fit together.
NeighborGraph read_graph(const Context& ctx, const std::filesystem::path& path);

}  // namespace vicinal::cli
