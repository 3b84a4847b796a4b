// An array as a file stores it, and how it becomes a table: used in place when it already is one, else copied (swapped,
// widened exactly, re-ordered). Serves contract clauses 1 (exact widening), 6 (no empty tables) and 7.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/bytes.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

/// NumPy's kinds of element, by their letters.
enum class ElementKind : char {
  boolean = 'b',
  signed_int = 'i',
  unsigned_int = 'u',
  real = 'f',
  brain = 'V',  ///< bfloat16, as ml_dtypes stores it: two bytes of no type
  bytes = 'S',
  text = 'U'
};

/// An element type: "<i4" is {signed_int, 4, false}.
struct ElementType {
  ElementKind kind = ElementKind::real;
  std::int64_t size = 8;    ///< bytes an element takes ('U': four a character)
  bool big_endian = false;  ///< of elements of more than one byte
};

/// Shape and type of an array, and where its elements begin.
struct ArrayHeader {
  std::string descr;  ///< as written in the file
  ElementType type;
  bool fortran = false;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  ///< of the first element, from where the header began
};

struct RawArray {
  ArrayHeader header;
  Bytes bytes;        ///< exactly the elements
  std::string where;  ///< "'x.npz' array 'ids'", opens every sentence
};

/// Parses a NumPy type string; "<V2" is bfloat16 only where that was said. Throws `bad_data` saying why a type cannot
/// be used.
ElementType parse_type(std::string_view descr, const std::string& where, bool bfloat16 = false);

/// Elements of a shape; `bad_data` when that overflows or a length is negative.
std::int64_t count_elements(const std::vector<std::int64_t>& shape, const std::string& where);

/// Bytes of all elements, checked for overflow.
std::uint64_t count_bytes(const ArrayHeader& header, const std::string& where);

/// The array as a table: [n] becomes [n, 1], [n, a, b] becomes [n, a * b]. Fills view, shape and storage.
Table table_from_array(const Context& ctx, const RawArray& array);

/// A one-column array as labels: whole numbers, or fixed-width text.
Labels labels_from_array(const Context& ctx, const RawArray& array);

}  // namespace vicinal::io
