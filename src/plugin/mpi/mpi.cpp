// See mpi.hpp.
#include "plugin/mpi/mpi.hpp"

#include <dlfcn.h>

#include <vector>

#include "plugin/files.hpp"
#include "vicinal/error.hpp"

namespace vicinal::plugin {
namespace {

[[noreturn]] void no_mpi(const std::string& sentence) {
  throw Error(ErrorCode::device_unavailable, sentence);
}

LoadedMpi load_mpi(const std::vector<std::string>& candidates) {
  std::string tried;
  for (const std::string& path : candidates) {
    if (!is_there(path)) {
      tried += (tried.empty() ? "" : ", ") + path;
      continue;
    }
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) no_mpi("ranks of MPI need Open MPI, Debian's package libopenmpi3: " + loader_error());
    using Get = const mpi::Functions* (*)();
    const auto get = reinterpret_cast<Get>(dlsym(library, mpi::kPluginSymbol));
    if (get == nullptr) {
      no_mpi("the plug-in " + path + " is not a plug-in for MPI: it has no symbol " + mpi::kPluginSymbol);
    }
    const mpi::Functions* const functions = get();
    if (functions == nullptr || functions->version != mpi::kPluginVersion ||
        functions->bytes != static_cast<std::int32_t>(sizeof(mpi::Functions))) {
      no_mpi("the plug-in " + path + " is of another version than this library");
    }
    return {functions, path};
  }
  no_mpi("ranks of MPI need the plug-in libvicinal_mpi.so, which is not there (tried " + tried +
         "); the package vicinal-mpi brings it, and a build where libopenmpi-dev is installed");
}

}  // namespace

const LoadedMpi& mpi_plugin() {
  PluginFile& file = PluginFile::of(Plugin::mpi);
  file.ask_finder();
  static const LoadedMpi kPlugin = file.load(load_mpi);
  return kPlugin;
}

}  // namespace vicinal::plugin
