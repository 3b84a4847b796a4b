// What a file of polygons holds, layer by layer, without its polygons.
#include <memory>
#include <string>
#include <vector>

#include "gdal/source.hpp"

namespace vicinal::gdal {
namespace {

void describe_layer(OGRLayer& layer, const char* format, const Describing& describing) {
  const auto stop_if_cancelled = [] {
    if (is_cancelled()) throw Failure(kCancelled, "cancelled");
  };
  Description found{};
  found.format = format;
  found.name = layer.GetName();
  const std::string geometry = OGRGeometryTypeToName(layer.GetGeomType());
  found.geometry = geometry.c_str();
  std::string crs;
  if (const OGRSpatialReference* own = layer.GetSpatialRef(); own != nullptr && !own->IsLocal()) {
    crs = name_of_crs(*own);
    found.crs = crs.c_str();
  }
  found.features = layer.GetFeatureCount(TRUE);
  stop_if_cancelled();
  OGREnvelope box;
  found.has_extent = layer.GetGeomType() != wkbNone && layer.GetExtent(&box, TRUE) == OGRERR_NONE;
  stop_if_cancelled();
  if (found.has_extent) {
    found.extent[0] = box.MinX;
    found.extent[1] = box.MinY;
    found.extent[2] = box.MaxX;
    found.extent[3] = box.MaxY;
  }
  OGRFeatureDefn& definition = *layer.GetLayerDefn();
  std::vector<const char*> columns;
  std::vector<const char*> types;
  for (int i = 0; i < definition.GetFieldCount(); ++i) {
    OGRFieldDefn& column = *definition.GetFieldDefn(i);
    columns.push_back(column.GetNameRef());
    types.push_back(OGRFieldDefn::GetFieldTypeName(column.GetType()));
  }
  found.columns = columns.data();
  found.types = types.data();
  found.column_count = static_cast<std::int64_t>(columns.size());
  describing.take(describing.host, &found);
}

}  // namespace

void describe(const Describing& describing) {
  CPLErrorReset();
  const GDALDatasetUniquePtr dataset = open_dataset(describing.path);
  for (int i = 0; i < dataset->GetLayerCount(); ++i) {
    describe_layer(*dataset->GetLayer(i), dataset->GetDriverName(), describing);
  }
  if (CPLGetLastErrorType() >= CE_Failure) {
    throw Failure(kBadData, std::string(describing.path) + ": cannot be read: " + last_message());
  }
}

}  // namespace vicinal::gdal
