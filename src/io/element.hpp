// One element of a stored array, loaded from any address in either byte order.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace vicinal::io {

static_assert(std::endian::native == std::endian::little, "file formats are read on little-endian machines only");

template <class T>
T load(const unsigned char* at, bool big_endian) noexcept {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if (big_endian) {
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
  }
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

}  // namespace vicinal::io
