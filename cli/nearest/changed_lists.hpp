// Lists within a radius that are written differently than they were found: changed one by one, as they come, and passed
// on in parts, so that no batch has to be held twice.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vicinal/graph.hpp"
#include "vicinal/radius_batches.hpp"

namespace vicinal::cli {

/// Appends the list of `row` to the ids and distances of `made`, changed.
using ChangeList = std::function<void(std::int64_t row, std::span<const std::int64_t> ids,
                                      std::span<const double> distances, NeighborGraph& made)>;

/// Table rows by the numbers that they have in their file. Borrows `numbers`.
ChangeList renumbered(std::span<const std::int64_t> numbers);
/// Each row first in its own list, at distance 0.
ChangeList with_row_itself();
/// Of the pairs of a symmetric relation those that remain where rows search only the rows of a filter, a bit each:
/// pairs with one row of the filter at least, or of two. Borrows `filter`.
ChangeList among_filtered(std::span<const std::uint64_t> filter, bool both);

/// Passes lists on to `take`, changed, in parts of about a megabyte.
void pass_on_changed(std::int64_t first, const NeighborGraph& lists, const ChangeList& change, const TakeLists& take);
/// Bytes that this takes beside the lists, of a table of n rows.
std::uint64_t changed_bytes(std::int64_t n);

}  // namespace vicinal::cli
