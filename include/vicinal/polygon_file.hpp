// Files of polygons: two layers brought into one plane in which areas are right, and what `match` found written beside
// them. All of it needs the plug-in libvicinal_geo.so, in which GDAL, GEOS and PROJ are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/match.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal {

/// Which layer of which file: GeoPackage, Shapefile, GeoJSON, TopoJSON, FlatGeobuf or CSV.
struct PolygonSource {
  std::filesystem::path path;
  std::string layer;  ///< empty: the only one
  std::string id;     ///< column that names features; empty: the file's own numbers
  std::string code;   ///< column for MatchOptions::codes_a; empty: none
  std::string crs;    ///< of a file that has none, such as "EPSG:4326"; a file's own is never overruled
};

struct PolygonLayer {
  Polygons polygons;                   ///< in the plane
  std::vector<std::string> ids;        ///< [features], as the file spells them
  std::vector<std::string> codes;      ///< [features], or empty
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
/// `invalid_argument` for a layer or column that is not there; `cancelled`.
VICINAL_API PolygonLayers read_polygon_layers(const Context& ctx, const PolygonSource& a, const PolygonSource& b,
                                              bool planar = false);

/// Writes the layers `a` and `b` with their own columns, geometry and CRS, and id, group, type, change, best partner
/// and area of each feature; the tables `pairs` (all that share area, are kept or were cut) and `groups`. NAME.gpkg has
/// all of it; NAME.shp, NAME.geojson and NAME.fgb, whose formats hold one layer, become NAME_a.*, NAME_b.*,
/// NAME_pairs.csv and NAME_groups.csv. All are written before the first appears, and each appears whole or not at all.
/// Throws `invalid_argument` for another ending; `io`, also where a Shapefile would cut a text or a number
/// and where a FlatGeobuf would lose a feature without polygons; `cancelled`.
VICINAL_API void write_match(const Context& ctx, const std::filesystem::path& path, const PolygonLayers& layers,
                             const Match& match);

/// Why files of polygons cannot be read here; empty where they can.
VICINAL_API std::string polygon_files_missing();

}  // namespace vicinal
