// See dissect.hpp.
#include <algorithm>
#include <vector>

#include "cuda/base/shared_memory.hpp"
#include "cuda/lle/dissect/dissect.hpp"
#include "cuda/lle/dissect/part.cuh"

namespace vicinal::cuda::lle {
namespace {

constexpr std::int64_t kMaxNeighbors = 1 << 17;  // of the cells of a part that a block takes
constexpr std::int64_t kMaxEntries = 1 << 19;    // of its points' blocks

/// Part which[b] by block b, which has `room` numbers of `scratch`.
__global__ void __launch_bounds__(kPartThreads, 3)
    dissect_kernel(PartGraph graph, Parts parts, const std::int32_t* which, std::int32_t* scratch, std::int64_t room) {
  extern __shared__ std::int32_t shared[];
  __shared__ int counters[2];
  dissect_part(graph, parts, which[blockIdx.x], shared, counters, scratch + blockIdx.x * room);
}

template <class T>
Buffer<T> filled(const Engine& engine, std::int64_t count, int byte) {
  Buffer<T> to(engine, count);
  check(cudaMemsetAsync(to.data(), byte, to.bytes(), engine.stream), "fill device memory");
  return to;
}

/// The parts that a block has room for, which are noted as done.
struct Fitting {
  std::vector<std::int32_t> parts;
  std::int64_t room = 0;  ///< numbers of a block's memory, for the largest of them
};

Fitting fitting(plugin::LleParts& parts) {
  Fitting found;
  for (std::int64_t p = 0; p < parts.count; ++p) {
    const std::int64_t points = parts.end[p] - parts.begin[p];
    const std::int64_t cells = parts.first_cell[p + 1] - parts.first_cell[p];
    const std::int64_t neighbors = parts.first[parts.first_cell[p + 1]] - parts.first[parts.first_cell[p]];
    const bool fits = points <= solver::kSmallPart && cells <= solver::kManyCells && neighbors <= kMaxNeighbors &&
                      parts.entries[p] <= kMaxEntries;
    parts.done[p] = fits ? 1 : 0;
    if (!fits) continue;
    found.parts.push_back(static_cast<std::int32_t>(p));
    found.room = std::max(found.room, part_room(points, cells, neighbors, parts.places[p], parts.entries[p]));
  }
  return found;
}

}  // namespace

void dissect_parts(const Engine& engine, const Host& host, const DeviceBlocks& a, const DeviceIncidence& in,
                   std::uint64_t room, plugin::LleParts& parts) {
  const auto [which, numbers] = fitting(parts);
  const std::int64_t n = a.points;
  const std::int64_t all_cells = parts.first_cell[parts.count];
  const std::int64_t all_neighbors = parts.first[all_cells];
  const auto resident = static_cast<std::uint64_t>(n * (8 * sizeof(std::int32_t) + 1) +
                                                   all_cells * (sizeof(std::int32_t) + sizeof(std::int64_t)) +
                                                   all_neighbors * sizeof(std::int32_t));
  const std::size_t shared = kSharedNumbers * sizeof(std::int32_t);
  int at_a_time = 0;
  allow_shared_memory(engine, dissect_kernel, shared);
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_a_time, dissect_kernel, kPartThreads, shared),
        "blocks of a device");
  std::int64_t blocks = std::min<std::int64_t>(std::int64_t{at_a_time} * engine.multiprocessors, std::ssize(which));
  if (room > resident && numbers > 0) {
    blocks =
        std::min<std::int64_t>(blocks, static_cast<std::int64_t>((room - resident) / sizeof(std::int32_t)) / numbers);
  }
  if (room <= resident || blocks <= 0) {
    std::fill_n(parts.done, parts.count, std::uint8_t{0});
    return;
  }

  const Buffer<std::int32_t> begin = uploaded(engine, parts.begin, parts.count);
  const Buffer<std::int32_t> end = uploaded(engine, parts.end, parts.count);
  const Buffer<std::int64_t> first_cell = uploaded(engine, parts.first_cell, parts.count + 1);
  const Buffer<std::int32_t> cells = uploaded(engine, parts.cells, all_cells);
  const Buffer<std::int64_t> first = uploaded(engine, parts.first, all_cells + 1);
  const Buffer<std::int32_t> neighbors = uploaded(engine, parts.neighbors, all_neighbors);
  const Buffer<std::int32_t> places = uploaded(engine, parts.places, parts.count);
  const Buffer<std::int32_t> cell_of = uploaded(engine, parts.cell_of, n);
  const Buffer<std::int32_t> order = uploaded(engine, parts.order, n);
  const Buffer<std::int32_t> chosen = uploaded(engine, which.data(), std::ssize(which));
  const Buffer<std::int32_t> spare(engine, n);
  const Buffer<std::int32_t> left = filled<std::int32_t>(engine, n, 0);
  const Buffer<std::int32_t> right = filled<std::int32_t>(engine, n, 0);
  const Buffer<std::int32_t> cell = filled<std::int32_t>(engine, n, 0xff);
  const Buffer<std::int32_t> band = filled<std::int32_t>(engine, n, 0xff);
  const Buffer<std::int32_t> hub = filled<std::int32_t>(engine, n, 0xff);
  const Buffer<std::uint8_t> side = filled<std::uint8_t>(engine, n, kCutSide);
  const Buffer<std::int32_t> scratch(engine, blocks * numbers);
  const PartGraph graph = {
      a.cols.data(), in.first.data(), in.places.data(), cell_of.data(), static_cast<std::uint32_t>(a.width),
      order.data(),  spare.data(),    cell.data(),      side.data(),    band.data(),
      hub.data()};
  const Parts there = {begin.data(),     end.data(),    first_cell.data(), cells.data(), first.data(),
                       neighbors.data(), places.data(), left.data(),       right.data()};
  for (std::int64_t from = 0; from < std::ssize(which); from += blocks) {
    host.check_cancelled();
    const std::int64_t count = std::min(blocks, std::int64_t{std::ssize(which)} - from);
    dissect_kernel<<<static_cast<unsigned>(count), kPartThreads, shared, engine.stream>>>(
        graph, there, chosen.data() + from, scratch.data(), numbers);
    check_launch("parts of a dissection");
    engine.synchronize();  // tens of milliseconds
  }
  to_host(engine, parts.order, order.data(), n);
  to_host(engine, parts.left, left.data(), n);
  to_host(engine, parts.right, right.data(), n);
  engine.synchronize();
}

}  // namespace vicinal::cuda::lle
