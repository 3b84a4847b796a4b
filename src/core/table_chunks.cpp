// See table_chunks.hpp.
#include "core/table_chunks.hpp"

#include <cmath>
#include <cstring>
#include <mutex>

namespace vicinal::core {

std::int64_t first_non_finite(const double* values, std::int64_t count) {
  constexpr std::int64_t kRun = 512;
  constexpr std::uint64_t kExponent = std::uint64_t{0x7FF} << 52;
  for (std::int64_t begin = 0; begin < count; begin += kRun) {
    const std::int64_t end = std::min(count, begin + kRun);
    std::uint64_t found = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, values + i, sizeof bits);
      found |= static_cast<std::uint64_t>((bits & kExponent) == kExponent);
    }
    if (found == 0) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) return i;
    }
  }
  return -1;
}

std::pair<std::int64_t, std::int64_t> find_non_finite(const Context& ctx, const TableView& table) {
  if (table.dtype() == DType::uint8) return {-1, -1};
  std::mutex mutex;
  std::int64_t first = -1;
  for_each_chunk(ctx, table, [&](std::int64_t begin, const double* rows, std::int64_t count) {
    const std::int64_t at = first_non_finite(rows, count * table.cols());
    if (at < 0) return;
    const std::scoped_lock lock(mutex);
    const std::int64_t position = begin * table.cols() + at;
    if (first < 0 || position < first) first = position;
  });
  if (first < 0) return {-1, -1};
  return {first / table.cols(), first % table.cols()};
}

}  // namespace vicinal::core
