// See tree.hpp. A device's tree is over all rows of a table; a file's over the distinct ones, which differ where the
// index was made on the CPU: equal rows are then grouped. Any tree over any order is correct
// (cpu/nearest/tree/tree.hpp), so only the order is handed over, and cut into leaves anew.
#include "plugin/cuda/tree.hpp"

#include <algorithm>

namespace vicinal::plugin {
namespace {

constexpr std::int64_t kLeafRows = 32;
constexpr std::int64_t kChildren = 8;

/// Appends the part of the tree that begins at leaf `first` and has `leaves` leaves, `most` if it were full.
void append(std::int64_t first, std::int64_t leaves, std::int64_t most, kernels::TreeShape& shape) {
  if (most == 1) {
    const auto rows = static_cast<std::int64_t>(shape.order.size());
    shape.nodes.push_back(0);
    shape.leaf_sizes.push_back(std::min(kLeafRows, rows - first * kLeafRows));
    return;
  }
  const std::int64_t part = most / kChildren;
  shape.nodes.push_back((leaves + part - 1) / part);
  for (std::int64_t begin = 0; begin < leaves; begin += part) {
    append(first + begin, std::min(part, leaves - begin), part, shape);
  }
}

}  // namespace

kernels::TreeShape shape_in_order(std::vector<std::int64_t> order) {
  kernels::TreeShape shape;
  shape.order = std::move(order);
  const std::int64_t leaves = (static_cast<std::int64_t>(shape.order.size()) + kLeafRows - 1) / kLeafRows;
  std::int64_t most = 1;
  while (most < leaves) most *= kChildren;
  append(0, leaves, most, shape);
  return shape;
}

std::vector<std::int64_t> distinct_in_order(const kernels::Prepared& index, std::vector<std::int64_t> rows) {
  if (!index.grouped()) return rows;
  std::size_t kept = 0;
  for (const std::int64_t row : rows) {
    const auto group = std::lower_bound(index.distinct.begin(), index.distinct.end(), row);
    if (group != index.distinct.end() && *group == row) rows[kept++] = group - index.distinct.begin();
  }
  rows.resize(kept);
  return rows;
}

DeviceTree::DeviceTree(std::shared_ptr<Device> device, void* made, std::int64_t rows)
    : device_(std::move(device)), made_(device_->own(made, device_->functions().release_tree)), rows_(rows) {}

std::shared_ptr<const kernels::TreeShape> DeviceTree::shape_of(const Context& ctx,
                                                               const kernels::Prepared& index) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows_));
  device_->use(ctx, [&](void* /*engine*/, Call& /*call*/, Status& status) {
    device_->functions().tree_order(made_.get(), order.data(), &status);
  });
  return std::make_shared<const kernels::TreeShape>(shape_in_order(distinct_in_order(index, std::move(order))));
}

}  // namespace vicinal::plugin
