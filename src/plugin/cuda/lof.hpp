// Outlier scores on a device, in terms of the plug-in's functions.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/lof.hpp"
#include "plugin/cuda/device.hpp"
#include "plugin/cuda/nearest.hpp"

namespace vicinal::plugin {

/// Neighborhoods of some of a table's rows, on a device until their scores are made (plugin/abi/plugin.hpp).
class CudaLofRows {
 public:
  CudaLofRows(std::shared_ptr<Device> device, const Context& ctx, void* made);

  void densities(const double* k_distances, double* densities) const;
  void scores(const double* densities, std::int64_t first_row, double* scores) const;

 private:
  std::shared_ptr<Device> device_;
  Context ctx_;
  std::shared_ptr<void> made_;  // let go of before the device
};

class CudaLof final : public kernels::LofBackend {
 public:
  /// `nearest` must outlive it.
  CudaLof(std::shared_ptr<Device> device, const CudaNearest& nearest) : device_(std::move(device)), nearest_(nearest) {}

  void score(const Context& ctx, const kernels::LofTask& task, kernels::LofResult& result) const override;
  kernels::MemoryNeed bytes(const Context& ctx, const kernels::LofTask& task) const override;
  void search_and_score(const Context& ctx, const kernels::NearestTask& search, const kernels::LofTask& task,
                        kernels::LofResult& result, SearchStats& stats) const override;
  /// Finds the lists of `task.near.rows` of a table's `rows` rows; k-distances [task rows, ks] go to `k_distances`.
  /// Adds to `copied` the rows whose last one is 0.
  [[nodiscard]] std::unique_ptr<CudaLofRows> find_rows(const Context& ctx, const kernels::NearestTask& search,
                                                       const kernels::LofTask& task, std::int64_t rows,
                                                       double* k_distances, std::int64_t& copied,
                                                       SearchStats& stats) const;
  /// Bytes of device memory that this takes beyond the search.
  [[nodiscard]] std::uint64_t rows_bytes(const kernels::LofTask& task, std::int64_t rows) const;

 private:
  std::shared_ptr<Device> device_;
  const CudaNearest& nearest_;
};

}  // namespace vicinal::plugin
