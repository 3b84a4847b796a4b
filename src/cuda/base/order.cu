// See order.hpp: CUB's functions, its radix sort being stable. In a file of their own, because CUB takes long to
// compile.
#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "cuda/base/order.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::uint64_t kHistograms = std::uint64_t{512} << 10;  // bytes; and one for each item to look back at

/// Calls one of CUB's functions, first for the scratch it wants; never empty, because null would ask for it again.
template <class Call>
void with_scratch(const Engine& engine, const char* what, const Call& call) {
  std::size_t bytes = 0;
  check(call(nullptr, bytes), what);
  const Buffer<std::byte> scratch(engine, static_cast<std::int64_t>(bytes) + 1);
  check(call(static_cast<void*>(scratch.data()), bytes), what);
}

template <class Number>
void sum_up(const Engine& engine, Number* values, std::int64_t count) {
  with_scratch(engine, "running sum", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, values, values, count, engine.stream);
  });
}

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
  with_scratch(engine, "sort", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, values, count, 0, bits, engine.stream);
  });
  if (keys.selector != 0) std::swap(pairs.keys[0], pairs.keys[1]);
  if (values.selector != 0) std::swap(pairs.values[0], pairs.values[1]);
}

void sort_keys(const Engine& engine, Buffer<unsigned long long> (&keys)[2], std::int64_t count, int bits) {
  cub::DoubleBuffer<unsigned long long> both(keys[0].data(), keys[1].data());
  with_scratch(engine, "sort", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, both, count, 0, bits, engine.stream);
  });
  if (both.selector != 0) std::swap(keys[0], keys[1]);
}

void list_flagged(const Engine& engine, const std::uint8_t* flags, std::int64_t count, std::uint32_t* numbers,
                  std::int64_t* found) {
  with_scratch(engine, "list what is flagged", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, thrust::counting_iterator<std::uint32_t>(0), flags, numbers,
                                      found, count, engine.stream);
  });
}

void running_sum(const Engine& engine, std::uint32_t* values, std::int64_t count) {
  sum_up(engine, values, count);
}

void running_sum(const Engine& engine, std::int64_t* values, std::int64_t count) {
  sum_up(engine, values, count);
}

void part(const Engine& engine, void* values, const std::uint8_t* flags, std::int64_t count, std::int64_t* found) {
  auto* const from = static_cast<std::uint64_t*>(values);
  const Buffer<std::uint64_t> parted(engine, count);
  with_scratch(engine, "part", [&](void* scratch, std::size_t& bytes) {
    return cub::DevicePartition::Flagged(scratch, bytes, from, flags, parted.data(), found, count, engine.stream);
  });
  check(cudaMemcpyAsync(from, parted.data(), parted.bytes(), cudaMemcpyDeviceToDevice, engine.stream), "part");
}

}  // namespace vicinal::cuda
