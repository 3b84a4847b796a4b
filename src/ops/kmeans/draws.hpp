// The random draws of one run of k-means, one after the other (contract clause 12).
#pragma once

#include <cstdint>
#include <vector>

#include "core/philox.hpp"

namespace vicinal::ops {

class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t run) : seed_(seed), stream_(0x6b6d0000U + static_cast<std::uint64_t>(run)) {}
  double next() { return core::philox_uniform(seed_, stream_, counter_++); }
  std::vector<double> next(std::int64_t count) {
    std::vector<double> draws(static_cast<std::size_t>(count));
    for (double& draw : draws) draw = next();
    return draws;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t counter_ = 0;
};

}  // namespace vicinal::ops
