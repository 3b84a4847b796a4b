// Plug-ins: libraries that are loaded when they are first needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal {

enum class Plugin : std::uint8_t {
  cuda,  ///< libvicinal_cuda.so: CUDA devices
  geo,   ///< libvicinal_geo.so: files of polygons
};

/// "cuda", "geo".
VICINAL_API std::string_view name_of(Plugin plugin) noexcept;
/// The inverse of `name_of`; throws `invalid_argument` listing the names there are.
VICINAL_API Plugin plugin_from(std::string_view name);

/// Names the file of a plug-in, for the whole process, before it is loaded: by the first context or `cuda_status` that
/// finds a driver, or by the first file of polygons. Without that, a plug-in is looked for beside the library and then
/// where the system looks. The environment comes first all the same: VICINAL_CUDA_PLUGIN and VICINAL_GEO_PLUGIN. May be
/// called again until the plug-in is loaded; the last call counts. Any thread may call it.
///
/// Throws `invalid_argument` for an empty path, and once the plug-in is loaded, unless from that path; `io` for a file
/// that is not there. Whether it is a plug-in of this version is found out when it is loaded.
VICINAL_API void set_plugin(Plugin plugin, const std::filesystem::path& path);

}  // namespace vicinal
