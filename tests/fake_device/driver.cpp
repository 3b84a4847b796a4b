// A libcuda.so.1 for machines without a device: one that has 1 GB, whose memory is the host's. With it and the
// fake plug-in beside this file the contract tests go through everything of the CUDA backend but its kernels.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {

std::mutex mutex;
std::map<const char*, std::size_t>& allocations() {
  static std::map<const char*, std::size_t> made;
  return made;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cuInit(unsigned) {
  return 0;
}
EXPORTED int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
EXPORTED int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
EXPORTED int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Fake device", static_cast<std::size_t>(size));
  return 0;
}
EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{1} << 30;
  return 0;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &mutex;
  return 0;
}
EXPORTED int cuCtxSetCurrent(void*) {
  return 0;
}
EXPORTED int cuMemAlloc_v2(unsigned long long* at, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  auto* const data = static_cast<char*>(std::malloc(bytes));
  allocations()[data] = bytes;
  *at = reinterpret_cast<unsigned long long>(data);
  return 0;
}
EXPORTED int cuMemFree_v2(unsigned long long at) {
  const std::lock_guard lock(mutex);
  allocations().erase(reinterpret_cast<char*>(at));
  std::free(reinterpret_cast<void*>(at));
  return 0;
}
EXPORTED int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
EXPORTED int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
/// For the fake plug-in: whether the pointer leads into an allocation.
EXPORTED int fakeIsDeviceMemory(const void* at) {
  const std::lock_guard lock(mutex);
  const char* const address = static_cast<const char*>(at);
  auto next = allocations().upper_bound(address);
  if (next == allocations().begin()) return 0;
  --next;
  return address < next->first + next->second ? 1 : 0;
}
