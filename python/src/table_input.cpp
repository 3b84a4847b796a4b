#include "table_input.hpp"

#include <nanobind/ndarray.h>

#include <string_view>
#include <utility>

#include "buffer.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

std::optional<DType> dtype_of(std::string_view format) {
  if (format == "B" || format == "?") return DType::uint8;
  if (format == "e") return DType::float16;
  if (format == "f") return DType::float32;
  if (format == "d") return DType::float64;
  return std::nullopt;
}

/// A view of a buffer; nothing where it has other dimensions, or where elements do not stand at multiples of their
/// size.
std::optional<Input> view_of(const std::shared_ptr<const Buffer>& buffer, DType dtype) {
  const std::int64_t size = size_of(dtype);
  const auto misaligned = [&](std::int64_t at) { return at % size != 0; };
  if (buffer->dimensions() != 2 || misaligned(reinterpret_cast<std::intptr_t>(buffer->data())) ||
      misaligned(buffer->stride(0)) || misaligned(buffer->stride(1))) {
    return std::nullopt;
  }
  return Input{TableView(buffer->data(), dtype, buffer->size(0), buffer->size(1), buffer->stride(0) / size,
                         buffer->stride(1) / size),
               buffer};
}

/// numpy.ndarray itself and numpy.memmap, but no other subclass, such as a masked array.
bool is_plain(nb::handle value) {
  const nb::handle type = value.type();
  const auto name = nb::cast<std::string>(type.attr("__module__")) + "." + nb::cast<std::string>(type.attr("__name__"));
  return name == "numpy.ndarray" || name == "numpy.memmap";
}

std::optional<DType> dtype_of(const nb::dlpack::dtype& dtype) {
  if (dtype.lanes != 1) return std::nullopt;
  const auto is = [&](nb::dlpack::dtype_code code, int bits) {
    return dtype.code == static_cast<std::uint8_t>(code) && dtype.bits == bits;
  };
  if (is(nb::dlpack::dtype_code::UInt, 8) || is(nb::dlpack::dtype_code::Bool, 8)) return DType::uint8;
  if (is(nb::dlpack::dtype_code::Float, 16)) return DType::float16;
  if (is(nb::dlpack::dtype_code::Bfloat, 16)) return DType::bfloat16;
  if (is(nb::dlpack::dtype_code::Float, 32)) return DType::float32;
  if (is(nb::dlpack::dtype_code::Float, 64)) return DType::float64;
  return std::nullopt;
}

[[noreturn]] void refuse_table(const char* name, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, std::string(name) + ": " + what);
}

constexpr const char* kDTypes = "; expected uint8, float16, bfloat16, float32 or float64";

Input dlpack_table(nb::handle capsule, const char* name, int* device) {
  auto array = std::make_shared<nb::ndarray<nb::ro>>(nb::cast<nb::ndarray<nb::ro>>(capsule));
  if (array->ndim() != 2)
    refuse_table(name, std::to_string(array->ndim()) + " dimensions; expected 2, rows and columns");
  const auto dtype = dtype_of(array->dtype());
  if (!dtype) refuse_table(name, std::string("elements of another type on a device") + kDTypes);
  const int type = array->device_type();
  Memory memory = Memory::host;
  if (type == nb::device::cuda::value || type == nb::device::cuda_managed::value) memory = Memory::cuda;
  if (type == nb::device::cuda_host::value) memory = Memory::pinned;
  if (memory == Memory::host && type != nb::device::cpu::value) {
    refuse_table(name, "memory of a device of DLPack's type " + std::to_string(type) + "; expected the CPU or CUDA");
  }
  *device = array->device_id();
  const TableView view(array->data(), *dtype, static_cast<std::int64_t>(array->shape(0)),
                       static_cast<std::int64_t>(array->shape(1)), array->stride(0), array->stride(1), memory);
  return {view, array};
}

/// Dictionary of `__cuda_array_interface__`: its pointer is that of a device, and says which one to whoever asks the
/// driver; the library does.
Input cuda_table(nb::handle value, const char* name) {
  const nb::tuple both = nb::cast<nb::tuple>(value);
  const nb::dict described = nb::cast<nb::dict>(both[0]);
  const nb::tuple shape = nb::cast<nb::tuple>(described["shape"]);
  if (shape.size() != 2) refuse_table(name, std::to_string(shape.size()) + " dimensions; expected 2, rows and columns");
  const auto type = nb::cast<std::string>(described["typestr"]);
  const auto dtype = type == "|b1"   ? std::optional(DType::uint8)
                     : type == "|u1" ? std::optional(DType::uint8)
                     : type == "<f2" ? std::optional(DType::float16)
                     : type == "<f4" ? std::optional(DType::float32)
                     : type == "<f8" ? std::optional(DType::float64)
                                     : std::nullopt;
  if (!dtype) refuse_table(name, "elements of type " + type + " on a device" + kDTypes);
  const auto n = nb::cast<std::int64_t>(shape[0]);
  const auto d = nb::cast<std::int64_t>(shape[1]);
  const std::int64_t size = size_of(*dtype);
  std::int64_t row_stride = d;
  std::int64_t col_stride = 1;
  if (described.contains("strides") && !nb::object(described["strides"]).is_none()) {
    const nb::tuple strides = nb::cast<nb::tuple>(described["strides"]);
    if (strides.size() != 2) refuse_table(name, std::to_string(strides.size()) + " strides; expected 2");
    row_stride = nb::cast<std::int64_t>(strides[0]);
    col_stride = nb::cast<std::int64_t>(strides[1]);
    if (row_stride % size != 0 || col_stride % size != 0) refuse_table(name, "strides are no multiples of an element");
    row_stride /= size;
    col_stride /= size;
  }
  const nb::tuple data = nb::cast<nb::tuple>(described["data"]);
  if (data.size() != 2) refuse_table(name, "data must be a pointer, and whether it is read-only");
  const auto* const pointer =  // NOLINTNEXTLINE(performance-no-int-to-ptr): the interface says it by number
      reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(data[0]));
  return {TableView(pointer, *dtype, n, d, row_stride, col_stride, Memory::cuda), holding(nb::object(both[1]))};
}

}  // namespace

std::optional<Input> plain_table(nb::handle value) {
  if (!is_plain(value)) return std::nullopt;
  const auto buffer = Buffer::of(value);
  if (buffer == nullptr) return std::nullopt;
  const auto dtype = dtype_of(buffer->format());
  return dtype ? view_of(buffer, *dtype) : std::nullopt;
}

Input imported_table(const std::string& kind, nb::handle value, const char* name, int* device) {
  if (kind == "dlpack") return dlpack_table(value, name, device);
  if (kind == "cuda") return cuda_table(value, name);
  const auto buffer = Buffer::of(value);
  std::optional<Input> input;
  if (buffer != nullptr && kind == "bfloat16") {
    input = view_of(buffer, DType::bfloat16);
  } else if (const auto dtype = buffer != nullptr ? dtype_of(buffer->format()) : std::nullopt) {
    input = view_of(buffer, *dtype);
  }
  if (!input) throw Error(ErrorCode::internal, std::string(name) + ": vicinal._tables gave an array of another kind");
  return *input;
}

Input block_table(nb::handle value) {
  const auto n = nb::cast<std::int64_t>(value.attr("rows"));
  const auto d = nb::cast<std::int64_t>(value.attr("cols"));
  const auto word = nb::cast<std::string>(value.attr("dtype"));
  const DType dtype = word == "uint8"     ? DType::uint8
                      : word == "float16" ? DType::float16
                      : word == "float32" ? DType::float32
                                          : DType::float64;
  nb::object fill = value.attr("fill");
  const std::int64_t row_bytes = d * size_of(dtype);
  // The library copies its source without the GIL: no reference is counted there.
  const auto read = [fill = nb::handle(fill), row_bytes](std::int64_t begin, std::int64_t end, void* rows) {
    Call& call = Call::current();
    call.ask_python([&] {
      const auto bytes = static_cast<Py_ssize_t>((end - begin) * row_bytes);
      const nb::object memory = nb::steal(PyMemoryView_FromMemory(static_cast<char*>(rows), bytes, PyBUF_WRITE));
      fill(begin, end, memory);
      call.count_copied(bytes);
    });
  };
  return {TableView::blocks(dtype, n, d, read), holding(std::move(fill))};
}

}  // namespace vicinal::python
