// A kd-tree that lies on a device.
#pragma once

#include <memory>
#include <vector>

#include "backend/nearest.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

/// The tree whose leaves are runs of 32 of these distinct rows, and whose nodes hold eight parts each: what a file
/// keeps of a tree made on a device, whose order is such that every aligned run of rows belongs together.
kernels::TreeShape shape_in_order(std::vector<std::int64_t> order);

/// Rows of a table in some order -> its distinct rows in the order of their first members.
std::vector<std::int64_t> distinct_in_order(const kernels::Prepared& index, std::vector<std::int64_t> rows);

/// Owns a tree on the device, and the device with it.
class DeviceTree final : public kernels::Tree {
 public:
  /// Takes `made`, a tree of `rows` rows that the device's plug-in built.
  DeviceTree(std::shared_ptr<Device> device, void* made, std::int64_t rows);

  [[nodiscard]] std::shared_ptr<const kernels::TreeShape> shape_of(const Context& ctx,
                                                                   const kernels::Prepared& index) const override;
  [[nodiscard]] const void* on_device() const noexcept { return made_.get(); }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<void> made_;  // let go of before the device
  std::int64_t rows_;
};

}  // namespace vicinal::plugin
