// The exported table: each function catches what is thrown behind it. GDAL's messages go nowhere but into a status.
#include <cpl_http.h>
#include <dlfcn.h>
#include <geos_c.h>
#include <proj.h>

#include <cstring>
#include <exception>
#include <string>

#include "gdal/cancellable_files.hpp"
#include "gdal/source.hpp"
#include "plugin/abi/gdal.hpp"

namespace vicinal::gdal {
namespace {

void tell(Status* status, StatusCode code, const char* text) {
  status->code = code;
  std::strncpy(status->text, text, sizeof status->text - 1);
  status->text[sizeof status->text - 1] = '\0';
}

/// While it lives, GDAL prints nothing on this thread and fetches nothing: a GeoJSON file may give an address for its
/// coordinate reference system.
class Quiet {
 public:
  Quiet() {
    CPLPushErrorHandler(CPLQuietErrorHandler);
    CPLHTTPPushFetchCallback(refuse, nullptr);
  }
  ~Quiet() {
    CPLHTTPPopFetchCallback();
    CPLPopErrorHandler();
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  static CPLHTTPResult* refuse(const char* address, CSLConstList /*options*/, GDALProgressFunc /*progress*/,
                               void* /*for_progress*/, CPLHTTPFetchWriteFunc /*write*/, void* /*for_write*/,
                               void* /*own*/) {
    auto* const result = static_cast<CPLHTTPResult*>(CPLCalloc(1, sizeof(CPLHTTPResult)));  // GDAL frees it
    result->nStatus = 1;
    result->pszErrBuf = CPLStrdup((std::string(address) + " is not fetched").c_str());
    return result;
  }
};

template <class Work>
void guarded(Status* status, const Work& work) {
  status->code = kOk;
  const Quiet quiet;
  try {
    work();
  } catch (const Failure& failure) {
    // A file that ended for a cancelled job looks damaged. So `Watching` must outlive this handler.
    is_cancelled() ? tell(status, kCancelled, "cancelled") : tell(status, failure.code(), failure.what());
  } catch (const std::exception& error) {
    tell(status, kInternal, error.what());
  }
}

OpenLayer& layer_of(void* handle) {
  return *static_cast<OpenLayer*>(handle);
}

void* open(const Source* source, Status* status) {
  OpenLayer* layer = nullptr;
  const Watching watching(source->host, source->cancelled);
  guarded(status, [&] { layer = new OpenLayer(*source); });
  return layer;
}

std::int32_t locate(void* handle, Bounds* bounds, Status* status) {
  bool there = false;
  const Watching watching = layer_of(handle).watching();
  guarded(status, [&] { there = layer_of(handle).locate(*bounds); });
  return there ? 1 : 0;
}

void load(void* handle, const Loading* loading, Status* status) {
  const Watching watching(loading->host, loading->cancelled);
  guarded(status, [&] { layer_of(handle).load(*loading); });
}

void view(void* handle, Layer* layer) {
  *layer = layer_of(handle).view();
}

void repair(void* handle, const std::int64_t* features, std::int64_t count, Status* status) {
  guarded(status, [&] { layer_of(handle).repair(features, count); });
}

void close(void* handle) {
  const Quiet quiet;
  delete static_cast<OpenLayer*>(handle);
}

void write_all(const Writing* writing, Status* status) {
  const Watching watching(writing->host, writing->cancelled);
  guarded(status, [&] { write(*writing); });
}

std::int32_t writes(const char* driver) {
  const Quiet quiet;
  GDALDriver* const found = driver_of(driver);
  return found != nullptr && found->GetMetadataItem(GDAL_DCAP_CREATE) != nullptr ? 1 : 0;
}

void describe_all(const Describing* describing, Status* status) {
  const Watching watching(describing->host, describing->cancelled);
  guarded(status, [&] { describe(*describing); });
}

const char* versions() {
  static const std::string kText = std::string("GDAL ") + GDALVersionInfo("RELEASE_NAME") + ", GEOS " +
                                   std::string(GEOSversion()).substr(0, std::string(GEOSversion()).find('-')) +
                                   ", PROJ " + std::to_string(PROJ_VERSION_MAJOR) + "." +
                                   std::to_string(PROJ_VERSION_MINOR) + "." + std::to_string(PROJ_VERSION_PATCH);
  return kText.c_str();
}

/// The formats that are read (source.cpp) and written. A GDAL whose drivers are separate shared libraries lacks these
/// functions: then GDAL registers all.
void register_usual_formats() {
  for (const char* const name : {"RegisterOGRGeoPackage", "RegisterOGRShape", "RegisterOGRGeoJSON",
                                 "RegisterOGRTopoJSON", "RegisterOGRFlatGeobuf", "RegisterOGRCSV"}) {
    using Register = void (*)();
    const auto known = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, name));
    if (known == nullptr) return GDALAllRegister();
    known();
  }
}

const Functions* functions() {
  register_usual_formats();
  static const Functions kTable = {
      kPluginVersion, sizeof(Functions), versions(), open,        locate, load, view, repair,
      close,          write_all,         writes,     describe_all};
  return &kTable;
}

}  // namespace
}  // namespace vicinal::gdal

extern "C" __attribute__((visibility("default"))) const vicinal::gdal::Functions* vicinal_geo_plugin() {
  static const vicinal::gdal::Functions* const kFunctions = vicinal::gdal::functions();
  return kFunctions;
}
