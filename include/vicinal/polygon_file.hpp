// Files of polygons: reading two layers into one equal-area plane, and writing them with the results of `match`. All
// functions need the plug-in libvicinal_geo.so, which uses GDAL, GEOS and PROJ.
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

/// A file, a layer of it, and the features that are read. Formats: GeoPackage, Shapefile, GeoJSON, TopoJSON,
/// FlatGeobuf, CSV, and GeoParquet if GDAL has the driver.
struct PolygonSource {
  std::filesystem::path path;
  std::string layer;  ///< empty: the only one
  std::string id;     ///< column with the ids of the features; empty: the file's own numbers
  std::string code;   ///< column for MatchOptions::codes_a; empty: none
  std::string name;   ///< column with names of the features, for display; empty: none
  /// Condition for the features that are read: "LEVL_CODE = 3 and CNTR_CODE in ('AT', 'DE')"; empty: all. Columns are
  /// compared with numbers or 'texts' by =, !=, <, <=, >, >=, `in (...)`, `is null`, `is not null`. Comparisons are
  /// joined by `and` and `or`; `and` binds more tightly. A missing value satisfies only `is null` (docs/matching.md).
  std::string where;
  std::vector<std::string> columns;  ///< columns whose values are read, for example to carry them to another map
  std::string crs;  ///< CRS for a file without one, such as "EPSG:4326"; the CRS of a file is never overridden
};

/// The values of one column.
struct PolygonColumn {
  std::string name;
  std::vector<std::string> texts;  ///< [features], as GDAL writes them; empty if missing
  std::vector<double> numbers;     ///< [features] for a column of numbers, NaN if missing; else empty
};

struct PolygonLayer {
  Polygons polygons;                   ///< in the plane
  std::vector<std::string> ids;        ///< [features], as the file spells them
  std::vector<std::string> codes;      ///< [features], or empty
  std::vector<std::string> names;      ///< [features], or empty
  std::vector<PolygonColumn> columns;  ///< those of the source, in its order
  std::string crs;                     ///< CRS of the file: "EPSG:4326", "none"
  std::vector<std::int64_t> repaired;  ///< numbers of features that covered a place twice and were repaired, ascending
  std::vector<std::int64_t> cut;  ///< numbers of features that cross the antimeridian and were cut there, ascending
  std::int64_t empty = 0;         ///< number of features without a polygon
};

/// Two layers and the open files behind them.
class VICINAL_API PolygonLayers {
 public:
  PolygonLayer a;
  PolygonLayer b;
  std::string projection;  ///< the projection, as PROJ writes it; "none": coordinates are those of the files
  std::string versions;    ///< "GDAL 3.6.2, GEOS 3.11.1, PROJ 9.1.1"

  /// Handles of the plug-in, for internal use.
  std::shared_ptr<void> source_a;
  std::shared_ptr<void> source_b;
};

/// Reads both layers. Coordinates are projected by Lambert's azimuthal equal-area projection around the center of both
/// layers, or by Equal Earth if they extend over more than a hemisphere; x is east. With `planar` coordinates are used
/// as they are; both files must then use the same coordinates. Z is dropped. Collections are searched for polygons.
/// Features that cover a place twice are repaired and listed. On a map of the world, features across the antimeridian
/// are cut there and listed (docs/matching.md).
///
/// Throws `device_unavailable` if the plug-in is missing, `io` for a file that cannot be opened, `bad_data`, with file
/// and feature, for a file without a CRS if none is given, points or lines, a layer without features, and a truncated
/// file, `invalid_argument` for a missing layer or column, and for a condition that cannot be read or selects no
/// feature, `over_memory`, `cancelled`. O(points) time and memory.
VICINAL_API PolygonLayers read_polygon_layers(const Context& ctx, const PolygonSource& a, const PolygonSource& b,
                                              bool planar = false);

/// Writes the layers `a` and `b` with their columns, geometry and CRS. Each feature also gets its id, group, type,
/// change, best partner and area; features of `b` get the columns `carried`. Also writes the tables `pairs` (pairs that
/// share area, are kept or were cut) and `groups`. NAME.gpkg has all of these. NAME.shp, NAME.geojson, NAME.fgb and
/// NAME.parquet, whose formats hold one layer, become NAME_a.*, NAME_b.*, NAME_pairs.csv and NAME_groups.csv. All files
/// are written under temporary names before the first one is renamed, so each file appears completely or not at all.
///
/// Throws `invalid_argument` for another ending and for columns of another length than `b`, `io` if writing fails, if a
/// Shapefile would truncate a text or a number, and if a FlatGeobuf would lose a feature without polygons,
/// `over_memory`, `cancelled`.
VICINAL_API void write_match(const Context& ctx, const std::filesystem::path& path, const PolygonLayers& layers,
                             const Match& match, std::span<const PolygonColumn> carried = {});

/// Checks before any work whether `write_match` can write a file with this ending. Throws `invalid_argument` for an
/// unknown ending, or one for which GDAL has no driver, `device_unavailable` if the plug-in is missing.
VICINAL_API void check_match_output(const std::filesystem::path& path);

/// The contents of a file of polygons.
struct PolygonFileInfo {
  struct Layer {
    std::string name;
    std::string geometry;  ///< "Polygon", "Multi Polygon", "Point", "None", as GDAL calls it
    std::string crs;       ///< "EPSG:4326"; empty: the file has none
    std::int64_t features = 0;
    std::vector<double> extent;        ///< smallest x and y, largest x and y, in the layer's coordinates; empty: none
    std::vector<std::string> columns;  ///< names
    std::vector<std::string> types;    ///< [columns]: "String", "Integer", "Real", "Date", as GDAL calls them
  };
  std::string format;  ///< "GPKG", "GeoJSON", "ESRI Shapefile", .., as GDAL calls it
  std::vector<Layer> layers;
};

/// Describes a file of polygons in a format that `read_polygon_layers` reads. Only the necessary parts of the file are
/// read; GeoJSON is read completely. Throws `device_unavailable` if the plug-in is missing, `io` for a file that cannot
/// be opened, `bad_data` for one that cannot be read, `cancelled`.
VICINAL_API PolygonFileInfo describe_polygon_file(const Context& ctx, const std::filesystem::path& path);

/// The reason why files of polygons cannot be read on this machine; empty if they can.
VICINAL_API std::string polygon_files_missing();

}  // namespace vicinal
