// Finding libvicinal_geo.so at run time, by the same rules as the CUDA plug-in (contract clause 9).
#pragma once

#include "plugin/abi/gdal.hpp"
#include "vicinal/error.hpp"

namespace vicinal::plugin {

/// The plug-in's functions, loaded once a process. Throws `device_unavailable` saying where it was looked for, what of
/// Debian's is missing, or that it is of another version.
const gdal::Functions& geo_plugin();

/// Throws the Error that a status stands for, if any.
void check(const gdal::Status& status);

}  // namespace vicinal::plugin
