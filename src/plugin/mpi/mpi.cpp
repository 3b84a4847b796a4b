// See mpi.hpp.
#include "plugin/mpi/mpi.hpp"

#include <string>
#include <vector>

#include "plugin/files.hpp"

namespace vicinal::plugin {
namespace {

constexpr TableWords kMpiWords = {
    .users = "ranks of MPI",
    .library = "Open MPI, Debian's package libopenmpi3",
    .kind = "MPI",
    .file = "libvicinal_mpi.so",
    .package = "vicinal-mpi",
    .build = "libopenmpi-dev is",
};

}  // namespace

const LoadedMpi& mpi_plugin() {
  PluginFile& file = PluginFile::of(Plugin::mpi);
  file.ask_finder();
  static const LoadedMpi kPlugin = file.load([](const std::vector<std::string>& candidates) {
    return load_table<mpi::Functions>(candidates, mpi::kPluginSymbol, mpi::kPluginVersion, kMpiWords);
  });
  return kPlugin;
}

}  // namespace vicinal::plugin
