// Writing layers: features of a source with their own columns and further ones, and plain tables.
#include <cpl_vsi.h>

#include <atomic>
#include <memory>
#include <string>

#include "gdal/source.hpp"

namespace vicinal::gdal {
namespace {

constexpr std::int64_t kAskEveryRows = 256;

std::string text_at(const Texts& texts, std::int64_t row) {
  const std::int64_t begin = row == 0 ? 0 : texts.ends[row - 1];
  return std::string(texts.bytes + begin, static_cast<std::size_t>(texts.ends[row] - begin));
}

OGRFieldType type_of(std::int32_t kind) {
  return kind == kIntegers ? OFTInteger64 : kind == kReals ? OFTReal : OFTString;
}

[[noreturn]] void fail(const Writing& writing) {
  throw Failure(kIo, std::string(writing.path) + ": cannot be written: " + last_message());
}

struct MemoryFile {
  MemoryFile() {
    static std::atomic<int> number{0};
    path = "/vsimem/vicinal-" + std::to_string(++number) + ".out";
  }
  ~MemoryFile() { VSIUnlink(path.c_str()); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path;
};

/// A name that no column of the layer has yet.
std::string free_name(OGRFeatureDefn& columns, const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; columns.GetFieldIndex(name.c_str()) >= 0; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

void write_table(const Writing& writing, GDALDataset& dataset, const Table& table) {
  auto* const source = static_cast<OpenLayer*>(table.source);
  OGRFeatureDefn* const own = source != nullptr ? source->layer().GetLayerDefn() : nullptr;
  // Sources may mix polygons and multipolygons.
  const OGRwkbGeometryType kind = own == nullptr                                 ? wkbNone
                                  : wkbFlatten(own->GetGeomType()) == wkbPolygon ? own->GetGeomType()
                                                                                 : wkbUnknown;
  OGRLayer* const layer = dataset.CreateLayer(
      table.name, source != nullptr ? const_cast<OGRSpatialReference*>(source->crs()) : nullptr, kind, nullptr);
  if (layer == nullptr) fail(writing);
  const int copied = own != nullptr ? own->GetFieldCount() : 0;
  for (int i = 0; i < copied; ++i) {
    if (layer->CreateField(own->GetFieldDefn(i)) != OGRERR_NONE) fail(writing);
  }
  for (std::int64_t c = 0; c < table.column_count; ++c) {
    const Column& column = table.columns[c];
    OGRFieldDefn field(free_name(*layer->GetLayerDefn(), column.name).c_str(), type_of(column.kind));
    if (layer->CreateField(&field) != OGRERR_NONE) fail(writing);
  }
  if (source != nullptr) source->layer().ResetReading();
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (row % kAskEveryRows == 0 && writing.cancelled(writing.host) != 0) throw Failure(kCancelled, "cancelled");
    const OGRFeatureUniquePtr feature{OGRFeature::CreateFeature(layer->GetLayerDefn())};
    if (source != nullptr) {
      const OGRFeatureUniquePtr from{source->layer().GetNextFeature()};
      if (!from) throw Failure(kIo, std::string(table.name) + ": the input changed while it was in use");
      for (int i = 0; i < copied; ++i) feature->SetField(i, from->GetRawFieldRef(i));
      feature->SetGeometryDirectly(from->StealGeometry());
    }
    for (std::int64_t c = 0; c < table.column_count; ++c) {
      const Column& column = table.columns[c];
      const int at = copied + static_cast<int>(c);
      if (column.kind == kIntegers) {
        feature->SetField(at, static_cast<GIntBig>(column.integers[row]));
      } else if (column.kind == kReals) {
        feature->SetField(at, column.reals[row]);
      } else {
        feature->SetField(at, text_at(column.texts, row).c_str());
      }
    }
    if (layer->CreateFeature(feature.get()) != OGRERR_NONE) fail(writing);
  }
}

}  // namespace

void write(const Writing& writing) {
  CPLErrorReset();
  GDALDriver* const driver = GetGDALDriverManager()->GetDriverByName(writing.driver);
  if (driver == nullptr) throw Failure(kInvalidArgument, std::string("this GDAL does not write ") + writing.driver);
  const MemoryFile file;
  GDALDatasetUniquePtr dataset(driver->Create(file.path.c_str(), 0, 0, 0, GDT_Unknown, nullptr));
  if (!dataset) fail(writing);
  const bool together = dataset->StartTransaction(FALSE) == OGRERR_NONE;
  for (std::int64_t t = 0; t < writing.table_count; ++t) write_table(writing, *dataset, writing.tables[t]);
  if (together && dataset->CommitTransaction() != OGRERR_NONE) fail(writing);
  CPLErrorReset();
  dataset.reset();
  if (CPLGetLastErrorType() >= CE_Failure) fail(writing);
  vsi_l_offset size = 0;
  const void* const bytes = VSIGetMemFileBuffer(file.path.c_str(), &size, FALSE);
  if (bytes == nullptr) fail(writing);
  writing.take(writing.host, bytes, static_cast<std::int64_t>(size));
}

}  // namespace vicinal::gdal
