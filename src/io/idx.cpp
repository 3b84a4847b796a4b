// See idx.hpp. Sizes are 32-bit and unsigned; their product is checked for overflow before it is believed.
#include "io/idx.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/bad_data.hpp"
#include "io/element.hpp"

namespace vicinal::io {
namespace {

/// The type string of an element code, nullptr for an unknown one.
const char* descr_of(unsigned char code) {
  switch (code) {
    case 0x08:
      return "|u1";
    case 0x09:
      return "|i1";
    case 0x0B:
      return ">i2";
    case 0x0C:
      return ">i4";
    case 0x0D:
      return ">f4";
    case 0x0E:
      return ">f8";
    default:
      return nullptr;
  }
}

}  // namespace

bool is_idx(const Bytes& bytes) noexcept {
  return bytes.size >= 4 && bytes.data[0] == 0 && bytes.data[1] == 0 && descr_of(bytes.data[2]) != nullptr &&
         bytes.data[3] > 0;
}

ArrayHeader parse_idx_header(const Bytes& bytes, const std::string& where) {
  if (!is_idx(bytes)) bad(where, "is not an idx file");
  const std::uint64_t axes = bytes.data[3];
  ArrayHeader header;
  header.descr = descr_of(bytes.data[2]);
  header.type = parse_type(header.descr, where);
  header.offset = 4 + 4 * axes;
  if (bytes.size < header.offset) bad(where, fmt::format("ends within its idx header of {} axes (truncated)", axes));
  for (std::uint64_t axis = 0; axis < axes; ++axis) {
    header.shape.push_back(load<std::uint32_t>(bytes.data + 4 + 4 * axis, true));
  }
  return header;
}

RawArray parse_idx(const Bytes& bytes, const std::string& where) {
  RawArray array;
  array.header = parse_idx_header(bytes, where);
  array.where = where;
  const std::uint64_t expected = count_bytes(array.header, where);
  const std::uint64_t found = bytes.size - array.header.offset;
  if (found != expected) {
    bad(where, fmt::format("has {} bytes of elements where its idx header ({}) needs {}", found,
                           fmt::join(array.header.shape, " x "), expected));
  }
  array.bytes = bytes;
  array.bytes.data += array.header.offset;
  array.bytes.size = found;
  return array;
}

}  // namespace vicinal::io
