// The interface of libvicinal_geo.so, which holds all that needs GDAL, PROJ and GEOS: a table of
// functions over plain structs. No exception and no C++ type crosses it; the host's callbacks return a number. Handles
// belong to the plug-in until `close`.
#pragma once

#include <cstdint>

namespace vicinal::gdal {

inline constexpr std::int32_t kPluginVersion = 5;
inline constexpr const char* kPluginSymbol = "vicinal_geo_plugin";

enum StatusCode : std::int32_t { kOk = 0, kInvalidArgument = 1, kBadData = 2, kIo = 3, kCancelled = 4, kInternal = 5 };

struct Status {
  std::int32_t code;
  char text[2048];  ///< one sentence, ended by 0
};

/// What is opened. Strings may be null.
struct Source {
  const char* path;
  const char* layer;           ///< null: the only one
  const char* id;              ///< column; null: the number that the file gives a feature
  const char* code;            ///< column of codes; null: none
  const char* name;            ///< column of names; null: none
  const char* where;           ///< a filter (src/gdal/filter.hpp); null: all features
  const char* crs;             ///< of a file that has none
  const char* const* columns;  ///< whose values are read
  std::int64_t column_count;
  void* host;  ///< asked until the layer is loaded
  std::int32_t (*cancelled)(void* host);
};

struct Bounds {
  double west, south, east, north;  ///< degrees
};

/// Texts one after the other: text i is bytes[ends[i - 1]] .. bytes[ends[i]] - 1, the first from 0.
struct Texts {
  const char* bytes;
  const std::int64_t* ends;
};

enum ColumnKind : std::int32_t { kIntegers = 0, kReals = 1, kTexts = 2 };
struct Column {
  const char* name;
  std::int32_t kind;
  const std::int64_t* integers;
  const double* reals;
  Texts texts;
};

/// A loaded layer; borrowed from its handle.
struct Layer {
  const double* points;
  const std::int64_t* rings;
  const std::int64_t* parts;
  const std::int64_t* features;
  std::int64_t counts[4];  ///< of points, rings, parts and features
  Texts ids;
  Texts codes;            ///< null without a code column
  Texts names;            ///< null without a column of names
  const Column* columns;  ///< the source's: texts, empty where missing; of a column of numbers also reals, then NaN
  const char* crs;
  const std::int64_t* cut;  ///< features that were cut at the antimeridian, ascending
  std::int64_t cut_count;
};

struct Loading {
  const char* projection;  ///< null: coordinates stay as they are
  bool world;              ///< the projection has a seam at 180 degrees
  double latitude;         ///< of the middle of an azimuthal projection, degrees
  double longitude;
  void* host;
  std::int32_t (*cancelled)(void* host);
};

/// A layer to write: the features of `source` with their own columns and these, or rows without a place (null).
struct Table {
  const char* name;
  void* source;
  const Column* columns;
  std::int64_t column_count;
  std::int64_t rows;
};

/// A dataset is made in memory and handed over whole, a file at a time.
struct Writing {
  const char* path;    ///< for sentences
  const char* file;    ///< its name in memory, whose ending the format goes by
  const char* driver;  ///< GDAL's short name
  const Table* tables;
  std::int64_t table_count;
  void* host;
  std::int32_t (*cancelled)(void* host);
  void (*take)(void* host, const char* ending, const void* bytes, std::int64_t count);
};

/// A layer as a file describes it. Strings may be null.
struct Description {
  const char* format;    ///< GDAL's short name of the driver
  const char* name;      ///< of the layer
  const char* geometry;  ///< "Multi Polygon", "None"
  const char* crs;       ///< null: the file has none
  std::int64_t features;
  bool has_extent;
  double extent[4];            ///< least x and y, largest x and y, in the layer's own coordinates
  const char* const* columns;  ///< names
  const char* const* types;    ///< "String", "Integer", "Real", "Date": GDAL's
  std::int64_t column_count;
};

struct Describing {
  const char* path;
  void* host;
  std::int32_t (*cancelled)(void* host);
  void (*take)(void* host, const Description* layer);  ///< one after the other
};

struct Functions {
  std::int32_t version;
  std::int32_t bytes;
  const char* versions;  ///< "GDAL 3.6.2, GEOS 3.11.1, PROJ 9.1.1"
  void* (*open)(const Source* source, Status* status);
  /// Whether the layer has a CRS, and where it lies.
  std::int32_t (*locate)(void* handle, Bounds* bounds, Status* status);
  void (*load)(void* handle, const Loading* loading, Status* status);
  void (*view)(void* handle, Layer* layer);
  /// Makes features valid that cover a place twice.
  void (*repair)(void* handle, const std::int64_t* features, std::int64_t count, Status* status);
  void (*close)(void* handle);
  void (*write)(const Writing* writing, Status* status);
  /// Whether this GDAL writes files of a driver.
  std::int32_t (*writes)(const char* driver);
  void (*describe)(const Describing* describing, Status* status);
};

}  // namespace vicinal::gdal
