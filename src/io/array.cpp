// See array.hpp. What can be used in place is: native byte order, aligned, row- or column-major. Everything else is
// copied once, in parallel, in blocks of rows; of several errors the pool rethrows that of the first block.
#include "io/array.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "io/bad_data.hpp"
#include "io/element.hpp"

namespace vicinal::io {
namespace {

constexpr std::int64_t kBlockElements = std::int64_t{1} << 18;
constexpr std::int64_t kLargestWhole = std::int64_t{1} << 53;  // up to here every integer is a float64

struct Target {
  DType dtype = DType::float64;
  bool convert = false;  // the bytes of an element change
};

Target target_of(const RawArray& array) {
  const ElementType& type = array.header.type;
  const bool swap = type.big_endian && type.size > 1;
  switch (type.kind) {
    case ElementKind::real:
      if (type.size == 2) return {DType::float16, swap};
      if (type.size == 4) return {DType::float32, swap};
      return {DType::float64, swap};
    case ElementKind::brain:
      return {DType::bfloat16, swap};
    case ElementKind::boolean:
      return {DType::uint8, true};  // the bytes are checked
    case ElementKind::unsigned_int:
      if (type.size == 1) return {DType::uint8, false};
      return {DType::float64, true};
    case ElementKind::signed_int:
      return {DType::float64, true};
    default:
      bad(array.where, fmt::format("holds text ({}), not numbers", array.header.descr));
  }
}

/// Offsets, in elements, of one column after the other when the array is not a plain matrix.
struct Strides {
  std::int64_t row = 0;
  std::vector<std::int64_t> column;  // empty: column j is at j * column_step
  std::int64_t column_step = 1;
};

Strides strides_of(const ArrayHeader& header, std::int64_t n, std::int64_t d) {
  Strides strides;
  if (!header.fortran || header.shape.size() < 2) {
    strides.row = d;
    return strides;
  }
  strides.row = 1;
  strides.column_step = n;
  if (header.shape.size() == 2) return strides;
  // Column c of the flattened table is index (i1, i2, ...) in row-major order; in the file the first index runs
  // fastest.
  strides.column.resize(static_cast<std::size_t>(d));
  for (std::int64_t c = 0; c < d; ++c) {
    std::int64_t rest = c;
    std::int64_t offset = 0;
    std::int64_t step = 1;
    for (const std::int64_t length : header.shape) step *= length;
    for (std::size_t axis = header.shape.size() - 1; axis >= 1; --axis) {
      step /= header.shape[axis];
      offset += rest % header.shape[axis] * step;
      rest /= header.shape[axis];
    }
    strides.column[static_cast<std::size_t>(c)] = offset;
  }
  return strides;
}

/// The element at `from` as the target type, at `to`. False when it does not fit.
bool convert_element(const ElementType& type, const unsigned char* from, unsigned char* to) {
  const bool big = type.big_endian;
  if (type.kind == ElementKind::real || type.kind == ElementKind::brain) {
    for (std::int64_t i = 0; i < type.size; ++i) to[i] = from[big ? type.size - 1 - i : i];
    return true;
  }
  if (type.kind == ElementKind::boolean) {
    *to = *from;
    return *from <= 1;
  }
  double value = 0;
  bool fits = true;
  if (type.kind == ElementKind::unsigned_int) {
    std::uint64_t whole = 0;
    if (type.size == 1) whole = *from;
    if (type.size == 2) whole = load<std::uint16_t>(from, big);
    if (type.size == 4) whole = load<std::uint32_t>(from, big);
    if (type.size == 8) whole = load<std::uint64_t>(from, big);
    fits = whole <= static_cast<std::uint64_t>(kLargestWhole);
    value = static_cast<double>(whole);
  } else {
    std::int64_t whole = 0;
    if (type.size == 1) whole = load<std::int8_t>(from, big);  // NOLINT(bugprone-signed-char-misuse): a number
    if (type.size == 2) whole = load<std::int16_t>(from, big);
    if (type.size == 4) whole = load<std::int32_t>(from, big);
    if (type.size == 8) whole = load<std::int64_t>(from, big);
    fits = whole >= -kLargestWhole && whole <= kLargestWhole;
    value = static_cast<double>(whole);
  }
  std::memcpy(to, &value, sizeof value);
  return fits;
}

[[noreturn]] void bad_element(const RawArray& array, std::int64_t row, std::int64_t column) {
  bad(array.where,
      array.header.type.kind == ElementKind::boolean
          ? fmt::format("has a truth value that is neither 0 nor 1 in row {}, column {}", row, column)
          : fmt::format("has an integer beyond 2^53, which float64 cannot hold, in row {}, column {}", row, column));
}

}  // namespace

std::int64_t count_elements(const std::vector<std::int64_t>& shape, const std::string& where) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t length : shape) {
    if (length < 0) bad(where, fmt::format("has a negative length ({}) in its shape", length));
    if (length == 0) empty = true;
  }
  if (empty) return 0;
  for (const std::int64_t length : shape) {
    if (__builtin_mul_overflow(count, length, &count)) bad(where, "has a shape of more elements than 2^63");
  }
  return count;
}

std::uint64_t count_bytes(const ArrayHeader& header, const std::string& where) {
  std::uint64_t bytes = 0;
  const auto count = static_cast<std::uint64_t>(count_elements(header.shape, where));
  if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(header.type.size), &bytes)) {
    bad(where, "has a shape of more bytes than 2^64");
  }
  return bytes;
}

Table table_from_array(const Context& ctx, const RawArray& array) {
  const ArrayHeader& header = array.header;
  const Target target = target_of(array);
  if (header.shape.empty()) bad(array.where, "holds a single number, not a table");
  const std::int64_t n = header.shape[0];
  if (n == 0) bad(array.where, "has no rows");
  const std::int64_t d = count_elements(header.shape, array.where) / n;
  if (d == 0) bad(array.where, "has no columns");

  const Strides strides = strides_of(header, n, d);
  const std::int64_t out_size = size_of(target.dtype);
  const bool aligned = reinterpret_cast<std::uintptr_t>(array.bytes.data) % static_cast<std::uintptr_t>(out_size) == 0;
  Table table;
  table.shape = header.shape;
  if (!target.convert && aligned && strides.column.empty()) {
    table.view = TableView(array.bytes.data, target.dtype, n, d, strides.row, strides.column_step);
    table.storage = array.bytes.owner;
    return table;
  }

  const std::uint64_t bytes = static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(d) *
                              static_cast<std::uint64_t>(out_size);  // at most 8 times the bytes in the file
  const std::string job = fmt::format("reading {}", array.where);
  core::require_memory(ctx, bytes + array.bytes.held, job);
  const std::shared_ptr<unsigned char> out = allocate(bytes, job);
  const std::int64_t block = std::max<std::int64_t>(1, kBlockElements / d);
  const std::int64_t blocks = (n + block - 1) / block;
  std::atomic<std::int64_t> done{0};
  core::parallel_for(ctx, blocks, [&](std::int64_t task, int worker) {
    const std::int64_t end = std::min(n, (task + 1) * block);
    unsigned char* to = out.get() + task * block * d * out_size;
    for (std::int64_t i = task * block; i < end; ++i) {
      for (std::int64_t j = 0; j < d; ++j, to += out_size) {
        const std::int64_t column =
            strides.column.empty() ? j * strides.column_step : strides.column[static_cast<std::size_t>(j)];
        const unsigned char* from = array.bytes.data + (i * strides.row + column) * header.type.size;
        if (!target.convert) {
          std::memcpy(to, from, static_cast<std::size_t>(out_size));
        } else if (!convert_element(header.type, from, to)) {
          bad_element(array, i, j);
        }
      }
    }
    const std::int64_t finished = ++done;
    if (worker == 0) ctx.report("read", static_cast<double>(finished) / static_cast<double>(blocks));
  });
  table.view = TableView(out.get(), target.dtype, n, d, d);
  table.storage = out;
  return table;
}

}  // namespace vicinal::io
