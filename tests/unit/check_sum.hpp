// Files of models and indexes whose bytes a test has changed.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace vicinal {

/// The bytes with the check sum in their last four made right again.
inline std::string summed(std::string bytes) {
  const std::size_t size = bytes.size() - 4;
  const auto sum = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), size));
  std::memcpy(bytes.data() + size, &sum, 4);
  return bytes;
}

}  // namespace vicinal
