#include "buffer.hpp"

namespace nb = nanobind;

namespace vicinal::python {

std::shared_ptr<const Buffer> Buffer::of(nb::handle object) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  if (PyObject_GetBuffer(object.ptr(), &buffer->view_, PyBUF_RECORDS_RO) == 0) return buffer;
  PyErr_Clear();
  buffer->view_.obj = nullptr;
  return nullptr;
}

Buffer::~Buffer() {
  // An interpreter that has ended has let go of everything.
  if (view_.obj == nullptr || !Py_IsInitialized()) return;
  const nb::gil_scoped_acquire held;
  PyBuffer_Release(&view_);
}

std::shared_ptr<const void> holding(nb::object object) {
  return {object.release().ptr(), [](const void* held) {
            if (!Py_IsInitialized()) return;
            const nb::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(held)));
          }};
}

}  // namespace vicinal::python
