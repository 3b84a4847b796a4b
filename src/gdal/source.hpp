// An open layer of a file, and its polygons once they are loaded.
#pragma once

#include <gdal_priv.h>
#include <ogrsf_frmts.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gdal/cancellable_files.hpp"
#include "gdal/filter.hpp"
#include "plugin/abi/gdal.hpp"

namespace vicinal::gdal {

/// Becomes a status of the plug-in.
class Failure : public std::runtime_error {
 public:
  Failure(StatusCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  [[nodiscard]] StatusCode code() const noexcept { return code_; }

 private:
  StatusCode code_;
};

/// GDAL's last message, or something in its place.
std::string last_message();

/// GDAL's driver, null where it has none. That of Parquet may be a shared library of its own.
GDALDriver* driver_of(const char* name);

class OpenLayer {
 public:
  explicit OpenLayer(const Source& source);

  [[nodiscard]] bool locate(Bounds& bounds);
  void load(const Loading& loading);
  [[nodiscard]] Layer view() const;
  void repair(const std::int64_t* features, std::int64_t count);
  [[nodiscard]] OGRLayer& layer() const noexcept { return *layer_; }
  /// The next feature that the filter keeps, after OGRLayer::ResetReading.
  [[nodiscard]] OGRFeatureUniquePtr next();
  /// Until it is loaded, whoever opened it is asked.
  [[nodiscard]] Watching watching() const { return {host_, cancelled_}; }
  [[nodiscard]] const OGRSpatialReference* crs() const noexcept { return has_crs_ ? &crs_ : nullptr; }

 private:
  struct Shapes {
    std::vector<double> points;
    std::vector<std::int64_t> rings = {0};
    std::vector<std::int64_t> parts = {0};
    std::vector<std::int64_t> features = {0};
    void add(const OGRPolygon& polygon);
    void end_feature() { features.push_back(static_cast<std::int64_t>(parts.size()) - 1); }
  };
  struct TextList {
    std::string bytes;
    std::vector<std::int64_t> ends;
    void add(const std::string& text);
  };

  [[nodiscard]] std::string name_of(std::int64_t feature) const;
  [[nodiscard]] int column(const std::string& name) const;
  [[nodiscard]] OGREnvelope extent();
  void add_geometry(const OGRGeometry& geometry, std::int64_t feature);
  void add_polygons(const OGRGeometry& geometry);
  using Transformation = std::unique_ptr<OGRCoordinateTransformation>;
  void project(const Loading& loading);
  [[nodiscard]] Transformation transformation_to(const char* projection) const;
  [[noreturn]] void refuse_place(std::size_t point) const;
  void add_polygon(const OGRPolygon& polygon, std::int64_t feature);
  void check_degrees(const OGRPolygon& polygon, std::int64_t feature) const;

  std::string path_;
  std::string id_;
  std::string code_;
  std::string name_;
  std::vector<std::string> columns_;  // to be read
  void* host_;
  std::int32_t (*cancelled_)(void* host);
  GDALDatasetUniquePtr dataset_;
  OGRLayer* layer_ = nullptr;
  Filter filter_;
  std::int64_t passed_ = 0;  // features, kept or not, since the last ResetReading of ours
  OGRSpatialReference crs_;
  bool has_crs_ = false;
  std::string crs_name_;
  bool seam_ = false;  // polygons are to be cut at 180 degrees
  Shapes shapes_;
  std::vector<std::int64_t> cut_;  // features that were
  TextList ids_;
  TextList codes_;
  TextList names_;
  struct Values {
    TextList texts;
    std::vector<double> reals;  // of a column of numbers
  };
  std::vector<Values> values_;  // of each of columns_
  std::vector<Column> view_of_values_;
};

void write(const Writing& writing);
/// Hands over each layer of a file.
void describe(const Describing& describing);

/// "EPSG:4326" where it is known by a code, else its name.
std::string name_of_crs(const OGRSpatialReference& crs);
/// Opens a file of this machine as one of the formats that are read. Throws `Failure`.
GDALDatasetUniquePtr open_dataset(const std::string& path);

}  // namespace vicinal::gdal
