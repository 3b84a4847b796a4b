// What lle and transform refuse before they begin.
#pragma once

#include "vicinal/lle.hpp"

namespace vicinal::ops {

/// Throws `invalid_argument` for options outside their domain, of a table of n rows.
void check_lle_options(const LleOptions& options, std::int64_t n);
/// Throws `invalid_argument` for a table that is not in host memory, or has more rows than points can be numbered.
void check_lle_table(const TableView& table);
/// Throws `invalid_argument` for a graph of other rows or without k a row, `bad_data` naming the row for ids that
/// cannot be those of a table within itself.
void check_lle_graph(const NeighborGraph& graph, std::int64_t n);
/// Throws `invalid_argument` for an embedding that is not of n rows.
void check_lle_fitted(const Lle& fitted, std::int64_t n);

}  // namespace vicinal::ops
