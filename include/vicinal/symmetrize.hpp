// symmetrize and with_self: neighbor graphs in the form that other programs read (docs/graphs.md; docs/contract.md,
// clause 25).
#pragma once

#include <cstdint>
#include <string_view>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"

namespace vicinal {

/// Which pairs of rows a symmetric graph has.
enum class Symmetry : std::uint8_t {
  either,  ///< "union": at least one of the two rows lists the other
  mutual,  ///< both rows list each other
};
/// "union", "mutual".
VICINAL_API std::string_view name_of(Symmetry symmetry) noexcept;
/// Throws `invalid_argument` listing the valid names.
VICINAL_API Symmetry symmetry_from(std::string_view name);

/// The symmetric graph of a graph of a table within itself, as CSR: row i lists j if and only if row j lists i, at the
/// same distance; if the two lists have different distances, the smaller one. Lists are in the order of (distance, id),
/// and have each id once. Metric, plan and stats are those of the argument.
///
/// O(e log k) time for e neighbors in lists of k, on all threads; memory: at most `symmetrize_bytes`. The same bits for
/// every thread count. Throws `invalid_argument` for a graph of other queries than the table's rows, arrays that do not
/// fit together and ids that are not rows; `bad_data` naming the row of a distance that is NaN; `over_memory`;
/// `cancelled`.
VICINAL_API NeighborGraph symmetrize(const Context& ctx, const NeighborGraph& graph, Symmetry symmetry);

/// The maximum number of bytes that `symmetrize` takes, result included, for a graph of `rows` rows with `neighbors`
/// neighbors in total. Throws `invalid_argument` for negative numbers.
VICINAL_API std::uint64_t symmetrize_bytes(const Context& ctx, std::int64_t rows, std::int64_t neighbors,
                                           Symmetry symmetry);

/// The graph of a table within itself, with each row added as the first of its own neighbors, at distance 0: each list
/// has one entry more. O(e) time and memory for e neighbors, one thread. Throws `invalid_argument` for a graph of other
/// queries than the table's rows, arrays that do not fit together, a row that already lists itself, and
/// Metric::inner_product, for which a row is not nearest to itself; `over_memory`; `cancelled`.
VICINAL_API NeighborGraph with_self(const Context& ctx, const NeighborGraph& graph);

}  // namespace vicinal
