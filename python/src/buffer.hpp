// Buffer: the memory of a Python object by the buffer protocol, borrowed: read-only, mapped and strided arrays as they
// are. It may be dropped by any thread.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace vicinal::python {

class Buffer {
 public:
  /// Null where the object has none.
  static std::shared_ptr<const Buffer> of(nanobind::handle object);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] const void* data() const noexcept { return view_.buf; }
  [[nodiscard]] int dimensions() const noexcept { return view_.ndim; }
  [[nodiscard]] std::int64_t size(int axis) const noexcept { return view_.shape[axis]; }
  [[nodiscard]] std::int64_t stride(int axis) const noexcept { return view_.strides[axis]; }  ///< bytes
  [[nodiscard]] std::int64_t item_size() const noexcept { return view_.itemsize; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return view_.len; }
  /// The element type as the struct module spells it: "d", "<f"; of several characters for what is no number.
  [[nodiscard]] const char* format() const noexcept { return view_.format == nullptr ? "B" : view_.format; }

 private:
  Buffer() = default;
  Py_buffer view_{};
};

/// Keeps a Python object alive; any thread may drop it.
std::shared_ptr<const void> holding(nanobind::object object);

}  // namespace vicinal::python
