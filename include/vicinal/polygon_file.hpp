// Files of polygons: two layers brought into one plane in which areas are right, and what `match` found written beside
// them. All of it needs the plug-in libvicinal_geo.so, in which GDAL, GEOS and PROJ are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/match.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal {

/// Which features of which layer of which file: GeoPackage, Shapefile, GeoJSON, TopoJSON, FlatGeobuf, CSV, or
/// GeoParquet where GDAL has the driver.
struct PolygonSource {
  std::filesystem::path path;
  std::string layer;  ///< empty: the only one
  std::string id;     ///< column that names features; empty: the file's own numbers
  std::string code;   ///< column for MatchOptions::codes_a; empty: none
  std::string name;   ///< column with a name for people; empty: none
  /// Which features are read: "LEVL_CODE = 3 and CNTR_CODE in ('AT', 'DE')"; empty: all. Comparisons of columns with
  /// numbers or 'texts' by =, !=, <, <=, >, >=, `in (...)`, `is null`, `is not null`, joined by `and` and `or`, of
  /// which `and` binds more closely. A missing value agrees with `is null` only (docs/matching.md).
  std::string where;
  std::vector<std::string> columns;  ///< whose values are read, such as those to be carried to another map
  std::string crs;                   ///< of a file that has none, such as "EPSG:4326"; a file's own is never overruled
};

/// The values of one column.
struct PolygonColumn {
  std::string name;
  std::vector<std::string> texts;  ///< [features], as GDAL writes them; empty where missing
  std::vector<double> numbers;     ///< [features] of a column of numbers, NaN where missing; else empty
};

struct PolygonLayer {
  Polygons polygons;                   ///< in the plane
  std::vector<std::string> ids;        ///< [features], as the file spells them
  std::vector<std::string> codes;      ///< [features], or empty
  std::vector<std::string> names;      ///< [features], or empty
  std::vector<PolygonColumn> columns;  ///< those of the source, in its order
  std::string crs;                     ///< of the file: "EPSG:4326", "none"
  std::vector<std::int64_t> repaired;  ///< features that covered a place twice and were made valid, ascending
  std::vector<std::int64_t> cut;       ///< features that cross the antimeridian and were cut there, ascending
  std::int64_t empty = 0;              ///< features without a polygon
};

/// Two layers and the open files behind them.
class VICINAL_API PolygonLayers {
 public:
  PolygonLayer a;
  PolygonLayer b;
  std::string projection;  ///< the plane, as PROJ writes it; "none": coordinates are as they were
  std::string versions;    ///< "GDAL 3.6.2, GEOS 3.11.1, PROJ 9.1.1"

  /// Handles of the plug-in; nobody else's business.
  std::shared_ptr<void> source_a;
  std::shared_ptr<void> source_b;
};

/// Reads both layers. Areas are taken in Lambert's azimuthal equal-area projection about the middle of both, or in
/// Equal Earth where they reach around more than a hemisphere; x is east. `planar`: coordinates are used as they are,
/// which both files must then mean alike. Z is dropped; collections are searched for polygons; features that cover a
/// place twice are repaired and listed; on a map of the world those across the antimeridian are cut there and listed
/// (docs/matching.md). Throws `device_unavailable` where the plug-in is missing; `io` for a file that
/// cannot be opened; `bad_data`, with file and feature, for a file without a CRS when none is given, points or lines,
/// a layer without features, a file that ends too early;
/// `invalid_argument` for a layer or column that is not there, and for a filter that cannot be read or keeps no
/// feature; `cancelled`.
VICINAL_API PolygonLayers read_polygon_layers(const Context& ctx, const PolygonSource& a, const PolygonSource& b,
                                              bool planar = false);

/// Writes the layers `a` and `b` with their own columns, geometry and CRS, and id, group, type, change, best partner
/// and area of each feature, and of those of `b` also the columns `carried`; the tables `pairs` (all that share area,
/// are kept or were cut) and `groups`. NAME.gpkg has all of it; NAME.shp, NAME.geojson, NAME.fgb and NAME.parquet,
/// whose formats hold one layer, become NAME_a.*, NAME_b.*, NAME_pairs.csv and NAME_groups.csv. All are written before
/// the first appears, and each appears whole or not at all. Throws `invalid_argument` for another ending and for
/// columns of another length than `b`; `io`, also where a Shapefile would cut a text or a number and where a FlatGeobuf
/// would lose a feature without polygons; `cancelled`.
VICINAL_API void write_match(const Context& ctx, const std::filesystem::path& path, const PolygonLayers& layers,
                             const Match& match, std::span<const PolygonColumn> carried = {});

/// Whether `write_match` can write that kind of file, known before any work. Throws `invalid_argument` for an ending
/// that it does not know, or of which this GDAL has no driver; `device_unavailable` where the plug-in is missing.
VICINAL_API void check_match_output(const std::filesystem::path& path);

/// What a file of polygons holds.
struct PolygonFileInfo {
  struct Layer {
    std::string name;
    std::string geometry;  ///< "Polygon", "Multi Polygon", "Point", "None", as GDAL calls it
    std::string crs;       ///< "EPSG:4326"; empty: the file has none
    std::int64_t features = 0;
    std::vector<double> extent;        ///< least x and y, largest x and y, in its coordinates; empty: none
    std::vector<std::string> columns;  ///< names
    std::vector<std::string> types;    ///< [columns]: "String", "Integer", "Real", "Date", as GDAL calls them
  };
  std::string format;  ///< "GPKG", "GeoJSON", "ESRI Shapefile", .., as GDAL calls it
  std::vector<Layer> layers;
};

/// Describes a file of polygons of any format that `read_polygon_layers` reads. Reads no more than its format makes
/// necessary: GeoJSON whole. Throws `device_unavailable` where the plug-in is missing, `io` for a file that cannot be
/// opened, `bad_data` for one that cannot be read, `cancelled`.
VICINAL_API PolygonFileInfo describe_polygon_file(const Context& ctx, const std::filesystem::path& path);

/// Why files of polygons cannot be read here; empty where they can.
VICINAL_API std::string polygon_files_missing();

}  // namespace vicinal
