// See files.hpp.
#include "plugin/files.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace vicinal::plugin {

std::string loader_error() {
  const char* const text = dlerror();
  return text != nullptr ? text : "unknown error";
}

bool is_there(const std::string& path) {
  if (path.find('/') != std::string::npos) return std::filesystem::exists(path);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
}

std::vector<std::string> plugin_candidates(const char* variable, const char* file) {
  const char* const named = std::getenv(variable);
  if (named != nullptr && *named != '\0') return {named};
  std::vector<std::string> candidates;
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&plugin_candidates), &self) != 0 && self.dli_fname != nullptr) {
    candidates.push_back((std::filesystem::path(self.dli_fname).parent_path() / file).string());
  }
  candidates.emplace_back(file);
  return candidates;
}

}  // namespace vicinal::plugin
