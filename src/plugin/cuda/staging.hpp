// Bytes that tables take in memory, and on their way to a device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugin/abi/plugin.hpp"
#include "vicinal/table.hpp"

namespace vicinal::plugin {

inline std::uint64_t table_bytes(const TableView& table) {
  return static_cast<std::uint64_t>(table.rows() * table.cols() * size_of(table.dtype()));
}

/// Pinned memory that rows of host tables pass through.
inline std::uint64_t staging_bytes(const TableView& table) {
  if (table.memory() == Memory::cuda) return 0;
  const std::uint64_t row = static_cast<std::uint64_t>(table.cols() * size_of(table.dtype()));
  return 2 * std::min(table_bytes(table), std::max<std::uint64_t>(kStagingBytes, row));
}

}  // namespace vicinal::plugin
