// Writing layers: features of a source with their own columns and further ones, and plain tables.
#include <cpl_conv.h>
#include <cpl_vsi.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gdal/cancellable_files.hpp"
#include "gdal/source.hpp"

namespace vicinal::gdal {
namespace {

constexpr std::int64_t kAskEveryRows = 256;
constexpr int kShapefileWidth = 24;  // characters of a number
constexpr int kShapefileDecimals = 8;

std::string text_at(const Texts& texts, std::int64_t row) {
  const std::int64_t begin = row == 0 ? 0 : texts.ends[row - 1];
  return std::string(texts.bytes + begin, static_cast<std::size_t>(texts.ends[row] - begin));
}

OGRFieldType type_of(std::int32_t kind) {
  return kind == kIntegers ? OFTInteger64 : kind == kReals ? OFTReal : OFTString;
}

/// Also where the job is cancelled, which the plug-in's functions then say instead.
[[noreturn]] void fail(const Writing& writing) {
  throw Failure(kIo, std::string(writing.path) + ": cannot be written: " + last_message());
}

/// SQLite's statements, of which one builds the index of a whole layer, end where the job is cancelled. GDAL gives its
/// connection; the function is that of the SQLite which GDAL has loaded.
void watch_statements(GDALDataset& dataset) {
  using Progress = void (*)(void* connection, int steps, int (*stop)(void*), void* host);
  constexpr int kSteps = 10'000;  // of SQLite's machine: below a millisecond
  void* const connection = dataset.GetInternalHandle("SQLITE_HANDLE");
  const auto watch = reinterpret_cast<Progress>(::dlsym(RTLD_DEFAULT, "sqlite3_progress_handler"));
  if (connection == nullptr || watch == nullptr) return;
  watch(
      connection, kSteps, [](void*) { return is_cancelled() ? 1 : 0; }, nullptr);
}

/// A folder in memory.
class Folder {
 public:
  Folder() {
    static std::atomic<int> number{0};
    path_ = "/vsimem/vicinal-" + std::to_string(++number);
    VSIMkdir(path_.c_str(), 0700);
  }
  ~Folder() { VSIRmdirRecursive(path_.c_str()); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::vector<std::string> files() const {
    const CPLStringList names(VSIReadDir(path_.c_str()), TRUE);
    std::vector<std::string> files;
    for (int i = 0; i < names.Count(); ++i) {
      if (names[i][0] != '.') files.emplace_back(names[i]);
    }
    std::sort(files.begin(), files.end());
    return files;
  }

 private:
  std::string path_;
};

/// Remembers the first warning while it lives: a Shapefile cuts what does not fit, and only warns.
class Warnings {
 public:
  explicit Warnings(bool matter) : matter_(matter) { CPLPushErrorHandlerEx(&Warnings::hear, this); }
  ~Warnings() { CPLPopErrorHandler(); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  void check(const Writing& writing) const {
    if (matter_ && !first_.empty()) {
      throw Failure(kIo, std::string(writing.path) + ": its format cannot keep everything: " + first_);
    }
  }

 private:
  static void CPL_STDCALL hear(CPLErr kind, CPLErrorNum /*number*/, const char* text) {
    auto* const self = static_cast<Warnings*>(CPLGetErrorHandlerUserData());
    if (kind == CE_Warning && self->first_.empty()) self->first_ = text;
  }

  bool matter_;
  std::string first_;
};

/// A name that no column of the layer has yet.
std::string free_name(OGRFeatureDefn& columns, const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; columns.GetFieldIndex(name.c_str()) >= 0; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

bool is_shapefile(const Writing& writing) {
  return std::string_view(writing.driver) == "ESRI Shapefile";
}

/// GDAL's driver leaves such features out and says nothing.
void refuse_empty_features(const Writing& writing, const Layer& layer) {
  for (std::int64_t i = 0; i < layer.counts[3]; ++i) {
    if (layer.features[i] != layer.features[i + 1]) continue;
    throw Failure(kIo, std::string(writing.path) + ": its format has no features without a polygon, as feature " +
                           text_at(layer.ids, i) + " is");
  }
}

OGRLayer* make_layer(const Writing& writing, GDALDataset& dataset, const Table& table) {
  auto* const source = static_cast<OpenLayer*>(table.source);
  OGRwkbGeometryType kind = wkbNone;
  CPLStringList options;
  if (source != nullptr) {
    // Sources may mix polygons and multipolygons, which a Shapefile does not tell apart.
    const OGRwkbGeometryType own = source->layer().GetLayerDefn()->GetGeomType();
    kind = wkbFlatten(own) == wkbPolygon ? own
           : is_shapefile(writing)       ? OGR_GT_SetModifier(wkbPolygon, OGR_GT_HasZ(own), false)
                                         : wkbUnknown;
    if (is_shapefile(writing)) options.SetNameValue("ENCODING", "UTF-8");
    if (std::string_view(writing.driver) == "FlatGeobuf") refuse_empty_features(writing, source->view());
  }
  OGRLayer* const layer = dataset.CreateLayer(
      table.name, source != nullptr ? const_cast<OGRSpatialReference*>(source->crs()) : nullptr, kind, options.List());
  if (layer == nullptr) fail(writing);
  return layer;
}

void write_table(const Writing& writing, GDALDataset& dataset, const Table& table) {
  auto* const source = static_cast<OpenLayer*>(table.source);
  OGRFeatureDefn* const own = source != nullptr ? source->layer().GetLayerDefn() : nullptr;
  OGRLayer* const layer = make_layer(writing, dataset, table);
  const int copied = own != nullptr ? own->GetFieldCount() : 0;
  for (int i = 0; i < copied; ++i) {
    if (layer->CreateField(own->GetFieldDefn(i)) != OGRERR_NONE) fail(writing);
  }
  for (std::int64_t c = 0; c < table.column_count; ++c) {
    const Column& column = table.columns[c];
    OGRFieldDefn field(free_name(*layer->GetLayerDefn(), column.name).c_str(), type_of(column.kind));
    if (column.kind == kReals && is_shapefile(writing)) {
      field.SetWidth(kShapefileWidth);
      field.SetPrecision(kShapefileDecimals);
    }
    if (layer->CreateField(&field) != OGRERR_NONE) fail(writing);
  }
  if (source != nullptr) source->layer().ResetReading();
  const Warnings warnings(is_shapefile(writing));
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (row % kAskEveryRows == 0 && writing.cancelled(writing.host) != 0) throw Failure(kCancelled, "cancelled");
    const OGRFeatureUniquePtr feature{OGRFeature::CreateFeature(layer->GetLayerDefn())};
    if (source != nullptr) {
      const OGRFeatureUniquePtr from = source->next();
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
        if (!std::isnan(column.reals[row])) feature->SetField(at, column.reals[row]);  // else it stays missing
      } else {
        feature->SetField(at, text_at(column.texts, row).c_str());
      }
    }
    if (layer->CreateFeature(feature.get()) != OGRERR_NONE) fail(writing);
    warnings.check(writing);
  }
}

}  // namespace

void write(const Writing& writing) {
  CPLErrorReset();
  GDALDriver* const driver = driver_of(writing.driver);
  if (driver == nullptr) throw Failure(kInvalidArgument, std::string("this GDAL does not write ") + writing.driver);
  // An index that another thread builds with a connection of its own would not be watched; it takes as long here.
  const CPLConfigOptionSetter one_connection("OGR_GPKG_ALLOW_THREADED_RTREE", "NO", false);
  const Folder folder;
  const std::string file = folder.at(writing.file);
  const bool is_sqlite = std::string_view(writing.driver) == "GPKG";
  GDALDatasetUniquePtr dataset(
      driver->Create((is_sqlite ? file : cancellable(file)).c_str(), 0, 0, 0, GDT_Unknown, nullptr));
  if (!dataset) fail(writing);
  if (is_sqlite) watch_statements(*dataset);
  const bool together = dataset->StartTransaction(FALSE) == OGRERR_NONE;
  for (std::int64_t t = 0; t < writing.table_count; ++t) write_table(writing, *dataset, writing.tables[t]);
  if (together && dataset->CommitTransaction() != OGRERR_NONE) fail(writing);
  CPLErrorReset();
  dataset.reset();
  if (CPLGetLastErrorType() >= CE_Failure) fail(writing);
  for (const std::string& name : folder.files()) {
    vsi_l_offset size = 0;
    const void* const bytes = VSIGetMemFileBuffer(folder.at(name).c_str(), &size, FALSE);
    if (bytes == nullptr && size > 0) fail(writing);
    writing.take(writing.host, name.substr(name.rfind('.')).c_str(), bytes, static_cast<std::int64_t>(size));
  }
}

}  // namespace vicinal::gdal
