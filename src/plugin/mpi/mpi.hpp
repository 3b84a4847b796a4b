// Finding libvicinal_mpi.so at run time, by the same rules as the CUDA plug-in (contract clause 9).
#pragma once

#include <string>

#include "plugin/abi/mpi.hpp"

namespace vicinal::plugin {

struct LoadedMpi {
  const mpi::Functions* functions = nullptr;
  std::string path;
};

/// The plug-in, loaded once a process. Throws `device_unavailable` saying where it was looked for, what of Debian's is
/// missing, or that it is of another version.
const LoadedMpi& mpi_plugin();

}  // namespace vicinal::plugin
