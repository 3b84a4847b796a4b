// The memory budget (contract clause 7).
#include "core/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/cgroup.hpp"
#include "core/floats.hpp"

namespace vicinal::core {
namespace {

std::uint64_t machine_free_memory() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    unsigned long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kilobytes) == 1) return kilobytes * 1024;
  }
  // Without /proc: half of what is installed is the cautious guess.
  const auto pages = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_size = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  return pages > 0 && page_size > 0 ? static_cast<std::uint64_t>(pages * page_size / 2) : std::uint64_t{1} << 30;
}

/// Bytes of address space that this process has.
std::uint64_t address_space() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t pages = 0;
  in >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::uint64_t free_memory() {
  return std::min(machine_free_memory(), read_cgroup_limits().free_memory);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.95 would be shown as 1000.0.
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  const double tenths = std::round(value * 10);
  std::snprintf(text.data(), text.size(), std::fmod(tenths, 10) == 0 ? "%.0f %s" : "%.1f %s", tenths / 10,
                kUnits[unit]);
  return text.data();
}

void require_memory(const Context& ctx, std::uint64_t bytes, std::string_view job) {
  if (bytes <= ctx.memory_limit()) return;
  throw Error(ErrorCode::over_memory, std::string(job) + " needs " + format_bytes(bytes) + " (" +
                                          std::to_string(bytes) + " bytes), more than the memory limit of " +
                                          format_bytes(ctx.memory_limit()));
}

Context beside(const Context& ctx, std::uint64_t bytes) {
  return ctx.with_memory_limit(ctx.memory_limit() > bytes ? ctx.memory_limit() - bytes : 1);
}

void refuse_allocation() {
  const DefaultFloats floats;
  rlimit limit{};
  std::string sentence = "memory: the system refused an allocation within the memory limit";
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    sentence += "; the address space of this process is limited to " + format_bytes(limit.rlim_cur) +
                " (ulimit -v), of which it has " + format_bytes(address_space());
  }
  throw Error(ErrorCode::over_memory, sentence);
}

}  // namespace vicinal::core
