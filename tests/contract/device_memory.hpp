// Device memory for tests, through the driver's own C interface: the tests need no CUDA toolkit to be built.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace vicinal::contract {

class DeviceDriver {
 public:
  static DeviceDriver& instance() {
    static DeviceDriver driver;
    return driver;
  }
  void* allocate(std::size_t bytes) {
    unsigned long long at = 0;
    enter();
    check(allocate_(&at, bytes), "cuMemAlloc");
    return reinterpret_cast<void*>(at);
  }
  void free(void* at) {
    enter();
    check(free_(reinterpret_cast<unsigned long long>(at)), "cuMemFree");
  }
  void to_device(void* to, const void* from, std::size_t bytes) {
    enter();
    check(to_device_(reinterpret_cast<unsigned long long>(to), from, bytes), "cuMemcpyHtoD");
  }
  void to_host(void* to, const void* from, std::size_t bytes) {
    enter();
    check(to_host_(to, reinterpret_cast<unsigned long long>(from), bytes), "cuMemcpyDtoH");
  }
  /// The same without waiting for what other streams are doing. A fake device has none.
  void to_host_beside(void* to, const void* from, std::size_t bytes) {
    decltype(to_host_) copy = nullptr;
    find("cuMemcpyDtoH_v2_ptds", copy);
    enter();
    check(copy(to, reinterpret_cast<unsigned long long>(from), bytes), "cuMemcpyDtoH");
  }

 private:
  DeviceDriver() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    if (library_ == nullptr) throw std::runtime_error("no driver");
    find("cuCtxSetCurrent", enter_);
    find("cuMemAlloc_v2", allocate_);
    find("cuMemFree_v2", free_);
    find("cuMemcpyHtoD_v2", to_device_);
    find("cuMemcpyDtoH_v2", to_host_);
    int (*get)(int*, int) = nullptr;
    int (*retain)(void**, int) = nullptr;
    int (*init)(unsigned) = nullptr;
    find("cuInit", init);
    check(init(0), "cuInit");  // the library may not have been asked for anything yet
    find("cuDeviceGet", get);
    find("cuDevicePrimaryCtxRetain", retain);
    int device = 0;
    check(get(&device, 0), "cuDeviceGet");
    check(retain(&context_, device), "cuDevicePrimaryCtxRetain");
  }
  void enter() { check(enter_(context_), "cuCtxSetCurrent"); }
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
  }
  static void check(int status, const char* what) {
    if (status != 0) throw std::runtime_error(std::string(what) + " says " + std::to_string(status));
  }

  void* library_ = nullptr;
  void* context_ = nullptr;
  int (*enter_)(void*) = nullptr;
  int (*allocate_)(unsigned long long*, std::size_t) = nullptr;
  int (*free_)(unsigned long long) = nullptr;
  int (*to_device_)(unsigned long long, const void*, std::size_t) = nullptr;
  int (*to_host_)(void*, unsigned long long, std::size_t) = nullptr;
};

/// An array on device 0, copied from the host's.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size), data_(DeviceDriver::instance().allocate(size * sizeof(T))) {}
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    DeviceDriver::instance().to_device(data_, values.data(), size_ * sizeof(T));
  }
  ~DeviceArray() { DeviceDriver::instance().free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] T* data() const noexcept { return static_cast<T*>(data_); }
  [[nodiscard]] std::vector<T> host() const {
    std::vector<T> values(size_);
    DeviceDriver::instance().to_host(values.data(), data_, size_ * sizeof(T));
    return values;
  }
  /// As it is now, whatever the device is doing.
  [[nodiscard]] std::vector<T> host_beside() const {
    std::vector<T> values(size_);
    DeviceDriver::instance().to_host_beside(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  std::size_t size_;
  void* data_;
};

}  // namespace vicinal::contract
