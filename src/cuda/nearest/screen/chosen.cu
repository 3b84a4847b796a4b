// See chosen.hpp. Equal rows are found by sorting a hash of each row's bits: rows of one hash are neighbors then, each
// is compared bit for bit with the one before it, and a run of equal ones is a group. (Two contents of one hash that
// alternate make more groups than need be; groups of equal rows are ties like any other.) The order of the hashes is
// as good as random, so that a prefix of the groups is a fair sample of the table.
#include "core/octet.hpp"
#include "cuda/base/element.hpp"
#include "cuda/base/order.hpp"
#include "cuda/nearest/screen/chosen.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::uint64_t kSortScratch = std::uint64_t{32} << 20;  // of CUB, beside its second buffers

__device__ __forceinline__ std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
  return x ^ (x >> 32);
}
__device__ __forceinline__ std::uint64_t bits_of(std::uint8_t value) {
  return value;
}
__device__ __forceinline__ std::uint64_t bits_of(float16 value) {
  return value.bits;
}
__device__ __forceinline__ std::uint64_t bits_of(bfloat16 value) {
  return value.bits;
}
__device__ __forceinline__ std::uint64_t bits_of(float value) {
  return __float_as_uint(value);
}
__device__ __forceinline__ std::uint64_t bits_of(double value) {
  return static_cast<std::uint64_t>(__double_as_longlong(value));
}

/// Eight lanes a row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    hash_kernel(const T* table, std::int64_t d, Chosen from, unsigned long long* hashes, std::uint32_t* numbers) {
  const std::int64_t number = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  if (number >= from.count) return;
  const T* row = table + from.row(number) * d;
  std::uint64_t sum = 0;
  for (std::int64_t j = threadIdx.x % 8; j < d; j += 8) {
    sum += mixed(bits_of(row[j]) + static_cast<std::uint64_t>(j + 1) * 0x9E3779B97F4A7C15ULL);
  }
  sum = core::sum_of_eight(sum);
  if (threadIdx.x % 8 == 0) {
    hashes[number] = sum;
    numbers[number] = static_cast<std::uint32_t>(number);
  }
}

/// heads[i]: whether place i of the sorted rows begins a group. Eight lanes a place.
template <class T>
__global__ void __launch_bounds__(kThreads)
    head_kernel(const T* table, std::int64_t d, Chosen from, const unsigned long long* hashes,
                const std::uint32_t* numbers, std::uint32_t* heads) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  if (i >= from.count) return;
  bool differs = i == 0 || hashes[i] != hashes[i - 1];
  if (!differs) {
    const T* before = table + from.row(numbers[i - 1]) * d;
    const T* row = table + from.row(numbers[i]) * d;
    for (std::int64_t j = threadIdx.x % 8; j < d && !differs; j += 8) differs = bits_of(row[j]) != bits_of(before[j]);
  }
  const bool any = __any_sync(core::mask_of_eight(), differs);
  if (threadIdx.x % 8 == 0) heads[i] = any ? 1 : 0;
}

/// `ends`: the running sum of the heads.
__global__ void __launch_bounds__(kThreads)
    group_kernel(Chosen from, const std::uint32_t* numbers, const std::uint32_t* ends, std::uint32_t* rows,
                 std::uint32_t* firsts, std::uint32_t* members) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= from.count) return;
  const auto row = static_cast<std::uint32_t>(from.row(numbers[i]));
  members[i] = row;
  if (i == 0 || ends[i] != ends[i - 1]) {
    rows[ends[i] - 1] = row;
    firsts[ends[i] - 1] = static_cast<std::uint32_t>(i);
  }
}

__global__ void __launch_bounds__(kThreads)
    size_kernel(const std::uint32_t* firsts, std::int64_t groups, std::int64_t count, std::uint32_t* sizes) {
  const std::int64_t g = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (g >= groups) return;
  sizes[g] = (g + 1 < groups ? firsts[g + 1] : static_cast<std::uint32_t>(count)) - firsts[g];
}

__global__ void __launch_bounds__(kThreads)
    gather_kernel(Chosen from, const std::uint32_t* numbers, std::int64_t count, std::uint32_t* rows,
                  std::uint32_t* firsts, std::uint32_t* sizes) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::uint32_t number = numbers[i];
  rows[i] = static_cast<std::uint32_t>(from.row(number));
  if (from.grouped()) {
    firsts[i] = from.firsts[number];
    sizes[i] = from.sizes[number];
  }
}

__global__ void __launch_bounds__(kThreads)
    flag_kernel(std::int64_t n, const std::uint64_t* filter, std::int64_t first_row, std::uint8_t* flags) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t id = first_row + row;
  if (row < n) flags[row] = static_cast<std::uint8_t>(filter[id >> 6] >> (id & 63) & 1);
}

}  // namespace

std::uint64_t choice_bytes(std::int64_t count) {
  return static_cast<std::uint64_t>(count) * 4 * sizeof(std::uint32_t) + kSortScratch;
}
std::uint64_t distinct_bytes(std::int64_t count) {
  return static_cast<std::uint64_t>(count) * 4 * sizeof(std::uint32_t);
}
std::uint64_t distinct_scratch(std::int64_t count) {
  return static_cast<std::uint64_t>(count) * (2 * 12 + 2 * 4) + distinct_bytes(count) + kSortScratch;
}

ChosenRows choose(const Engine& engine, const Chosen& from, const std::uint8_t* flags) {
  const Buffer<std::uint32_t> numbers(engine, from.count);
  const Buffer<std::int64_t> found(engine, 1);
  list_flagged(engine, flags, from.count, numbers.data(), found.data());
  std::int64_t count = 0;
  check(cudaMemcpyAsync(&count, found.data(), sizeof count, cudaMemcpyDeviceToHost, engine.stream), "count rows");
  engine.synchronize();
  ChosenRows chosen;
  chosen.rows = Buffer<std::uint32_t>(engine, count);
  if (from.grouped()) {
    chosen.firsts = Buffer<std::uint32_t>(engine, count);
    chosen.sizes = Buffer<std::uint32_t>(engine, count);
  }
  chosen.view = {count, chosen.rows.data(), chosen.firsts.data(), chosen.sizes.data(), from.members};
  if (count > 0) {
    gather_kernel<<<blocks_for(count, kThreads), kThreads, 0, engine.stream>>>(
        from, numbers.data(), count, chosen.rows.data(), chosen.firsts.data(), chosen.sizes.data());
    check_launch("gather rows");
  }
  return chosen;
}

ChosenRows choose_filtered(const Engine& engine, std::int64_t n, const std::uint64_t* filter, std::int64_t first_row) {
  const Buffer<std::uint8_t> flags(engine, n);
  flag_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(n, filter, first_row, flags.data());
  check_launch("filter rows");
  return choose(engine, {n}, flags.data());
}

std::optional<ChosenRows> choose_distinct(const Engine& engine, const Rows& table, const Chosen& from) {
  const std::int64_t count = from.count;
  if (count == 0) return std::nullopt;
  KeyedValues hashed(engine, count);
  const unsigned blocks = blocks_for(count * 8, kThreads);
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    hash_kernel<<<blocks, kThreads, 0, engine.stream>>>(rows, table.d, from, hashed.keys[0].data(),
                                                        hashed.values[0].data());
  });
  check_launch("hash rows");
  sort_by_key(engine, hashed, count, 64);
  const unsigned long long* hashes = hashed.keys[0].data();
  const std::uint32_t* numbers = hashed.values[0].data();
  const Buffer<std::uint32_t> ends(engine, count);
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    head_kernel<<<blocks, kThreads, 0, engine.stream>>>(rows, table.d, from, hashes, numbers, ends.data());
  });
  check_launch("compare rows");
  running_sum(engine, ends.data(), count);
  std::uint32_t groups = 0;
  check(cudaMemcpyAsync(&groups, ends.data() + count - 1, sizeof groups, cudaMemcpyDeviceToHost, engine.stream),
        "count groups");
  engine.synchronize();
  if (groups > count - count / 8) return std::nullopt;
  ChosenRows chosen;
  chosen.rows = Buffer<std::uint32_t>(engine, groups);
  chosen.firsts = Buffer<std::uint32_t>(engine, groups);
  chosen.sizes = Buffer<std::uint32_t>(engine, groups);
  chosen.members = Buffer<std::uint32_t>(engine, count);
  group_kernel<<<blocks_for(count, kThreads), kThreads, 0, engine.stream>>>(
      from, numbers, ends.data(), chosen.rows.data(), chosen.firsts.data(), chosen.members.data());
  size_kernel<<<blocks_for(groups, kThreads), kThreads, 0, engine.stream>>>(chosen.firsts.data(), groups, count,
                                                                            chosen.sizes.data());
  check_launch("group rows");
  chosen.view = {groups, chosen.rows.data(), chosen.firsts.data(), chosen.sizes.data(), chosen.members.data()};
  return chosen;
}

}  // namespace vicinal::cuda
