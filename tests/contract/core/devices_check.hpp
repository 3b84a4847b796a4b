// What the tests of several devices have in common: contexts on the first ones, and what fake devices can be told.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "device_check.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract::several {

inline std::vector<int> first_devices(int count) {
  std::vector<int> devices(static_cast<std::size_t>(count));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

/// Rows of few decimals: duplicates, and ties of different rows, lie on both sides of every cut.
inline std::vector<double> rows_of(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < n; ++row) {
    const std::uint64_t base = seed + static_cast<std::uint64_t>(row % (n / 3 + 1));
    const std::int64_t turn = row / (n / 3 + 1);  // the same values in another order
    for (std::int64_t j = 0; j < d; ++j) {
      const std::uint64_t x = (base * 6364136223846793005ULL + 1442695040888963407ULL) *
                              (static_cast<std::uint64_t>((j + turn) % d) * 2862933555777941757ULL + 3037000493ULL);
      values.push_back(static_cast<double>((x >> 33) % 1000) / 100 + 1);
    }
  }
  return values;
}

class Devices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_missing().empty()) GTEST_SKIP() << "no CUDA: " << cuda_missing();
    if (most() < 2) GTEST_SKIP() << "one device";
  }
  void TearDown() override {
    lose(-1, 0);
    without_screen(-1);
  }

  static int most() { return std::min(4, static_cast<int>(cuda_status().devices.size())); }
  static const Context& cpu() {
    static const Context kContext = Context::cpu({.threads = 2});
    return kContext;
  }
  static const Context& devices(int count) {
    static std::mutex mutex;
    static std::map<int, Context> made;
    const std::lock_guard lock(mutex);
    const auto found = made.find(count);
    if (found != made.end()) return found->second;
    return made.emplace(count, Context::cuda({.devices = first_devices(count), .threads = 3})).first->second;
  }
  /// Calls check(context, its name) for 1 to 4 devices, at least the first and the last of them.
  static void for_each_count(const std::function<void(const Context& ctx, const std::string& name)>& check) {
    for (int count = 1; count <= most(); ++count) check(devices(count), devices(count).device());
  }
  static bool is_fake() { return cuda_status().architectures == "fake"; }
  /// A fake device is lost at its call number `call` from now on; below 0: none.
  static void lose(int device, std::int64_t call) { tell("vicinal_fake_lose", device, call); }
  /// A fake device has no screen from now on; below 0: all have one.
  static void without_screen(int device) { tell("vicinal_fake_without_screen", device, 0); }

 private:
  static void tell(const char* name, int device, std::int64_t number) {
    const char* const path = std::getenv("VICINAL_CUDA_PLUGIN");
    if (path == nullptr) return;
    void* const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return;
    const auto set = reinterpret_cast<void (*)(std::int32_t, std::int64_t)>(dlsym(library, name));
    if (set != nullptr) set(device, number);
    dlclose(library);
  }
};

/// The code and the sentence of what it throws, or nothing.
inline std::string sentence_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
  return "";
}

}  // namespace vicinal::contract::several
