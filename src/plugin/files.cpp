// See files.hpp.
#include "plugin/files.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/entry.hpp"
#include "core/names.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<Plugin>, 2> kPlugins = {{{Plugin::cuda, "cuda"}, {Plugin::geo, "geo"}}};

}  // namespace

std::string_view name_of(Plugin plugin) noexcept {
  return core::name_in(kPlugins, plugin);
}
Plugin plugin_from(std::string_view name) {
  return core::value_in(kPlugins, "plug-in", name);
}

void set_plugin(Plugin plugin, const std::filesystem::path& path) try {
  const core::Entry entry;
  if (plugin != Plugin::cuda && plugin != Plugin::geo) {
    throw Error(ErrorCode::invalid_argument,
                "plugin: unknown value " + std::to_string(static_cast<int>(plugin)) + "; expected one of cuda, geo");
  }
  if (path.empty()) throw Error(ErrorCode::invalid_argument, "path: is empty");
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    throw Error(ErrorCode::io, "path: there is no file " + path.string());
  }
  // A name without a folder would be looked for by the system.
  std::filesystem::path whole = std::filesystem::absolute(path, unknown);
  plugin::PluginFile::of(plugin).name(plugin, (unknown ? path : whole).string());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

namespace plugin {

std::string loader_error() {
  const char* const text = dlerror();
  return text != nullptr ? text : "unknown error";
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

}  // namespace

PluginFile& PluginFile::of(Plugin plugin) {
  static std::array<PluginFile, kPlugins.size()> files;
  return files.at(static_cast<std::size_t>(plugin));
}

void PluginFile::name(Plugin plugin, const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (named_ == path) return;
  if (loaded_.empty() || are_one_file(loaded_, path)) {
    named_ = path;
    return;
  }
  throw Error(ErrorCode::invalid_argument, "plugin: " + std::string(name_of(plugin)) + " is already loaded, from " +
                                               loaded_ + "; name its file before it is used");
}

std::vector<std::string> plugin_candidates(const char* variable, const char* file, const std::string& named) {
  const char* const by_user = std::getenv(variable);
  if (by_user != nullptr && *by_user != '\0') return {by_user};
  if (!named.empty()) return {named};
  std::vector<std::string> candidates;
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&plugin_candidates), &self) != 0 && self.dli_fname != nullptr) {
    candidates.push_back((std::filesystem::path(self.dli_fname).parent_path() / file).string());
  }
  candidates.emplace_back(file);
  return candidates;
}

}  // namespace plugin
}  // namespace vicinal
