// The only code that knows dtypes and strides (contract clause 1: every type widens exactly to float64).
// Rows are read element by element through memcpy, so data need not be aligned; the loops over contiguous elements
// are plain enough for the compiler to vectorize. O(rows * cols), no memory beyond 8 kB of stack.
#include "core/table_access.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace vicinal::core {
namespace {

float widen_half(std::uint16_t bits) noexcept {
  const std::int32_t magnitude = bits & 0x7fff;
  // A subnormal is its integer times 2^-24, both exact. A normal number's exponent is rebiased by 127 - 15; infinity
  // and NaN get the largest exponent. All are computed and one is chosen by masks: branches would keep the loop scalar.
  const auto subnormal = std::bit_cast<std::int32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  const std::int32_t special = -static_cast<std::int32_t>(magnitude >= 0x7c00) & 0x7f800000;
  const std::int32_t normal = ((magnitude << 13) + (112 << 23)) | special;
  const std::int32_t is_subnormal = -static_cast<std::int32_t>(magnitude < 0x0400);
  const std::int32_t positive = (subnormal & is_subnormal) | (normal & ~is_subnormal);
  return std::bit_cast<float>(static_cast<std::uint32_t>(positive) | (bits & 0x8000U) << 16);
}

float widen_brain(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

struct FromByte {
  using Element = std::uint8_t;
  double operator()(std::uint8_t x) const noexcept { return x; }
};
struct FromHalf {
  using Element = std::uint16_t;
  double operator()(std::uint16_t x) const noexcept { return widen_half(x); }
};
struct FromBrain {
  using Element = std::uint16_t;
  double operator()(std::uint16_t x) const noexcept { return widen_brain(x); }
};
struct FromFloat {
  using Element = float;
  double operator()(float x) const noexcept { return x; }
};
struct FromDouble {
  using Element = double;
  double operator()(double x) const noexcept { return x; }
};
/// Copies without widening; only the element's size matters.
template <class Word>
struct Copy {
  using Element = Word;
  Word operator()(Word x) const noexcept { return x; }
};

/// Converts `rows` x `cols` elements that start at `from`; strides in elements.
template <class Convert, class Out>
void convert_strided(const TableView& table, std::int64_t begin, std::int64_t end, Out* out) noexcept {
  using Element = typename Convert::Element;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Element));
  const Convert convert;
  const std::int64_t d = table.cols();
  const auto* data = static_cast<const std::byte*>(table.data());
  const auto contiguous = [&](const std::byte* from, std::int64_t count, Out* to) {
    if constexpr (std::is_same_v<Element, Out>) {
      std::memcpy(to, from, static_cast<std::size_t>(count * kSize));
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = convert(load<Element>(from + i * kSize));
    }
  };
  if (table.col_stride() == 1 && (table.row_stride() == d || end - begin == 1)) {
    contiguous(data + begin * table.row_stride() * kSize, (end - begin) * d, out);
    return;
  }
  const std::int64_t col_step = table.col_stride() * kSize;
  for (std::int64_t i = begin; i < end; ++i, out += d) {
    const std::byte* row = data + i * table.row_stride() * kSize;
    if (table.col_stride() == 1) {
      contiguous(row, d, out);
    } else {
      for (std::int64_t j = 0; j < d; ++j) out[j] = convert(load<Element>(row + j * col_step));
    }
  }
}

/// The source's elements are put at the end of `out` and widened from there toward the front through a small buffer:
/// element i is written at 8 i, never beyond the first element not yet read.
template <class Convert>
void convert_blocks(const TableView& table, std::int64_t begin, std::int64_t end, double* out) {
  using Element = typename Convert::Element;
  constexpr std::int64_t kChunk = 1024;
  const Convert convert;
  const std::int64_t count = (end - begin) * table.cols();
  std::byte* narrow =
      reinterpret_cast<std::byte*>(out) + count * static_cast<std::int64_t>(sizeof(double) - sizeof(Element));
  table.source()(begin, end, narrow);
  if constexpr (!std::is_same_v<Element, double>) {
    Element buffer[kChunk];
    for (std::int64_t i = 0; i < count; i += kChunk) {
      const std::int64_t chunk = std::min(kChunk, count - i);
      std::memcpy(buffer, narrow + i * static_cast<std::int64_t>(sizeof(Element)),
                  static_cast<std::size_t>(chunk) * sizeof(Element));
      for (std::int64_t j = 0; j < chunk; ++j) out[i + j] = convert(buffer[j]);
    }
  }
}

template <class Convert>
void widen_all(const TableView& table, std::int64_t begin, std::int64_t end, double* out) {
  if (table.is_block_source()) {
    convert_blocks<Convert>(table, begin, end, out);
  } else {
    convert_strided<Convert>(table, begin, end, out);
  }
}

/// True when there is something to read.
bool check_range(const TableView& table, std::int64_t begin, std::int64_t end) {
  if (table.memory() == Memory::cuda) {
    throw Error(ErrorCode::device_unavailable, "table: its rows are in CUDA memory, which the CPU cannot read");
  }
  if (begin < 0 || end > table.rows() || begin > end) {
    throw Error(ErrorCode::internal, "rows outside the table were asked for");
  }
  return begin < end && table.cols() > 0;
}

}  // namespace

float widen(float16 x) noexcept {
  return widen_half(x.bits);
}
float widen(bfloat16 x) noexcept {
  return widen_brain(x.bits);
}

void widen_rows(const TableView& table, std::int64_t begin, std::int64_t end, double* out) {
  if (!check_range(table, begin, end)) return;
  switch (table.dtype()) {
    case DType::uint8:
      return widen_all<FromByte>(table, begin, end, out);
    case DType::float16:
      return widen_all<FromHalf>(table, begin, end, out);
    case DType::bfloat16:
      return widen_all<FromBrain>(table, begin, end, out);
    case DType::float32:
      return widen_all<FromFloat>(table, begin, end, out);
    case DType::float64:
      return widen_all<FromDouble>(table, begin, end, out);
  }
}

void copy_rows(const TableView& table, std::int64_t begin, std::int64_t end, void* out) {
  if (!check_range(table, begin, end)) return;
  if (table.is_block_source()) {
    table.source()(begin, end, out);
    return;
  }
  switch (size_of(table.dtype())) {
    case 1:
      return convert_strided<Copy<std::uint8_t>>(table, begin, end, static_cast<std::uint8_t*>(out));
    case 2:
      return convert_strided<Copy<std::uint16_t>>(table, begin, end, static_cast<std::uint16_t*>(out));
    case 4:
      return convert_strided<Copy<std::uint32_t>>(table, begin, end, static_cast<std::uint32_t*>(out));
    default:
      return convert_strided<Copy<std::uint64_t>>(table, begin, end, static_cast<std::uint64_t*>(out));
  }
}

bool is_row_contiguous(const TableView& table) noexcept {
  return table.memory() != Memory::cuda && !table.is_block_source() && table.col_stride() == 1 &&
         (table.row_stride() >= table.cols() || table.rows() <= 1);
}

}  // namespace vicinal::core
