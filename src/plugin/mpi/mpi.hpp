// Finding libvicinal_mpi.so at run time, by the same rules as the CUDA plug-in (contract clause 9).
#pragma once

#include "plugin/abi/mpi.hpp"
#include "plugin/files.hpp"

namespace vicinal::plugin {

using LoadedMpi = LoadedTable<mpi::Functions>;

/// The plug-in, loaded once a process. Throws `device_unavailable` saying where it was looked for, what of Debian's is
/// missing, or that it is of another version.
const LoadedMpi& mpi_plugin();

}  // namespace vicinal::plugin
