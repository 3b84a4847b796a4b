// symmetrize and with_self: graphs as programs want them that take distances from elsewhere (docs/graphs.md;
// docs/contract.md, clause 25).
#pragma once

#include <cstdint>
#include <string_view>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"

namespace vicinal {

/// Which pairs of rows a symmetric graph has.
enum class Symmetry : std::uint8_t {
  either,  ///< "union": one of the two lists the other
  mutual,  ///< each of the two lists the other
};
/// "union", "mutual".
VICINAL_API std::string_view name_of(Symmetry symmetry) noexcept;
/// Throws `invalid_argument` listing the valid names.
VICINAL_API Symmetry symmetry_from(std::string_view name);

/// A graph of a table within itself made symmetric, as CSR: row i lists j where row j lists i, at the same distance,
/// the smaller one where the lists of both say different ones. Lists are in the order of (distance, id), and an id is
/// in a list once. Metric, plan and stats are the given graph's.
///
/// O(e log k) time for e neighbors in lists of k, on all threads; memory: at most `symmetrize_bytes`. The same bits for
/// every thread count. Throws `invalid_argument` for a graph of other queries than the table's rows, arrays that do not
/// fit together and ids that are no rows; `bad_data` naming the row of a distance that is NaN; `over_memory`;
/// `cancelled`.
VICINAL_API NeighborGraph symmetrize(const Context& ctx, const NeighborGraph& graph, Symmetry symmetry);

/// The bytes that `symmetrize` takes at most, result included, for a graph of `rows` rows and `neighbors` neighbors in
/// all. Throws `invalid_argument` for negative numbers.
VICINAL_API std::uint64_t symmetrize_bytes(const Context& ctx, std::int64_t rows, std::int64_t neighbors,
                                           Symmetry symmetry);

/// A graph of a table within itself with each row as the first of its own neighbors, at distance 0: lists are longer by
/// one. O(e) time and memory for e neighbors, one thread. Throws `invalid_argument` for a graph of other queries than
/// the table's rows, arrays that do not fit together, a row that lists itself already, and Metric::inner_product, by
/// which a row is not nearest to itself; `over_memory`; `cancelled`.
VICINAL_API NeighborGraph with_self(const Context& ctx, const NeighborGraph& graph);

}  // namespace vicinal
