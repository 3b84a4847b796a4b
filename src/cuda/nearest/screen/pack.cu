// See pack.hpp. A block packs 32 of the chosen rows at a time: a thread takes eight neighboring columns of one row at a
// time (32 bytes of float32, 16 bytes of fp16), so that reads are whole sectors and writes whole core matrices; then
// the sums of a row meet in shared memory, and in the end one thread a row makes the spare columns. float32 and
// narrower tables are centered in float32, where a difference errs by 2^-24 of itself, which rho takes in. One read of
// the table, one write of its fp16 form.
#include <algorithm>
#include <cmath>

#include "cuda/base/exact_key.cuh"
#include "cuda/nearest/screen/pack.hpp"
#include "cuda/nearest/screen/pack_bytes.hpp"
#include "cuda/nearest/screen/threshold.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kGroupRows = 32;              // whose sums meet in shared memory
constexpr int kMaxGroups = 8;               // of a block
constexpr int kBlocks = 4;                  // of a multiprocessor at a time
constexpr int kChunk = 8;                   // columns a thread takes at a time
constexpr int kSampledTiles = 16;           // whose rows say how long a typical row is
constexpr double kNarrowSums = 1 + 0x1p-9;  // float32 sums of up to 8192 positive terms err less, and their squares

// Exact, and without a way through float64.
__device__ __forceinline__ float in_float(std::uint8_t value) {
  return static_cast<float>(value);
}
__device__ __forceinline__ float in_float(float16 value) {
  return __half2float(__ushort_as_half(value.bits));
}
__device__ __forceinline__ float in_float(bfloat16 value) {
  return __uint_as_float(std::uint32_t{value.bits} << 16);
}
__device__ __forceinline__ float in_float(float value) {
  return value;
}

// Values of eight columns, centered and scaled, of a row that may be anything.
template <class T, class C>
struct Loader {
  Quantization::Numbers frame;
  double scale;
  Normalizer normalizer;  // for cosine
  __device__ void operator()(const T* row, int first, C (&values)[kChunk]) const {
    T raw[kChunk];
    constexpr int kVector = 16 / sizeof(T) < kChunk ? 16 / sizeof(T) : kChunk;  // elements of one load
    using Vector = std::conditional_t<sizeof(T) * kVector == 16, uint4, uint2>;
    if (first + kChunk <= frame.d && reinterpret_cast<std::uintptr_t>(row + first) % sizeof(Vector) == 0) {
#pragma unroll
      for (int v = 0; v < kChunk / kVector; ++v) {
        *reinterpret_cast<Vector*>(raw + v * kVector) = *reinterpret_cast<const Vector*>(row + first + v * kVector);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kChunk; ++j) raw[j] = first + j < frame.d ? row[first + j] : T{};
    }
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      if (first + j >= frame.d) {
        values[j] = 0;
      } else if (frame.metric == Metric::cosine) {
        values[j] = static_cast<C>(normalized(widen(raw[j]), normalizer) * scale);
      } else if constexpr (sizeof(C) == sizeof(float)) {
        values[j] = __fmul_rn(__fsub_rn(in_float(raw[j]), frame.narrow_centre[first + j]), static_cast<float>(scale));
      } else {
        values[j] = __dmul_rn(__dsub_rn(widen(raw[j]), frame.centre[first + j]), scale);
      }
    }
  }
};

// Rounds eight values, adds them to the sums; zeros beyond column d count in the weighted sum, as the proof has it.
template <class C>
__device__ uint4 round_chunk(const C (&values)[kChunk], float weight, double& rounded_sq, C& exact_sq, C& error_sq,
                             C& weighted_sq) {
  __half2 packed[kChunk / 2];
  C exact = 0;
  C error = 0;
  float weighted = 0;
  double rounded_sum = 0;
#pragma unroll
  for (int j = 0; j < kChunk; ++j) {
    __half h;
    if constexpr (sizeof(C) == sizeof(float)) {
      h = __float2half_rn(values[j]);
    } else {
      h = __double2half(values[j]);
    }
    if (__hisinf(h)) h = __ushort_as_half(static_cast<unsigned short>(__half_as_ushort(h) - 1));
    const float r = __half2float(h);
    const float magnitude = fmaxf(fabsf(r), 0x1p-14F);
    const C e = values[j] - static_cast<C>(r);
    exact += values[j] * values[j];
    error += e * e;
    weighted += magnitude * magnitude;
    rounded_sum += static_cast<double>(r * r);  // exact in float32: 22 bits
    if (j % 2 == 0) {
      packed[j / 2].x = h;
    } else {
      packed[j / 2].y = h;
    }
  }
  rounded_sq += rounded_sum;
  exact_sq += exact;
  error_sq += error;
  weighted_sq += static_cast<C>(weighted * weight);
  return *reinterpret_cast<uint4*>(packed);
}

// A warp takes four neighboring chunks of eight rows, so that it reads whole lines and writes whole core matrices; four
// warps take the block's rows.
struct Place {
  int row;     // of the block's
  int chunk;   // the first
  int stride;  // to the next chunk
};
__device__ Place place_of_thread() {
  const int warp = static_cast<int>(threadIdx.x / 32);
  return {warp % 4 * 8 + static_cast<int>(threadIdx.x % 8), warp / 4 * 4 + static_cast<int>(threadIdx.x % 32 / 8),
          static_cast<int>(blockDim.x / 32)};
}

// The sums of the block's rows, added up chunk by chunk; thread r of the first warp gets those of row r.
template <class C>
__device__ core::HalfSums sums_of_row(double rounded_sq, C exact_sq, C error_sq, C weighted_sq) {
  __shared__ double parts[4][kMaxThreads];
  __shared__ double totals[4][kGroupRows];
  parts[0][threadIdx.x] = rounded_sq;
  parts[1][threadIdx.x] = static_cast<double>(exact_sq);
  parts[2][threadIdx.x] = static_cast<double>(error_sq);
  parts[3][threadIdx.x] = static_cast<double>(weighted_sq);
  __syncthreads();
  if (threadIdx.x < 4 * kGroupRows) {
    double total = 0;
    const int row = threadIdx.x % kGroupRows;
    for (int warp = row / 8; warp < static_cast<int>(blockDim.x / 32); warp += 4) {
      for (int chunk = 0; chunk < 4; ++chunk) total += parts[threadIdx.x / kGroupRows][warp * 32 + chunk * 8 + row % 8];
    }
    totals[threadIdx.x / kGroupRows][threadIdx.x % kGroupRows] = total;
  }
  __syncthreads();
  core::HalfSums sums;
  if (threadIdx.x < kGroupRows) {
    constexpr double kUp = sizeof(C) == sizeof(float) ? kNarrowSums : 1;
    sums.rounded_sq = totals[0][threadIdx.x];
    sums.exact_sq = totals[1][threadIdx.x];
    sums.error_sq = totals[2][threadIdx.x] * kUp;
    sums.weighted_sq = totals[3][threadIdx.x] * kNarrowSums;
  }
  __syncthreads();
  return sums;
}
// The bound's facts of a row; in float32 centring errs by 2^-24 of a value, twice that with products and sums.
template <class C>
__device__ core::HalfRow row_facts(const core::HalfSums& sums) {
  core::HalfRow row = core::half_row(sums);
  if (sizeof(C) == sizeof(float)) row.rho += 0x1p-22 * core::root_above(sums.exact_sq);
  return row;
}

// The last chunk of a row: what it has of the row's own columns, then the five spare ones.
__device__ void write_last_chunk(__half* tile, int tile_rows, int row, int columns, uint4 own,
                                 const std::uint16_t* spare) {
  auto* elements = reinterpret_cast<std::uint16_t*>(&own);
  for (int i = 0; i < core::kSpareColumns; ++i) elements[kChunk - core::kSpareColumns + i] = spare[i];
  *reinterpret_cast<uint4*>(tile + packed_offset(tile_rows, row, columns - kChunk)) = own;
}

// Rounds the thread's chunks of its row (null: zeros) into the tile, all but the row's last chunk, which comes to
// `last`; thread r of the first warp gets the sums of row r.
template <int kTile, class T, class C>
__device__ __forceinline__ core::HalfSums round_row(const Loader<T, C>& load, const T* row, const Place& place,
                                                    __half* tile, int row_in_tile, uint4* last) {
  const int columns = load.frame.columns;
  const int chunks = columns / kChunk;
  double rounded_sq = 0;
  C exact_sq = 0;
  C error_sq = 0;
  C weighted_sq = 0;
  for (int chunk = place.chunk; chunk < chunks; chunk += place.stride) {
    C values[kChunk] = {};
    if (row != nullptr) load(row, chunk * kChunk, values);
    const auto weight = static_cast<float>(core::half_weight(chunk * kChunk, columns));
    const uint4 bits = round_chunk(values, weight, rounded_sq, exact_sq, error_sq, weighted_sq);
    if (chunk + 1 < chunks) {
      *reinterpret_cast<uint4*>(tile + packed_offset(kTile, row_in_tile, chunk * kChunk)) = bits;
    } else {
      last[place.row] = bits;
    }
  }
  return sums_of_row(rounded_sq, exact_sq, error_sq, weighted_sq);
}

// Rounds the 32 rows of a group, all but their last chunk, which comes to `last`; thread r of the first warp gets the
// sums of row r.
template <class T, class C>
__device__ core::HalfSums pack_group(const T* table, const PackedTable& packed, const Quantization::Numbers& frame,
                                     std::int64_t first, __half* tile, uint4* last) {
  const Place place = place_of_thread();
  const int row_in_tile = static_cast<int>((first + place.row) % kTableTile);
  const std::int64_t number = packed_number(packed, first + place.row);
  const bool is_row = number < packed.chosen.count;
  const T* values_of_row = table + (is_row ? packed.chosen.row(number) : 0) * frame.d;
  Loader<T, C> load{frame, core::power_of_two(frame.exponent), {}};
  if (frame.metric == Metric::cosine) {
    // Here lanes are rows: each eight lanes find the lengths of all rows, one after the other.
    for (int r = 0; r < kGroupRows; ++r) {
      const std::int64_t other = packed_number(packed, first + r);
      const std::int64_t row = other < packed.chosen.count ? packed.chosen.row(other) : 0;
      const Normalizer n = normalizer_of(table + row * frame.d, frame.d, core::mask_of_eight());
      if (r == place.row) load.normalizer = n;
    }
  }
  // A second time where rows of the group are far out.
  for (bool again = false;; again = true) {
    const core::HalfSums sums =
        round_row<kTableTile>(load, is_row ? values_of_row : nullptr, place, tile, row_in_tile, last);
    if (!frame.shortens || again) return sums;
    __shared__ int shortening[kGroupRows];
    const int mine = threadIdx.x < kGroupRows ? core::half_shortening(sqrt(sums.exact_sq)) : 0;
    if (threadIdx.x < kGroupRows) shortening[threadIdx.x] = mine;
    if (__syncthreads_or(mine) == 0) return sums;
    load.scale *= core::power_of_two(shortening[place.row]);
  }
}

// Some groups of rows after each other, then the spare columns of all of them, a thread a row: these are a long chain
// of steps for few threads, and would be waited for after each group.
template <class T, class C>
__global__ void __launch_bounds__(kMaxThreads, kBlocks)
    pack_table_kernel(const T* table, PackedTable packed, Quantization::Numbers frame, int groups, __half* tiles) {
  __shared__ uint4 last[kMaxGroups * kGroupRows];
  __shared__ core::HalfRow facts[kMaxGroups * kGroupRows];
  const std::int64_t tile_size = static_cast<std::int64_t>(kTableTile) * frame.columns;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * groups * kGroupRows;
  const int rows =
      static_cast<int>(min(static_cast<std::int64_t>(groups) * kGroupRows, packed.tile_count * kTableTile - first));
  for (int row = 0; row < rows; row += kGroupRows) {
    __half* tile = tiles + (first + row) / kTableTile * tile_size;
    const core::HalfSums found = pack_group<T, C>(table, packed, frame, first + row, tile, last + row);
    if (threadIdx.x < kGroupRows) facts[row + threadIdx.x] = row_facts<C>(found);
  }
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += static_cast<int>(blockDim.x)) {
    const std::int64_t own = first + row;
    std::uint16_t spare[core::kSpareColumns] = {};
    if (packed_number(packed, own) < packed.chosen.count) {
      core::table_columns(facts[row], frame.metric == Metric::inner_product, frame.beta, spare);
      // A row of zeros is as far from everything as can be, whatever the product says.
      if (frame.metric == Metric::cosine && !(facts[row].exact_sq > 0)) core::always_columns(spare);
      if (own / kTableTile < kSampledTiles) {
        atomicAdd(&frame.typical[0], facts[row].norm);
        atomicAdd(&frame.typical[1], 1.0);
      }
    }
    write_last_chunk(tiles + own / kTableTile * tile_size, kTableTile, static_cast<int>(own % kTableTile),
                     frame.columns, last[row], spare);
  }
}

template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    pack_queries_kernel(const T* queries, std::int64_t m, Quantization::Numbers frame, double* wide, __half* tiles,
                        QueryFacts* facts, float* thresholds) {
  const Place place = place_of_thread();
  const std::int64_t query = static_cast<std::int64_t>(blockIdx.x) * kGroupRows + place.row;
  const bool is_query = query < m;
  const T* values_of_query = queries + (is_query ? query : 0) * frame.d;
  __half* tile = tiles + query / kQueryTile * kQueryTile * frame.columns;
  const int row_in_tile = static_cast<int>(query % kQueryTile);
  __shared__ uint4 last[kGroupRows];
  __shared__ double length_sq[kGroupRows];

  Loader<T, double> load{frame, core::power_of_two(frame.exponent), {}};
  if (frame.metric == Metric::cosine) {
    for (int r = 0; r < kGroupRows; ++r) {
      const std::int64_t other = static_cast<std::int64_t>(blockIdx.x) * kGroupRows + r;
      const Normalizer n = normalizer_of(queries + (other < m ? other : 0) * frame.d, frame.d, core::mask_of_eight());
      if (r == place.row) load.normalizer = n;
    }
  }
  const int chunks = frame.columns / kChunk;
  double sum = 0;
  for (int chunk = place.chunk; chunk < chunks; chunk += place.stride) {
    double values[kChunk] = {};
    if (is_query) load(values_of_query, chunk * kChunk, values);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      sum += values[j] * values[j];
      const int col = chunk * kChunk + j;
      if (is_query && col < frame.d) {
        const double exact = widen(values_of_query[col]);
        wide[query * frame.d + col] = frame.metric == Metric::cosine ? normalized(exact, load.normalizer) : exact;
      }
    }
  }
  const core::HalfSums lengths = sums_of_row(0.0, sum, 0.0, 0.0);
  if (threadIdx.x < kGroupRows) length_sq[threadIdx.x] = lengths.exact_sq;
  __syncthreads();
  const int own = core::half_query_exponent(sqrt(length_sq[place.row]));
  load.scale *= core::power_of_two(own);

  const core::HalfSums sums =
      round_row<kQueryTile>(load, is_query ? values_of_query : nullptr, place, tile, row_in_tile, last);
  if (threadIdx.x < kGroupRows) {
    // One thread a query: no longer the one that it packed.
    const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * kGroupRows + threadIdx.x;
    const double length = sqrt(length_sq[threadIdx.x]);
    const bool screened = !frame.shortens || core::half_inside(length);
    const int exponent = screened ? core::half_query_exponent(length) : core::kMinHalfExponent - 1;
    QueryFacts known{row_facts<double>(sums), HUGE_VAL, exponent, core::HalfForm::triangle, 0, 0};
    known.zero = frame.metric == Metric::cosine && !(sums.exact_sq > 0) ? 1 : 0;
    const bool usable = number < m && known.zero == 0 && core::half_usable(known.row, exponent);
    known.overflowed = number < m && !usable ? 1 : 0;
    std::uint16_t spare[core::kSpareColumns] = {};
    // For the sample, whose scores need no allowance; renewed_threshold writes the others.
    if (usable) core::query_columns(known.row, exponent, core::HalfForm::triangle, 0, frame.d, spare);
    write_last_chunk(tile, kQueryTile, static_cast<int>(number % kQueryTile), frame.columns, last[threadIdx.x], spare);
    facts[number] = known;
    thresholds[number] = usable ? -HUGE_VALF : HUGE_VALF;
  }
}

// Four warps for each four chunks, or for each eight, twelve, ...
unsigned threads_for(const Quantization::Numbers& n) {
  const int fours = (n.columns / kChunk + 3) / 4;
  constexpr int kMaxFours = kMaxThreads / 128;
  const int rounds = (fours + kMaxFours - 1) / kMaxFours;
  return static_cast<unsigned>((fours + rounds - 1) / rounds * 128);
}

// In float32 where the table is no wider, so that its rows may be centered there.
__global__ void take_centre(const double* from, double* to, float* to_narrow, int d, bool narrow) {
  const int j = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (j >= d) return;
  to_narrow[j] = static_cast<float>(from[j]);
  to[j] = narrow ? static_cast<double>(to_narrow[j]) : from[j];
}

}  // namespace

Quantization make_frame(const Engine& engine, const Rows& table, const TableFacts& facts, Metric metric, bool moves) {
  Quantization frame;
  const auto d = table.d;
  frame.memory = Buffer<double>(engine, d + 2 + (d + 1) / 2);
  Quantization::Numbers& n = frame.numbers;
  n.metric = metric;
  n.centre = frame.memory.data();
  n.typical = frame.memory.data() + d;
  auto* narrow_centre = reinterpret_cast<float*>(n.typical + 2);
  n.narrow_centre = narrow_centre;
  n.d = static_cast<int>(d);
  n.columns = static_cast<int>(core::half_columns(d));
  n.beta = core::half_beta(engine.sums.model);
  frame.memory.zero();
  // Inner products and directions are not centered.
  const bool centred = moves && (metric == Metric::euclidean || metric == Metric::sqeuclidean);
  if (centred) {
    take_centre<<<static_cast<unsigned>((d + 255) / 256), 256, 0, engine.stream>>>(
        facts.centre, frame.memory.data(), narrow_centre, n.d, table.dtype != DType::float64);
    check_launch("take center");
  }
  const double longest = centred ? facts.longest : facts.longest_value;
  n.exponent = core::half_table_exponent(metric == Metric::cosine ? 1.0 : longest * (1 + 0x1p-40));
  n.narrow = table.dtype != DType::float64 && metric != Metric::cosine && std::abs(n.exponent) < 100;
  return frame;
}

TablePack pack_table(const Engine& engine, const Rows& table, const Chosen& chosen, const Quantization& frame) {
  TablePack pack;
  const Quantization::Numbers& n = frame.numbers;
  pack.view.chosen = chosen;
  pack.view.tile_count = (chosen.count + kTableTile - 1) / kTableTile;
  pack.view.columns = n.columns;
  pack.view.bytes = n.bytes;
  pack.tiles = Buffer<__half>(engine, pack.view.tile_count * table_tile_elements(n.columns, n.bytes));
  pack.view.tiles = pack.tiles.data();
  if (chosen.count == 0) return pack;
  if (n.bytes) {
    pack_byte_table(engine, table, frame, pack);
    return pack;
  }
  // Blocks for all multiprocessors come first.
  const std::int64_t all = pack.view.tile_count * (kTableTile / kGroupRows);
  const auto groups =
      static_cast<int>(std::clamp<std::int64_t>(all / (std::int64_t{engine.multiprocessors} * kBlocks), 1, kMaxGroups));
  const auto blocks = static_cast<unsigned>((all + groups - 1) / groups);
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    if (n.narrow) {
      if constexpr (!std::is_same_v<T, double>) {
        pack_table_kernel<T, float>
            <<<blocks, threads_for(n), 0, engine.stream>>>(rows, pack.view, n, groups, pack.tiles.data());
      }
    } else {
      pack_table_kernel<T, double>
          <<<blocks, threads_for(n), 0, engine.stream>>>(rows, pack.view, n, groups, pack.tiles.data());
    }
    check_launch("pack table");
  });
  return pack;
}

PackedQueries pack_queries(const Engine& engine, const Rows& queries, const Quantization& frame,
                           std::uint32_t capacity) {
  PackedQueries pack;
  const Quantization::Numbers& n = frame.numbers;
  pack.frame = n;
  const std::int64_t tiles = (queries.n + kQueryTile - 1) / kQueryTile;
  const std::int64_t padded = tiles * kQueryTile;
  pack.wide = Buffer<double>(engine, queries.n * n.d);
  pack.tiles = Buffer<__half>(engine, padded * n.columns);
  pack.facts = Buffer<QueryFacts>(engine, padded);
  pack.thresholds = Buffer<float>(engine, padded);
  pack.counts = Buffer<std::uint32_t>(engine, padded);
  pack.survivors = Buffer<Survivor>(engine, queries.n * capacity);
  pack.lost = Buffer<std::uint8_t>(engine, padded);
  pack.counts.zero();
  pack.lost.zero();
  pack.view = {pack.tiles.data(),     queries.n, tiles,           pack.thresholds.data(), {}, pack.counts.data(),
               pack.survivors.data(), capacity,  pack.lost.data()};
  if (n.bytes) {
    pack_byte_queries(engine, queries, pack);
    return pack;
  }
  with_elements(queries.data, queries.dtype, [&](const auto* rows) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(rows)>>;
    pack_queries_kernel<T><<<static_cast<unsigned>(padded / kGroupRows), threads_for(n), 0, engine.stream>>>(
        rows, queries.n, n, pack.wide.data(), pack.tiles.data(), pack.facts.data(), pack.thresholds.data());
    check_launch("pack queries");
  });
  return pack;
}

}  // namespace vicinal::cuda
