// A NeighborGraph on stdout: the first rows for a person, the summary as JSON.
#pragma once

#include <string>

#include "base/output.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cli {

/// A table of the first rows and their first neighbors, `id (distance)`.
std::string first_rows(const NeighborGraph& graph);
/// What was found, where it went, how it ran, and the first rows.
void describe_graph(const NeighborGraph& graph, const std::string& output, double seconds, Json& json);
/// One sentence on how many neighbors were found, how, how fast and where they are.
std::string graph_sentence(const NeighborGraph& graph, const std::string& output, double seconds);

}  // namespace vicinal::cli
