// See pack_bytes.hpp. Eight lanes take a row, each sixteen of its columns at a time: so a warp reads four rows in whole
// lines and writes half core matrices of 64 bytes. One read of the table, one write of what is multiplied.
#include "cuda/base/exact_key.cuh"
#include "cuda/nearest/screen/pack_bytes.hpp"
#include "formulas/nearest/byte_screen.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kRowsABlock = kThreads / 8;
constexpr int kChunk = 16;  // columns
static_assert(kTableTile % kRowsABlock == 0 && kQueryTile % kRowsABlock == 0);

// Columns [first, first + 16), moved; 0 beyond the last.
__device__ uint4 moved_chunk(const std::uint8_t* row, int first, int d) {
  if (first + kChunk <= d && reinterpret_cast<std::uintptr_t>(row + first) % sizeof(uint4) == 0) {
    uint4 bytes = *reinterpret_cast<const uint4*>(row + first);
    bytes.x ^= 0x80808080U;
    bytes.y ^= 0x80808080U;
    bytes.z ^= 0x80808080U;
    bytes.w ^= 0x80808080U;
    return bytes;
  }
  std::uint32_t words[4] = {};
#pragma unroll
  for (int j = 0; j < kChunk; ++j) {
    const std::uint32_t byte = first + j < d ? row[first + j] ^ 0x80U : 0U;
    words[j / 4] |= byte << (j % 4 * 8);
  }
  return {words[0], words[1], words[2], words[3]};
}

__device__ void add(std::uint32_t four, core::ByteSums& sums) {
  sums.sum = __dp4a(static_cast<int>(four), 0x01010101, sums.sum);
  sums.squares = __dp4a(static_cast<int>(four), static_cast<int>(four), sums.squares);
}

// Writes the row into its tile's steps (zeros where `row` is null); all eight lanes get its sums.
__device__ core::ByteSums pack_row(const std::uint8_t* row, int d, int columns, __half* steps, int tile_rows,
                                   int row_in_tile) {
  core::ByteSums sums;
  for (int chunk = static_cast<int>(threadIdx.x % 8); chunk < columns / 8; chunk += 8) {
    const uint4 bytes = row != nullptr ? moved_chunk(row, chunk * kChunk, d) : uint4{};
    add(bytes.x, sums);
    add(bytes.y, sums);
    add(bytes.z, sums);
    add(bytes.w, sums);
    *reinterpret_cast<uint4*>(steps + packed_offset(tile_rows, row_in_tile, chunk * 8)) = bytes;
  }
  const unsigned mask = core::mask_of_eight();
  for (int step = 4; step > 0; step /= 2) {
    sums.sum += __shfl_xor_sync(mask, sums.sum, step);
    sums.squares += __shfl_xor_sync(mask, sums.squares, step);
  }
  return sums;
}

__device__ std::int64_t position_of_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * kRowsABlock + threadIdx.x / 8;
}

__global__ void __launch_bounds__(kThreads)
    pack_table_kernel(const std::uint8_t* table, PackedTable packed, Quantization::Numbers frame, __half* tiles) {
  const std::int64_t position = position_of_thread();
  const std::int64_t number = packed_number(packed, position);
  const bool is_row = number < packed.chosen.count;
  __half* tile = tiles + position / kTableTile * table_tile_elements(frame.columns, true);
  const int row_in_tile = static_cast<int>(position % kTableTile);
  const core::ByteSums sums = pack_row(is_row ? table + packed.chosen.row(number) * frame.d : nullptr, frame.d,
                                       frame.columns, tile + kStartElements, kTableTile, row_in_tile);
  if (threadIdx.x % 8 == 0) {
    reinterpret_cast<std::int32_t*>(tile)[row_in_tile] =
        is_row ? core::byte_start(frame.metric == Metric::inner_product, sums) : core::kNoByteRow;
  }
}

__global__ void __launch_bounds__(kThreads)
    pack_queries_kernel(const std::uint8_t* queries, std::int64_t m, Quantization::Numbers frame, double* wide,
                        __half* tiles, QueryFacts* facts, float* thresholds) {
  const std::int64_t query = position_of_thread();
  const bool is_query = query < m;
  const std::uint8_t* row = is_query ? queries + query * frame.d : nullptr;
  const core::ByteSums sums =
      pack_row(row, frame.d, frame.columns, tiles + query / kQueryTile * kQueryTile * frame.columns, kQueryTile,
               static_cast<int>(query % kQueryTile));
  if (is_query) {
    for (int j = static_cast<int>(threadIdx.x % 8); j < frame.d; j += 8) wide[query * frame.d + j] = widen(row[j]);
  }
  if (threadIdx.x % 8 == 0) {
    const double own = core::byte_own(frame.metric == Metric::inner_product, sums, frame.d);
    facts[query] = {{own, 0, 0, 0, 0}, HUGE_VAL, 0, core::HalfForm::triangle, 0, 0};
    thresholds[query] = is_query ? -HUGE_VALF : HUGE_VALF;
  }
}

}  // namespace

Quantization make_byte_frame(const Rows& table, Metric metric) {
  Quantization frame;
  frame.numbers.metric = metric;
  frame.numbers.bytes = true;
  frame.numbers.d = static_cast<int>(table.d);
  frame.numbers.columns = static_cast<int>(core::byte_columns(table.d));
  return frame;
}

void pack_byte_table(const Engine& engine, const Rows& table, const Quantization& frame, const TablePack& pack) {
  const auto blocks = static_cast<unsigned>(pack.view.tile_count * (kTableTile / kRowsABlock));
  pack_table_kernel<<<blocks, kThreads, 0, engine.stream>>>(static_cast<const std::uint8_t*>(table.data), pack.view,
                                                            frame.numbers, pack.tiles.data());
  check_launch("pack table");
}

void pack_byte_queries(const Engine& engine, const Rows& queries, const PackedQueries& pack) {
  const auto blocks = static_cast<unsigned>(pack.view.tile_count * (kQueryTile / kRowsABlock));
  pack_queries_kernel<<<blocks, kThreads, 0, engine.stream>>>(static_cast<const std::uint8_t*>(queries.data), queries.n,
                                                              pack.frame, pack.wide.data(), pack.tiles.data(),
                                                              pack.facts.data(), pack.thresholds.data());
  check_launch("pack queries");
}

}  // namespace vicinal::cuda
