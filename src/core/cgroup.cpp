// /proc/self/cgroup names the group of each controller, /proc/self/mountinfo where the hierarchies are mounted and
// which group lies at the mount point (inside a container often not the root). A limit of any ancestor binds, so all
// are read. Page cache that nobody uses (inactive_file) counts as free: the kernel gives it back on demand.
#include "core/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace vicinal::core {
namespace {

namespace fs = std::filesystem;

struct Mount {
  std::string root;     ///< the group that lies at the mount point
  std::string point;    ///< where it is mounted
  std::string type;     ///< cgroup or cgroup2
  std::string options;  ///< cgroup: its controllers, comma-separated
};

bool has_word(const std::string& list, std::string_view word) {
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');) {
    if (item == word) return true;
  }
  return false;
}

std::vector<Mount> read_mounts(const fs::path& root) {
  std::vector<Mount> mounts;
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Mount mount;
    std::string skip;
    words >> skip >> skip >> skip >> mount.root >> mount.point;
    while (words >> skip && skip != "-") {
    }
    words >> mount.type >> skip >> mount.options;
    if (words && (mount.type == "cgroup" || mount.type == "cgroup2")) mounts.push_back(mount);
  }
  return mounts;
}

/// The folders of a group and of all its ancestors, up to the mount point.
std::vector<fs::path> folders_of(const Mount& mount, const std::string& group, const fs::path& root) {
  const fs::path point = root / fs::path(mount.point).relative_path();
  std::string inside = group;
  if (mount.root != "/" && inside.compare(0, mount.root.size(), mount.root) == 0) inside.erase(0, mount.root.size());
  std::vector<fs::path> folders = {point};
  fs::path folder = point;
  for (const fs::path& part : fs::path(inside).relative_path()) {
    // "/.." in the name: the group lies outside what this namespace shows.
    if (part == ".." || part.empty()) break;
    folder /= part;
    folders.push_back(folder);
  }
  return folders;
}

std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // not there, or "max"
}

std::uint64_t read_stat(const fs::path& path, std::string_view name) {
  std::ifstream in(path);
  std::string word;
  std::uint64_t value = 0;
  while (in >> word >> value) {
    if (word == name) return value;
  }
  return 0;
}

void limit_memory(CgroupLimits& limits, std::optional<std::uint64_t> limit, std::optional<std::uint64_t> used,
                  std::uint64_t reclaimable) {
  if (!limit || !used) return;
  const std::uint64_t held = *used - std::min(*used, reclaimable);
  limits.free_memory = std::min(limits.free_memory, *limit - std::min(*limit, held));
}

void read_folder_v2(CgroupLimits& limits, const fs::path& folder) {
  for (const char* name : {"memory.max", "memory.high"}) {
    limit_memory(limits, read_number(folder / name), read_number(folder / "memory.current"),
                 read_stat(folder / "memory.stat", "inactive_file"));
  }
  std::ifstream in(folder / "cpu.max");
  double quota = 0;
  double period = 0;
  if (in >> quota >> period && quota > 0 && period > 0) limits.cpus = std::min(limits.cpus, quota / period);
}

void read_folder_v1(CgroupLimits& limits, const fs::path& folder) {
  limit_memory(limits, read_number(folder / "memory.limit_in_bytes"), read_number(folder / "memory.usage_in_bytes"),
               read_stat(folder / "memory.stat", "total_inactive_file"));
  std::ifstream quota_file(folder / "cpu.cfs_quota_us");
  std::ifstream period_file(folder / "cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) {
    limits.cpus = std::min(limits.cpus, quota / period);
  }
}

}  // namespace

CgroupLimits read_cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  const std::vector<Mount> mounts = read_mounts(root);
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // id:controllers:/group
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    for (const Mount& mount : mounts) {
      if (controllers.empty() && mount.type == "cgroup2") {
        for (const fs::path& folder : folders_of(mount, group, root)) read_folder_v2(limits, folder);
      }
      for (const char* controller : {"memory", "cpu"}) {
        if (mount.type != "cgroup" || !has_word(controllers, controller) || !has_word(mount.options, controller)) {
          continue;
        }
        for (const fs::path& folder : folders_of(mount, group, root)) read_folder_v1(limits, folder);
      }
    }
  }
  return limits;
}

}  // namespace vicinal::core
