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
Input block_table(nanobind::handle value);

/// A sparse matrix (rows, columns, data, indices, starts of rows), whose rows are made dense block by block. Throws
/// `bad_data` for starts that do not ascend within the indices and, while it is read, for an index that is no column.
Input csr_table(nanobind::handle value, const char* name);

/// A capsule of the Arrow C stream interface (arrow_array_stream), which is read to its end. Throws `invalid_argument`
/// naming a column that holds no numbers, `bad_data` naming row and column of a missing value and of an integer beyond
/// 2^53, and where the stream fails.
Input arrow_table(Call& call, nanobind::handle capsule, const char* name);

}  // namespace vicinal::python
