// Plug-ins: libraries that are loaded when they are first needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal {

enum class Plugin : std::uint8_t {
  cuda,  ///< libvicinal_cuda.so: CUDA devices
  geo,   ///< libvicinal_geo.so: files of polygons
  mpi,   ///< libvicinal_mpi.so: ranks that are processes of MPI
};

/// "cuda", "geo", "mpi".
VICINAL_API std::string_view name_of(Plugin plugin) noexcept;
/// The inverse of `name_of`; throws `invalid_argument` listing the names there are.
VICINAL_API Plugin plugin_from(std::string_view name);

/// Names the file of a plug-in, for the whole process, before it is loaded: by the first context or `cuda_status` that
/// finds a driver, by the first file of polygons, or by the first communicator of MPI. Without that, a plug-in is
/// looked for beside the library, then by the finder, and then where the system looks. The environment comes first all
/// the same: VICINAL_CUDA_PLUGIN, VICINAL_GEO_PLUGIN and VICINAL_MPI_PLUGIN. May be called again until the plug-in is
/// loaded; the last call counts. Any thread may call it.
///
/// Throws `invalid_argument` for an empty path, and once the plug-in is loaded, unless from that path; `io` for a file
/// that is not there. Whether it is a plug-in of this version is found out when it is loaded.
VICINAL_API void set_plugin(Plugin plugin, const std::filesystem::path& path);

/// The file of a plug-in; an empty path where it knows none.
using PluginFinder = std::function<std::filesystem::path(Plugin)>;

/// Sets the function that finds a plug-in, for the whole process; an empty one finds none. A program sets it where its
/// plug-ins are installed in folders of their own, as packages of Python are. It is called each time that the plug-in
/// is needed and not loaded, unless the environment or `set_plugin` names a file or one is beside the library; on the
/// thread that needs the plug-in, and on several at the same time. What it throws is thrown by the function that needed
/// the plug-in: an Error `device_unavailable` says why the plug-in cannot be used.
VICINAL_API void set_plugin_finder(PluginFinder finder);

}  // namespace vicinal
