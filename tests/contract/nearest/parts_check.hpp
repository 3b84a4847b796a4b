// What the tests of parts have in common.
#pragma once

#include <vector>

#include "vicinal/parts.hpp"

namespace vicinal::contract {

/// Parts as sources.
inline std::vector<PartSource> sources_of(const std::vector<NeighborPart>& parts) {
  std::vector<PartSource> sources;
  for (const NeighborPart& part : parts) sources.push_back(source_of(Context::cpu(), part));
  return sources;
}

}  // namespace vicinal::contract
