// NumPy's type strings, and why some types cannot be a table.
#include <fmt/core.h>

#include "io/array.hpp"
#include "io/shown.hpp"

namespace vicinal::io {
namespace {

[[noreturn]] void refuse(const std::string& where, std::string_view descr, std::string_view why) {
  throw Error(ErrorCode::bad_data, fmt::format("{} has elements of type '{}'{}", where, shown(descr), why));
}

}  // namespace

ElementType parse_type(std::string_view descr, const std::string& where, bool bfloat16) {
  if (descr.size() < 2) refuse(where, descr, ", which is no type");
  const char order = descr[0];
  const char kind = descr[1];
  if (order != '<' && order != '>' && order != '|' && order != '=') refuse(where, descr, ", which is no type");
  switch (kind) {
    case 'O':
      refuse(where, descr, ": Python objects, which could only be read by running code from the file");
    case 'c':
      refuse(where, descr, ": complex numbers, which have no order of distances here");
    case 'M':
    case 'm':
      refuse(where, descr, ": dates or durations, not numbers; convert them first");
    case 'V':
      if (descr.substr(2) != "2") refuse(where, descr, ": raw records, not numbers");
      if (bfloat16) break;
      refuse(where, descr,
             ": two bytes of no type, read as bfloat16 (which ml_dtypes stores so) only with dtype bfloat16");
    default:
      break;
  }
  std::int64_t size = 0;
  if (descr.size() > 12) refuse(where, descr, ", which is no type");
  for (const char digit : descr.substr(2)) {
    if (digit < '0' || digit > '9') refuse(where, descr, ", which is no type");
    size = size * 10 + (digit - '0');
  }
  ElementType type;
  type.kind = static_cast<ElementKind>(kind);
  type.big_endian = order == '>';
  type.size = kind == 'U' ? size * 4 : size;
  bool known = false;
  if (kind == 'b') known = size == 1;
  if (kind == 'i' || kind == 'u') known = size == 1 || size == 2 || size == 4 || size == 8;
  if (kind == 'f') known = size == 2 || size == 4 || size == 8;
  if (kind == 'V') known = size == 2;
  if (kind == 'S' || kind == 'U') known = size >= 1;
  if (!known)
    refuse(where, descr, ", which is not among bool, int8 to int64, uint8 to uint64, float16 to float64, bfloat16");
  return type;
}

}  // namespace vicinal::io
