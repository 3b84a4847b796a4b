// What the tests of a device have in common: the CPU beside it, and answers held against the CPU's bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {

inline constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_missing().empty()) GTEST_SKIP() << "no CUDA: " << cuda_missing();
  }
  static const Context& cpu() {
    static const Context kContext = Context::cpu();
    return kContext;
  }
  static const Context& cuda() { return cuda_context(); }
  /// A device that may hold next to nothing: tables beyond a few megabytes are streamed.
  static Context small(std::uint64_t megabytes, const CancelToken& cancel = {}, ProgressFn progress = {}) {
    return Context::cuda(
        {.device_memory_limit = megabytes * kMegabyte, .threads = 3, .progress = progress, .cancel = cancel});
  }
  static bool is_fake() { return cuda_status().architectures == "fake"; }
};

/// Rows of a family as float32.
inline std::vector<float> singles(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

inline void expect_same(const NeighborGraph& got, const NeighborGraph& wanted, const std::string& what) {
  EXPECT_EQ(got.offsets, wanted.offsets) << what;
  ASSERT_EQ(got.ids.size(), wanted.ids.size()) << what;
  ASSERT_EQ(got.distances.size(), wanted.distances.size()) << what;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < got.ids.size(); ++i) {
    const bool same =
        got.ids[i] == wanted.ids[i] && std::memcmp(&got.distances[i], &wanted.distances[i], sizeof(double)) == 0;
    if (same) continue;
    if (wrong++ == 0) {
      ADD_FAILURE() << what << ": entry " << i << ": (" << got.ids[i] << ", " << got.distances[i] << ") instead of ("
                    << wanted.ids[i] << ", " << wanted.distances[i] << ")";
    }
  }
  EXPECT_EQ(wrong, 0) << what;
}

}  // namespace vicinal::contract
