// Tables as Python has them to tables as the library takes them, without a copy. vicinal/_tables.py decides what an
// object is, and copies what the library cannot read as it is.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "call.hpp"

namespace vicinal::python {

/// A NumPy array of two dimensions and a type that the library reads (uint8 and bool, float16, float32, float64), of
/// any strides; nothing for any other object.
std::optional<Input> plain_table(nanobind::handle value);

/// What vicinal._tables.table gives: "array", "bfloat16" (its elements as uint16), "dlpack" (a capsule) or "cuda" (a
/// `__cuda_array_interface__` and its owner). `device` is the number of the device that it is on.
Input imported_table(const std::string& kind, nanobind::handle value, const char* name, int* device);

/// A BlockSource, whose function the library calls while it works.
Input block_table(Call& call, nanobind::handle value);

}  // namespace vicinal::python
