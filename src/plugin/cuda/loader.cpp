// See loader.hpp. The driver is asked through five functions of its C interface, whose types are written out here: no
// header of CUDA is needed to build the library. Neither driver nor plug-in is ever unloaded.
#include "plugin/cuda/loader.hpp"

#include <dlfcn.h>

#include <array>

#include "core/entry.hpp"
#include "plugin/files.hpp"

namespace vicinal::plugin {
namespace {

[[noreturn]] void unavailable(const std::string& sentence) {
  throw Error(ErrorCode::device_unavailable, sentence);
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

struct DriverFunctions {
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*memory)(std::size_t*, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;

  bool fill(void* library) {
    return find(library, "cuInit", init) && find(library, "cuDriverGetVersion", version) &&
           find(library, "cuDeviceGetCount", count) && find(library, "cuDeviceGet", get) &&
           find(library, "cuDeviceGetName", name) && find(library, "cuDeviceTotalMem_v2", memory) &&
           find(library, "cuDeviceGetAttribute", attribute);
  }
};

DeviceInfo describe(const DriverFunctions& cuda, int number) {
  constexpr int kMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, and _MINOR
  constexpr int kMinor = 76;
  DeviceInfo info;
  info.name = "cuda:" + std::to_string(number);
  int device = 0;
  if (cuda.get(&device, number) != 0) return info;
  std::array<char, 256> model{};
  if (cuda.name(model.data(), static_cast<int>(model.size()) - 1, device) == 0) info.model = model.data();
  std::size_t bytes = 0;
  if (cuda.memory(&bytes, device) == 0) info.memory = bytes;
  int major = 0;
  int minor = 0;
  if (cuda.attribute(&major, kMajor, device) == 0 && cuda.attribute(&minor, kMinor, device) == 0) {
    info.compute_capability = 10 * major + minor;
  }
  return info;
}

Driver ask_driver() {
  Driver driver;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    driver.missing = "there is no NVIDIA driver (libcuda.so.1 is not there)";
    return driver;
  }
  DriverFunctions cuda;
  if (!cuda.fill(library)) {
    driver.missing = "the NVIDIA driver's libcuda.so.1 lacks functions that every driver has";
    return driver;
  }
  if (cuda.version(&driver.version) != 0) driver.version = 0;
  if (const int status = cuda.init(0); status != 0) {
    driver.missing = status == 100 ? "the NVIDIA driver finds no device"
                                   : "the NVIDIA driver does not start (cuInit says " + std::to_string(status) + ")";
    return driver;
  }
  int count = 0;
  if (cuda.count(&count) != 0 || count == 0) {
    driver.missing = "the NVIDIA driver finds no device";
    return driver;
  }
  for (int i = 0; i < count; ++i) driver.devices.push_back(describe(cuda, i));
  return driver;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

LoadedPlugin find_plugin(const std::vector<std::string>& candidates) {
  std::string tried;
  for (const std::string& path : candidates) {
    if (!is_there(path)) {
      tried += (tried.empty() ? "" : ", ") + path;
      continue;
    }
    LoadedPlugin plugin{&load_functions(path), path};
    const int needed = plugin.functions->runtime_version / 1000;
    if (driver().version / 1000 < needed) {
      unavailable("the NVIDIA driver serves CUDA " + version_text(driver().version) + ", but the CUDA plug-in " + path +
                  " needs a driver for CUDA " + std::to_string(needed));
    }
    return plugin;
  }
  unavailable("the CUDA plug-in is not there (tried " + tried + ")");
}

}  // namespace

const Driver& driver() {
  static const Driver kDriver = ask_driver();
  return kDriver;
}

const Functions& load_functions(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) unavailable("the CUDA plug-in cannot be loaded: " + loader_error());
  const Functions* (*get)() = nullptr;
  if (!find(library, kPluginSymbol, get)) {
    unavailable("the CUDA plug-in " + path + " is none: it has no symbol " + kPluginSymbol);
  }
  const Functions* const functions = get();
  if (functions == nullptr || functions->version != kPluginVersion || functions->bytes != sizeof(Functions)) {
    unavailable("the CUDA plug-in " + path + " has interface version " +
                (functions == nullptr ? std::string("none") : std::to_string(functions->version)) +
                ", but this library needs " + std::to_string(kPluginVersion));
  }
  return *functions;
}

const LoadedPlugin& plugin() {
  PluginFile& file = PluginFile::of(Plugin::cuda);
  file.ask_finder();
  // An exception leaves it to the next call.
  static const LoadedPlugin kPlugin = file.load(find_plugin);
  return kPlugin;
}

}  // namespace vicinal::plugin

namespace vicinal {

CudaStatus cuda_status() try {
  const core::Entry entry;
  const plugin::Driver& driver = plugin::driver();
  CudaStatus status;
  status.driver_version = driver.version;
  status.devices = driver.devices;
  status.missing = driver.missing;
  if (!status.missing.empty()) return status;
  try {
    const plugin::LoadedPlugin& plugin = plugin::plugin();
    status.plugin = plugin.path;
    status.architectures = plugin.functions->architectures;
  } catch (const Error& error) {
    status.missing = error.what();
  }
  return status;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
