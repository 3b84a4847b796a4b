// See hdf5_library.hpp.
#include "io/hdf5_library.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <cstdlib>

#include "vicinal/error.hpp"

namespace vicinal::io {
namespace {

/// Debian's names first, then what other systems call 1.10, 1.12 and 1.14.
constexpr std::array<const char*, 7> kNames = {"libhdf5_serial.so.103", "libhdf5.so.103",    "libhdf5.so.200",
                                               "libhdf5.so.310",        "libhdf5_serial.so", "libhdf5.so",
                                               "libhdf5_serial.so.310"};

struct Loaded {
  Hdf5Library library;
  std::string missing;  ///< why there is none; empty when there is one
};

void* open_library(std::string& missing) {
  if (const char* name = std::getenv("VICINAL_HDF5"); name != nullptr && *name != '\0') {
    void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) missing = fmt::format("'{}', which VICINAL_HDF5 names, cannot be loaded", name);
    return handle;
  }
  for (const char* name : kNames) {
    if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL); handle != nullptr) return handle;
  }
  missing = "libhdf5 is not installed (Debian: apt install libhdf5-103-1; or name it by VICINAL_HDF5)";
  return nullptr;
}

template <class Function>
bool find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr;
}

bool find_number(void* handle, const char* name, Hid& number) {
  const auto* at = static_cast<const Hid*>(::dlsym(handle, name));
  if (at != nullptr) number = *at;
  return at != nullptr;
}

Loaded load_hdf5() {
  Loaded loaded;
  void* handle = open_library(loaded.missing);  // never closed: it may have registered what runs at the end
  if (handle == nullptr) return loaded;
  Hdf5Library& library = loaded.library;
  const char* lacking = nullptr;
#define VICINAL_HDF5_FIND(name, result, arguments) \
  if (!find(handle, #name, library.name)) lacking = #name;
  VICINAL_HDF5_FUNCTIONS(VICINAL_HDF5_FIND)
#undef VICINAL_HDF5_FIND
  if (!find(handle, "H5Lget_info1", library.link_info) && !find(handle, "H5Lget_info", library.link_info)) {
    lacking = "H5Lget_info";
  }
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  if (lacking == nullptr && (library.H5get_libversion(&major, &minor, &release) < 0 || major != 1 || minor < 10)) {
    loaded.missing = fmt::format("libhdf5 is of version {}.{}.{}; 1.10 and later can be used", major, minor, release);
    return loaded;
  }
  if (lacking == nullptr && library.H5open() < 0) lacking = "H5open";
  if (lacking == nullptr) {
    const bool all =
        find_number(handle, "H5P_CLS_FILE_ACCESS_ID_g", library.file_access) &&
        find_number(handle, "H5P_CLS_DATASET_CREATE_ID_g", library.dataset_create) &&
        find_number(handle, "H5T_STD_U8LE_g", library.u8) && find_number(handle, "H5T_STD_I64LE_g", library.i64) &&
        find_number(handle, "H5T_IEEE_F32LE_g", library.f32) && find_number(handle, "H5T_IEEE_F64LE_g", library.f64);
    if (!all) lacking = "its own types";
  }
  if (lacking != nullptr) loaded.missing = fmt::format("the libhdf5 that was found lacks {}", lacking);
  return loaded;
}

std::mutex& door() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

const Hdf5Library& hdf5_library(const std::string& file) {
  static const Loaded kLoaded = [] {
    const std::lock_guard<std::mutex> lock(door());
    return load_hdf5();
  }();
  if (!kLoaded.missing.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is HDF5, for which {}", file, kLoaded.missing));
  }
  return kLoaded.library;
}

Hdf5Session::Hdf5Session(const Hdf5Library& library) : library_(library), lock_(door()) {
  library_.H5Eget_auto2(0, &function_, &data_);
  library_.H5Eset_auto2(0, nullptr, nullptr);
}

Hdf5Session::~Hdf5Session() {
  library_.H5Eset_auto2(0, function_, data_);
}

}  // namespace vicinal::io
