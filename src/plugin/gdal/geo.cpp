// See geo.hpp.
#include "plugin/gdal/geo.hpp"

#include <string>
#include <vector>

#include "plugin/files.hpp"

namespace vicinal::plugin {
namespace {

constexpr TableWords kGeoWords = {
    .users = "files of polygons",
    .library = "GDAL, Debian's package libgdal32",
    .kind = "files of polygons",
    .file = "libvicinal_geo.so",
    .package = "vicinal-geo",
    .build = "libgdal-dev and libgeos-dev are",
};

}  // namespace

const gdal::Functions& geo_plugin() {
  PluginFile& file = PluginFile::of(Plugin::geo);
  file.ask_finder();
  static const LoadedTable<gdal::Functions> kPlugin = file.load([](const std::vector<std::string>& candidates) {
    return load_table<gdal::Functions>(candidates, gdal::kPluginSymbol, gdal::kPluginVersion, kGeoWords);
  });
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
