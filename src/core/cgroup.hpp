// What the control groups of this process allow (contract clause 7): versions 1 and 2, every ancestor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace vicinal::core {

struct CgroupLimits {
  double cpus = std::numeric_limits<double>::infinity();                  ///< smallest CPU quota, in cores
  std::uint64_t free_memory = std::numeric_limits<std::uint64_t>::max();  ///< smallest limit less use, in bytes
};

/// Reads the limits below `root` ("/" but in tests). What cannot be read does not limit.
CgroupLimits read_cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace vicinal::core
