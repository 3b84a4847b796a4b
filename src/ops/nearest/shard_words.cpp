// See shard_words.hpp.
#include "ops/nearest/shard_words.hpp"

#include <algorithm>
#include <cstddef>

#include "core/in_steps.hpp"
#include "core/table_access.hpp"

namespace vicinal::ops {

std::uint64_t bytes_of_lists(const NeighborPart& part) {
  return (2 * part.ids.size() + part.offsets.size() + part.radii.size()) * kWordBytes;
}

void copy_all_rows(const Context& ctx, const TableView& table, void* to) {
  const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
  const std::int64_t step = std::max<std::int64_t>(1, core::kElementsPerStep / table.cols());
  for (std::int64_t begin = 0; begin < table.rows(); begin += step) {
    ctx.check_cancelled();
    core::copy_rows(table, begin, std::min(table.rows(), begin + step),
                    static_cast<std::byte*>(to) + begin * row_bytes);
  }
}

}  // namespace vicinal::ops
