// Tables by the Arrow C stream interface: pyarrow's tables and readers, polars, duckdb, and whatever else speaks it.
// Batches are copied, column by column, to rows of one type that has all of their numbers exactly, and released at
// once; a single batch whose columns stand one behind the other is borrowed as it is.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

#include "arrow_abi.hpp"
#include "table_input.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

using arrow::Owned;

/// A column of numbers or bools: its format is one character.
struct ArrowColumn {
  std::string name;
  char format = 0;
};

/// "table: column 'x' holds texts".
std::string column_of(const std::string& table, const std::string& column) {
  return table + ": column '" + column + "'";
}

const char* other_elements(std::string_view format, bool coded) {
  if (coded) return "categories";
  switch (format.empty() ? '\0' : format.front()) {
    case 'u':
    case 'U':
    case 'v':
      return "texts";
    case 'z':
    case 'Z':
    case 'w':
      return "bytes";
    case 'd':
      return "decimals";
    case 't':
      return "dates or times";
    case '+':
      return "lists or structs";
    default:
      return "elements of another type";
  }
}

std::vector<ArrowColumn> number_columns(const arrow::Schema& schema, const std::string& table) {
  if (std::string_view(schema.format) != "+s") {
    throw Error(ErrorCode::invalid_argument, table + ": a single Arrow column; expected a table, which has columns");
  }
  constexpr std::string_view kNumbers = "bcCsSiIlLefgn";
  std::vector<ArrowColumn> columns;
  for (std::int64_t j = 0; j < schema.n_children; ++j) {
    const arrow::Schema& child = *schema.children[j];
    const std::string_view format = child.format;
    const std::string name = child.name == nullptr ? std::to_string(j) : child.name;
    if (child.dictionary != nullptr || format.size() != 1 || kNumbers.find(format.front()) == std::string_view::npos) {
      throw Error(ErrorCode::invalid_argument, column_of(table, name) + " holds " +
                                                   other_elements(format, child.dictionary != nullptr) +
                                                   "; expected numbers or bools, so leave it out or code it");
    }
    columns.push_back({name, format.front()});
  }
  return columns;
}

/// The narrowest type that has the numbers of all columns.
DType joint_type(const std::vector<ArrowColumn>& columns) {
  const auto all_in = [&](std::string_view formats) {
    return std::all_of(columns.begin(), columns.end(), [&](const ArrowColumn& column) {
      return formats.find(column.format) != std::string_view::npos;
    });
  };
  if (all_in("bC")) return DType::uint8;
  if (all_in("e")) return DType::float16;
  return all_in("bcCsSef") ? DType::float32 : DType::float64;
}

/// Elements of one column of one batch.
struct Part {
  const ArrowColumn* column;
  std::int64_t number;        // of the column
  const std::uint8_t* there;  // bits; null: all are
  const void* values;
  std::int64_t offset;  // of the first element in both
};

bool bit_at(const std::uint8_t* bits, std::int64_t at) {
  return ((bits[at / 8] >> (at % 8)) & 1) != 0;
}

float half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

/// Batches as rows. Memory grows as they come, since a stream does not say how many there are.
class ArrowRows {
 public:
  ArrowRows(std::string table, std::vector<ArrowColumn> columns)
      : table_(std::move(table)), columns_(std::move(columns)), dtype_(joint_type(columns_)) {}
  ~ArrowRows() { std::free(memory_); }
  ArrowRows(const ArrowRows&) = delete;
  ArrowRows& operator=(const ArrowRows&) = delete;

  void add(const Context& ctx, const arrow::Array& batch) {
    const std::int64_t count = batch.length;
    reserve(ctx, rows_ + count);
    const std::vector<Part> parts = parts_of(batch);
    constexpr std::int64_t kTile = 256;  // rows that stay in a cache while their columns are copied
    for (std::int64_t first = 0; first < count; first += kTile) {
      for (const Part& part : parts) copy(part, first, std::min(kTile, count - first));
    }
    rows_ += count;
  }

  /// The batch as it is, where its columns are of the table's type and stand one behind the other.
  [[nodiscard]] std::optional<TableView> borrowed(const arrow::Array& batch) const {
    const std::vector<Part> parts = parts_of(batch);
    if (parts.empty() || batch.length == 0) return std::nullopt;
    const std::int64_t size = size_of(dtype_);
    const auto address = [&](const Part& part) {
      return static_cast<const std::byte*>(part.values) + part.offset * size;
    };
    const std::byte* const first = address(parts.front());
    if (reinterpret_cast<std::uintptr_t>(first) % static_cast<std::uintptr_t>(size) != 0) return std::nullopt;
    for (const Part& part : parts) {
      if (part.there != nullptr || !is_native(part.column->format)) return std::nullopt;
      if (address(part) != first + part.number * batch.length * size) return std::nullopt;
    }
    return TableView(first, dtype_, batch.length, static_cast<std::int64_t>(parts.size()), 1, batch.length);
  }

  [[nodiscard]] std::int64_t bytes() const noexcept { return rows_ * row_bytes(); }
  /// Of all rows that were added.
  [[nodiscard]] TableView view() const {
    const auto cols = static_cast<std::int64_t>(columns_.size());
    return TableView(memory_, dtype_, rows_, cols, cols);
  }

 private:
  [[nodiscard]] std::int64_t row_bytes() const noexcept {
    return static_cast<std::int64_t>(columns_.size()) * size_of(dtype_);
  }
  [[nodiscard]] bool is_native(char format) const noexcept {
    switch (dtype_) {
      case DType::uint8:
        return format == 'C';
      case DType::float16:
        return format == 'e';
      case DType::float32:
        return format == 'f';
      default:
        return format == 'g';
    }
  }

  void reserve(const Context& ctx, std::int64_t rows) {
    if (rows <= capacity_ || columns_.empty()) return;
    // Twice as many, so that few copies are made, but only what is needed where more would be beyond the limit.
    const std::uint64_t limit = ctx.memory_limit();
    const auto bytes_for = [&](std::int64_t count) {
      return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(row_bytes());
    };
    if (bytes_for(rows) > limit) {
      throw Error(ErrorCode::over_memory, table_ + ": " + std::to_string(rows) + " rows of Arrow batches take " +
                                              std::to_string(bytes_for(rows)) + " bytes, beyond the memory limit of " +
                                              std::to_string(limit));
    }
    const std::int64_t capacity = bytes_for(2 * capacity_) > limit ? rows : std::max(rows, 2 * capacity_);
    // Large blocks grow in place, which no vector does.
    void* const grown = std::realloc(memory_, std::max<std::uint64_t>(bytes_for(capacity), 1));
    if (grown == nullptr) throw Error(ErrorCode::over_memory, table_ + ": no memory for Arrow batches");
    memory_ = grown;
    capacity_ = capacity;
  }

  /// The columns of a batch; throws `bad_data` where the batch is not what its schema says, or an element is missing.
  [[nodiscard]] std::vector<Part> parts_of(const arrow::Array& batch) const {
    const auto cols = static_cast<std::int64_t>(columns_.size());
    if (batch.n_children != cols || batch.length < 0 || batch.offset < 0) damaged();
    if (batch.null_count != 0 && batch.n_buffers > 0 && batch.buffers[0] != nullptr) {
      refuse_missing(static_cast<const std::uint8_t*>(batch.buffers[0]), batch.offset, batch.length, "");
    }
    std::vector<Part> parts;
    for (std::int64_t j = 0; j < cols; ++j) {
      const arrow::Array& child = *batch.children[j];
      const ArrowColumn& column = columns_[static_cast<std::size_t>(j)];
      const std::string place = ", column " + std::to_string(j) + " ('" + column.name + "')";
      if (child.offset < 0 || child.length < batch.offset + batch.length) damaged();
      const std::int64_t offset = child.offset + batch.offset;
      if (column.format == 'n') {
        if (batch.length > 0) missing(rows_, place);
        parts.push_back({&column, j, nullptr, nullptr, 0});
        continue;
      }
      if (child.n_buffers != 2 || (child.buffers[1] == nullptr && batch.length > 0)) damaged();
      const auto* const there = static_cast<const std::uint8_t*>(child.buffers[0]);
      if (child.null_count != 0 && there != nullptr) refuse_missing(there, offset, batch.length, place);
      parts.push_back({&column, j, nullptr, child.buffers[1], offset});
    }
    return parts;
  }
  [[noreturn]] void damaged() const {
    throw Error(ErrorCode::bad_data, table_ + ": an Arrow batch is not what its schema says");
  }
  [[noreturn]] void missing(std::int64_t row, const std::string& place) const {
    throw Error(ErrorCode::bad_data, table_ + ": row " + std::to_string(row) + place +
                                         " is missing; fill missing values or leave out their rows");
  }
  void refuse_missing(const std::uint8_t* there, std::int64_t offset, std::int64_t count,
                      const std::string& place) const {
    for (std::int64_t i = 0; i < count; ++i) {
      if (!bit_at(there, offset + i)) missing(rows_ + i, place);
    }
  }

  void copy(const Part& part, std::int64_t first, std::int64_t count) {
    switch (dtype_) {
      case DType::uint8:
        return copy_as<std::uint8_t>(part, first, count);
      case DType::float16:
        return copy_from<std::uint16_t, std::uint16_t>(part, first, count);  // their bits
      case DType::float32:
        return copy_as<float>(part, first, count);
      default:
        return copy_as<double>(part, first, count);
    }
  }
  template <class To>
  void copy_as(const Part& part, std::int64_t first, std::int64_t count) {
    switch (part.column->format) {
      case 'b':
        return copy_each<To>(part, first, count, [&](std::int64_t at) {
          return bit_at(static_cast<const std::uint8_t*>(part.values), at) ? To{1} : To{0};
        });
      case 'e':
        return copy_each<To>(part, first, count, [&](std::int64_t at) {
          return static_cast<To>(half_value(static_cast<const std::uint16_t*>(part.values)[at]));
        });
      case 'c':
        return copy_from<std::int8_t, To>(part, first, count);
      case 'C':
        return copy_from<std::uint8_t, To>(part, first, count);
      case 's':
        return copy_from<std::int16_t, To>(part, first, count);
      case 'S':
        return copy_from<std::uint16_t, To>(part, first, count);
      case 'i':
        return copy_from<std::int32_t, To>(part, first, count);
      case 'I':
        return copy_from<std::uint32_t, To>(part, first, count);
      case 'l':
        return copy_whole<std::int64_t, To>(part, first, count);
      case 'L':
        return copy_whole<std::uint64_t, To>(part, first, count);
      case 'f':
        return copy_from<float, To>(part, first, count);
      default:
        return copy_from<double, To>(part, first, count);
    }
  }
  template <class From, class To>
  void copy_from(const Part& part, std::int64_t first, std::int64_t count) {
    copy_each<To>(part, first, count,
                  [&](std::int64_t at) { return static_cast<To>(static_cast<const From*>(part.values)[at]); });
  }
  /// Integers of 64 bits, which float64 has up to 2^53.
  template <class From, class To>
  void copy_whole(const Part& part, std::int64_t first, std::int64_t count) {
    constexpr std::int64_t kMaxExact = std::int64_t{1} << 53;
    const auto* const values = static_cast<const From*>(part.values) + part.offset + first;
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::cmp_less_equal(values[i], kMaxExact) && std::cmp_greater_equal(values[i], -kMaxExact)) continue;
      throw Error(ErrorCode::bad_data, table_ + ": row " + std::to_string(rows_ + first + i) + ", column " +
                                           std::to_string(part.number) + " ('" + part.column->name + "') is " +
                                           std::to_string(values[i]) +
                                           ", beyond 2^53, where float64 has not every whole number");
    }
    copy_from<From, To>(part, first, count);
  }
  template <class To, class Value>
  void copy_each(const Part& part, std::int64_t first, std::int64_t count, const Value& value) {
    const auto cols = static_cast<std::int64_t>(columns_.size());
    To* out = static_cast<To*>(memory_) + (rows_ + first) * cols + part.number;
    for (std::int64_t i = 0; i < count; ++i, out += cols) *out = value(part.offset + first + i);
  }

  std::string table_;
  std::vector<ArrowColumn> columns_;
  DType dtype_;
  void* memory_ = nullptr;
  std::int64_t rows_ = 0;
  std::int64_t capacity_ = 0;  // rows
};

/// A stream, moved out of its capsule.
class ArrowStream {
 public:
  ArrowStream(arrow::Stream* given, std::string table) : stream_(given), table_(std::move(table)) {}

  [[nodiscard]] std::vector<ArrowColumn> columns() {
    Owned<arrow::Schema> schema;
    check(stream_->get_schema(stream_.get(), schema.get()));
    return number_columns(*schema, table_);
  }
  /// The next batch; an empty one at the end.
  std::shared_ptr<Owned<arrow::Array>> next() {
    auto batch = std::make_shared<Owned<arrow::Array>>();
    check(stream_->get_next(stream_.get(), batch->get()));
    return batch;
  }

 private:
  void check(int status) {
    if (status == 0) return;
    const char* const told = stream_->get_last_error(stream_.get());
    std::string sentence = told == nullptr ? "error " + std::to_string(status) : told;
    sentence = sentence.substr(0, sentence.find('\n'));
    throw Error(ErrorCode::bad_data, table_ + ": its Arrow stream failed: " + sentence);
  }

  Owned<arrow::Stream> stream_;
  std::string table_;
};

Input read_stream(const Context& ctx, ArrowStream& stream, const std::string& table, std::int64_t& copied) {
  const auto rows = std::make_shared<ArrowRows>(table, stream.columns());
  auto batch = stream.next();
  auto following = batch->is_empty() ? batch : stream.next();
  if (!batch->is_empty() && following->is_empty()) {
    if (const auto view = rows->borrowed(**batch)) return {*view, batch};
  }
  while (!batch->is_empty()) {
    ctx.check_cancelled();
    rows->add(ctx, **batch);
    batch = std::exchange(following, following->is_empty() ? following : stream.next());
  }
  copied = rows->bytes();
  return {rows->view(), rows};
}

}  // namespace

Input arrow_table(Call& call, nb::handle capsule, const char* name) {
  auto* const given = static_cast<arrow::Stream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  if (given == nullptr) {
    PyErr_Clear();
    throw Error(ErrorCode::invalid_argument,
                std::string(name) + ": __arrow_c_stream__ gave no capsule of an Arrow stream");
  }
  if (given->release == nullptr) {
    throw Error(ErrorCode::invalid_argument, std::string(name) + ": its Arrow stream was read before; make it anew");
  }
  ArrowStream stream(given, name);
  Input input;
  std::int64_t copied = 0;
  call.run([&](const Context& ctx) { input = read_stream(ctx, stream, name, copied); });
  call.count_copied(copied);
  return input;
}

}  // namespace vicinal::python
