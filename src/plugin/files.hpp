// Files of plug-ins: where they may be, and what the system's loader says.
#pragma once

#include <cstdint>
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

/// What errors say of a plug-in that is a table of functions.
struct TableWords {
  const char* users;    ///< what needs it, in the plural
  const char* library;  ///< what it needs itself
  const char* kind;     ///< what it is a plug-in for
  const char* file;
  const char* package;
  const char* build;  ///< with which packages a build makes it
};

struct FoundSymbol {
  void* symbol = nullptr;
  std::string path;
};

/// The symbol in the first of the files that is there. Throws `device_unavailable` if none is, if its libraries are
/// missing, or if it has no such symbol.
FoundSymbol find_symbol(const std::vector<std::string>& candidates, const char* symbol, const TableWords& words);
/// Throws `device_unavailable`.
[[noreturn]] void refuse_version(const std::string& path);

template <class Functions>
struct LoadedTable {
  const Functions* functions = nullptr;
  std::string path;
};

/// The table that the symbol, a function, returns: one with this version and as many bytes. Throws as `find_symbol`.
template <class Functions>
LoadedTable<Functions> load_table(const std::vector<std::string>& candidates, const char* symbol, std::int32_t version,
                                  const TableWords& words) {
  const FoundSymbol found = find_symbol(candidates, symbol, words);
  const Functions* const functions = reinterpret_cast<const Functions* (*)()>(found.symbol)();
  if (functions == nullptr || functions->version != version ||
      functions->bytes != static_cast<std::int32_t>(sizeof(Functions))) {
    refuse_version(found.path);
  }
  return {functions, found.path};
}

}  // namespace vicinal::plugin
