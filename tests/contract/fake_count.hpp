// What the fake device counts, for tests that ask it by the name of an exported function
// (tests/fake_device/plugin.cpp).
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

namespace vicinal::contract {

/// -1 where the plug-in that is loaded has no such function.
inline std::int64_t fake_count(const char* name) {
  const char* const plugin = std::getenv("VICINAL_CUDA_PLUGIN");
  void* const loaded = plugin != nullptr ? ::dlopen(plugin, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (loaded == nullptr) return -1;
  const auto count = reinterpret_cast<std::int64_t (*)()>(::dlsym(loaded, name));
  const std::int64_t counted = count != nullptr ? count() : -1;
  ::dlclose(loaded);
  return counted;
}

}  // namespace vicinal::contract
