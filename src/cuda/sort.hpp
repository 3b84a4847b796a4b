// Numbers put in order on the device, each with what belongs to it.
#pragma once

#include <cstdint>

#include "cuda/device.hpp"

namespace vicinal::cuda {

/// Keys and values of one length; the second of each pair of buffers is scratch.
struct KeyedValues {
  Buffer<unsigned long long> keys[2];
  Buffer<std::uint32_t> values[2];

  KeyedValues(const Engine& engine, std::int64_t count);
  /// Bytes of `count` of them, with what sorting takes besides.
  static std::uint64_t bytes(std::int64_t count);
};

/// Sorts the first `count` by the lowest `bits` bits of their keys; those of equal keys stay in order. What was the
/// second buffer may be the first afterwards. O(count bits).
void sort_by_key(const Engine& engine, KeyedValues& pairs, std::int64_t count, int bits);

}  // namespace vicinal::cuda
