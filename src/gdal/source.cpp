// See source.hpp. One dataset is one thread's: GDAL is re-entrant, not thread-safe.
#include "gdal/source.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <numbers>
#include <system_error>

#include "gdal/antimeridian.hpp"
#include "gdal/cancellable_files.hpp"
#include "gdal/laea.hpp"

namespace vicinal::gdal {
namespace {

constexpr std::int64_t kAskEvery = 256;         // features between two questions whether to stop
constexpr std::size_t kPointsAtOnce = 1 << 16;  // that are projected
constexpr int kStride = 2 * sizeof(double);     // from a point's x to the next one's

std::string text_or(const char* text) {
  return text != nullptr ? text : "";
}

bool is_near(double value, double wanted) {
  return std::fabs(value - wanted) <= 1e-9 * std::fabs(wanted);
}

/// By its name, where what it says of itself agrees: other ways to say the same are PROJ's to understand.
bool is_wgs84(const OGRSpatialReference& crs) {
  if (name_of_crs(crs) != "EPSG:4326" || crs.IsGeographic() == 0 || crs.IsDerivedGeographic() != 0 ||
      crs.IsCompound() != 0) {
    return false;
  }
  const std::string datum = text_or(crs.GetAttrValue("DATUM"));
  return (datum == "WGS_1984" || datum == "World Geodetic System 1984" ||
          datum == "World Geodetic System 1984 ensemble") &&
         is_near(crs.GetSemiMajor(), kWgs84.radius) && is_near(crs.GetInvFlattening(), 1 / kWgs84.flattening) &&
         crs.GetPrimeMeridian() == 0 && is_near(crs.GetAngularUnits(), std::numbers::pi / 180);
}

std::string layers_of(GDALDataset& dataset) {
  std::string names;
  for (int i = 0; i < dataset.GetLayerCount(); ++i) {
    names += (i == 0 ? "" : ", ") + std::string(dataset.GetLayer(i)->GetName());
  }
  return names;
}

/// Formats that hold their own data. Others, which a file's content could name, may send GDAL to other files or to a
/// network: OGRVRT, KML, GML and whatever else is built in.
constexpr const char* kFormats[] = {"GPKG", "ESRI Shapefile", "GeoJSON", "TopoJSON", "FlatGeobuf", "CSV"};
constexpr const char* kParquet = "Parquet";

bool is_parquet(const std::string& path) {
  std::array<char, 4> first{};
  std::ifstream file(path, std::ios::binary);
  return file.read(first.data(), first.size()) && std::string_view(first.data(), first.size()) == "PAR1";
}

[[noreturn]] void refuse_to_open(const std::string& path, int error) {
  throw Failure(kIo, "cannot open '" + path + "': " + std::generic_category().message(error));
}

/// Columns that are not asked for are not read while this lives. GDAL takes names without regard to case, and the first
/// of those that agree: a later one of that name is read rather than the first ignored.
class OnlyColumns {
 public:
  OnlyColumns(OGRLayer& layer, const std::vector<int>& read) : layer_(layer) {
    if (layer_.TestCapability(OLCIgnoreFields) == 0) return;
    OGRFeatureDefn& columns = *layer_.GetLayerDefn();
    std::vector<const char*> ignored;
    for (int i = 0; i < columns.GetFieldCount(); ++i) {
      const char* const name = columns.GetFieldDefn(i)->GetNameRef();
      const bool is_read = std::find(read.begin(), read.end(), i) != read.end();
      if (!is_read && columns.GetFieldIndex(name) == i) ignored.push_back(name);
    }
    ignored.push_back(nullptr);
    layer_.SetIgnoredFields(ignored.data());
  }
  ~OnlyColumns() { layer_.SetIgnoredFields(nullptr); }
  OnlyColumns(const OnlyColumns&) = delete;
  OnlyColumns& operator=(const OnlyColumns&) = delete;

 private:
  OGRLayer& layer_;
};

}  // namespace

std::string name_of_crs(const OGRSpatialReference& crs) {
  const char* const authority = crs.GetAuthorityName(nullptr);
  const char* const code = crs.GetAuthorityCode(nullptr);
  if (authority != nullptr && code != nullptr) return std::string(authority) + ":" + code;
  return text_or(crs.GetName());
}

/// One format after the other: which driver takes a file depends on the file alone. Only files of this machine: GDAL
/// would take an address, an archive or a text as a name, too.
GDALDatasetUniquePtr open_dataset(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) refuse_to_open(path, errno);
  if (!S_ISREG(found.st_mode)) {
    throw Failure(kIo, path + ": is no file that can be opened as a map, but a folder, a pipe or a device");
  }
  if (::access(path.c_str(), R_OK) != 0) refuse_to_open(path, errno);
  const auto opened_as = [&path](const char* format) {
    constexpr unsigned kHow = GDAL_OF_VECTOR | GDAL_OF_READONLY;
    const char* const allowed[] = {format, nullptr};
    CPLErrorReset();
    // Of a cancelled job no format gets a byte, so that the next one refuses the file at once, too.
    return GDALDatasetUniquePtr(GDALDataset::Open(cancellable(path).c_str(), kHow, allowed));
  };
  if (is_parquet(path)) {
    if (driver_of(kParquet) == nullptr) {
      throw Failure(kBadData, path + ": is a Parquet file, which GDAL " + GDALVersionInfo("RELEASE_NAME") +
                                  ", as it is installed here, cannot read: convert it where GDAL has the driver, "
                                  "'ogr2ogr map.gpkg map.parquet', or with GeoPandas, "
                                  "'read_parquet(\"map.parquet\").to_file(\"map.gpkg\")'");
    }
    if (GDALDatasetUniquePtr dataset = opened_as(kParquet)) return dataset;
    throw Failure(kBadData, path + ": is no GeoParquet file that can be read (" + last_message() + ")");
  }
  for (const char* const format : kFormats) {
    if (GDALDatasetUniquePtr dataset = opened_as(format)) return dataset;
  }
  throw Failure(kBadData, path + ": is no GeoPackage, Shapefile, GeoJSON, TopoJSON, FlatGeobuf or CSV file with " +
                              "geometries that can be read (" + last_message() + ")");
}

std::string last_message() {
  std::string text = CPLGetLastErrorMsg();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? "GDAL does not say why" : text;
}

GDALDriver* driver_of(const char* name) {
  GDALDriverManager& drivers = *GetGDALDriverManager();
  if (std::string_view(name) == kParquet) {
    static std::once_flag asked;
    std::call_once(asked, [&drivers] {
      using Register = void (*)();
      const auto known = reinterpret_cast<Register>(::dlsym(RTLD_DEFAULT, "RegisterOGRParquet"));
      known != nullptr ? known() : drivers.AutoLoadDrivers();
    });
  }
  return drivers.GetDriverByName(name);
}

void OpenLayer::TextList::add(const std::string& text) {
  bytes += text;
  ends.push_back(static_cast<std::int64_t>(bytes.size()));
}

void OpenLayer::Shapes::add(const OGRPolygon& polygon) {
  for (const OGRLinearRing* ring : polygon) {
    const std::size_t first = points.size();
    points.resize(first + 2 * static_cast<std::size_t>(ring->getNumPoints()));
    double* const xy = points.data() + first;
    ring->getPoints(xy, kStride, xy + 1, kStride);
    rings.push_back(static_cast<std::int64_t>(points.size() / 2));
  }
  parts.push_back(static_cast<std::int64_t>(rings.size()) - 1);
}

OpenLayer::OpenLayer(const Source& source)
    : path_(source.path),
      id_(text_or(source.id)),
      code_(text_or(source.code)),
      name_(text_or(source.name)),
      columns_(source.columns, source.columns + source.column_count),
      host_(source.host),
      cancelled_(source.cancelled) {
  CPLErrorReset();
  dataset_ = open_dataset(path_);
  if (dataset_->GetLayerCount() == 0) {
    throw Failure(kBadData, path_ + ": it has no layer that can be read: " + last_message());
  }
  const std::string layer = text_or(source.layer);
  if (!layer.empty()) {
    layer_ = dataset_->GetLayerByName(layer.c_str());
    if (layer_ == nullptr) {
      throw Failure(kInvalidArgument,
                    path_ + ": there is no layer '" + layer + "'; there are: " + layers_of(*dataset_));
    }
  } else if (dataset_->GetLayerCount() != 1) {
    throw Failure(kInvalidArgument, path_ + ": it has " + std::to_string(dataset_->GetLayerCount()) +
                                        " layers; name the one to read: " + layers_of(*dataset_));
  } else {
    layer_ = dataset_->GetLayer(0);
  }
  const std::string given = text_or(source.crs);
  if (const OGRSpatialReference* own = layer_->GetSpatialRef(); own != nullptr && !own->IsLocal()) {
    crs_ = *own;
    has_crs_ = true;
  } else if (!given.empty()) {
    if (crs_.SetFromUserInput(given.c_str()) != OGRERR_NONE) {
      throw Failure(kInvalidArgument, path_ + ": '" + given + "' is no coordinate reference system");
    }
    has_crs_ = true;
  }
  crs_.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
  crs_name_ = has_crs_ ? name_of_crs(crs_) : "none";
  if (source.where != nullptr) filter_ = Filter(path_, source.where, *layer_->GetLayerDefn());
}

std::string OpenLayer::name_of(std::int64_t feature) const {
  const std::int64_t end = ids_.ends[static_cast<std::size_t>(feature)];
  const std::int64_t begin = feature == 0 ? 0 : ids_.ends[static_cast<std::size_t>(feature) - 1];
  return path_ + ": feature " + std::to_string(feature) + " (" + (id_.empty() ? "number" : id_) + " " +
         ids_.bytes.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)) + ")";
}

int OpenLayer::column(const std::string& name) const {
  return name.empty() ? -1 : column_of(path_, *layer_->GetLayerDefn(), name);
}

OGRFeatureUniquePtr OpenLayer::next() {
  for (;;) {
    OGRFeatureUniquePtr feature(layer_->GetNextFeature());
    if (feature == nullptr) return feature;
    if (passed_++ % kAskEvery == 0 && is_cancelled()) throw Failure(kCancelled, "cancelled");
    if (filter_.keeps(*feature)) return feature;
  }
}

/// Of the features that the filter keeps.
OGREnvelope OpenLayer::extent() {
  OGREnvelope box;
  if (filter_.keeps_all()) {
    if (layer_->GetExtent(&box, TRUE) != OGRERR_NONE) {
      if (layer_->GetFeatureCount(TRUE) != 0) throw Failure(kBadData, path_ + ": its features have no extent");
      box.MinX = box.MinY = box.MaxX = box.MaxY = 0;
    }
    return box;
  }
  const OnlyColumns only(*layer_, filter_.columns());
  layer_->ResetReading();
  passed_ = 0;
  std::int64_t kept = 0;
  while (const OGRFeatureUniquePtr feature = next()) {
    ++kept;
    const OGRGeometry* const geometry = feature->GetGeometryRef();
    if (geometry == nullptr || geometry->IsEmpty()) continue;
    OGREnvelope own;
    geometry->getEnvelope(&own);
    box.Merge(own);
  }
  if (passed_ > 0 && kept == 0) {
    throw Failure(kInvalidArgument, path_ + ": the filter keeps none of its " + std::to_string(passed_) + " features");
  }
  if (!box.IsInit()) box.MinX = box.MinY = box.MaxX = box.MaxY = 0;
  return box;
}

bool OpenLayer::locate(Bounds& bounds) {
  const OGREnvelope box = extent();
  if (!has_crs_) {
    bounds = {box.MinX, box.MinY, box.MaxX, box.MaxY};
    return false;
  }
  if (crs_.IsGeographic()) {
    bounds = {box.MinX, box.MinY, box.MaxX, box.MaxY};
    return true;
  }
  OGRSpatialReference degrees;
  degrees.SetWellKnownGeogCS("WGS84");
  degrees.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
  const std::unique_ptr<OGRCoordinateTransformation> to(OGRCreateCoordinateTransformation(&crs_, &degrees));
  if (!to || !to->TransformBounds(box.MinX, box.MinY, box.MaxX, box.MaxY, &bounds.west, &bounds.south, &bounds.east,
                                  &bounds.north, 21)) {
    throw Failure(kBadData, path_ + ": its extent has no place on the globe by " + crs_name_ + ": " + last_message());
  }
  return true;
}

/// Polygons, wherever they are nested; anything else that is not empty is refused.
void OpenLayer::add_geometry(const OGRGeometry& geometry, std::int64_t feature) {
  if (geometry.IsEmpty()) return;
  switch (wkbFlatten(geometry.getGeometryType())) {
    case wkbPolygon:
    case wkbTriangle:
      add_polygon(*geometry.toPolygon(), feature);
      return;
    case wkbMultiPolygon:
    case wkbGeometryCollection:
    case wkbTIN:
    case wkbPolyhedralSurface: {
      if (OGR_GT_IsSubClassOf(geometry.getGeometryType(), wkbGeometryCollection)) {
        for (const OGRGeometry* part : *geometry.toGeometryCollection()) add_geometry(*part, feature);
      } else {
        for (const OGRPolygon* part : *geometry.toPolyhedralSurface()) add_polygon(*part, feature);
      }
      return;
    }
    default:
      break;
  }
  if (geometry.hasCurveGeometry()) {
    const std::unique_ptr<OGRGeometry> straight(geometry.getLinearGeometry());
    if (straight && !straight->hasCurveGeometry()) return add_geometry(*straight, feature);
  }
  throw Failure(kBadData, name_of(feature) + " is a " + geometry.getGeometryName() + ": only polygons can be matched");
}

/// What is cut at 180 degrees has not met a projection, which would refuse these.
void OpenLayer::check_degrees(const OGRPolygon& polygon, std::int64_t feature) const {
  constexpr double kMaxLongitude = 10;                            // radians, the limit of projections
  constexpr double kMaxLatitude = 0.5 * std::numbers::pi + 1e-9;  // a pole may be rounded
  const double unit = crs_.GetAngularUnits();
  for (const OGRLinearRing* ring : polygon) {
    for (int i = 0; i < ring->getNumPoints(); ++i) {
      const double x = ring->getX(i);
      const double y = ring->getY(i);
      if (std::fabs(x) * unit <= kMaxLongitude && std::fabs(y) * unit <= kMaxLatitude) continue;
      throw Failure(kBadData, name_of(feature) + ": point " + std::to_string(i) +
                                  " of a ring is nowhere on the globe by " + crs_name_);
    }
  }
}

/// A polygon that crosses 180 degrees on a map of the world is cut there, and its feature noted.
void OpenLayer::add_polygon(const OGRPolygon& polygon, std::int64_t feature) {
  if (seam_) check_degrees(polygon, feature);
  if (!seam_ || polygon.IsEmpty() || !crosses_antimeridian(polygon)) return shapes_.add(polygon);
  const std::unique_ptr<OGRGeometry> pieces = cut_at_antimeridian(polygon);
  if (!pieces) {
    throw Failure(kBadData, name_of(feature) + " crosses the antimeridian and cannot be cut there: " + last_message());
  }
  add_polygons(*pieces);
  if (cut_.empty() || cut_.back() != feature) cut_.push_back(feature);
}

void OpenLayer::load(const Loading& loading) {
  CPLErrorReset();
  const int id = column(id_);
  const int code = column(code_);
  const int name = column(name_);
  std::vector<int> read = filter_.columns();
  read.insert(read.end(), {id, code, name});
  std::vector<int> valued;
  for (const std::string& wanted : columns_) valued.push_back(column(wanted));
  read.insert(read.end(), valued.begin(), valued.end());
  values_.resize(valued.size());
  const OnlyColumns only(*layer_, read);
  layer_->ResetReading();
  passed_ = 0;
  std::int64_t number = 0;
  seam_ = loading.world && has_crs_ && crs_.IsGeographic();
  while (const OGRFeatureUniquePtr feature = next()) {
    ids_.add(id >= 0 ? feature->GetFieldAsString(id) : std::to_string(feature->GetFID()));
    if (code >= 0) codes_.add(feature->GetFieldAsString(code));
    if (name >= 0) names_.add(feature->GetFieldAsString(name));
    for (std::size_t c = 0; c < valued.size(); ++c) {
      const OGRFieldType type = feature->GetFieldDefnRef(valued[c])->GetType();
      const bool missing = !feature->IsFieldSetAndNotNull(valued[c]);
      values_[c].texts.add(missing ? "" : feature->GetFieldAsString(valued[c]));
      if (type != OFTInteger && type != OFTInteger64 && type != OFTReal) continue;
      values_[c].reals.push_back(missing ? std::numeric_limits<double>::quiet_NaN()
                                         : feature->GetFieldAsDouble(valued[c]));
    }
    if (const OGRGeometry* geometry = feature->GetGeometryRef(); geometry != nullptr) {
      add_geometry(*geometry, number);
    }
    shapes_.end_feature();
    ++number;
  }
  if (CPLGetLastErrorType() >= CE_Failure) throw Failure(kBadData, path_ + ": cannot be read: " + last_message());
  const std::int64_t expected = layer_->GetFeatureCount(FALSE);
  if (expected > passed_) {
    throw Failure(kBadData, path_ + ": it ends after " + std::to_string(passed_) + " of " + std::to_string(expected) +
                                " features");
  }
  if (number == 0) throw Failure(kBadData, path_ + ": its layer " + layer_->GetName() + " has no features");
  for (std::size_t c = 0; c < values_.size(); ++c) {
    const Values& values = values_[c];
    view_of_values_.push_back({columns_[c].c_str(),
                               values.reals.empty() ? kTexts : kReals,
                               nullptr,
                               values.reals.empty() ? nullptr : values.reals.data(),
                               {values.texts.bytes.data(), values.texts.ends.data()}});
  }
  if (loading.projection != nullptr) project(loading);
}

void OpenLayer::project(const Loading& loading) {
  // What most files are in, and where both planes are of one datum, needs no search of PROJ's tables.
  const bool ours = !loading.world && is_wgs84(crs_) && Laea::suits(loading.latitude);
  const Laea azimuthal(kWgs84, loading.latitude, loading.longitude);
  const Transformation theirs = ours ? nullptr : transformation_to(loading.projection);
  std::vector<double> x(ours ? 0 : kPointsAtOnce);
  std::vector<double> y(x.size());
  const std::size_t count = shapes_.points.size() / 2;
  for (std::size_t first = 0; first < count; first += kPointsAtOnce) {
    if (loading.cancelled(loading.host) != 0) throw Failure(kCancelled, "cancelled");
    const std::size_t here = std::min(kPointsAtOnce, count - first);
    double* const xy = shapes_.points.data() + 2 * first;
    if (ours) {
      for (std::size_t i = 0; i < here; ++i) {
        const Laea::Place place = azimuthal(xy[2 * i], xy[2 * i + 1]);
        xy[2 * i] = place.x;
        xy[2 * i + 1] = place.y;
      }
    } else {
      for (std::size_t i = 0; i < here; ++i) {
        x[i] = xy[2 * i];
        y[i] = xy[2 * i + 1];
      }
      theirs->Transform(static_cast<int>(here), x.data(), y.data());  // infinite where it fails
      for (std::size_t i = 0; i < here; ++i) {
        xy[2 * i] = x[i];
        xy[2 * i + 1] = y[i];
      }
    }
    for (std::size_t i = 0; i < here; ++i) {
      if (!std::isfinite(xy[2 * i]) || !std::isfinite(xy[2 * i + 1])) refuse_place(first + i);
    }
  }
}

OpenLayer::Transformation OpenLayer::transformation_to(const char* projection) const {
  OGRSpatialReference plane;
  if (plane.SetFromUserInput(projection) != OGRERR_NONE) {
    throw Failure(kInternal, std::string("no projection: ") + projection);
  }
  plane.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
  Transformation to(OGRCreateCoordinateTransformation(&crs_, &plane));
  if (!to) throw Failure(kBadData, path_ + ": no way from " + crs_name_ + " to the plane: " + last_message());
  return to;
}

void OpenLayer::refuse_place(std::size_t point) const {
  const auto after = [](const std::vector<std::int64_t>& ends, std::int64_t at) {
    return std::upper_bound(ends.begin(), ends.end(), at) - ends.begin() - 1;
  };
  const std::int64_t ring = after(shapes_.rings, static_cast<std::int64_t>(point));
  const std::int64_t feature = after(shapes_.features, after(shapes_.parts, ring));
  throw Failure(kBadData, name_of(feature) + " has a point that is nowhere on the globe by " + crs_name_);
}

Layer OpenLayer::view() const {
  Layer layer{};
  layer.points = shapes_.points.data();
  layer.rings = shapes_.rings.data();
  layer.parts = shapes_.parts.data();
  layer.features = shapes_.features.data();
  layer.counts[0] = static_cast<std::int64_t>(shapes_.points.size() / 2);
  layer.counts[1] = static_cast<std::int64_t>(shapes_.rings.size()) - 1;
  layer.counts[2] = static_cast<std::int64_t>(shapes_.parts.size()) - 1;
  layer.counts[3] = static_cast<std::int64_t>(shapes_.features.size()) - 1;
  layer.ids = {ids_.bytes.data(), ids_.ends.data()};
  if (!code_.empty()) layer.codes = {codes_.bytes.data(), codes_.ends.data()};
  if (!name_.empty()) layer.names = {names_.bytes.data(), names_.ends.data()};
  layer.columns = view_of_values_.data();
  layer.crs = crs_name_.c_str();
  layer.cut = cut_.data();
  layer.cut_count = static_cast<std::int64_t>(cut_.size());
  return layer;
}

/// Each region becomes what its rings enclose, places covered twice once (GEOS, method structure).
void OpenLayer::repair(const std::int64_t* features, std::int64_t count) {
  const Shapes old = std::move(shapes_);
  shapes_ = {};
  const char* const options[] = {"METHOD=STRUCTURE", nullptr};
  const std::int64_t* next = features;
  for (std::int64_t i = 0; i + 1 < static_cast<std::int64_t>(old.features.size()); ++i) {
    OGRMultiPolygon whole;
    for (auto part = static_cast<std::size_t>(old.features[static_cast<std::size_t>(i)]);
         part < static_cast<std::size_t>(old.features[static_cast<std::size_t>(i) + 1]); ++part) {
      OGRPolygon polygon;
      for (auto ring = static_cast<std::size_t>(old.parts[part]); ring < static_cast<std::size_t>(old.parts[part + 1]);
           ++ring) {
        OGRLinearRing line;
        for (auto p = static_cast<std::size_t>(old.rings[ring]); p < static_cast<std::size_t>(old.rings[ring + 1]);
             ++p) {
          line.addPoint(old.points[2 * p], old.points[2 * p + 1]);
        }
        polygon.addRing(&line);
      }
      if (next == features + count || *next != i) {
        shapes_.add(polygon);
      } else {
        whole.addGeometry(&polygon);
      }
    }
    if (next != features + count && *next == i) {
      ++next;
      const std::unique_ptr<OGRGeometry> valid(whole.MakeValid(options));
      if (!valid)
        throw Failure(kBadData, name_of(i) + " covers a place twice and cannot be repaired: " + last_message());
      add_polygons(*valid);
    }
    shapes_.end_feature();
  }
}

/// What a repair leaves beside polygons, lines and points without area, is left out.
void OpenLayer::add_polygons(const OGRGeometry& geometry) {
  if (wkbFlatten(geometry.getGeometryType()) == wkbPolygon) {
    if (!geometry.IsEmpty()) shapes_.add(*geometry.toPolygon());
  } else if (OGR_GT_IsSubClassOf(geometry.getGeometryType(), wkbGeometryCollection)) {
    for (const OGRGeometry* part : *geometry.toGeometryCollection()) add_polygons(*part);
  }
}

}  // namespace vicinal::gdal
