// Searches for the lightest edge from a row to a row of another component, on the device: in a kd-tree whose units know
// components, or among all rows, block by block.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/base/device.hpp"
#include "cuda/nearest/task.hpp"
#include "cuda/nearest/tree/tree.hpp"

namespace vicinal::cuda::density {

struct Growth;

class OtherRows {
 public:
  OtherRows() = default;
  OtherRows(const OtherRows&) = delete;
  OtherRows& operator=(const OtherRows&) = delete;
  virtual ~OtherRows() = default;

  /// Components have changed.
  virtual void relabel() = 0;
  /// Searches the rows at `count` places in `Growth::numbers` from `first` on. Throws `cancelled`.
  virtual void search(std::int64_t first, std::int64_t count) = 0;
  /// Rows whose keys were formed by the last search.
  virtual std::int64_t touched() = 0;
};

/// `search`: of a table within itself, which lies on the device. Takes at most `scratch` bytes beside `*_bytes`, which
/// must be at least `*_scratch`. Of a tree `Growth::order` is the order.
std::unique_ptr<OtherRows> other_rows_in_tree(const Engine& engine, const TreeView& tree, const Search& search,
                                              const Growth& growth, std::uint64_t scratch);
std::uint64_t in_tree_bytes(std::int64_t n, bool has_cores);
std::uint64_t in_tree_scratch(std::int64_t d);

std::unique_ptr<OtherRows> other_rows_of_all(const Engine& engine, const Search& search, const Growth& growth,
                                             std::uint64_t scratch);
std::uint64_t of_all_scratch(const Rows& table);

}  // namespace vicinal::cuda::density
