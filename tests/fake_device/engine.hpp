// One of the fake plug-in's devices.
#pragma once

#include <atomic>
#include <cstdint>

namespace vicinal::plugin {

struct Engine {
  std::int32_t device = 0;
  std::uint64_t limit = 0;
  std::atomic<std::uint64_t> resident = 0;  // plans of other callers read it
};

}  // namespace vicinal::plugin
