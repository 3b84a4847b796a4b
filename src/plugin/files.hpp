// Files of plug-ins: where they may be, and what the system's loader says.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "vicinal/plugin.hpp"

namespace vicinal::plugin {

/// A plug-in of this process: the file that the program names for it, and whether it is loaded.
class PluginFile {
 public:
  static PluginFile& of(Plugin plugin);

  /// What `set_plugin` does. Throws `invalid_argument` once another file is loaded.
  void name(Plugin plugin, const std::string& path);
  /// Calls load(path that was named, or an empty one), which returns what is loaded from and is called until it does
  /// not throw. Names wait meanwhile.
  template <class Load>
  auto load(const Load& load) {
    const std::lock_guard lock(mutex_);
    auto loaded = load(named_);
    loaded_ = loaded.path;
    return loaded;
  }

 private:
  std::mutex mutex_;
  std::string named_;
  std::string loaded_;
};

/// A plug-in's file, or rather the names to try for it: what the environment's `variable` names, and nothing else;
/// without that what the program named, and nothing else; without that `file` beside the library, then wherever the
/// system looks.
std::vector<std::string> plugin_candidates(const char* variable, const char* file, const std::string& named = {});
/// Whether the loader would find such a name; one without a folder is left to the system's search.
bool is_there(const std::string& path);
/// What the system's loader last said.
std::string loader_error();

}  // namespace vicinal::plugin
