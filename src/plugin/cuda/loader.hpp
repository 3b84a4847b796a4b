// Finding CUDA at run time: the driver first, which costs next to nothing where there is none, then the plug-in. Each
// thing that can be missing has a sentence of its own (contract clause 9).
#pragma once

#include <string>
#include <vector>

#include "plugin/abi/plugin.hpp"
#include "vicinal/device.hpp"

namespace vicinal::plugin {

/// What the driver says; asked once a process, because a driver does not come and go.
struct Driver {
  int version = 0;                  ///< such as 13000; 0: there is none that answers
  std::vector<DeviceInfo> devices;  ///< without what only the plug-in knows
  std::string missing;              ///< why there is no device; empty when there is one
};
const Driver& driver();

/// The functions of the plug-in in a file. Throws `device_unavailable` for a file that is not there, is no plug-in or
/// is one of another version.
const Functions& load_functions(const std::string& path);

struct LoadedPlugin {
  const Functions* functions = nullptr;
  std::string path;
};
/// The plug-in, loaded once a process. Throws `device_unavailable` saying where it was looked for, or that the driver
/// is too old for it.
const LoadedPlugin& plugin();

}  // namespace vicinal::plugin
