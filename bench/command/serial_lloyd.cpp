// See serial_lloyd.hpp.
#include "command/serial_lloyd.hpp"

#include <algorithm>

namespace vicinal::cli {

SerialLloyd serial_lloyd(std::span<const float> rows, std::int64_t d, std::int64_t k, double share, std::int64_t most) {
  const std::int64_t n = static_cast<std::int64_t>(rows.size()) / d;
  SerialLloyd found;
  found.centres.assign(rows.begin(), rows.begin() + k * d);
  found.labels.assign(static_cast<std::size_t>(n), -1);
  std::vector<float> sums(found.centres.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(k));
  std::int64_t changed = n;
  while (found.iterations<most&& static_cast<double>(changed)> share * static_cast<double>(n)) {
    ++found.iterations;
    changed = 0;
    std::fill(sums.begin(), sums.end(), 0.0F);
    std::fill(sizes.begin(), sizes.end(), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      const float* const row = rows.data() + i * d;
      std::int32_t label = 0;
      float least = 0;
      for (std::int64_t c = 0; c < k; ++c) {
        const float* const centre = found.centres.data() + c * d;
        float distance = 0;
        for (std::int64_t j = 0; j < d; ++j) distance += (row[j] - centre[j]) * (row[j] - centre[j]);
        if (c == 0 || distance < least) {
          least = distance;
          label = static_cast<std::int32_t>(c);
        }
      }
      std::int32_t& before = found.labels[static_cast<std::size_t>(i)];
      changed += before != label ? 1 : 0;
      before = label;
      ++sizes[static_cast<std::size_t>(label)];
      for (std::int64_t j = 0; j < d; ++j) sums[static_cast<std::size_t>(label * d + j)] += row[j];
    }
    for (std::int64_t c = 0; c < k; ++c) {
      const auto size = static_cast<float>(sizes[static_cast<std::size_t>(c)]);
      for (std::int64_t j = 0; j < d && size > 0; ++j) {
        found.centres[static_cast<std::size_t>(c * d + j)] = sums[static_cast<std::size_t>(c * d + j)] / size;
      }
    }
  }
  return found;
}

}  // namespace vicinal::cli
