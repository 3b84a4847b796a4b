// Files of plug-ins: where they may be, and what the system's loader says.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "vicinal/plugin.hpp"

namespace vicinal::plugin {

/// A plug-in of this process: where its file may be, and whether it is loaded.
class PluginFile {
 public:
  PluginFile(Plugin plugin, const char* variable, const char* file)
      : plugin_(plugin), variable_(variable), file_(file) {}
  static PluginFile& of(Plugin plugin);

  /// What `set_plugin` does. Throws `invalid_argument` once another file is loaded.
  void name(const std::string& path);
  /// Asks the finder where that counts and the plug-in is not loaded. The finder may wait for what other threads hold,
  /// or need the plug-in itself, so no lock is held: of this class or of the caller.
  void ask_finder();
  /// Calls load(names to try), which returns what is loaded from and is called until it does not throw. Other names
  /// wait meanwhile.
  template <class Load>
  auto load(const Load& load) {
    const std::lock_guard lock(mutex_);
    auto loaded = load(candidates());
    loaded_ = loaded.path;
    return loaded;
  }

 private:
  /// What the environment's variable names, and nothing else; without that what the program named, and nothing else;
  /// without that the file beside the library, that of the finder, then wherever the system looks.
  [[nodiscard]] std::vector<std::string> candidates() const;

  Plugin plugin_;
  const char* variable_;
  const char* file_;
  std::mutex mutex_;  // of the rest
  std::string named_;
  std::string found_;
  std::string loaded_;
};

/// Whether the loader would find such a name; one without a folder is left to the system's search.
bool is_there(const std::string& path);
/// What the system's loader last said.
std::string loader_error();

}  // namespace vicinal::plugin
