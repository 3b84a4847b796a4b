// What lists on the device are put in order, counted and parted with.
#pragma once

#include <cstdint>

#include "cuda/base/device.hpp"

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

/// The same of keys alone; the second buffer is scratch, and may be the first afterwards.
void sort_keys(const Engine& engine, Buffer<unsigned long long> (&keys)[2], std::int64_t count, int bits);

/// numbers[0 ..): those i below `count` with flags[i] != 0, ascending; *found, on the device: how many they are.
void list_flagged(const Engine& engine, const std::uint8_t* flags, std::int64_t count, std::uint32_t* numbers,
                  std::int64_t* found);
/// Replaces each value by the sum of those up to it.
void running_sum(const Engine& engine, std::uint32_t* values, std::int64_t count);
void running_sum(const Engine& engine, std::int64_t* values, std::int64_t count);
/// Moves the values (of eight bytes, whatever they are) whose flag is set to the front, in order; *found, on the
/// device: how many they are.
void part(const Engine& engine, void* values, const std::uint8_t* flags, std::int64_t count, std::int64_t* found);

}  // namespace vicinal::cuda
