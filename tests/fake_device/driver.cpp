// A libcuda.so.1 for machines without a device: some that have 1 GB each (VICINAL_FAKE_DEVICES, 4), whose memory is the
// host's. With it and the
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
  const char* const wanted = std::getenv("VICINAL_FAKE_DEVICES");
  *count = wanted != nullptr ? std::atoi(wanted) : 4;
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

// Streams and events have numbers; what is done on them is done at once. Which streams the default one was to wait for,
// tests ask.
namespace {

std::map<unsigned long long, unsigned long long>& recorded() {
  static std::map<unsigned long long, unsigned long long> streams;
  return streams;
}
std::map<unsigned long long, int>& waits() {
  static std::map<unsigned long long, int> counts;
  return counts;
}
unsigned long long events = 0;
int contexts = 0;

}  // namespace

EXPORTED int cuStreamGetCtx(unsigned long long stream, void** context) {
  if (stream == 2) return 201;  // no thread has a context of its own here
  *context = &mutex;
  return stream == 666 ? 400 : 0;
}
EXPORTED int cuCtxPushCurrent_v2(void*) {
  const std::lock_guard lock(mutex);
  ++contexts;
  return 0;
}
EXPORTED int cuCtxPopCurrent_v2(void**) {
  const std::lock_guard lock(mutex);
  --contexts;
  return 0;
}
EXPORTED int cuEventCreate(unsigned long long* event, unsigned) {
  const std::lock_guard lock(mutex);
  *event = ++events;
  recorded()[*event] = 0;
  return 0;
}
EXPORTED int cuEventRecord(unsigned long long event, unsigned long long stream) {
  const std::lock_guard lock(mutex);
  recorded().at(event) = stream;
  return stream == 667 ? 400 : 0;
}
EXPORTED int cuStreamWaitEvent(unsigned long long stream, unsigned long long event, unsigned) {
  const std::lock_guard lock(mutex);
  if (stream != 1) return 400;
  ++waits()[recorded().at(event)];
  return 0;
}
EXPORTED int cuEventDestroy_v2(unsigned long long event) {
  const std::lock_guard lock(mutex);
  recorded().erase(event);
  return 0;
}
/// How often the default stream was to wait for a stream; -1 where events or contexts were left behind.
EXPORTED int fakeWaits(unsigned long long stream) {
  const std::lock_guard lock(mutex);
  return recorded().empty() && contexts == 0 ? waits()[stream] : -1;
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
