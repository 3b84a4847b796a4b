// The loop of the classical serial k-means tool, in its float32: what ours is measured against, never what ours is made
// of. It rounds as float32 does, so that its labels may differ from the exact ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vicinal::cli {

struct SerialLloyd {
  std::vector<float> centres;        ///< [k, d]
  std::vector<std::int32_t> labels;  ///< [n]
  std::int64_t iterations = 0;
};

/// From the first k of n rows [n, d] until at most `share` of the labels change, or `most` iterations are over.
/// O(n k d) an iteration.
SerialLloyd serial_lloyd(std::span<const float> rows, std::int64_t d, std::int64_t k, double share, std::int64_t most);

}  // namespace vicinal::cli
