// First centers drawn from the rows of all ranks (contract clause 12, draws): the draws are the same on every rank, the
// rows' masses are each rank's own (ops/kmeans/shared_masses.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kmeans.hpp"
#include "ops/kmeans/shared_masses.hpp"
#include "vicinal/communicator.hpp"

namespace vicinal::ops {

class SharedSeeding final : public kernels::Seeding {
 public:
  /// `lloyd` gives the rows of all ranks; `own` is null for a rank without rows.
  SharedSeeding(Communicator& ranks, const kernels::Lloyd& lloyd, std::unique_ptr<kernels::ShardSeeding> own,
                std::vector<std::int64_t> begins, std::int64_t cols);

  void draw(std::span<const double> draws, std::span<std::int64_t> rows) override;
  void choose(std::span<const double> draws, std::span<std::int64_t> rows) override;
  void meet(std::span<const std::int64_t> rows) override;
  double total() const override { return masses_.front().total(); }
  /// Of the rank's own rows.
  void winners(std::span<std::int32_t> winners) const override {
    if (own_) own_->winners(winners);
  }

 private:
  [[nodiscard]] std::vector<double> values_of(std::span<const std::int64_t> rows) const;

  Communicator& ranks_;
  const kernels::Lloyd& lloyd_;
  std::unique_ptr<kernels::ShardSeeding> own_;
  MassLayout layout_;
  std::vector<SharedMasses> masses_;  // one: as they are
  std::size_t cols_;
};

}  // namespace vicinal::ops
