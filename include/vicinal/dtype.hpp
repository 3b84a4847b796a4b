// The element type of a table, and the memory that its rows are in.
#pragma once

#include <cstdint>
#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal {

/// Element types of tables. All values of each type are exact in float64.
enum class DType : std::uint8_t { uint8, float16, bfloat16, float32, float64 };

/// IEEE 754 binary16, as bits; only a storage type.
struct float16 {
  std::uint16_t bits;
};
/// bfloat16 (the upper half of a float32), as bits; only a storage type.
struct bfloat16 {
  std::uint16_t bits;
};

/// Bytes per element.
constexpr std::int64_t size_of(DType dtype) noexcept {
  return dtype == DType::uint8 ? 1 : dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
}
/// "uint8", "float16", "bfloat16", "float32", "float64".
VICINAL_API std::string_view name_of(DType dtype) noexcept;

/// The memory that rows are in: pageable host memory, pinned host memory, or the memory of a CUDA device.
enum class Memory : std::uint8_t { host, pinned, cuda };

}  // namespace vicinal
