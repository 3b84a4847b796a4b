// The blocks of one piece of the points, numbered anew: see lle.hpp. Bytes moved: the piece twice.
#include "cuda/base/order.hpp"
#include "cuda/lle/lle.hpp"

namespace vicinal::cuda::lle {
namespace {

__global__ void number_kernel(const std::int32_t* rows, std::int64_t n, std::int32_t* now) {
  const std::int64_t i = own_number();
  if (i < n) now[rows[i]] = static_cast<std::int32_t>(i);
}

__global__ void count_kernel(const std::int64_t* first, const std::int32_t* rows, std::int64_t n,
                             std::uint32_t* counts) {
  const std::int64_t i = own_number();
  if (i < n) counts[i] = static_cast<std::uint32_t>(first[rows[i] + 1] - first[rows[i]]);
}

/// offsets[i + 1] = sums[i].
__global__ void offset_kernel(const std::uint32_t* sums, std::int64_t n, std::int64_t* offsets) {
  const std::int64_t i = own_number();
  if (i < n) offsets[i + 1] = sums[i];
  if (i == 0) offsets[0] = 0;
}

__global__ void renumber_kernel(const std::int32_t* cols, const std::int32_t* rows, const std::int32_t* now,
                                std::int64_t n, std::int64_t width, std::int32_t* to) {
  const std::int64_t at = own_number();
  if (at >= n * width) return;
  const std::int64_t i = at / width;
  to[at] = now[cols[rows[i] * width + at - i * width]];
}

__global__ void values_kernel(const std::int64_t* from_first, const double* from, const std::int32_t* rows,
                              const std::int32_t* owner, const std::int64_t* first, std::int64_t count,
                              std::int64_t width, double* to) {
  const std::int64_t at = own_number();
  if (at >= count * width) return;
  const std::int64_t r = at / width;
  const std::int64_t i = owner[r];
  to[at] = from[(from_first[rows[i]] + r - first[i]) * width + at - r * width];
}

/// Offsets [n + 1] of counts, which are used up.
Buffer<std::int64_t> offsets_of(const Engine& engine, Buffer<std::uint32_t>& counts) {
  const std::int64_t n = counts.size();
  running_sum(engine, counts.data(), n);
  Buffer<std::int64_t> offsets(engine, n + 1);
  offset_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(counts.data(), n, offsets.data());
  check_launch("offsets of rows");
  return offsets;
}

std::int64_t last_of(const Engine& engine, const Buffer<std::int64_t>& offsets) {
  std::int64_t last = 0;
  to_host(engine, &last, offsets.data() + offsets.size() - 1, 1);
  engine.synchronize();
  return last;
}

}  // namespace

DeviceBlocks renumbered(const Engine& engine, const DeviceBlocks& a, const std::int32_t* rows, std::int64_t n) {
  const Buffer<std::int32_t> on_device = uploaded(engine, rows, n);
  const Buffer<std::int32_t> now(engine, a.points);
  number_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(on_device.data(), n, now.data());
  check_launch("new numbers");
  Buffer<std::uint32_t> counts(engine, n);
  count_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(a.first.data(), on_device.data(), n,
                                                                        counts.data());
  check_launch("rows of a piece");
  Buffer<std::int64_t> first = offsets_of(engine, counts);
  DeviceBlocks b(engine, n, a.width, last_of(engine, first));
  b.first = std::move(first);
  find_owners(engine, b);
  renumber_kernel<<<blocks_for(n * a.width, kThreads), kThreads, 0, engine.stream>>>(
      a.cols.data(), on_device.data(), now.data(), n, a.width, b.cols.data());
  check_launch("columns of a piece");
  values_kernel<<<blocks_for(b.rows * a.width, kThreads), kThreads, 0, engine.stream>>>(
      a.first.data(), a.values.data(), on_device.data(), b.owner.data(), b.first.data(), b.rows, a.width,
      b.values.data());
  check_launch("values of a piece");
  engine.synchronize();  // `rows` are the caller's
  return b;
}

}  // namespace vicinal::cuda::lle
