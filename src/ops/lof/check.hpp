// What lof and novelty refuse before they begin.
#pragma once

#include "vicinal/lof.hpp"

namespace vicinal::ops {

/// Entries of a row's list that the options ask for.
inline std::int64_t longest_k(const LofOptions& options) {
  return options.k_to > 0 ? options.k_to : options.k;
}
/// Whether neighborhoods are lists of places.
inline bool uses_places(const LofOptions& options) {
  return options.duplicates == Duplicates::distinct || options.ties == Ties::all;
}

/// Throws `invalid_argument` for options that are outside their domain or do not go together, k and k_to left out.
void check_lof_options(const LofOptions& options);
/// The same of k and k_to for a table of n rows.
void check_lof_k(const LofOptions& options, std::int64_t n);
/// Throws `bad_data` naming the row for a graph that cannot be a table's within itself, `invalid_argument` for one of
/// other rows, or with fewer neighbors than `k`.
void check_lof_graph(const Context& ctx, const NeighborGraph& graph, const LofOptions& options);
/// The same for the lists of the rows from `first_row` on of a table of n rows, which are those of one rank.
void check_lof_lists(const Context& ctx, const NeighborGraph& graph, std::int64_t first_row, std::int64_t n,
                     const LofOptions& options);
/// Throws `invalid_argument` naming a score or an option that needs what no rank has alone.
void check_lof_shards(const LofOptions& options);
/// Throws `invalid_argument` for a table that is not in host memory.
void check_places(const TableView& table);
/// Throws `invalid_argument` for a model that was not kept for novelty or is of another table.
void check_lof_model(const Lof& model, std::int64_t n);

}  // namespace vicinal::ops
