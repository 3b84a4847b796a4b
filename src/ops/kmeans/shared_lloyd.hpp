// Lloyd's iterations over the rows of all ranks (contract clause 12, shards): every rank has the centers and its own
// labels; sizes, sums and inertia are added as integers. To those who iterate it is a table like any other, whose
// functions all ranks call in the same order. Rows are numbered over all ranks, but for labels and keys, which are
// those of the rank's own rows. Rows that a rank lacks altogether are no error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kmeans.hpp"
#include "vicinal/communicator.hpp"
#include "vicinal/context.hpp"

namespace vicinal::ops {

class SharedLloyd final : public kernels::Lloyd {
 public:
  /// `own` is null for a rank without rows. `begins` [ranks + 1]: the first row of each rank, and the number of rows.
  SharedLloyd(const Context& ctx, Communicator& ranks, std::unique_ptr<kernels::ShardLloyd> own, kernels::SumGrid grid,
              std::vector<std::int64_t> begins)
      : ctx_(ctx), ranks_(ranks), own_(std::move(own)), grid_(std::move(grid)), begins_(std::move(begins)) {}

  void start(std::span<const double> centres) override;
  kernels::LloydStep assign() override;
  void move(std::int64_t row, std::int32_t cluster) override;
  double means() override;
  void recentre(std::span<const double> centres) override;
  void centres(std::span<double> centres) const override;
  void sizes(std::span<std::int64_t> sizes) const override;
  void labels(std::span<std::int32_t> labels) const override;
  void keys(std::span<double> keys) override;
  double inertia() override;
  void rows(std::span<const std::int64_t> rows, std::span<double> values) const override;
  std::unique_ptr<kernels::Seeding> seeding(std::int64_t trials) override;
  [[nodiscard]] kernels::AssignCounts counts() const override;

  /// The most bytes it takes beside the rank's own for k clusters of d columns and n rows of all ranks, with sums of
  /// so many limbs.
  static std::uint64_t bytes(std::int64_t k, std::int64_t d, std::int64_t n, bool weighted, std::int64_t limbs);
  /// What it takes beyond that for sums on this grid.
  static std::uint64_t more_bytes(std::int64_t k, const kernels::SumGrid& grid, std::int64_t planned_limbs);

 private:
  [[nodiscard]] std::int64_t first() const { return begins_[static_cast<std::size_t>(ranks_.rank())]; }
  [[nodiscard]] std::int64_t end() const { return begins_[static_cast<std::size_t>(ranks_.rank()) + 1]; }
  [[nodiscard]] std::size_t d() const { return static_cast<std::size_t>(grid_.cols()); }

  const Context& ctx_;
  Communicator& ranks_;
  std::unique_ptr<kernels::ShardLloyd> own_;
  kernels::SumGrid grid_;
  std::vector<std::int64_t> begins_;
  std::int64_t k_ = 0;
  std::vector<double> centres_;      // [k, d]
  std::vector<std::int64_t> parts_;  // [k, cluster_size], of all ranks
};

}  // namespace vicinal::ops
