// See sort.hpp: CUB's radix sort, which is stable. In a file of its own, because CUB takes long to compile.
#include <cub/device/device_radix_sort.cuh>

#include "cuda/sort.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::uint64_t kHistograms = std::uint64_t{512} << 10;  // bytes; and one for each item to look back at

}  // namespace

KeyedValues::KeyedValues(const Engine& engine, std::int64_t count) {
  for (int side = 0; side < 2; ++side) {
    keys[side] = Buffer<unsigned long long>(engine, count);
    values[side] = Buffer<std::uint32_t>(engine, count);
  }
}

std::uint64_t KeyedValues::bytes(std::int64_t count) {
  return static_cast<std::uint64_t>(count) * (2 * (sizeof(unsigned long long) + sizeof(std::uint32_t)) + 1) +
         kHistograms;
}

void sort_by_key(const Engine& engine, KeyedValues& pairs, std::int64_t count, int bits) {
  cub::DoubleBuffer<unsigned long long> keys(pairs.keys[0].data(), pairs.keys[1].data());
  cub::DoubleBuffer<std::uint32_t> values(pairs.values[0].data(), pairs.values[1].data());
  std::size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, 0, bits, engine.stream), "plan a sort");
  // Never empty: null would ask for the size again.
  const Buffer<std::byte> scratch(engine, static_cast<std::int64_t>(bytes) + 1);
  check(cub::DeviceRadixSort::SortPairs(scratch.data(), bytes, keys, values, count, 0, bits, engine.stream), "sort");
  if (keys.selector != 0) std::swap(pairs.keys[0], pairs.keys[1]);
  if (values.selector != 0) std::swap(pairs.values[0], pairs.values[1]);
}

}  // namespace vicinal::cuda
