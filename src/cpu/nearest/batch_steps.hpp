// How many queries a round of a radius search takes, where its lists must fit into the room of a Handover.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/nearest.hpp"

namespace vicinal::cpu {

class BatchSteps {
 public:
  /// `most`: queries of a round where there is room for any lists, as there is without a Handover.
  BatchSteps(std::int64_t most, const kernels::Handover* handover) : most_(most), handover_(handover), step_(most) {}

  [[nodiscard]] std::int64_t next() const noexcept { return step_; }

  /// The lists of a round of so many queries took `bytes`: the next round is so large that it fills most of the room.
  void fitted(std::int64_t queries, std::uint64_t bytes) noexcept {
    constexpr double kShare = 0.85;
    constexpr double kGrowth = 4;
    if (handover_ == nullptr) return;
    const double filling =
        kShare * static_cast<double>(handover_->room) / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
    const double next = static_cast<double>(queries) * std::min(filling, kGrowth);
    step_ = next < static_cast<double>(most_) ? std::max<std::int64_t>(static_cast<std::int64_t>(next), 1) : most_;
  }

  /// They did not fit: the next round is half as large. Throws NoRoom for a round of one query.
  void failed(std::int64_t queries) {
    if (queries == 1) throw kernels::NoRoom{};
    step_ = queries / 2;
  }

 private:
  std::int64_t most_;
  const kernels::Handover* handover_;
  std::int64_t step_;
};

}  // namespace vicinal::cpu
