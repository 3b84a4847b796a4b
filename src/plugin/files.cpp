// See files.hpp.
#include "plugin/files.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/entry.hpp"
#include "core/names.hpp"
#include "vicinal/error.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<Plugin>, 3> kPlugins = {
    {{Plugin::cuda, "cuda"}, {Plugin::geo, "geo"}, {Plugin::mpi, "mpi"}}};

struct CurrentFinder {
  std::mutex mutex;
  PluginFinder find;
};
CurrentFinder& current_finder() {
  static CurrentFinder finder;
  return finder;
}

}  // namespace

std::string_view name_of(Plugin plugin) noexcept {
  return core::name_in(kPlugins, plugin);
}
Plugin plugin_from(std::string_view name) {
  return core::value_in(kPlugins, "plug-in", name);
}

void set_plugin(Plugin plugin, const std::filesystem::path& path) try {
  const core::Entry entry;
  if (plugin != Plugin::cuda && plugin != Plugin::geo && plugin != Plugin::mpi) {
    throw Error(ErrorCode::invalid_argument, "plugin: unknown value " + std::to_string(static_cast<int>(plugin)) +
                                                 "; expected one of cuda, geo, mpi");
  }
  if (path.empty()) throw Error(ErrorCode::invalid_argument, "path: is empty");
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    throw Error(ErrorCode::io, "path: there is no file " + path.string());
  }
  // A name without a folder would be looked for by the system.
  std::filesystem::path whole = std::filesystem::absolute(path, unknown);
  plugin::PluginFile::of(plugin).name((unknown ? path : whole).string());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void set_plugin_finder(PluginFinder finder) try {
  const core::Entry entry;
  const std::lock_guard lock(current_finder().mutex);
  current_finder().find = std::move(finder);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

namespace plugin {

std::string loader_error() {
  const char* const text = dlerror();
  return text != nullptr ? text : "unknown error";
}

FoundSymbol find_symbol(const std::vector<std::string>& candidates, const char* symbol, const TableWords& words) {
  std::string tried;
  for (const std::string& path : candidates) {
    if (!is_there(path)) {
      tried += (tried.empty() ? "" : ", ") + path;
      continue;
    }
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw Error(ErrorCode::device_unavailable,
                  std::string(words.users) + " need " + words.library + ": " + loader_error());
    }
    void* const found = dlsym(library, symbol);
    if (found == nullptr) {
      throw Error(ErrorCode::device_unavailable,
                  "the plug-in " + path + " is not a plug-in for " + words.kind + ": it has no symbol " + symbol);
    }
    return {found, path};
  }
  throw Error(ErrorCode::device_unavailable,
              std::string(words.users) + " need the plug-in " + words.file + ", which is not there (tried " + tried +
                  "); the package " + words.package + " brings it, and a build where " + words.build + " installed");
}

void refuse_version(const std::string& path) {
  throw Error(ErrorCode::device_unavailable, "the plug-in " + path + " is of another version than this library");
}

bool is_there(const std::string& path) {
  if (path.find('/') != std::string::npos) return std::filesystem::exists(path);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
}

namespace {

/// A name without a folder is one that the system looked for.
bool are_one_file(const std::string& loaded, const std::string& path) {
  if (loaded == path) return true;
  std::error_code unknown;
  return loaded.find('/') != std::string::npos && std::filesystem::equivalent(loaded, path, unknown);
}

/// What the environment names; empty for nothing.
std::string by_user(const char* variable) {
  const char* const path = std::getenv(variable);
  return path != nullptr ? path : "";
}

/// Where a file beside the library would be; empty where that is unknown.
std::string beside_library(const char* file) {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&beside_library), &self) == 0 || self.dli_fname == nullptr) return "";
  return (std::filesystem::path(self.dli_fname).parent_path() / file).string();
}

}  // namespace

PluginFile& PluginFile::of(Plugin plugin) {
  static std::array<PluginFile, kPlugins.size()> files = {{{Plugin::cuda, "VICINAL_CUDA_PLUGIN", "libvicinal_cuda.so"},
                                                           {Plugin::geo, "VICINAL_GEO_PLUGIN", "libvicinal_geo.so"},
                                                           {Plugin::mpi, "VICINAL_MPI_PLUGIN", "libvicinal_mpi.so"}}};
  return files.at(static_cast<std::size_t>(plugin));
}

void PluginFile::name(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (named_ == path) return;
  if (loaded_.empty() || are_one_file(loaded_, path)) {
    named_ = path;
    return;
  }
  throw Error(ErrorCode::invalid_argument, "plugin: " + std::string(name_of(plugin_)) + " is already loaded, from " +
                                               loaded_ + "; name its file before it is used");
}

void PluginFile::ask_finder() {
  {
    const std::lock_guard lock(mutex_);
    if (!loaded_.empty() || !named_.empty()) return;
  }
  if (!by_user(variable_).empty()) return;
  if (const std::string path = beside_library(file_); !path.empty() && is_there(path)) return;
  PluginFinder find;
  {
    const std::lock_guard lock(current_finder().mutex);
    find = current_finder().find;
  }
  if (!find) return;
  const std::string path = find(plugin_).string();
  const std::lock_guard lock(mutex_);
  found_ = path;
}

std::vector<std::string> PluginFile::candidates() const {
  if (const std::string path = by_user(variable_); !path.empty()) return {path};
  if (!named_.empty()) return {named_};
  std::vector<std::string> candidates;
  for (const std::string& path : {beside_library(file_), found_}) {
    if (!path.empty()) candidates.push_back(path);
  }
  candidates.emplace_back(file_);
  return candidates;
}

}  // namespace plugin
}  // namespace vicinal
