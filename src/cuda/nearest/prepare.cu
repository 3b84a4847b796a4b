// What is found out about a table once (contract clause 6 and the screen's needs): that every value is finite, a
// coordinate median of a sample as center, and the largest deviation from it. One kernel sorts each column of the
// sample in shared memory, one passes over the rows; the host waits once. A table that is too large for the device
// passes through it tile by tile. O(n d).
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda/base/element.hpp"
#include "cuda/base/session.hpp"
#include "cuda/base/warp.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kSampleRows = 1024;
template <class T>
inline constexpr int kLoads = sizeof(T) < 4 ? sizeof(T) : 4;  // of 16 bytes, of a thread
constexpr std::int64_t kTileBytes = std::int64_t{64} << 20;
constexpr unsigned long long kNowhere = ~0ULL;

/// Found by `examine_kernel`. Bits of a double that is not negative are in its order.
struct Found {
  unsigned long long largest;
  unsigned long long non_finite;  ///< row * d + column, the smallest
};

std::int64_t sample_rows(std::int64_t n, std::int64_t d) {
  return std::min(n, std::clamp<std::int64_t>((std::int64_t{1} << 23) / d, 16, kSampleRows));
}

/// The median of each column over rows i * n / count; a whole number where the sample's are whole, because it is one of
/// them. A column a block; bitonic sort.
template <class T>
__global__ void median_kernel(const T* rows, std::int64_t n, std::int64_t d, int count, double* centre) {
  __shared__ double values[kSampleRows];
  const std::int64_t column = blockIdx.x;
  int size = 1;
  while (size < count) size *= 2;
  for (int i = threadIdx.x; i < size; i += kThreads) {
    values[i] = i < count ? widen(rows[i * n / count * d + column]) : INFINITY;
  }
  for (int width = 2; width <= size; width *= 2) {
    for (int stride = width / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < size / 2; i += kThreads) {
        const int low = 2 * i - (i & (stride - 1));
        const int high = low + stride;
        const bool ascending = (low & width) == 0;
        const double a = values[low];
        const double b = values[high];
        if ((a > b) == ascending && a != b) {
          values[low] = b;
          values[high] = a;
        }
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const double middle = values[count / 2];
    centre[column] = isfinite(middle) ? middle : 0;  // a value that is not finite is refused later
  }
}

/// What one load brings.
template <class T>
struct alignas(16) Loaded {
  static constexpr int kCount = 16 / sizeof(T);
  T at[kCount];
};

/// Elements of a block of `examine_kernel`, in one load and in all.
template <class T>
inline constexpr std::int64_t kExamineStep = std::int64_t{kThreads} * Loaded<T>::kCount;
template <class T>
inline constexpr std::int64_t kExamined = kLoads<T>* kExamineStep<T>;

/// Largest deviation and first value that is not finite, of rows [first_row, first_row + n). `centre` may be null: then
/// finiteness alone is looked at. Of rows that float32 holds the centers are such numbers, too, and only deviations
/// that are, rounded to float32, the largest of the warp and not below the largest so far are formed in float64:
/// rounding is monotone, so that the largest is among them. step: kExamineStep modulo d, because a division takes long.
template <class T>
__global__ void __launch_bounds__(kThreads)
    examine_kernel(const T* rows, std::int64_t elements, unsigned d, unsigned step, std::int64_t first_row,
                   const double* centre, const float* narrow_centre, Found* found) {
  constexpr int kCount = Loaded<T>::kCount;
  constexpr std::int64_t kStep = kExamineStep<T>;
  constexpr bool kNarrow = sizeof(T) < sizeof(double);
  const std::int64_t begin = blockIdx.x * kExamined<T> + threadIdx.x * kCount;
  Loaded<T> loaded[kLoads<T>];
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(rows) % sizeof(Loaded<T>) == 0;
  const bool is_whole = is_aligned && begin + (kLoads<T> - 1) * kStep + kCount <= elements;
#pragma unroll
  for (int l = 0; l < kLoads<T>; ++l) {
    const std::int64_t first = begin + l * kStep;
    if (is_whole) {
      loaded[l] = *reinterpret_cast<const Loaded<T>*>(rows + first);
      continue;
    }
#pragma unroll
    for (int e = 0; e < kCount; ++e) {  // beyond the last element that one again, which is not looked at
      loaded[l].at[e] = rows[min(first + e, elements - 1)];
    }
  }
  __shared__ unsigned block_column;
  if (threadIdx.x == 0) block_column = static_cast<unsigned>(blockIdx.x * kExamined<T> % d);
  __syncthreads();
  const unsigned first_column = (block_column + threadIdx.x * kCount) % d;
  // Calls body(element, number of the load, place in it, column) for each that there is.
  const auto for_each = [&](auto body) {
    unsigned load_column = first_column;
#pragma unroll
    for (int l = 0; l < kLoads<T>; ++l) {
      unsigned column = load_column;
#pragma unroll
      for (int e = 0; e < kCount; ++e) {
        if (is_whole || begin + l * kStep + e < elements) body(loaded[l].at[e], l, e, column);
        if (++column == d) column = 0;
      }
      load_column += step;
      if (load_column >= d) load_column -= d;
    }
  };
  [[maybe_unused]] float largest_narrow = 0;
  float poison = 0;  // a NaN where a value is not finite
  double largest = 0;
  for_each([&](T element, int /*load*/, int /*place*/, unsigned column) {
    if constexpr (kNarrow) {
      const float value = narrowed(element);
      poison = fmaf(value, 0.0F, poison);
      if (centre != nullptr) largest_narrow = fmaxf(largest_narrow, fabsf(value - narrow_centre[column]));
    } else {
      if (!isfinite(element)) poison = NAN;
      if (centre == nullptr) return;
      const double deviation = fabs(element - centre[column]);
      if (deviation > largest) largest = deviation;
    }
  });
  if (isnan(poison)) {
    unsigned long long first = kNowhere;
    for_each([&](T element, int l, int e, unsigned /*column*/) {
      if (isfinite(widen(element)) || first != kNowhere) return;
      first = static_cast<unsigned long long>(first_row * d + begin + l * kStep + e);
    });
    if (first != kNowhere) atomicMin(&found->non_finite, first);
  }
  if (centre == nullptr) return;
  // What others have found only grows: an old value never hides a new largest one.
  const unsigned long long seen = *static_cast<volatile unsigned long long*>(&found->largest);
  const double so_far = __longlong_as_double(static_cast<long long>(__shfl_sync(kWholeWarp, seen, 0)));
  if constexpr (kNarrow) {
    const float most = __uint_as_float(most_of_warp(__float_as_uint(largest_narrow)));
    if (most < static_cast<float>(so_far)) return;
    for_each([&](T element, int /*load*/, int /*place*/, unsigned column) {
      if (!(fabsf(narrowed(element) - narrow_centre[column]) >= most)) return;
      const double deviation = fabs(widen(element) - centre[column]);
      if (deviation > largest) largest = deviation;
    });
    __syncwarp();
  }
  for (int other = 16; other > 0; other /= 2) {
    const double theirs = __shfl_xor_sync(kWholeWarp, largest, other);
    if (theirs > largest) largest = theirs;
  }
  if (threadIdx.x % 32 == 0 && largest > so_far) {
    atomicMax(&found->largest, static_cast<unsigned long long>(__double_as_longlong(largest)));
  }
}

__global__ void narrow_kernel(const double* from, std::int64_t count, float* to) {
  const std::int64_t i = own_number();
  if (i < count) to[i] = static_cast<float>(from[i]);
}

void find_medians(const Engine& engine, const Rows& rows, std::int64_t count, double* centre) {
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    median_kernel<<<static_cast<unsigned>(rows.d), kThreads, 0, engine.stream>>>(data, rows.n, rows.d,
                                                                                 static_cast<int>(count), centre);
  });
  check_launch("median");
}

void examine(const Engine& engine, const Rows& rows, std::int64_t first_row, const double* centre, Found* found) {
  const std::int64_t elements = rows.n * rows.d;
  const Buffer<float> narrow_centre(engine, centre != nullptr && rows.dtype != DType::float64 ? rows.d : 0);
  if (narrow_centre.size() > 0) {
    narrow_kernel<<<blocks_for(rows.d, kThreads), kThreads, 0, engine.stream>>>(centre, rows.d, narrow_centre.data());
  }
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    using T = std::remove_cvref_t<decltype(*data)>;
    examine_kernel<<<blocks_for(elements, kExamined<T>), kThreads, 0, engine.stream>>>(
        data, elements, static_cast<unsigned>(rows.d), static_cast<unsigned>(kExamineStep<T> % rows.d), first_row,
        centre, narrow_centre.data(), found);
  });
  check_launch("examine");
}

[[noreturn]] void refuse_value(const char* name, std::int64_t row, std::int64_t column) {
  throw Failure{ErrorCode::bad_data, std::string(name) + ": row " + std::to_string(row) + ", column " +
                                         std::to_string(column) + " is not a finite number"};
}
[[noreturn]] void refuse(const char* name, unsigned long long position, std::int64_t d, std::int64_t first_row = 0) {
  const auto at = static_cast<std::int64_t>(position);
  refuse_value(name, first_row + at / d, at % d);
}

/// A table that does not fit: its sample row by row, then all of it tile by tile.
void examine_in_tiles(Session& session, const Host& host, const plugin::Table& table, double* centre, Found* found) {
  const Engine& engine = session.engine;
  const std::int64_t bytes = row_bytes(table);
  const std::int64_t rows_a_tile = std::clamp<std::int64_t>(kTileBytes / bytes, 1, table.rows);
  const auto dtype = static_cast<DType>(table.dtype);
  const std::int64_t count = sample_rows(table.rows, table.cols);
  const Buffer<std::byte> tile(engine, std::max(rows_a_tile, count) * bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    host.check_cancelled();
    const std::int64_t row = i * table.rows / count;
    upload_rows(session, table, row, row + 1, tile.data() + i * bytes, engine.stream);
  }
  find_medians(engine, {tile.data(), dtype, count, table.cols}, count, centre);
  for (std::int64_t begin = 0; begin < table.rows; begin += rows_a_tile) {
    host.check_cancelled();
    const std::int64_t end = std::min(table.rows, begin + rows_a_tile);
    upload_rows(session, table, begin, end, tile.data(), engine.stream);
    examine(engine, {tile.data(), dtype, end - begin, table.cols}, begin, centre, found);
    host.progress("prepare", static_cast<double>(end) / static_cast<double>(table.rows));
  }
}

/// Room for the table on the device, rows uploaded or borrowed; null where they do not fit.
std::unique_ptr<Resident> take_in(Session& session, const plugin::Table& table) {
  const Engine& engine = session.engine;
  const bool borrowed = lies_ready(engine, table, "table");
  const auto bytes =
      borrowed ? 0 : static_cast<std::uint64_t>(table.rows) * static_cast<std::uint64_t>(row_bytes(table));
  if (!has_room(session, bytes)) return nullptr;
  auto resident = std::make_unique<Resident>();
  resident->rows = {table.data, static_cast<DType>(table.dtype), table.rows, table.cols};
  resident->centre = Buffer<double>(engine, table.cols);
  if (!borrowed) {
    resident->copy = Buffer<std::byte>(engine, static_cast<std::int64_t>(bytes));
    resident->rows.data = resident->copy.data();
    upload_rows(session, table, 0, table.rows, resident->copy.data(), engine.stream);
  }
  resident->session = &session;
  resident->bytes = bytes;
  return resident;
}

void set_facts(Resident& resident, const double* centre, double largest) {
  double farthest = 0;
  for (std::int64_t j = 0; j < resident.rows.d; ++j) farthest = std::max(farthest, std::fabs(centre[j]));
  resident.largest = largest;
  resident.largest_value = farthest + largest;
}

}  // namespace

void prepare_table(Session& session, const Host& host, const plugin::Table& table, plugin::Preparation& result) {
  const Engine& engine = session.engine;
  const Buffer<Found> found(engine, 1);
  const Found nothing{0, kNowhere};
  check(cudaMemcpyAsync(found.data(), &nothing, sizeof nothing, cudaMemcpyHostToDevice, engine.stream),
        "clear results");
  auto resident = take_in(session, table);
  Buffer<double> own_centre;
  if (!resident) own_centre = Buffer<double>(engine, table.cols);
  double* const centre = resident ? resident->centre.data() : own_centre.data();
  if (resident) {
    find_medians(engine, resident->rows, sample_rows(table.rows, table.cols), centre);
    examine(engine, resident->rows, 0, centre, found.data());
  } else {
    examine_in_tiles(session, host, table, centre, found.data());
  }
  Found seen{};
  check(cudaMemcpyAsync(result.centre, centre, static_cast<std::size_t>(table.cols) * sizeof(double),
                        cudaMemcpyDeviceToHost, engine.stream),
        "fetch results");
  check(cudaMemcpyAsync(&seen, found.data(), sizeof seen, cudaMemcpyDeviceToHost, engine.stream), "fetch results");
  engine.synchronize();
  if (seen.non_finite != kNowhere) refuse("table", seen.non_finite, table.cols, result.first_row);
  double largest = 0;
  std::memcpy(&largest, &seen.largest, sizeof largest);
  result.largest = std::min(largest, DBL_MAX);  // finite, so that it can be saved
  if (!resident) return;
  set_facts(*resident, result.centre, result.largest);
  session.resident_bytes += resident->bytes;
  result.resident = resident.release();
}

void find_centre(const Engine& engine, const Rows& rows, double* centre) {
  find_medians(engine, rows, sample_rows(rows.n, rows.d), centre);
}

Resident* upload_table(Session& session, const plugin::Table& table, const double* centre, double largest) {
  const Engine& engine = session.engine;
  auto resident = take_in(session, table);
  if (!resident) return nullptr;
  set_facts(*resident, centre, largest);
  check(
      cudaMemcpyAsync(resident->centre.data(), centre, resident->centre.bytes(), cudaMemcpyHostToDevice, engine.stream),
      "copy the center to the device");
  engine.synchronize();
  session.resident_bytes += resident->bytes;
  return resident.release();
}

void check_finite(const Engine& engine, const Rows& rows, std::int64_t first_row, const char* name) {
  if (rows.dtype == DType::uint8) return;
  const Buffer<Found> found(engine, 1);
  Found seen{0, kNowhere};
  check(cudaMemcpyAsync(found.data(), &seen, sizeof seen, cudaMemcpyHostToDevice, engine.stream), "clear results");
  examine(engine, rows, first_row, nullptr, found.data());
  check(cudaMemcpyAsync(&seen, found.data(), sizeof seen, cudaMemcpyDeviceToHost, engine.stream), "fetch results");
  engine.synchronize();
  if (seen.non_finite != kNowhere) refuse(name, seen.non_finite, rows.d);
}

void check_columns(const std::int64_t* columns, std::int64_t count, std::int64_t first_row, const char* name) {
  for (std::int64_t row = 0; row < count; ++row) {
    if (columns[row] == kNotChecked) throw Failure{ErrorCode::internal, "values that no kernel has checked"};
    if (columns[row] >= 0) refuse_value(name, first_row + row, columns[row]);
  }
}

}  // namespace vicinal::cuda
