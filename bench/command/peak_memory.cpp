// See peak_memory.hpp.
#include "command/peak_memory.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace vicinal::cli {
namespace {

/// A line of /proc/self/status, in bytes: "VmHWM:	    2208 kB".
std::optional<double> status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes * 1024;
  }
  return {};
}

}  // namespace

PeakMemory::PeakMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);  // what earlier calls freed
#endif
  std::ofstream peak("/proc/self/clear_refs");
  if (!(peak << "5" << std::flush)) return;
  before_ = status_bytes("VmRSS:");
}

std::optional<double> PeakMemory::bytes() const {
  const std::optional<double> peak = status_bytes("VmHWM:");
  if (!before_ || !peak) return {};
  return std::max(*peak - *before_, 0.0);
}

}  // namespace vicinal::cli
