// See geo.hpp.
#include "plugin/gdal/geo.hpp"

#include <dlfcn.h>

#include <string>
#include <vector>

#include "plugin/files.hpp"

namespace vicinal::plugin {
namespace {

[[noreturn]] void no_polygon_files(const std::string& sentence) {
  throw Error(ErrorCode::device_unavailable, sentence);
}

struct LoadedGeo {
  const gdal::Functions* functions = nullptr;
  std::string path;
};

LoadedGeo load(const std::vector<std::string>& candidates) {
  std::string tried;
  for (const std::string& path : candidates) {
    if (!is_there(path)) {
      tried += (tried.empty() ? "" : ", ") + path;
      continue;
    }
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      no_polygon_files("files of polygons need GDAL, Debian's package libgdal32: " + loader_error());
    }
    using Get = const gdal::Functions* (*)();
    const auto get = reinterpret_cast<Get>(dlsym(library, gdal::kPluginSymbol));
    if (get == nullptr) {
      no_polygon_files("the plug-in " + path + " is not a plug-in for files of polygons: it has no symbol " +
                       gdal::kPluginSymbol);
    }
    const gdal::Functions* const functions = get();
    if (functions == nullptr || functions->version != gdal::kPluginVersion ||
        functions->bytes != static_cast<std::int32_t>(sizeof(gdal::Functions))) {
      no_polygon_files("the plug-in " + path + " is of another version than this library");
    }
    return {functions, path};
  }
  no_polygon_files("files of polygons need the plug-in libvicinal_geo.so, which is not there (tried " + tried +
                   "); the package vicinal-geo brings it, and a build where libgdal-dev and libgeos-dev are installed");
}

}  // namespace

const gdal::Functions& geo_plugin() {
  PluginFile& file = PluginFile::of(Plugin::geo);
  file.ask_finder();
  static const LoadedGeo kPlugin = file.load(load);
  return *kPlugin.functions;
}

void check(const gdal::Status& status) {
  switch (status.code) {
    case gdal::kOk:
      return;
    case gdal::kInvalidArgument:
      throw Error(ErrorCode::invalid_argument, status.text);
    case gdal::kBadData:
      throw Error(ErrorCode::bad_data, status.text);
    case gdal::kIo:
      throw Error(ErrorCode::io, status.text);
    case gdal::kCancelled:
      throw Error(ErrorCode::cancelled, "cancelled");
    default:
      throw Error(ErrorCode::internal, status.text);
  }
}

}  // namespace vicinal::plugin
